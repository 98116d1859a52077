"""Whether a figure is above what luck gives: the share of shuffles that do as well."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from equipoise.evidence.base import Evidence
from equipoise.metrics.base import Metric
from equipoise.stats.parts import value_of

SHUFFLES = 999
"""A p of 0.05 is then known to 0.007, and the smallest is 0.001."""


class Luck(NamedTuple):
    """What shuffles give on average, and the share of them that do as well as what was seen."""

    chance: float
    p: float


def shuffled_luck(
    evidence: Evidence, metrics: Mapping[str, Metric[Any]], *, seed: int, shuffles: int = SHUFFLES
) -> dict[str, Luck]:
    """The luck of every figure, all on the same shuffles; p is one-sided and never 0.

    >>> from equipoise.evidence.labels import Labels
    >>> from equipoise.metrics.clusterings import AdjustedRand
    >>> labels = Labels.of([0] * 9 + [1] * 9, ["a"] * 9 + ["b"] * 9)
    >>> shuffled_luck(labels, {"ARI": AdjustedRand()}, seed=0)["ARI"].p
    0.001
    """
    rng = np.random.default_rng([seed, shuffles])
    drawn = [evidence.shuffled(rng) for _ in range(shuffles)]
    return {name: _luck(metric, evidence, drawn) for name, metric in metrics.items()}


def _luck(metric: Metric[Any], evidence: Evidence, drawn: list[Any]) -> Luck:
    def figure(part: Any) -> float:
        return metric.measure(part).value

    seen = value_of(figure, evidence)
    values = np.array([value_of(figure, each) for each in drawn])
    known = values[~np.isnan(values)]
    if isnan(seen) or not len(known):
        return Luck(nan, nan)
    # Rounding must not decide between equals.
    as_good = np.count_nonzero(known >= seen - 1e-12)
    return Luck(float(known.mean()), float((as_good + 1) / (len(known) + 1)))
