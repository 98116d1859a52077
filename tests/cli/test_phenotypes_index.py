"""``eq phenotypes index``: built, listed, kept whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from toy_ontology import TERMS, obo

BUILD = ("phenotypes", "index", "build", "--ontology", "toy.obo", "--index-dir", "indexes")


@pytest.fixture(autouse=True)
def toy(folder: Path) -> Path:
    """The small ontology lies in the working folder."""
    return obo(folder / "toy.obo")


def listed(eq) -> list[dict]:
    return json.loads(eq("phenotypes", "index", "list", "--index-dir", "indexes", "--json").stdout)["indexes"]


def test_both_kinds_are_built_side_by_side_and_listed(eq) -> None:
    for flag in (("--single-vector",), ("--multi-vector",)):
        done = eq(*BUILD, "--model-name", "hash", *flag)
        assert done.exit_code == 0, done.output
        assert "6 terms" in done.stdout
        assert "in the embedder" in done.stdout
    assert [(each["multi_vector"], each["components"]) for each in listed(eq)] == [(False, 6), (True, 17)]
    table = eq("phenotypes", "index", "list", "--index-dir", "indexes").stdout
    assert "multi-vector" in table
    assert "toy" in table
    assert "2025-01-01" in table


def test_the_release_is_seen_whole_on_a_narrow_screen(eq, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    toy.write_text(toy.read_text().replace("ontology: toy", "ontology: ontology-of-signs-with-a-long-name"))
    eq(*BUILD, "--model-name", "hash,dim=128", "--multi-vector")
    head, _, row, *_ = eq("phenotypes", "index", "list", "--index-dir", "indexes").stdout.splitlines()
    assert "release" in head
    assert "2025-01-01" in row
    assert "ontology-of-sig" in row


def test_a_file_where_a_folder_should_be_is_called_one(eq) -> None:
    _refused(eq(*BUILD[:-1], "toy.obo", "--model-name", "hash"), "toy.obo is a file", "--index-dir")
    _refused(eq("phenotypes", "index", "list", "--index-dir", "toy.obo"), "toy.obo is a file", "--index-dir")


def test_the_same_command_again_embeds_nothing(eq) -> None:
    eq(*BUILD, "--model-name", "hash")
    again = eq(*BUILD, "--model-name", "hash")
    assert "nothing was embedded" in again.stdout
    report = json.loads(eq(*BUILD, "--model-name", "hash", "--json").stdout)["indexes"][0]["report"]
    assert (report["reused"], report["embedded"]) == (17, 0)


def test_a_new_release_embeds_what_changed(eq, toy: Path) -> None:
    eq(*BUILD, "--model-name", "hash", "--multi-vector")
    obo(toy, TERMS.replace("Coughing", "Tussis"), "2025-06-01")
    done = json.loads(eq(*BUILD, "--model-name", "hash", "--multi-vector", "--json").stdout)
    assert done["indexes"][0]["report"]["embedded"] == 1
    assert done["indexes"][0]["release"] == "2025-06-01"


def test_the_part_of_a_fusion_that_embeds_gets_the_index(eq) -> None:
    eq(*BUILD, "--model-name", "sum:hash+tfidf:")
    assert [each["model_spec"] for each in listed(eq)] == ["hash"]


def test_systems_that_score_words_need_none(eq) -> None:
    _refused(eq(*BUILD, "--model-name", "tfidf:"), "is lexical", "it needs no index")


def test_an_unknown_model_and_an_unknown_ontology_get_a_sentence(eq) -> None:
    _refused(eq(*BUILD, "--model-name", "hsah"), "no model is called 'hsah'", "hash")
    _refused(eq("phenotypes", "index", "build", "--ontology", "nowhere.obo"), "nowhere.obo", "")
    assert not Path("indexes").exists()


def test_a_store_that_ends_with_the_command_is_refused(eq) -> None:
    _refused(eq(*BUILD, "--model-name", "hash", "--store", "faiss:hnsw"), "ends with this command", "chroma")


@pytest.mark.engines("chromadb")
def test_a_store_can_hold_the_vectors(eq) -> None:
    pytest.importorskip("chromadb")
    done = eq(*BUILD, "--model-name", "hash", "--multi-vector", "--store", "chroma:vectors")
    assert done.exit_code == 0, done.output
    words = ("phenotypes", "query", "fits", "--ontology", "toy.obo", "--index-dir", "indexes", "--model-name")
    found = [
        json.loads(eq(*words, "hash", "--multi-vector", "--json", *more).stdout)["results"][0]
        for more in ((), ("--store", "chroma:vectors"))
    ]
    assert found[0]["id"] == found[1]["id"] == "T:2"
    assert found[0]["score"] == pytest.approx(found[1]["score"], abs=1e-5)


def test_no_indexes_and_damaged_ones_are_told(eq) -> None:
    assert "there are no indexes in indexes" in eq("phenotypes", "index", "list", "--index-dir", "indexes").stderr
    eq(*BUILD, "--model-name", "hash")
    next(Path("indexes").glob("*/meta.json")).write_text("{")
    listing = eq("phenotypes", "index", "list", "--index-dir", "indexes")
    assert listing.exit_code == 0
    assert "is damaged" in listing.stderr


def _refused(result: Result, fact: str, hint: str) -> None:
    assert result.exit_code == 2, result.output
    assert fact in result.stderr
    assert hint in result.stderr
