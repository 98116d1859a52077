"""The rule "words": the answer stands inside one text, on the borders of words and numbers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.tasks.answers.boundaries import stands_alone
from equipoise.tasks.answers.normal import normalised
from equipoise.tasks.answers.rule import Matcher, Shelf
from equipoise.types import Ints

_SIGNS = "$€£¥"
_SPACE_BY_SIGN = re.compile(rf"(?<=[{_SIGNS}])\s+(?=\d)|(?<=\d)\s+(?=[{_SIGNS}](?!\s?\d))")
_WORD = re.compile(r"\w+")
_SEPARATOR = "\0"
"""Stands between texts that are searched as one: no normalised text and no answer can hold it."""


@dataclass(frozen=True)
class WordsRule(Matcher):
    """An answer is held where its normalised form stands in the normalised text and cuts no word or number.

    ``currency``: a space between a currency sign and its number does not count, and an answer's own sign may
    be missing in the text (but may not be another one). ``fuzzy``: a text also holds an answer when it has
    at least ``threshold`` of the answer's distinct words, anywhere.

    >>> rule = WordsRule()
    >>> rule.holds("65%", "By 65%."), rule.holds("65%", "By 165%."), rule.holds("art", "party")
    (True, False, False)
    """

    kind = "words"

    currency: bool = False
    fuzzy: bool = False
    threshold: float = 0.8
    fold_case: bool = True
    collapse_spaces: bool = True

    def shelve(self, texts: Sequence[str]) -> WordsShelf:
        """The texts, normalised and joined."""
        return WordsShelf(self, texts)

    def normal(self, text: str) -> str:
        """The form in which this rule compares."""
        normal = normalised(text, fold_case=self.fold_case, collapse_spaces=self.collapse_spaces)
        return _SPACE_BY_SIGN.sub("", normal) if self.currency else normal


class WordsShelf(Shelf):
    """Many texts searched as one: a single search for each answer, however many texts there are."""

    def __init__(self, rule: WordsRule, texts: Sequence[str]) -> None:
        self._rule = rule
        self._texts = [rule.normal(text) for text in texts]
        self._joined = _SEPARATOR.join(self._texts)
        lengths = [len(text) + len(_SEPARATOR) for text in self._texts]
        self._starts: list[int] = np.cumsum([0, *lengths[:-1]]).tolist() if lengths else []

    def holders(self, answer: str) -> Ints:
        """The texts that hold the answer."""
        normal = self._rule.normal(answer).strip()
        found = set(self._containing(normal)) if normal else set()
        if self._rule.currency and normal.strip(_SIGNS) != normal:
            found.update(self._containing(normal.strip(_SIGNS).strip(), unsigned=True))
        if self._rule.fuzzy:
            found.update(self._sharing(normal).tolist())
        return np.array(sorted(found), dtype=np.int64)

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """The place of the first text in the order that holds the answer."""
        places = np.flatnonzero(np.isin(order, self.holders(answer)))
        return int(places[0]) + 1 if len(places) else None

    def _containing(self, answer: str, *, unsigned: bool = False) -> Iterator[int]:
        """The texts that hold these very words; ``unsigned``: with no currency sign beside them."""
        if not answer:
            return
        joined, starts = self._joined, self._starts
        place = joined.find(answer)
        while place >= 0:
            end = place + len(answer)
            if stands_alone(joined, place, end) and not (unsigned and _signed(joined, place, end)):
                text = bisect_right(starts, place) - 1
                yield text
                if text + 1 == len(starts):
                    return
                place = joined.find(answer, starts[text + 1])
            else:
                place = joined.find(answer, place + 1)

    def _sharing(self, answer: str) -> Ints:
        """The texts that have enough of the answer's words."""
        words = set(_WORD.findall(answer))
        lists = [self._texts_with[word] for word in words if word in self._texts_with]
        if not lists:
            return np.zeros(0, dtype=np.int64)
        shared = np.bincount(np.concatenate(lists), minlength=len(self._texts))
        return np.flatnonzero((shared > 0) & (shared / len(words) >= self._rule.threshold))

    @cached_property
    def _texts_with(self) -> dict[str, list[int]]:
        """For each word the texts that have it."""
        found: dict[str, list[int]] = {}
        for index, text in enumerate(self._texts):
            for word in set(_WORD.findall(text)):
                found.setdefault(word, []).append(index)
        return found


def _signed(text: str, start: int, end: int) -> bool:
    return text[max(start - 1, 0) : start] in set(_SIGNS) or text[end : end + 1] in set(_SIGNS)
