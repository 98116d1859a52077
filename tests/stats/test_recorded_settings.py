"""Comparisons check the recorded data, matcher and number of configurations of results."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.errors import PairingError
from equipoise.runs.compare import compare
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result

UNITS = [f"q{number}" for number in range(1, 21)]


def result(system: str, **settings: Any) -> Result:
    values = [1, 0] * 10 if system == "a" else [0, 0, 1, 1] * 5
    return result_from_values(system, UNITS, {"accuracy": values}, settings=settings)


@pytest.mark.parametrize("part", ["document", "questions"])
def test_equal_unit_ids_of_different_data_raise_pairing_error(part: str) -> None:
    data = {"document": "d" * 16, "questions": "q" * 16}
    one, other = result("a", data=data), result("b", data=data | {part: "x" * 16})
    with pytest.raises(PairingError, match=f"{part}") as error:
        compare([one, other])
    assert error.value.excerpt.splitlines()[1] == f"{part} of b: xxxxxxxxxxxx"
    compare([one, result("b", data=data)])


def test_different_matchers_raise_pairing_error() -> None:
    with pytest.raises(PairingError):
        compare([result("a", matcher="words"), result("b", matcher="embedding-eval")])


def test_results_are_compared_with_the_first_recorded_matcher() -> None:
    with pytest.raises(PairingError):
        compare([result("a"), result("b", matcher="words"), result("c", matcher="embedding-eval")])


def test_unrecorded_settings_are_not_compared() -> None:
    assert compare([result("a", matcher="words", data={"document": "d"}), result("b")]).systems == ("a", "b")


def test_different_unit_ids_raise_pairing_error() -> None:
    fewer = result_from_values("b", UNITS[:-1], {"accuracy": [1] * 19}, settings={"data": {"questions": "x"}})
    with pytest.raises(PairingError, match="1 only"):
        compare([result("a", data={"questions": "q"}), fewer])


def test_unequal_tuning_gives_a_finding_and_a_note_in_the_verdict() -> None:
    comparison = compare([result("a", configurations=27), result("b", configurations=1)])
    assert comparison.findings[0].code == "EQ203"
    assert "not tuned on equal terms (EQ203)" in comparison.verdict()
    equally_tuned = compare([result("a", configurations=27), result("b", configurations=27)])
    assert "EQ203" not in {finding.code for finding in equally_tuned.findings}
    assert "equal terms" not in equally_tuned.verdict()
