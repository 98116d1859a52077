"""Units whose relevant item is no candidate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence.ranking import Ranking, unanswerable_as_misses
from equipoise.metrics.parser import parse_metrics

METRICS = parse_metrics(["MRR", "HR@2", "P@2", "R@2", "MAP", "nDCG@3"], evidence=Ranking)
(HITS,) = parse_metrics("HR@5")


def ranked(scores, targets) -> Ranking:
    return Ranking.from_scores(np.asarray(scores, dtype=float), targets)


@given(st.lists(st.sets(st.integers(0, 3)).map(sorted), min_size=1, max_size=6), st.booleans())
def test_every_metric_is_zero_there_and_unchanged_elsewhere(targets, tied):
    scores = np.ones((len(targets), 4)) if tied else np.random.default_rng(0).normal(size=(len(targets), 4))
    before, after = ranked(scores, targets), unanswerable_as_misses(ranked(scores, targets))
    for metric in METRICS:
        expected = np.nan_to_num(metric.per_unit(before))
        np.testing.assert_array_equal(metric.per_unit(after), expected)
        chance = np.nan_to_num(metric.per_unit(before.uninformed()))
        np.testing.assert_allclose(metric.per_unit(after.uninformed()), chance, atol=1e-12)


def test_a_single_candidate_is_no_reason_to_find_the_other():
    ranking = unanswerable_as_misses(ranked([[1.0], [1.0]], [[0], []]))
    assert HITS.per_unit(ranking.uninformed()).tolist() == [1.0, 0.0]
    lone = unanswerable_as_misses(ranked([[1.0]], [[]]))
    assert HITS.per_unit(lone.uninformed()).tolist() == [0.0]


def test_shuffling_never_finds_what_is_no_candidate():
    ranking = unanswerable_as_misses(ranked(np.ones((3, 5)), [[1], [], [0, 2]]))
    hits = [HITS.per_unit(ranking.shuffled(np.random.default_rng(seed))) for seed in range(20)]
    np.testing.assert_array_equal(np.mean(hits, axis=0), [1.0, 0.0, 1.0])


def test_a_ranking_without_such_units_is_returned_as_it_is():
    ranking = ranked([[1, 2], [2, 1]], [[0], [1]])
    assert unanswerable_as_misses(ranking) is ranking


@pytest.mark.parametrize("index", [[0, 1, 2], [1, 1, 0]])
def test_it_can_be_taken_and_stored_like_any_other(index):
    ranking = unanswerable_as_misses(ranked([[1, 2], [2, 1], [1, 2]], [[], [], [1]])).take(np.array(index))
    again = Ranking.from_arrays(ranking.to_arrays())
    np.testing.assert_array_equal(again.ranks, ranking.ranks)
    np.testing.assert_array_equal(again.depth, ranking.depth)
