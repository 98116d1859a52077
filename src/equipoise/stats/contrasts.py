"""One system against another on one metric: difference, interval, test and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.stats.paired_tests import get_test, run_test
from equipoise.stats.power import PowerEstimate
from equipoise.stats.resampling import UNBOUNDED, mean_difference, mean_intervals
from equipoise.types import Direction, Floats, Ids, nan_equal

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.stats.intervals import Bounds, Interval

# Differences are processed in stacks of at most 32 MB.
STACK_CELLS = 4_000_000
DIFFERENCE_REACH = 1.0
"""The assumed maximum distance of differences from their mean, in multiples of the largest observed deviation.

Most differences are 0 and the others are few, so the sample often lacks the largest. Where 5 % of 100 hits
move one way, Student's t covers 88 %, and 1 covers 96 %. Where 5 % move one way and 1 % the other, BCa covers
89 %, and 1 covers 97 %. With 2, intervals of differences in all units cover 98 to 99 %.
"""
NO_POWER = PowerEstimate.unknown("power is known for differences of units only")


@nan_equal
@dataclass(frozen=True, slots=True)
class Contrast:
    """System ``a`` minus system ``b`` on the units where both are defined.

    ``wins`` counts the units on which a is better, whichever direction that is. ``adjusted`` is p corrected
    for the family; both are NaN if there is no test, for the reason in ``reason``. ``test`` names the
    paired test, or the resampling for a metric that is not a mean over units. ``sd`` is the standard
    error of the difference times sqrt(n), and ``units_per_block`` the mean size of a cluster. ``detectable``
    and ``needed`` are for the test of this pair within its family (``stats.power``), at 80 % power;
    ``needed`` assumes that the observed difference is the true one, which is often smaller.
    """

    metric: str
    a: str
    b: str
    better: Direction
    difference: float
    interval: Interval
    p: float
    adjusted: float
    n: int
    undefined: int
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    sd: float | None = None
    units_per_block: float = 1.0
    detectable: PowerEstimate = NO_POWER
    needed: PowerEstimate = NO_POWER
    reason: str = ""
    test: str = ""

    def reversed(self) -> Contrast:
        """The contrast with ``a`` and ``b`` exchanged."""
        low, high = -self.interval.high, -self.interval.low
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=-self.difference,
            interval=replace(self.interval, low=low, high=high),
            wins=self.losses,
            losses=self.wins,
        )

    def winner(self, alpha: float = 0.05) -> str | None:
        """The better system if the difference is significant, else None."""
        if not self.adjusted < alpha or self.difference == 0:
            return None
        return self.a if (self.difference > 0) == (self.better == Direction.UP) else self.b


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric with per-unit values of all systems, ready to be contrasted."""

    metric: str
    better: Direction
    values: Floats
    weights: Floats | None
    bounds: Bounds = UNBOUNDED

    @property
    def reach(self) -> Bounds:
        """How far a difference can go."""
        return difference_bounds(self.bounds) or UNBOUNDED


def difference_bounds(bounds: Bounds) -> Bounds | None:
    """The bounds of a difference of two values; None if the metric has none.

    >>> difference_bounds((0.0, 1.0))
    (-1.0, 1.0)
    """
    width = bounds[1] - bounds[0]
    return (-width, width) if isfinite(width) else None


def why_not_testable(column: MetricColumn, clusters: Ids | None, test: str) -> str:
    """Why the test cannot be run on this metric; empty when it can."""
    paired_test = get_test(test)
    if clusters is not None and "clusters" not in paired_test.takes:
        return f"{paired_test.noun} cannot take clusters into account"
    if column.weights is not None and "weights" not in paired_test.takes:
        return f"{paired_test.noun} cannot take weights into account"
    defined = column.values[~np.isnan(column.values)]
    if paired_test.binary_only and not np.isin(defined, (0.0, 1.0)).all():
        return f"{paired_test.noun} needs hits and misses"
    return ""


