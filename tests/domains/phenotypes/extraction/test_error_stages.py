"""Every gold term is found or lost at exactly one stage."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.extraction.candidates import Candidates
from equipoise.domains.phenotypes.extraction.predict import LossStage, count_by_stage, predict, trace_gold_terms
from equipoise.domains.phenotypes.extraction.splitters import PhraseSplitter
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.errors import PairingError
from toy_ontology import retrieve_candidates


@dataclass(frozen=True)
class GoldTerm:
    """A gold term."""

    term: str
    assertion: str = "affirmed"
    spans: tuple[tuple[int, int], ...] = ()


def stage(candidates: Candidates, gold: GoldTerm, **options: object) -> LossStage:
    (trace,) = trace_gold_terms(candidates, predict(candidates, **options), {"a": [gold]})  # type: ignore[arg-type]
    return trace.stage


NOTE = "fits and a cold, no fever"


@pytest.fixture
def candidates(retriever: TermRetriever) -> Candidates:
    return retrieve_candidates({"a": NOTE}, retriever, num_results=3)


def test_a_predicted_term_is_found(candidates: Candidates) -> None:
    options = {"num_results": 3, "chunk_threshold": 0.5}
    assert stage(candidates, GoldTerm("T:2"), **options) is LossStage.FOUND
    assert stage(candidates, GoldTerm("T:3", "negated"), **options) is LossStage.FOUND
    assert stage(candidates, GoldTerm("T:3", "affirmed"), **options) is LossStage.ASSERTION


def test_gold_assertions_are_ignored_without_predicted_assertions(candidates: Candidates) -> None:
    assert stage(candidates, GoldTerm("T:3", "negated"), num_results=3, assertions=False) is LossStage.FOUND


def test_a_term_without_a_candidate_is_lost_in_retrieval_or_chunking(candidates: Candidates) -> None:
    options = {"num_results": 3}
    assert stage(candidates, GoldTerm("T:99"), **options) is LossStage.RETRIEVAL
    assert stage(candidates, GoldTerm("T:99", spans=((0, 4),)), **options) is LossStage.RETRIEVAL
    assert stage(candidates, GoldTerm("T:99", spans=((0, 15),)), **options) is LossStage.CHUNKING


def test_every_setting_that_loses_a_term_has_its_stage(retriever: TermRetriever, candidates: Candidates) -> None:
    second = GoldTerm(candidates.term_ids[candidates.terms[0, 1]])
    assert second.term not in {candidates.term_ids[term] for term in candidates.terms[:, 0]}
    low_threshold = {"chunk_threshold": -1.0}
    assert stage(candidates, second, num_results=1, **low_threshold) is LossStage.NUM_RESULTS
    assert stage(candidates, second, num_results=3, top_term_only=True, **low_threshold) is LossStage.TOP_TERM
    assert stage(candidates, GoldTerm("T:2"), num_results=3, chunk_threshold=1.1) is LossStage.THRESHOLD
    assert (
        stage(candidates, GoldTerm("T:2"), num_results=3, min_confidence=1.1, chunk_threshold=0.5)
        is LossStage.CONFIDENCE
    )
    overlapping = retrieve_candidates({"a": "febrile seizure"}, retriever, chunkers=[PhraseSplitter(2)], num_results=1)
    assert stage(overlapping, GoldTerm("T:2"), num_results=1, chunk_threshold=0.5) is LossStage.OVERLAP


def test_the_trace_has_the_best_candidate(candidates: Candidates) -> None:
    (trace,) = trace_gold_terms(candidates, predict(candidates, num_results=3), {"a": [GoldTerm("T:2")]})
    assert (trace.rank, trace.chunk) == (1, (0, 4))
    assert trace.score == candidates.scores[0, 0]


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(st.sampled_from(["fits", "no fever", "cough", "small size", "pyrexia", "x"]), max_size=5),
    num_results=st.integers(1, 4),
    threshold=st.sampled_from([0.0, 0.5, 0.9]),
    confidence=st.sampled_from([0.0, 0.6, 0.95]),
    top=st.booleans(),
)
def test_found_terms_are_those_of_the_predicted_sets(
    toy_retriever: TermRetriever,
    words: list[str],
    num_results: int,
    threshold: float,
    confidence: float,
    top: bool,
) -> None:
    stored = retrieve_candidates({"a": ", ".join(words)}, toy_retriever, num_results=4)
    predicted = predict(
        stored,
        num_results=num_results,
        chunk_threshold=threshold,
        min_confidence=confidence,
        top_term_only=top,
    )
    gold = [GoldTerm(term, assertion) for term in ("T:2", "T:3", "T:6") for assertion in ("affirmed", "negated")]
    traced = trace_gold_terms(stored, predicted, {"a": gold})
    predicted_terms = set(predicted.sets()["a"])
    for trace in traced:
        assert (trace.stage is LossStage.FOUND) == ((trace.term, trace.assertion) in predicted_terms)
        term_ids = {term for term, _ in predicted_terms}
        assert (trace.stage is LossStage.ASSERTION) == (
            trace.term in term_ids and (trace.term, trace.assertion) not in predicted_terms
        )
    assert sum(count_by_stage(traced).values()) == len(gold)


def test_gold_of_other_documents_is_an_error(candidates: Candidates) -> None:
    with pytest.raises(PairingError, match="other"):
        trace_gold_terms(candidates, predict(candidates, num_results=3), {"other": []})
