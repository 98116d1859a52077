"""Differences of scores whose units depend on each other, such as those of nested cross-validation.

Such results record bootstrap errors of their scores. The larger p of the paired test and of these errors is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL
from equipoise.stats.intervals import Bounds, Interval, normal_critical, t_critical, t_interval, wilson_interval
from equipoise.stats.pairing import unit_sd
from equipoise.stats.tilted_signs import MIN_EXTREME

if TYPE_CHECKING:
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.result import Result
    from equipoise.types import Floats

RESAMPLE_ID = "draws"
"""The setting that identifies the resamples: errors of results with the same id are paired."""

ERROR_DF = "degrees of the errors"
"""The setting that gives the degrees of freedom of errors whose p uses Student's t: with a few
hundred resamples, an empirical p cannot be as small as a correction over many pairs requires."""

METHOD = "bootstrap-errors"
"""The name of intervals from such errors."""

_SLACK = 1e-12


def bootstrap_difference(
    difference: float, errors: Floats, degrees: float, confidence_level: float = CONFIDENCE_LEVEL
) -> tuple[Interval, float]:
    """The interval of a difference from its bootstrap errors, and the two-sided p of "no difference".

    p is the share of errors that are as large as the difference, and never 0. Errors resampled from
    few units are slightly too small; they are widened like Student's t, as in the interval. If fewer than 10 errors
    are as large, p is at most Student's: otherwise nothing could be significant after a correction for many pairs.

    >>> interval, p = bootstrap_difference(0.1, np.array([-0.02, 0.01, 0.12, 0.0] * 5), 50)
    >>> round(p, 3), interval.method
    (0.111, 'bootstrap-errors')
    """
    from scipy.special import stdtr

    error = root_mean_square(errors)
    interval = t_interval(difference, error, degrees, confidence_level, method=METHOD)
    extreme = np.count_nonzero(
        np.abs(errors) * small_sample_factor(degrees, confidence_level) >= abs(difference) - _SLACK
    )
    p = (extreme + 1) / (len(errors) + 1)
    if extreme < MIN_EXTREME and error > 0.0:
        p = min(p, 2 * stdtr(degrees, -abs(difference) / (error * sqrt((degrees + 1.0) / degrees))))
    return interval, float(p)


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


def interval_from_errors(
    value: float, values: Floats, errors: Floats, bounds: Bounds, confidence_level: float = CONFIDENCE_LEVEL
) -> Interval:
    """The interval of a score with these per-unit values from its bootstrap errors.

    A share gets Wilson's interval with the number of independent units that has this standard error, at most the
    number of hits and misses; other metrics get Student's. Errors are squared around 0, not around their mean:
    selection on fewer units is slightly worse than the deployed trial, and that is part of the error.
    """
    defined = values[~np.isnan(values)]
    if len(defined) < 2:
        return Interval.unknown("one value" if len(defined) else "no defined value", confidence_level=confidence_level)
    error, degrees = root_mean_square(errors), len(defined) - 1
    if bounds != (0.0, 1.0):
        if error == 0.0:
            return Interval.unknown("all values are equal", confidence_level=confidence_level)
        return t_interval(value, error, degrees, confidence_level, method=METHOD).clipped(bounds)
    trials = value * (1.0 - value) / error**2 if error > 0.0 and 0.0 < value < 1.0 else float(len(defined))
    if np.isin(defined, (0.0, 1.0)).all():
        trials = min(trials, float(len(defined)))
    hits = min(value * trials, trials)
    return wilson_interval(
        hits, trials, confidence_level, critical=t_critical(confidence_level, degrees), method=f"wilson-{METHOD}"
    )


def small_sample_factor(degrees: float, confidence_level: float = CONFIDENCE_LEVEL) -> float:
    """The factor that widens bootstrap errors from ``degrees`` + 1 units.

    The bootstrap underestimates the variance of a mean of n units by the factor (n - 1) / n, and the
    variance itself is estimated.

    >>> round(small_sample_factor(99), 3), round(small_sample_factor(9999), 3)
    (1.017, 1.0)
    """
    return t_critical(confidence_level, degrees) / normal_critical(confidence_level) * sqrt((degrees + 1.0) / degrees)


def with_tuning_uncertainty(contrasts: Sequence[Contrast], results: Sequence[Result]) -> list[Contrast]:
    """The contrasts with the larger of both p, if both results have errors of the metric."""
    by_system = {result.system: result for result in results}
    return [_with_errors(contrast, by_system[contrast.a], by_system[contrast.b]) for contrast in contrasts]


@dataclass(frozen=True)
class DifferenceErrors:
    """Bootstrap errors of the difference of two scores; ``degrees`` are those of Student's t, None without it."""

    values: Floats
    degrees: float | None

    @classmethod
    def of(cls, metric: str, first: Result, second: Result) -> DifferenceErrors | None:
        """The errors of first minus second on a metric; None unless both results have errors."""
        a, b = first.errors.get(metric), second.errors.get(metric)
        if a is None or b is None:
            return None
        size, paired = min(len(a), len(b)), len(a) == len(b)
        a, b = a[:size], b[:size]
        if not paired or first.settings.get(RESAMPLE_ID) != second.settings.get(RESAMPLE_ID):
            # Errors of different resamples do not pair: reversed, they are nearly independent, which is conservative.
            # The errors of the same system are reversed, whichever is first.
            a, b = (a, b[::-1]) if first.system < second.system else (a[::-1], b)
        degrees = [result.settings[ERROR_DF] for result in (first, second) if ERROR_DF in result.settings]
        return cls(a - b, min(degrees, default=None))

    @property
    def size(self) -> float:
        """The standard error of the difference."""
        return root_mean_square(self.values)

    def test(self, difference: float, n_units: int, confidence_level: float) -> tuple[Interval, float]:
        """The interval of this difference, and the two-sided p of "no difference"."""
        if self.degrees is not None:
            return t_difference(difference, self.values, self.degrees, confidence_level)
        return bootstrap_difference(difference, self.values, n_units - 1, confidence_level)


def _with_errors(contrast: Contrast, first: Result, second: Result) -> Contrast:
    errors = DifferenceErrors.of(contrast.metric, first, second)
    if errors is None or contrast.n < 2 or isnan(contrast.difference):
        return contrast
    interval, p = errors.test(contrast.difference, contrast.n, contrast.interval.confidence_level)
    if not interval.width > 0:
        return replace(contrast, p=larger_p(contrast.p, p))
    return replace(
        contrast,
        p=larger_p(contrast.p, p),
        interval=interval,
        sd=unit_sd(contrast.difference, errors.size, contrast.n),
        units_per_block=1.0,
        reason="" if isnan(contrast.p) else contrast.reason,
    )


def larger_p(tested: float, resampled: float) -> float:
    """The larger p; that of the errors where the test has none."""
    return resampled if isnan(tested) else max(tested, resampled)


def root_mean_square(errors: Floats) -> float:
    """The size of errors around 0; 0 where none is known."""
    defined = errors[~np.isnan(errors)]
    return sqrt(float(np.mean(np.square(defined)))) if len(defined) else 0.0
