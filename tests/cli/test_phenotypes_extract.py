"""``eq phenotypes extract``: terms with assertions and evidence from a note."""

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
    """A note and a small ontology."""
    obo(folder / "toy.obo")
    path = folder / "note.txt"
    path.write_text(NOTE, encoding="utf-8")
    return path


def parse_json(result: Result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_terms_come_with_assertion_evidence_and_cues(eq) -> None:
    content = parse_json(eq(*EXTRACT, "note.txt", *TOY, "--json"))
    assert {row["label"]: row["assertion"] for row in content["terms"]} == {
        "Seizure": "affirmed",
        "Fever": "negated",
        "Cough": "family_history",
        "Short stature": "hypothetical",
    }
    for row in content["terms"]:
        for span in row["evidence"]:
            assert NOTE[span["start_char"] : span["end_char"]] == span["text"]
    (fever,) = (row for row in content["terms"] if row["label"] == "Fever")
    assert fever["evidence"][0]["cues"] == ["no"]
    assert (content["language"], content["ontology"]["release"]) == ("en", "2025-01-01")


def test_the_command_and_the_library_give_the_same_terms(eq) -> None:
    content = parse_json(eq(*EXTRACT, "note.txt", *TOY, "--all-terms", "--chunk-threshold", "0.2", "--json"))
    ontology = load_ontology("toy.obo")
    stored = TermExtractor(ontology, TermRetriever("tfidf:", ontology)).candidates([ClinicalText("note.txt", NOTE)])
    (extracted,) = predict(stored, num_results=stored.depth, chunk_threshold=0.2, top_term_only=False).found
    assert [(row["id"], row["assertion"]) for row in content["terms"]] == [
        (match.term, match.assertion) for match in extracted
    ]


def test_the_table_has_the_assertion_and_the_text_span(eq) -> None:
    result = eq(*EXTRACT, "note.txt", *TOY)
    (line,) = (line for line in result.stdout.splitlines() if "Fever" in line)
    assert "negated" in line
    assert f"{NOTE.index('fever')}-{NOTE.index('fever') + len('fever')}" in line
    assert "4 terms in" in result.stderr
    assert "toy, release 2025-01-01" in result.stderr


def test_without_assertions_everything_is_affirmed(eq) -> None:
    content = parse_json(eq(*EXTRACT, "note.txt", *TOY, "--no-assertions", "--json"))
    assert {row["assertion"] for row in content["terms"]} == {"affirmed"}


def test_a_dash_reads_standard_input(eq) -> None:
    content = parse_json(eq(*EXTRACT, "-", *TOY, "--json", input="Kein Fever und keine Convulsions."))
    assert {row["label"]: row["assertion"] for row in content["terms"]} == {
        "Fever": "negated",
        "Seizure": "negated",
    }
    assert content["language"] == "de"


def test_a_note_without_terms_reports_the_best_score(eq, note: Path) -> None:
    note.write_text("Zebra crossing", encoding="utf-8")
    result = eq(*EXTRACT, "note.txt", *TOY, "--no-dictionary", "--chunkers", "sentence")
    assert result.exit_code == 0
    assert "the best score is 0" in result.stderr
    assert "--chunk-threshold is 0.4" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "expected_text"),
    [
        (("absent.txt", *TOY), 2, "absent.txt"),
        (("empty.txt", *TOY), 2, "empty.txt is empty"),
        (("note.txt", *TOY, "--chunkers", "sentense"), 2, "did you mean sentence?"),
        (("note.txt", *TOY, "--chunkers", "semantic"), 2, "needs a dense model"),
        (("note.txt", *TOY, "--language", "fr"), 2, "there are rules for en and de"),
        (("note.txt", *TOY, "--top-term"), 2, "--top-term"),
    ],
)
def test_bad_input_is_an_error(eq, folder: Path, arguments: tuple[str, ...], code: int, expected_text: str) -> None:
    (folder / "empty.txt").write_text(" \n", encoding="utf-8")
    result = eq(*EXTRACT, *arguments)
    assert result.exit_code == code
    assert expected_text in result.stderr


def test_semantic_chunks_use_the_embedding_model(eq) -> None:
    arguments = ("--ontology", "toy.obo", "--model", "hash", "--chunkers", "sentence,semantic", "--no-dictionary")
    content = parse_json(eq(*EXTRACT, "note.txt", *arguments, "--chunk-threshold", "0", "--json"))
    assert content["chunkers"][1].startswith("semantic(words=4")
    assert content["terms"]


def test_invalid_utf_8_on_standard_input_is_an_error(eq) -> None:
    result = eq(*EXTRACT, "-", *TOY, input="Fieber und Kälte".encode("latin-1"))
    assert result.exit_code == 2
    assert "standard input" in result.stderr
    assert "UTF-8" in result.stderr
    assert "surrogate" not in result.stderr


def test_the_option_model_name_is_an_alias(eq) -> None:
    content = parse_json(eq(*EXTRACT, "note.txt", "--ontology", "toy.obo", "--model-name", "tfidf:", "--json"))
    assert content["model"] == "tfidf"


def test_the_command_and_its_evaluation_have_the_same_defaults(eq) -> None:
    settings = parse_json(eq(*EXTRACT, "note.txt", *TOY, "--json"))["settings"]
    assert settings == {**SelectionSettings().record(), "num_results": settings["num_results"]}


def test_the_dictionary_alone_needs_no_model(eq) -> None:
    content = parse_json(eq(*EXTRACT, "note.txt", "--ontology", "toy.obo", "--model", "dict:", "--json"))
    assert {row["label"] for row in content["terms"]} == {"Seizure", "Fever", "Cough", "Short stature"}
    assert content["chunkers"] == ["dictionary"]
    assert all(0 < row["score"] < 1 for row in content["terms"])


def test_a_branch_limits_the_terms(eq) -> None:
    arguments = (*EXTRACT, "note.txt", "--ontology", "toy.obo", "--model", "dict:", "--json")
    everything = {row["id"] for row in parse_json(eq(*arguments))["terms"]}
    branch = parse_json(eq(*arguments, "--branch", load_ontology("toy.obo").ids[0]))
    assert {row["id"] for row in branch["terms"]} <= everything
    assert eq(*arguments, "--branch", "HP:9999999").exit_code == 2


def test_a_folder_of_notes_gives_one_table_and_a_phenopacket_per_note(eq, folder: Path) -> None:
    (folder / "notes" / "ward").mkdir(parents=True)
    (folder / "notes" / "a.txt").write_text(NOTE)
    (folder / "notes" / "ward" / "b.txt").write_text("She has a fever.")
    single = parse_json(eq(*EXTRACT, "note.txt", *TOY, "--json"))
    documents = parse_json(eq(*EXTRACT, "notes", *TOY, "--json"))["documents"]
    assert [document["document"] for document in documents] == ["a", "ward/b"]
    assert documents[0]["terms"] == single["terms"]
    result = eq(*EXTRACT, "notes", *TOY, "-o", "terms.csv", "--phenopackets", "packets")
    assert result.exit_code == 0, result.output
    lines = (folder / "terms.csv").read_text().splitlines()
    assert lines[0].startswith("document,term,label,assertion,score")
    assert lines[-1].startswith("ward/b,")
    packet = json.loads((folder / "packets" / "a.json").read_text())
    features = {feature["type"]["label"]: feature.get("excluded", False) for feature in packet["phenotypicFeatures"]}
    assert features == {"Seizure": False, "Fever": True}
    assert (folder / "packets" / "ward_b.json").is_file()
    assert "E200" in eq(*EXTRACT, "packets", *TOY).stderr
