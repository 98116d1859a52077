"""Quantiles and their intervals by order statistics."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy.stats import binom, quantile_test

from equipoise.errors import ParameterError
from equipoise.stats.intervals import quantile, quantile_interval


@pytest.mark.parametrize(("n", "share"), [(50, 0.5), (200, 0.95), (500, 0.99), (400, 0.01)])
def test_quantile_intervals_have_their_coverage(n: int, share: float) -> None:
    rng = np.random.default_rng(0)
    true_quantile = -log(1 - share)
    covered = sum(quantile_interval(rng.exponential(size=n), share).covers(true_quantile) for _ in range(600))
    assert covered / 600 > 0.93


@pytest.mark.parametrize(("n", "share", "confidence_level"), [(30, 0.5, 0.9), (120, 0.95, 0.95), (80, 0.3, 0.99)])
def test_quantile_intervals_include_those_of_scipy(n: int, share: float, confidence_level: float) -> None:
    values = np.random.default_rng(1).normal(size=n)
    interval = quantile_interval(values, share, confidence_level)
    expected = quantile_test(values, p=share).confidence_interval(confidence_level)
    assert interval.low <= expected.low
    assert interval.high >= expected.high
    low, high = (np.searchsorted(np.sort(values), limit) + 1 for limit in (interval.low, interval.high))
    assert binom.cdf(high - 1, n, share) - binom.cdf(low - 1, n, share) >= confidence_level


def test_high_percentiles_state_the_number_of_values_needed() -> None:
    interval = quantile_interval(np.arange(367.0), 0.99)
    assert interval.reason == "the 99 % quantile needs 368 values; there are only 367"
    assert quantile_interval(np.arange(368.0), 0.99).known
    assert quantile_interval(np.empty(0), 0.5).reason == "no value"


def test_quantiles_are_interpolated() -> None:
    assert quantile(np.array([0.0, 10.0]), 0.25) == 2.5
    assert np.isnan(quantile(np.empty(0), 0.5))
    with pytest.raises(ParameterError) as error:
        quantile(np.array([0.0]), 1.0)
    assert error.value.code == "E310"
