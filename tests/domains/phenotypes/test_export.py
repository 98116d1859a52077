"""Extraction from Python and export: folders of notes, rows, and phenopackets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from equipoise import phenotypes
from equipoise.domains.phenotypes.assertion.rules import Assertion
from equipoise.domains.phenotypes.export import (
    read_notes,
    term_rows,
    to_phenopacket,
    write_phenopackets,
)
from equipoise.domains.phenotypes.extraction.candidates import ClinicalText
from equipoise.domains.phenotypes.extraction.extractor import extract
from equipoise.domains.phenotypes.extraction.predict import ExtractedTerm
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import DuplicateError, InputError
from toy_ontology import obo

NOTES = {"a": "Seizure since birth. No cough.", "b": "Her mother had a seizure."}
CREATED = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture
def ontology(tmp_path: Path) -> Ontology:
    return phenotypes.load_ontology(obo(tmp_path / "toy.obo"))


def extracted_term(name: str, assertion: Assertion) -> ExtractedTerm:
    return ExtractedTerm(name, assertion, 0.9, ((0, 7),))


def test_a_folder_of_notes_gives_rows_with_the_evidence(ontology: Ontology, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "ward").mkdir(parents=True)
    (folder / "a.txt").write_text(NOTES["a"])
    (folder / "ward" / "b.txt").write_text(NOTES["b"])
    documents = read_notes(folder)
    assert [document.id for document in documents] == ["a", "ward/b"]
    rows = term_rows(documents, extract(documents, "tfidf:", ontology.source), ontology)
    for row in rows:
        text = next(document.text for document in documents if document.id == row["document"])
        assert text[row["start"] : row["end"]] == row["text"]
        assert row["label"] == ontology.labels[ontology.index_of(row["term"])]


def test_empty_folders_and_notes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_notes(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(InputError):
        read_notes(tmp_path)


def test_negated_terms_are_excluded_features_and_other_assertions_are_left_out(ontology: Ontology) -> None:
    terms = [
        extracted_term("T:2", Assertion.AFFIRMED),
        extracted_term("T:4", Assertion.NEGATED),
        extracted_term("T:3", Assertion.UNCERTAIN),
        extracted_term("T:5", Assertion.FAMILY_HISTORY),
    ]
    packet = to_phenopacket("note 1", terms, ontology, created=CREATED)
    assert [(feature["type"]["id"], feature.get("excluded", False)) for feature in packet["phenotypicFeatures"]] == [
        ("T:2", False),
        ("T:4", True),
    ]
    assert packet["metaData"]["created"] == "2026-11-16T12:00:00Z"
    assert packet["metaData"]["phenopacketSchemaVersion"] == "2.0"
    assert packet["metaData"]["resources"][0]["namespacePrefix"] == "T"
    assert packet["metaData"]["resources"][0]["version"] == ontology.release


@pytest.mark.parametrize("order", [1, -1])
def test_a_term_that_is_affirmed_and_negated_is_affirmed(ontology: Ontology, order: int) -> None:
    terms = [extracted_term("T:2", Assertion.AFFIRMED), extracted_term("T:2", Assertion.NEGATED)][::order]
    (feature,) = to_phenopacket("note", terms, ontology)["phenotypicFeatures"]
    assert "excluded" not in feature


def test_one_phenopacket_is_written_per_note(ontology: Ontology, tmp_path: Path) -> None:
    documents = [ClinicalText("ward/a", NOTES["a"]), ClinicalText("b", NOTES["b"])]
    predictions = extract(documents, "tfidf:", ontology.source)
    files = write_phenopackets(tmp_path / "packets", predictions, ontology, created=CREATED)
    assert [file.name for file in files] == ["ward_a.json", "b.json"]
    assert json.loads(files[0].read_text())["id"] == "ward/a"
    predictions_with_equal_names = extract(
        [ClinicalText("ward/a", "x"), ClinicalText("ward_a", "y")], "tfidf:", ontology.source
    )
    with pytest.raises(DuplicateError):
        write_phenopackets(tmp_path / "others", predictions_with_equal_names, ontology)
