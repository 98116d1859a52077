"""Numbers as text: as many digits as the interval supports, and never a false zero."""

from __future__ import annotations

import re
from math import inf, log10, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.stats import numbers
from equipoise.stats.interval import Interval

FRACTIONS = st.floats(0, 1)


@pytest.mark.parametrize(
    ("half_width", "places"),
    [(30, 0), (10, 0), (9.9, 1), (0.3, 2), (0.11, 2), (0.099, 3), (0.04, 3), (0.002, 4)],
)
def test_two_figures_of_the_half_width_are_shown(half_width: float, places: int) -> None:
    assert numbers.decimals(Interval(100 - half_width, 100 + half_width)) == places


@given(st.floats(1e-4, 1e4))
def test_rounding_moves_a_figure_by_less_than_a_tenth_of_its_uncertainty(half_width: float) -> None:
    rounding = 0.5 * 10 ** -numbers.decimals(Interval(-half_width, half_width))
    assert rounding <= max(0.5, 0.1 * half_width)


def test_an_interval_that_is_unknown_or_a_point_gets_three_decimals() -> None:
    for interval in (Interval.unknown("one unit"), Interval(0.5, 0.5), Interval(0.0, inf)):
        assert numbers.decimals(interval) == 3


def test_a_column_shows_what_its_narrowest_interval_deserves() -> None:
    wide, narrow, unknown = Interval(0.2, 0.8), Interval(0.50, 0.52), Interval.unknown("one unit")
    assert numbers.shared_decimals([wide, narrow, unknown]) == numbers.decimals(narrow) == 3
    assert numbers.shared_decimals([wide]) == 2
    assert numbers.shared_decimals([]) == 3


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_a_figure_is_the_nearest_number_of_its_decimals(value: float, places: int) -> None:
    text = numbers.figure(value, places)
    assert abs(float(text.replace(",", "")) - value) <= 0.5 * 10**-places * (1 + 1e-9) + 1e-9
    assert not re.fullmatch(r"-0(\.0*)?", text)


@given(st.floats(-1e3, 1e3), st.integers(0, 4))
def test_a_difference_has_a_sign_exactly_when_it_is_not_zero_in_print(value: float, places: int) -> None:
    text = numbers.signed(value, places)
    shown = float(text.replace(",", ""))
    assert text.startswith("+") == (shown > 0)
    assert text.startswith("-") == (shown < 0)


@given(st.floats(1e-12, 1))
def test_p_is_never_printed_as_zero(p: float) -> None:
    text = numbers.p_value(p)
    if p < 0.001:
        assert text == "<0.001"
    else:
        assert float(text) > 0
        assert abs(float(text) - p) <= 0.05 * p + 10 ** (log10(p) - 1)


def test_what_is_unknown_says_why() -> None:
    assert numbers.figure(nan) == "n/a"
    assert numbers.figure(nan, reason="one unit") == "n/a (one unit)"
    assert numbers.span(Interval.unknown("one unit")) == "n/a (one unit)"
    assert numbers.p_value(nan, reason="no test") == "n/a (no test)"
    assert numbers.signed(nan) == "n/a"


def test_infinity_and_thousands_are_readable() -> None:
    assert numbers.figure(inf) == "inf"
    assert numbers.figure(-inf) == "-inf"
    assert numbers.figure(41057.3, 0) == "41,057"
    assert numbers.count(1234567) == "1,234,567"


def test_only_levels_are_percent() -> None:
    assert numbers.percent(0.9) == "90 %"
    assert numbers.percent(0.999) == "99.9 %"
    assert "%" not in numbers.span(Interval(0.1, 0.2))
