"""Units whose relevant item is not a candidate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence.ranking import Ranking, unanswerable_as_misses
from equipoise.metrics.parser import parse_metrics

METRICS = parse_metrics(["MRR", "HR@2", "P@2", "R@2", "MAP", "nDCG@3"], evidence=Ranking)
(HITS,) = parse_metrics("HR@5")


def ranking_of(scores, targets) -> Ranking:
    return Ranking.from_scores(np.asarray(scores, dtype=float), targets)


@given(st.lists(st.sets(st.integers(0, 3)).map(sorted), min_size=1, max_size=6), st.booleans())
def test_unanswerable_units_score_zero_and_others_are_unchanged(targets, tied):
    scores = np.ones((len(targets), 4)) if tied else np.random.default_rng(0).normal(size=(len(targets), 4))
    ranking, with_misses = ranking_of(scores, targets), unanswerable_as_misses(ranking_of(scores, targets))
    for metric in METRICS:
        expected = np.nan_to_num(metric.per_unit(ranking))
        np.testing.assert_array_equal(metric.per_unit(with_misses), expected)
        chance = np.nan_to_num(metric.per_unit(ranking.with_constant_scores()))
        np.testing.assert_allclose(metric.per_unit(with_misses.with_constant_scores()), chance, atol=1e-12)


def test_unanswerable_units_have_zero_chance_with_a_single_candidate():
    ranking = unanswerable_as_misses(ranking_of([[1.0], [1.0]], [[0], []]))
    assert HITS.per_unit(ranking.with_constant_scores()).tolist() == [1.0, 0.0]
    single = unanswerable_as_misses(ranking_of([[1.0]], [[]]))
    assert HITS.per_unit(single.with_constant_scores()).tolist() == [0.0]


def test_shuffling_leaves_unanswerable_units_at_zero():
    ranking = unanswerable_as_misses(ranking_of(np.ones((3, 5)), [[1], [], [0, 2]]))
    hits = [HITS.per_unit(ranking.shuffled(np.random.default_rng(seed))) for seed in range(20)]
    np.testing.assert_array_equal(np.mean(hits, axis=0), [1.0, 0.0, 1.0])


def test_rankings_without_unanswerable_units_are_returned_unchanged():
    ranking = ranking_of([[1, 2], [2, 1]], [[0], [1]])
    assert unanswerable_as_misses(ranking) is ranking


@pytest.mark.parametrize("index", [[0, 1, 2], [1, 1, 0]])
def test_rankings_with_misses_can_be_taken_and_stored(index):
    ranking = unanswerable_as_misses(ranking_of([[1, 2], [2, 1], [1, 2]], [[], [], [1]])).take(np.array(index))
    restored = Ranking.from_arrays(ranking.to_arrays())
    np.testing.assert_array_equal(restored.ranks, ranking.ranks)
    np.testing.assert_array_equal(restored.depth, ranking.depth)
