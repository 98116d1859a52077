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

import numpy as np

from equipoise.embed.chunk.tokens import Words
from equipoise.embed.lexical.words import fold
from equipoise.types import Floats, Ints

CLOSE = 0.6
"""Passages less similar than this (the ratio of difflib) are no help, and not shown."""

_RESEMBLES = 0.4
_WINDOWS = 8
_LETTERS = 400


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of the document, on one line, and how similar it is to the answer: 1 is equal but for case."""

    text: str
    similarity: float


class Passages:
    """Documents that are ready to be searched for passages.

    >>> Passages(["It was sold to the railway in May."]).nearest("sold to a railway").text
    'sold to the railway'
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._offsets = Words().offsets(self._text)
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
                number = self._vocabulary.setdefault(fold(word), len(self._vocabulary))
                spelled[word] = number
            yield number

    def holds_word(self, word: str) -> bool:
        """Whether a folded word stands anywhere."""
        return word in self._vocabulary

    def nearest(self, answer: str) -> Passage | None:
        """The most similar passage, or none where nothing resembles the answer."""
        words = folded_words(answer)
        alike = self._alike(words)
        if not alike or not len(self._ids):
            return None
        best = max(
            (self._aligned(start, words, alike) for start in self._starts(len(words), alike)),
            key=lambda found: found.similarity,
        )
        return best if best.similarity >= CLOSE else None

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
            each
            for each in SequenceMatcher(None, region, words, autojunk=False).get_matching_blocks()
            if each.size
        ]
        if not pairs:
            return Passage("", 0.0)
        # Words of the answer before the first and behind the last match stand for as many of the document.
        first = max(0, low + pairs[0].a - pairs[0].b)
        last = low + pairs[-1].a + pairs[-1].size + len(words) - pairs[-1].b - pairs[-1].size
        # The alignment may skip words that are repeated: then as many as the answer has are tried too.
        counts = (last - first, max(last - first, len(words)))
        return max(
            (self._between(first, count, words) for count in counts), key=lambda found: found.similarity
        )

    def _between(self, first: int, count: int, words: list[str]) -> Passage:
        """The passage of so many words, and its similarity to the answer."""
        spans = self._offsets[first : first + count]
        text = " ".join(self._text[spans[0, 0] : spans[-1, 1]].split())
        return Passage(text, _similarity(folded_words(text), words))


def folded_words(text: str) -> list[str]:
    """Words and punctuation marks without differences of case.

    >>> folded_words("About 65%.")
    ['about', '65', '%', '.']
    """
    return [fold(text[start:end]) for start, end in Words().offsets(text).tolist()]


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
