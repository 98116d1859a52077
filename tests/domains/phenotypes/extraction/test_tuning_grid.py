"""The trials of a tuning: distinct predictions, and thresholds without rounding errors."""

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
def candidates(ontology: Ontology, signs: AnnotatedCorpus) -> Candidates:
    documents = [ClinicalText(document.id, document.text) for document in signs.documents]
    return retrieve_candidates(documents, TermRetriever("tfidf:", ontology), num_results=5)


def candidates_with_scores(scores: list[float]) -> Candidates:
    """One document with one chunk per score, each with its term."""
    positions = np.arange(len(scores), dtype=np.int64)
    return Candidates(
        (ClinicalText("a", "x" * (len(scores) + 1), "en"),),
        np.zeros(len(scores), dtype=np.int64),
        positions,
        positions + 1,
        positions[:, None],
        np.array(scores)[:, None],
        term_ids=tuple(f"T:{position}" for position in positions),
        chunkers=("given",),
        system="toy",
        fingerprint="",
        is_mention=np.zeros(len(scores), dtype=np.bool_),
        is_negated=np.zeros(len(scores), dtype=np.bool_),
    )


def trial_predictions(candidates: Candidates, budget: int) -> list[str]:
    return [
        str(predict(candidates, **configuration.record()).sets())
        for configuration in trial_configurations(candidates, budget)
    ]


def test_trials_give_different_predictions_as_long_as_possible(candidates: Candidates) -> None:
    all_predictions = trial_predictions(candidates, 10_000)
    n_distinct = len(set(all_predictions))
    assert len(all_predictions) == len(grid_points())
    assert len(set(all_predictions[:n_distinct])) == n_distinct
    few_predictions = trial_predictions(candidates, min(12, n_distinct))
    assert len(set(few_predictions)) == len(few_predictions)


def test_a_model_with_few_different_predictions_gets_as_many_trials_as_the_others() -> None:
    configurations = trial_configurations(candidates_with_scores([1.0, 1.0, 1.0]), 40)
    assert len(configurations) == 40
    assert trial_configurations(candidates_with_scores([1.0, 1.0, 1.0]), 40) == configurations


def test_the_seed_determines_the_sampled_trials(candidates: Candidates) -> None:
    assert trial_configurations(candidates, 8, seed=3) == trial_configurations(candidates, 8, seed=3)
    assert trial_configurations(candidates, 8, seed=3) != trial_configurations(candidates, 8, seed=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12), st.sampled_from(grid_points()))
def test_no_threshold_of_the_grid_drops_the_best_chunk(millionths: list[int], point: GridPoint) -> None:
    candidates = candidates_with_scores([score / 10**6 for score in millionths])
    configuration = point.configuration(candidates)
    (terms,) = predict(candidates, **configuration.record()).found
    assert f"T:{int(np.argmax(candidates.scores))}" in {term.term for term in terms}
    if not point.threshold and not point.confidence:
        assert len(terms) == len(millionths)


def test_thresholds_at_a_frequent_score_are_distinct() -> None:
    configurations = {
        replace(GridPoint(1, 0.0, 0.0), threshold=share).configuration(
            candidates_with_scores([0.2, 0.4, 0.6, *[1.0] * 20])
        )
        for share in (0.3, 0.6, 0.9, 1.0)
    }
    assert len(configurations) == 4


def test_a_budget_of_zero_is_an_error(candidates: Candidates) -> None:
    with pytest.raises(ParameterError, match="0 trials"):
        trial_configurations(candidates, 0)
