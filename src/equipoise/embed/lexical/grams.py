"""N-grams of long rows of symbols, numbered without building strings: characters of words, words of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.embed.lexical.postings import Postings, tally
from equipoise.types import Ints

_ROOM = 2**62


@dataclass(frozen=True, slots=True)
class Symbols:
    """Texts as one row of numbers. A run is what an n-gram may not leave: a padded word, or a whole text."""

    symbols: Ints
    left: Ints
    """How many symbols the run still has, this one included."""
    texts: Ints
    """The text that each symbol belongs to."""
    whole_short_runs: bool = False
    """Whether a run shorter than the shortest n-gram counts once, as a whole."""


def characters(folded: Sequence[str]) -> Symbols:
    """The characters of folded texts, each word a run with one space before and one behind it."""
    padded = [f" {'  '.join(own)} " if (own := text.split()) else "" for text in folded]
    symbols = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32)
    spaces = np.flatnonzero(symbols == ord(" "))
    lengths = spaces[1::2] - spaces[0::2] + 1
    left = np.repeat(spaces[1::2] + 1, lengths) - np.arange(len(symbols))
    texts = np.repeat(np.arange(len(padded)), [len(text) for text in padded])
    return Symbols(symbols.astype(np.int64), left, texts, whole_short_runs=True)


def words(numbers: Ints, lengths: Ints) -> Symbols:
    """The words of texts by their numbers, each text a run."""
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(numbers))
    return Symbols(numbers, left, np.repeat(np.arange(len(lengths)), lengths))


class GramIndex:
    """The n-grams of some texts: which there are, and where. A key is a number in base alphabet size + 1.

    Where the next digit would no longer fit 63 bits, the keys so far are replaced by their rank among those
    that the texts hold: exact for any alphabet and length.
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self.lengths = (shortest, longest)
        self._alphabet = np.empty(0, dtype=np.int64)
        self._ranks: dict[int, Ints] = {}
        self._keys: dict[int, Ints] = {}
        self._offsets: dict[int, int] = {}

    def learn(self, symbols: Symbols, texts: int) -> Postings:
        """Number the n-grams of the texts, by length and then by symbols, and count them in each text."""
        self._alphabet = np.flatnonzero(np.bincount(symbols.symbols))
        starts, documents, values = [np.zeros(1, dtype=np.int64)], [], []
        terms = entries = 0
        for length, keys, owners in self._grams(symbols, self._learned_rank):
            counted = tally(keys, owners, texts)
            self._keys[length], self._offsets[length] = counted.keys, terms
            terms += len(counted.keys)
            starts.append(counted.postings.starts[1:] + entries)
            entries += len(counted.postings.values)
            documents.append(counted.postings.documents)
            values.append(counted.postings.values)
        return Postings(np.concatenate(starts), np.concatenate(documents), np.concatenate(values))

    def look_up(self, symbols: Symbols, texts: int) -> Postings:
        """For each of some other texts its known n-grams by number, with their counts."""
        terms, owners = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for length, keys, of in self._grams(symbols, self._known_rank):
            if length in self._keys:
                place = _find(self._keys[length], keys)
                terms.append(place[place >= 0] + self._offsets[length])
                owners.append(of[place >= 0])
        count = sum(map(len, self._keys.values()))
        counted = tally(np.concatenate(owners), np.concatenate(terms), max(1, count))
        ends = np.searchsorted(counted.keys, np.arange(texts + 1))
        return Postings(counted.postings.starts[ends], counted.postings.documents, counted.postings.values)

    def _grams(self, symbols: Symbols, rank: Callable[[int, Ints], Ints]) -> Iterator[tuple[int, Ints, Ints]]:
        """For each length the keys of all n-grams and the texts they stand in."""
        base = len(self._alphabet) + 1
        # Zero is the digit of a symbol that was never learned: no learned key has it.
        digits = self._digits(symbols.symbols)
        first = np.diff(symbols.left, prepend=0) >= 0
        shortest, longest = self.lengths
        places, keys, size = np.arange(len(digits)), digits, base
        for length in range(1, longest + 1):
            if length > 1:
                if size > _ROOM // base:
                    keys = rank(length - 1, keys)
                    size = len(self._ranks[length - 1]) + 1
                inside = symbols.left[places] >= length
                places = places[inside]
                keys = keys[inside] * base + digits[places + length - 1]
                size *= base
            if length >= shortest:
                yield length, keys, symbols.texts[places]
            elif symbols.whole_short_runs:
                whole = first[places] & (symbols.left[places] == length)
                yield length, keys[whole], symbols.texts[places[whole]]

    def _digits(self, symbols: Ints) -> Ints:
        digit = np.zeros(int(self._alphabet.max(initial=-1)) + 2, dtype=np.int64)
        digit[self._alphabet] = np.arange(1, len(self._alphabet) + 1)
        return digit[np.minimum(symbols, len(digit) - 1)]

    def _learned_rank(self, length: int, keys: Ints) -> Ints:
        self._ranks[length], place = np.unique(keys, return_inverse=True)
        return place + 1

    def _known_rank(self, length: int, keys: Ints) -> Ints:
        return _find(self._ranks[length], keys) + 1


def _find(table: Ints, values: Ints) -> Ints:
    """Where each value stands in a sorted table; -1 where it does not."""
    if len(table) == 0:
        return np.full(len(values), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[place] == values, place, -1)
