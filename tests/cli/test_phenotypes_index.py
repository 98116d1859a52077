"""``eq phenotypes index``: building, listing and updating indexes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from toy_ontology import TERMS, obo

BUILD = ("phenotypes", "index", "build", "--ontology", "toy.obo", "--index-dir", "indexes")


@pytest.fixture(autouse=True)
def toy(folder: Path) -> Path:
    """Write the small ontology to the working folder."""
    return obo(folder / "toy.obo")


def list_indexes(eq) -> list[dict]:
    return json.loads(eq("phenotypes", "index", "list", "--index-dir", "indexes", "--json").stdout)["indexes"]


def test_both_kinds_are_built_side_by_side_and_listed(eq) -> None:
    for flag in (("--single-vector",), ("--multi-vector",)):
        result = eq(*BUILD, "--model-name", "hash", *flag)
        assert result.exit_code == 0, result.output
        assert "6 terms" in result.stdout
        assert "distinct texts embedded in" in result.stdout
    assert [(index["multi_vector"], index["components"]) for index in list_indexes(eq)] == [(False, 6), (True, 17)]
    table = eq("phenotypes", "index", "list", "--index-dir", "indexes").stdout
    assert "multi-vector" in table
    assert "toy" in table
    assert "2025-01-01" in table


def test_a_narrow_table_shows_the_whole_release(eq, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    toy.write_text(toy.read_text().replace("ontology: toy", "ontology: ontology-of-signs-with-a-long-name"))
    eq(*BUILD, "--model-name", "hash,dim=128", "--multi-vector")
    header, _, row, *_ = eq("phenotypes", "index", "list", "--index-dir", "indexes").stdout.splitlines()
    assert "release" in header
    assert "2025-01-01" in row
    assert "ontology-of-sig" in row


def test_a_file_as_index_folder_is_an_error(eq) -> None:
    _assert_error(eq(*BUILD[:-1], "toy.obo", "--model-name", "hash"), "toy.obo is a file", "--index-dir")
    _assert_error(eq("phenotypes", "index", "list", "--index-dir", "toy.obo"), "toy.obo is a file", "--index-dir")


def test_a_repeated_build_embeds_nothing(eq) -> None:
    eq(*BUILD, "--model-name", "hash")
    repeated = eq(*BUILD, "--model-name", "hash")
    assert "nothing was embedded" in repeated.stdout
    report = json.loads(eq(*BUILD, "--model-name", "hash", "--json").stdout)["indexes"][0]["report"]
    assert (report["reused"], report["embedded"]) == (17, 0)


def test_a_new_release_embeds_changed_terms_only(eq, toy: Path) -> None:
    eq(*BUILD, "--model-name", "hash", "--multi-vector")
    obo(toy, TERMS.replace("Coughing", "Tussis"), "2025-06-01")
    content = json.loads(eq(*BUILD, "--model-name", "hash", "--multi-vector", "--json").stdout)
    assert content["indexes"][0]["report"]["embedded"] == 1
    assert content["indexes"][0]["release"] == "2025-06-01"


def test_a_fusion_builds_the_index_of_its_embedding_model(eq) -> None:
    eq(*BUILD, "--model-name", "sum:hash+tfidf:")
    assert [index["model_spec"] for index in list_indexes(eq)] == ["hash"]


def test_lexical_models_need_no_index(eq) -> None:
    _assert_error(eq(*BUILD, "--model-name", "tfidf:"), "is lexical", "it needs no index")


def test_an_unknown_model_or_ontology_is_an_error(eq) -> None:
    _assert_error(eq(*BUILD, "--model-name", "hsah"), "no model is called 'hsah'", "hash")
    _assert_error(eq("phenotypes", "index", "build", "--ontology", "nowhere.obo"), "nowhere.obo", "")
    assert not Path("indexes").exists()


def test_an_in_memory_store_is_an_error(eq) -> None:
    _assert_error(eq(*BUILD, "--model-name", "hash", "--store", "faiss:hnsw"), "ends with this command", "chroma")


@pytest.mark.engines("chromadb")
def test_a_store_can_hold_the_vectors(eq) -> None:
    pytest.importorskip("chromadb")
    result = eq(*BUILD, "--model-name", "hash", "--multi-vector", "--store", "chroma:vectors")
    assert result.exit_code == 0, result.output
    arguments = ("phenotypes", "query", "fits", "--ontology", "toy.obo", "--index-dir", "indexes", "--model-name")
    first_results = [
        json.loads(eq(*arguments, "hash", "--multi-vector", "--json", *options).stdout)["results"][0]
        for options in ((), ("--store", "chroma:vectors"))
    ]
    assert first_results[0]["id"] == first_results[1]["id"] == "T:2"
    assert first_results[0]["score"] == pytest.approx(first_results[1]["score"], abs=1e-5)


def test_missing_and_damaged_indexes_are_reported(eq) -> None:
    assert "there are no indexes in indexes" in eq("phenotypes", "index", "list", "--index-dir", "indexes").stderr
    eq(*BUILD, "--model-name", "hash")
    next(Path("indexes").glob("*/meta.json")).write_text("{")
    listing = eq("phenotypes", "index", "list", "--index-dir", "indexes")
    assert listing.exit_code == 0
    assert "is damaged" in listing.stderr


def _assert_error(result: Result, expected_message: str, expected_hint: str) -> None:
    assert result.exit_code == 2, result.output
    assert expected_message in result.stderr
    assert expected_hint in result.stderr
