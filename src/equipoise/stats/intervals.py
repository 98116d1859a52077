"""Intervals: the type, with its method or the reason why it is unknown, and closed formulas (Wilson, t)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log, nan, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL, check_confidence_level
from equipoise.errors import ParameterError
from equipoise.stats.formatting import format_percent
from equipoise.types import nan_equal

if TYPE_CHECKING:
    from equipoise.types import Floats

Bounds = tuple[float, float]


@nan_equal
@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval and its method, or the reason why there is none.

    Attributes
    ----------
    low
        The lower end; NaN if there is no interval.
    high
        The upper end; NaN if there is no interval.
    confidence_level
        The confidence level.
    method
        The name of the method, such as ``wilson``.
    reason
        Why there is no interval; empty if there is one.

    >>> Interval.unknown("one unit")
    Interval(low=nan, high=nan, confidence_level=0.95, method='none', reason='one unit')
    """

    low: float
    high: float
    confidence_level: float = CONFIDENCE_LEVEL
    method: str = ""
    reason: str = ""

    @classmethod
    def unknown(cls, reason: str, *, confidence_level: float = CONFIDENCE_LEVEL) -> Interval:
        """No interval, and why."""
        return cls(nan, nan, confidence_level, "none", reason)

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return not self.reason

    @property
    def width(self) -> float:
        """Upper minus lower end; NaN when unknown."""
        return self.high - self.low

    def scaled(self, factor: float) -> Interval:
        """The interval of the score times a positive factor.

        >>> Interval(0.25, 0.5).scaled(100.0).high
        50.0
        """
        return replace(self, low=factor * self.low, high=factor * self.high)

    def mirrored(self) -> Interval:
        """The interval of the negative value.

        >>> Interval(0.25, 0.5).mirrored().low
        -0.5
        """
        # 0.0 - x, so that the mirror image of 0 is 0 and not -0.
        return replace(self, low=0.0 - self.high, high=0.0 - self.low)

    def centered(self) -> Interval:
        """The interval of the same width around 0.

        >>> Interval(-0.5, 0.25).centered().low
        -0.375
        """
        half = self.width / 2.0
        return replace(self, low=-half, high=half)

    def covers(self, value: float) -> bool:
        """Whether the interval contains ``value``, ends included; an unknown interval covers nothing."""
        return self.low <= value <= self.high

    def around(self, point: float) -> Interval:
        """The same interval if it has a width and contains its estimate, up to rounding; else unknown.

        >>> Interval(0.1, 0.1).around(0.3).reason
        'the resamples repeat one value'
        """
        slack = 1e-12 * abs(point)
        if self.known and self.width <= slack:
            return Interval.unknown("the resamples repeat one value", confidence_level=self.confidence_level)
        if self.known and not self.low - slack <= point <= self.high + slack:
            return Interval.unknown(
                "the resampled interval excludes the estimate", confidence_level=self.confidence_level
            )
        return self

    def clipped(self, bounds: Bounds) -> Interval:
        """The part within the bounds of the metric.

        >>> Interval(0.9, 1.2).clipped((0.0, 1.0)).high
        1.0
        """
        if not self.known:
            return self
        low, high = bounds
        return replace(self, low=min(max(self.low, low), high), high=max(min(self.high, high), low))


def normal_critical(confidence_level: float) -> float:
    """The standard normal quantile that leaves ``1 - confidence_level`` outside, half on each side.

    >>> round(normal_critical(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)


def t_critical(confidence_level: float, degrees: float) -> float:
    """The same quantile of Student's t with ``degrees`` of freedom.

    >>> round(t_critical(0.95, 9), 3)
    2.262
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1.0 + confidence_level) / 2.0))


def wilson_interval(
    successes: float,
    n: float,
    confidence_level: float = CONFIDENCE_LEVEL,
    *,
    critical: float | None = None,
    method: str = "wilson",
) -> Interval:
    """Compute Wilson's score interval of a proportion: all p whose score test does not reject ``successes / n``.

    Both ends are within [0, 1], and the upper end is positive even without any success.

    Parameters
    ----------
    successes
        Number of successes; it need not be an integer.
    n
        Number of trials, or an effective number of trials.
    confidence_level
        Confidence level of the interval.
    critical
        A critical value other than the normal one.
    method
        The name of the method that is recorded in the interval.

    Returns
    -------
    Interval
        ``low``, ``high``, ``confidence_level`` and ``method``.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.

    Examples
    --------
    >>> interval = wilson_interval(40, 50)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.67, 0.888)
    """
    check_confidence_level(confidence_level)
    if n < 0 or not 0 <= successes <= n:
        raise ParameterError(
            f"{successes} successes in {n} trials are impossible", hint="successes are counted among the trials"
        )
    if n == 0:
        return Interval.unknown("no defined value", confidence_level=confidence_level)
    z = normal_critical(confidence_level) if critical is None else critical
    share, shrink = successes / n, z * z / n
    middle = (share + shrink / 2.0) / (1.0 + shrink)
    half = sqrt(shrink * (share * (1.0 - share) + shrink / 4.0)) / (1.0 + shrink)
    # At the ends the formula is exact; floating point must not leave a sliver beyond them.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return Interval(low, high, confidence_level, method)


def t_interval(
    mean: float, standard_error: float, degrees: float, confidence_level: float = CONFIDENCE_LEVEL, *, method: str = "t"
) -> Interval:
    """Student's interval: the mean and as many standard errors on each side as t demands.

    >>> interval = t_interval(2.0, 0.5, degrees=3)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.41, 3.59)
    """
    half = t_critical(confidence_level, degrees) * standard_error
    return Interval(mean - half, mean + half, confidence_level, method)


# Quantiles, with intervals that assume nothing about the shape of what was measured.


def quantile(values: Floats, share: float) -> float:
    """The quantile of the sample at ``share``, interpolated between two values.

    >>> quantile(np.array([1.0, 2.0, 3.0]), 0.5)
    2.0
    """
    _check(share)
    return float(np.quantile(values, share)) if len(values) else float("nan")


def quantile_interval(values: Floats, share: float, confidence_level: float = CONFIDENCE_LEVEL) -> Interval:
    """Two of the sorted values that enclose the quantile of all that could have been measured.

    How many of n values fall below that quantile is binomial for any distribution, so the ranks of
    the two ends follow from it; the level is reached or exceeded. A high quantile of few values has no upper
    end, and the reason says how many it needs. [Thompson, 1936]

    >>> interval = quantile_interval(np.arange(100.0), 0.5)
    >>> interval.low, interval.high, interval.method
    (39.0, 60.0, 'order statistics')
    """
    from scipy.special import bdtr

    _check(share)
    tail = (1.0 - check_confidence_level(confidence_level)) / 2.0
    n = len(values)
    if not n:
        return Interval.unknown("no value", confidence_level=confidence_level)
    below = bdtr(np.arange(n, dtype=np.float64), n, share)
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1.0 - tail, side="left")) + 1
    if low < 1 or high > n:
        # An end beyond the sample is passed with probability share^n, or (1 - share)^n at the other side.
        needed = ceil(log(tail) / log(max(share, 1.0 - share)))
        reason = f"the {format_percent(round(share, 2))} quantile needs {needed} values; there are only {n}"
        return Interval.unknown(reason, confidence_level=confidence_level)
    ordered = np.sort(values)
    return Interval(float(ordered[low - 1]), float(ordered[high - 1]), confidence_level, "order statistics")


def _check(share: float) -> None:
    if not 0.0 < share < 1.0:
        raise ParameterError(f"there is no quantile of {share:g}", hint="give a share between 0 and 1")
