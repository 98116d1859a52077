"""Interval arithmetic: between which ends a figure lies, when only its printed digits are known."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.stats.numbers import figure

SLACK = 1e-6
"""Figures nearer than this are equal: some programs compute in single precision, and none prints more."""
_PLACES = 6


@dataclass(frozen=True, slots=True)
class Span:
    """All values from ``low`` to ``high``.

    >>> Span(0.25, 0.35) + Span(0.5, 0.5)
    Span(low=0.75, high=0.85)
    """

    low: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> Span:
        """Scaled by a number that is not negative."""
        return Span(self.low * factor, self.high * factor)

    def above(self, other: Span) -> bool:
        """Whether every value here exceeds every value there."""
        return self.low > other.high + SLACK

    def apart(self, other: Span) -> bool:
        """Whether the two can have no value in common."""
        return self.above(other) or other.above(self)

    def within(self, low: float, high: float) -> Span:
        """The part between two bounds; the span itself where it lies wholly beyond one of them."""
        if self.high < low or self.low > high:
            return self
        return Span(max(self.low, low), min(self.high, high))

    def __str__(self) -> str:
        low, high = digits(self.low), digits(self.high)
        return low if low == high else f"{low} to {high}"


def digits(value: float, places: int = _PLACES) -> str:
    """A number without the zeros at its end.

    >>> digits(0.5), digits(2 / 3, 4), digits(3.0)
    ('0.5', '0.6667', '3')
    """
    text = figure(value, places)
    return text.rstrip("0").rstrip(".") if "." in text else text
