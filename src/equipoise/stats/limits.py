"""From resampled figures to the two ends of an interval.

Plain percentile and BCa limits cover too little at 50 units, and far too little with few clusters. So
tails are widened as Hesterberg (2015) proposes: the normal quantile of the nominal tail gives way to
sqrt(k / (k - 1)) times Student's critical value with k - 1 degrees of freedom, k being the number of draws.

No resampling shows values that the sample happens to lack. Gaffke's limits add a part of a draw at the bound
of the metric, which tells how large such a value can be.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from equipoise.stats.draws import Draws, exponential_sums, ratio, resampled_sums
from equipoise.stats.interval import t_critical
from equipoise.types import Floats, Ints

ROUNDING = 1e-12
"""Two figures nearer than this share of their size are equal."""


def bca_limits(draws: Draws, level: float, resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Bias-corrected and accelerated limits (Efron, 1987) of the mean of each column."""
    from scipy.special import ndtr

    residuals, masses, counts, means = draws.residuals, draws.masses, draws.counts, draws.means
    ordered = _sorted_rows(_deviations(residuals, masses, resamples, rng))
    bias = median_bias(ordered, ROUNDING * np.abs(means))
    # Leaving draw i out moves a ratio S / D by -residual_i / (D - mass_i), exactly.
    moves = residuals / (masses.sum(axis=0) - masses)
    moves = np.where(masses > 0.0, moves - moves.sum(axis=0) / counts, 0.0)
    acceleration = (moves**3).sum(axis=0) / (6.0 * np.square(moves).sum(axis=0) ** 1.5)
    tail = wide_tails(counts, level)
    low, high = (
        means + quantiles(ordered, ndtr(bias + z / np.maximum(1.0 - acceleration * z, 1e-9)))
        for z in (bias - tail, bias + tail)
    )
    return low, high


def gaffke_limits(
    draws: Draws, ends: tuple[Floats, Floats], level: float, resamples: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The Bayesian bootstrap with half a draw more: at the lower end for the lower limit, else at the upper.

    Gaffke (2005) adds a whole draw at a bound of the values. His limits never cover less than stated, but
    with 50 units they cover 97 to 99 %; half a draw, as in the intervals of Jeffreys, covers 94 to 97 %.
    ``ends`` are the two values of the added draw in each column. It weighs half as much as the average draw.
    """
    columns = draws.masses.shape[1]
    masses = _without_repeats(draws.masses)
    sums, extra = exponential_sums(np.hstack([draws.totals, masses]), resamples, rng, added=0.5)
    extra = extra * ratio(draws.masses.sum(axis=0), draws.counts.astype(np.float64))
    tail = (1.0 - level) / 2.0
    limits = []
    for end, share in zip(ends, (tail, 1.0 - tail), strict=True):
        means = ratio(sums[:, :columns] + extra * end, sums[:, columns:] + extra)
        limits.append(quantiles(_sorted_rows(means), np.full(columns, share)))
    return limits[0], limits[1]


def median_bias(ordered: Floats, tolerance: Floats) -> Floats:
    """The normal quantile of the share of deviations below 0; ties, found within rounding, count half."""
    from scipy.special import ndtri

    defined = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=1), 1)
    below = np.count_nonzero(ordered < -tolerance[:, None], axis=1)
    tied = np.count_nonzero(np.abs(ordered) <= tolerance[:, None], axis=1)
    edge = 0.5 / defined
    return np.asarray(ndtri(np.clip((below + 0.5 * tied) / defined, edge, 1.0 - edge)))


def wide_tails(counts: Ints, level: float) -> Floats:
    """The normal quantile whose tails make up for few draws.

    >>> wide_tails(np.array([10, 1000]), 0.95).round(3)
    array([2.385, 1.963])
    """
    sizes, where = np.unique(counts, return_inverse=True)
    return np.array([sqrt(k / (k - 1)) * t_critical(level, k - 1) for k in sizes.tolist()])[where]


def quantiles(ordered: Floats, share: Floats) -> Floats:
    """For each row, sorted with its NaNs last, the quantile at that row's share (midpoint positions).

    >>> quantiles(np.array([[0.0, 1.0, 2.0, np.nan]]), np.array([0.5]))
    array([1.])
    """
    last = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=1) - 1, 0)
    position = np.clip(share * (last + 1) - 0.5, 0.0, last)
    left = position.astype(np.int64)
    rows = np.arange(len(ordered))
    below, above = ordered[rows, left], ordered[rows, np.minimum(left + 1, last)]
    return np.asarray(below + (position - left) * (above - below))


def _deviations(residuals: Floats, masses: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Resampled means less the mean; columns with the same masses share theirs."""
    columns = residuals.shape[1]
    sums = resampled_sums(np.hstack([residuals, _without_repeats(masses)]), resamples, rng)
    return ratio(sums[:, :columns], np.broadcast_to(sums[:, columns:], (resamples, columns)))


def _without_repeats(masses: Floats) -> Floats:
    """One column where all are equal."""
    return masses[:, :1] if bool((masses == masses[:, :1]).all()) else masses


def _sorted_rows(table: Floats) -> Floats:
    """Columns as rows, each sorted."""
    return np.sort(np.ascontiguousarray(table.T), axis=1)
