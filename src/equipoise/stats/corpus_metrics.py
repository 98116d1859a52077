"""Metrics that are not means over units, such as a correlation: intervals and paired differences by resampling.

The metric is computed again on resamples or subsamples of the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.stats.bootstrap_mean import (
    ROUNDING,
    bounds_per_metric,
    cluster_codes,
    cluster_members,
    id_order,
    median_bias,
    quantiles,
    small_sample_quantile,
    too_few_resamples,
)
from equipoise.stats.comparison import Contrast
from equipoise.stats.intervals import Bounds, Interval, t_interval
from equipoise.stats.paired_tests import RANDOMISATION
from equipoise.stats.tilted_signs import MIN_EXTREME, TiltedSigns

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.stats.pairing import AlignedResults
    from equipoise.types import Floats, Ids, Ints

# The subsample sizes for metrics that are not means over units.

SubsampleFractions = tuple[float, ...]
WITH_REPLACEMENT: SubsampleFractions = ()
"""Parts as large as the evidence, with repetition."""
HALF_SAMPLES: SubsampleFractions = (0.5,)
HALVES_AND_MOST: SubsampleFractions = (0.5, 0.9)
"""Halves and nine tenths: halves measure the variability of a metric near its extremum, such as the agreement of
independent partitions; nine tenths measure it at nearly the full size, where cells are sparse."""


def subsample_fractions(metric: Metric[Any], evidence: Evidence) -> SubsampleFractions:
    """The sizes of the parts that this metric can be measured on."""
    if evidence.kind == "space":
        return HALF_SAMPLES
    return HALVES_AND_MOST if metric.needs_distinct_units else WITH_REPLACEMENT


def n_subsamples(kind: str, units: int, requested: int) -> int:
    """The number of subsamples: as requested, or fewer where each is costly.

    4,000,000 units are measured in all and 200 parts at least. Metrics of a space take time quadratic in
    the points: there it is 120,000 points in all, and from 64 to 1,000 parts.

    >>> n_subsamples("pairs", 300, 2000), n_subsamples("pairs", 20_000, 2000)
    (2000, 200)
    >>> n_subsamples("space", 300, 2000), n_subsamples("space", 3000, 2000)
    (400, 64)
    """
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
    rows_of = _rows_of_blocks(blocks)
    return (rows_of(picks) for chunk in _resampled_blocks(len(blocks), shares, parts, rng) for picks in chunk)


def _resampled_blocks(
    count: int, shares: SubsampleFractions, parts: int, rng: np.random.Generator, at_once: int = 1000
) -> Iterator[Ints | list[Ints]]:
    """The numbers of the blocks in each part, ``at_once`` parts at a time."""
    for start in range(0, parts, at_once):
        chunk = range(start, min(start + at_once, parts))
        if shares:
            sizes = (subsample_size(count, shares[at % len(shares)]) for at in chunk)
            yield [np.sort(rng.permutation(count)[:size]) for size in sizes]
        else:
            yield rng.integers(0, count, size=(len(chunk), count))


def _rows_of_blocks(blocks: Sequence[Ints]) -> Callable[[Ints], Ints]:
    """A function from the numbers of blocks to their rows."""
    together = np.concatenate(blocks)
    if len(together) == len(blocks):
        return lambda picks: together[picks]
    return lambda picks: np.concatenate([blocks[pick] for pick in picks.tolist()])


def _resampled_counts(blocks: Sequence[Ints], chunk: Ints | list[Ints]) -> Floats:
    """How often each part has each row, (parts, rows)."""
    of_blocks = np.zeros((len(chunk), len(blocks)))
    if isinstance(chunk, list):
        for at, picks in enumerate(chunk):
            of_blocks[at, picks] = 1.0
    else:
        cells = chunk + len(blocks) * np.arange(len(chunk))[:, None]
        of_blocks[:] = np.bincount(cells.ravel(), minlength=of_blocks.size).reshape(of_blocks.shape)
    together = np.concatenate(blocks)
    counts = np.empty((len(chunk), len(together)))
    counts[:, together] = np.repeat(of_blocks, [len(block) for block in blocks], axis=1)
    return counts


def subsample_size(count: int, share: float) -> int:
    """The size of a subsample without replacement."""
    return min(max(int(count * share), 1), count - 1)


def subsampling_standard_error(values: Floats, shares: SubsampleFractions, count: int) -> tuple[float, float]:
    """The standard error from parts without repetition, and its degrees of freedom.

    The standard deviation of subsamples of m of k units is rescaled by sqrt(m / k) (Politis and Romano, 1994) and
    corrected for the finite-population factor sqrt(1 - m / k). It is taken around its mean: a metric of distances
    shifts with the number of points, which is not uncertainty. Of several fractions the larger value is used. The
    degrees of freedom account for the number of units and of subsamples.
    """
    errors, sizes = [], []
    for at, share in enumerate(shares):
        part = values[at :: len(shares)]
        part = part[~np.isnan(part)]
        size = subsample_size(count, share)
        errors.append(float(np.std(part, ddof=1)) * sqrt(size / (count - size)) if len(part) > 1 else 0.0)
        sizes.append(len(part))
    degrees = 1.0 / (1.0 / (count - 1) + 1.0 / max(min(sizes) - 1, 1))
    return max(errors), degrees


def value_or_nan(function: Callable[[E], float], evidence: E) -> float:
    """The value, or NaN if it is undefined on this evidence."""
    try:
        return float(function(evidence))
    except UndefinedError:
        return float("nan")


E = TypeVar("E", bound=Evidence)


@dataclass(frozen=True)
class CorpusValue:
    """The value of a metric as a function of the evidence."""

    metric: Metric[Any]

    def __call__(self, evidence: Evidence) -> float:
        """The value; an error if it is undefined."""
        return self.metric.measure(evidence).value


@runtime_checkable
class CountMetric(Protocol):
    """A metric of how often each unit is in a resample, so that many resamples are computed at once."""

    def of_counts(self, evidence: Any, counts: Floats) -> Floats:
        """The metric of each resample, (n_resamples, n_units); NaN where it is undefined."""


COUNTS_AT_ONCE = 200_000
"""Counts that are held in memory at once."""

MIN_RESAMPLING_UNITS = 5
"""Below this, a corpus-level metric gets no interval: there is no standard error as a fallback."""
DEFINED_SHARE = 0.9
"""A metric that is defined on a smaller share of its resamples gets no interval."""
BIASED = 1.0
"""A median bias above this many standard errors is caused by repeated units, and cannot be corrected."""


def evidence_intervals(
    functions: Sequence[Callable[[E], float]],
    evidence: E,
    *,
    clusters: Any = None,
    bounds: Sequence[Bounds] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    subsample: bool | SubsampleFractions = False,
    rng: np.random.Generator,
) -> list[Interval]:
    """Intervals for metrics that are not means over units; all share the resampled evidence.

    ``bias-corrected``: the percentiles of the resampled values, corrected for median bias (Efron, 1981),
    tails widened. No acceleration: the leave-one-out values of a median or of F1 are too coarse for one.

    ``subsample``: subsamples without replacement, of half the units or the given fractions, whose standard deviation
    gives the standard error of a Student interval (``subsampling_standard_error``). It is an interval of the expected
    value for this many units. Metrics that repeated units shift by more than a standard error use it as well.

    ``n_resamples`` is a ceiling: ``n_subsamples`` takes fewer where each is costly. Resamples on which a function
    is undefined are left out; more than a tenth of them make the interval unknown.
    """
    confidence_level = config.confidence_level
    parts = n_subsamples(evidence.kind, len(evidence), config.n_resamples)
    limits = bounds_per_metric(bounds, len(functions))
    blocks = resampling_blocks(evidence, clusters)
    if len(blocks) < MIN_RESAMPLING_UNITS:
        reason = _too_few(len(blocks), "value" if clusters is None else "cluster")
        return [Interval.unknown(reason, confidence_level=confidence_level) for _ in functions]
    points = [value_or_nan(function, evidence) for function in functions]
    shares: SubsampleFractions = (
        subsample if isinstance(subsample, tuple) else HALF_SAMPLES if subsample else WITH_REPLACEMENT
    )
    fallback = rng.spawn(1)[0]
    table = _measure_parts([(function, evidence) for function in functions], blocks, shares, parts, rng)
    biased = [] if shares else [at for at, point in enumerate(points) if _is_biased(point, table[at])]
    kinds = [HALVES_AND_MOST if at in biased else shares for at in range(len(functions))]
    if biased:
        again = [(functions[at], evidence) for at in biased]
        table[biased] = _measure_parts(again, blocks, HALVES_AND_MOST, parts, fallback)
    return [
        _interval(point, resampled, kind, len(blocks), confidence_level).clipped(pair)
        for point, resampled, kind, pair in zip(points, table, kinds, limits, strict=True)
    ]


def _measure_parts(
    functions: Sequence[tuple[Callable[[E], float], E]],
    blocks: Sequence[Ints],
    shares: SubsampleFractions,
    parts: int,
    rng: np.random.Generator,
) -> Floats:
    """Every metric of its evidence on the same resamples: shape (metrics, resamples)."""
    table = np.empty((len(functions), parts))
    counted: dict[int, CountMetric] = {}
    for at, (function, _) in enumerate(functions):
        if isinstance(function, CorpusValue) and isinstance(function.metric, CountMetric):
            counted[at] = function.metric
    others: dict[int, list[int]] = {}
    for at, (_, evidence) in enumerate(functions):
        if at not in counted:
            others.setdefault(id(evidence), []).append(at)
    at_once = max(1, COUNTS_AT_ONCE // len(functions[0][1])) if functions else 1
    rows_of = _rows_of_blocks(blocks)
    start = 0
    for chunk in _resampled_blocks(len(blocks), shares, parts, rng, at_once):
        for same in others.values():
            evidence = functions[same[0]][1]
            for at, picks in enumerate(chunk, start):
                part = evidence.take(rows_of(picks))
                table[same, at] = [value_or_nan(functions[nth][0], part) for nth in same]
        if counted:
            counts = _resampled_counts(blocks, chunk)
            for nth, metric in counted.items():
                table[nth, start : start + len(chunk)] = metric.of_counts(functions[nth][1], counts)
        start += len(chunk)
    return table


def _interval(
    point: float, resampled: Floats, shares: SubsampleFractions, count: int, confidence_level: float
) -> Interval:
    reason = _why_unusable(point, resampled) or ("" if shares else too_few_resamples(len(resampled), confidence_level))
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
    return not _why_unusable(point, resampled) and abs(_bias(point, resampled)) > BIASED


def _why_unusable(point: float, resampled: Floats) -> str:
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
    reasons = {0: "no defined value", 1: f"one {noun}"}
    return reasons.get(count, f"{count} {noun}s are too few to resample")


# Contrasts of pairs of systems, from resamples that all systems share.

FINE_ENOUGH = 1000
"""Resamples with repetition for a p of 0.002."""


BOOTSTRAP, SUBSAMPLES = "paired bootstrap", "paired subsamples"
"""The name of the test for metrics without a paired test."""


@dataclass(frozen=True, slots=True)
class JointResamples:
    """A metric of every system on the same resamples: ``table`` (resamples, systems).

    ``shares`` are the subsample fractions (empty: with replacement), ``blocks`` is the number of resampling
    units, and ``reason`` explains an unusable table. ``swaps`` is the randomisation test, if the
    metric is a function of sums over units and that test was requested.
    """

    table: Floats
    blocks: int
    shares: SubsampleFractions
    reason: str = ""
    swaps: SwapTest | None = None


def resample_jointly(metric: Metric[Any] | None, pairing: AlignedResults, config: StatsConfig) -> JointResamples | None:
    """Score every system on the same resamples of the units, or of clusters; None without metric or evidence.

    A metric that repeated units distort is scored on subsamples without replacement. ``n_resamples`` is
    their maximum; with replacement there are at least 1,000, since they limit the resolution of p.
    """
    systems = pairing.evidence()
    if metric is None or systems is None:
        return None
    order = id_order(pairing.results[0].unit_ids)
    evidence = [system.take(order) for system in systems]
    clusters = None if pairing.clusters is None else pairing.clusters[order]
    swaps = None
    if config.test == RANDOMISATION and isinstance(metric, SumMetric):
        addends = [metric.addends(system) for system in evidence]
        swaps = SwapTest.of(metric, addends, clusters, config.n_permutations, config.rng(4))
    shares = subsample_fractions(metric, evidence[0])
    blocks = resampling_blocks(evidence[0], clusters)
    value = CorpusValue(metric)
    parts = n_subsamples(evidence[0].kind, len(evidence[0]), config.n_resamples)
    parts = parts if shares else max(parts, min(config.n_resamples, FINE_ENOUGH))
    table = np.full((parts, len(evidence)), nan)
    if len(blocks) >= MIN_RESAMPLING_UNITS:
        table = _measure_parts([(value, system) for system in evidence], blocks, shares, parts, config.rng(2)).T
    reasons = (metric.why_no_interval(system) for system in evidence)
    return JointResamples(table, len(blocks), shares, next(filter(None, reasons), ""), swaps)


def corpus_contrasts(
    pairing: AlignedResults, metric: str, joint: JointResamples | None, confidence_level: float, bounds: Bounds
) -> list[Contrast]:
    """The interval of the difference of every pair of systems, and p by inversion of the interval.

    From resamples with replacement the interval is the percentile one, and p twice the smaller share of
    differences on either side of 0, one added to both counts so that it is never 0; with fewer than 10 differences on
    that side it is Student's. Where ``joint`` can make the randomisation test, p is that of the test. From subsamples
    without replacement both use Student's t with their standard error. Every contrast names its test. None for
    ``joint`` means that the evidence or the metric is not available. Intervals are clipped to ``bounds``.
    """
    estimates, systems = [result.estimates[metric] for result in pairing.results], pairing.systems
    contrasts = []
    for i, j in combinations(range(len(systems)), 2):
        difference = estimates[i].value - estimates[j].value
        reason = _why_untested(metric, difference, joint, i, j)
        interval, p, test = Interval.unknown(reason, confidence_level=confidence_level), nan, ""
        if joint is not None and not reason:
            resampled = joint.table[:, i] - joint.table[:, j]
            if joint.shares:
                interval, p = _from_parts(difference, resampled, joint, confidence_level)
                test = SUBSAMPLES
            else:
                defined = resampled[~np.isnan(resampled)]
                interval, p = _from_resamples(difference, defined, joint.blocks, confidence_level)
                test = BOOTSTRAP
            if joint.swaps is not None:
                p, test = joint.swaps.p(i, j), RANDOMISATION
        contrasts.append(
            Contrast(
                metric=metric,
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


MISSING_EVIDENCE = "not a mean over units, and the data for resampling are not stored"


def _why_untested(metric: str, difference: float, joint: JointResamples | None, i: int, j: int) -> str:
    """Why there is no test of this pair; empty if there is one."""
    if isnan(difference):
        return "a score is undefined"
    if joint is None:
        from equipoise.metrics.parser import find_metric

        # A metric that is not computed from evidence was measured: the latency of an index, for example.
        measured = find_metric(metric) is None
        return "each system was measured once" if measured else MISSING_EVIDENCE
    if joint.blocks < MIN_RESAMPLING_UNITS:
        return f"{joint.blocks} resampling units are too few"
    if joint.reason:
        return joint.reason
    defined = ~np.isnan(joint.table[:, i] - joint.table[:, j])
    return "" if defined.mean() >= DEFINED_SHARE else "undefined in too many resamples"


def _from_resamples(
    difference: float, resampled: Floats, blocks: int, confidence_level: float
) -> tuple[Interval, float]:
    """The percentile interval of a difference and its p; those of the negative difference mirror them exactly."""
    slack = 1e-12 * max(np.abs(resampled).max(), abs(difference))
    deciding = np.append(difference, resampled)
    if deciding[np.abs(deciding) > slack][:1].sum() < 0:  # quantiles at both ends differ by rounding
        interval, p = _from_resamples(-difference, -resampled, blocks, confidence_level)
        return interval.mirrored(), p
    below, above = int((resampled <= slack).sum()), int((resampled >= -slack).sum())
    p = min(1.0, 2 * (min(below, above) + 1) / (len(resampled) + 1))
    too_few = too_few_resamples(len(resampled), confidence_level)
    if too_few or np.ptp(resampled) <= slack:
        reason = too_few or "every resample gives the same difference"
        return Interval.unknown(reason, confidence_level=confidence_level), p
    if min(below, above) < MIN_EXTREME:
        p = min(p, _tail_p(difference, resampled, blocks))
    low, high = np.quantile(resampled, [(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    return Interval(float(low), float(high), confidence_level, "paired bootstrap"), p


def _tail_p(difference: float, resampled: Floats, blocks: int) -> float:
    """Student's two-sided p of a difference, from the larger spread of the resamples: of all, or of those nearer to 0.

    For p values that so few resamples do not reach, although the correction for many pairs requires them.
    """
    from scipy.special import stdtr

    nearer = resampled[np.abs(resampled) < abs(difference)] - difference
    spread = max(float(resampled.std(ddof=1)), sqrt(float(np.mean(np.square(nearer)))) if len(nearer) else 0.0)
    return float(2 * stdtr(blocks - 1, -abs(difference) / spread))


def _from_parts(
    difference: float, resampled: Floats, joint: JointResamples, confidence_level: float
) -> tuple[Interval, float]:
    from scipy.special import stdtr

    error, degrees = subsampling_standard_error(resampled, joint.shares, joint.blocks)
    if error <= 1e-12 * abs(difference):
        p = 1.0 if difference == 0 else nan
        return Interval.unknown("every resample gives the same difference", confidence_level=confidence_level), p
    interval = t_interval(difference, error, degrees, confidence_level, method="subsample")
    return interval, float(2 * stdtr(degrees, -abs(difference) / error))


_BLOCK = 1024
_EQUAL = 1e-11
"""Values that differ by less are equal up to rounding."""


@runtime_checkable
class SumMetric(Protocol):
    """A metric that is a function of sums over units."""

    def addends(self, evidence: Any) -> Floats:
        """The contribution of each unit to each sum: one row per unit."""

    def of_sums(self, sums: Floats) -> Floats:
        """The metric of each row of sums; NaN where it is undefined."""


@dataclass(frozen=True, eq=False)
class SwapTest:
    """The contribution of every unit or cluster to the sums of every system, and their permutations."""

    metric: SumMetric
    addends: Sequence[Floats]
    n_permutations: int
    seed: int

    @classmethod
    def of(
        cls,
        metric: SumMetric,
        addends: Sequence[Floats],
        clusters: Ids | None,
        n_permutations: int,
        rng: np.random.Generator,
    ) -> Self:
        """Units of a cluster are swapped together."""
        if clusters is not None:
            codes = cluster_codes(clusters, len(addends[0]))
            addends = [_by_code(column, codes) for column in addends]
        return cls(metric, addends, n_permutations, int(rng.integers(2**31)))

    def p(self, i: int, j: int) -> float:
        """The share of swaps with a difference between ``i`` and ``j`` at least as large, two-sided.

        All swaps are enumerated if there are at most ``n_permutations``; else p = (b + 1) / (n_permutations + 1). If b
        is below 10, p is estimated by importance sampling. Swaps with an undefined metric count as extreme, so that
        they never decrease p.
        """
        swap_effects = self.addends[j] - self.addends[i]
        swap_effects = swap_effects[(swap_effects != 0).any(axis=1)]
        first, second = self.addends[i].sum(axis=0), self.addends[j].sum(axis=0)
        observed = abs(float(self._differences_after(np.zeros((1, len(first))), first, second)[0]))
        exact = len(swap_effects) <= self.n_permutations.bit_length() - 1
        n_extreme = n_swaps = 0
        for masks in _all(len(swap_effects)) if exact else self._drawn(len(swap_effects)):
            differences = np.abs(self._differences_after(masks @ swap_effects, first, second))
            n_extreme += int((np.isnan(differences) | (differences >= observed - _EQUAL)).sum())
            n_swaps += len(masks)
        if exact:
            return n_extreme / n_swaps
        p = (n_extreme + 1) / (n_swaps + 1)
        return p if n_extreme >= MIN_EXTREME else min(p, self._tail_p(swap_effects, first, second))

    def _tail_p(self, swap_effects: Floats, first: Floats, second: Floats) -> float:
        """p by importance sampling; the effect of a unit is what swapping it alone takes off the difference."""
        alone = np.vstack([np.zeros(swap_effects.shape[1]), swap_effects])
        observed, *others = self._differences_after(alone, first, second).tolist()
        effects = np.nan_to_num(np.sign(observed) * (observed - np.array(others)))
        if not effects.sum() > 0:
            return 1.0
        signs = TiltedSigns.of(effects[np.newaxis])
        shape = (signs.n_patterns, len(effects))
        kept = np.random.default_rng([self.seed, 1]).random(shape) < signs.positive
        differences = np.sign(observed) * self._differences_after(
            (~kept).astype(np.float64) @ swap_effects, first, second
        )
        extreme = np.isnan(differences) | (differences >= abs(observed) - _EQUAL)
        totals = signs.scaled @ np.where(kept, 1.0, -1.0).T
        return min(1.0, 2.0 * float(signs.p(totals, extreme[np.newaxis])[0]))

    def _differences_after(self, shift: Floats, first: Floats, second: Floats) -> Floats:
        """The differences of the two metrics after moving these sums from the second to the first."""
        return self.metric.of_sums(first + shift) - self.metric.of_sums(second - shift)

    def _drawn(self, units: int) -> Iterator[Floats]:
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n_permutations, _BLOCK):
            size = min(_BLOCK, self.n_permutations - start)
            yield rng.integers(0, 2, size=(size, units)).astype(np.float64)


def _all(units: int) -> Iterator[Floats]:
    """Every choice of units, in blocks."""
    for start in range(0, 2**units, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, 2**units))
        yield ((numbers[:, None] >> np.arange(units)) & 1).astype(np.float64)


def _by_code(addends: Floats, codes: Any) -> Floats:
    sums = np.zeros((int(codes.max()) + 1, addends.shape[1]))
    np.add.at(sums, codes, addends)
    return sums
