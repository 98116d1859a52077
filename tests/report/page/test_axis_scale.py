"""Axis scales cover their values, and non-finite numbers are None."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.report.sections import axis_scale
from equipoise.report.tables import finite_or_none

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


@given(st.lists(numbers, min_size=1, max_size=20))
def test_an_axis_covers_the_values_closely(values: list[float]) -> None:
    scale = axis_scale([], values)
    tolerance = 1e-8 * (scale.high - scale.low)
    assert scale.low <= min(values) + tolerance
    assert max(values) - tolerance <= scale.high
    assert scale.high - scale.low <= max(2 * (max(values) - min(values)), 2.0) + tolerance
    assert 2 <= len(scale.ticks) <= 8
    step = scale.ticks[1][0] - scale.ticks[0][0]
    for (tick, _), (next_tick, _) in pairwise(scale.ticks):
        assert next_tick - tick == pytest.approx(step, rel=1e-6, abs=1e-9)
    for value, text in scale.ticks:
        assert float(text.replace(",", "")) == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_an_axis_without_values_is_from_0_to_1() -> None:
    assert (axis_scale([], [None]).low, axis_scale([], [None]).high) == (0.0, 1.0)


def test_non_finite_numbers_are_none() -> None:
    assert [finite_or_none(value) for value in (0.5, float("nan"), float("inf"))] == [0.5, None, None]
