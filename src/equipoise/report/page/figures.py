"""Numbers of the statistics as numbers to draw and texts to read, and the axis they share."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, isfinite, log10

from equipoise.report.page.model import Figure, Number, Scale
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import figure, signed, span

STEPS = (1, 2, 5, 10)
TICKS = 5


def number(value: float) -> Number:
    """A number that can be drawn; None for one that does not exist."""
    return float(value) if isfinite(value) else None


def figure_of(value: float, interval: Interval, places: int, *, difference: bool = False) -> Figure:
    """A value and its interval; a difference shows its sign."""
    text = signed(value, places) if difference else figure(value, places)
    return Figure(number(value), number(interval.low), number(interval.high), text, span(interval, places))


def scale_of(figures: Iterable[Figure], also: Iterable[Number] = ()) -> Scale:
    """An axis from a round number below everything to a round number above it.

    >>> scale_of([], [0.13, 0.48]).ticks
    ((0.1, '0.1'), (0.2, '0.2'), (0.3, '0.3'), (0.4, '0.4'), (0.5, '0.5'))
    """
    numbers = [end for each in figures for end in (each.value, each.low, each.high)] + list(also)
    known = [each for each in numbers if each is not None]
    if not known:
        return Scale(0.0, 1.0, ((0.0, "0"), (1.0, "1")))
    low, high = min(known), max(known)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    step = _step((high - low) / TICKS)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    places = max(0, -floor(log10(step) + 1e-9))
    ticks = tuple((round(at * step, 12), figure(at * step, places)) for at in range(first, last + 1))
    return Scale(ticks[0][0], ticks[-1][0], ticks)


def _step(rough: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below this."""
    power: float = 10.0 ** floor(log10(rough))
    return next(step for step in STEPS if step * power >= rough * (1 - 1e-9)) * power
