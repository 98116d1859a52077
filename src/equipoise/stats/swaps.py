"""The randomisation test of figures that are functions of sums over units, such as micro F1.

If two systems are exchangeable, their answers on a unit could as well have been swapped. A mean over units
then has its difference on that unit turned round; a function of sums has what the unit adds moved from one
system's sums to the other's, and is computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from equipoise.stats.draws import cluster_codes
from equipoise.types import Floats, Ids

RANDOMISATION = "randomisation"
_BLOCK = 1024
_EQUAL = 1e-11
"""Figures that differ by less differ by rounding alone."""


@runtime_checkable
class Summed(Protocol):
    """A metric that is a function of sums over units."""

    def addends(self, evidence: Any) -> Floats:
        """What each unit adds to each sum: a row a unit."""

    def of_sums(self, sums: Floats) -> Floats:
        """The figure of each row of sums; NaN where it is undefined."""


@dataclass(frozen=True, eq=False)
class Swaps:
    """What every unit, or whole cluster, adds to the sums of every system, and how they are swapped."""

    metric: Summed
    addends: Sequence[Floats]
    flips: int
    seed: int

    @classmethod
    def of(
        cls,
        metric: Summed,
        addends: Sequence[Floats],
        clusters: Ids | None,
        flips: int,
        rng: np.random.Generator,
    ) -> Self:
        """Units of a cluster are swapped together."""
        if clusters is not None:
            codes = cluster_codes(clusters, len(addends[0]))
            addends = [_by_code(each, codes) for each in addends]
        return cls(metric, addends, flips, int(rng.integers(2**31)))

    def p(self, i: int, j: int) -> float:
        """The share of swaps that set systems ``i`` and ``j`` at least as far apart, two-sided.

        All swaps are made where there are at most ``flips`` of them; else p = (b + 1) / (flips + 1). Swaps
        after which a figure is undefined count as far apart, so that they never make p smaller.
        """
        moved = self.addends[j] - self.addends[i]
        moved = moved[(moved != 0).any(axis=1)]
        first, second = self.addends[i].sum(axis=0), self.addends[j].sum(axis=0)
        seen = abs(float(self._apart(np.zeros((1, len(first))), first, second)[0]))
        exact = len(moved) <= self.flips.bit_length() - 1
        far = tried = 0
        for picked in _all(len(moved)) if exact else self._drawn(len(moved)):
            apart = np.abs(self._apart(picked @ moved, first, second))
            far += int((np.isnan(apart) | (apart >= seen - _EQUAL)).sum())
            tried += len(picked)
        return far / tried if exact else (far + 1) / (tried + 1)

    def _apart(self, shift: Floats, first: Floats, second: Floats) -> Floats:
        """The differences of the two figures after so much was moved from the second to the first."""
        return self.metric.of_sums(first + shift) - self.metric.of_sums(second - shift)

    def _drawn(self, units: int) -> Iterator[Floats]:
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.flips, _BLOCK):
            size = min(_BLOCK, self.flips - start)
            yield rng.integers(0, 2, size=(size, units)).astype(np.float64)


def _all(units: int) -> Iterator[Floats]:
    """Every choice of units, in blocks."""
    for start in range(0, 2**units, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, 2**units))
        yield ((numbers[:, None] >> np.arange(units)) & 1).astype(np.float64)


def _by_code(addends: Floats, codes: Any) -> Floats:
    sums = np.zeros((int(codes.max()) + 1, addends.shape[1]))
    np.add.at(sums, codes, addends)
    return sums
