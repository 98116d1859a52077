"""Tie bands: systems share a letter exactly when they are not significantly different."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t
from studies.rank_calibration import rank_coverage

from equipoise.errors import ShapeError
from equipoise.stats.multiple_comparisons import order_by_score, rank_intervals, tie_groups
from equipoise.types import Direction

UP, DOWN = Direction.UP, Direction.DOWN


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def p_matrix(pairs, size):
    p = np.ones((size, size))
    for (i, j), value in pairs.items():
        p[i, j] = p[j, i] = value
    return p


def joined_letters(bands):
    return ["".join(letters) for letters in bands]


def test_overlapping_groups_get_overlapping_letters():
    p = p_matrix({(0, 2): 0.01}, 3)
    assert joined_letters(tie_groups([0.9, 0.8, 0.7], p, better=UP)) == ["a", "ab", "b"]


def test_the_best_band_is_a_in_both_directions():
    p = p_matrix({(0, 1): 0.01, (0, 2): 0.01, (1, 2): 0.01}, 3)
    assert joined_letters(tie_groups([1.0, 3.0, 2.0], p, better=UP)) == ["c", "a", "b"]
    assert joined_letters(tie_groups([1.0, 3.0, 2.0], p, better=DOWN)) == ["a", "c", "b"]


def test_unknown_p_values_give_one_band():
    assert joined_letters(tie_groups([0.1, 0.2, 0.3], np.full((3, 3), np.nan), better=UP)) == ["a", "a", "a"]


def test_ties_across_a_significantly_different_system_are_shown():
    # The second system differs from both others; the first and the third are tied.
    p = p_matrix({(0, 1): 0.01, (1, 2): 0.01, (0, 2): 0.3}, 3)
    assert joined_letters(tie_groups([0.9, 0.8, 0.7], p, better=UP)) == ["a", "b", "a"]


def test_a_system_without_a_score_has_no_band():
    bands = tie_groups([np.nan, 0.5, 0.6], np.ones((3, 3)), better=UP)
    assert bands == ((), ("a",), ("a",))


def test_letters_continue_after_z():
    size = 30
    p = np.zeros((size, size))
    bands = tie_groups(-np.arange(size), p, better=UP)
    assert joined_letters(bands)[25:28] == ["z", "aa", "ab"]


@given(st.integers(1, 8), st.integers(0, 2**28 - 1), st.sampled_from([UP, DOWN]))
def test_systems_share_a_letter_exactly_when_not_significantly_different(size, bits, better):
    pairs = [(i, j) for i in range(size) for j in range(i)]
    p = p_matrix({pair: 0.01 if bits >> bit & 1 else 0.5 for bit, pair in enumerate(pairs)}, size)
    scores = rng(bits).normal(size=size)
    bands = tie_groups(scores, p, better=better)
    assert all(bands)
    for i, j in pairs:
        assert bool(set(bands[i]) & set(bands[j])) == (p[i, j] >= 0.05)
    assert "a" in bands[int(order_by_score(scores, better)[0])]


def test_mismatched_matrices_raise_shape_error():
    with pytest.raises(ShapeError):
        tie_groups([1.0, 2.0], np.ones((3, 3)), better=UP)


def reference_rank_intervals(values, better, resamples):
    """The definition, over given resamples: one simultaneous test of each system against all others."""
    sign, n = (1 if better == UP else -1), len(values)
    means = sign * np.array([values[row].mean(axis=0) for row in resamples])
    scores = sign * values.mean(axis=0)
    intervals = []
    for i in range(len(scores)):
        others = [j for j in range(len(scores)) if j != i]
        errors = {j: (means[:, j] - means[:, i]).std() for j in others}
        centred = {j: (means[:, j] - means[:, i]) - (means[:, j] - means[:, i]).mean() for j in others}
        largest = np.max([abs(centred[j]) / errors[j] for j in others], axis=0)
        critical = t.isf(norm.sf(np.quantile(largest, 0.95)), n - 1) * np.sqrt(n / (n - 1))
        above = sum(scores[j] - scores[i] > critical * errors[j] for j in others)
        below = sum(scores[i] - scores[j] > critical * errors[j] for j in others)
        intervals.append([1 + above, len(scores) - below])
    return np.array(intervals)


@pytest.mark.parametrize("better", [UP, DOWN])
def test_rank_intervals_agree_with_a_direct_bootstrap(better):
    # Far enough from every threshold that two bootstraps of 2,000 give the same integers.
    values = rng(1).normal(size=(40, 4)) * 0.3 + [0.0, 0.05, 0.6, 1.5]
    expected = reference_rank_intervals(values, better, rng(2).integers(0, 40, size=(2000, 40)))
    assert (rank_intervals(values, better=better, rng=rng(3)) == expected).all()


@pytest.mark.slow
def test_rank_intervals_cover_the_ranks_of_nearly_equal_systems():
    """Ranks counted in each resample cover the rank of the best and the worst in about 82 % of the binary cases."""
    for row in rank_coverage(300, rng(1), systems=["six, nearly equal"], sizes=[130]):
        assert row.coverage > 0.94


def test_equal_systems_share_their_rank_interval():
    column = rng(4).normal(size=(30, 1))
    values = np.hstack([column, column, column - 5])
    assert rank_intervals(values, better=UP, rng=rng()).tolist() == [[1, 2], [1, 2], [3, 3]]


def test_clusters_of_copied_units_have_the_rank_intervals_of_single_units():
    values = rng(5).normal([0.0, 0.3], 1.0, size=(15, 2))
    copied, labels = np.repeat(values, 20, axis=0), np.repeat(np.arange(15), 20)
    assert rank_intervals(copied, better=UP, rng=rng()).tolist() == [[2, 2], [1, 1]]
    clustered = rank_intervals(copied, better=UP, clusters=labels, rng=rng())
    assert clustered.tolist() == rank_intervals(values, better=UP, rng=rng(6)).tolist() == [[1, 2], [1, 2]]


def test_systems_without_a_defined_value_span_all_ranks():
    values = np.column_stack([np.full(20, np.nan), np.zeros(20), np.ones(20)])
    assert rank_intervals(values, better=UP, rng=rng()).tolist() == [[1, 3], [2, 3], [1, 2]]


def test_too_few_common_units_leave_all_ranks_open():
    values = np.array([[1.0, np.nan], [np.nan, 0.0], [1.0, 0.0]])
    assert rank_intervals(values, better=UP, rng=rng()).tolist() == [[1, 2], [1, 2]]


def test_bad_input_raises_errors():
    with pytest.raises(ShapeError):
        rank_intervals(np.zeros(3), better=UP, rng=rng())
