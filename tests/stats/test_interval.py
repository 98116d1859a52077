"""Closed-form intervals, compared with scipy and with published sample sizes."""

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equipoise.errors import ParameterError
from equipoise.stats.intervals import Interval, normal_critical, t_critical, t_interval, wilson_interval


@given(n=st.integers(1, 500), share=st.floats(0, 1), confidence_level=st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilson_agrees_with_scipy(n: int, share: float, confidence_level: float) -> None:
    successes = round(share * n)
    expected = stats.binomtest(successes, n).proportion_ci(confidence_level, method="wilson")
    interval = wilson_interval(successes, n, confidence_level)
    assert interval.low == pytest.approx(expected.low, abs=1e-12)
    assert interval.high == pytest.approx(expected.high, abs=1e-12)
    assert (interval.confidence_level, interval.method) == (confidence_level, "wilson")


@pytest.mark.parametrize(("n", "points"), [(50, 11), (80, 9), (100, 8)])
def test_wilson_half_widths_at_80_percent_agree_with_the_published_table(n: int, points: int) -> None:
    assert 100 * wilson_interval(0.8 * n, n).width / 2 == pytest.approx(points, abs=0.5)


@given(n=st.integers(1, 10_000))
def test_wilson_of_zero_or_all_hits_includes_the_bound_and_has_a_width(n: int) -> None:
    assert wilson_interval(0, n).low == 0.0
    assert wilson_interval(0, n).high > 0.0
    assert wilson_interval(n, n).high == 1.0
    assert wilson_interval(n, n).low < 1.0


def test_wilson_of_zero_trials_is_unknown_and_too_many_hits_raise_parameter_error() -> None:
    assert wilson_interval(0, 0).reason == "no defined value"
    with pytest.raises(ParameterError, match=r"6 successes.*5 trials"):
        wilson_interval(6, 5)


@pytest.mark.parametrize("confidence_level", [0.0, 1.0, 95, -0.5])
def test_confidence_levels_outside_0_to_1_raise_parameter_error(confidence_level: float) -> None:
    with pytest.raises(ParameterError) as error:
        wilson_interval(1, 2, confidence_level)
    assert error.value.code == "E310"


def test_critical_values_agree_with_scipy() -> None:
    assert normal_critical(0.9) == pytest.approx(stats.norm.ppf(0.95))
    assert t_critical(0.99, 7) == pytest.approx(stats.t.ppf(0.995, 7))
    low, high = stats.t.interval(0.95, 4, loc=3.0, scale=0.2)
    interval = t_interval(3.0, 0.2, 4)
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_unknown_intervals_stay_unknown_when_clipped() -> None:
    unknown = Interval.unknown("one unit").clipped((0.0, 1.0))
    assert not unknown.known
    assert not unknown.covers(0.5)
    assert isnan(unknown.width)


@given(low=st.floats(-3, 3), width=st.floats(0, 3))
def test_clipped_intervals_are_within_the_bounds(low: float, width: float) -> None:
    clipped = Interval(low, low + width).clipped((0.0, 1.0))
    assert 0.0 <= clipped.low <= clipped.high <= 1.0
