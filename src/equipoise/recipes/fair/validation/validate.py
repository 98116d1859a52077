"""Validation of a fixture: are these questions fit to compare systems with?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.fixture import AnswersInDocument, AskedQuestions, RetrievedShare, SampleSize
from equipoise.data.documents import Document
from equipoise.data.fixture import Question, questions
from equipoise.embed.chunk.chunkers import FixedSizeChunker
from equipoise.embed.chunk.tokens import checked_text
from equipoise.errors import InputError, ParameterError
from equipoise.recipes.fair.validation.answers import AnswerSearcher, leaking_answers
from equipoise.recipes.fair.validation.asked import asked_questions
from equipoise.recipes.fair.validation.duplicates import near_duplicates, repeated_questions
from equipoise.recipes.fair.validation.names import unknown_names
from equipoise.recipes.fair.validation.power import resolution_table
from equipoise.recipes.fair.validation.result import ValidationResult
from equipoise.recipes.fair.validation.thresholds import Thresholds
from equipoise.tasks.answers.matcher import Matcher
from equipoise.tasks.answers.matcher import matcher as matcher_named
from equipoise.types import Finding

Documents = str | Document | Sequence[str | Document]


def validate_fixture(
    qa_pairs: Iterable[Mapping[str, Any] | Question],
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
    matcher: str | Matcher = "words",
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
    thresholds = Thresholds(
        min_questions, recommended_questions, min_multihop_pct, recommended_multihop_pct, min_hard_pct,
        recommended_hard_pct,
    )  # fmt: skip
    rule = matcher_named(matcher)
    asked = questions(qa_pairs)
    issues = list(leaking_answers(asked, rule))
    verification = None
    if doc_content is not None:
        chunker = FixedSizeChunker(chunk_size, overlap, tokenizer)
        searcher = AnswerSearcher(_texts(doc_content), chunker, rule)
        verification = searcher.verify(asked)
        issues = [*searcher.issues(asked, verification), *issues]
    result = ValidationResult(
        total_questions=len(asked),
        category_counts=dict(Counter(each.category for each in asked)),
        difficulty_counts=dict(Counter(each.difficulty for each in asked)),
        thresholds=thresholds,
        verification=verification,
        answer_issues=tuple(issues),
        duplicate_questions=tuple(each.question for each in repeated_questions(asked)),
        near_duplicates=tuple(near_duplicates(asked)),
        unknown_names=tuple(unknown_names(asked)),
        resolutions=resolution_table(len(asked)),
    )
    return replace(result, findings=_findings(result, asked_questions(asked, rule), _positive(top_k)))


def _findings(result: ValidationResult, asked: AskedQuestions, top_k: int) -> tuple[Finding, ...]:
    subjects: list[object] = [SampleSize(result.total_questions, result.thresholds.min_questions), asked]
    found = result.verification
    if found is not None:
        subjects += [
            AnswersInDocument(found.answers, found.chunks, found.chunking),
            RetrievedShare(found.chunks, top_k),
        ]
    return tuple(finding for subject in subjects for finding in examine(subject))


def _texts(content: Documents) -> list[str]:
    """The texts of one or several documents, of which at least one says something."""
    several = content if isinstance(content, Sequence) and not isinstance(content, str) else [content]
    texts = [
        checked_text(each.text if isinstance(each, Document) else each, "the document") for each in several
    ]
    if not any(text.strip() for text in texts):
        raise InputError("the document is empty", hint="give a document that holds the answers")
    return texts


def _positive(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise ParameterError(f"top_k is {top_k!r}; it must be a whole number of 1 or more")
    return top_k
