"""The result of the validation of a fixture, and its thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from equipoise.errors import ParameterError
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
    def meets_min_questions(self) -> bool:
        """Whether there are as many questions as the minimum demands."""
        return self.total_questions >= self.thresholds.min_questions

    @property
    def meets_recommended_questions(self) -> bool:
        """Whether there are as many questions as recommended."""
        return self.total_questions >= self.thresholds.recommended_questions

    @property
    def meets_min_multihop(self) -> bool:
        """Whether the share of multi-hop questions reaches the minimum."""
        return self.multihop_percentage >= self.thresholds.min_multihop_pct

    @property
    def meets_recommended_multihop(self) -> bool:
        """Whether the share of multi-hop questions is as recommended."""
        return self.multihop_percentage >= self.thresholds.recommended_multihop_pct

    @property
    def meets_min_hard(self) -> bool:
        """Whether the share of hard questions reaches the minimum."""
        return self.hard_percentage >= self.thresholds.min_hard_pct

    @property
    def meets_recommended_hard(self) -> bool:
        """Whether the share of hard questions is as recommended."""
        return self.hard_percentage >= self.thresholds.recommended_hard_pct

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
        from equipoise.domains.fair.validation_report import fixture_text

        return fixture_text(validation_view(self))

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
