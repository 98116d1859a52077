"""Contrasts on metrics that are not means over units, such as a correlation: the evidence is resampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL, N_RESAMPLES
from equipoise.stats.contrasts import Contrast, unit_sd
from equipoise.stats.corpus_intervals import (
    DEFINED_SHARE,
    MIN_RESAMPLING_UNITS,
    SubsampleFractions,
    n_subsamples,
    resampled_rows,
    resampling_blocks,
    subsample_fractions,
    subsampling_standard_error,
    value_or_nan,
    why_not_resampled,
)
from equipoise.stats.intervals import Bounds, Interval, normal_critical, t_critical, t_interval
from equipoise.stats.paired_tests import RANDOMISATION, SwapTest
from equipoise.stats.resampling import UNBOUNDED

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.metrics.base import Metric
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ids

FINE_ENOUGH = 1000
"""Resamples with repetition for a p of 0.002."""


BOOTSTRAP, SUBSAMPLES = "paired bootstrap", "paired subsamples"
"""The name of the test for metrics without a paired test."""


@dataclass(frozen=True, slots=True)
class JointResamples:
    """A metric of every system on the same resamples: ``table`` (resamples, systems) around ``values``.

    ``shares`` are the subsample fractions (empty: with replacement), ``blocks`` is the number of resampling
    units, and ``reason`` explains an unusable table. ``swaps`` is the randomisation test, if the
    metric is a function of sums over units and that test was requested.
    """

    values: Floats
    table: Floats
    blocks: int
    shares: SubsampleFractions
    reason: str = ""
    swaps: SwapTest | None = None

    @property
    def centred(self) -> Floats:
        """The table; subsamples are centred on the values, since metrics of distances shift with their size."""
        if not self.shares:
            return self.table
        halves = self.table[:: len(self.shares)]
        return np.asarray(halves - np.nanmean(halves, axis=0) + self.values)


def resample_jointly(
    metric: Metric[Any],
    evidence: Sequence[Evidence],
    *,
    clusters: Ids | None = None,
    n_resamples: int = N_RESAMPLES,
    rng: np.random.Generator,
    swaps: SwapTest | None = None,
) -> JointResamples:
    """Score every system on the same resamples of the units, or of clusters.

    A metric that repeated units distort is scored on subsamples without replacement. ``n_resamples`` is
    their maximum; with replacement there are at least 1,000, since they limit the resolution of p.
    """
    shares = subsample_fractions(metric, evidence[0])
    blocks = resampling_blocks(evidence[0], clusters)
    values = np.array([_value(metric, system) for system in evidence])
    parts = n_subsamples(evidence[0].kind, len(evidence[0]), n_resamples)
    parts = parts if shares else max(parts, min(n_resamples, FINE_ENOUGH))
    table = np.full((parts, len(evidence)), nan)
    if len(blocks) >= MIN_RESAMPLING_UNITS:
        for row, index in zip(table, resampled_rows(blocks, shares, parts, rng), strict=True):
            row[:] = [_value(metric, system.take(index)) for system in evidence]
    reasons = (why_not_resampled(metric, system) for system in evidence)
    return JointResamples(values, table, len(blocks), shares, next(filter(None, reasons), ""), swaps)


def corpus_contrasts(
    estimates: Sequence[Estimate],
    systems: Sequence[str],
    joint: JointResamples | None,
    *,
    confidence_level: float = CONFIDENCE_LEVEL,
    bounds: Bounds = UNBOUNDED,
) -> list[Contrast]:
    """The interval of the difference of every pair of systems, and p by inversion of the interval.

    From resamples with replacement the interval is the percentile one, and p twice the smaller share of
    differences on either side of 0, one added to both counts so that it is never 0; where ``joint`` can make
    the randomisation test, p is that of the test. From subsamples without replacement both use Student's t
    with their standard error. Every contrast names its test. ``joint`` of None means
    that the evidence or the metric is not available. Intervals are clipped to ``bounds``, of the difference.
    """
    contrasts = []
    for i, j in combinations(range(len(systems)), 2):
        difference = estimates[i].value - estimates[j].value
        reason = _refusal(difference, joint, i, j)
        interval, p, test = Interval.unknown(reason, confidence_level=confidence_level), nan, ""
        if joint is not None and not reason:
            resampled = joint.table[:, i] - joint.table[:, j]
            if joint.shares:
                interval, p = _from_parts(difference, resampled, joint, confidence_level)
                test = SUBSAMPLES
            else:
                interval, p = _from_resamples(difference, resampled[~np.isnan(resampled)], confidence_level)
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


def _refusal(difference: float, joint: JointResamples | None, i: int, j: int) -> str:
    """Why there is no test of this pair; empty if there is one."""
    if isnan(difference):
        return "a score is undefined"
    if joint is None:
        return "a corpus-level metric without its evidence"
    if joint.blocks < MIN_RESAMPLING_UNITS:
        return f"{joint.blocks} are too few to resample"
    if joint.reason:
        return joint.reason
    defined = ~np.isnan(joint.table[:, i] - joint.table[:, j])
    return "" if defined.mean() >= DEFINED_SHARE else "undefined in too many resamples"


def _from_resamples(difference: float, errors: Floats, confidence_level: float) -> tuple[Interval, float]:
    slack = 1e-12 * max(np.abs(errors).max(), abs(difference))
    below, above = int((errors <= slack).sum()), int((errors >= -slack).sum())
    p = min(1.0, 2 * (min(below, above) + 1) / (len(errors) + 1))
    if np.ptp(errors) <= slack:
        return Interval.unknown("every resample gives the same difference", confidence_level=confidence_level), p
    low, high = np.quantile(errors, [(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    return Interval(float(low), float(high), confidence_level, "paired bootstrap"), p


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


def _value(metric: Metric[Any], evidence: Evidence) -> float:
    return value_or_nan(lambda part: metric.measure(part).value, evidence)


# Differences of scores whose units depend on each other, such as those of nested cross-validation.

RESAMPLE_ID = "draws"
"""The setting that identifies the resamples: errors of results with the same id are paired."""

ERROR_DF = "degrees of the errors"
"""The setting that gives the degrees of freedom of errors whose p uses Student's t: with a few
hundred resamples, an empirical p cannot be as small as a correction over many pairs requires."""

METHOD = "bootstrap-errors"
"""The name of intervals from such errors."""

LARGER_P = "each p is the larger of the p values of the test and of the bootstrap"
"""The phrase for captions."""

_SLACK = 1e-12


def bootstrap_difference(
    difference: float, errors: Floats, degrees: float, confidence_level: float = CONFIDENCE_LEVEL
) -> tuple[Interval, float]:
    """The interval of a difference from its bootstrap errors, and the two-sided p of "no difference".

    p is the share of errors that are as large as the difference, and never 0. Errors resampled from
    few units are slightly too small; they are widened like Student's t, as in the interval.

    >>> interval, p = bootstrap_difference(0.1, np.array([-0.02, 0.01, 0.12, 0.0]), 50)
    >>> p, interval.method
    (0.4, 'bootstrap-errors')
    """
    interval = t_interval(difference, root_mean_square(errors), degrees, confidence_level, method=METHOD)
    extreme = np.count_nonzero(
        np.abs(errors) * small_sample_factor(degrees, confidence_level) >= abs(difference) - _SLACK
    )
    return interval, float((extreme + 1) / (len(errors) + 1))


def t_difference(
    difference: float, errors: Floats, degrees: float, confidence_level: float = CONFIDENCE_LEVEL
) -> tuple[Interval, float]:
    """The interval of a difference from the spread of its errors, and Student's two-sided p of "none".

    For errors of subsamples, already scaled to the full data.

    >>> interval, p = t_difference(0.1, np.array([-0.04, 0.04, -0.04, 0.04]), 30)
    >>> round(p, 3), interval.method
    (0.038, 'bootstrap-errors')
    """
    from scipy.special import stdtr

    error = float(np.std(errors, ddof=1)) if len(errors) > 1 else nan
    if isnan(difference) or isnan(error):
        return Interval.unknown("there are no bootstrap errors", confidence_level=confidence_level), nan
    if not error > _SLACK * max(1.0, abs(difference)):
        reason = "every resample gives the same value"
        return Interval.unknown(reason, confidence_level=confidence_level), 1.0 if abs(difference) <= _SLACK else nan
    interval = t_interval(difference, error, degrees, confidence_level, method=METHOD)
    return interval, float(2 * stdtr(degrees, -abs(difference) / error))


def small_sample_factor(degrees: float, confidence_level: float = CONFIDENCE_LEVEL) -> float:
    """The factor that widens bootstrap errors from ``degrees`` + 1 units.

    The bootstrap underestimates the variance of a mean of n units by the factor (n - 1) / n, and the
    variance itself is estimated.

    >>> round(small_sample_factor(99), 3), round(small_sample_factor(9999), 3)
    (1.017, 1.0)
    """
    return t_critical(confidence_level, degrees) / normal_critical(confidence_level) * sqrt((degrees + 1.0) / degrees)


def with_tuning_uncertainty(contrasts: Sequence[Contrast], results: Mapping[str, Result]) -> list[Contrast]:
    """The contrasts with the larger of both p, if both results have errors of the metric."""
    return [_with_errors(contrast, results[contrast.a], results[contrast.b]) for contrast in contrasts]


def get_bootstrap_errors(result: Result, metric: str) -> Floats | None:
    """The bootstrap errors of a metric, or None."""
    return result.errors.get(metric)


def resampled_scores(results: Sequence[Result], metric: str, scores: Floats) -> Floats | None:
    """Bootstrap samples of the scores, one row per resample and one column per system; None if errors do not pair."""
    errors = [get_bootstrap_errors(result, metric) for result in results]
    available = [column for column in errors if column is not None]
    draws = {
        (result.settings.get(RESAMPLE_ID), len(column)) for result, column in zip(results, available, strict=False)
    }
    if len(available) < len(results) or len(draws) > 1:
        return None
    return scores - np.column_stack(available)


def _with_errors(contrast: Contrast, first: Result, second: Result) -> Contrast:
    a, b = get_bootstrap_errors(first, contrast.metric), get_bootstrap_errors(second, contrast.metric)
    if a is None or b is None or contrast.n < 2 or isnan(contrast.difference):
        return contrast
    size = min(len(a), len(b))
    # Errors of different resamples do not pair: reversed, they are nearly independent, which is conservative.
    paired = len(a) == len(b) and first.settings.get(RESAMPLE_ID) == second.settings.get(RESAMPLE_ID)
    errors = a[:size] - (b[:size] if paired else b[:size][::-1])
    degrees = [result.settings[ERROR_DF] for result in (first, second) if ERROR_DF in result.settings]
    if degrees:
        interval, p = t_difference(contrast.difference, errors, min(degrees), contrast.interval.confidence_level)
    else:
        interval, p = bootstrap_difference(
            contrast.difference, errors, contrast.n - 1, contrast.interval.confidence_level
        )
    if not interval.width > 0:
        return replace(contrast, p=_larger(contrast.p, p))
    return replace(
        contrast,
        p=_larger(contrast.p, p),
        interval=interval,
        sd=unit_sd(contrast.difference, root_mean_square(errors), contrast.n),
        units_per_block=1.0,
        reason="" if isnan(contrast.p) else contrast.reason,
    )


def _larger(tested: float, resampled: float) -> float:
    """The larger p; that of the errors where the test has none."""
    return resampled if isnan(tested) else max(tested, resampled)


def root_mean_square(errors: Floats) -> float:
    """The size of errors around 0; 0 where none is known."""
    defined = errors[~np.isnan(errors)]
    return sqrt(float(np.mean(np.square(defined)))) if len(defined) else 0.0
