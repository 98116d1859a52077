"""The rule "source": what the package embedding-eval 0.2.0 counts as answered, to match its figures.

It reads the retrieved texts as one, so an answer may span two of them; it knows no word borders; and it also
accepts texts that have most of the answer's words, or words like them, anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.tasks.answers.rule import Matcher, Parts, Shelf
from equipoise.tasks.answers.vocabulary import Vocabulary, alike
from equipoise.types import Bools, Ints

_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_MARKS = re.compile("[®™©]")
_SIGNS = "$€£¥"
_SPACE_AFTER_SIGN = re.compile(rf"(?<=[{_SIGNS}])\s+")
_OPEN_END = re.compile(rf"[{_SIGNS}]\s*\Z")
PASSED = 0.5
"""From this score on a question counts as answered."""


@dataclass(frozen=True)
class SourceRule(Matcher):
    """The source's rule with the source's options, by their names there and with the values it runs with.

    >>> rule = SourceRule()
    >>> rule.holds("art", "party"), rule.holds("65%", "It rose by 165%.")
    (True, True)
    >>> rule.first_hit("rye and wheat", ["a field of rye", "and wheat"])
    2
    """

    kind = "source"
    joins = True

    case_sensitive: bool = False
    normalize_whitespace: bool = True
    partial_match_threshold: float = 0.8
    fuzzy_word_match: bool = True
    normalize_currency: bool = True

    def shelve(self, texts: Sequence[str]) -> SourceShelf:
        """The texts, normalised, with their words."""
        return SourceShelf(self, texts)

    def normal(self, text: str) -> str:
        """The form in which the source compares: the order of the steps is its own."""
        text = text.translate(_QUOTES)
        text = text if self.case_sensitive else text.lower()
        text = _SPACE_AFTER_SIGN.sub("", text) if self.normalize_currency else text
        text = _MARKS.sub("", text)
        return " ".join(text.split()) if self.normalize_whitespace else text

    def wordings(self, answer: str) -> list[str]:
        """The normalised answer, and the same without a currency sign in front."""
        normal = self.normal(answer)
        return [normal, normal[1:]] if self.normalize_currency and normal[:1] in set(_SIGNS) else [normal]

    def score(self, answer: str, texts: Sequence[str]) -> float:
        """1 where the texts, joined, hold the answer; else the share of its words there, if large enough."""
        if not texts:
            return 0.0
        joined = self.normal(" ".join(texts))
        wordings = self.wordings(answer)
        if any(wording in joined for wording in wordings):
            return 1.0
        words, there = set(wordings[0].split()), set(joined.split())
        matched = sum(word in there or self._has_form(word, there) for word in words)
        share = matched / len(words) if words else 0.0
        return share if share >= self.partial_match_threshold else 0.0

    def _has_form(self, word: str, words: set[str]) -> bool:
        return self.fuzzy_word_match and any(alike(word, other) for other in words)

    def words_needed(self, words: int) -> int:
        """How many of an answer's words make it count as answered; more than there are if none would do."""
        limit = max(self.partial_match_threshold, PASSED)
        return next((few for few in range(1, words + 1) if few / words >= limit), words + 1)


class SourceShelf(Shelf):
    """Texts normalised one by one: joined, they are the normal form of the texts joined.

    A text that ends in a currency sign is the exception, because the sign closes up with the next text.
    Orders with such a text in them are read the slow way.
    """

    def __init__(self, rule: SourceRule, texts: Sequence[str]) -> None:
        self._rule = rule
        self._texts = list(texts)
        self._normal = [rule.normal(text) for text in texts]
        self._open = [rule.normalize_currency and bool(_OPEN_END.search(text)) for text in texts]

    def holders(self, answer: str) -> Ints:
        """The texts that hold the answer, each by itself."""
        wordings = self._rule.wordings(answer)
        found: Bools = np.zeros(len(self._normal), dtype=np.bool_)
        for wording in wordings:
            found |= np.array([wording in text for text in self._normal], dtype=np.bool_)
        parts = self._words_of(wordings[0])
        if len(parts.there):
            found |= parts.there.sum(axis=0) >= parts.needed
        return np.flatnonzero(found)

    def parts(self, answer: str) -> Parts:
        """The words of the answer: most of them are enough, in whatever texts they are."""
        return self._words_of(self._rule.wordings(answer)[0])

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """The least number of texts, taken in this order, that the source would accept."""
        places = np.asarray(order, dtype=np.int64)
        if any(self._open[place] for place in places[:-1].tolist()):
            texts = [self._texts[place] for place in places.tolist()]
            counts = range(1, len(texts) + 1)
            return next((few for few in counts if self._rule.score(answer, texts[:few]) >= PASSED), None)
        wordings = self._rule.wordings(answer)
        hits = [self._exact_hit(wordings, places), self._words_hit(wordings[0], places)]
        return min((hit for hit in hits if hit is not None), default=None)

    def _exact_hit(self, wordings: Sequence[str], order: Ints) -> int | None:
        """The text in which the first occurrence of a wording ends."""
        texts = [self._normal[place] for place in order.tolist()]
        if self._rule.normalize_whitespace:
            gaps = [bool(text) for text in texts]
            joined = " ".join(filter(None, texts))
        else:
            gaps = [True] * len(texts)
            joined = " ".join(texts)
        ends = np.cumsum([len(text) + gap for text, gap in zip(texts, gaps, strict=True)]) - 1
        ends = np.maximum(ends, 0).tolist()
        places = [(joined.find(wording), len(wording)) for wording in wordings]
        last = min((place + length for place, length in places if place >= 0), default=None)
        return None if last is None or not texts else bisect_left(ends, last) + 1

    def _words_hit(self, answer: str, order: Ints) -> int | None:
        """The text that brings the last word of those that are enough."""
        parts = self._words_of(answer)
        if parts.needed > len(parts.there) or not len(order):
            return None
        there = parts.there[:, order]
        first = np.where(there.any(axis=1), there.argmax(axis=1) + 1, len(order) + 1)
        hit = int(np.sort(first)[parts.needed - 1])
        return hit if hit <= len(order) else None

    def _words_of(self, normal: str) -> Parts:
        words = set(normal.split())
        there = np.array([self._vocabulary.texts_with(word) for word in words], dtype=np.bool_)
        return Parts(there.reshape(len(words), len(self._normal)), self._rule.words_needed(len(words)))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary([text.split() for text in self._normal], forms=self._rule.fuzzy_word_match)
