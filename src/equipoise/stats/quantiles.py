"""Quantiles, with intervals that assume nothing about the shape of what was measured."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from equipoise.errors import ParameterError
from equipoise.stats.interval import Interval, checked_level
from equipoise.types import Floats


def quantile(values: Floats, share: float) -> float:
    """The value that a share of the sample stays below; between two of them where it falls there.

    >>> quantile(np.array([1.0, 2.0, 3.0]), 0.5)
    2.0
    """
    _check(share)
    return float(np.quantile(values, share)) if len(values) else float("nan")


def quantile_interval(values: Floats, share: float, level: float = 0.95) -> Interval:
    """Two of the sorted values that enclose the quantile of all that could have been measured.

    How many of n values fall below that quantile is binomial, whatever their distribution, so the ranks of
    the two ends follow from it; the level is reached or exceeded. A high quantile of few values has no upper
    end, and the reason says how many it needs. [Thompson, 1936]

    >>> reach = quantile_interval(np.arange(100.0), 0.5)
    >>> reach.low, reach.high, reach.method
    (39.0, 60.0, 'order statistics')
    """
    from scipy.special import bdtr

    _check(share)
    tail = (1.0 - checked_level(level)) / 2.0
    n = len(values)
    if not n:
        return Interval.unknown("no value", level=level)
    below = bdtr(np.arange(n, dtype=np.float64), n, share)
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1.0 - tail, side="left")) + 1
    if low < 1 or high > n:
        # An end beyond the sample is passed with probability share^n, or (1 - share)^n at the other side.
        needed = ceil(log(tail) / log(max(share, 1.0 - share)))
        return Interval.unknown(f"{share:.0%} of {n} values; {needed} are needed", level=level)
    ordered = np.sort(values)
    return Interval(float(ordered[low - 1]), float(ordered[high - 1]), level, "order statistics")


def _check(share: float) -> None:
    if not 0.0 < share < 1.0:
        raise ParameterError(f"a quantile of {share:g} cannot be", hint="give a share between 0 and 1")
