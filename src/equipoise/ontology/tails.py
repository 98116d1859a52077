"""Ties at the end of a list: all terms that score as much as the last one listed, listed or not.

A system that shares no word with a text gives thousands of terms the same score. Which of them stand in the
first ten is luck, and what luck is worth depends on how alike each of the thousands is to an expected term.
Terms of equal similarity count alike, so only the levels of similarity are kept, with how many are at each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.ontology.rows import Rows
from equipoise.ontology.similarity import Similarity
from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Tails:
    """For some units, all terms that tie with the last one listed; a bit for every term of the ontology."""

    terms: int
    bits: dict[int, NDArray[np.uint8]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.bits)

    def keep(self, unit: int, tied: Bools) -> None:
        """Take note of which terms tie."""
        self.bits[unit] = np.packbits(tied)

    def items(self) -> Iterator[tuple[int, Ints]]:
        """The units, each with the places of its tied terms in the order of the ontology."""
        for unit, packed in self.bits.items():
            yield unit, np.flatnonzero(np.unpackbits(packed, count=self.terms))


@dataclass(frozen=True, slots=True)
class Levels:
    """The similarities that occur among tied terms, and of how many: a row a level of a unit.

    ``size`` is how many terms tie in all, and ``before`` how many of them an order by id puts before the
    first of the level.
    """

    unit: Ints
    gain: Floats
    copies: Ints
    before: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.unit)


def levels_of(similarity: Similarity, tails: Tails, relevant: Rows) -> Levels:
    """How alike the tied terms of each unit are to its nearest relevant term; relevant ones are left out."""
    by_id = id_order(tails.terms if len(tails) else 0)
    parts = [_levels(similarity, unit, tied, relevant[unit], by_id) for unit, tied in tails.items()]
    empty = Levels(*(np.zeros(0, dtype=kind) for kind in (np.int64, np.float64, *[np.int64] * 3)))
    joined = zip(*([getattr(part, name) for name in _COLUMNS] for part in [empty, *parts]), strict=True)
    return Levels(*(np.concatenate(column) for column in joined))


def id_order(terms: int) -> Ints:
    """The place of each term when equal scores are put into the order of ids, as everywhere: last name first.

    >>> id_order(12).tolist()
    [11, 10, 7, 6, 5, 4, 3, 2, 1, 0, 9, 8]
    """
    order: Ints = np.argsort(np.argsort(np.arange(terms).astype(str)))
    return terms - 1 - order


def _levels(similarity: Similarity, unit: int, tied: Ints, relevant: Ints, by_id: Ints) -> Levels:
    if not len(relevant):
        tied = tied[:0]
    tied = tied[np.argsort(by_id[tied])]
    place = np.flatnonzero(~np.isin(tied, relevant))
    alike = similarity.between(relevant, tied[place]).max(axis=0) if len(place) else np.zeros(0)
    gain, first, copies = np.unique(alike, return_index=True, return_counts=True)
    return Levels(np.full(len(gain), unit), gain, copies, place[first], np.full(len(gain), len(tied)))


_COLUMNS = ("unit", "gain", "copies", "before", "size")
