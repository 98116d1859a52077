"""Numbers as text: decimals follow the interval, and p is never printed as zero."""

from __future__ import annotations

import re
from math import inf, log10, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.stats import formatting
from equipoise.stats.intervals import Interval

FRACTIONS = st.floats(0, 1)


@pytest.mark.parametrize(
    ("half_width", "decimals"),
    [(30, 0), (10, 0), (9.9, 1), (0.3, 2), (0.11, 2), (0.099, 3), (0.04, 3), (0.002, 4)],
)
def test_decimals_show_two_digits_of_the_half_width(half_width: float, decimals: int) -> None:
    assert formatting.n_decimals(Interval(100 - half_width, 100 + half_width)) == decimals


@given(st.floats(1e-4, 1e4))
def test_rounding_changes_a_value_by_less_than_a_tenth_of_the_half_width(half_width: float) -> None:
    rounding = 0.5 * 10 ** -formatting.n_decimals(Interval(-half_width, half_width))
    assert rounding <= max(0.5, 0.1 * half_width)


def test_unknown_and_zero_width_intervals_get_three_decimals() -> None:
    for interval in (Interval.unknown("one unit"), Interval(0.5, 0.5), Interval(0.0, inf)):
        assert formatting.n_decimals(interval) == 3


def test_columns_use_the_decimals_of_the_narrowest_interval() -> None:
    wide, narrow, unknown = Interval(0.2, 0.8), Interval(0.50, 0.52), Interval.unknown("one unit")
    assert formatting.shared_decimals([wide, narrow, unknown]) == formatting.n_decimals(narrow) == 3
    assert formatting.shared_decimals([wide]) == 2
    assert formatting.shared_decimals([]) == 3


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_values_are_rounded_to_the_nearest_decimal(value: float, decimals: int) -> None:
    text = formatting.format_value(value, decimals)
    assert abs(float(text.replace(",", "")) - value) <= 0.5 * 10**-decimals * (1 + 1e-9) + 1e-9
    assert not re.fullmatch(r"-0(\.0*)?", text)


@given(st.floats(-1e3, 1e3), st.integers(0, 4))
def test_differences_have_a_sign_unless_printed_as_zero(value: float, decimals: int) -> None:
    text = formatting.format_difference(value, decimals)
    printed = float(text.replace(",", ""))
    assert text.startswith("+") == (printed > 0)
    assert text.startswith("-") == (printed < 0)


@given(st.floats(1e-12, 1))
def test_p_is_never_printed_as_zero(p: float) -> None:
    text = formatting.format_p(p)
    if p < 0.001:
        assert text == "<0.001"
    else:
        assert float(text) > 0
        assert abs(float(text) - p) <= 0.05 * p + 10 ** (log10(p) - 1)


def test_unknown_values_show_their_reason() -> None:
    assert formatting.format_value(nan) == "n/a"
    assert formatting.format_value(nan, reason="one unit") == "n/a (one unit)"
    assert formatting.format_interval(Interval.unknown("one unit")) == "n/a (one unit)"
    assert formatting.format_p(nan, reason="no test") == "n/a (no test)"
    assert formatting.format_difference(nan) == "n/a"


def test_infinity_and_thousands_separators() -> None:
    assert formatting.format_value(inf) == "inf"
    assert formatting.format_value(-inf) == "-inf"
    assert formatting.format_value(41057.3, 0) == "41,057"
    assert formatting.format_count(1234567) == "1,234,567"


def test_confidence_levels_are_percentages() -> None:
    assert formatting.format_percent(0.9) == "90 %"
    assert formatting.format_percent(0.999) == "99.9 %"
    assert "%" not in formatting.format_interval(Interval(0.1, 0.2))
