"""Tie bands: systems share a letter exactly when they are not significantly different."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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


def test_systems_whose_differences_were_not_tested_have_no_band():
    assert joined_letters(tie_groups([0.1, 0.2, 0.3], np.full((3, 3), np.nan), better=UP)) == ["", "", ""]
    p = p_matrix({(0, 1): 0.01}, 3)
    p[2, :] = p[:, 2] = np.nan
    assert joined_letters(tie_groups([0.9, 0.8, 0.7], p, better=UP)) == ["a", "b", ""]


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


@given(st.integers(2, 7), st.integers(0, 2**28 - 1))
def test_a_rank_interval_counts_the_systems_that_are_significantly_better_and_worse(size, bits):
    signs = np.zeros((size, size), dtype=int)
    below = np.tril_indices(size, -1)
    signs[below] = rng(bits).integers(-1, 2, len(below[0]))
    signs -= signs.T
    for row, (low, high) in zip(signs.tolist(), rank_intervals(signs).tolist(), strict=True):
        assert low == 1 + row.count(1)
        assert high == size - row.count(-1)


@pytest.mark.slow
def test_rank_intervals_cover_the_ranks_of_nearly_equal_systems():
    """Ranks counted in each resample cover the rank of the best and the worst in about 82 % of the binary cases."""
    for row in rank_coverage(300, rng(1), systems=["six, nearly equal"], sizes=[130]):
        assert row.coverage > 0.94
