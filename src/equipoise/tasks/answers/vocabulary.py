"""Which texts have a word, or one that the rule "source" takes for a form of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from equipoise.types import Bools

_SHORTEST_STEM_SOURCE = 4


def alike(word: str, other: str) -> bool:
    """Whether ``other``, a word of a text, counts as a form of ``word``, a word of an answer.

    It does when it contains the word, when it begins with the word less its final s, or, from four letters
    on, when the word begins with it less its own final s.

    >>> alike("observe", "observes"), alike("perspectives", "perspective"), alike("cat", "dog")
    (True, True, False)
    """
    return (
        word in other
        or other.startswith(word.rstrip("s"))
        or (len(other) >= _SHORTEST_STEM_SOURCE and word.startswith(other.rstrip("s")))
    )


class Vocabulary:
    """The words of many texts, laid out so that forms of a word are looked up, not compared one by one."""

    def __init__(self, texts: Sequence[Collection[str]], *, forms: bool) -> None:
        self._count = len(texts)
        self._forms = forms
        owners: dict[str, list[int]] = {}
        for index, words in enumerate(texts):
            for word in set(words):
                owners.setdefault(word, []).append(index)
        self._words = sorted(owners)
        self._owners = [owners[word] for word in self._words]
        self._joined = " ".join(self._words)
        self._starts = np.cumsum([0, *(len(word) + 1 for word in self._words)]).tolist()
        self._by_stem: dict[str, list[int]] = {}
        for index, word in enumerate(self._words):
            if len(word) >= _SHORTEST_STEM_SOURCE:
                self._by_stem.setdefault(word.rstrip("s"), []).append(index)
        self._known: dict[str, Bools] = {}

    def texts_with(self, word: str) -> Bools:
        """For each text, whether it has the word or, where ``forms`` count, a form of it."""
        if word not in self._known:
            found = np.zeros(self._count, dtype=np.bool_)
            for index in self._matching(word):
                found[self._owners[index]] = True
            self._known[word] = found
        return self._known[word]

    def _matching(self, word: str) -> Iterator[int]:
        if not self._forms:
            place = bisect_left(self._words, word)
            if self._words[place : place + 1] == [word]:
                yield place
            return
        yield from self._containing(word)
        stem = word.rstrip("s")
        for index in range(bisect_left(self._words, stem), len(self._words)):
            if not self._words[index].startswith(stem):
                break
            yield index
        for length in range(len(word) + 1):
            yield from self._by_stem.get(word[:length], ())

    def _containing(self, word: str) -> Iterator[int]:
        place = self._joined.find(word)
        while place >= 0:
            index = bisect_right(self._starts, place) - 1
            yield index
            place = self._joined.find(word, self._starts[index + 1])
