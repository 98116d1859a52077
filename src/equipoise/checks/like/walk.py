"""The way from one set of conventions to another: every figure on it, each measured once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np

from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.checks.like.measure import Figure, figure_under
from equipoise.metrics.base import Metric
from equipoise.types import Bools

NO_DIFFERENCE = 1e-12


@dataclass(frozen=True)
class Walk:
    """Where the conventions in ``changed`` are the other program's, and the rest the first one's."""

    material: Material
    metric: Metric[Any]
    one: Conventions
    other: Conventions
    _known: dict[frozenset[str], Figure] = field(default_factory=dict, repr=False)

    def figure(self, changed: frozenset[str]) -> Figure:
        """The figure when these conventions have been changed."""
        if changed not in self._known:
            conventions = self.one.with_values({name: self.other[name] for name in changed})
            self._known[changed] = figure_under(self.material, self.metric, conventions)
        return self._known[changed]

    def worth(self, changed: frozenset[str]) -> float:
        """Its value; halfway a mean over no query at all counts as 0, so that the shares still add up."""
        value = self.figure(changed).value
        return 0.0 if isnan(value) else value

    def alone(self, name: str) -> float:
        """What one change does to the first figure."""
        return self.worth(frozenset({name})) - self.worth(frozenset())

    def touched(self, name: str, active: Sequence[str]) -> Bools:
        """Units whose value a change moves, as the first or as the last of all changes."""
        every = frozenset(active)
        first = unequal(self.figure(frozenset()), self.figure(frozenset({name})))
        last = unequal(self.figure(every - {name}), self.figure(every))
        return first | last


def unequal(one: Figure, other: Figure) -> Bools:
    """Units with another value, or with one on one side only."""
    gone = np.isnan(one.per_unit) != np.isnan(other.per_unit)
    apart = np.abs(np.nan_to_num(one.per_unit) - np.nan_to_num(other.per_unit)) > NO_DIFFERENCE
    differs: Bools = gone | apart
    return differs


def moved(one: Figure, other: Figure) -> list[int]:
    """Units that differ, those first that move the mean most."""
    parts = np.nan_to_num(other.per_unit) / other.n - np.nan_to_num(one.per_unit) / one.n
    differs = unequal(one, other)
    return [int(at) for at in np.argsort(-np.abs(parts), kind="stable") if differs[at]]
