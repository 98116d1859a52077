"""The report on a question set, in several encodings."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from equipoise.domains.fair.answer_verification import AnswerIssue, AnswerVerification
from equipoise.domains.fair.checks import AnswerOccurrences
from equipoise.domains.fair.validation import FixtureThresholds, SampleSizePower, ValidationResult
from equipoise.domains.fair.validation_report import MAX_LISTED, validation_parts
from equipoise.types import Finding, Severity

OCCURRENCES = tuple(AnswerOccurrences(f"q{number}", "rye", 1, 1) for number in range(60))
RESULT = ValidationResult(
    60,
    {"exact": 45, "multi_hop": 15},
    {"easy": 60},
    FixtureThresholds(),
    AnswerVerification("words", "fixed", 40, OCCURRENCES),
    answer_issues=tuple(
        AnswerIssue("Where?", f"answer {number}", "ambiguous", None, Severity.TIP) for number in range(MAX_LISTED + 2)
    ),
    duplicate_questions=("Who?",),
    resolutions=(SampleSizePower(2, 0.38, None), SampleSizePower(60, 0.1, 0.208)),
    findings=(Finding("EQ111", Severity.ISSUE, "the question set", "is repeated", "remove it", ("q 60",)),),
)


def render(result: ValidationResult = RESULT, encoding: str = "utf-8", **options: Any) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    parts = validation_parts(result, **options)
    Console(file=stream, width=90, highlight=False, markup=False).print(*parts, sep="\n", crop=False)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_status_counts_shares_and_thresholds_are_in_this_order() -> None:
    text = RESULT.summary
    order = [
        "Question set: 60 questions", "✗ Status: invalid (1 duplicate question)", "✓ Answers verified",
        "exact             45  75.0 %", "~ Questions: 60", "✗ Hard: 0 %", "EQ111",
    ]  # fmt: skip
    positions = [text.index(line) for line in order]
    assert positions == sorted(positions)


def test_a_quiet_report_has_no_hints() -> None:
    text = render(quiet=True)
    assert "✗ Status: invalid" in text
    for left_out in ("answer 0", "EQ111", "95 % interval"):
        assert left_out not in text


def test_long_lists_are_shortened_unless_verbose() -> None:
    shortened, complete = render(), render(verbose=True)
    assert "and 2 more (-v shows all)" in shortened
    assert f"answer {MAX_LISTED + 1}" not in shortened
    assert f"answer {MAX_LISTED + 1}" in complete
    assert "q 60" in complete
    assert "Unknown labels" not in complete


def test_the_row_of_this_question_set_is_marked_and_an_undefined_value_is_none() -> None:
    rows = [line for line in RESULT.summary.splitlines() if "±" in line]
    assert rows[0].split() == ["2", "±", "38", "points", "none"]
    assert rows[1].endswith("21 points  <- this question set")


def test_an_encoding_without_the_marks_gets_letters() -> None:
    text = render(encoding="ascii", quiet=True)
    assert "+ Answers verified" in text
    assert "x Hard: 0 %" in text


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", ":smile:"])
def test_markup_in_names_is_not_interpreted(name: str) -> None:
    result = replace(RESULT, category_counts={name: 60}, duplicate_questions=(name,))
    assert result.summary.count(name) == 2


def test_control_characters_in_names_are_escaped() -> None:
    assert "\x1b" not in replace(RESULT, category_counts={"\x1b[2J": 60}).summary


def test_one_question_is_in_the_singular() -> None:
    assert replace(RESULT, total_questions=1).summary.startswith("Question set: 1 question\n")
