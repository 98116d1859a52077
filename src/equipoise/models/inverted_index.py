"""Inverted index of the lexical retrievers: CSR postings, and n-grams numbered without building strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

# Postings: for every term the documents that contain it, with a weight each.

_INT64 = 2**63

_FREQUENT = 512
"""Document frequency from which a term is added by a separate call; rarer terms are added in batches."""

_RARE_BATCH = 1024


@dataclass(frozen=True, slots=True)
class Postings:
    """The documents of term t are at ``starts[t]`` to ``starts[t + 1]``, each with a value."""

    starts: Ints
    documents: NDArray[np.int32]
    values: Floats

    @property
    def spread(self) -> Ints:
        """In how many documents each term occurs."""
        return np.diff(self.starts)

    def with_values(self, values: Floats) -> Postings:
        """The same documents with other numbers."""
        return Postings(self.starts, self.documents, values)

    def through(self, parts: Postings, count: int) -> Postings:
        """Counts in wholes from counts in parts: for each term the sum over the parts that hold it.

        ``self`` has the parts of each term, ``parts`` the ``count`` wholes that each part occurs in. The
        documents of a term are unordered.
        """
        from scipy.sparse import csr_array

        inner = len(parts.starts) - 1
        left = csr_array((self.values, self.documents, self.starts), shape=(len(self.starts) - 1, inner))
        right = csr_array((parts.values, parts.documents, parts.starts), shape=(inner, count))
        product = left @ right
        return Postings(product.indptr.astype(np.int64), product.indices, product.data)

    def add_to(self, scores: Floats, queries: Postings) -> None:
        """Add ``weight * value`` to the scores (queries, documents) of all that hold a query's terms.

        ``queries`` has the terms and weights of each query. The sums run in a fixed order of its terms, the
        frequent ones first, so equal documents have equal scores to the last bit.
        """
        owners = np.repeat(np.arange(len(scores)), queries.spread)
        sizes = self.spread[queries.documents]
        frequent = np.flatnonzero(sizes >= _FREQUENT)
        for owner, term, weight in zip(
            owners[frequent].tolist(),
            queries.documents[frequent].tolist(),
            queries.values[frequent].tolist(),
            strict=True,
        ):
            part = slice(self.starts[term], self.starts[term + 1])
            np.add.at(scores[owner], self.documents[part], weight * self.values[part])
        rare = np.flatnonzero(sizes < _FREQUENT)
        for batch in np.split(rare, np.arange(_RARE_BATCH, len(rare), _RARE_BATCH)):
            size = sizes[batch]
            start = self.starts[queries.documents[batch]]
            postings = np.repeat(start - np.cumsum(size) + size, size) + np.arange(int(size.sum()))
            columns = np.repeat(owners[batch] * scores.shape[1], size) + self.documents[postings]
            np.add.at(scores.reshape(-1), columns, np.repeat(queries.values[batch], size) * self.values[postings])


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each key occurs in each group, and which keys there are; ascending by key, then by group."""

    keys: Ints
    postings: Postings


def count_terms(keys: Ints, groups: Ints, count: int) -> TermCounts:
    """Count equal pairs of a key (0 or more) and a group (below ``count``): one sort, then run lengths.

    >>> counted = count_terms(np.array([7, 3, 7]), np.array([0, 1, 0]), 2)
    >>> counted.keys.tolist(), counted.postings.documents.tolist(), counted.postings.values.tolist()
    ([3, 7], [1, 0], [1.0, 2.0])
    """
    distinct: Ints | None = None
    if int(keys.max(initial=0)) >= _INT64 // count - 1:
        distinct, keys = np.unique(keys, return_inverse=True)
    pairs = keys * count
    pairs += groups
    pairs.sort()
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    repeats = np.diff(firsts, append=len(pairs)).astype(np.float64)
    terms, documents = np.divmod(pairs[firsts], count)
    edges = np.flatnonzero(np.diff(terms, prepend=-1))
    starts = np.append(edges, len(terms))
    present = terms[edges] if distinct is None else distinct
    return TermCounts(present, Postings(starts, documents.astype(np.int32), repeats))


_MAX_CODE = 2**62


@dataclass(frozen=True, slots=True)
class SymbolSequence:
    """Texts as one row of numbers. An n-gram is within one run: a padded word, or the full text."""

    symbols: Ints
    left: Ints
    """How many symbols the run still has, this one included."""
    texts: Ints
    """The text that each symbol belongs to."""
    whole_short_runs: bool = False
    """Whether a run shorter than the shortest n-gram counts once."""


def character_symbols(folded: Sequence[str]) -> SymbolSequence:
    """The characters of folded texts, each word a run with one space before and one after it."""
    padded = [f" {'  '.join(words)} " if (words := text.split()) else "" for text in folded]
    symbols = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32)
    spaces = np.flatnonzero(symbols == ord(" "))
    lengths = spaces[1::2] - spaces[0::2] + 1
    left = np.repeat(spaces[1::2] + 1, lengths) - np.arange(len(symbols))
    texts = np.repeat(np.arange(len(padded)), [len(text) for text in padded])
    return SymbolSequence(symbols.astype(np.int64), left, texts, whole_short_runs=True)


