"""Units needed for the decision that is reported: at the level of a pair within its family of tests.

A step-wise correction tests the pair with the smallest p at the strictest level and each further pair at a
weaker one. At which level a pair is tested therefore depends on how many others are significant with as many
units, which is computed from the observed differences. ``calibration_power`` checks the results by simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, isnan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from equipoise.stats.corrections import CORRECTIONS, adjust, step_level
from equipoise.stats.intervals import t_critical
from equipoise.stats.power import MOST_UNITS, POWER, PowerEstimate, detectable_difference, units_needed
from equipoise.types import Direction, Floats

if TYPE_CHECKING:
    from equipoise.stats.contrasts import Contrast

_STEPS = 6
"""Iterations for the number of significant pairs; the level then moves by less than 1 %."""
_MOST_EFFECTS = 64
_CELLS = 200_000
"""Simulated statistics per evaluation: 2,000 samples and more of up to 100 pairs."""
_UNKNOWN_CORRELATION = 0.5


def with_power(contrasts: Sequence[Contrast], correction: str, alpha: float) -> list[Contrast]:
    """The contrasts of one metric, with ``detectable`` and ``needed`` for the tests of the family."""
    family = _Family(tuple(contrasts), correction, alpha)
    return [family.planned(at) for at in range(len(contrasts))]


def adjustment(contrasts: Sequence[Contrast], correction: str) -> str:
    """What the tests of one metric are adjusted for, in a few words.

    >>> adjustment([], "holm")
    'one test'
    """
    tested = sum(not isnan(contrast.p) for contrast in contrasts)
    return f"{CORRECTIONS[correction][1]} over {tested} pairs" if tested > 1 else "one test"


def units_to_show_best(
    contrasts: Sequence[Contrast], leader: str, correction: str, alpha: float, *, power: float = POWER
) -> PowerEstimate:
    """The fewest units with which the leader is significantly better than every other system.

    ``power`` is the probability that all its pairs are significant at once, if the observed differences are the
    true ones: the share of simulated samples. The simulation is part of the formula (its random numbers are
    fixed), and the correlation of the pairs follows from the standard deviations of the differences.
    ``contrasts`` come from ``with_power``.
    """
    pairs = [
        contrast for contrast in contrasts if leader in (contrast.a, contrast.b) and not isnan(contrast.difference)
    ]
    for contrast in pairs:
        if isnan(contrast.p) or not contrast.needed.known:
            return PowerEstimate.unknown(contrast.reason or contrast.needed.reason)
        if _better(contrast) != leader:
            return PowerEstimate.unknown(f"{leader} is not ahead on the units that {contrast.a} and {contrast.b} share")
    least = ceil(max((contrast.needed.value for contrast in pairs), default=2.0))
    if len(pairs) < 2:
        return PowerEstimate(float(least))
    share = _simulated_power(contrasts, leader, correction, alpha)
    return _fewest(lambda n: share(n) >= power, least)


@dataclass(frozen=True)
class _Family:
    """The pairs that are tested together."""

    contrasts: tuple[Contrast, ...]
    correction: str
    alpha: float

    @cached_property
    def effects(self) -> Floats:
        """The sizes of the differences in standard deviations; NaN for pairs without a test."""
        return np.abs([_effect(contrast) for contrast in self.contrasts])

    @cached_property
    def tested(self) -> Floats:
        """The effects of the tested pairs, in order; a large family is represented by evenly spaced ones."""
        ordered = np.sort(self.effects[~np.isnan(self.effects)])
        positions = np.linspace(0, len(ordered) - 1, min(len(ordered), _MOST_EFFECTS))
        return np.asarray(ordered[np.round(positions).astype(np.int64)])

    def confidence_level(self, at: int, n: float) -> float:
        """The level at which a pair is tested, with ``n`` units for each of the pairs.

        The pair is tested after those that are significant at its level. How many these are on average
        depends on that level: the equation is solved by iteration.
        """
        tests = int(np.count_nonzero(~np.isnan(self.effects)))
        if isnan(self.contrasts[at].p) or tests == 1 or self.correction == "none":
            return self.alpha
        statistics = np.append(self.tested, self.effects[at]) * sqrt(n)
        degrees = max(n / self.contrasts[at].units_per_block - 1.0, 1.0)
        confidence_level = self.alpha / tests
        for _ in range(_STEPS):
            critical = t_critical(1.0 - confidence_level, degrees)
            significant = _normal_cdf(statistics - critical) + _normal_cdf(-statistics - critical)
            before = tests * float(significant[:-1].mean()) - float(significant[-1])
            confidence_level = step_level(max(before, 0.0), tests, self.correction, self.alpha)
        return confidence_level

    def planned(self, at: int) -> Contrast:
        contrast = self.contrasts[at]
        if contrast.sd is None:
            return contrast
        sd, size = contrast.sd, contrast.units_per_block
        detectable = detectable_difference(
            sd, contrast.n, confidence_level=1.0 - self.confidence_level(at, max(contrast.n, 1)), units_per_block=size
        )
        # A single test at the full level needs the fewest units of all corrections.
        needed = units_needed(contrast.difference, sd, confidence_level=1.0 - self.alpha, units_per_block=size)
        if needed.known and len(self.contrasts) > 1:

            def shows(n: int) -> bool:
                confidence_level = 1.0 - self.confidence_level(at, n)
                return detectable_difference(
                    sd, n, confidence_level=confidence_level, units_per_block=size
                ).value <= abs(contrast.difference)

            needed = _fewest(shows, int(needed.value))
        return replace(contrast, detectable=detectable, needed=needed)


def _fewest(shows: Callable[[int], bool], least: int) -> PowerEstimate:
    """The smallest number from ``least`` on that is enough, within half a percent."""
    low, high = least - 1, least
    while not shows(high):
        if high > MOST_UNITS:
            return PowerEstimate.unknown("an observed difference is too close to 0")
        low, high = high, ceil(1.25 * high)
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return PowerEstimate(float(high))


def _simulated_power(
    contrasts: Sequence[Contrast], leader: str, correction: str, alpha: float
) -> Callable[[int], float]:
    """The share of samples of n units in which all pairs of the leader are significant."""
    tested = [contrast for contrast in contrasts if not isnan(contrast.p)]
    names = sorted({name for contrast in tested for name in (contrast.a, contrast.b)} - {leader})
    errors = _correlated_errors(tested, names, leader, max(_CELLS // len(tested), 200))
    with_leader = np.array([leader in (contrast.a, contrast.b) for contrast in tested])
    noise = np.column_stack([errors[contrast.a] - errors[contrast.b] for contrast in tested])
    scale = noise.std(axis=0)
    noise /= np.where(scale > 0, scale, 1.0)
    effects = np.array([_effect(contrast) for contrast in tested])

    def share(n: int) -> float:
        degrees = np.array([max(n / contrast.units_per_block - 1.0, 1.0) for contrast in tested])
        t = np.minimum(np.abs(effects * sqrt(n) + noise), 1e6)
        # The normal variate with the p value of t (Abramowitz and Stegun 26.7.8).
        z = t * (1.0 - 0.25 / degrees) / np.sqrt(1.0 + t**2 / (2.0 * degrees))
        significant = adjust(2.0 * _normal_cdf(-z), correction) < alpha
        return float(significant[:, with_leader].all(axis=1).mean())

    return share


def _correlated_errors(
    contrasts: Sequence[Contrast], names: Sequence[str], leader: str, samples: int
) -> dict[str, Floats]:
    """Simulated errors of every system relative to the leader, whose error is 0."""
    variance = {
        frozenset((contrast.a, contrast.b)): contrast.sd**2 for contrast in contrasts if contrast.sd is not None
    }
    variances = list(variance.values()) or [1.0]
    leader_variance = np.array([variance.get(frozenset((leader, name)), float(np.mean(variances))) for name in names])
    covariance = _UNKNOWN_CORRELATION * np.sqrt(np.outer(leader_variance, leader_variance))
    for row, one in enumerate(names):
        covariance[row, row] = leader_variance[row]
        for column, other in enumerate(names):
            between = variance.get(frozenset((one, other)))
            if between is not None and row != column:
                covariance[row, column] = (leader_variance[row] + leader_variance[column] - between) / 2.0
    # Pairs with different undefined units may give a matrix that is not quite positive semidefinite.
    eigenvalues, vectors = np.linalg.eigh(covariance)
    normal = np.random.default_rng(0).standard_normal((samples, len(names)))
    errors = normal @ (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T
    # A difference is leader minus other: the other's error has the opposite sign.
    return {leader: np.zeros(samples)} | {name: -errors[:, at] for at, name in enumerate(names)}


def _better(contrast: Contrast) -> str:
    """The system with the better score, significant or not."""
    return contrast.a if (contrast.difference > 0) == (contrast.better == Direction.UP) else contrast.b


def _effect(contrast: Contrast) -> float:
    """The difference in standard deviations; NaN where the pair is not part of the family.

    Where no standard deviation is known, the effect is that whose z statistic has the p value of the pair.
    """
    if isnan(contrast.p):
        return float("nan")
    if contrast.difference == 0:
        return 0.0
    if contrast.sd is None or isnan(contrast.sd):
        return float(-_normal_quantile(max(contrast.p, 1e-300) / 2)) / sqrt(max(contrast.n, 1))
    return contrast.difference / contrast.sd if contrast.sd > 0 else inf


def _normal_cdf(z: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(z))


def _normal_quantile(share: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(share))
