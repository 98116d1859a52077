"""Whether the document holds the answers, how often, in how many chunks, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from equipoise.checks.fixture import AnswerPlaces
from equipoise.data.fixture import Question
from equipoise.embed.chunk.chunkers import Chunker
from equipoise.recipes.fair.validation.passage import Passage, Passages, folded_words
from equipoise.recipes.fair.validation.places import occurrences, places
from equipoise.recipes.fair.validation.result import AnswerIssue, Verification
from equipoise.stats.numbers import figure
from equipoise.tasks.answers.matcher import Matcher
from equipoise.tasks.answers.normal import normalised
from equipoise.types import Severity

MEANINGS = {
    "not_found": "not in the document",
    "partial_match": "not in the document, though some of its words are",
    "words_scattered": "not in the document, though all its words are",
    "inside_word": "in the document only as part of other words",
    "case_mismatch": "in the document with other capitals",
    "spelling_mismatch": "in the document with other quotes or letter forms",
    "cut_by_chunks": "in the document, but in no chunk: borders cut it in two",
    "ambiguous": "at several places of the document",
    "in_question": "already in the question",
}
"""Every type of issue, and what it means."""


class AnswerSearcher:
    """Documents and their chunks, searched for answers by the rule of a matcher."""

    def __init__(self, documents: Sequence[str], chunker: Chunker, matcher: Matcher) -> None:
        self.documents = documents
        self.chunks = [chunk.text for text in documents for chunk in chunker.chunk(text)]
        self.chunking = chunker.name
        self.matcher = matcher
        self._lines = [one_line(text) for text in documents]
        self._normal = [normalised(text) for text in documents]

    @cached_property
    def _cased(self) -> list[str]:
        return [normalised(text, fold_case=False) for text in self.documents]

    @cached_property
    def _passages(self) -> Passages:
        return Passages(self.documents)

    def verify(self, questions: Sequence[Question]) -> Verification:
        """Where each answer stands. What a chunk holds stands at one place at least, whatever the rule."""
        holders = self.matcher.holders([each.answer for each in questions], self.chunks)
        found = [
            AnswerPlaces(
                each.id, each.answer, max(self._places(each.answer), min(1, len(chunks))), len(chunks)
            )
            for each, chunks in zip(questions, holders, strict=True)
        ]
        return Verification(self.matcher.name, self.chunking, len(self.chunks), tuple(found))

    def issues(self, questions: Sequence[Question], verification: Verification) -> Iterator[AnswerIssue]:
        """Everything about the answers that deserves a look, question by question."""
        for question, found in zip(questions, verification.answers, strict=True):
            if not found.places:
                yield self._missing(question)
                continue
            yield from self._spelled_otherwise(question)
            if not found.chunks:
                yield _tip(question, "cut_by_chunks", f"no chunk of {self.chunking} holds it whole")
            if found.places > 1:
                where = f"{found.places:,} places, {found.chunks:,} of {len(self.chunks):,} chunks"
                yield _tip(question, "ambiguous", where)

    def _places(self, answer: str) -> int:
        plain = normalised(answer)
        return sum(places(plain, text, self.matcher) for text in self._normal)

    def _missing(self, question: Question) -> AnswerIssue:
        """Why the matcher does not find it, and the passage that comes closest."""
        answer = question.answer
        plain = normalised(answer)
        inside = next((words for text in self._normal for _, words in occurrences(plain, text)), None)
        if inside is not None:
            return _issue(question, "inside_word", f'found only inside "{inside}"')
        words = [word for word in folded_words(answer) if word.isalnum()]
        known = sum(map(self._passages.holds_word, words))
        kind = "not_found"
        if known and len(words) > 1:
            kind = "words_scattered" if known == len(words) else "partial_match"
        return _issue(question, kind, _closest(self._passages.nearest(answer)))

    def _spelled_otherwise(self, question: Question) -> Iterator[AnswerIssue]:
        """A tip where the document holds the answer, but not in these very letters."""
        line = one_line(question.answer)
        if any(line in text for text in self._lines):
            return
        plain, cased = normalised(question.answer), normalised(question.answer, fold_case=False)
        kind = "spelling_mismatch" if any(cased in text for text in self._cased) else "case_mismatch"
        if not any(plain in text for text in self._normal):  # some rules are content with most of the words
            kind = "partial_match"
        passage = self._passages.nearest(question.answer)
        yield _tip(question, kind, f'written as "{passage.text}"' if passage else None)


def leaking_answers(questions: Sequence[Question], matcher: Matcher) -> Iterator[AnswerIssue]:
    """Tips about questions that hold their own answer."""
    for each in questions:
        if matcher.holds(each.answer, each.question):
            yield _tip(each, "in_question", "ask without giving the answer away")


def one_line(text: str) -> str:
    """The text with every stretch of white space as one space."""
    return " ".join(text.split())


def _closest(passage: Passage | None) -> str | None:
    return f'closest passage ({figure(passage.similarity, 2)}): "{passage.text}"' if passage else None


def _issue(
    question: Question, kind: str, suggestion: str | None, severity: Severity = Severity.ISSUE
) -> AnswerIssue:
    return AnswerIssue(question.question, question.answer, kind, suggestion, severity, question.id)


def _tip(question: Question, kind: str, suggestion: str | None) -> AnswerIssue:
    return _issue(question, kind, suggestion, Severity.TIP)
