"""Predictions from candidates, compared with a plain reference implementation."""

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
    """Random chunks of two documents with random terms; scores on a coarse grid, so that some are tied."""
    count, depth = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    starts_and_lengths = draw(
        st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), min_size=count, max_size=count)
    )
    documents = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = -np.sort(-rng.integers(0, 6, (count, depth)) / 5, axis=1)
    terms = np.array([rng.permutation(4)[:depth] for _ in range(count)], dtype=np.int64).reshape(count, depth)
    return Candidates(
        (ClinicalText("a", TEXT, "en"), ClinicalText("b", TEXT[::-1], "en")),
        np.array(documents, dtype=np.int64),
        np.array([start for start, _ in starts_and_lengths], dtype=np.int64),
        np.array([min(start + length, len(TEXT)) for start, length in starts_and_lengths], dtype=np.int64),
        terms,
        scores,
        TERMS,
        ("given",),
        "toy",
        "",
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
    )


def reference_predictions(
    candidates: Candidates, num_results: int, threshold: float, confidence: float, top_term_only: bool
) -> dict:
    """The same predictions, one candidate at a time."""
    chunks = []
    for row, chunk in enumerate(candidates.chunks):
        ranked = list(zip(candidates.terms[row].tolist(), candidates.scores[row].tolist(), strict=True))
        ranked = [entry for entry in ranked[: 1 if top_term_only else num_results] if entry[1] >= threshold]
        if ranked:
            chunks.append((chunk, ranked))
    chunks.sort(key=lambda entry: (-entry[1][0][1], entry[0].start - entry[0].end, entry[0].start))
    kept: list = []
    for chunk, ranked in chunks:
        kept_chunks = [other for other, _ in kept if other.document == chunk.document]
        if all(chunk.end <= other.start or other.end <= chunk.start for other in kept_chunks):
            kept.append((chunk, ranked))
    evidence = defaultdict(list)
    for chunk, ranked in kept:
        document = candidates.documents[chunk.document]
        (assertion,) = detect_assertions(document.text, [(chunk.start, chunk.end)], "en")
        for term, score in ranked:
            evidence[document.id, TERMS[term], assertion].append((score, (chunk.start, chunk.end)))
    means = {key: np.mean([score for score, _ in entry]) for key, entry in evidence.items()}
    return {
        key: (pytest.approx(means[key]), tuple(sorted(span for _, span in entry)))
        for key, entry in evidence.items()
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
def test_predictions_equal_the_reference(
    candidates: Candidates, num_results: int, threshold: float, confidence: float, top_term_only: bool
) -> None:
    num_results = min(num_results, candidates.depth)
    predicted = predict(
        candidates,
        num_results=num_results,
        chunk_threshold=threshold,
        min_confidence=confidence,
        top_term_only=top_term_only,
    )
    result = {
        (name, term.term, term.assertion): (term.score, term.spans)
        for name, extracted in predicted
        for term in extracted
    }
    assert result == reference_predictions(candidates, num_results, threshold, confidence, top_term_only)
    for _, extracted in predicted:
        assert [term.score for term in extracted] == sorted((term.score for term in extracted), reverse=True)


@settings(max_examples=100, deadline=None)
@given(drawn_candidates(), st.sampled_from([0.2, 0.4, 0.6, 0.8]))
def test_a_higher_confidence_gives_a_subset(candidates: Candidates, confidence: float) -> None:
    def entries(min_confidence: float) -> set[tuple[str, tuple[str, str]]]:
        predicted = predict(
            candidates, num_results=candidates.depth, chunk_threshold=0.0, min_confidence=min_confidence
        )
        return {
            (name, entry) for name, entries_of_document in predicted.sets().items() for entry in entries_of_document
        }

    assert entries(confidence) <= entries(0.0)


@settings(max_examples=100, deadline=None)
@given(drawn_candidates())
def test_without_assertions_every_term_is_affirmed_once(candidates: Candidates) -> None:
    predicted = predict(candidates, num_results=candidates.depth, chunk_threshold=0.0, assertions=False).sets()
    with_assertions = predict(candidates, num_results=candidates.depth, chunk_threshold=0.0).sets()
    for name, entries in predicted.items():
        assert {assertion for _, assertion in entries} <= {"affirmed"}
        assert sorted(term for term, _ in entries) == sorted({term for term, _ in with_assertions[name]})


@settings(max_examples=50, deadline=None)
@given(drawn_candidates())
def test_candidates_are_unchanged_by_saving(candidates: Candidates) -> None:
    with TemporaryDirectory() as folder:
        candidates.save(Path(folder, "candidates.npz"))
        loaded = Candidates.load(Path(folder, "candidates.npz"))
    assert (loaded.documents, loaded.chunks, loaded.term_ids) == (
        candidates.documents,
        candidates.chunks,
        candidates.term_ids,
    )
    assert np.array_equal(loaded.terms, candidates.terms)
    assert np.array_equal(loaded.scores, candidates.scores)
    assert (loaded.chunkers, loaded.system) == (candidates.chunkers, candidates.system)


def test_candidates_are_stored_and_read(retriever: TermRetriever, tmp_path: Path) -> None:
    candidates = retrieve_candidates({"ä": "Kein Fieber", "b": ""}, retriever, num_results=3)
    candidates.save(tmp_path / "candidates.npz")
    loaded = Candidates.load(tmp_path / "candidates.npz")
    assert predict(loaded, num_results=3).found == predict(candidates, num_results=3).found
    with open(tmp_path / "other.npz", "wb") as stream:
        np.savez(stream, kind=np.array("sets"))
    with pytest.raises(StoreError):
        Candidates.load(tmp_path / "other.npz")


def test_a_note_is_read_with_its_assertions(retriever: TermRetriever) -> None:
    note = "He has fits and short stature, but no fever. His mother has a cough."
    (extracted,) = predict(retrieve_candidates({"note": note}, retriever, num_results=3), num_results=3).found
    assert {(term.term, str(term.assertion)) for term in extracted} >= {
        ("T:2", "affirmed"),
        ("T:4", "affirmed"),
        ("T:3", "negated"),
        ("T:6", "family_history"),
    }
    fever = next(term for term in extracted if term.term == "T:3")
    assert [note[start:end] for start, end in fever.spans] == ["fever"]


def test_the_best_of_overlapping_phrases_is_the_evidence(retriever: TermRetriever) -> None:
    note = "short stature since birth"
    candidates = retrieve_candidates({"note": note}, retriever, chunkers=[PhraseSplitter(3)], num_results=1)
    (extracted,) = predict(candidates, num_results=1, chunk_threshold=0.9).found
    assert [(term.term, term.spans) for term in extracted] == [("T:4", ((0, 13),))]


def test_all_chunks_are_searched_in_one_batch_without_duplicates(retriever: TermRetriever) -> None:
    batches: list[list[str]] = []

    class LoggingRetriever(TermRetriever):
        def search(self, queries: object, k: int, progress: object = None) -> TermHits:
            batches.append(list(queries))  # type: ignore[call-overload]
            return super().search(batches[-1], k)

    retriever_with_log = LoggingRetriever("tfidf:", retriever.ontology)
    candidates = retrieve_candidates({"a": "fever. cough", "b": "cough. fever"}, retriever_with_log, num_results=2)
    assert batches == [["fever", "cough"]]
    assert [chunk.text for chunk in candidates.chunks] == ["fever", "cough", "cough", "fever"]
    assert np.array_equal(candidates.scores[0], candidates.scores[3])


def test_batched_candidates_equal_those_of_single_chunks(retriever: TermRetriever) -> None:
    candidates = retrieve_candidates({"a": "fits, coughing; small size", "b": "pyrexia"}, retriever, num_results=4)
    for row, chunk in enumerate(candidates.chunks):
        single = retriever.search([chunk.text], 4)
        assert [candidates.term_ids[term] for term in candidates.terms[row]] == [
            retriever.ontology.ids[term] for term in single.terms[0]
        ]
        np.testing.assert_allclose(candidates.scores[row], single.scores[0], atol=5.1e-7)


def test_a_sum_of_cosines_is_one_for_the_label(retriever: TermRetriever) -> None:
    fusion = TermRetriever("sum:hash+tfidf:", retriever.ontology)
    assert retrieve_candidates({"a": "Fever"}, fusion, num_results=1).scores[0, 0] == pytest.approx(1.0)


def test_given_spans_can_be_searched_instead_of_chunks(retriever: TermRetriever) -> None:
    documents = [ClinicalText("a", "fever or cough")]
    chunks = retrieve_candidates(documents, retriever, num_results=1).chunks[1:]
    extractor = TermExtractor(retriever.ontology, retriever, dictionary=False)
    candidates = extractor.candidates_for_spans(documents, chunks, num_results=1)
    assert [chunk.text for chunk in candidates.chunks] == ["cough"]
    assert candidates.term_ids == ("T:6",)


def test_documents_without_chunks_have_no_predictions(retriever: TermRetriever) -> None:
    predicted = predict(retrieve_candidates({"a": "", "b": "..."}, retriever, num_results=2), num_results=2)
    assert predicted.sets() == {"a": [], "b": []}


def test_more_results_than_were_stored_are_an_error(retriever: TermRetriever) -> None:
    candidates = retrieve_candidates({"a": "fever"}, retriever, num_results=2)
    with pytest.raises(ParameterError, match="2 candidates"):
        predict(candidates, num_results=3)
    with pytest.raises(ParameterError, match="NaN"):
        predict(candidates, num_results=2, chunk_threshold=float("nan"))


class _InexactRetriever(TermRetriever):
    """A system whose perfect matches differ from 1 by rounding errors."""

    def search(self, queries: object, k: int, progress: object = None) -> TermHits:
        hits = super().search(queries, k)  # type: ignore[arg-type]
        rounding_errors = np.resize([-6e-16, 4e-16, -6e-8, 0.0], hits.scores.shape[0])[:, None]
        return TermHits(hits.terms, hits.scores + rounding_errors, hits.component)


def test_a_perfect_match_passes_a_threshold_of_one(retriever: TermRetriever) -> None:
    text = "Fever. Cough. Seizure. Short stature."
    candidates = retrieve_candidates({"a": text}, _InexactRetriever("tfidf:", retriever.ontology), num_results=3)
    assert candidates.scores.max() == 1.0
    (terms,) = predict(candidates, num_results=1, chunk_threshold=1.0, min_confidence=1.0).found
    assert len(terms) == 4


def test_a_mean_of_equal_scores_is_that_score() -> None:
    count = 3
    positions = np.arange(count, dtype=np.int64)
    candidates = Candidates(
        (ClinicalText("a", "x" * count, "en"),),
        np.zeros(count, dtype=np.int64),
        positions,
        positions + 1,
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
    ((entry,),) = predict(candidates, num_results=1, chunk_threshold=0.7, min_confidence=0.7).found
    assert entry.score == 0.7
