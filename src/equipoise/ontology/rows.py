"""Rows of unequal length in two arrays: the compressed form of lists of places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from equipoise.evidence.placement import spans, starts_of
from equipoise.types import Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """``values[starts[i]:starts[i + 1]]`` is row ``i``.

    >>> rows = Rows.of([[4, 5], [], [6]])
    >>> rows[0], rows.counts
    (array([4, 5]), array([2, 0, 1]))
    """

    starts: Ints
    values: Ints

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Rows:
        """From lists of numbers."""
        rows = [list(row) for row in lists]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        return cls(starts_of(counts), np.array([each for row in rows for each in row], dtype=np.int64))

    @classmethod
    def grouped(cls, owner: Ints, values: Ints, rows: int) -> Rows:
        """From pairs of a row and a value; each row is in ascending order."""
        order = np.lexsort((values, owner))
        return cls(starts_of(np.bincount(owner, minlength=rows)), values[order])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def counts(self) -> Ints:
        """How long each row is."""
        return np.diff(self.starts)

    @property
    def owner(self) -> Ints:
        """The row that each value stands in."""
        return np.repeat(np.arange(len(self)), self.counts)

    def slots(self, rows: Ints) -> Ints:
        """Where in ``values`` the values of these rows stand, one row after another."""
        first = self.starts[rows]
        return spans(first, self.starts[rows + 1] - first)

    def reversed(self) -> Rows:
        """For each place that occurs as a value, the rows it stands in: children from parents."""
        return Rows.grouped(self.values, self.owner, len(self))
