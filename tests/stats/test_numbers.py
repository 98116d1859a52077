"""Numbers as text: as many digits as the interval supports, and never a false zero."""

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
    ("half_width", "places"),
    [(30, 0), (10, 0), (9.9, 1), (0.3, 2), (0.11, 2), (0.099, 3), (0.04, 3), (0.002, 4)],
)
def test_two_figures_of_the_half_width_are_shown(half_width: float, places: int) -> None:
    assert formatting.n_decimals(Interval(100 - half_width, 100 + half_width)) == places


@given(st.floats(1e-4, 1e4))
def test_rounding_moves_a_figure_by_less_than_a_tenth_of_its_uncertainty(half_width: float) -> None:
    rounding = 0.5 * 10 ** -formatting.n_decimals(Interval(-half_width, half_width))
    assert rounding <= max(0.5, 0.1 * half_width)


def test_an_interval_that_is_unknown_or_a_point_gets_three_decimals() -> None:
    for interval in (Interval.unknown("one unit"), Interval(0.5, 0.5), Interval(0.0, inf)):
        assert formatting.n_decimals(interval) == 3


def test_a_column_shows_what_its_narrowest_interval_deserves() -> None:
    wide, narrow, unknown = Interval(0.2, 0.8), Interval(0.50, 0.52), Interval.unknown("one unit")
    assert formatting.shared_decimals([wide, narrow, unknown]) == formatting.n_decimals(narrow) == 3
    assert formatting.shared_decimals([wide]) == 2
    assert formatting.shared_decimals([]) == 3


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_a_figure_is_the_nearest_number_of_its_decimals(value: float, places: int) -> None:
    text = formatting.format_value(value, places)
    assert abs(float(text.replace(",", "")) - value) <= 0.5 * 10**-places * (1 + 1e-9) + 1e-9
    assert not re.fullmatch(r"-0(\.0*)?", text)


@given(st.floats(-1e3, 1e3), st.integers(0, 4))
def test_a_difference_has_a_sign_exactly_when_it_is_not_zero_in_print(value: float, places: int) -> None:
    text = formatting.format_difference(value, places)
    shown = float(text.replace(",", ""))
    assert text.startswith("+") == (shown > 0)
    assert text.startswith("-") == (shown < 0)


@given(st.floats(1e-12, 1))
def test_p_is_never_printed_as_zero(p: float) -> None:
    text = formatting.format_p(p)
    if p < 0.001:
        assert text == "<0.001"
    else:
        assert float(text) > 0
        assert abs(float(text) - p) <= 0.05 * p + 10 ** (log10(p) - 1)


def test_what_is_unknown_says_why() -> None:
    assert formatting.format_value(nan) == "n/a"
    assert formatting.format_value(nan, reason="one unit") == "n/a (one unit)"
    assert formatting.format_interval(Interval.unknown("one unit")) == "n/a (one unit)"
    assert formatting.format_p(nan, reason="no test") == "n/a (no test)"
    assert formatting.format_difference(nan) == "n/a"


def test_infinity_and_thousands_are_readable() -> None:
    assert formatting.format_value(inf) == "inf"
    assert formatting.format_value(-inf) == "-inf"
    assert formatting.format_value(41057.3, 0) == "41,057"
    assert formatting.format_count(1234567) == "1,234,567"


def test_only_levels_are_percent() -> None:
    assert formatting.format_percent(0.9) == "90 %"
    assert formatting.format_percent(0.999) == "99.9 %"
    assert "%" not in formatting.format_interval(Interval(0.1, 0.2))
