"""Printed numbers: digits, signs, standard deviations, intervals and markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.io.published.numbers import parse_printed, strip_markup


@pytest.mark.parametrize(
    ("text", "value", "half_unit"),
    [
        ("0.3333", 0.3333, 0.00005),
        ("0.70", 0.70, 0.005),
        ("71.4%", 71.4, 0.05),
        ("71.4 \\%", 71.4, 0.05),
        ("1,187", 1187.0, 0.5),
        ("12,345.6", 12345.6, 0.05),
        ("0,81", 0.81, 0.005),
        ("71,4 %", 71.4, 0.05),
        ("-0.12", -0.12, 0.005),
        ("\u22120.12", -0.12, 0.005),
        ("1.5e-3", 0.0015, 0.00005),
        (".5", 0.5, 0.05),
        ("**0.976**", 0.976, 0.0005),
        ("0.41<sup>a,b</sup>", 0.41, 0.005),
        (r"\textbf{93.45}", 93.45, 0.005),
        (r"\textbf{\underline{93.4}}$^{\dagger}$", 93.4, 0.05),
        (r"$\mathbf{0.52}$", 0.52, 0.005),
        (r"\cellcolor{gray!20} 48.9", 48.9, 0.05),
        ("0.52*", 0.52, 0.005),
        ("0.52†", 0.52, 0.005),
    ],
)
def test_numbers_are_read_with_their_rounding_error(text: str, value: float, half_unit: float) -> None:
    number = parse_printed(text)
    assert number is not None
    assert number.value == pytest.approx(value)
    assert number.half == pytest.approx(half_unit)
    assert number.percent == ("%" in text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "--",
        "n/a",
        "<0.01",
        "≤0.12",
        "0.10 to 0.12",
        "bge-base",
        "512 tokens",
        "2/3",
        "[0.1, 0.2]",
        "1.2.3",
    ],
)
def test_other_texts_are_not_numbers(text: str) -> None:
    assert parse_printed(text) is None


def test_standard_deviations_and_intervals_are_read() -> None:
    number = parse_printed(r"41.2 $\pm$ 0.3")
    assert number is not None
    assert (number.value, number.spread) == (41.2, 0.3)
    number = parse_printed("94.4% (95% CI: [88.3%, 97.4%])")
    assert number is not None
    assert number.ends is not None
    assert [end.value for end in number.ends] == [88.3, 97.4]
    number = parse_printed("0.412 [0.371, 0.452]")
    assert number is not None
    assert number.ends is not None
    assert number.ends[1].half == pytest.approx(0.0005)


@given(st.floats(0, 1000), st.integers(0, 6))
def test_rounded_values_are_within_half_a_unit(value: float, digits: int) -> None:
    number = parse_printed(f"{value:.{digits}f}")
    assert number is not None
    assert number.low - 1e-12 <= value <= number.high + 1e-12


def test_escaped_characters_are_not_markup() -> None:
    assert strip_markup(r"a\|b \*c\* R\&D\_50\%") == "a|b *c* R&D_50%"


@pytest.mark.parametrize("text", ["1e999", "1e9999999", "-1e400", "0.5 [0.1, 1e999]", "0.5 ± 1e999"])
def test_overflowing_numbers_are_not_numbers(text: str) -> None:
    assert parse_printed(text) is None


def test_underflowing_numbers_are_zero() -> None:
    number = parse_printed("1e-9999999")
    assert number is not None
    assert number.value == 0.0


@pytest.mark.parametrize("text", ["82.4 (+5.4)", "82.4 (-1.2)", "82.4% (+5.4%)", "82.4 [+5.4]", "82.4 (\u22121.2)"])
def test_changes_in_brackets_are_ignored(text: str) -> None:
    number = parse_printed(text)
    assert number is not None
    assert (number.value, number.ends) == (82.4, None)


@pytest.mark.parametrize("text", ["45.1→46.2", "82.4 (5.4)"])
def test_ambiguous_pairs_of_numbers_are_not_read(text: str) -> None:
    assert parse_printed(text) is None
