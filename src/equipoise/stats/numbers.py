"""The one place where numbers become text.

Everything is a fraction, a rank or a count as the metric has it; only confidence levels are percent. As many
decimals are shown as the interval supports: two figures of its half-width, no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, isnan, log10

from equipoise.stats.interval import Interval

DEFAULT_DECIMALS = 3
MOST_DECIMALS = 6
SMALLEST_P = 0.001


def decimals(interval: Interval) -> int:
    """How many decimals a figure with this interval deserves.

    >>> decimals(Interval(0.37, 0.45)), decimals(Interval(120.0, 180.0))
    (3, 0)
    """
    half = interval.width / 2
    if not interval.known or not isfinite(half) or half <= 0:
        return DEFAULT_DECIMALS
    return min(max(1 - floor(log10(half)), 0), MOST_DECIMALS)


def shared_decimals(intervals: Iterable[Interval]) -> int:
    """The decimals for a column of figures: what the narrowest known interval deserves."""
    known = [decimals(each) for each in intervals if each.known and each.width > 0]
    return max(known, default=DEFAULT_DECIMALS)


def figure(value: float, places: int = DEFAULT_DECIMALS, *, reason: str = "") -> str:
    """A number, or ``n/a`` and why.

    >>> figure(0.41234, 3), figure(float("nan"), reason="one unit")
    ('0.412', 'n/a (one unit)')
    """
    if isnan(value):
        return f"n/a ({reason})" if reason else "n/a"
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    text = f"{value:,.{places}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def signed(value: float, places: int = DEFAULT_DECIMALS, *, reason: str = "") -> str:
    """A difference, with its sign.

    >>> signed(0.01, 2), signed(-0.5, 1), signed(0.0001, 2)
    ('+0.01', '-0.5', '0.00')
    """
    text = figure(value, places, reason=reason)
    return f"+{text}" if value > 0 and float(text.replace(",", "")) != 0 else text


def span(interval: Interval, places: int | None = None) -> str:
    """An interval, or ``n/a`` and why.

    >>> span(Interval(0.371, 0.452)), span(Interval.unknown("one unit"))
    ('[0.371, 0.452]', 'n/a (one unit)')
    """
    if not interval.known:
        return f"n/a ({interval.reason})"
    places = decimals(interval) if places is None else places
    return f"[{figure(interval.low, places)}, {figure(interval.high, places)}]"


def p_value(p: float, *, reason: str = "") -> str:
    """A p value to two figures, never 0.

    >>> p_value(0.0421), p_value(0.31), p_value(1e-4), p_value(0.9999)
    ('0.042', '0.31', '<0.001', '1.00')
    """
    if isnan(p):
        return figure(p, reason=reason)
    if p < SMALLEST_P:
        return f"<{SMALLEST_P}"
    return f"{p:.{2 if p >= 0.0995 else 3}f}"


def percent(level: float) -> str:
    """A confidence level.

    >>> percent(0.95), percent(0.995)
    ('95 %', '99.5 %')
    """
    return f"{level * 100:.10g} %"


def count(number: int) -> str:
    """A count with its thousands apart.

    >>> count(12345)
    '12,345'
    """
    return f"{number:,}"


def about(number: float) -> str:
    """A planned count to two figures: the values that it is computed from are not known better than that.

    >>> about(1_724.0)
    '1,700'
    """
    step = 10 ** max(0, floor(log10(number)) - 1)
    return f"{round(number / step) * step:,}"


def between(low: float, high: float, places: int = DEFAULT_DECIMALS) -> str:
    """One number, or the two ends of a range where they differ in print.

    >>> between(0.1, 0.1001), between(0.1, 0.2, 1)
    ('0.100', '0.1 to 0.2')
    """
    ends = figure(low, places), figure(high, places)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def ranks(low: int, high: int) -> str:
    """The ranks that a system may have.

    >>> ranks(2, 2), ranks(1, 3)
    ('2', '1-3')
    """
    return str(low) if low == high else f"{low}-{high}"
