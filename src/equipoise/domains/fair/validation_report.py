"""The terminal report of the validation of a question set: counts, shares, thresholds, issues, sample sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.fair.answer_verification import ISSUE_MESSAGES, AnswerIssue, one_line
from equipoise.domains.fair.checks import TOO_FEW_QUESTIONS
from equipoise.domains.fair.questions import DIFFICULTIES, UNSPECIFIED
from equipoise.report.terminal import Paragraph, Part, ReportColumn, TerminalTable, findings_section, heading
from equipoise.report.view import StatusLine, ThresholdStatus
from equipoise.stats.formatting import format_count, format_value
from equipoise.types import Severity

if TYPE_CHECKING:
    from equipoise.domains.fair.validation import NearDuplicateQuestions, ValidationResult

MAX_LISTED = 10
"""The maximum number of lines of a list without --verbose."""
_NOT_VERIFIED = "not verified: no document given"
_MATCHING_RULES = {"words": "as whole words", "embedding-eval": "by the rule of embedding-eval"}
_FIXED_CHUNKS = re.compile(r"fixed\(chunk_size=(\d+), overlap=(\d+), tokenizer=([\w-]+)\)")


def validation_parts(
    result: ValidationResult, *, strict: bool = False, quiet: bool = False, verbose: bool = False
) -> list[Part]:
    """Status, counts, shares and thresholds; then, unless quiet, issues, sample sizes and findings.

    ``strict`` counts a minimum that is not met as a failure.
    """
    parts: list[Part] = [
        heading(f"Question set: {pluralize(result.total_questions, 'question')}"),
        _status(result, strict=strict),
        _answers(result),
        _duplicates(result),
    ]
    verification = result.verification
    if verification is not None and not quiet:
        rule = _MATCHING_RULES.get(verification.matcher, f"by the matcher {verification.matcher}")
        chunks = f"{pluralize(verification.chunks, 'chunk')} ({_chunk_settings(verification.chunking)})"
        method = f"Answers are matched {rule}; the text has {chunks}."
        parts.append(Paragraph(method, indent=4, style="dim"))
    if result.has_categories:
        names = sorted(result.category_counts, key=lambda name: -result.category_counts[name])
        parts += _shares("category", names, result.category_counts, result.category_percentages)
    if result.has_difficulties:
        known = [name for name in DIFFICULTIES if name in result.difficulty_counts]
        names = [*known, *(name for name in result.difficulty_counts if name not in known)]
        parts += _shares("difficulty", names, result.difficulty_counts, result.difficulty_percentages)
    parts += [Paragraph(""), heading("Thresholds"), *_thresholds(result)]
    if not quiet:
        for title, lines in _lists(result).items():
            parts += _listed(title, lines, verbose=verbose)
        parts += _sample_sizes(result)
        # The thresholds already show that there are too few questions.
        findings = [finding for finding in result.findings if finding.code != TOO_FEW_QUESTIONS]
        parts += findings_section(findings, verbose=verbose)
    return parts


def validation_table(result: ValidationResult) -> TerminalTable:
    """All numbers of the validation, one per row, for a file; yes is 1, and without a document answers are unknown."""
    numbers = {
        name: int(value) if isinstance(value, bool) else value
        for name, value in result.to_dict().items()
        if value is None or isinstance(value, int | float)
    }
    cells = ["n/a" if value is None else str(value) for value in numbers.values()]
    return TerminalTable([ReportColumn("name", list(numbers)), ReportColumn("value", cells, right=True)])


def _chunk_settings(chunking: str) -> str:
    """The settings of a chunker in words.

    >>> _chunk_settings("fixed(chunk_size=512, overlap=50, tokenizer=cl100k)")
    '512 tokens, overlap 50, cl100k'
    """
    match = _FIXED_CHUNKS.fullmatch(chunking)
    return f"{match[1]} tokens, overlap {match[2]}, {match[3]}" if match else chunking


def _answers(result: ValidationResult) -> StatusLine:
    if result.verification is None:
        return StatusLine(ThresholdStatus.UNKNOWN, f"Answers: {_NOT_VERIFIED}")
    text = f"Answers verified: {result.answers_found:,}/{result.total_questions:,}"
    if result.answers_missing:
        return StatusLine(ThresholdStatus.BAD, f"{text}; {result.answers_missing:,} not found")
    return StatusLine(ThresholdStatus.GOOD, f"{text} in the document")


def _duplicates(result: ValidationResult) -> StatusLine:
    if result.duplicates_found:
        return StatusLine(ThresholdStatus.BAD, f"Duplicates: {pluralize(result.duplicates_found, 'question')}")
    if result.near_duplicates:
        pairs = pluralize(len(result.near_duplicates), "near-duplicate pair")
        return StatusLine(ThresholdStatus.FAIR, f"Duplicates: none; {pairs}")
    return StatusLine(ThresholdStatus.GOOD, "Duplicates: none")


def _shares(kind: str, names: Sequence[str], counts: Mapping[str, int], shares: Mapping[str, float]) -> list[Part]:
    columns = [
        ReportColumn(kind, names, shortens="end"),
        ReportColumn("questions", [format_count(counts[name]) for name in names], right=True),
        ReportColumn("share", [f"{format_value(shares[name], 1)} %" for name in names], right=True),
    ]
    return [Paragraph(""), TerminalTable(columns)]


def _thresholds(result: ValidationResult) -> Iterator[StatusLine]:
    """The thresholds; those of categories and difficulties only if most of the questions have them."""
    limits = result.thresholds
    questions = (result.total_questions, limits.min_questions, limits.recommended_questions)
    yield _threshold(
        "Questions",
        [f"{number:,}" for number in questions],
        result.meets_min_questions,
        result.meets_recommended_questions,
    )
    if result.has_categories and not result.most_have_categories:
        yield _not_given("Multi-hop", "categories", result.category_counts[UNSPECIFIED], result.total_questions)
    elif result.has_categories:
        shares = (result.multihop_percentage, limits.min_multihop_pct, limits.recommended_multihop_pct)
        yield _threshold(
            "Multi-hop",
            [_short_percent(share) for share in shares],
            result.meets_min_multihop,
            result.meets_recommended_multihop,
        )
    if result.has_difficulties and not result.most_have_difficulties:
        yield _not_given("Hard", "difficulties", result.difficulty_counts[UNSPECIFIED], result.total_questions)
    elif result.has_difficulties:
        shares = (result.hard_percentage, limits.min_hard_pct, limits.recommended_hard_pct)
        yield _threshold(
            "Hard", [_short_percent(share) for share in shares], result.meets_min_hard, result.meets_recommended_hard
        )


def _not_given(label: str, labels: str, n_missing: int, n_questions: int) -> StatusLine:
    return StatusLine(
        ThresholdStatus.UNKNOWN, f"{label}: {labels} {UNSPECIFIED} for {n_missing:,} of {n_questions:,} questions"
    )


def _threshold(label: str, values: Sequence[str], meets_minimum: bool, meets_recommended: bool) -> StatusLine:
    """A line for a value, its minimum and its recommended value."""
    value, minimum, recommended = values
    reached = ThresholdStatus.GOOD if meets_recommended else ThresholdStatus.FAIR
    mark = reached if meets_minimum else ThresholdStatus.BAD
    return StatusLine(mark, f"{label}: {value} (minimum {minimum}, recommended {recommended})")


def _status(result: ValidationResult, *, strict: bool) -> StatusLine:
    reasons = [pluralize(result.answers_missing, "answer") + " missing"] if result.answers_missing else []
    reasons += [pluralize(result.duplicates_found, "duplicate question")] if result.duplicates_found else []
    unmet = [
        text
        for text, is_met in (
            ("fewer questions than the minimum", result.meets_min_questions),
            ("too few multi-hop questions", result.meets_min_multihop),
            ("too few hard questions", result.meets_min_hard),
        )
        if not is_met
    ]
    drafts = pluralize(result.drafts_found, "unedited draft") if result.drafts_found else ""
    if reasons:
        return StatusLine(ThresholdStatus.BAD, f"Status: invalid ({'; '.join(reasons)})")
    if strict and (unmet or drafts):
        reasons = [*unmet, drafts] if drafts else unmet
        return StatusLine(ThresholdStatus.BAD, f"Status: failed with --strict ({'; '.join(reasons)})")
    if drafts:
        rejected = f"{drafts}, which eq fair compare rejects without --allow-drafts"
        return StatusLine(ThresholdStatus.FAIR, f"Status: not edited ({'; '.join([rejected, *unmet])})")
    if not result.can_compare:
        n = pluralize(result.total_questions, "question")
        return StatusLine(
            ThresholdStatus.BAD, f"Status: too few to compare models (with {n} no difference can be detected)"
        )
    if not result.meets_min_questions:
        return StatusLine(ThresholdStatus.FAIR, f"Status: too few for reliable results ({'; '.join(unmet)})")
    if unmet:
        return StatusLine(ThresholdStatus.FAIR, f"Status: usable ({'; '.join(unmet)})")
    why = "every answer found, every minimum met" if result.verified else f"answers {_NOT_VERIFIED}"
    return StatusLine(ThresholdStatus.GOOD, f"Status: valid ({why})")


def _lists(result: ValidationResult) -> dict[str, list[str]]:
    by_severity = sorted(result.answer_issues, key=lambda issue: issue.severity != Severity.ISSUE)
    return {
        "Answers": [_issue_line(issue) for issue in by_severity],
        "Duplicate questions": [one_line(question) for question in result.duplicate_questions],
        "Near-duplicate questions": [_pair_line(pair) for pair in result.near_duplicates],
        "Unknown labels": [
            f'{label.kind} "{label.name}" of {pluralize(label.count, "question")}: {label.suggestion}'
            for label in result.unknown_names
        ],
    }


def _issue_line(issue: AnswerIssue) -> str:
    more = f"; {issue.suggestion}" if issue.suggestion else ""
    return f'{issue.question_id} "{one_line(issue.answer)}": {ISSUE_MESSAGES[issue.issue_type]}{more}'


def _pair_line(pair: NearDuplicateQuestions) -> str:
    answers = "the same answer" if pair.same_answer else "different answers"
    texts = f'"{one_line(pair.first)}" and "{one_line(pair.second)}"'
    return f"{texts}: similarity {format_value(pair.similarity, 2)}, {answers}"


def _listed(title: str, lines: Sequence[str], *, verbose: bool) -> list[Part]:
    """A list under its title, truncated to ``MAX_LISTED`` lines."""
    if not lines:
        return []
    shown = lines if verbose else lines[:MAX_LISTED]
    parts: list[Part] = [Paragraph(""), heading(title), *(Paragraph(line, indent=2, lead="- ") for line in shown)]
    n_more = len(lines) - len(shown)
    return [*parts, Paragraph(f"and {format_count(n_more)} more (-v shows all)", indent=4)] if n_more else parts


def _sample_sizes(result: ValidationResult) -> list[Part]:
    """The table of sample sizes, with the row of this question set marked."""
    rows = result.resolutions
    if not rows:
        return []
    marks = ["<- this question set" if row.n == result.total_questions else "" for row in rows]
    note = (
        f"The values are for an accuracy of {_short_percent(100 * rows[0].accuracy)} and Wilson intervals. The "
        "detectable difference is the smallest one that a paired test detects with 80 % power if the errors of two "
        "models are independent. If both fail on the same questions, smaller differences are detectable."
    )
    columns = [
        ReportColumn("questions", [format_count(row.n) for row in rows], right=True),
        ReportColumn("95 % interval", [f"± {_points(row.half_width)}" for row in rows], right=True),
        ReportColumn("detectable difference", [_points(row.detectable) for row in rows], right=True),
        ReportColumn("", marks),
    ]
    return [Paragraph(""), heading("Precision by number of questions"), TerminalTable(columns), Paragraph(note)]


def _points(fraction: float | None) -> str:
    """Percentage points, with a decimal if there are few.

    >>> _points(0.2104), _points(0.0251), _points(None)
    ('21 points', '2.5 points', 'none')
    """
    if fraction is None:
        return "none"
    return f"{format_value(100 * fraction, 0 if fraction >= 0.0995 else 1)} points"


def _short_percent(value: float) -> str:
    """A percentage with as many decimals as it has, at most one.

    >>> _short_percent(20.0), _short_percent(12.5)
    ('20 %', '12.5 %')
    """
    return f"{format_value(value, 1).removesuffix('.0')} %"
