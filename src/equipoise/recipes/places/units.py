"""In which unit a published figure is written: as a fraction, percent, or a sum. Proven, or not said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

from equipoise.data.published.printed import Printed
from equipoise.recipes.places.bounds import (
    ANY,
    SINGLE,
    Curve,
    Reach,
    discount,
    of_accuracy,
    of_earnings,
    of_weighted_f1,
    reciprocal,
)
from equipoise.stats.numbers import count, figure

NDCG_AT = 10
"""The cutoff of an nDCG that names none, as projects of this field report it."""
MOST_PERCENT = 100.0
_PLACES = 5


class Unit(StrEnum):
    """How a figure is written."""

    FRACTION = "fraction"
    PERCENT = "percent"
    SUM = "sum over units"


@dataclass(frozen=True)
class Written:
    """A figure as it stands there; ``signed``: with a percent sign, ``summed``: maybe a sum over units."""

    symbol: str
    k: int | None
    average: str
    label: str
    number: Printed
    signed: bool = False
    summed: bool = False

    @property
    def metric(self) -> str:
        """The spelling of the catalogue."""
        if self.symbol == "F1":
            return "F1" if self.average in ("", "weighted") else f"F1(average={self.average})"
        cutoff = NDCG_AT if self.symbol == "nDCG" and self.k is None else self.k
        return self.symbol if cutoff is None else f"{self.symbol}@{cutoff}"


@dataclass(frozen=True)
class Known:
    """What is proven of a row so far: how many units there are, and accuracies."""

    total: int | None
    curve: Curve


@dataclass(frozen=True)
class Decision:
    """The unit and where the value lies, or None and why it cannot be told."""

    unit: Unit | None
    reach: Reach
    why: str


def decide(written: Written, known: Known) -> Decision:
    """Try every unit, and keep the one that what is known allows.

    >>> from equipoise.data.published import printed
    >>> known = Known(50, {1: Reach(0.2, 0.2)})
    >>> decide(Written("MRR", None, "", "mrr", printed("0.34")), known).unit.value
    'fraction'
    >>> decide(Written("MRR", None, "", "mrr", printed("0.34")), Known(None, {})).why
    'it may be a fraction (0.34) or percent (0.0034)'
    """
    readings = _readings(written, known.total)
    if written.number.value == 0.0:
        return Decision(
            Unit.PERCENT if written.signed else Unit.FRACTION, readings[_first(readings)], "0 is 0"
        )
    if written.signed:
        reach = readings[Unit.PERCENT]
        reason = _refusal(written, reach, known)
        return (
            Decision(None, reach, f"as percent {reason}")
            if reason
            else Decision(Unit.PERCENT, reach, "a percent sign says so")
        )
    refusals = {unit: _refusal(written, reach, known) for unit, reach in readings.items()}
    left = [unit for unit, reason in refusals.items() if not reason]
    told = "; ".join(f"as {_words(unit)} {reason}" for unit, reason in refusals.items() if reason)
    if len(left) == 1:
        return Decision(left[0], readings[left[0]], told)
    if left:
        each = " or ".join(f"{_words(unit)} ({_middle(readings[unit])})" for unit in left)
        return Decision(None, ANY, f"it may be {each}")
    return Decision(None, ANY, told)


def _readings(written: Written, total: int | None) -> Mapping[Unit, Reach]:
    number = written.number
    scales = {Unit.FRACTION: 1.0, Unit.PERCENT: 0.01}
    # A share cannot exceed 100 %, so what does is a sum, whatever it is called.
    if total is not None and (written.summed or number.low > MOST_PERCENT) and written.symbol != "F1":
        scales[Unit.SUM] = 1.0 / total
    return {unit: Reach(number.low * scale, number.high * scale) for unit, scale in scales.items()}


def _first(readings: Mapping[Unit, Reach]) -> Unit:
    return next(iter(readings))


def _refusal(written: Written, reach: Reach, known: Known) -> str:
    """Why the figure cannot have these values; empty where it can."""
    middle = _middle(reach)
    if not reach.meets(ANY):
        return f"it would be {middle}, and a share is at most 1"
    bounds = _bounds(written, known.curve)
    if not reach.meets(bounds):
        return (
            f"it would be {middle}, and the accuracies allow {figure(bounds.low, _PLACES)} to "
            f"{figure(bounds.high, _PLACES)}"
        )
    # A count of hits says more than that there is one, and tied scores give fractional hits.
    counted = (written.k or 1) in known.curve
    if written.symbol == "HR" and not counted and known.total is not None and not _whole(reach, known.total):
        return f"it would be {middle}, which no whole number of hits among {count(known.total)} units gives"
    return ""


def _bounds(written: Written, curve: Curve) -> Reach:
    if not curve:
        return ANY
    if written.symbol == "HR":
        return of_accuracy(curve, written.k or 1)
    if written.symbol == "MRR" and written.k is None:
        return of_earnings(curve, reciprocal)
    if written.symbol == "nDCG":
        return of_earnings(curve, discount(written.k or NDCG_AT))
    if written.symbol == "F1" and written.average == "weighted":
        return of_weighted_f1(curve)
    return of_accuracy(curve, 1) if written.symbol == "F1" and written.average == "micro" else ANY


def _whole(reach: Reach, total: int) -> bool:
    """Whether an integer number of hits lies within, at single precision."""
    slack = SINGLE * total
    return ceil(reach.low * total - slack) <= floor(reach.high * total + slack)


def _middle(reach: Reach) -> str:
    return f"{(reach.low + reach.high) / 2:.4g}"


def _words(unit: Unit) -> str:
    return f"a {unit}" if unit is not Unit.PERCENT else "percent"
