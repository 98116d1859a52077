"""Intervals of metrics that are not means over units: computed on resamples or subsamples of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL
from equipoise.errors import UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.stats.intervals import Bounds, Interval, checked_level, t_interval
from equipoise.stats.resampling import (
    ROUNDING,
    UNBOUNDED,
    bounds_per_metric,
    checked_resamples,
    cluster_members,
    median_bias,
    quantiles,
    small_sample_quantile,
)

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.types import Floats, Ints

# The subsample sizes for metrics that are not means over units.


SubsampleFractions = tuple[float, ...]
WITH_REPLACEMENT: SubsampleFractions = ()
"""Parts as large as the evidence, with repetition."""
HALF_SAMPLES: SubsampleFractions = (0.5,)
HALVES_AND_MOST: SubsampleFractions = (0.5, 0.9)
"""Halves and nine tenths: halves measure the variability of a metric near its extremum, such as the agreement of
independent partitions; nine tenths measure it at nearly the full size, where cells are sparse."""
FEWEST_PAIRS = 5
"""With fewer pairs of units that share class and cluster, the adjusted Rand index has no visible spread."""


def subsample_fractions(metric: Metric[Any], evidence: Evidence) -> SubsampleFractions:
    """The kind of parts that this metric can be measured on."""
    if evidence.kind == "space":
        return HALF_SAMPLES
    from equipoise.metrics import clustering

    agreements = (
        clustering.AdjustedRand,
        clustering.MutualInformation,
        clustering.Homogeneity,
        clustering.Completeness,
        clustering.VMeasure,
    )
    return HALVES_AND_MOST if isinstance(metric, agreements) else WITH_REPLACEMENT


def why_not_resampled(metric: Metric[Any], evidence: Evidence) -> str:
    """Why parts of this evidence show no spread of this metric, or nothing when they do."""
    from equipoise.evidence.labels import Labels
    from equipoise.metrics.clustering import AdjustedRand, contingency

    if isinstance(metric, AdjustedRand) and isinstance(evidence, Labels):
        cells = contingency(evidence).cells
        if (cells * (cells - 1)).sum() / 2 < FEWEST_PAIRS:
            return f"fewer than {FEWEST_PAIRS} pairs of units share class and cluster"
    return ""


def n_subsamples(kind: str, units: int, requested: int) -> int:
    """The number of subsamples: as requested, or fewer where each is costly.

    4,000,000 units are measured in all and 200 parts at least. Figures of a space grow with the square of
    the points: there it is 120,000 points in all, and from 64 to 1,000 parts.

    >>> n_subsamples("pairs", 300, 2000), n_subsamples("pairs", 20_000, 2000)
    (2000, 200)
    >>> n_subsamples("space", 300, 2000), n_subsamples("space", 3000, 2000)
    (400, 64)
    """
    checked_resamples(requested)
    size = max(units, 1)
    if kind == "space":
        return min(requested, 1000, max(64, 120_000 // size))
    return min(requested, max(200, 4_000_000 // size))


def resampling_blocks(evidence: Evidence, clusters: Any) -> list[Ints]:
    """The resampling units: the rows of each cluster, or each row."""
    return cluster_members(np.arange(len(evidence)) if clusters is None else clusters, len(evidence))


def resampled_rows(
    blocks: Sequence[Ints], shares: SubsampleFractions, parts: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """The rows of each part; several shares take turns."""
    count = len(blocks)
    together = np.concatenate(blocks)
    alone = len(together) == count
    for at in range(parts):
        if shares:
            picks = np.sort(rng.permutation(count)[: subsample_size(count, shares[at % len(shares)])])
        else:
            picks = rng.integers(0, count, size=count)
        yield together[picks] if alone else np.concatenate([blocks[pick] for pick in picks.tolist()])


def subsample_size(count: int, share: float) -> int:
    """The size of a subsample without replacement."""
    return min(max(int(count * share), 1), count - 1)


def subsampling_standard_error(figures: Floats, shares: SubsampleFractions, count: int) -> tuple[float, float]:
    """The standard error from parts without repetition, and its degrees of freedom.

    The standard deviation of subsamples of m of k units is rescaled by sqrt(m / k) (Politis and Romano, 1994) and
    corrected for the finite-population factor sqrt(1 - m / k). It is taken around its mean: a metric of distances
    shifts with the number of points, which is not uncertainty. Of several fractions the larger value is used. The
    degrees of freedom account for the number of units and of subsamples.
    """
    errors, sizes = [], []
    for at, share in enumerate(shares):
        values = figures[at :: len(shares)]
        values = values[~np.isnan(values)]
        size = subsample_size(count, share)
        errors.append(float(np.std(values, ddof=1)) * sqrt(size / (count - size)) if len(values) > 1 else 0.0)
        sizes.append(len(values))
    degrees = 1.0 / (1.0 / (count - 1) + 1.0 / max(min(sizes) - 1, 1))
    return max(errors), degrees


def value_or_nan(figure: Callable[[E], float], evidence: E) -> float:
    """The value, or NaN if it is undefined on this evidence."""
    try:
        return float(figure(evidence))
    except UndefinedError:
        return float("nan")


E = TypeVar("E", bound=Evidence)

MIN_RESAMPLING_UNITS = 5
"""Below this, a corpus-level metric gets no interval: there is no standard error as a fallback."""
DEFINED_SHARE = 0.9
"""A metric that is defined on a smaller share of its resamples gets no interval."""
BIASED = 1.0
"""A median bias above this many standard errors is caused by repeated units, and cannot be corrected."""


def corpus_interval(
    value: Callable[[E], float],
    evidence: E,
    *,
    clusters: Any = None,
    bounds: Bounds = UNBOUNDED,
    confidence_level: float = CONFIDENCE_LEVEL,
    n_resamples: int = 1000,
    subsample: bool | SubsampleFractions = False,
    rng: np.random.Generator,
) -> Interval:
    """An interval for one corpus-level metric; see ``evidence_intervals``."""
    return evidence_intervals(
        [value],
        evidence,
        clusters=clusters,
        bounds=[bounds],
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        subsample=subsample,
        rng=rng,
    )[0]


def evidence_intervals(
    figures: Sequence[Callable[[E], float]],
    evidence: E,
    *,
    clusters: Any = None,
    bounds: Sequence[Bounds] | None = None,
    confidence_level: float = CONFIDENCE_LEVEL,
    n_resamples: int = 1000,
    subsample: bool | SubsampleFractions = False,
    rng: np.random.Generator,
) -> list[Interval]:
    """Intervals for metrics that are not means over units; all share the resampled evidence.

    ``bias-corrected``: the percentiles of the resampled values, corrected for median bias (Efron, 1981),
    tails widened. No acceleration: the leave-one-out values of a median or of F1 are too coarse for one.

    ``subsample``: subsamples without replacement, of half the units or the given fractions, whose standard deviation
    gives the standard error of a Student interval (``subsampling_standard_error``). It is an interval of the expected
    value for this many units. Metrics that repeated units shift by more than a standard error use it as well.

    ``n_resamples`` is a ceiling: ``n_subsamples`` takes fewer where each is costly. Resamples on which a figure
    is undefined are left out; more than a tenth of them make the interval unknown.
    """
    checked_level(confidence_level)
    parts = n_subsamples(evidence.kind, len(evidence), n_resamples)
    limits = bounds_per_metric(bounds, len(figures))
    blocks = resampling_blocks(evidence, clusters)
    if len(blocks) < MIN_RESAMPLING_UNITS:
        reason = _too_few(len(blocks), "unit" if clusters is None else "cluster")
        return [Interval.unknown(reason, confidence_level=confidence_level) for _ in figures]
    points = [value_or_nan(figure, evidence) for figure in figures]
    shares: SubsampleFractions = (
        subsample if isinstance(subsample, tuple) else HALF_SAMPLES if subsample else WITH_REPLACEMENT
    )
    fallback = rng.spawn(1)[0]
    table = _measure_parts(figures, evidence, blocks, shares, parts, rng)
    biased = [] if shares else [at for at, point in enumerate(points) if _is_biased(point, table[at])]
    kinds = [HALVES_AND_MOST if at in biased else shares for at in range(len(figures))]
    if biased:
        again = [figures[at] for at in biased]
        table[biased] = _measure_parts(again, evidence, blocks, HALVES_AND_MOST, parts, fallback)
    return [
        _interval(point, resampled, kind, len(blocks), confidence_level).clipped(pair)
        for point, resampled, kind, pair in zip(points, table, kinds, limits, strict=True)
    ]


def _measure_parts(
    figures: Sequence[Callable[[E], float]],
    evidence: E,
    blocks: Sequence[Ints],
    shares: SubsampleFractions,
    parts: int,
    rng: np.random.Generator,
) -> Floats:
    """Every metric on the same resamples: shape (metrics, resamples)."""
    table = np.empty((len(figures), parts))
    for at, rows in enumerate(resampled_rows(blocks, shares, parts, rng)):
        part = evidence.take(rows)
        table[:, at] = [value_or_nan(figure, part) for figure in figures]
    return table


def _interval(
    point: float, resampled: Floats, shares: SubsampleFractions, count: int, confidence_level: float
) -> Interval:
    reason = _refusal(point, resampled)
    if reason:
        return Interval.unknown(reason, confidence_level=confidence_level)
    if shares:
        error, degrees = subsampling_standard_error(resampled, shares, count)
        return t_interval(point, error, degrees, confidence_level, method="subsample").around(point)
    return _bias_corrected_interval(point, resampled, count, confidence_level).around(point)


def _bias_corrected_interval(point: float, resampled: Floats, count: int, confidence_level: float) -> Interval:
    from scipy.special import ndtr

    ordered = np.sort(resampled - point)[None]
    bias = _bias(point, resampled)
    tail = float(small_sample_quantile(np.array([count]), confidence_level)[0])
    low, high = (float(point + quantiles(ordered, np.asarray(ndtr([2.0 * bias + z])))[0]) for z in (-tail, tail))
    return Interval(low, high, confidence_level, "bias-corrected")


def _bias(point: float, resampled: Floats) -> float:
    """The median bias in standard errors."""
    ordered = np.sort(resampled - point)[None]
    return float(median_bias(ordered, np.array([ROUNDING * abs(point)]))[0])


def _is_biased(point: float, resampled: Floats) -> bool:
    return not _refusal(point, resampled) and abs(_bias(point, resampled)) > BIASED


def _refusal(point: float, resampled: Floats) -> str:
    """Why the resamples give no interval; empty if they do."""
    defined = resampled[~np.isnan(resampled)]
    if np.isnan(point):
        return "the value is undefined"
    if len(defined) < DEFINED_SHARE * len(resampled):
        return f"undefined on {len(resampled) - len(defined)} of {len(resampled)} resamples"
    if np.ptp(defined) <= ROUNDING * abs(point):
        return "every resample gives the same value"
    return ""


def _too_few(count: int, noun: str) -> str:
    reasons = {0: "no defined unit", 1: f"one {noun}"}
    return reasons.get(count, f"{count} {noun}s are too few to resample")
