"""Numbers in files: accepted and rejected forms."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from equipoise.io.text import NumberRangeError, parse_number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_parsed_from_its_repr(value):
    assert parse_number(repr(value)) == value
    assert parse_number(value) == value


@given(st.integers(-(10**300), 10**300))
def test_integers_are_parsed_exactly(value):
    assert parse_number(str(value)) == value
    assert type(parse_number(str(value))) is int


@given(st.text())
@example("1_000")
@example("٣")
@example("0" * 5000)
@example("9" * 5000)
@example("1e999")
@example("0x10")
def test_any_text_is_a_finite_number_or_raises(text):
    try:
        value = parse_number(text)
    except ValueError:
        return
    assert math.isfinite(value)
    assert float(value) == float(text)


@pytest.mark.parametrize("value", ["", "abc", "1_000", "٣", "0x10", "1,5", "\u20281", True, None, [], {}, b"1"])
def test_invalid_numbers_raise_value_error(value):
    with pytest.raises(ValueError, match="not a number"):
        parse_number(value)


@pytest.mark.parametrize("value", ["nan", "-inf", "Infinity", "1e999", "9" * 400, math.nan, math.inf, 10**400])
def test_non_finite_numbers_raise_number_range_error(value):
    with pytest.raises(NumberRangeError):
        parse_number(value)


def test_numpy_scalars_become_python_numbers():
    assert type(parse_number(np.int64(3))) is int
    assert type(parse_number(np.float32(0.5))) is float
