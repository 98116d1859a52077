"""Power: which differences this number of units can show, and how many units a difference needs.

A step-wise correction tests the pair with the smallest p at the strictest level and each further pair at a
weaker one. At which level a pair is tested therefore depends on how many others are significant with as many
units, which is computed from the observed differences. ``studies/power_calibration.py`` checks the results by
simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf, isfinite, isnan, nan, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL, check_confidence_level
from equipoise.errors import ParameterError
from equipoise.stats.intervals import normal_critical, t_critical
from equipoise.stats.multiple_comparisons import adjust, step_level
from equipoise.types import Direction, Floats, nan_equal

if TYPE_CHECKING:
    from equipoise.stats.comparison import Contrast

MOST_UNITS = 10**12
MANY_DEGREES = 1000
"""Above this the noncentral t is inverted by its normal approximation, within 0.02 % and much faster."""
POWER = 0.8
"""The power of every planning value, unless another is given."""
REALISTIC = 20
"""A planned number of units more than this many times the present one is not realistic."""


@nan_equal
@dataclass(frozen=True, slots=True)
class PowerEstimate:
    """A planning value, or NaN and the reason why it is unknown.

    >>> PowerEstimate.unknown("one unit")
    PowerEstimate(value=nan, reason='one unit')
    """

    value: float
    reason: str = ""

    @classmethod
    def unknown(cls, reason: str) -> PowerEstimate:
        """An unknown value with its reason."""
        return cls(nan, reason)

    def is_realistic(self, n: int) -> bool:
        """Whether a number of units can be collected by somebody who has ``n``.

        >>> PowerEstimate(500.0).is_realistic(100), PowerEstimate(58_000.0).is_realistic(130)
        (True, False)
        """
        return self.value <= REALISTIC * n

    @property
    def known(self) -> bool:
        """Whether the value is known."""
        return not self.reason


def detectable_difference(
    sd: float,
    n: float,
    *,
    power: float = POWER,
    confidence_level: float = CONFIDENCE_LEVEL,
    units_per_block: float = 1.0,
) -> PowerEstimate:
    """The smallest true difference that ``n`` units show with probability ``power``.

    ``sd`` is the standard deviation of the paired differences, and the test a two-sided paired t at
    1 - ``confidence_level`` (noncentral t, so it holds for few units). With clusters give the mean size of one as
    ``units_per_block``, and ``sd`` as the standard error times sqrt(n), which contains the design effect.

    >>> round(detectable_difference(0.3, 100).value, 4)
    0.0849
    """
    _check(power, confidence_level, units_per_block)
    reason = _why_unknown(sd) or ("fewer than two values" if n / units_per_block < 2 else "")
    if reason:
        return PowerEstimate.unknown(reason)
    return PowerEstimate(_noncentrality(n / units_per_block - 1, power, confidence_level) * sd / sqrt(n))


def units_needed(
    difference: float,
    sd: float,
    *,
    power: float = POWER,
    confidence_level: float = CONFIDENCE_LEVEL,
    units_per_block: float = 1.0,
) -> PowerEstimate:
    """The smallest number of units that detects a true ``difference`` with probability ``power``.

    >>> units_needed(0.0848, 0.3).value
    101.0
    """
    _check(power, confidence_level, units_per_block)
    reason = _why_unknown(sd)
    if not reason and not isfinite(difference):
        reason = "the difference is unknown"
    if not reason and difference == 0:
        reason = "the observed difference is 0"
    if reason:
        return PowerEstimate.unknown(reason)

    def shows(n: int) -> bool:
        return _noncentrality(n / units_per_block - 1, power, confidence_level) * sd / sqrt(n) <= abs(difference)

    least = ceil(2 * units_per_block)
    normal = normal_critical(confidence_level) + NormalDist().inv_cdf(power)
    guess = (normal * sd / difference) ** 2
    if guess > MOST_UNITS:
        return PowerEstimate.unknown("the observed difference is too close to 0")
    # The normal answer is a lower bound, and the t answer is a few blocks above it.
    low, high = least - 1, max(least, ceil(guess))
    while not shows(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return PowerEstimate(float(high))


def _noncentrality(df: float, power: float, confidence_level: float) -> float:
    """The noncentrality at which a two-sided t test with ``df`` rejects with probability ``power``.

    The other tail adds less than 1e-5 to any power of a half or more, and is left out.
    """
    from scipy.special import nctdtrinc

    critical = t_critical(confidence_level, df)
    if df > MANY_DEGREES:
        return critical + NormalDist().inv_cdf(power) * sqrt(1.0 + critical**2 / (2.0 * df))
    return float(nctdtrinc(df, 1 - power, critical))


def _why_unknown(sd: float) -> str:
    if not isfinite(sd):
        return "the spread of the differences is unknown"
    return "" if sd > 0 else "all differences are equal"


def _check(power: float, confidence_level: float, units_per_block: float) -> None:
    if not 0.5 <= power < 1:
        raise ParameterError(f"power is {power}, outside 0.5 to 1", hint="0.8 is the usual value")
    check_confidence_level(confidence_level)
    if not units_per_block >= 1:
        raise ParameterError(f"{units_per_block} units in a cluster is fewer than one")


_STEPS = 6
"""Iterations for the number of significant pairs; the level then moves by less than 1 %."""
_MOST_EFFECTS = 64
_CELLS = 200_000
"""Simulated statistics per evaluation: 2,000 samples and more of up to 100 pairs."""
_UNKNOWN_CORRELATION = 0.5


def with_power(contrasts: Sequence[Contrast], correction: str, alpha: float, *, largest: float = inf) -> list[Contrast]:
    """The contrasts of one metric, with ``detectable`` and ``needed`` for the tests of the family.

    ``largest`` is the largest possible difference.
    """
    family = _Family.of(contrasts, correction, alpha)
    return [_planned(contrast, family, largest) for contrast in contrasts]


def smallest_p(contrast: Contrast, n: float | None = None) -> float:
    """The smallest two-sided p of a pair on ``n`` units, by default its own: one system is better wherever they differ.

    The share of units on which the two differ is the observed one. 0 if a test has no smallest p.

    >>> from equipoise.stats.estimate import result_from_values
    >>> from equipoise.stats.pairing import compare_results
    >>> results = [result_from_values(name, [1, 2, 3], {"MRR": [hit] * 3}) for name, hit in (("a", 1), ("b", 0))]
    >>> pair = compare_results(results).contrast("a", "b")
    >>> smallest_p(pair), smallest_p(pair, 6)
    (0.25, 0.03125)
    """
    return p_of_equal_signs((contrast.n if n is None else n) * _signs_per_unit(contrast))


def p_of_equal_signs(n_signs: float) -> float:
    """The two-sided p of a sign-flip test if all signs are equal, the smallest possible one; 0 without a limit.

    >>> p_of_equal_signs(5), p_of_equal_signs(6)
    (0.0625, 0.03125)
    """
    return 0.0 if n_signs == inf else min(1.0, 2.0 ** (1 - floor(n_signs + 1e-9)))


def _signs_per_unit(contrast: Contrast) -> float:
    """The number of random signs in the test of a pair, per unit; infinite if the test has none."""
    if contrast.test == "t" or contrast.wins is None or contrast.losses is None or not contrast.n:
        return inf
    return min((contrast.wins + contrast.losses) / contrast.n, 1.0 / contrast.units_per_block)


def units_to_show_best(contrasts: Sequence[Contrast], leader: str, correction: str, alpha: float) -> PowerEstimate:
    """The fewest units with which the leader is significantly better than every other system.

    The power (``POWER``) is the probability that all its pairs are significant at once, if the observed differences
    are the true ones: the share of simulated samples. The simulation is part of the formula (its random numbers are
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
    return _fewest(lambda n: share(n) >= POWER, least)


@dataclass(frozen=True)
class _Family:
    """The tests of all pairs on a metric.

    ``effects`` are the sorted differences of the tested pairs in standard deviations, and ``signs_per_unit`` is the
    largest number of random signs per unit of a pair, for the first step of a correction.
    """

    effects: Floats
    signs_per_unit: float
    correction: str
    alpha: float

    @classmethod
    def of(cls, contrasts: Sequence[Contrast], correction: str, alpha: float) -> _Family:
        tested = [contrast for contrast in contrasts if not isnan(contrast.p)]
        signs_per_unit = max(map(_signs_per_unit, tested), default=inf)
        return cls(np.sort(np.abs([_effect(contrast) for contrast in tested])), signs_per_unit, correction, alpha)

    def level(self, contrast: Contrast, n: float) -> float:
        """The level at which a pair is tested, with ``n`` units for each of the pairs.

        The pair is tested after those that are significant at its level. How many these are on average depends on that
        level: the equation is solved by iteration.
        """
        tests = len(self.effects)
        if isnan(contrast.p) or tests == 1 or self.correction == "none":
            return self.alpha
        # A large family is represented by evenly spaced effects.
        positions = np.linspace(0, tests - 1, min(tests, _MOST_EFFECTS))
        effects = np.append(self.effects[np.round(positions).astype(np.int64)], abs(_effect(contrast)))
        statistics = effects * sqrt(n)
        degrees = max(n / contrast.units_per_block - 1.0, 1.0)
        level = self.alpha / tests
        for _ in range(_STEPS):
            critical = t_critical(1.0 - level, degrees)
            significant = _normal_cdf(statistics - critical) + _normal_cdf(-statistics - critical)
            before = tests * float(significant[:-1].mean()) - float(significant[-1])
            level = step_level(max(before, 0.0), tests, self.correction, self.alpha)
        return level

    def can_show(self, p: float, level: float, n: float) -> bool:
        """Whether a pair with the smallest p is significant, and with Holm's correction also the first pair."""
        first = p_of_equal_signs(n * self.signs_per_unit) if self.correction == "holm" else 0.0
        return p < level and first < step_level(0, max(len(self.effects), 1), self.correction, self.alpha)


def _planned(contrast: Contrast, family: _Family, largest: float) -> Contrast:
    """The contrast with its planning values."""
    if contrast.sd is None:
        return contrast
    sd, size = contrast.sd, contrast.units_per_block

    def shows(n: int) -> bool:
        level = family.level(contrast, n)
        detected = detectable_difference(sd, n, confidence_level=1.0 - level, units_per_block=size)
        return detected.value <= abs(contrast.difference) and family.can_show(smallest_p(contrast, n), level, n)

    # A single test at the full level needs the fewest units of all corrections.
    needed = units_needed(contrast.difference, sd, confidence_level=1.0 - family.alpha, units_per_block=size)
    if needed.known:
        needed = _fewest(shows, int(needed.value))
    return replace(contrast, detectable=_detectable(contrast, family, largest), needed=needed)


def _detectable(contrast: Contrast, family: _Family, largest: float) -> PowerEstimate:
    """The smallest difference that the units of a contrast can show, if they can show any possible difference."""
    n, size = contrast.n, contrast.units_per_block
    level = family.level(contrast, n)
    detectable = detectable_difference(contrast.sd or 0.0, n, confidence_level=1.0 - level, units_per_block=size)
    if not detectable.known:
        return detectable
    # A large difference is one on all units.
    smallest = 0.0 if _signs_per_unit(contrast) == inf else p_of_equal_signs(n / size)
    if smallest >= step_level(0, max(len(family.effects), 1), family.correction, family.alpha):
        return PowerEstimate.unknown("too few units for the test")
    return PowerEstimate.unknown("above the largest possible difference") if detectable.value > largest else detectable


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
