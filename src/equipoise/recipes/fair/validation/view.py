"""The result of a validation as the report shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.checks.base import counted
from equipoise.data.fixture import DIFFICULTIES, NOT_GIVEN
from equipoise.recipes.fair.validation.answers import MEANINGS, one_line
from equipoise.recipes.fair.validation.duplicates import NearDuplicate
from equipoise.recipes.fair.validation.result import AnswerIssue, ValidationResult
from equipoise.report.fixture import FixtureReport, Line, Mark, Share, SizeRow
from equipoise.stats.numbers import figure
from equipoise.types import Severity

NOT_VERIFIED = "not verified: no document given"


def report_of(result: ValidationResult) -> FixtureReport:
    """Everything in the order of the page."""
    categories = sorted(result.category_counts, key=lambda name: -result.category_counts[name])
    difficulties = sorted(result.difficulty_counts, key=_rank_of_difficulty)
    return FixtureReport(
        questions=result.total_questions,
        facts=(_answers(result), _duplicates(result)),
        method=_method(result),
        categories=_shares(categories, result.category_counts, result.category_percentages),
        difficulties=_shares(difficulties, result.difficulty_counts, result.difficulty_percentages),
        thresholds=_thresholds(result),
        status=_status(result),
        sizes=_sizes(result),
        sizes_note=_sizes_note(result),
        lists=_lists(result),
        findings=result.findings,
    )


def _answers(result: ValidationResult) -> Line:
    found = result.verification
    if found is None:
        return Line(Mark.UNKNOWN, f"Answers: {NOT_VERIFIED}")
    text = f"Answers verified: {result.answers_found:,}/{result.total_questions:,}"
    if result.answers_missing:
        return Line(Mark.BAD, f"{text}; {result.answers_missing:,} not in the document")
    return Line(Mark.GOOD, f"{text} in the document")


def _method(result: ValidationResult) -> str:
    """By which rule the answers were looked for, and in what."""
    found = result.verification
    if found is None:
        return ""
    return f"matched by the rule {found.matcher}, in {counted(found.chunks, 'chunk')} of {found.chunking}"


def _duplicates(result: ValidationResult) -> Line:
    if result.duplicates_found:
        return Line(Mark.BAD, f"Duplicates: {counted(result.duplicates_found, 'question')} asked before")
    if result.near_duplicates:
        return Line(Mark.FAIR, f"Duplicates: none; {counted(len(result.near_duplicates), 'pair')} nearly so")
    return Line(Mark.GOOD, "Duplicates: none")


def _shares(
    names: list[str], counts: Mapping[str, int], percentages: Mapping[str, float]
) -> tuple[Share, ...]:
    return tuple(Share(name, counts[name], percentages[name]) for name in names)


def _rank_of_difficulty(name: str) -> int:
    """Easy before hard; what nobody knows comes last."""
    known = list(DIFFICULTIES)
    return known.index(name) if name in known else len(known)


def _thresholds(result: ValidationResult) -> tuple[Line, ...]:
    limits = result.thresholds
    multihop = _given_share(result.multihop_percentage, result.category_counts)
    hard = _given_share(result.hard_percentage, result.difficulty_counts)
    rows = (
        ("Questions", f"{result.total_questions:,}", result.meets_min_questions,
         result.meets_recommended_questions, f"{limits.min_questions:,}",
         f"{limits.recommended_questions:,}"),
        ("Multi-hop", multihop, result.meets_min_multihop, result.meets_recommended_multihop,
         _percent(limits.min_multihop_pct), _percent(limits.recommended_multihop_pct)),
        ("Hard", hard, result.meets_min_hard, result.meets_recommended_hard,
         _percent(limits.min_hard_pct), _percent(limits.recommended_hard_pct)),
    )  # fmt: skip
    return tuple(_threshold(*row) for row in rows)


def _threshold(label: str, value: str, least_met: bool, met: bool, least: str, wanted: str) -> Line:
    demand = f"minimum {least}, recommended {wanted}"
    mark = Mark.BAD if not least_met else Mark.GOOD if met else Mark.FAIR
    return Line(mark, f"{label}: {value} ({demand})")


def _given_share(share: float, counts: Mapping[str, int]) -> str:
    """A share of the questions; unknown where none says what it is."""
    return _percent(share) if set(counts) - {NOT_GIVEN} else NOT_GIVEN


def _status(result: ValidationResult) -> Line:
    against = list(_against(result))
    if against:
        return Line(Mark.BAD, f"Status: invalid ({'; '.join(against)})", indent=0)
    if not result.verified:
        return Line(Mark.GOOD, f"Status: valid, as far as it was checked (answers {NOT_VERIFIED})", indent=0)
    return Line(Mark.GOOD, "Status: valid (every answer found, every minimum met)", indent=0)


def _against(result: ValidationResult) -> Iterator[str]:
    """What makes the fixture invalid."""
    if result.answers_missing:
        yield f"{counted(result.answers_missing, 'answer')} missing"
    if result.duplicates_found:
        yield counted(result.duplicates_found, "duplicate question")
    if not result.meets_min_questions:
        yield "too few questions"
    if not result.meets_min_multihop:
        yield _lacking("multi-hop", "category", result.category_counts)
    if not result.meets_min_hard:
        yield _lacking("hard", "difficulty", result.difficulty_counts)


def _lacking(name: str, kind: str, counts: Mapping[str, int]) -> str:
    return f"too few {name} questions" if set(counts) - {NOT_GIVEN} else f"no {kind} is given"


def _sizes(result: ValidationResult) -> tuple[SizeRow, ...]:
    return tuple(
        SizeRow(
            each.n,
            100 * each.half_width,
            None if each.detectable is None else 100 * each.detectable,
            each.n == result.total_questions,
        )
        for each in result.resolutions
    )


def _sizes_note(result: ValidationResult) -> str:
    accuracy = _percent(100 * result.resolutions[0].accuracy) if result.resolutions else ""
    return (
        f"For systems of accuracy {accuracy}: the half-width of the Wilson interval, and the smallest "
        "difference that a paired test shows four times in five when two systems err independently. Systems "
        "that fail on the same questions are told apart by smaller differences."
    )


def _lists(result: ValidationResult) -> dict[str, list[str]]:
    graver = sorted(result.answer_issues, key=lambda each: each.severity != Severity.ISSUE)
    return {
        "Answers": [_issue_line(each) for each in graver],
        "Questions asked before": [one_line(each) for each in result.duplicate_questions],
        "Questions that are nearly the same": [
            f'"{one_line(each.first)}" and "{one_line(each.second)}": {_alike(each)}'
            for each in result.near_duplicates
        ],
        "Unusual names": [
            f'{each.kind} "{each.name}" of {counted(each.count, "question")}: {each.suggestion}'
            for each in result.unknown_names
        ],
    }


def _alike(pair: NearDuplicate) -> str:
    answers = "the same answer" if pair.same_answer else "different answers"
    return f"similarity {figure(pair.similarity, 2)}, {answers}"


def _issue_line(issue: AnswerIssue) -> str:
    more = f"; {issue.suggestion}" if issue.suggestion else ""
    return f'{issue.question_id} "{one_line(issue.answer)}": {MEANINGS[issue.issue_type]}{more}'


def _percent(value: float) -> str:
    """A percentage with as many decimals as it has, at most one.

    >>> _percent(20.0), _percent(12.5)
    ('20 %', '12.5 %')
    """
    return f"{figure(value, 1).removesuffix('.0')} %"
