"""From candidates to predictions, against a slow and obvious version."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.assertion.detect import detect_assertions
from equipoise.domains.phenotypes.extraction.candidates import (
    Candidates,
    ClinicalText,
)
from equipoise.domains.phenotypes.extraction.extractor import TermExtractor
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.extraction.splitters import PhraseSplitter
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever
from equipoise.errors import ParameterError, StoreError
from toy_ontology import retrieve_candidates

TEXT = "no fever but cough and his mother has fits. fever? possible cough"
TERMS = ("T:1", "T:2", "T:3", "T:4")


@st.composite
def drawn_candidates(draw: st.DrawFn) -> Candidates:
    """Random chunks of two documents, with random terms; scores on a coarse grid, so that some are equal."""
    count, depth = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    borders = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), min_size=count, max_size=count))
    documents = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = -np.sort(-rng.integers(0, 6, (count, depth)) / 5, axis=1)
    terms = np.array([rng.permutation(4)[:depth] for _ in range(count)], dtype=np.int64).reshape(count, depth)
    return Candidates(
        (ClinicalText("a", TEXT, "en"), ClinicalText("b", TEXT[::-1], "en")),
        np.array(documents, dtype=np.int64),
        np.array([start for start, _ in borders], dtype=np.int64),
        np.array([min(start + length, len(TEXT)) for start, length in borders], dtype=np.int64),
        terms,
        scores,
        TERMS,
        ("given",),
        "toy",
        "",
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
    )


def slowly(found: Candidates, num_results: int, threshold: float, confidence: float, top: bool) -> dict:
    """The same, one candidate after the other."""
    chunks = []
    for row, chunk in enumerate(found.chunks):
        ranked = list(zip(found.terms[row].tolist(), found.scores[row].tolist(), strict=True))
        ranked = [each for each in ranked[: 1 if top else num_results] if each[1] >= threshold]
        if ranked:
            chunks.append((chunk, ranked))
    chunks.sort(key=lambda each: (-each[1][0][1], each[0].start - each[0].end, each[0].start))
    kept: list = []
    for chunk, ranked in chunks:
        others = [other for other, _ in kept if other.document == chunk.document]
        if all(chunk.end <= other.start or other.end <= chunk.start for other in others):
            kept.append((chunk, ranked))
    evidence = defaultdict(list)
    for chunk, ranked in kept:
        document = found.documents[chunk.document]
        (asserted,) = detect_assertions(document.text, [(chunk.start, chunk.end)], "en")
        for term, score in ranked:
            evidence[document.id, TERMS[term], asserted].append((score, (chunk.start, chunk.end)))
    means = {key: np.mean([score for score, _ in each]) for key, each in evidence.items()}
    return {
        key: (pytest.approx(means[key]), tuple(sorted(span for _, span in each)))
        for key, each in evidence.items()
        if means[key] >= confidence - 1e-12
    }


@settings(max_examples=150, deadline=None)
@given(
    drawn_candidates(),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3, 0.5]),
    st.sampled_from([0.0, 0.45, 0.75]),
    st.booleans(),
)
def test_predictions_are_those_of_the_slow_version(
    found: Candidates, num_results: int, threshold: float, confidence: float, top: bool
) -> None:
    num_results = min(num_results, found.depth)
    predicted = predict(
        found,
        num_results=num_results,
        chunk_threshold=threshold,
        min_confidence=confidence,
        top_term_only=top,
    )
    ours = {
        (name, each.term, each.assertion): (each.score, each.spans)
        for name, extracted in predicted
        for each in extracted
    }
    assert ours == slowly(found, num_results, threshold, confidence, top)
    for _, extracted in predicted:
        assert [each.score for each in extracted] == sorted((each.score for each in extracted), reverse=True)


@settings(max_examples=100, deadline=None)
@given(drawn_candidates(), st.sampled_from([0.2, 0.4, 0.6, 0.8]))
def test_stricter_confidence_only_takes_away(found: Candidates, confidence: float) -> None:
    def entries(least: float) -> set[tuple[str, tuple[str, str]]]:
        predicted = predict(found, num_results=found.depth, chunk_threshold=0.0, min_confidence=least)
        return {(name, entry) for name, held in predicted.sets().items() for entry in held}

    assert entries(confidence) <= entries(0.0)


@settings(max_examples=100, deadline=None)
@given(drawn_candidates())
def test_without_assertions_everything_is_affirmed_once(found: Candidates) -> None:
    predicted = predict(found, num_results=found.depth, chunk_threshold=0.0, assertions=False).sets()
    asserted = predict(found, num_results=found.depth, chunk_threshold=0.0).sets()
    for name, held in predicted.items():
        assert {assertion for _, assertion in held} <= {"affirmed"}
        assert sorted(term for term, _ in held) == sorted({term for term, _ in asserted[name]})


@settings(max_examples=50, deadline=None)
@given(drawn_candidates())
def test_candidates_come_back_from_a_file_as_they_were(found: Candidates) -> None:
    with TemporaryDirectory() as folder:
        found.save(Path(folder, "found.npz"))
        again = Candidates.load(Path(folder, "found.npz"))
    assert (again.documents, again.chunks, again.term_ids) == (found.documents, found.chunks, found.term_ids)
    assert np.array_equal(again.terms, found.terms)
    assert np.array_equal(again.scores, found.scores)
    assert (again.chunkers, again.system) == (found.chunkers, found.system)


def test_candidates_are_stored_and_read(retriever: TermRetriever, tmp_path: Path) -> None:
    found = retrieve_candidates({"ä": "Kein Fieber", "b": ""}, retriever, num_results=3)
    found.save(tmp_path / "found.npz")
    again = Candidates.load(tmp_path / "found.npz")
    assert predict(again, num_results=3).found == predict(found, num_results=3).found
    with open(tmp_path / "other.npz", "wb") as stream:
        np.savez(stream, kind=np.array("sets"))
    with pytest.raises(StoreError):
        Candidates.load(tmp_path / "other.npz")


def test_a_note_is_read_with_its_assertions(retriever: TermRetriever) -> None:
    note = "He has fits and short stature, but no fever. His mother has a cough."
    (extracted,) = predict(retrieve_candidates({"note": note}, retriever, num_results=3), num_results=3).found
    assert {(each.term, str(each.assertion)) for each in extracted} >= {
        ("T:2", "affirmed"),
        ("T:4", "affirmed"),
        ("T:3", "negated"),
        ("T:6", "family_history"),
    }
    fever = next(each for each in extracted if each.term == "T:3")
    assert [note[start:end] for start, end in fever.spans] == ["fever"]


def test_of_overlapping_phrases_the_best_is_evidence(retriever: TermRetriever) -> None:
    note = "short stature since birth"
    found = retrieve_candidates({"note": note}, retriever, chunkers=[PhraseSplitter(3)], num_results=1)
    (extracted,) = predict(found, num_results=1, chunk_threshold=0.9).found
    assert [(each.term, each.spans) for each in extracted] == [("T:4", ((0, 13),))]


def test_all_chunks_are_searched_at_once_and_equal_texts_together(retriever: TermRetriever) -> None:
    asked: list[list[str]] = []

    class Watched(TermRetriever):
        def search(self, queries: object, k: int, progress: object = None) -> TermHits:
            asked.append(list(queries))  # type: ignore[call-overload]
            return super().search(asked[-1], k)

    watched = Watched("tfidf:", retriever.ontology)
    found = retrieve_candidates({"a": "fever. cough", "b": "cough. fever"}, watched, num_results=2)
    assert asked == [["fever", "cough"]]
    assert [chunk.text for chunk in found.chunks] == ["fever", "cough", "cough", "fever"]
    assert np.array_equal(found.scores[0], found.scores[3])


def test_batched_candidates_equal_those_of_each_chunk_alone(retriever: TermRetriever) -> None:
    found = retrieve_candidates({"a": "fits, coughing; small size", "b": "pyrexia"}, retriever, num_results=4)
    for row, chunk in enumerate(found.chunks):
        alone = retriever.search([chunk.text], 4)
        assert [found.term_ids[term] for term in found.terms[row]] == [
            retriever.ontology.ids[term] for term in alone.terms[0]
        ]
        np.testing.assert_allclose(found.scores[row], alone.scores[0], atol=5.1e-7)


def test_a_sum_of_cosines_scores_one_for_the_label_itself(retriever: TermRetriever) -> None:
    both = TermRetriever("sum:hash+tfidf:", retriever.ontology)
    assert retrieve_candidates({"a": "Fever"}, both, num_results=1).scores[0, 0] == pytest.approx(1.0)


def test_marked_spans_can_be_searched_instead_of_chunks(retriever: TermRetriever) -> None:
    documents = [ClinicalText("a", "fever or cough")]
    chunks = retrieve_candidates(documents, retriever, num_results=1).chunks[1:]
    extractor = TermExtractor(retriever.ontology, retriever, dictionary=False)
    found = extractor.candidates_for_spans(documents, chunks, num_results=1)
    assert [chunk.text for chunk in found.chunks] == ["cough"]
    assert found.term_ids == ("T:6",)


def test_documents_without_chunks_hold_nothing(retriever: TermRetriever) -> None:
    predicted = predict(retrieve_candidates({"a": "", "b": "..."}, retriever, num_results=2), num_results=2)
    assert predicted.sets() == {"a": [], "b": []}


def test_more_results_than_were_stored_are_refused(retriever: TermRetriever) -> None:
    found = retrieve_candidates({"a": "fever"}, retriever, num_results=2)
    with pytest.raises(ParameterError, match="2 candidates"):
        predict(found, num_results=3)
    with pytest.raises(ParameterError, match="NaN"):
        predict(found, num_results=2, chunk_threshold=float("nan"))


class _Inexact(TermRetriever):
    """A system whose perfect matches miss 1 by what arithmetic leaves."""

    def search(self, queries: object, k: int, progress: object = None) -> TermHits:
        found = super().search(queries, k)  # type: ignore[arg-type]
        off = np.resize([-6e-16, 4e-16, -6e-8, 0.0], found.scores.shape[0])[:, None]
        return TermHits(found.terms, found.scores + off, found.component)


def test_a_perfect_match_passes_a_threshold_of_one(retriever: TermRetriever) -> None:
    text = "Fever. Cough. Seizure. Short stature."
    found = retrieve_candidates({"a": text}, _Inexact("tfidf:", retriever.ontology), num_results=3)
    assert found.scores.max() == 1.0
    (terms,) = predict(found, num_results=1, chunk_threshold=1.0, min_confidence=1.0).found
    assert len(terms) == 4


def test_a_mean_of_equal_scores_is_that_score() -> None:
    count = 3
    places = np.arange(count, dtype=np.int64)
    kept = Candidates(
        (ClinicalText("a", "x" * count, "en"),),
        np.zeros(count, dtype=np.int64),
        places,
        places + 1,
        np.zeros((count, 1), dtype=np.int64),
        np.full((count, 1), 0.7),
        ("T:1",),
        ("given",),
        "toy",
        "",
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
    )
    assert (0.7 + 0.7 + 0.7) / 3 != 0.7
    ((entry,),) = predict(kept, num_results=1, chunk_threshold=0.7, min_confidence=0.7).found
    assert entry.score == 0.7
