"""Power, compared with simulation and with the noncentral t distribution of scipy."""

from __future__ import annotations

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.errors import ParameterError
from equipoise.stats.intervals import wilson_interval
from equipoise.stats.power import detectable_difference, units_needed


@pytest.mark.parametrize("n", [5, 20, 200])
def test_the_detectable_difference_has_80_percent_power(n):
    difference = detectable_difference(0.3, n).value
    critical = stats.t.ppf(0.975, n - 1)
    shift = difference / 0.3 * sqrt(n)
    power = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
    assert power == pytest.approx(0.8, abs=1e-4)


def test_the_detectable_difference_has_80_percent_power_in_a_simulation():
    rng = np.random.default_rng(0)
    difference = detectable_difference(1.0, 25).value
    p = stats.ttest_1samp(rng.normal(difference, 1.0, size=(25, 20_000)), 0).pvalue
    assert (p < 0.05).mean() == pytest.approx(0.8, abs=4 * sqrt(0.16 / 20_000))


def test_many_units_approach_the_normal_formula():
    assert detectable_difference(1.0, 1e6).value * 1000 == pytest.approx(1.959964 + 0.841621, rel=1e-4)


@settings(max_examples=40)
@given(st.floats(0.01, 2.0), st.floats(0.05, 2.0), st.sampled_from([1.0, 3.5]))
def test_units_needed_is_the_least_number_that_detects_the_difference(difference, sd, units_per_block):
    n = units_needed(difference, sd, units_per_block=units_per_block).value
    assert detectable_difference(sd, n, units_per_block=units_per_block).value <= difference
    fewer = detectable_difference(sd, n - 1, units_per_block=units_per_block)
    assert not fewer.known or fewer.value > difference


def test_the_sign_of_the_difference_does_not_matter():
    assert units_needed(-0.1, 0.4) == units_needed(0.1, 0.4)


@pytest.mark.parametrize(
    ("estimate", "reason"),
    [
        (detectable_difference(0.0, 50), "all differences are equal"),
        (units_needed(0.1, 0.0), "all differences are equal"),
        (units_needed(0.0, 0.3), "the observed difference is 0"),
        (units_needed(1e-9, 0.3), "the observed difference is too close to 0"),
        (detectable_difference(0.3, 1), "fewer than two values"),
        (detectable_difference(float("nan"), 10), "the spread of the differences is unknown"),
        (units_needed(float("nan"), 0.3), "the difference is unknown"),
    ],
)
def test_unknown_estimates_are_nan_with_a_reason(estimate, reason):
    assert isnan(estimate.value)
    assert estimate.reason == reason
    assert not estimate.known


def test_degrees_of_freedom_are_those_of_the_clusters():
    # Ten clusters of ten units have nine degrees of freedom.
    critical = stats.t.ppf(0.975, 9)
    noncentrality = detectable_difference(0.3, 100, units_per_block=10).value / 0.3 * 10
    assert stats.nct.sf(critical, 9, noncentrality) == pytest.approx(0.8, abs=1e-4)


def test_wilson_half_widths_of_common_sample_sizes():
    intervals = [wilson_interval(0.8 * n, n) for n in (50, 80, 100)]
    assert [round(100 * interval.width / 2) for interval in intervals] == [11, 9, 8]
    expected = stats.binomtest(40, 50).proportion_ci(method="wilson")
    assert (intervals[0].low, intervals[0].high) == pytest.approx((expected.low, expected.high))


def test_invalid_parameters_raise_parameter_error():
    for options in ({"power": 0.3}, {"power": 1.0}, {"confidence_level": 0.0}, {"units_per_block": 0.5}):
        with pytest.raises(ParameterError):
            detectable_difference(0.3, 50, **options)
        with pytest.raises(ParameterError):
            units_needed(0.3, 0.3, **options)
