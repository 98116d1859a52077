"""Verify answers: how often each occurs in the document and its chunks, and the closest passage if it does not.

The closest passage: words of the document that equal or resemble a word of the answer get a weight, rare words
a larger one. The windows with the largest sums are aligned with the answer word by word, and the best one is
compared letter by letter. This is one pass over an array per question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.domains.fair.answer_matching import AnswerMatcher, join_hyphenated, normalize_answer
from equipoise.domains.fair.checks import AnswerOccurrences
from equipoise.domains.fair.questions import PassageFinder, answered_within, holders_within
from equipoise.models.analyzer import fold_case
from equipoise.models.tokenizers import WordTokenizer
from equipoise.stats.formatting import format_value
from equipoise.types import Floats, Ints, Severity

if TYPE_CHECKING:
    from equipoise.domains.fair.questions import QuestionAnswer
    from equipoise.models.chunking import Chunker


@dataclass(frozen=True, slots=True)
class AnswerIssue:
    """A problem of an answer. A missing answer has the severity issue, everything else is a tip."""

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


def count_occurrences(answer: str, text: str, matcher: AnswerMatcher) -> int:
    """The number of occurrences of the answer in the text that the matcher accepts in their context.

    Both must be normalised. Overlapping occurrences count once.

    >>> from equipoise.domains.fair.answer_matching import answer_matcher
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


def count_answers(question: QuestionAnswer, texts: Sequence[str], matcher: AnswerMatcher) -> int:
    """The number of occurrences of the accepted answers in the normalised texts, or in the passages if any."""
    if question.passages:
        texts = [normalize_answer(passage) for passage in question.passages]
    answers = dict.fromkeys(map(normalize_answer, question.answers))
    return sum(count_occurrences(answer, text, matcher) for answer in answers for text in texts)


def occurrences(answer: str, text: str) -> Iterator[tuple[int, str]]:
    """The start of each occurrence, and the span extended to white space.

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
"""Passages less similar than this (the ratio of difflib) are not shown."""

_MIN_DICE = 0.4
_N_WINDOWS = 8
_MAX_LETTERS = 400


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of the document on one line, and its similarity to the answer; 1 is equal up to case."""

    text: str
    similarity: float