def word_symbols(numbers: Ints, lengths: Ints) -> SymbolSequence:
    """The words of texts by their numbers, each text a run."""
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(numbers))
    return SymbolSequence(numbers, left, np.repeat(np.arange(len(lengths)), lengths))


class NgramIndex:
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

    def learn(self, symbols: SymbolSequence, texts: int) -> Postings:
        """Number the n-grams of the texts, by length and then by symbols, and count them in each text."""
        self._alphabet = np.flatnonzero(np.bincount(symbols.symbols))
        starts, documents, values = [np.zeros(1, dtype=np.int64)], [], []
        terms = entries = 0
        for length, keys, owners in self._grams(symbols, self._learned_rank):
            counted = count_terms(keys, owners, texts)
            self._keys[length], self._offsets[length] = counted.keys, terms
            terms += len(counted.keys)
            starts.append(counted.postings.starts[1:] + entries)
            entries += len(counted.postings.values)
            documents.append(counted.postings.documents)
            values.append(counted.postings.values)
        return Postings(np.concatenate(starts), np.concatenate(documents), np.concatenate(values))

    def look_up(self, symbols: SymbolSequence, texts: int) -> Postings:
        """For each of some other texts its known n-grams by number, with their counts."""
        terms, owners = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for length, keys, of in self._grams(symbols, self._known_rank):
            if length in self._keys:
                position = _find(self._keys[length], keys)
                terms.append(position[position >= 0] + self._offsets[length])
                owners.append(of[position >= 0])
        count = sum(map(len, self._keys.values()))
        counted = count_terms(np.concatenate(owners), np.concatenate(terms), max(1, count))
        ends = np.searchsorted(counted.keys, np.arange(texts + 1))
        return Postings(counted.postings.starts[ends], counted.postings.documents, counted.postings.values)

    def to_arrays(self) -> dict[str, Ints]:
        """The n-grams as arrays, from which ``from_arrays`` makes an equal index."""
        ranks = {f"ranks_{length}": values for length, values in self._ranks.items()}
        keys = {f"keys_{length}": values for length, values in self._keys.items()}
        return {"alphabet": self._alphabet, **ranks, **keys}

    @classmethod
    def from_arrays(cls, lengths: tuple[int, int], arrays: Mapping[str, Ints]) -> NgramIndex:
        """The index that ``to_arrays`` was called on."""
        index = cls(*lengths)
        index._alphabet = arrays["alphabet"]
        terms = 0
        for length in range(1, lengths[1] + 1):
            if f"ranks_{length}" in arrays:
                index._ranks[length] = arrays[f"ranks_{length}"]
            if f"keys_{length}" in arrays:
                index._keys[length], index._offsets[length] = arrays[f"keys_{length}"], terms
                terms += len(arrays[f"keys_{length}"])
        return index

    def _grams(self, symbols: SymbolSequence, rank: Callable[[int, Ints], Ints]) -> Iterator[tuple[int, Ints, Ints]]:
        """For each length the keys of all n-grams and the texts that contain them."""
        base = len(self._alphabet) + 1
        # Zero is the digit of a symbol that was never learned: no learned key has it.
        digits = self._digits(symbols.symbols)
        first = np.diff(symbols.left, prepend=0) >= 0
        shortest, longest = self.lengths
        starts, keys, size = np.arange(len(digits)), digits, base
        for length in range(1, longest + 1):
            if length > 1:
                if size > _MAX_CODE // base:
                    keys = rank(length - 1, keys)
                    size = len(self._ranks[length - 1]) + 1
                inside = symbols.left[starts] >= length
                starts = starts[inside]
                keys = keys[inside] * base + digits[starts + length - 1]
                size *= base
            if length >= shortest:
                yield length, keys, symbols.texts[starts]
            elif symbols.whole_short_runs:
                complete = first[starts] & (symbols.left[starts] == length)
                yield length, keys[complete], symbols.texts[starts[complete]]

    def _digits(self, symbols: Ints) -> Ints:
        digit = np.zeros(int(self._alphabet.max(initial=-1)) + 2, dtype=np.int64)
        digit[self._alphabet] = np.arange(1, len(self._alphabet) + 1)
        return digit[np.minimum(symbols, len(digit) - 1)]

    def _learned_rank(self, length: int, keys: Ints) -> Ints:
        self._ranks[length], rank = np.unique(keys, return_inverse=True)
        return rank + 1

    def _known_rank(self, length: int, keys: Ints) -> Ints:
        return _find(self._ranks[length], keys) + 1


def _find(table: Ints, values: Ints) -> Ints:
    """The index of each value in a sorted table; -1 if it is missing."""
    if len(table) == 0:
        return np.full(len(values), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[position] == values, position, -1)
