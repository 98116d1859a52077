"""What the report on a fixture says, on any screen."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from equipoise.domains.fair.validation_result import (
    MAX_LISTED,
    CategoryCount,
    SampleSizeRow,
    ValidationData,
    validation_parts,
    validation_text,
)
from equipoise.report.view import StatusLine, ThresholdStatus
from equipoise.types import Finding, Severity


def report(**changes: object) -> ValidationData:
    parts: dict[str, object] = {
        "questions": 60,
        "facts": (StatusLine(ThresholdStatus.GOOD, "Answers verified: 60/60"),),
        "categories": (CategoryCount("exact", 45, 75.0), CategoryCount("multi_hop", 15, 25.0)),
        "difficulties": (CategoryCount("easy", 60, 100.0),),
        "thresholds": (
            StatusLine(ThresholdStatus.FAIR, "Questions: 60"),
            StatusLine(ThresholdStatus.BAD, "Hard: 0 %"),
        ),
        "status": StatusLine(ThresholdStatus.BAD, "Status: invalid", indent=0),
        "sizes": (SampleSizeRow(2, 38.0, None, False), SampleSizeRow(60, 10.0, 20.8, True)),
        "sizes_note": "For systems of accuracy 80 %.",
        "lists": {"Answers": [f"answer {number}" for number in range(MAX_LISTED + 2)], "Names": []},
        "findings": (Finding("EQ105", Severity.ISSUE, "the question set", "is small", "write more", ("n 60",)),),
    }
    return ValidationData(**{**parts, **changes})  # type: ignore[arg-type]


def printed(parts: list[object], encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=stream, width=90, highlight=False, markup=False).print(*parts, sep="\n", crop=False)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_counts_shares_thresholds_and_status_stand_in_this_order() -> None:
    text = validation_text(report())
    order = [
        "Question set: 60 questions", "✓ Answers verified", "exact             45  75.0 %", "~ Questions: 60",
        "✗ Hard: 0 %", "EQ105", "✗ Status: invalid",
    ]  # fmt: skip
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert text.splitlines()[-1] == "✗ Status: invalid"


def test_a_quiet_report_has_no_advice() -> None:
    text = printed(validation_parts(report(), quiet=True))
    assert "✗ Status: invalid" in text
    for gone in ("answer 0", "EQ105", "95 % interval"):
        assert gone not in text


def test_long_lists_are_cut_unless_all_is_asked_for() -> None:
    short, whole = (printed(validation_parts(report(), verbose=verbose)) for verbose in (False, True))
    assert "and 2 more (-v shows all)" in short
    assert f"answer {MAX_LISTED + 1}" not in short
    assert f"answer {MAX_LISTED + 1}" in whole
    assert "n 60" in whole
    assert "Names" not in whole


def test_the_row_of_this_fixture_is_pointed_at_and_nothing_is_none() -> None:
    rows = [line for line in validation_text(report()).splitlines() if "±" in line]
    assert rows[0].split() == ["2", "±", "38", "points", "none"]
    assert rows[1].endswith("21 points  <- this question set")


def test_a_screen_without_the_marks_gets_letters() -> None:
    text = printed(validation_parts(report(sizes=())), encoding="ascii")
    assert "+ Answers verified" in text
    assert "x Hard: 0 %" in text


@pytest.mark.parametrize("hostile", ["[bold]x[/bold]", "[/]", ":smile:"])
def test_names_are_shown_as_they_are(hostile: str) -> None:
    hostile_report = report(categories=(CategoryCount(hostile, 60, 100.0),), lists={"Names": [hostile]})
    assert hostile in validation_text(hostile_report)


def test_one_question_is_no_plural() -> None:
    assert validation_text(report(questions=1)).startswith("Question set: 1 question\n")
