"""Intervals of figures that are no means over units: measured again on parts of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from equipoise.evidence.base import Evidence
from equipoise.stats.interval import Bounds, Interval, checked_level, t_interval
from equipoise.stats.limits import ROUNDING, median_bias, quantiles, wide_tails
from equipoise.stats.parts import (
    HALVES,
    HALVES_AND_MOST,
    REPEATED,
    Shares,
    blocks_of,
    part_count,
    part_rows,
    standard_error,
    value_of,
)
from equipoise.stats.resample import UNBOUNDED, paired_bounds
from equipoise.types import Floats, Ints

E = TypeVar("E", bound=Evidence)

FEWEST_DRAWS = 5
"""Below this, a corpus-level figure gets no interval: it has no standard error to fall back on."""
DEFINED_SHARE = 0.9
"""A figure that is defined on fewer of its resamples has no honest interval."""
BIASED = 1.0
"""A median bias above this many standard errors is the work of repetition, and beyond correction."""


def evidence_interval(
    value: Callable[[E], float],
    evidence: E,
    *,
    clusters: Any = None,
    bounds: Bounds = UNBOUNDED,
    level: float = 0.95,
    resamples: int = 1000,
    subsample: bool | Shares = False,
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
    subsample: bool | Shares = False,
    rng: np.random.Generator,
) -> list[Interval]:
    """Intervals for figures that are no means over units; all share the resampled evidence.

    ``bias-corrected``: the percentiles of the resampled figure, moved by its median bias (Efron, 1981),
    tails widened. No acceleration: the leave-one-out values of a median or of F1 are too coarse for one.

    ``subsample``: parts without repetition, half of the draws or the shares given, whose spread is the
    standard error of a Student interval (``standard_error``). It speaks of the figure that this many units
    have on average. Figures that repetition moves by more than a standard error get this one as well.

    ``resamples`` is a ceiling: ``part_count`` takes fewer where each is costly. Resamples on which a figure
    is undefined are left out; more than a tenth of them refuse the interval.
    """
    checked_level(level)
    parts = part_count(evidence.kind, len(evidence), resamples)
    limits = paired_bounds(bounds, len(figures))
    blocks = blocks_of(evidence, clusters)
    if len(blocks) < FEWEST_DRAWS:
        reason = _too_few(len(blocks), "unit" if clusters is None else "cluster")
        return [Interval.unknown(reason, level=level) for _ in figures]
    points = [value_of(figure, evidence) for figure in figures]
    shares: Shares = subsample if isinstance(subsample, tuple) else HALVES if subsample else REPEATED
    fallback = rng.spawn(1)[0]
    table = _measured(figures, evidence, blocks, shares, parts, rng)
    biased = [] if shares else [at for at, point in enumerate(points) if _is_biased(point, table[at])]
    kinds = [HALVES_AND_MOST if at in biased else shares for at in range(len(figures))]
    if biased:
        again = [figures[at] for at in biased]
        table[biased] = _measured(again, evidence, blocks, HALVES_AND_MOST, parts, fallback)
    return [
        _interval(point, resampled, kind, len(blocks), level).clipped(pair)
        for point, resampled, kind, pair in zip(points, table, kinds, limits, strict=True)
    ]


def _measured(
    figures: Sequence[Callable[[E], float]],
    evidence: E,
    blocks: Sequence[Ints],
    shares: Shares,
    parts: int,
    rng: np.random.Generator,
) -> Floats:
    """Every figure on the same parts: shape (figures, parts)."""
    table = np.empty((len(figures), parts))
    for at, rows in enumerate(part_rows(blocks, shares, parts, rng)):
        part = evidence.take(rows)
        table[:, at] = [value_of(figure, part) for figure in figures]
    return table


def _interval(point: float, resampled: Floats, shares: Shares, count: int, level: float) -> Interval:
    reason = _refusal(point, resampled)
    if reason:
        return Interval.unknown(reason, level=level)
    if shares:
        error, degrees = standard_error(resampled, shares, count)
        return t_interval(point, error, degrees, level, method="subsample").around(point)
    return _bias_corrected_interval(point, resampled, count, level).around(point)


def _bias_corrected_interval(point: float, resampled: Floats, count: int, level: float) -> Interval:
    from scipy.special import ndtr

    ordered = np.sort(resampled - point)[None]
    bias = _bias(point, resampled)
    tail = float(wide_tails(np.array([count]), level)[0])
    low, high = (
        float(point + quantiles(ordered, np.asarray(ndtr([2.0 * bias + z])))[0]) for z in (-tail, tail)
    )
    return Interval(low, high, level, "bias-corrected")


def _bias(point: float, resampled: Floats) -> float:
    """The median bias in standard errors."""
    ordered = np.sort(resampled - point)[None]
    return float(median_bias(ordered, np.array([ROUNDING * abs(point)]))[0])


def _is_biased(point: float, resampled: Floats) -> bool:
    return not _refusal(point, resampled) and abs(_bias(point, resampled)) > BIASED


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


def _too_few(count: int, noun: str) -> str:
    reasons = {0: "no defined unit", 1: f"one {noun}"}
    return reasons.get(count, f"{count} {noun}s are too few to resample")
