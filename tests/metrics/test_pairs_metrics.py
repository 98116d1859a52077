"""Correlations and errors of similarities, compared with scipy and scikit-learn."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn

from equipoise.errors import ParameterError
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.segments import average_ranks
from equipoise.metrics.pairs import (
    METRICS,
    MeanAbsoluteError,
    Pearson,
    RootMeanSquaredError,
    Spearman,
    WithinTolerance,
    correlation,
)

# A coarse grid, so that ties are common.
COLUMNS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30)


def pairs_from(rows) -> Pairs:
    return Pairs.of(*(np.array(side) / 5 for side in zip(*rows, strict=True)))


@given(COLUMNS, st.integers(0, 2**32))
def test_correlations_from_counts_equal_those_of_the_resampled_rows(rows, seed):
    pairs = pairs_from(rows)
    resamples = np.random.default_rng(seed).integers(len(pairs), size=(20, len(pairs)))
    counts = np.array([np.bincount(resample, minlength=len(pairs)) for resample in resamples], dtype=np.float64)
    for metric in (Pearson(), Spearman()):
        expected = [metric.value(pairs.take(resample)) for resample in resamples]
        np.testing.assert_allclose(metric.of_counts(pairs, counts), expected, atol=1e-12)


@given(COLUMNS)
def test_correlations_agree_with_scipy(rows):
    pairs = pairs_from(rows)
    assume(np.ptp(pairs.predicted) > 0 and np.ptp(pairs.expected) > 0)
    pearson = stats.pearsonr(pairs.predicted, pairs.expected).statistic
    spearman = stats.spearmanr(pairs.predicted, pairs.expected).statistic
    assert Pearson().measure(pairs).value == pytest.approx(pearson, abs=1e-12)
    assert Spearman().measure(pairs).value == pytest.approx(spearman, abs=1e-12)


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_ranks_agree_with_scipy(values):
    np.testing.assert_array_equal(average_ranks(np.array(values, dtype=float)), stats.rankdata(values))


@given(COLUMNS)
def test_errors_agree_with_scikit_learn(rows):
    pairs = pairs_from(rows)
    absolute = sklearn.mean_absolute_error(pairs.expected, pairs.predicted)
    squared = sklearn.root_mean_squared_error(pairs.expected, pairs.predicted)
    assert MeanAbsoluteError().measure(pairs).value == pytest.approx(absolute, abs=1e-12)
    assert RootMeanSquaredError().measure(pairs).value == pytest.approx(squared, abs=1e-12)
    assert absolute <= squared + 1e-12


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e-30])
def test_constant_similarities_have_no_correlation(constant):
    flat, steps = np.full(7, constant), np.arange(7.0)
    for metric in (Pearson(), Spearman()):
        for pairs in (Pairs.of(flat, steps), Pairs.of(steps, flat)):
            assert isnan(metric.measure(pairs).value)
            assert isnan(metric.chance(pairs, np.random.default_rng(0)))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_scale_of_similarities_does_not_change_a_correlation(scale):
    x, y = np.random.default_rng(0).random((2, 9))
    assert correlation(x * scale, y) == pytest.approx(correlation(x, y), abs=1e-12)


def test_spearman_depends_only_on_the_order():
    x, y = np.random.default_rng(1).random((2, 40))
    assert Spearman().measure(Pairs.of(np.exp(5 * x), y)).value == Spearman().measure(Pairs.of(x, y)).value


def test_differences_equal_to_the_tolerance_are_within_it():
    pairs = Pairs.of([0.8, 0.3, 0.75, 0.801], [0.7, 0.2, 0.85, 0.7])
    assert WithinTolerance().measure(pairs).per_unit.tolist() == [1, 1, 1, 0]
    assert WithinTolerance(tolerance=0.2).measure(pairs).value == 1.0
    assert WithinTolerance(tolerance=0.2).name == "Within(tolerance=0.2)"


def test_negative_tolerances_raise_parameter_error():
    for tolerance in (-0.1, nan):
        with pytest.raises(ParameterError, match="tolerance"):
            WithinTolerance(tolerance=tolerance)


@given(COLUMNS, st.integers(0, 99))
def test_metrics_ignore_the_order_of_pairs_and_stay_within_bounds(rows, seed):
    pairs = pairs_from(rows)
    permuted = pairs.take(np.random.default_rng(seed).permutation(len(pairs)))
    for metric in (kind() for kind in METRICS):
        value = metric.measure(pairs).value
        assert metric.measure(permuted).value == pytest.approx(value, abs=1e-12, nan_ok=True)
        assert isnan(value) or metric.bounds[0] <= value <= metric.bounds[1]


def test_shuffled_similarities_are_uncorrelated_on_average():
    x = np.random.default_rng(0).random(60)
    pairs, rng = Pairs.of(x, x), np.random.default_rng(1)
    for metric in (Pearson(), Spearman()):
        values = [metric.measure(pairs.shuffled(rng)).value for _ in range(400)]
        error = np.std(values) / 20
        assert abs(np.mean(values) - metric.chance(pairs, rng)) < 4 * error


@pytest.mark.parametrize("metric", [kind() for kind in METRICS], ids=str)
def test_no_pairs_give_nan(metric):
    assert isnan(metric.measure(Pairs.of([], [])).value)