def unit_contrasts(
    columns: Sequence[MetricColumn], systems: Sequence[str], clusters: Ids | None, config: StatsConfig
) -> list[Contrast]:
    """Every pair of systems on every metric, as few passes over the random signs as memory allows.

    p and interval of a contrast do not depend on which others are made with it.
    """
    pairs = list(combinations(range(len(systems)), 2))
    contrasts: list[Contrast] = []
    for stack in _stacks(columns, len(pairs), clusters, config.test):
        differences = np.column_stack([column.values[:, i] - column.values[:, j] for column in stack for i, j in pairs])
        labels = [(column, systems[i], systems[j]) for column in stack for i, j in pairs]
        contrasts += _stacked_contrasts(differences, labels, stack[0].weights, clusters, config)
    return contrasts


def _stacks(columns: Sequence[MetricColumn], pairs: int, clusters: Ids | None, test: str) -> list[list[MetricColumn]]:
    """Metrics that one call can test: unweighted, with the same test, and within the memory bound."""
    stacks: list[list[MetricColumn]] = []
    kinds: list[tuple[bool, str]] = []
    for column in columns:
        kind = (column.weights is None, why_not_testable(column, clusters, test))
        room = bool(stacks) and (len(stacks[-1]) + 1) * pairs * len(column.values) <= STACK_CELLS
        if room and kind[0] and kind == kinds[-1]:
            stacks[-1].append(column)
        else:
            stacks.append([column])
            kinds.append(kind)
    return stacks


def _stacked_contrasts(
    differences: Floats,
    labels: Sequence[tuple[MetricColumn, str, str]],
    weights: Floats | None,
    clusters: Ids | None,
    config: StatsConfig,
) -> list[Contrast]:
    """Contrasts of columns that share their weights and have the same test."""
    reason = why_not_testable(labels[0][0], clusters, config.test)
    p = np.full(len(labels), nan)
    if not reason:
        p = run_test(
            config.test,
            differences,
            weights=weights,
            clusters=clusters,
            n_permutations=config.n_permutations,
            rng=config.rng(0),
        )
    means = mean_difference(differences, weights=weights, clusters=clusters)
    reaches = [column.reach for column, _, _ in labels]
    intervals = mean_intervals(
        differences,
        weights=weights,
        clusters=clusters,
        bounds=[UNBOUNDED] * len(labels),
        limits=reaches,
        reach=DIFFERENCE_REACH,
        confidence_level=config.confidence_level,
        n_resamples=config.n_resamples,
        rng=config.rng(1),
    )
    contrasts = []
    for at, (column, a, b) in enumerate(labels):
        units, blocks = float(means.units[at]), float(means.blocks[at])
        difference, error = float(means.mean[at]), float(means.error[at])
        wins, losses = _won_and_lost(differences[:, at], column.better)
        why = reason or ("" if units else "no unit is defined for both")
        contrasts.append(
            Contrast(
                metric=column.metric,
                a=a,
                b=b,
                better=column.better,
                difference=difference,
                interval=intervals[at],
                p=float(p[at]),
                adjusted=nan,
                n=int(units),
                undefined=len(differences) - int(units),
                reason=why or ("" if p[at] == p[at] else "the differences have no spread"),
                wins=wins,
                ties=int(units) - wins - losses,
                losses=losses,
                sd=unit_sd(difference, error, units),
                units_per_block=units / blocks if blocks else 1.0,
                test="" if reason else config.test,
            )
        )
    return contrasts


def _won_and_lost(differences: Floats, better: Direction) -> tuple[int, int]:
    """On how many units the first system is better, and on how many worse."""
    gains = differences if better == Direction.UP else -differences
    slack = 1e-12 * np.nanmax(np.abs(gains), initial=0.0)
    return int((gains > slack).sum()), int((gains < -slack).sum())


def unit_sd(difference: float, error: float, units: float) -> float:
    """The standard deviation of one unit's difference, from the standard error of their mean."""
    # A standard error from equal differences is rounding error, not a spread.
    return error * sqrt(units) if not error <= 1e-12 * abs(difference) else 0.0
