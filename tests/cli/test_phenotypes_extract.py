"""``eq phenotypes extract``: a note in, terms with assertions and evidence out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from equipoise.domains.phenotypes.extraction.candidates import ClinicalText, SelectionSettings
from equipoise.domains.phenotypes.extraction.extractor import TermExtractor
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import load_ontology
from toy_ontology import obo

EXTRACT = ("phenotypes", "extract")
TOY = ("--ontology", "toy.obo", "--model", "tfidf:")
NOTE = "He has fits, but no fever. His mother has a cough.\nMonitor for short stature."


@pytest.fixture(autouse=True)
def note(folder: Path) -> Path:
    """A note, and the small ontology beside it."""
    obo(folder / "toy.obo")
    path = folder / "note.txt"
    path.write_text(NOTE, encoding="utf-8")
    return path


def data(result: Result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_terms_come_with_assertion_evidence_and_cues(eq) -> None:
    found = data(eq(*EXTRACT, "note.txt", *TOY, "--json"))
    assert {row["label"]: row["assertion"] for row in found["terms"]} == {
        "Seizure": "affirmed",
        "Fever": "negated",
        "Cough": "family_history",
        "Short stature": "hypothetical",
    }
    for row in found["terms"]:
        for span in row["evidence"]:
            assert NOTE[span["start_char"] : span["end_char"]] == span["text"]
    (fever,) = (row for row in found["terms"] if row["label"] == "Fever")
    assert fever["evidence"][0]["cues"] == ["no"]
    assert (found["language"], found["ontology"]["release"]) == ("en", "2025-01-01")


def test_the_command_finds_what_the_library_finds(eq) -> None:
    found = data(eq(*EXTRACT, "note.txt", *TOY, "--all-terms", "--chunk-threshold", "0.2", "--json"))
    ontology = load_ontology("toy.obo")
    stored = TermExtractor(ontology, TermRetriever("tfidf:", ontology)).candidates([ClinicalText("note.txt", NOTE)])
    (extracted,) = predict(stored, num_results=stored.depth, chunk_threshold=0.2, top_term_only=False).found
    assert [(row["id"], row["assertion"]) for row in found["terms"]] == [
        (each.term, each.assertion) for each in extracted
    ]


def test_the_table_names_the_assertion_and_the_words(eq) -> None:
    shown = eq(*EXTRACT, "note.txt", *TOY)
    (line,) = (line for line in shown.stdout.splitlines() if "Fever" in line)
    assert "negated" in line
    assert f"{NOTE.index('fever')}-{NOTE.index('fever') + len('fever')}" in line
    assert "4 terms in" in shown.stderr
    assert "toy, release 2025-01-01" in shown.stderr


def test_without_assertions_everything_is_affirmed(eq) -> None:
    found = data(eq(*EXTRACT, "note.txt", *TOY, "--no-assertions", "--json"))
    assert {row["assertion"] for row in found["terms"]} == {"affirmed"}


def test_standard_input_is_read_behind_a_dash(eq) -> None:
    found = data(eq(*EXTRACT, "-", *TOY, "--json", input="Kein Fever und keine Convulsions."))
    assert {row["label"]: row["assertion"] for row in found["terms"]} == {
        "Fever": "negated",
        "Seizure": "negated",
    }
    assert found["language"] == "de"


def test_a_note_of_which_nothing_is_known_says_how_near_it_came(eq, note: Path) -> None:
    note.write_text("Zebra crossing", encoding="utf-8")
    shown = eq(*EXTRACT, "note.txt", *TOY, "--no-dictionary", "--chunkers", "sentence")
    assert shown.exit_code == 0
    assert "the best score is 0" in shown.stderr
    assert "--chunk-threshold is 0.4" in shown.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("absent.txt", *TOY), 2, "absent.txt"),
        (("empty.txt", *TOY), 2, "empty.txt is empty"),
        (("note.txt", *TOY, "--chunkers", "sentense"), 2, "did you mean sentence?"),
        (("note.txt", *TOY, "--chunkers", "semantic"), 2, "needs a dense model"),
        (("note.txt", *TOY, "--language", "fr"), 2, "there are rules for en and de"),
        (("note.txt", *TOY, "--top-term"), 2, "--top-term"),
    ],
)
def test_bad_input_is_told(eq, folder: Path, words: tuple[str, ...], code: int, said: str) -> None:
    (folder / "empty.txt").write_text(" \n", encoding="utf-8")
    result = eq(*EXTRACT, *words)
    assert result.exit_code == code
    assert said in result.stderr


def test_semantic_windows_take_the_model_that_embeds(eq) -> None:
    words = ("--ontology", "toy.obo", "--model", "hash", "--chunkers", "sentence,semantic", "--no-dictionary")
    found = data(eq(*EXTRACT, "note.txt", *words, "--chunk-threshold", "0", "--json"))
    assert found["chunkers"][1].startswith("semantic(words=4")
    assert found["terms"]


def test_bytes_that_are_not_utf_8_are_told_as_such_on_standard_input(eq) -> None:
    result = eq(*EXTRACT, "-", *TOY, input="Fieber und Kälte".encode("latin-1"))
    assert result.exit_code == 2
    assert "standard input" in result.stderr
    assert "UTF-8" in result.stderr
    assert "surrogate" not in result.stderr


def test_the_model_may_be_named_as_the_query_names_it(eq) -> None:
    found = data(eq(*EXTRACT, "note.txt", "--ontology", "toy.obo", "--model-name", "tfidf:", "--json"))
    assert found["model"] == "tfidf"


def test_the_command_and_its_evaluation_have_the_same_defaults(eq) -> None:
    used = data(eq(*EXTRACT, "note.txt", *TOY, "--json"))["settings"]
    assert used == {**SelectionSettings().record(), "num_results": used["num_results"]}


def test_the_dictionary_alone_needs_no_model(eq) -> None:
    found = data(eq(*EXTRACT, "note.txt", "--ontology", "toy.obo", "--model", "dict:", "--json"))
    assert {row["label"] for row in found["terms"]} == {"Seizure", "Fever", "Cough", "Short stature"}
    assert found["chunkers"] == ["dictionary"]
    assert all(0 < row["score"] < 1 for row in found["terms"])


def test_a_branch_limits_the_terms(eq) -> None:
    words = (*EXTRACT, "note.txt", "--ontology", "toy.obo", "--model", "dict:", "--json")
    everything = {row["id"] for row in data(eq(*words))["terms"]}
    branch = data(eq(*words, "--branch", load_ontology("toy.obo").ids[0]))
    assert {row["id"] for row in branch["terms"]} <= everything
    assert eq(*words, "--branch", "HP:9999999").exit_code == 2


def test_a_folder_of_notes_gives_one_table_and_a_phenopacket_per_note(eq, folder: Path) -> None:
    (folder / "notes" / "ward").mkdir(parents=True)
    (folder / "notes" / "a.txt").write_text(NOTE)
    (folder / "notes" / "ward" / "b.txt").write_text("She has a fever.")
    alone = data(eq(*EXTRACT, "note.txt", *TOY, "--json"))
    both = data(eq(*EXTRACT, "notes", *TOY, "--json"))["documents"]
    assert [document["document"] for document in both] == ["a", "ward/b"]
    assert both[0]["terms"] == alone["terms"]
    done = eq(*EXTRACT, "notes", *TOY, "-o", "terms.csv", "--phenopackets", "packets")
    assert done.exit_code == 0, done.output
    lines = (folder / "terms.csv").read_text().splitlines()
    assert lines[0].startswith("document,term,label,assertion,score")
    assert lines[-1].startswith("ward/b,")
    packet = json.loads((folder / "packets" / "a.json").read_text())
    features = {one["type"]["label"]: one.get("excluded", False) for one in packet["phenotypicFeatures"]}
    assert features == {"Seizure": False, "Fever": True}
    assert (folder / "packets" / "ward_b.json").is_file()
    assert "E200" in eq(*EXTRACT, "packets", *TOY).stderr
