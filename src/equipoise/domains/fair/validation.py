"""Validation of a fixture: are these questions fit to compare systems with?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.registry import run_checks
from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.answer_verification import AnswerVerifier, leaking_answers, one_line
from equipoise.domains.fair.checks import (
    ACCURACY,
    AnswersInDocument,
    QuestionSet,
    RetrievedFraction,
    SampleSize,
)
from equipoise.domains.fair.embedding_eval_matcher import answer_matcher as matcher_named
from equipoise.domains.fair.questions import CATEGORIES, DIFFICULTIES, QuestionAnswer, check_questions
from equipoise.domains.fair.validation_result import FixtureThresholds, ValidationResult
from equipoise.errors import InputError, ParameterError, did_you_mean
from equipoise.io.documents import TextDocument
from equipoise.models.chunking import FixedSizeChunker
from equipoise.models.tokenizers import check_text

if TYPE_CHECKING:
    from equipoise.types import Finding, Floats

# Categories and difficulties that nobody knows: most are typing errors, and they move the shares.


@dataclass(frozen=True, slots=True)
class UnknownLabel:
    """A category or difficulty that is none of the usual ones, how many questions have it, and what to do."""

    kind: str
    name: str
    count: int
    suggestion: str


def unknown_labels(questions: Sequence[QuestionAnswer]) -> list[UnknownLabel]:
    """Names of categories and difficulties that are not known, in the order of their first use.

    >>> unknown_labels([QuestionAnswer("q1", "Where?", "here", category="multihop")])[0].suggestion
    'did you mean multi_hop?'
    """
    return [
        *_unknown("category", questions, CATEGORIES),
        *_unknown("difficulty", questions, DIFFICULTIES),
    ]


def _unknown(kind: str, questions: Sequence[QuestionAnswer], known: Iterable[str]) -> list[UnknownLabel]:
    usual = list(known)
    names = (each.kinds[kind] for each in questions if kind in each.kinds)
    return [
        UnknownLabel(kind, name, count, did_you_mean(name, usual) or f"the usual ones are {', '.join(usual)}")
        for name, count in Counter(names).items()
        if name not in usual
    ]


# Questions that were asked before: word for word, or nearly so.

NEAR_DUPLICATE_SIMILARITY = 0.7
"""Questions with the same answer that are at least this similar are near duplicates."""

SAME_ANSWER_SIMILARITY = 0.9
"""So are questions with different answers from here on, if they name the same numbers."""

_BLOCK = 256
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NearDuplicateQuestions:
    """Two questions that are nearly one.

    ``similarity`` is the share of groups of three letters that they have in common (Jaccard), without regard
    to case, punctuation and white space.
    """

    first: str
    second: str
    similarity: float
    same_answer: bool


def duplicate_questions(questions: Sequence[QuestionAnswer]) -> list[QuestionAnswer]:
    """The questions that an earlier one equals after normalisation.

    >>> pairs = [QuestionAnswer("a", "Who was it?", "Ada"), QuestionAnswer("b", "who  was it?", "Ada")]
    >>> [each.id for each in duplicate_questions(pairs)]
    ['b']
    """
    seen: set[str] = set()
    repeated = []
    for each in questions:
        key = normalize_answer(each.question)
        if key in seen:
            repeated.append(each)
        seen.add(key)
    return repeated


def near_duplicates(questions: Sequence[QuestionAnswer]) -> list[NearDuplicateQuestions]:
    """Pairs of unequal questions whose similarity exceeds the threshold, which is lower where answers are equal.

    >>> texts = ["Who wrote the first program?", "Who wrote a first program"]
    >>> pairs = [QuestionAnswer(f"q{number}", text, "Ada") for number, text in enumerate(texts)]
    >>> [(each.first, each.same_answer) for each in near_duplicates(pairs)]
    [('Who wrote the first program?', True)]
    """
    once = list({normalize_answer(each.question): each for each in reversed(questions)}.values())[::-1]
    answers = [normalize_answer(each.answer) for each in once]
    numbers = [_NUMBER.findall(each.question) for each in once]
    found = []
    for first, second, similarity in similar_pairs([each.question for each in once], NEAR_DUPLICATE_SIMILARITY):
        same = answers[first] == answers[second]
        if same or (similarity >= SAME_ANSWER_SIMILARITY and numbers[first] == numbers[second]):
            found.append(NearDuplicateQuestions(once[first].question, once[second].question, similarity, same))
    return found


def similar_pairs(texts: Sequence[str], least: float) -> list[tuple[int, int, float]]:
    """Places of all pairs of texts with at least this Jaccard similarity, first before second."""
    from scipy.sparse import csr_array

    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(gram, len(numbers)) for gram in sorted(character_trigrams(text))] for text in texts]
    sizes: Floats = np.array([len(row) for row in rows], dtype=np.float64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.array([number for row in rows for number in row], dtype=np.int64)
    table = csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), max(len(numbers), 1)))
    pairs = []
    for start in range(0, len(texts), _BLOCK):
        shared = (table[start : start + _BLOCK] @ table.T).toarray()
        union = sizes[start : start + _BLOCK, None] + sizes[None, :] - shared
        jaccard = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        for row, column in np.argwhere(jaccard >= least).tolist():
            if start + row < column:
                pairs.append((start + row, column, float(jaccard[row, column])))
    return pairs


def character_trigrams(text: str) -> frozenset[str]:
    """Groups of three letters of a text's words, its ends marked.

    >>> sorted(character_trigrams("Is it?"))
    [' is', ' it', 'is ', 'it ', 's i']
    """
    line = f" {' '.join(_WORDS.findall(normalize_answer(text)))} "
    return frozenset(line[place : place + 3] for place in range(len(line) - 2))


# Questions that should not have been asked so: those asked before, and those that hold their answer.

_WIDTH = 60


def question_check_subject(questions: Sequence[QuestionAnswer], matcher: AnswerMatcher) -> QuestionSet:
    """What checks look at; the same for who validates a fixture and for who compares on it.

    >>> from equipoise.domains.fair.embedding_eval_matcher import answer_matcher
    >>> question_check_subject([QuestionAnswer("q1", "Was it in 1871?", "1871")], answer_matcher("words")).leaking
    ['q1 "Was it in 1871?"']
    """
    return QuestionSet(
        len(questions),
        [_named(each) for each in duplicate_questions(questions)],
        [_named(each) for each in questions if matcher.holds(each.answer, each.question)],
    )


def _named(question: QuestionAnswer) -> str:
    text = one_line(question.question)
    return f'{question.id} "{text if len(text) <= _WIDTH else text[:_WIDTH] + "..."}"'


# What a number of questions can show, computed: the interval of an accuracy, the smallest difference.

SIZES = (50, 80, 100, 200, 400)
"""The rows of the table, beside the number of questions at hand."""


@dataclass(frozen=True, slots=True)
class SampleSizePower:
    """What ``n`` questions can show for systems of the planning accuracy; fractions.

    ``half_width`` is that of the 95 % Wilson interval of the accuracy, ``detectable`` the smallest difference
    between two systems that a paired test shows four times in five, None where there is none.
    """

    n: int
    half_width: float
    detectable: float | None
    accuracy: float = ACCURACY


def sample_size_power(n: int, *, accuracy: float = ACCURACY) -> SampleSizePower:
    """What this many questions can show.

    >>> seen = sample_size_power(50)
    >>> round(seen.half_width, 2), round(seen.detectable, 2)
    (0.11, 0.23)
    """
    size = SampleSize(n, accuracy=accuracy)
    planned = size.detectable
    return SampleSizePower(n, size.half_width, planned.value if planned.known else None, accuracy)


def sample_size_table(n: int, *, accuracy: float = ACCURACY) -> tuple[SampleSizePower, ...]:
    """The usual sizes and this one, smallest first.

    >>> [each.n for each in sample_size_table(60)]
    [50, 60, 80, 100, 200, 400]
    """
    return tuple(sample_size_power(size, accuracy=accuracy) for size in sorted({n, *SIZES}))


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
    chunk_size: int = 512,
    overlap: int = 50,
    top_k: int = 10,
    tokenizer: object = None,
    matcher: str | AnswerMatcher = "words",
) -> ValidationResult:
    """What speaks against comparing systems by these questions; with a document, also by their answers.

    The document is cut into chunks as the comparison does by default, since an answer must lie in one of
    them. Thresholds that end in ``_pct`` are percentages.

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
    asked = check_questions(qa_pairs)
    issues = list(leaking_answers(asked, rule))
    verification = None
    if doc_content is not None:
        chunker = FixedSizeChunker(chunk_size, overlap, tokenizer)
        searcher = AnswerVerifier(_texts(doc_content), chunker, rule)
        verification = searcher.verify(asked)
        issues = [*searcher.issues(asked, verification), *issues]
    result = ValidationResult(
        total_questions=len(asked),
        category_counts=dict(Counter(each.category for each in asked)),
        difficulty_counts=dict(Counter(each.difficulty for each in asked)),
        thresholds=thresholds,
        verification=verification,
        answer_issues=tuple(issues),
        duplicate_questions=tuple(each.question for each in duplicate_questions(asked)),
        near_duplicates=tuple(near_duplicates(asked)),
        unknown_names=tuple(unknown_labels(asked)),
        resolutions=sample_size_table(len(asked)),
    )
    return replace(result, findings=_findings(result, question_check_subject(asked, rule), _positive(top_k)))


def _findings(result: ValidationResult, asked: QuestionSet, top_k: int) -> tuple[Finding, ...]:
    subjects: list[object] = [SampleSize(result.total_questions, result.thresholds.min_questions), asked]
    found = result.verification
    if found is not None:
        subjects += [
            AnswersInDocument(found.answers, found.chunks, found.chunking),
            RetrievedFraction(found.chunks, top_k),
        ]
    return tuple(finding for subject in subjects for finding in run_checks(subject))


def _texts(content: Documents) -> list[str]:
    """The texts of one or several documents, of which at least one says something."""
    several = content if isinstance(content, Sequence) and not isinstance(content, str) else [content]
    texts = [check_text(each.text if isinstance(each, TextDocument) else each, "the document") for each in several]
    if not any(text.strip() for text in texts):
        raise InputError("the document is empty", hint="give a document that holds the answers")
    return texts


def _positive(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise ParameterError(f"top_k is {top_k!r}; it must be a whole number of 1 or more")
    return top_k
