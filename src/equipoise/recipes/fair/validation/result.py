"""What the validation of a fixture found, with everything that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from equipoise.checks.fixture import AnswerPlaces
from equipoise.recipes.fair.validation.duplicates import NearDuplicate
from equipoise.recipes.fair.validation.names import UnknownName
from equipoise.recipes.fair.validation.power import Resolution
from equipoise.recipes.fair.validation.thresholds import Thresholds
from equipoise.types import Finding, Severity


@dataclass(frozen=True, slots=True)
class AnswerIssue:
    """Something about an answer. One that is missing is an issue, everything else a tip."""

    question: str
    answer: str
    issue_type: str
    suggestion: str | None = None
    severity: Severity = Severity.ISSUE
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """How the answers were looked for, and where each of them stands."""

    matcher: str
    chunking: str
    chunks: int
    answers: tuple[AnswerPlaces, ...]

    @property
    def missing(self) -> tuple[AnswerPlaces, ...]:
        """The answers that the document does not hold."""
        return tuple(each for each in self.answers if not each.places)


@dataclass(frozen=True)
class ValidationResult:
    """Counts, shares, thresholds and complaints; percentages are out of 100.

    Without a document nothing is verified: ``answers_found`` and ``answers_missing`` are None.
    """

    total_questions: int
    category_counts: Mapping[str, int]
    difficulty_counts: Mapping[str, int]
    thresholds: Thresholds
    verification: Verification | None = None
    answer_issues: tuple[AnswerIssue, ...] = ()
    duplicate_questions: tuple[str, ...] = ()
    near_duplicates: tuple[NearDuplicate, ...] = ()
    unknown_names: tuple[UnknownName, ...] = ()
    resolutions: tuple[Resolution, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    def __repr__(self) -> str:
        state = "valid" if self.is_valid else "invalid"
        return f"<ValidationResult {state}: {self.total_questions} questions, {len(self.findings)} findings>"

    @property
    def verified(self) -> bool:
        """Whether there was a document to look into."""
        return self.verification is not None

    @property
    def answers_found(self) -> int | None:
        """How many answers the document holds; None where there was no document."""
        return None if self.verification is None else self.total_questions - len(self.verification.missing)

    @property
    def answers_missing(self) -> int | None:
        """How many answers the document does not hold; None where there was no document."""
        return None if self.verification is None else len(self.verification.missing)

    @property
    def duplicates_found(self) -> int:
        """How many questions an earlier one equals."""
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
        """Whether no answer is missing, no question stands twice, and every minimum is met."""
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
        return next((each.detectable for each in self.resolutions if each.n == self.total_questions), None)

    @property
    def summary(self) -> str:
        """The whole report as text for people."""
        from equipoise.recipes.fair.validation.view import report_of
        from equipoise.report.fixture import fixture_text

        return fixture_text(report_of(self))

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
            **{name: [asdict(each) for each in getattr(self, name)] for name in parts},
            "thresholds": asdict(self.thresholds),
            "verification": asdict(self.verification) if self.verification is not None else None,
        }
