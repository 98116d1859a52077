"""The passage of a document that comes closest to an answer it does not hold.

Words of the document that equal or resemble a word of the answer get a weight, rare words a larger one; the
windows with the largest sums are aligned with the answer word by word, and the best one is measured letter by
letter. One pass over an array a question, so a long document and many absent answers stay cheap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.checks import AnswerOccurrences
from equipoise.domains.fair.validation_result import AnswerIssue, AnswerVerification
from equipoise.models.analyzer import fold_case
from equipoise.models.tokenizers import WordTokenizer
from equipoise.stats.formatting import format_value
from equipoise.types import Floats, Ints, Severity

if TYPE_CHECKING:
    from equipoise.domains.fair.questions import QuestionAnswer
    from equipoise.models.chunking import Chunker

# At how many places of a text an answer stands, by the rule of a matcher.


def count_occurrences(answer: str, text: str, matcher: AnswerMatcher) -> int:
    """How often the answer stands in the text where the answer_matcher accepts what surrounds it.

    Both are compared letter by letter, so normalise them first. Places that overlap count once.

    >>> from equipoise.domains.fair.embedding_eval_matcher import answer_matcher
    >>> count_occurrences("65%", "65% of 165%, then 65%.", answer_matcher("words"))
    2
    """
    accepted: dict[str, bool] = {}
    count = reached = 0
    for start, surroundings in occurrences(answer, text):
        if start < reached:
            continue
        if surroundings not in accepted:
            accepted[surroundings] = matcher.holds(answer, surroundings)
        if accepted[surroundings]:
            count, reached = count + 1, start + len(answer)
    return count


def occurrences(answer: str, text: str) -> Iterator[tuple[int, str]]:
    """Where the answer begins, each time, and the whole words that it begins and ends in.

    >>> list(occurrences("5 m", "15 metres, 5 m"))
    [(1, '15 metres,'), (11, '5 m')]
    """
    start = text.find(answer) if answer else -1
    while start >= 0:
        left, right = start, start + len(answer)
        while left > 0 and not text[left - 1].isspace():
            left -= 1
        while right < len(text) and not text[right].isspace():
            right += 1
        yield start, text[left:right]
        start = text.find(answer, start + 1)


MIN_PASSAGE_SIMILARITY = 0.6
"""Passages less similar than this (the ratio of difflib) are no help, and not shown."""

_RESEMBLES = 0.4
_WINDOWS = 8
_LETTERS = 400


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of the document, on one line, and how similar it is to the answer: 1 is equal but for case."""

    text: str
    similarity: float


