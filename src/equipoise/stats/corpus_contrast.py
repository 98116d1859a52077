"""Contrasts on figures that are no mean over units, such as a correlation: the evidence is resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan, sqrt
from typing import Any

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.metrics.base import Metric
from equipoise.stats.contrast import Contrast
from equipoise.stats.draws import members
from equipoise.stats.interval import Interval, t_interval
from equipoise.stats.resample import DEFINED_SHARE, FEWEST_DRAWS
from equipoise.stats.result import Estimate
from equipoise.types import Floats, Ids


@dataclass(frozen=True, slots=True)
class JointScores:
    """A metric of every system on the same resamples: ``table`` (resamples, systems) around ``values``.

    ``subsampled`` marks halves drawn without repetition, and ``blocks`` counts what was drawn from.
    """

    values: Floats
    table: Floats
    blocks: int
    subsampled: bool

    @property
    def centred(self) -> Floats:
        """The table; for halves moved to the values, since a figure of distances shifts with their number."""
        return self.table - np.nanmean(self.table, axis=0) + self.values if self.subsampled else self.table


def joint_scores(
    metric: Metric[Any],
    evidence: Sequence[Evidence],
    *,
    clusters: Ids | None = None,
    resamples: int = 2000,
    rng: np.random.Generator,
) -> JointScores:
    """Score every system on the same resamples of the units, whole clusters where given.

    Points of a space may not repeat (a copy is its own nearest neighbour): there half of them are drawn
    without repetition, which varies as much as the whole does.
    """
    units = len(evidence[0])
    blocks = members(np.arange(units) if clusters is None else clusters, units)
    subsampled = evidence[0].kind == "space"
    values = np.array([_value(metric, system) for system in evidence])
    table = np.full((resamples, len(evidence)), nan)
    if len(blocks) >= FEWEST_DRAWS:
        for row in table:
            if subsampled:
                drawn = np.sort(rng.permutation(len(blocks))[: len(blocks) // 2])
            else:
                drawn = rng.integers(0, len(blocks), len(blocks))
            index = np.concatenate([blocks[block] for block in drawn])
            row[:] = [_value(metric, system.take(index)) for system in evidence]
    return JointScores(values, table, len(blocks), subsampled)


def corpus_contrasts(
    estimates: Sequence[Estimate],
    systems: Sequence[str],
    joint: JointScores | None,
    *,
    level: float = 0.95,
) -> list[Contrast]:
    """Every pair of systems: the interval of the difference, and p as the level that just excludes 0.

    From resamples with repetition the interval is the percentile one, and p twice the smaller share of
    differences on either side of 0, one added to both counts so that it is never 0. From halves both come
    from Student's t with their spread as the standard error. ``joint`` of None means that the evidence or
    the metric was not at hand.
    """
    contrasts = []
    for i, j in combinations(range(len(systems)), 2):
        difference = estimates[i].value - estimates[j].value
        reason = _refusal(difference, joint, i, j)
        interval, p = Interval.unknown(reason, level=level), nan
        if joint is not None and not reason:
            resampled = joint.table[:, i] - joint.table[:, j]
            known = resampled[~np.isnan(resampled)]
            make = _from_halves if joint.subsampled else _from_resamples
            interval, p = make(difference, known, joint.blocks, level)
        contrasts.append(
            Contrast(
                metric=estimates[i].metric,
                a=systems[i],
                b=systems[j],
                better=estimates[i].better,
                difference=difference,
                interval=interval,
                p=p,
                adjusted=nan,
                n=min(estimates[i].n, estimates[j].n),
                undefined=max(estimates[i].undefined, estimates[j].undefined),
                reason=reason,
            )
        )
    return contrasts


def _refusal(difference: float, joint: JointScores | None, i: int, j: int) -> str:
    """Why there is no test of this pair; empty when there is one."""
    if isnan(difference):
        return "a figure is undefined"
    if joint is None:
        return "a corpus-level figure without its evidence"
    if joint.blocks < FEWEST_DRAWS:
        return f"{joint.blocks} are too few to resample"
    known = ~np.isnan(joint.table[:, i] - joint.table[:, j])
    return "" if known.mean() >= DEFINED_SHARE else "undefined in too many resamples"


def _from_resamples(difference: float, known: Floats, blocks: int, level: float) -> tuple[Interval, float]:
    slack = 1e-12 * max(np.abs(known).max(), abs(difference))
    below, above = int((known <= slack).sum()), int((known >= -slack).sum())
    p = min(1.0, 2 * (min(below, above) + 1) / (len(known) + 1))
    if np.ptp(known) <= slack:
        return Interval.unknown("every resample gives the same difference", level=level), p
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "paired bootstrap"), p


def _from_halves(difference: float, known: Floats, blocks: int, level: float) -> tuple[Interval, float]:
    from scipy.special import stdtr

    half = blocks // 2
    error = float(np.std(known)) * sqrt(half / (blocks - half))
    if error <= 1e-12 * abs(difference):
        p = 1.0 if difference == 0 else nan
        return Interval.unknown("every resample gives the same difference", level=level), p
    interval = t_interval(difference, error, blocks - 1, level)
    return replace(interval, method="subsample"), float(2 * stdtr(blocks - 1, -abs(difference) / error))


def _value(metric: Metric[Any], evidence: Evidence) -> float:
    """The figure, or NaN where this part of the evidence cannot give it."""
    try:
        return metric.measure(evidence).value
    except UndefinedError:
        return nan
