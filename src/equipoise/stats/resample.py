"""Intervals by drawing the units, or whole clusters of them, again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, sqrt
from typing import Any, TypeVar

import numpy as np

from equipoise.errors import ParameterError, ShapeError, UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.stats.draws import Draws, members, ratio, resampled_sums
from equipoise.stats.interval import Bounds, Interval, checked_level, t_critical, t_interval, wilson
from equipoise.stats.limits import (
    ROUNDING,
    bca_limits,
    median_bias,
    quantiles,
    studentised_limits,
    wide_tails,
)
from equipoise.types import Bools, Floats, Ints

E = TypeVar("E", bound=Evidence)

FEW_DRAWS = 10
"""Below this, resampling repeats the same handful of values; Student's interval is used instead."""
FEWEST_DRAWS = 5
"""Below this, a corpus-level figure gets no interval: it has no standard error to fall back on."""
DEFINED_SHARE = 0.9
"""A figure that is defined on fewer of its resamples has no honest interval."""
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
    - ``bca``: everything else that has two finite bounds, or when no ``bounds`` are given.
    - ``studentised``: columns that are open to a side, such as ranks, whose long tail BCa misses.

    Equal values other than 0 and 1 say nothing about their spread: the interval is unknown, not of width
    zero. So it is with one draw, and with none. Intervals are clipped to ``bounds`` (a pair a column).

    >>> mean_intervals([[0.25], [0.25]], rng=np.random.default_rng(0))[0].reason
    'all units have the same value'
    """
    draws = Draws.of(values, weights, clusters)
    columns = draws.totals.shape[1]
    limits = _limits(bounds, columns)
    shares = draws.binary & np.array([bounds is None or tuple(pair) == (0.0, 1.0) for pair in limits], bool)
    intervals = _closed_intervals(draws, shares, checked_level(level))
    left = np.array([column for column in range(columns) if column not in intervals], dtype=np.int64)
    tailed = np.array([bounds is not None and not np.isfinite(pair).all() for pair in limits], dtype=bool)
    # A stream for each method, so that a column's limits do not depend on its neighbours' method.
    for method, find, chosen, stream in zip(
        ("bca", "studentised"),
        (bca_limits, studentised_limits),
        (left[~tailed[left]], left[tailed[left]]),
        rng.spawn(2),
        strict=True,
    ):
        if len(chosen):
            low, high = find(draws.taken(chosen), level, resamples, stream)
            for column, ends in zip(chosen.tolist(), np.column_stack([low, high]).tolist(), strict=True):
                intervals[column] = Interval(ends[0], ends[1], level, method)
    return [intervals[column].clipped(pair) for column, pair in enumerate(limits)]


def evidence_interval(
    value: Callable[[E], float],
    evidence: E,
    *,
    clusters: Any = None,
    bounds: Bounds = UNBOUNDED,
    level: float = 0.95,
    resamples: int = 1000,
    subsample: bool = False,
    rng: np.random.Generator,
) -> Interval:
    """An interval for one figure of the whole evidence; see ``evidence_intervals``."""
    return evidence_intervals(
        [value],
        evidence,
        clusters=clusters,
        bounds=[bounds],
        level=level,
        resamples=resamples,
        subsample=subsample,
        rng=rng,
    )[0]


def evidence_intervals(
    figures: Sequence[Callable[[E], float]],
    evidence: E,
    *,
    clusters: Any = None,
    bounds: Sequence[Bounds] | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    subsample: bool = False,
    rng: np.random.Generator,
) -> list[Interval]:
    """Intervals for figures that are no means over units; all share the resampled evidence.

    ``bias-corrected``: the percentiles of the resampled figure, moved by its median bias (Efron, 1981),
    tails widened. No acceleration: the leave-one-out values of a median or of F1 are too coarse for one.

    ``subsample=True`` takes half of the units without repetition, since repeated points have distance 0.
    The spread of m of k draws is rescaled by sqrt(m / k) (Politis and Romano, 1994) and freed of the
    finite-population factor sqrt(1 - m / k); it is the standard error of a Student interval. It is taken
    around its own mean: a figure of distances shifts with the number of points, which is no uncertainty.

    Resamples on which a figure is undefined are left out; more than a tenth of them refuse the interval.
    """
    if resamples < 1:
        raise ParameterError(f"{resamples} resamples were asked for", hint="1,000 serve a 95 % interval")
    groups = None if clusters is None else members(clusters, len(evidence))
    count, noun = (len(evidence), "unit") if groups is None else (len(groups), "cluster")
    limits = _limits(bounds, len(figures))
    if count < FEWEST_DRAWS:
        reasons = {0: "no defined unit", 1: f"one {noun}"}
        reason = reasons.get(count, f"{count} {noun}s are too few to resample")
        return [Interval.unknown(reason, level=level) for _ in figures]
    points = [_value_of(figure, evidence) for figure in figures]
    table = np.empty((len(figures), resamples))
    for at in range(resamples):
        picks = _picks(count, subsample, rng)
        rows = picks if groups is None else np.concatenate([groups[pick] for pick in picks.tolist()])
        part = evidence.take(rows)
        table[:, at] = [_value_of(figure, part) for figure in figures]
    make = _subsampled_interval if subsample else _bias_corrected_interval
    return [
        make(point, resampled, count, checked_level(level)).clipped(pair)
        for point, resampled, pair in zip(points, table, limits, strict=True)
    ]


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


def _bias_corrected_interval(point: float, resampled: Floats, count: int, level: float) -> Interval:
    from scipy.special import ndtr

    reason = _refusal(point, resampled)
    if reason:
        return Interval.unknown(reason, level=level)
    ordered = np.sort(resampled - point)[None]
    bias = median_bias(ordered, np.array([ROUNDING * abs(point)]))
    tail = wide_tails(np.array([count]), level)
    low, high = (float(point + quantiles(ordered, ndtr(2.0 * bias + z))[0]) for z in (-tail, tail))
    return Interval(low, high, level, "bias-corrected")


def _subsampled_interval(point: float, resampled: Floats, count: int, level: float) -> Interval:
    reason = _refusal(point, resampled)
    if reason:
        return Interval.unknown(reason, level=level)
    share = _half(count) / count
    error = float(np.nanstd(resampled)) * sqrt(share) / sqrt(1.0 - share)
    half = t_critical(level, count - 1) * error
    return Interval(point - half, point + half, level, "subsample")


def _refusal(point: float, resampled: Floats) -> str:
    """Why resamples of a figure give no interval, or nothing when they do."""
    defined = resampled[~np.isnan(resampled)]
    if np.isnan(point):
        return "the figure is undefined"
    if len(defined) < DEFINED_SHARE * len(resampled):
        return f"undefined on {len(resampled) - len(defined)} of {len(resampled)} resamples"
    if np.ptp(defined) <= ROUNDING * abs(point):
        return "every resample gives the same value"
    return ""


def _picks(count: int, subsample: bool, rng: np.random.Generator) -> Ints:
    """The draws of one resample, or of one half."""
    if subsample:
        return np.sort(rng.permutation(count)[: _half(count)])
    return rng.integers(0, count, size=count)


def _half(count: int) -> int:
    return count // 2


def _limits(bounds: Sequence[Bounds] | None, figures: int) -> list[Bounds]:
    limits = [UNBOUNDED] * figures if bounds is None else list(bounds)
    if len(limits) != figures:
        raise ShapeError(f"{len(limits)} pairs of bounds were given for {figures} figures")
    return limits


def _value_of(figure: Callable[[E], float], evidence: E) -> float:
    """The figure, or NaN where this part of the evidence cannot give it."""
    try:
        return float(figure(evidence))
    except UndefinedError:
        return float("nan")