class PassageIndex:
    """Documents that are ready to be searched for passages.

    >>> PassageIndex(["It was sold to the railway in May."]).nearest("sold to a railway").text
    'sold to the railway'
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._offsets = WordTokenizer().offsets(self._text)
        self._vocabulary: dict[str, int] = {}
        self._ids: Ints = np.fromiter(self._numbered(), dtype=np.int64, count=len(self._offsets))
        counts = np.bincount(self._ids, minlength=len(self._vocabulary))
        self._rarity: Floats = np.log1p(len(self._ids) / np.maximum(counts, 1))

    def _numbered(self) -> Iterator[int]:
        """The number of each word; words that differ in case alone share one."""
        spelled: dict[str, int] = {}
        for start, end in self._offsets.tolist():
            word = self._text[start:end]
            number = spelled.get(word)
            if number is None:
                number = self._vocabulary.setdefault(fold_case(word), len(self._vocabulary))
                spelled[word] = number
            yield number

    def holds_word(self, word: str) -> bool:
        """Whether a folded word stands anywhere."""
        return word in self._vocabulary

    def nearest(self, answer: str) -> Passage | None:
        """The most similar passage, or none where nothing resembles the answer."""
        words = casefolded_tokens(answer)
        alike = self._alike(words)
        if not alike or not len(self._ids):
            return None
        best = max(
            (self._aligned(start, words, alike) for start in self._starts(len(words), alike)),
            key=lambda found: found.similarity,
        )
        return best if best.similarity >= MIN_PASSAGE_SIMILARITY else None

    def _alike(self, words: Sequence[str]) -> dict[int, tuple[str, float]]:
        """Numbers of words of the document that stand for a word of the answer, and how well they do."""
        alike: dict[int, tuple[str, float]] = {}
        for word in dict.fromkeys(words):
            for number, similarity in self._resembling(word):
                if similarity > alike.get(number, ("", 0.0))[1]:
                    alike[number] = (word, similarity)
        return alike

    def _resembling(self, word: str) -> Iterator[tuple[int, float]]:
        """The word itself, and words that share many groups of three letters with it (Dice)."""
        if word in self._vocabulary:
            yield self._vocabulary[word], 1.0
        owners, sizes = self._gram_index
        grams = _grams(word)
        postings = [number for gram in grams for number in owners.get(gram, ())]
        if postings:
            shared = np.bincount(postings, minlength=len(self._vocabulary))
            dice = 2 * shared / (len(grams) + sizes)
            for number in np.flatnonzero(dice >= _RESEMBLES).tolist():
                yield number, float(dice[number])

    @cached_property
    def _gram_index(self) -> tuple[dict[str, list[int]], Ints]:
        """For each group of three letters the words that have it, and how many groups each word has."""
        owners: dict[str, list[int]] = {}
        for word, number in self._vocabulary.items():
            for gram in _grams(word):
                owners.setdefault(gram, []).append(number)
        sizes: Ints = np.array([len(_grams(word)) for word in self._vocabulary], dtype=np.int64)
        return owners, sizes

    def _starts(self, length: int, alike: dict[int, tuple[str, float]]) -> list[int]:
        """Where the windows of that many words begin that hold most of the answer; one a stretch."""
        weights = np.zeros(len(self._vocabulary))
        for number, (_, similarity) in alike.items():
            weights[number] = similarity * self._rarity[number]
        sums = np.concatenate([[0.0], np.cumsum(weights[self._ids])])
        width = min(length, len(self._ids))
        windows = sums[width:] - sums[:-width]
        padded = np.full(-(-len(windows) // width) * width, -1.0)
        padded[: len(windows)] = windows
        blocks = padded.reshape(-1, width)
        most = np.argsort(-blocks.max(axis=1), kind="stable")[:_WINDOWS]
        return [int(block) * width + int(blocks[block].argmax()) for block in most]

    def _aligned(self, start: int, words: list[str], alike: dict[int, tuple[str, float]]) -> Passage:
        """The part of the neighbourhood of a window that answers the words from the first to the last."""
        low, high = max(0, start - len(words)), min(len(self._ids), start + 2 * len(words))
        region = [alike[number][0] if number in alike else "" for number in self._ids[low:high].tolist()]
        pairs = [
            each for each in SequenceMatcher(None, region, words, autojunk=False).get_matching_blocks() if each.size
        ]
        if not pairs:
            return Passage("", 0.0)
        # Words of the answer before the first and behind the last match stand for as many of the document.
        first = max(0, low + pairs[0].a - pairs[0].b)
        last = low + pairs[-1].a + pairs[-1].size + len(words) - pairs[-1].b - pairs[-1].size
        # The alignment may skip words that are repeated: then as many as the answer has are tried too.
        counts = (last - first, max(last - first, len(words)))
        return max((self._between(first, count, words) for count in counts), key=lambda found: found.similarity)

    def _between(self, first: int, count: int, words: list[str]) -> Passage:
        """The passage of so many words, and its similarity to the answer."""
        spans = self._offsets[first : first + count]
        text = " ".join(self._text[spans[0, 0] : spans[-1, 1]].split())
        return Passage(text, _similarity(casefolded_tokens(text), words))


def casefolded_tokens(text: str) -> list[str]:
    """Words and punctuation marks without differences of case.

    >>> casefolded_tokens("About 65%.")
    ['about', '65', '%', '.']
    """
    return [fold_case(text[start:end]) for start, end in WordTokenizer().offsets(text).tolist()]


def _similarity(passage: list[str], answer: list[str]) -> float:
    """The ratio of difflib over letters; over words where the texts are long."""
    one, other = " ".join(passage), " ".join(answer)
    if max(len(one), len(other)) > _LETTERS:
        return SequenceMatcher(None, passage, answer, autojunk=False).ratio()
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _grams(word: str) -> set[str]:
    """Groups of three letters, the ends marked.

    >>> sorted(_grams("65"))
    ['65>', '<65']
    """
    marked = f"<{word}>"
    return {marked[place : place + 3] for place in range(len(marked) - 2)}


# Whether the document holds the answers, how often, in how many chunks, and what stands in the way.

ISSUE_MESSAGES = {
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


class AnswerVerifier:
    """Documents and their chunks, searched for answers by the rule of a matcher."""

    def __init__(self, documents: Sequence[str], chunker: Chunker, matcher: AnswerMatcher) -> None:
        self.documents = documents
        self.chunks = [chunk.text for text in documents for chunk in chunker.chunk(text)]
        self.chunking = chunker.name
        self.matcher = matcher
        self._lines = [one_line(text) for text in documents]
        self._normal = [normalize_answer(text) for text in documents]

    @cached_property
    def _cased(self) -> list[str]:
        return [normalize_answer(text, fold_case=False) for text in self.documents]

    @cached_property
    def _passages(self) -> PassageIndex:
        return PassageIndex(self.documents)

    def verify(self, questions: Sequence[QuestionAnswer]) -> AnswerVerification:
        """Where each answer stands. What a chunk holds stands at one place at least, whatever the rule."""
        holders = self.matcher.holders([each.answer for each in questions], self.chunks)
        found = [
            AnswerOccurrences(each.id, each.answer, max(self._places(each.answer), min(1, len(chunks))), len(chunks))
            for each, chunks in zip(questions, holders, strict=True)
        ]
        return AnswerVerification(self.matcher.name, self.chunking, len(self.chunks), tuple(found))

    def issues(self, questions: Sequence[QuestionAnswer], verification: AnswerVerification) -> Iterator[AnswerIssue]:
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
        plain = normalize_answer(answer)
        return sum(count_occurrences(plain, text, self.matcher) for text in self._normal)

    def _missing(self, question: QuestionAnswer) -> AnswerIssue:
        """Why the matcher does not find it, and the passage that comes closest."""
        answer = question.answer
        plain = normalize_answer(answer)
        inside = next((words for text in self._normal for _, words in occurrences(plain, text)), None)
        if inside is not None:
            return _issue(question, "inside_word", f'found only inside "{inside}"')
        words = [word for word in casefolded_tokens(answer) if word.isalnum()]
        known = sum(map(self._passages.holds_word, words))
        kind = "not_found"
        if known and len(words) > 1:
            kind = "words_scattered" if known == len(words) else "partial_match"
        return _issue(question, kind, _closest(self._passages.nearest(answer)))

    def _spelled_otherwise(self, question: QuestionAnswer) -> Iterator[AnswerIssue]:
        """A tip where the document holds the answer, but not in these very letters."""
        line = one_line(question.answer)
        if any(line in text for text in self._lines):
            return
        plain, cased = normalize_answer(question.answer), normalize_answer(question.answer, fold_case=False)
        kind = "spelling_mismatch" if any(cased in text for text in self._cased) else "case_mismatch"
        if not any(plain in text for text in self._normal):  # some rules are content with most of the words
            kind = "partial_match"
        passage = self._passages.nearest(question.answer)
        yield _tip(question, kind, f'written as "{passage.text}"' if passage else None)


def leaking_answers(questions: Sequence[QuestionAnswer], matcher: AnswerMatcher) -> Iterator[AnswerIssue]:
    """Tips about questions that hold their own answer."""
    for each in questions:
        if matcher.holds(each.answer, each.question):
            yield _tip(each, "in_question", "ask without giving the answer away")


def one_line(text: str) -> str:
    """The text with every stretch of white space as one space."""
    return " ".join(text.split())


def _closest(passage: Passage | None) -> str | None:
    return f'closest passage ({format_value(passage.similarity, 2)}): "{passage.text}"' if passage else None


def _issue(
    question: QuestionAnswer, kind: str, suggestion: str | None, severity: Severity = Severity.ISSUE
) -> AnswerIssue:
    return AnswerIssue(question.question, question.answer, kind, suggestion, severity, question.id)


def _tip(question: QuestionAnswer, kind: str, suggestion: str | None) -> AnswerIssue:
    return _issue(question, kind, suggestion, Severity.TIP)
