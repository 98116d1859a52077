"""The result of the validation of a question set, its thresholds, and its terminal report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.domains.fair.questions import UNSPECIFIED
from equipoise.errors import ParameterError
from equipoise.report.terminal import (
    Paragraph,
    Part,
    ReportColumn,
    TerminalTable,
    findings_section,
    heading,
)
from equipoise.report.view import StatusLine
from equipoise.stats.formatting import format_count, format_value
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.domains.fair.checks import AnswerOccurrences
    from equipoise.domains.fair.validation import NearDuplicateQuestions, SampleSizePower, UnknownLabel


@dataclass(frozen=True, slots=True)
class FixtureThresholds:
    """Numbers of questions, and shares of them in percent.

    >>> FixtureThresholds(min_hard_pct=130)
    Traceback (most recent call last):
    equipoise.errors.ParameterError: min_hard_pct is 130; a percentage is between 0 and 100
    """

    min_questions: int = 50
    recommended_questions: int = 80
    min_multihop_pct: float = 10.0
    recommended_multihop_pct: float = 20.0
    min_hard_pct: float = 30.0
    recommended_hard_pct: float = 40.0

    def __post_init__(self) -> None:
        for threshold in fields(self):
            value = getattr(self, threshold.name)
            is_integer = not threshold.name.endswith("_pct")
            if isinstance(value, bool) or not isinstance(value, int if is_integer else (int, float)):
                kind = "an integer" if is_integer else "a number"
                raise ParameterError(f"{threshold.name} is {value!r}; it must be {kind}")
            if is_integer and value < 0:
                raise ParameterError(f"{threshold.name} is {value}; it cannot be below 0")
            if not is_integer and not 0 <= value <= 100:
                raise ParameterError(
                    f"{threshold.name} is {value}; a percentage is between 0 and 100",
                    hint="write 10 for 10 %",
                )


@dataclass(frozen=True, slots=True)
class AnswerIssue:
    """An issue of an answer. A missing answer has the severity issue, everything else is a tip."""

    question: str
    answer: str
    issue_type: str
    suggestion: str | None = None
    severity: Severity = Severity.ISSUE
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class AnswerVerification:
    """The matcher, the chunks and the occurrences of each answer."""

    matcher: str
    chunking: str
    chunks: int
    answers: tuple[AnswerOccurrences, ...]

    @property
    def missing(self) -> tuple[AnswerOccurrences, ...]:
        """The answers that are not in the document."""
        return tuple(answer for answer in self.answers if not answer.places)


@dataclass(frozen=True)
class ValidationResult:
    """Counts, shares, thresholds, issues and findings; shares are in percent.

    Without a document nothing is verified: ``answers_found`` and ``answers_missing`` are None.
    """

    total_questions: int
    category_counts: Mapping[str, int]
    difficulty_counts: Mapping[str, int]
    thresholds: FixtureThresholds
    verification: AnswerVerification | None = None
    answer_issues: tuple[AnswerIssue, ...] = ()
    duplicate_questions: tuple[str, ...] = ()
    near_duplicates: tuple[NearDuplicateQuestions, ...] = ()
    unknown_names: tuple[UnknownLabel, ...] = ()
    resolutions: tuple[SampleSizePower, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    def __repr__(self) -> str:
        state = "valid" if self.is_valid else "invalid"
        return f"<ValidationResult {state}: {self.total_questions} questions, {len(self.findings)} findings>"

    @property
    def verified(self) -> bool:
        """Whether a document was passed."""
        return self.verification is not None

    @property
    def answers_found(self) -> int | None:
        """The number of answers in the document; None without a document."""
        return None if self.verification is None else self.total_questions - len(self.verification.missing)

    @property
    def answers_missing(self) -> int | None:
        """The number of answers not in the document; None without a document."""
        return None if self.verification is None else len(self.verification.missing)

    @property
    def duplicates_found(self) -> int:
        """The number of duplicate questions."""
        return len(self.duplicate_questions)

    @property
    def category_percentages(self) -> dict[str, float]:
        """The share of each category."""
        return {name: 100 * count / self.total_questions for name, count in self.category_counts.items()}

    @property
    def difficulty_percentages(self) -> dict[str, float]:
        """The share of each difficulty."""
        return {name: 100 * count / self.total_questions for name, count in self.difficulty_counts.items()}

    @property
    def multihop_percentage(self) -> float:
        """The share of questions that connect several facts."""
        return self.category_percentages.get("multi_hop", 0.0)

    @property
    def hard_percentage(self) -> float:
        """The share of hard questions."""
        return self.difficulty_percentages.get("hard", 0.0)

    @property
    def has_categories(self) -> bool:
        """Whether any question has a category, which is optional."""
        return bool(set(self.category_counts) - {UNSPECIFIED})

    @property
    def has_difficulties(self) -> bool:
        """Whether any question has a difficulty, which is optional."""
        return bool(set(self.difficulty_counts) - {UNSPECIFIED})

    @property
    def meets_min_questions(self) -> bool:
        """Whether there are as many questions as the minimum demands."""
        return self.total_questions >= self.thresholds.min_questions

    @property
    def meets_recommended_questions(self) -> bool:
        """Whether there are as many questions as recommended."""
        return self.total_questions >= self.thresholds.recommended_questions

    @property
    def meets_min_multihop(self) -> bool:
        """Whether the share of multi-hop questions reaches the minimum; without categories there is no minimum."""
        return not self.has_categories or self.multihop_percentage >= self.thresholds.min_multihop_pct

    @property
    def meets_recommended_multihop(self) -> bool:
        """Whether the share of multi-hop questions is as recommended, or there are no categories."""
        return not self.has_categories or self.multihop_percentage >= self.thresholds.recommended_multihop_pct

    @property
    def meets_min_hard(self) -> bool:
        """Whether the share of hard questions reaches the minimum; without difficulties there is no minimum."""
        return not self.has_difficulties or self.hard_percentage >= self.thresholds.min_hard_pct

    @property
    def meets_recommended_hard(self) -> bool:
        """Whether the share of hard questions is as recommended, or there are no difficulties."""
        return not self.has_difficulties or self.hard_percentage >= self.thresholds.recommended_hard_pct

    @property
    def is_valid(self) -> bool:
        """Whether no answer is missing, there are no duplicate questions, and every minimum is met."""
        return (
            not self.answers_missing
            and not self.duplicate_questions
            and self.meets_min_questions
            and self.meets_min_multihop
            and self.meets_min_hard
        )

    @property
    def detectable(self) -> float | None:
        """The smallest difference that these questions show four times in five; a fraction."""
        return next(
            (resolution.detectable for resolution in self.resolutions if resolution.n == self.total_questions), None
        )

    @property
    def summary(self) -> str:
        """The is_integer report as text for people."""
        from equipoise.domains.fair.report import validation_view

        return validation_text(validation_view(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = (
            "total_questions", "verified", "answers_found", "answers_missing", "duplicates_found",
            "category_counts", "difficulty_counts", "category_percentages", "difficulty_percentages",
            "multihop_percentage", "hard_percentage", "meets_min_questions", "meets_recommended_questions",
            "meets_min_multihop", "meets_recommended_multihop", "meets_min_hard", "meets_recommended_hard",
            "is_valid", "duplicate_questions", "detectable",
        )  # fmt: skip
        parts = ("answer_issues", "near_duplicates", "unknown_names", "resolutions", "findings")
        return {
            **{name: getattr(self, name) for name in names},
            **{name: [asdict(item) for item in getattr(self, name)] for name in parts},
            "thresholds": asdict(self.thresholds),
            "verification": asdict(self.verification) if self.verification is not None else None,
        }


# The terminal report of a question set validation: counts, shares, thresholds, issues, detectable differences.

MAX_LISTED = 10
"""The maximum number of lines of a list without --verbose."""

TEXT_WIDTH = 100


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """The number and percentage of questions with a label."""

    name: str
    count: int
    percentage: float


@dataclass(frozen=True, slots=True)
class SampleSizeRow:
    """The precision of ``n`` questions, in percentage points; ``detectable`` is None if no difference is."""

    n: int
    half_width: float
    detectable: float | None
    here: bool


@dataclass(frozen=True)
class ValidationData:
    """The data of the report."""

    questions: int
    facts: Sequence[StatusLine]
    categories: Sequence[CategoryCount]
    difficulties: Sequence[CategoryCount]
    thresholds: Sequence[StatusLine]
    status: StatusLine
    method: str = ""
    sizes: Sequence[SampleSizeRow] = ()
    sizes_note: str = ""
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    findings: Sequence[Finding] = ()


def validation_parts(report: ValidationData, *, quiet: bool = False, verbose: bool = False) -> list[Part]:
    """Counts, shares, thresholds and status; then, unless quiet, issues, sample sizes and findings."""
    parts: list[Part] = [heading(f"Question set: {pluralize(report.questions, 'question')}"), *report.facts]
    parts += [Paragraph(report.method, indent=4, style="dim")] if report.method and not quiet else []
    parts += _shares("category", report.categories)
    parts += _shares("difficulty", report.difficulties)
    parts += [Paragraph(""), heading("Thresholds"), *report.thresholds]
    if not quiet:
        for title, lines in report.lists.items():
            parts += _listed(title, lines, verbose=verbose)
        parts += _sizes(report)
        parts += findings_section(report.findings, verbose=verbose)
    return [*parts, Paragraph(""), report.status]


def validation_text(report: ValidationData) -> str:
    """The report as plain text."""
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    screen = Console(file=stream, width=TEXT_WIDTH, color_system=None, highlight=False, markup=False, emoji=False)
    screen.print(*validation_parts(report), sep="\n", crop=False)
    return stream.getvalue().rstrip("\n")


def _shares(kind: str, shares: Sequence[CategoryCount]) -> list[Part]:
    if not shares:
        return []
    return [
        Paragraph(""),
        TerminalTable(
            [
                ReportColumn(kind, [share.name for share in shares], shortens="end"),
                ReportColumn("questions", [format_count(share.count) for share in shares], right=True),
                ReportColumn("share", [f"{format_value(share.percentage, 1)} %" for share in shares], right=True),
            ]
        ),
    ]


def _listed(title: str, lines: Sequence[str], *, verbose: bool) -> list[Part]:
    """A list under its title, truncated to ``MAX_LISTED`` lines."""
    if not lines:
        return []
    shown = lines if verbose else lines[:MAX_LISTED]
    parts: list[Part] = [
        Paragraph(""),
        heading(title),
        *(Paragraph(line, indent=2, lead="- ") for line in shown),
    ]
    rest = len(lines) - len(shown)
    return [*parts, Paragraph(f"and {format_count(rest)} more (-v shows all)", indent=4)] if rest else parts


def _sizes(report: ValidationData) -> list[Part]:
    """The table of sample sizes, with the row of this question set marked."""
    if not report.sizes:
        return []
    rows = report.sizes
    return [
        Paragraph(""),
        heading("Precision by number of questions"),
        TerminalTable(
            [
                ReportColumn("questions", [format_count(row.n) for row in rows], right=True),
                ReportColumn("95 % interval", [f"± {_points(row.half_width)}" for row in rows], right=True),
                ReportColumn("detectable difference", [_detectable(row) for row in rows], right=True),
                ReportColumn("", ["<- this question set" if row.here else "" for row in rows]),
            ]
        ),
        Paragraph(report.sizes_note),
    ]


def _detectable(row: SampleSizeRow) -> str:
    return "none" if row.detectable is None else _points(row.detectable)


def _points(value: float) -> str:
    """Percentage points, with a decimal if there are few.

    >>> _points(21.04), _points(2.51)
    ('21 points', '2.5 points')
    """
    return f"{format_value(value, 0 if value >= 9.95 else 1)} points"
