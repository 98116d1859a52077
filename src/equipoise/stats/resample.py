"""Intervals of means by drawing the units, or whole clusters of them, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from equipoise.errors import ShapeError
from equipoise.stats.draws import Draws, checked_resamples, ratio, resampled_sums
from equipoise.stats.interval import Bounds, Interval, checked_level, t_critical, t_interval, wilson
from equipoise.stats.limits import (
    ROUNDING,
    bca_limits,
    bounded_limits,
    lopsided,
    studentised_limits,
)
from equipoise.types import Bools, Floats, Ints

FEW_DRAWS = 10
"""Below this, resampling repeats the same handful of values; Student's interval is used instead."""
NO_BOUND = 1e300
"""Bounds this far apart bound nothing, and tell nothing of how large a rare value can be."""
UNBOUNDED: Bounds = (-inf, inf)


def bootstrap_means(
    values: Any, *, weights: Any = None, clusters: Any = None, resamples: int = 2000, rng: np.random.Generator
) -> Floats:
    """The (weighted) column means of ``resamples`` resamples of the rows: shape (resamples, columns).

    NaN in ``values`` is an undefined unit and counts nothing in its column. ``weights`` has the shape of
    ``values`` or one number a row. With ``clusters`` (an id a row) whole clusters are drawn. All columns
    share the resamples. A resample without any weight in a column is NaN there.

    >>> rng = np.random.default_rng(0)
    >>> bootstrap_means([[0.0, 5.0], [1.0, 5.0]], resamples=4, rng=rng)[:, 1]
    array([5., 5., 5., 5.])
    """
    draws = Draws.of(values, weights, clusters)
    columns = draws.totals.shape[1]
    sums = resampled_sums(np.hstack([draws.totals, draws.masses]), resamples, rng)
    return ratio(sums[:, :columns], sums[:, columns:])


def mean_intervals(
    values: Any,
    *,
    weights: Any = None,
    clusters: Any = None,
    bounds: Sequence[Bounds] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    rng: np.random.Generator,
) -> list[Interval]:
    """An interval for the (weighted) mean of each column, by the method that its data allow.

    - ``wilson``: only 0 and 1 occur, all units count alike, no clusters. Values whose ``bounds`` are given
      and are not (0, 1), such as differences of hits, are no shares even if only 0 and 1 occur.
    - ``wilson-effective``: 0 and 1 with weights or clusters. The variance between draws says how many
      independent units would be as informative; where all are alike, every draw counts as one.
    - ``t``: fewer than 10 draws (units, or clusters).
    - ``gaffke``: two finite bounds, and a few draws far from the others that decide the mean (``lopsided``);
      the bounds tell how large the values can be that this sample happens to lack.
    - ``bca``: everything else that has two finite bounds, or when no ``bounds`` are given.
    - ``studentised``: columns that are open to a side, such as ranks, whose long tail BCa misses.

    Equal values other than 0 and 1 say nothing about their spread: the interval is unknown, not of width
    zero. So it is with one draw, and with none. Intervals are clipped to ``bounds`` (a pair a column).

    >>> mean_intervals([[0.25], [0.25]], rng=np.random.default_rng(0))[0].reason
    'all units have the same value'
    """
    checked_resamples(resamples)
    draws = Draws.of(values, weights, clusters)
    columns = draws.totals.shape[1]
    limits = paired_bounds(bounds, columns)
    shares = draws.binary & np.array([bounds is None or tuple(pair) == (0.0, 1.0) for pair in limits], bool)
    intervals = _closed_intervals(draws, shares, checked_level(level))
    left = np.array([column for column in range(columns) if column not in intervals], dtype=np.int64)
    methods = _methods(draws, None if bounds is None else limits, left)
    # A stream for each method, so that a column's limits do not depend on its neighbours' method.
    for (method, chosen), stream in zip(methods.items(), rng.spawn(len(methods)), strict=True):
        if len(chosen):
            pairs = [limits[column] for column in chosen.tolist()]
            low, high = _ends(method, draws.taken(chosen), pairs, level, resamples, stream)
            for column, ends in zip(chosen.tolist(), np.column_stack([low, high]).tolist(), strict=True):
                interval = Interval(ends[0], ends[1], level, method)
                intervals[column] = interval.around(float(draws.means[column]))
    return [intervals[column].clipped(pair) for column, pair in enumerate(limits)]


def _methods(draws: Draws, bounds: Sequence[Bounds] | None, left: Ints) -> dict[str, Ints]:
    """Which of the columns that are left get which kind of resampling."""
    if bounds is None:
        return {"bca": left, "studentised": left[:0], "gaffke": left[:0]}
    tailed = ~np.isfinite(np.array(bounds)).all(axis=1)
    bounded = np.array([high - low < NO_BOUND for low, high in bounds]) & lopsided(draws)
    return {
        "bca": left[~tailed[left] & ~bounded[left]],
        "studentised": left[tailed[left]],
        "gaffke": left[bounded[left]],
    }


def _ends(
    method: str,
    draws: Draws,
    bounds: Sequence[Bounds],
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """The lower and upper ends of all columns by one method."""
    if method == "gaffke":
        return bounded_limits(draws, bounds, level, resamples, rng)
    find = bca_limits if method == "bca" else studentised_limits
    return find(draws, level, resamples, rng)


def _closed_intervals(draws: Draws, shares: Bools, level: float) -> dict[int, Interval]:
    """The columns that need no resampling: too little data, too equal, binary, or few draws."""
    noun = "cluster" if draws.clustered else "unit"
    means, errors = draws.means, draws.standard_errors
    flat = errors <= ROUNDING * np.abs(np.nan_to_num(means))
    intervals: dict[int, Interval] = {}
    for column, count in enumerate(draws.counts.tolist()):
        mean, error = float(means[column]), float(errors[column])
        if count < 2:
            reason = f"one {noun}" if count else "no defined unit"
            intervals[column] = Interval.unknown(reason, level=level)
        elif shares[column] and draws.even[column] and not draws.clustered:
            intervals[column] = wilson(round(mean * count), count, level)
        elif shares[column]:
            intervals[column] = _effective_wilson(mean, error, count, float(draws.kish[column]), level)
        elif draws.constant[column]:
            intervals[column] = Interval.unknown("all units have the same value", level=level)
        elif flat[column]:
            intervals[column] = Interval.unknown(f"all {noun}s have the same mean", level=level)
        elif count < FEW_DRAWS:
            intervals[column] = t_interval(mean, error, count - 1, level)
    return intervals


def _effective_wilson(share: float, error: float, count: int, most: float, level: float) -> Interval:
    """Wilson with the number of independent units whose binomial variance is the one seen between draws.

    That number is never more than the units there are, and one a draw where all draws are alike.
    """
    trials = float(count)
    if 0.0 < share < 1.0:
        trials = min(most, share * (1.0 - share) / error**2) if error > 0.0 else most
    critical = t_critical(level, count - 1)
    return wilson(min(share * trials, trials), trials, level, critical=critical, method="wilson-effective")


def paired_bounds(bounds: Sequence[Bounds] | None, figures: int) -> list[Bounds]:
    """A pair of bounds for each figure; without any, all are unbounded."""
    limits = [UNBOUNDED] * figures if bounds is None else list(bounds)
    if len(limits) != figures:
        raise ShapeError(f"{len(limits)} pairs of bounds were given for {figures} figures")
    return limits
