"""Contrasts on figures that are no mean over units, such as a correlation: the evidence is resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from typing import Any

import numpy as np

from equipoise.evidence.base import Evidence
from equipoise.metrics.base import Metric
from equipoise.stats.contrast import Contrast
from equipoise.stats.corpus_interval import DEFINED_SHARE, FEWEST_DRAWS
from equipoise.stats.interval import Bounds, Interval, t_interval
from equipoise.stats.parts import (
    Shares,
    blocks_of,
    part_count,
    part_rows,
    shares_for,
    standard_error,
    too_sparse,
    value_of,
)
from equipoise.stats.resample import UNBOUNDED
from equipoise.stats.result import Estimate
from equipoise.stats.swaps import RANDOMISATION, Swaps
from equipoise.types import Floats, Ids

FINE_ENOUGH = 1000
"""Resamples with repetition for a p of 0.002."""


BOOTSTRAP, SUBSAMPLES = "paired bootstrap", "paired subsamples"
"""Where p of a figure comes from that no paired test can be made on."""


@dataclass(frozen=True, slots=True)
class JointScores:
    """A metric of every system on the same resamples: ``table`` (resamples, systems) around ``values``.

    ``shares`` are those of parts drawn without repetition (none: with), ``blocks`` counts what was drawn
    from, and ``reason`` says why the table tells nothing. ``swaps`` makes the randomisation test, where the
    metric is a function of sums over units and that test was asked for.
    """

    values: Floats
    table: Floats
    blocks: int
    shares: Shares
    reason: str = ""
    swaps: Swaps | None = None

    @property
    def centred(self) -> Floats:
        """The table; halves are moved to the values, since a figure of distances shifts with their number."""
        if not self.shares:
            return self.table
        halves = self.table[:: len(self.shares)]
        return np.asarray(halves - np.nanmean(halves, axis=0) + self.values)


def joint_scores(
    metric: Metric[Any],
    evidence: Sequence[Evidence],
    *,
    clusters: Ids | None = None,
    resamples: int = 2000,
    rng: np.random.Generator,
    swaps: Swaps | None = None,
) -> JointScores:
    """Score every system on the same resamples of the units, whole clusters where given.

    A figure that does not bear copies is scored on parts without repetition (see ``parts``). ``resamples`` is
    a ceiling there; with repetition at least 1,000 are kept, since p is no finer than their number.
    """
    shares = shares_for(metric, evidence[0])
    blocks = blocks_of(evidence[0], clusters)
    values = np.array([_value(metric, system) for system in evidence])
    parts = part_count(evidence[0].kind, len(evidence[0]), resamples)
    parts = parts if shares else max(parts, min(resamples, FINE_ENOUGH))
    table = np.full((parts, len(evidence)), nan)
    if len(blocks) >= FEWEST_DRAWS:
        for row, index in zip(table, part_rows(blocks, shares, parts, rng), strict=True):
            row[:] = [_value(metric, system.take(index)) for system in evidence]
    reasons = (too_sparse(metric, system) for system in evidence)
    return JointScores(values, table, len(blocks), shares, next(filter(None, reasons), ""), swaps)


def corpus_contrasts(
    estimates: Sequence[Estimate],
    systems: Sequence[str],
    joint: JointScores | None,
    *,
    level: float = 0.95,
    bounds: Bounds = UNBOUNDED,
) -> list[Contrast]:
    """Every pair of systems: the interval of the difference, and p as the level that just excludes 0.

    From resamples with repetition the interval is the percentile one, and p twice the smaller share of
    differences on either side of 0, one added to both counts so that it is never 0; where ``joint`` can make
    the randomisation test, p is that of the test. From parts without repetition both come from Student's t
    with their spread as the standard error. Every contrast names its test. ``joint`` of None means
    that the evidence or the metric was not at hand. Intervals are clipped to ``bounds``, of the difference.
    """
    contrasts = []
    for i, j in combinations(range(len(systems)), 2):
        difference = estimates[i].value - estimates[j].value
        reason = _refusal(difference, joint, i, j)
        interval, p, test = Interval.unknown(reason, level=level), nan, ""
        if joint is not None and not reason:
            resampled = joint.table[:, i] - joint.table[:, j]
            if joint.shares:
                interval, p = _from_parts(difference, resampled, joint, level)
                test = SUBSAMPLES
            else:
                interval, p = _from_resamples(difference, resampled[~np.isnan(resampled)], level)
                test = BOOTSTRAP
            if joint.swaps is not None:
                p, test = joint.swaps.p(i, j), RANDOMISATION
        contrasts.append(
            Contrast(
                metric=estimates[i].metric,
                a=systems[i],
                b=systems[j],
                better=estimates[i].better,
                difference=difference,
                interval=interval.clipped(bounds),
                p=p,
                adjusted=nan,
                n=min(estimates[i].n, estimates[j].n),
                undefined=max(estimates[i].undefined, estimates[j].undefined),
                reason=reason,
                test=test,
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
    if joint.reason:
        return joint.reason
    known = ~np.isnan(joint.table[:, i] - joint.table[:, j])
    return "" if known.mean() >= DEFINED_SHARE else "undefined in too many resamples"


def _from_resamples(difference: float, known: Floats, level: float) -> tuple[Interval, float]:
    slack = 1e-12 * max(np.abs(known).max(), abs(difference))
    below, above = int((known <= slack).sum()), int((known >= -slack).sum())
    p = min(1.0, 2 * (min(below, above) + 1) / (len(known) + 1))
    if np.ptp(known) <= slack:
        return Interval.unknown("every resample gives the same difference", level=level), p
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "paired bootstrap"), p


def _from_parts(
    difference: float, resampled: Floats, joint: JointScores, level: float
) -> tuple[Interval, float]:
    from scipy.special import stdtr

    error, degrees = standard_error(resampled, joint.shares, joint.blocks)
    if error <= 1e-12 * abs(difference):
        p = 1.0 if difference == 0 else nan
        return Interval.unknown("every resample gives the same difference", level=level), p
    interval = t_interval(difference, error, degrees, level, method="subsample")
    return interval, float(2 * stdtr(degrees, -abs(difference) / error))


def _value(metric: Metric[Any], evidence: Evidence) -> float:
    return value_of(lambda part: metric.measure(part).value, evidence)
