"""Quantiles and their intervals by order statistics."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy.stats import binom, quantile_test

from equipoise.errors import ParameterError
from equipoise.stats.intervals import quantile, quantile_interval


@pytest.mark.parametrize(("n", "share"), [(50, 0.5), (200, 0.95), (500, 0.99), (400, 0.01)])
def test_the_interval_covers_as_often_as_it_says(n: int, share: float) -> None:
    rng = np.random.default_rng(0)
    truth = -log(1 - share)
    covered = sum(quantile_interval(rng.exponential(size=n), share).covers(truth) for _ in range(600))
    assert covered / 600 > 0.93


@pytest.mark.parametrize(("n", "share", "confidence_level"), [(30, 0.5, 0.9), (120, 0.95, 0.95), (80, 0.3, 0.99)])
def test_the_ends_are_those_of_scipy_or_safer(n: int, share: float, confidence_level: float) -> None:
    values = np.random.default_rng(1).normal(size=n)
    reach = quantile_interval(values, share, confidence_level)
    theirs = quantile_test(values, p=share).confidence_interval(confidence_level)
    assert reach.low <= theirs.low
    assert reach.high >= theirs.high
    low, high = (np.searchsorted(np.sort(values), end) + 1 for end in (reach.low, reach.high))
    assert binom.cdf(high - 1, n, share) - binom.cdf(low - 1, n, share) >= confidence_level


def test_a_high_percentile_of_few_values_says_how_many_it_needs() -> None:
    few = quantile_interval(np.arange(367.0), 0.99)
    assert few.reason == "the 99 % quantile needs 368 values, not 367"
    assert quantile_interval(np.arange(368.0), 0.99).known
    assert quantile_interval(np.empty(0), 0.5).reason == "no value"


def test_the_quantile_lies_between_the_values() -> None:
    assert quantile(np.array([0.0, 10.0]), 0.25) == 2.5
    assert np.isnan(quantile(np.empty(0), 0.5))
    with pytest.raises(ParameterError, match="1 cannot"):
        quantile(np.array([0.0]), 1.0)