class PassageIndex:
    """An index of documents for the search of similar passages.

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
        """The id of each word, case-insensitive."""
        word_ids: dict[str, int] = {}
        for start, end in self._offsets.tolist():
            word = self._text[start:end]
            number = word_ids.get(word)
            if number is None:
                number = self._vocabulary.setdefault(fold_case(word), len(self._vocabulary))
                word_ids[word] = number
            yield number

    def holds_word(self, word: str) -> bool:
        """Whether the documents contain a casefolded word."""
        return word in self._vocabulary

    def nearest(self, answer: str) -> Passage | None:
        """The most similar passage; None if nothing resembles the answer."""
        words = casefolded_tokens(answer)
        similar_words = self._similar_words(words)
        if not similar_words or not len(self._ids):
            return None
        best = max(
            (self._aligned(start, words, similar_words) for start in self._starts(len(words), similar_words)),
            key=lambda passage: passage.similarity,
        )
        return best if best.similarity >= MIN_PASSAGE_SIMILARITY else None

    def _similar_words(self, words: Sequence[str]) -> dict[int, tuple[str, float]]:
        """For ids of document words that resemble a word of the answer: that word and the similarity."""
        similar_words: dict[int, tuple[str, float]] = {}
        for word in dict.fromkeys(words):
            for number, similarity in self._similar_document_words(word):
                if similarity > similar_words.get(number, ("", 0.0))[1]:
                    similar_words[number] = (word, similarity)
        return similar_words

    def _similar_document_words(self, word: str) -> Iterator[tuple[int, float]]:
        """The word itself, and words that share many character trigrams with it (Dice)."""
        if word in self._vocabulary:
            yield self._vocabulary[word], 1.0
        owners, sizes = self._gram_index
        grams = _grams(word)
        postings = [number for gram in grams for number in owners.get(gram, ())]
        if postings:
            shared = np.bincount(postings, minlength=len(self._vocabulary))
            dice = 2 * shared / (len(grams) + sizes)
            for number in np.flatnonzero(dice >= _MIN_DICE).tolist():
                yield number, float(dice[number])

    @cached_property
    def _gram_index(self) -> tuple[dict[str, list[int]], Ints]:
        """The words of each character trigram, and the number of trigrams of each word."""
        owners: dict[str, list[int]] = {}
        for word, number in self._vocabulary.items():
            for gram in _grams(word):
                owners.setdefault(gram, []).append(number)
        sizes: Ints = np.array([len(_grams(word)) for word in self._vocabulary], dtype=np.int64)
        return owners, sizes

    def _starts(self, length: int, similar_words: dict[int, tuple[str, float]]) -> list[int]:
        """Where the windows of that many words begin that contain most of the answer; one per block."""
        weights = np.zeros(len(self._vocabulary))
        for number, (_, similarity) in similar_words.items():
            weights[number] = similarity * self._rarity[number]
        sums = np.concatenate([[0.0], np.cumsum(weights[self._ids])])
        width = min(length, len(self._ids))
        windows = sums[width:] - sums[:-width]
        padded = np.full(-(-len(windows) // width) * width, -1.0)
        padded[: len(windows)] = windows
        blocks = padded.reshape(-1, width)
        most = np.argsort(-blocks.max(axis=1), kind="stable")[:_N_WINDOWS]
        return [int(block) * width + int(blocks[block].argmax()) for block in most]

    def _aligned(self, start: int, words: list[str], similar_words: dict[int, tuple[str, float]]) -> Passage:
        """The part of the neighbourhood of a window that aligns with the answer."""
        low, high = max(0, start - len(words)), min(len(self._ids), start + 2 * len(words))
        region = [
            similar_words[number][0] if number in similar_words else "" for number in self._ids[low:high].tolist()
        ]
        pairs = [
            block for block in SequenceMatcher(None, region, words, autojunk=False).get_matching_blocks() if block.size
        ]
        if not pairs:
            return Passage("", 0.0)
        # Words of the answer before the first and after the last match count as many words of the document.
        first = max(0, low + pairs[0].a - pairs[0].b)
        last = low + pairs[-1].a + pairs[-1].size + len(words) - pairs[-1].b - pairs[-1].size
        # The alignment may skip words that are repeated: then as many as the answer has are tried too.
        counts = (last - first, max(last - first, len(words)))
        return max((self._between(first, count, words) for count in counts), key=lambda passage: passage.similarity)

    def _between(self, first: int, count: int, words: list[str]) -> Passage:
        """The passage of ``count`` words, and its similarity to the answer."""
        spans = self._offsets[first : first + count]
        text = " ".join(self._text[spans[0, 0] : spans[-1, 1]].split())
        return Passage(text, _similarity(casefolded_tokens(text), words))


def casefolded_tokens(text: str) -> list[str]:
    """Casefolded words and punctuation marks.

    >>> casefolded_tokens("About 65%.")
    ['about', '65', '%', '.']
    """
    return [fold_case(text[start:end]) for start, end in WordTokenizer().offsets(text).tolist()]


def _similarity(passage: list[str], answer: list[str]) -> float:
    """The ratio of difflib over letters; over words where the texts are long."""
    one, other = " ".join(passage), " ".join(answer)
    if max(len(one), len(other)) > _MAX_LETTERS:
        return SequenceMatcher(None, passage, answer, autojunk=False).ratio()
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _grams(word: str) -> set[str]:
    """Character trigrams of a word with marked ends.

    >>> sorted(_grams("65"))
    ['65>', '<65']
    """
    padded = f"<{word}>"
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


ISSUE_MESSAGES = {
    "not_found": "not in the document",
    "partial_match": "not in the document, but some of its words are",
    "words_scattered": "not in the document, but all of its words are",
    "inside_word": "in the document only as part of other words",
    "case_mismatch": "in the document with other capitalisation",
    "spelling_mismatch": "in the document with other quotes or letter forms",
    "hyphenated": "in the document, hyphenated at a line end",
    "passage_missing": "in a passage that is not in the document",
    "not_in_passage": "not in the passages of the question",
    "cut_by_chunks": "in the document, but in no chunk: chunk boundaries split it",
    "ambiguous": "several times in the document",
    "in_question": "already in the question",
}
"""The issue types and their messages."""


class AnswerVerifier:
    """Searches documents and their chunks for answers with a matcher."""

    def __init__(self, documents: Sequence[str], chunker: Chunker, matcher: AnswerMatcher) -> None:
        self.documents = documents
        self.chunks = [(document, chunk) for document, text in enumerate(documents) for chunk in chunker.chunk(text)]
        self.chunking = chunker.name
        self.matcher = matcher
        self._lines = [one_line(text) for text in documents]
        self._normal = [normalize_answer(text) for text in documents]

    @cached_property
    def _cased(self) -> list[str]:
        return [normalize_answer(text, fold_case=False) for text in self.documents]

    @cached_property
    def _dehyphenated(self) -> list[str]:
        return [normalize_answer(join_hyphenated(text)) for text in self.documents]

    @cached_property
    def _nearby(self) -> PassageIndex:
        return PassageIndex(self.documents)

    @cached_property
    def _finder(self) -> PassageFinder:
        return PassageFinder(self.documents)

    def verify(self, questions: Sequence[QuestionAnswer]) -> AnswerVerification:
        """The occurrences of each answer; at least one if a chunk contains it."""
        index = self.matcher.build_index([chunk.text for _, chunk in self.chunks])
        answers = []
        for question in questions:
            places = n_chunks = 0
            if self._passages_hold(question):
                n_chunks = len(self._holders(question, index.holders_of_any(question.answers)))
                places = max(count_answers(question, self._normal, self.matcher), min(1, n_chunks))
            answers.append(AnswerOccurrences(question.id, question.answer_text, places, n_chunks))
        return AnswerVerification(self.matcher.name, self.chunking, len(self.chunks), tuple(answers))

    def _holders(self, question: QuestionAnswer, holders: Ints) -> Ints:
        """The chunks that contain an answer inside a passage of the question."""
        if not question.passages:
            return holders
        spans = [span for passage in question.passages for span in self._finder.find(passage)]
        owners, chunks = [document for document, _ in self.chunks], [chunk for _, chunk in self.chunks]
        return holders_within(question, spans, holders, chunks, owners, self.documents, self.matcher)

    def issues(self, questions: Sequence[QuestionAnswer], verification: AnswerVerification) -> Iterator[AnswerIssue]:
        """The issues and tips of all answers, question by question."""
        for question, answer in zip(questions, verification.answers, strict=True):
            if not answer.places:
                yield self._missing(question)
                continue
            yield from self._different_form(question)
            if not answer.chunks:
                yield _tip(question, "cut_by_chunks", f"no chunk of {self.chunking} contains it completely")
            if answer.places > 1:
                occurrences = (
                    f"{answer.places:,} occurrences, in {answer.chunks:,} of {pluralize(len(self.chunks), 'chunk')}"
                )
                yield _tip(question, "ambiguous", occurrences)

    def _passages_hold(self, question: QuestionAnswer) -> bool:
        """Whether the documents contain all passages of the question, and one of these an accepted answer."""
        if not question.passages:
            return True
        by_passage = [self._finder.find(passage) for passage in question.passages]
        spans = [span for passage_spans in by_passage for span in passage_spans]
        return all(by_passage) and answered_within(question, spans, self.documents, self.matcher)

    def _missing(self, question: QuestionAnswer) -> AnswerIssue:
        """Why the matcher does not find the answer, and the closest passage."""
        for passage in question.passages:
            if not self._finder.find(passage):
                return _issue(question, "passage_missing", _closest(self._nearby.nearest(passage)))
        if question.passages:
            return _issue(question, "not_in_passage", "correct the answer, or add the passage that contains it")
        answer = question.answer
        plain = normalize_answer(answer)
        inside = next((words for text in self._normal for _, words in occurrences(plain, text)), None)
        if inside is not None:
            return _issue(question, "inside_word", f'found only inside "{inside}"')
        words = [word for word in casefolded_tokens(answer) if word.isalnum()]
        n_known = sum(map(self._nearby.holds_word, words))
        kind = "not_found"
        if n_known and len(words) > 1:
            kind = "words_scattered" if n_known == len(words) else "partial_match"
        return _issue(question, kind, _closest(self._nearby.nearest(answer)))

    def _different_form(self, question: QuestionAnswer) -> Iterator[AnswerIssue]:
        """A tip if the document contains the answer in another form (case, quotes, ...)."""
        if any(one_line(answer) in text for answer in question.answers for text in self._lines):
            return
        cased = [normalize_answer(answer, fold_case=False) for answer in question.answers]
        plain = [normalize_answer(answer) for answer in question.answers]
        kind = "partial_match"  # some matchers accept most of the words
        if any(answer in text for answer in cased for text in self._cased):
            kind = "spelling_mismatch"
        elif any(answer in text for answer in plain for text in self._normal):
            kind = "case_mismatch"
        elif any(join_hyphenated(answer) in text for answer in plain for text in self._dehyphenated):
            kind = "hyphenated"
        text = self._hyphenated(question) if kind == "hyphenated" else None
        if text is None and (passage := self._nearby.nearest(question.answer)):
            text = passage.text
        yield _tip(question, kind, f'written as "{text}"' if text else None)

    def _hyphenated(self, question: QuestionAnswer) -> str | None:
        """The first accepted answer with a word that is hyphenated at a line end, on one line."""
        for span in (span for answer in question.answers for span in self._finder.find(answer)):
            return one_line(self.documents[span.document][span.start : span.end]).strip(".,;:!?")
        return None


def leaking_answers(questions: Sequence[QuestionAnswer], matcher: AnswerMatcher) -> Iterator[AnswerIssue]:
    """Tips about questions that contain their answer."""
    for question in questions:
        if matcher.holds_any(question.answers, question.question):
            yield _tip(question, "in_question", "rephrase the question without the answer")


def one_line(text: str) -> str:
    """The text with runs of white space replaced by one space."""
    return " ".join(text.split())


def _closest(passage: Passage | None) -> str | None:
    return f'closest passage ({format_value(passage.similarity, 2)}): "{passage.text}"' if passage else None


def _issue(
    question: QuestionAnswer, kind: str, suggestion: str | None, severity: Severity = Severity.ISSUE
) -> AnswerIssue:
    return AnswerIssue(question.question, question.answer_text, kind, suggestion, severity, question.id)


def _tip(question: QuestionAnswer, kind: str, suggestion: str | None) -> AnswerIssue:
    return _issue(question, kind, suggestion, Severity.TIP)
