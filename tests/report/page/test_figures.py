"""Axes that hold what is drawn on them, and numbers that exist."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.report.sections import axis_scale
from equipoise.report.tables import finite_or_none

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


@given(st.lists(numbers, min_size=1, max_size=20))
def test_an_axis_holds_everything_and_little_more(values: list[float]) -> None:
    scale = axis_scale([], values)
    hair = 1e-8 * (scale.high - scale.low)
    assert scale.low <= min(values) + hair
    assert max(values) - hair <= scale.high
    assert scale.high - scale.low <= max(2 * (max(values) - min(values)), 2.0) + hair
    assert 2 <= len(scale.ticks) <= 8
    step = scale.ticks[1][0] - scale.ticks[0][0]
    for (one, _), (other, _) in pairwise(scale.ticks):
        assert other - one == pytest.approx(step, rel=1e-6, abs=1e-9)
    for value, text in scale.ticks:
        assert float(text.replace(",", "")) == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_an_axis_of_nothing_goes_from_0_to_1() -> None:
    assert (axis_scale([], [None]).low, axis_scale([], [None]).high) == (0.0, 1.0)


def test_what_is_no_number_is_none() -> None:
    assert [finite_or_none(value) for value in (0.5, float("nan"), float("inf"))] == [0.5, None, None]
