"""The trials of a tuning: different outcomes, thresholds that lose nothing to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.extraction.annotated_corpus import AnnotatedCorpus
from equipoise.domains.phenotypes.extraction.candidates import Candidates, ClinicalText
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.extraction.tuning import GridPoint, grid_points, trial_configurations
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import ParameterError
from toy_ontology import retrieve_candidates


@pytest.fixture(scope="module")
def found(ontology: Ontology, signs: AnnotatedCorpus) -> Candidates:
    documents = [ClinicalText(each.id, each.text) for each in signs.documents]
    return retrieve_candidates(documents, TermRetriever("tfidf:", ontology), num_results=5)


def scored(scores: list[float]) -> Candidates:
    """One document with a chunk for each score, all of the same term."""
    places = np.arange(len(scores), dtype=np.int64)
    return Candidates(
        (ClinicalText("a", "x" * (len(scores) + 1), "en"),),
        np.zeros(len(scores), dtype=np.int64),
        places,
        places + 1,
        places[:, None],
        np.array(scores)[:, None],
        term_ids=tuple(f"T:{place}" for place in places),
        chunkers=("given",),
        system="toy",
        fingerprint="",
        is_mention=np.zeros(len(scores), dtype=np.bool_),
        is_negated=np.zeros(len(scores), dtype=np.bool_),
    )


def outcomes(kept: Candidates, budget: int) -> list[str]:
    return [str(predict(kept, **each.record()).sets()) for each in trial_configurations(kept, budget)]


def test_trials_say_different_things_as_long_as_the_grid_does(found: Candidates) -> None:
    every = outcomes(found, 10_000)
    distinct = len(set(every))
    assert len(every) == len(grid_points())
    assert len(set(every[:distinct])) == distinct
    few = outcomes(found, min(12, distinct))
    assert len(set(few)) == len(few)


def test_a_model_with_few_outcomes_gets_as_many_trials_as_the_others() -> None:
    flat = trial_configurations(scored([1.0, 1.0, 1.0]), 40)
    assert len(flat) == 40
    assert trial_configurations(scored([1.0, 1.0, 1.0]), 40) == flat


def test_the_seed_decides_the_draw(found: Candidates) -> None:
    assert trial_configurations(found, 8, seed=3) == trial_configurations(found, 8, seed=3)
    assert trial_configurations(found, 8, seed=3) != trial_configurations(found, 8, seed=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12), st.sampled_from(grid_points()))
def test_no_threshold_of_the_grid_drops_the_best_chunk(millionths: list[int], point: GridPoint) -> None:
    kept = scored([each / 10**6 for each in millionths])
    chosen = point.configuration(kept)
    (terms,) = predict(kept, **chosen.record()).found
    assert f"T:{int(np.argmax(kept.scores))}" in {each.term for each in terms}
    if not point.threshold and not point.confidence:
        assert len(terms) == len(millionths)


def test_a_share_of_scores_that_many_chunks_have_is_not_that_score_alone() -> None:
    cuts = {
        replace(GridPoint(1, 0.0, 0.0), threshold=share).configuration(scored([0.2, 0.4, 0.6, *[1.0] * 20]))
        for share in (0.3, 0.6, 0.9, 1.0)
    }
    assert len(cuts) == 4


def test_a_budget_of_nothing_is_refused(found: Candidates) -> None:
    with pytest.raises(ParameterError, match="0 trials"):
        trial_configurations(found, 0)
