"""Where two terms meet: the best of their common ancestors, for pairs and for whole tables.

A common ancestor is worth what it is worth from each side, added. With half the information content of
the ancestor on either side the best is the most informative common ancestor; with the steps up to it,
negative, the best lies on the shortest way from one term to the other through an ancestor of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.evidence.placement import starts_of
from equipoise.ontology.graph import Lineage
from equipoise.types import Floats, Ints

BLOCK_BYTES = 64 << 20
_PAIRS_IN_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class Meeting:
    """The largest worth of a common ancestor; minus infinity where there is none.

    ``worth`` stands beside ``lineage.rows.values``: one side of what that ancestor is worth to that term.
    """

    lineage: Lineage
    worth: Floats

    @classmethod
    def at_largest(cls, lineage: Lineage, value: Floats) -> Meeting:
        """At the common ancestor of the largest value; halves add up to it exactly."""
        return cls(lineage, value[lineage.rows.values] / 2.0)

    @classmethod
    def at_nearest(cls, lineage: Lineage) -> Meeting:
        """At the common ancestor that is fewest steps away from both together; worth minus the steps."""
        return cls(lineage, -lineage.steps.astype(np.float64))

    def pairs(self, a: Ints, b: Ints) -> Floats:
        """The worth of the best common ancestor of ``a[i]`` and ``b[i]``."""
        best = np.empty(len(a))
        for start in range(0, len(a), _PAIRS_IN_BLOCK):
            block = slice(start, start + _PAIRS_IN_BLOCK)
            best[block] = self._paired(a[block], b[block])
        return best

    def between(self, a: Ints, b: Ints) -> Floats:
        """The same for every term of ``a`` (rows) with every one of ``b`` (columns)."""
        if len(a) > len(b):
            return np.ascontiguousarray(self.between(b, a).T)
        best = np.empty((len(a), len(b)))
        slots = self.lineage.rows.slots(b)
        rows_in_block = max(1, BLOCK_BYTES // (8 * (len(slots) + len(self.lineage.rows))))
        for start in range(0, len(a), rows_in_block):
            block = slice(start, start + rows_in_block)
            self._tabled(a[block], b, slots, best[block])
        return best

    def _paired(self, a: Ints, b: Ints) -> Floats:
        """Both sides laid out in ascending order of pair and ancestor, and merged."""
        left, right = self.lineage.rows.slots(a), self.lineage.rows.slots(b)
        key, other = self._keys(a, left), self._keys(b, right)
        place = np.minimum(np.searchsorted(other, key), len(other) - 1)
        common = other[place] == key
        worth = self.worth[left[common]] + self.worth[right[place[common]]]
        pair = key[common] // len(self.lineage.rows)
        best = np.full(len(a), -np.inf)
        first = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else pair
        if len(first):
            best[pair[first]] = np.maximum.reduceat(worth, first)
        return best

    def _keys(self, terms: Ints, slots: Ints) -> Ints:
        rows = self.lineage.rows
        pair = np.repeat(np.arange(len(terms)), rows.starts[terms + 1] - rows.starts[terms])
        return pair * len(rows) + rows.values[slots]

    def _tabled(self, a: Ints, b: Ints, slots: Ints, best: Floats) -> None:
        """One side spread out over all terms, so that the other side only looks up its ancestors."""
        rows = self.lineage.rows
        spread = np.full((len(a), len(rows)), -np.inf)
        own = rows.slots(a)
        counts = rows.starts[a + 1] - rows.starts[a]
        spread[np.repeat(np.arange(len(a)), counts), rows.values[own]] = self.worth[own]
        ancestors = rows.values[slots]
        starts = starts_of(rows.starts[b + 1] - rows.starts[b])[:-1]
        worth = self.worth[slots]
        for row, out in zip(spread, best, strict=True):
            np.maximum.reduceat(row[ancestors] + worth, starts, out=out)
