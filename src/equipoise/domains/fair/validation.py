"""Validation of a question set: labels, duplicate questions, answers, sample size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import run_checks
from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.answer_matching import answer_matcher as matcher_named
from equipoise.domains.fair.answer_verification import (
    AnswerIssue,
    AnswerVerification,
    AnswerVerifier,
    leaking_answers,
    one_line,
)
from equipoise.domains.fair.checks import (
    ACCURACY,
    AnswersInDocument,
    QuestionSet,
    RetrievedFraction,
    SampleSize,
    chunking_sizes,
)
from equipoise.domains.fair.chunk_index import ChunkingParams
from equipoise.domains.fair.config import FairConfig, fitted_settings
from equipoise.domains.fair.questions import CATEGORIES, DIFFICULTIES, UNSPECIFIED, QuestionAnswer, check_questions
from equipoise.errors import InputError, ParameterError, did_you_mean
from equipoise.io.documents import TextDocument
from equipoise.models.chunking import FixedSizeChunker
from equipoise.models.tokenizers import check_text, tokenizer_for
from equipoise.types import Finding

if TYPE_CHECKING:
    from equipoise.types import Floats


@dataclass(frozen=True, slots=True)
class UnknownLabel:
    """An unknown category or difficulty, the number of questions with it, and a suggestion."""

    kind: str
    name: str
    count: int
    suggestion: str


def unknown_labels(questions: Sequence[QuestionAnswer]) -> list[UnknownLabel]:
    """Unknown categories and difficulties, in the order of first use.

    >>> unknown_labels([QuestionAnswer("q1", "Where?", "here", category="multihop")])[0].suggestion
    'did you mean multi_hop?'
    """
    return [
        *_unknown("category", questions, CATEGORIES),
        *_unknown("difficulty", questions, DIFFICULTIES),
    ]


def _unknown(kind: str, questions: Sequence[QuestionAnswer], labels: Iterable[str]) -> list[UnknownLabel]:
    known_names = list(labels)
    names = (question.kinds[kind] for question in questions if kind in question.kinds)
    return [
        UnknownLabel(kind, name, count, did_you_mean(name, known_names) or f"known: {', '.join(known_names)}")
        for name, count in Counter(names).items()
        if name not in known_names
    ]


# Duplicate and near-duplicate questions.

NEAR_DUPLICATE_SIMILARITY = 0.7
"""Questions with the same answer that are at least this similar are near-duplicates."""

SAME_ANSWER_SIMILARITY = 0.9
"""Questions with different answers are near-duplicates from this similarity on, if they have the same numbers."""

_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NearDuplicateQuestions:
    """Two near-duplicate questions.

    ``similarity`` is the Jaccard similarity of their character trigrams, ignoring case, punctuation and white
    space.
    """

    first: str
    second: str
    similarity: float
    same_answer: bool


def duplicate_questions(questions: Sequence[QuestionAnswer]) -> list[QuestionAnswer]:
    """The questions that an earlier one equals after normalisation.

    >>> pairs = [QuestionAnswer("a", "Who was it?", "Ada"), QuestionAnswer("b", "who  was it?", "Ada")]
    >>> [pair.id for pair in duplicate_questions(pairs)]
    ['b']
    """
    texts: set[str] = set()
    repeated = []
    for question in questions:
        key = normalize_answer(question.question)
        if key in texts:
            repeated.append(question)
        texts.add(key)
    return repeated


def near_duplicates(questions: Sequence[QuestionAnswer]) -> list[NearDuplicateQuestions]:
    """Pairs of unequal questions whose similarity exceeds the threshold, which is lower where answers are equal.

    >>> texts = ["Who wrote the first program?", "Who wrote a first program"]
    >>> pairs = [QuestionAnswer(f"q{number}", text, "Ada") for number, text in enumerate(texts)]
    >>> [(pair.first, pair.same_answer) for pair in near_duplicates(pairs)]
    [('Who wrote the first program?', True)]
    """
    unique_questions = list(
        {normalize_answer(question.question): question for question in reversed(questions)}.values()
    )[::-1]
    answers = [set(map(normalize_answer, question.answers)) for question in unique_questions]
    numbers = [_NUMBER.findall(question.question) for question in unique_questions]
    duplicates = []
    for first, second, similarity in similar_pairs(
        [question.question for question in unique_questions], NEAR_DUPLICATE_SIMILARITY
    ):
        same_answer = bool(answers[first] & answers[second])
        if same_answer or (similarity >= SAME_ANSWER_SIMILARITY and numbers[first] == numbers[second]):
            duplicates.append(
                NearDuplicateQuestions(
                    unique_questions[first].question, unique_questions[second].question, similarity, same_answer
                )
            )
    return duplicates


def similar_pairs(texts: Sequence[str], minimum: float) -> list[tuple[int, int, float]]:
    """Index pairs of all texts with at least this Jaccard similarity, first before second."""
    grams = [character_trigrams(text) for text in texts]
    sizes: Floats = np.array([len(text_grams) for text_grams in grams], dtype=np.float64)
    texts_with: dict[str, list[int]] = {}
    for index, text_grams in enumerate(grams):
        for gram in text_grams:
            texts_with.setdefault(gram, []).append(index)
    pairs = []
    for first, text_grams in enumerate(grams):
        postings = list(chain.from_iterable(texts_with[gram] for gram in text_grams))
        shared = np.bincount(np.array(postings, dtype=np.int64), minlength=len(texts))
        union = sizes[first] + sizes - shared
        jaccard = np.divide(shared, union, out=np.zeros(len(texts)), where=union > 0)
        candidates = np.flatnonzero(jaccard >= minimum)
        pairs += [(first, second, float(jaccard[second])) for second in candidates.tolist() if second > first]
    return pairs


def character_trigrams(text: str) -> frozenset[str]:
    """Character trigrams of the words of a text with marked ends.

    >>> sorted(character_trigrams("Is it?"))
    [' is', ' it', 'is ', 'it ', 's i']
    """
    line = f" {' '.join(_WORDS.findall(normalize_answer(text)))} "
    return frozenset(line[start : start + 3] for start in range(len(line) - 2))


_WIDTH = 60


def question_check_subject(questions: Sequence[QuestionAnswer], matcher: AnswerMatcher) -> QuestionSet:
    """The subject of the checks of questions, for validation and comparison.

    >>> from equipoise.domains.fair.answer_matching import answer_matcher
    >>> question_check_subject([QuestionAnswer("q1", "Was it in 1871?", "1871")], answer_matcher("words")).leaking
    ['q1 "Was it in 1871?"']
    """
    return QuestionSet(
        len(questions),
        [_quote_question(question) for question in duplicate_questions(questions)],
        [_quote_question(question) for question in questions if matcher.holds_any(question.answers, question.question)],
        [_quote_question(question) for question in questions if question.draft],
    )


def _quote_question(question: QuestionAnswer) -> str:
    text = one_line(question.question)
    return f'{question.id} "{text if len(text) <= _WIDTH else text[:_WIDTH] + "..."}"'


# Precision of an accuracy and detectable difference by number of questions.

SIZES = (50, 80, 100, 200, 400)
"""The rows of the table, in addition to the actual number of questions."""


@dataclass(frozen=True, slots=True)
class SampleSizePower:
    """The precision of ``n`` questions for systems of the assumed accuracy; fractions.

    ``half_width`` is that of the 95 % Wilson interval of the accuracy, ``detectable`` the smallest difference
    between two systems that a paired test detects with 80 % power, None if there is none.
    """

    n: int
    half_width: float
    detectable: float | None
    accuracy: float = ACCURACY


def sample_size_table(n: int) -> tuple[SampleSizePower, ...]:
    """The default sizes and this one, ascending.

    >>> [(row.n, round(row.half_width, 2), round(row.detectable, 2)) for row in sample_size_table(60)][:2]
    [(50, 0.11, 0.23), (60, 0.1, 0.21)]
    """
    sizes = [SampleSize(size) for size in sorted({n, *SIZES})]
    planned = [size.detectable for size in sizes]
    return tuple(
        SampleSizePower(size.questions, size.half_width, power.value if power.known else None)
        for size, power in zip(sizes, planned, strict=True)
    )


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
    drafts_found: int = 0
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
    def can_compare(self) -> bool:
        """Whether this number of questions can detect any difference between two models."""
        return SampleSize(self.total_questions).detectable.known

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
    def most_have_categories(self) -> bool:
        """Whether at least half of the questions have a category; otherwise shares of categories mean nothing."""
        return 2 * self.category_counts.get(UNSPECIFIED, 0) <= self.total_questions

    @property
    def most_have_difficulties(self) -> bool:
        """Whether at least half of the questions have a difficulty."""
        return 2 * self.difficulty_counts.get(UNSPECIFIED, 0) <= self.total_questions

    @property
    def meets_min_multihop(self) -> bool:
        """Whether the share of multi-hop questions reaches the minimum, or most questions have no category."""
        return not self.most_have_categories or self.multihop_percentage >= self.thresholds.min_multihop_pct

    @property
    def meets_recommended_multihop(self) -> bool:
        """Whether the share of multi-hop questions is as recommended, or most questions have no category."""
        return not self.most_have_categories or self.multihop_percentage >= self.thresholds.recommended_multihop_pct

    @property
    def meets_min_hard(self) -> bool:
        """Whether the share of hard questions reaches the minimum, or most questions have no difficulty."""
        return not self.most_have_difficulties or self.hard_percentage >= self.thresholds.min_hard_pct

    @property
    def meets_recommended_hard(self) -> bool:
        """Whether the share of hard questions is as recommended, or most questions have no difficulty."""
        return not self.most_have_difficulties or self.hard_percentage >= self.thresholds.recommended_hard_pct

    @property
    def is_valid(self) -> bool:
        """Whether no answer is missing, there are no duplicate questions and no drafts, and every minimum is met."""
        return (
            not self.answers_missing
            and not self.duplicate_questions
            and self.meets_min_questions
            and self.meets_min_multihop
            and self.meets_min_hard
            and not self.drafts_found
        )

    @property
    def detectable(self) -> float | None:
        """The smallest difference that these questions show four times in five; a fraction."""
        return next(
            (resolution.detectable for resolution in self.resolutions if resolution.n == self.total_questions), None
        )

    @property
    def summary(self) -> str:
        """The whole report as text for people."""
        from equipoise.domains.fair.validation_report import validation_parts
        from equipoise.report.terminal import render_text

        return render_text(*validation_parts(self)).rstrip("\n")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = (
            "total_questions", "verified", "answers_found", "answers_missing", "duplicates_found", "drafts_found",
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


Documents = str | TextDocument | Sequence[str | TextDocument]


def validate_fixture(
    qa_pairs: Iterable[Mapping[str, Any] | QuestionAnswer],
    doc_content: Documents | None = None,
    min_questions: int = 50,
    recommended_questions: int = 80,
    min_multihop_pct: float = 10.0,
    recommended_multihop_pct: float = 20.0,
    min_hard_pct: float = 30.0,
    recommended_hard_pct: float = 40.0,
    *,
    chunk_size: int | None = None,
    overlap: int | None = None,
    top_k: int | None = None,
    tokenizer: object = None,
    matcher: str | AnswerMatcher = "words",
) -> ValidationResult:
    """Validate questions, and, if a document is given, their answers.

    The document is divided into chunks, because an answer must be in one of them. By default, sizes are those of the
    untuned baseline of a comparison: chunks of 512 tokens, overlap 50 and top_k 10, lower for short documents.

    Parameters
    ----------
    qa_pairs
        Dicts with ``question`` and ``answer``, and optionally ``category`` and ``difficulty``.
    doc_content
        A text, a list of texts, or documents; None validates the questions alone.
    min_questions
        Fewer questions are an error.
    recommended_questions
        Fewer questions are a warning.
    min_multihop_pct
        Minimum percentage of questions of the category ``multi_hop``.
    recommended_multihop_pct
        Recommended percentage of questions of the category ``multi_hop``.
    min_hard_pct
        Minimum percentage of questions of the difficulty ``hard``.
    recommended_hard_pct
        Recommended percentage of questions of the difficulty ``hard``.
    chunk_size
        Chunk size in tokens.
    overlap
        Overlap of consecutive chunks in tokens.
    top_k
        Number of retrieved chunks, for the chance level of an answer.
    tokenizer
        Counts tokens: ``cl100k``, ``words``, the tokenizer of a model, or a tokenizer object.
    matcher
        The rule by which a chunk contains an answer.

    Returns
    -------
    ValidationResult
        Counts, warnings, errors, and an ``AnswerIssue`` for every answer that was not found.

    Examples
    --------
    >>> pairs = [{"question": "Who wrote it?", "answer": "Ada"}, {"question": "When?", "answer": "1844"}]
    >>> result = validate_fixture(pairs, "Ada wrote it in 1843.", tokenizer="words")
    >>> result.answers_found, result.answers_missing, result.is_valid
    (1, 1, False)
    >>> result.answer_issues[0].suggestion
    'closest passage (0.75): "1843"'
    """
    thresholds = FixtureThresholds(
        min_questions, recommended_questions, min_multihop_pct, recommended_multihop_pct, min_hard_pct,
        recommended_hard_pct,
    )  # fmt: skip
    rule = matcher_named(matcher)
    questions = check_questions(qa_pairs)
    issues = list(leaking_answers(questions, rule))
    verification = None
    chunking = ""
    if doc_content is not None:
        texts = _texts(doc_content)
        baseline, baseline_k = _fitted_baseline(texts, tokenizer, rule)
        chunk_size = baseline.chunk_size if chunk_size is None else chunk_size
        overlap = baseline.overlap if overlap is None else overlap
        top_k = baseline_k if top_k is None else top_k
        chunking = chunking_sizes(chunk_size, overlap)
        searcher = AnswerVerifier(texts, FixedSizeChunker(chunk_size, overlap, tokenizer), rule)
        verification = searcher.verify(questions)
        issues = [*searcher.issues(questions, verification), *issues]
    result = ValidationResult(
        total_questions=len(questions),
        category_counts=dict(Counter(question.category for question in questions)),
        difficulty_counts=dict(Counter(question.difficulty for question in questions)),
        thresholds=thresholds,
        verification=verification,
        answer_issues=tuple(issues),
        duplicate_questions=tuple(question.question for question in duplicate_questions(questions)),
        drafts_found=sum(question.draft for question in questions),
        near_duplicates=tuple(near_duplicates(questions)),
        unknown_names=tuple(unknown_labels(questions)),
        resolutions=sample_size_table(len(questions)),
    )
    subject = question_check_subject(questions, rule)
    return replace(result, findings=_findings(result, subject, _positive(1 if top_k is None else top_k), chunking))


def _fitted_baseline(texts: Sequence[str], tokenizer: object, rule: AnswerMatcher) -> tuple[ChunkingParams, int]:
    """The chunking and the number of chunks of the untuned baseline, fitted to the document."""
    counter = tokenizer_for(tokenizer)
    config = FairConfig(matcher="embedding-eval" if rule.joins else "words")
    return fitted_settings(config, sum(counter.count(text) for text in texts)).baseline


def _findings(result: ValidationResult, questions: QuestionSet, top_k: int, chunking: str) -> tuple[Finding, ...]:
    subjects: list[object] = [SampleSize(result.total_questions, result.thresholds.min_questions), questions]
    verification = result.verification
    if verification is not None:
        subjects += [
            AnswersInDocument(verification.answers, verification.chunks, chunking),
            RetrievedFraction(verification.chunks, top_k),
        ]
    return tuple(finding for subject in subjects for finding in run_checks(subject))


def _texts(content: Documents) -> list[str]:
    """The texts of one or several documents, of which at least one is not empty."""
    several = content if isinstance(content, Sequence) and not isinstance(content, str) else [content]
    texts = [
        check_text(document.text if isinstance(document, TextDocument) else document, "the document")
        for document in several
    ]
    if not any(text.strip() for text in texts):
        raise InputError("the document is empty", hint="pass a document that contains the answers")
    return texts


def _positive(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise ParameterError(f"top_k is {top_k!r}; it must be an integer of 1 or more")
    return top_k
