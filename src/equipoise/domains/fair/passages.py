"""Relevant passages of questions: where they are in the documents, and which chunks contain an answer inside one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.errors import InputError, ParameterError

if TYPE_CHECKING:
    from equipoise.domains.fair.questions import QuestionAnswer
    from equipoise.models.chunking import Chunk
    from equipoise.types import Ints

# A word with its hyphens, also one that is hyphenated at a line end.
_HYPHEN = "[-\u00ad\u2010\u2011]"
_WORD = re.compile(rf"\w+(?:{_HYPHEN}(?:[^\S\n]*\n\s*)?\w+)*")
_INSIDE_WORD = re.compile(rf"{_HYPHEN}\s*")
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A stretch of a document: the index of the document, and offsets of characters."""

    document: int
    start: int
    end: int

    def overlap(self, document: int, start: int, end: int, text: str) -> str:
        """The text that this span and another one have in common; empty if there is none."""
        return text[max(self.start, start) : min(self.end, end)] if document == self.document else ""


class PassageFinder:
    """Finds passages in documents word by word; case, punctuation, white space and hyphens at line ends are ignored.

    >>> PassageFinder(["It was sold.", "The inter-\\nnational Mill, founded in 1871."]).find("international mill")
    [PassageSpan(document=1, start=4, end=25)]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._words = [[(_normal(match.group()), *match.span()) for match in _WORD.finditer(text)] for text in texts]
        self._joined = [f" {' '.join(word for word, _, _ in words)} " for words in self._words]
        self._borders = [np.cumsum([0, *(len(word) + 1 for word, _, _ in words)]).tolist() for words in self._words]

    def find(self, passage: str) -> list[PassageSpan]:
        """Every occurrence of the passage."""
        return list(self._exact(passage)) or list(self._by_words(passage))

    def _exact(self, passage: str) -> Iterator[PassageSpan]:
        for document, text in enumerate(self._texts):
            for match in re.finditer(re.escape(passage), text):
                yield PassageSpan(document, *match.span())

    def _by_words(self, passage: str) -> Iterator[PassageSpan]:
        words = [_normal(match.group()) for match in _WORD.finditer(passage)]
        for document, joined in enumerate(self._joined if words else ()):
            for match in re.finditer(rf"(?= {re.escape(' '.join(words))} )", joined):
                first = bisect_left(self._borders[document], match.start())
                start, end = self._words[document][first][1], self._words[document][first + len(words) - 1][2]
                yield PassageSpan(document, *_with_punctuation(self._texts[document], start, end))


def _normal(word: str) -> str:
    return normalize_answer(_INSIDE_WORD.sub("", word))


def _with_punctuation(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with the signs directly before and after it, such as a percent sign."""
    while start > 0 and not (text[start - 1].isspace() or text[start - 1].isalnum()):
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end].isalnum()):
        end += 1
    return start, end


Passages = Mapping[str, Sequence[PassageSpan]]
"""The passages of each question that has some, by the id of the question."""


def locate_passages(questions: Sequence[QuestionAnswer], texts: Sequence[str], matcher: AnswerMatcher) -> Passages:
    """The passages of all questions; a passage that is not there or does not contain an answer is an error."""
    with_passages = [question for question in questions if question.passages]
    if not with_passages:
        return {}
    if matcher.joins:
        raise ParameterError(
            f"the matcher {matcher.name} joins the retrieved chunks, so an answer cannot be required in a passage",
            hint="use the matcher words, or remove the passages",
        )
    finder = PassageFinder(texts)
    spans: dict[str, list[PassageSpan]] = {}
    for question in with_passages:
        spans[question.id] = []
        for passage in question.passages:
            found = finder.find(passage)
            if not found:
                raise InputError(
                    f"a passage of {question.id} is not in the document: {_excerpt(passage)}",
                    hint="copy the passage from the document; eq fair validate --doc lists all such questions",
                )
            spans[question.id] += found
        if not answered_within(question, spans[question.id], texts, matcher):
            raise InputError(
                f"no passage of {question.id} contains its answer: {_excerpt(question.answer_text)}",
                hint="add the passage that contains it, or remove the passages",
            )
    return spans


def answered_within(
    question: QuestionAnswer, spans: Sequence[PassageSpan], texts: Sequence[str], matcher: AnswerMatcher
) -> bool:
    """Whether one of the passages contains an accepted answer."""
    return any(
        matcher.holds_any(question.answers, texts[span.document][span.start : span.end])
        for span in dict.fromkeys(spans)
    )


def holders_within(
    question: QuestionAnswer,
    spans: Sequence[PassageSpan],
    holders: Ints,
    chunks: Sequence[Chunk],
    documents: Sequence[int],
    texts: Sequence[str],
    matcher: AnswerMatcher,
) -> Ints:
    """Of the chunks that contain an answer, those that contain it inside a passage.

    ``documents`` is the index of the document of each chunk. The text that a chunk and a passage have in common
    must contain the answer.
    """

    def holds(at: int) -> bool:
        chunk, document = chunks[at], documents[at]
        overlaps = (span.overlap(document, chunk.start, chunk.end, texts[document]) for span in spans)
        return any(overlap and matcher.holds_any(question.answers, overlap) for overlap in overlaps)

    return np.array([at for at in holders.tolist() if holds(at)], dtype=np.int64)


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) <= _EXCERPT else line[:_EXCERPT] + "..."}"'
