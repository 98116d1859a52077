"""Every gold term is found or lost at one stage, and each stage can be the one."""

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
class Marked:
    """A gold term."""

    term: str
    assertion: str = "affirmed"
    spans: tuple[tuple[int, int], ...] = ()


def stage(found: Candidates, gold: Marked, **choices: object) -> LossStage:
    (traced,) = trace_gold_terms(found, predict(found, **choices), {"a": [gold]})  # type: ignore[arg-type]
    return traced.stage


NOTE = "fits and a cold, no fever"


@pytest.fixture
def found(retriever: TermRetriever) -> Candidates:
    return retrieve_candidates({"a": NOTE}, retriever, num_results=3)


def test_what_is_predicted_is_found(found: Candidates) -> None:
    choices = {"num_results": 3, "chunk_threshold": 0.5}
    assert stage(found, Marked("T:2"), **choices) is LossStage.FOUND
    assert stage(found, Marked("T:3", "negated"), **choices) is LossStage.FOUND
    assert stage(found, Marked("T:3", "affirmed"), **choices) is LossStage.ASSERTION


def test_gold_assertions_do_not_count_where_none_are_predicted(found: Candidates) -> None:
    assert stage(found, Marked("T:3", "negated"), num_results=3, assertions=False) is LossStage.FOUND


def test_a_term_that_no_chunk_leads_to_is_lost_in_retrieval_or_before(found: Candidates) -> None:
    choices = {"num_results": 3}
    assert stage(found, Marked("T:99"), **choices) is LossStage.RETRIEVAL
    assert stage(found, Marked("T:99", spans=((0, 4),)), **choices) is LossStage.RETRIEVAL
    assert stage(found, Marked("T:99", spans=((0, 15),)), **choices) is LossStage.CHUNKING


def test_each_choice_is_named_that_loses_a_term(retriever: TermRetriever, found: Candidates) -> None:
    second = Marked(found.term_ids[found.terms[0, 1]])
    assert second.term not in {found.term_ids[term] for term in found.terms[:, 0]}
    low = {"chunk_threshold": -1.0}
    assert stage(found, second, num_results=1, **low) is LossStage.NUM_RESULTS
    assert stage(found, second, num_results=3, top_term_only=True, **low) is LossStage.TOP_TERM
    assert stage(found, Marked("T:2"), num_results=3, chunk_threshold=1.1) is LossStage.THRESHOLD
    assert stage(found, Marked("T:2"), num_results=3, min_confidence=1.1, chunk_threshold=0.5) is LossStage.CONFIDENCE
    overlapping = retrieve_candidates({"a": "febrile seizure"}, retriever, chunkers=[PhraseSplitter(2)], num_results=1)
    assert stage(overlapping, Marked("T:2"), num_results=1, chunk_threshold=0.5) is LossStage.OVERLAP


def test_the_best_candidate_is_shown(found: Candidates) -> None:
    (traced,) = trace_gold_terms(found, predict(found, num_results=3), {"a": [Marked("T:2")]})
    assert (traced.rank, traced.chunk) == (1, (0, 4))
    assert traced.score == found.scores[0, 0]


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(st.sampled_from(["fits", "no fever", "cough", "small size", "pyrexia", "x"]), max_size=5),
    num_results=st.integers(1, 4),
    threshold=st.sampled_from([0.0, 0.5, 0.9]),
    confidence=st.sampled_from([0.0, 0.6, 0.95]),
    top=st.booleans(),
)
def test_found_is_what_the_sets_hold(
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
    gold = [Marked(term, how) for term in ("T:2", "T:3", "T:6") for how in ("affirmed", "negated")]
    traced = trace_gold_terms(stored, predicted, {"a": gold})
    held = set(predicted.sets()["a"])
    for each in traced:
        assert (each.stage is LossStage.FOUND) == ((each.term, each.assertion) in held)
        other = {term for term, _ in held}
        assert (each.stage is LossStage.ASSERTION) == (each.term in other and (each.term, each.assertion) not in held)
    assert sum(count_by_stage(traced).values()) == len(gold)


def test_gold_of_other_documents_is_refused(found: Candidates) -> None:
    with pytest.raises(PairingError, match="other"):
        trace_gold_terms(found, predict(found, num_results=3), {"other": []})
