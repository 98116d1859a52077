"""Missing scores: all systems of a comparison are scored on the units on which each of them has a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.stats.estimate import on_units

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.metrics.base import Metric
    from equipoise.stats.pairing import AlignedResults
    from equipoise.types import Bools, Floats

MissingScores = Mapping[str, Mapping[str, int]]
"""By metric and system, the number of units on which the system has no value although others have one."""


def on_complete_units(
    pairing: AlignedResults, names: Iterable[str], metrics: Mapping[str, Metric[Any]], config: StatsConfig
) -> tuple[AlignedResults, MissingScores]:
    """The results with each metric restricted to the units on which all systems have a value, and what is missing.

    Order, ranks and differences of all pairs are then about the same units. Units that are undefined for all systems,
    such as queries without relevant items, restrict nothing; neither does a system without any value.
    """
    results, missing = list(pairing.results), {}
    for name in names:
        if not pairing.has_parts(name):
            continue
        values = pairing.per_unit(name)
        n_missing = n_missing_scores(values)
        if not any(n_missing):
            continue
        complete = complete_units(values)
        missing[name] = {system: n for system, n in zip(pairing.systems, n_missing, strict=True) if n}
        for at, order in enumerate(pairing.orders):
            kept = np.zeros(len(complete), dtype=bool)
            kept[order] = complete
            results[at] = on_units(results[at], name, kept, metrics.get(name), config)
    return replace(pairing, results=tuple(results)), missing


def complete_units(values: Floats) -> Bools:
    """Whether a unit is defined for all systems that have defined units."""
    defined = ~np.isnan(values)
    return np.asarray(defined[:, defined.any(axis=0)].all(axis=1) & defined.any(axis=1))


def n_missing_scores(values: Floats) -> list[int]:
    """For each system with defined units, the number of units that others have a value on and it has not."""
    defined = ~np.isnan(values)
    gaps = defined.any(axis=1, keepdims=True) & ~defined
    n_missing: list[int] = np.where(defined.any(axis=0), gaps.sum(axis=0), 0).tolist()
    return n_missing
