"""What is a number in a file, and what is not."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from equipoise.data.number import NotANumber, NotFinite, number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_read_back_from_its_spelling(value):
    assert number(repr(value)) == value
    assert number(value) == value


@given(st.integers(-(10**300), 10**300))
def test_whole_numbers_stay_whole_to_the_last_digit(value):
    assert number(str(value)) == value
    assert type(number(str(value))) is int


@given(st.text())
@example("1_000")
@example("٣")
@example("0" * 5000)
@example("9" * 5000)
@example("1e999")
@example("0x10")
def test_any_text_is_a_finite_number_or_refused(text):
    try:
        value = number(text)
    except (NotANumber, NotFinite):
        return
    assert math.isfinite(value)
    assert float(value) == float(text)


@pytest.mark.parametrize(
    "value", ["", "abc", "1_000", "٣", "0x10", "1,5", "\u20281", True, None, [], {}, b"1"]
)
def test_what_only_resembles_a_number_is_none(value):
    with pytest.raises(NotANumber):
        number(value)


@pytest.mark.parametrize(
    "value", ["nan", "-inf", "Infinity", "1e999", "9" * 400, math.nan, math.inf, 10**400]
)
def test_what_is_not_finite_is_refused_as_such(value):
    with pytest.raises(NotFinite):
        number(value)


def test_numpy_scalars_become_plain_numbers():
    assert type(number(np.int64(3))) is int
    assert type(number(np.float32(0.5))) is float
