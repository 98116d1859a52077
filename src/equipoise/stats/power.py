"""Power: what this many units can show, and how many units a difference would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isfinite, nan, sqrt
from statistics import NormalDist

from equipoise.errors import ParameterError
from equipoise.stats.intervals import normal_critical, t_critical, wilson_interval
from equipoise.types import nan_equal

MOST_UNITS = 10**12
MANY_DEGREES = 1000
"""Above this the noncentral t is inverted by its normal approximation, within 0.02 % and much faster."""
POWER = 0.8
"""The power of every planning value, unless another is given."""


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

    @property
    def known(self) -> bool:
        """Whether the value is known."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """How far an interval of an accuracy reaches with this many units."""

    n: int
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the distance between the ends: the number after the plus-minus sign."""
        return (self.high - self.low) / 2


def detectable_difference(
    sd: float, n: float, *, power: float = POWER, confidence_level: float = 0.95, units_per_block: float = 1.0
) -> PowerEstimate:
    """The smallest true difference that ``n`` units show with probability ``power``.

    ``sd`` is the standard deviation of the paired differences, and the test a two-sided paired t at
    1 - ``confidence_level`` (noncentral t, so it holds for few units). With clusters give the mean size of one as
    ``units_per_block``, and ``sd`` as the standard error times sqrt(n), which contains the design effect.

    >>> round(detectable_difference(0.3, 100).value, 4)
    0.0849
    """
    _check(power, confidence_level, units_per_block)
    reason = _why_unknown(sd) or ("fewer than two units" if n / units_per_block < 2 else "")
    if reason:
        return PowerEstimate.unknown(reason)
    return PowerEstimate(_effect(n / units_per_block - 1, power, confidence_level) * sd / sqrt(n))


def units_needed(
    difference: float, sd: float, *, power: float = POWER, confidence_level: float = 0.95, units_per_block: float = 1.0
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
        return _effect(n / units_per_block - 1, power, confidence_level) * sd / sqrt(n) <= abs(difference)

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


def accuracy_table(
    ns: Sequence[int] = (20, 50, 80, 100, 200, 500, 1000), *, accuracy: float = 0.8, confidence_level: float = 0.95
) -> list[AccuracyRow]:
    """Wilson intervals of one ``accuracy`` at several sample sizes.

    >>> [round(row.half_width, 3) for row in accuracy_table([50, 80, 100])]
    [0.109, 0.087, 0.078]
    """
    if not 0 <= accuracy <= 1:
        raise ParameterError(f"accuracy is {accuracy}, outside 0 to 1")
    rows = []
    for n in ns:
        interval = wilson_interval(accuracy * n, n, confidence_level=confidence_level)
        rows.append(AccuracyRow(n, interval.low, interval.high))
    return rows


def _effect(df: float, power: float, confidence_level: float) -> float:
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
        raise ParameterError(f"power is {power}, outside 0.5 to 1", hint="0.8 is customary")
    if not 0 < confidence_level < 1:
        raise ParameterError(f"confidence_level is {confidence_level}, outside 0 to 1", hint="0.95 is customary")
    if not units_per_block >= 1:
        raise ParameterError(f"{units_per_block} units in a cluster is fewer than one")
