"""Results that say how they were measured are compared on equal terms, or not at all."""

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
def test_units_of_one_name_from_other_data_are_refused(part: str) -> None:
    same = {"document": "d" * 16, "questions": "q" * 16}
    one, other = result("a", data=same), result("b", data=same | {part: "x" * 16})
    with pytest.raises(PairingError, match=f"{part}") as caught:
        compare([one, other])
    assert caught.value.excerpt.splitlines()[1] == f"{part} of b: xxxxxxxxxxxx"
    compare([one, result("b", data=same)])


def test_another_rule_is_refused() -> None:
    with pytest.raises(PairingError):
        compare([result("a", matcher="words"), result("b", matcher="source")])


def test_a_third_result_is_held_to_the_first_that_says_something() -> None:
    with pytest.raises(PairingError):
        compare([result("a"), result("b", matcher="words"), result("c", matcher="source")])


def test_what_is_not_said_is_no_reason_to_refuse() -> None:
    assert compare([result("a", matcher="words", data={"document": "d"}), result("b")]).systems == ("a", "b")


def test_other_units_are_still_told_by_their_names() -> None:
    fewer = result_from_values("b", UNITS[:-1], {"accuracy": [1] * 19}, settings={"data": {"questions": "x"}})
    with pytest.raises(PairingError, match="1 only"):
        compare([result("a", data={"questions": "q"}), fewer])


def test_unequal_tuning_is_a_finding_and_the_verdict_says_so() -> None:
    found = compare([result("a", configurations=27), result("b", configurations=1)])
    assert found.findings[0].code == "EQ203"
    assert "not tuned on equal terms (EQ203)" in found.verdict()
    alike = compare([result("a", configurations=27), result("b", configurations=27)])
    assert "EQ203" not in {finding.code for finding in alike.findings}
    assert "equal terms" not in alike.verdict()
