"""Formatting of numbers; all reports use these functions.

Everything is a fraction, a rank or a count as the metric has it; only confidence levels are percent. As many
decimals are shown as the interval supports: two significant digits of its half-width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, isinf, isnan, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate

DEFAULT_DECIMALS = 3
MOST_DECIMALS = 6
SMALLEST_P = 0.001


def n_decimals(interval: Interval) -> int:
    """The number of decimals supported by this interval.

    >>> from equipoise.stats.intervals import Interval
    >>> n_decimals(Interval(0.37, 0.45)), n_decimals(Interval(120.0, 180.0))
    (3, 0)
    """
    half = (interval.high - interval.low) / 2
    if not isfinite(half) or half <= 0:
        return DEFAULT_DECIMALS
    return min(max(1 - floor(log10(half)), 0), MOST_DECIMALS)


def shared_decimals(intervals: Iterable[Interval]) -> int:
    """The decimals for a column of values: those supported by the narrowest known interval."""
    decimals = [n_decimals(interval) for interval in intervals if interval.high > interval.low]
    return max(decimals, default=DEFAULT_DECIMALS)


def column_decimals(values: Iterable[float], intervals: Sequence[Interval]) -> int:
    """The decimals for a column of values; three significant digits of the largest one if no interval is known.

    >>> from equipoise.stats.intervals import Interval
    >>> column_decimals([28496.349], [Interval.unknown("one pass")]), column_decimals([0.5], [Interval(0.3, 0.7)])
    (0, 2)
    """
    sizes = [abs(value) for value in values if isfinite(value) and value]
    if not sizes or any(interval.high > interval.low for interval in intervals):
        return shared_decimals(intervals)
    return min(max(2 - floor(log10(max(sizes))), 0), DEFAULT_DECIMALS)


def estimate_decimals(estimates: Sequence[Estimate]) -> int:
    """The decimals for a column of scores."""
    return column_decimals([estimate.value for estimate in estimates], [estimate.interval for estimate in estimates])


PERCENT_UNIT = " (%)"
"""Ends the names of metrics whose values are printed in percent: ``Acc@1 (%)``."""


def metric_in_sentence(metric: str) -> str:
    """The name of a metric without its unit.

    >>> metric_in_sentence("Acc@1 (%)")
    'Acc@1'
    """
    return metric.removesuffix(PERCENT_UNIT)


def capitalised(text: str) -> str:
    """The text with a capital first letter.

    >>> capitalised("paired t test by ID")
    'Paired t test by ID'
    """
    return text[:1].upper() + text[1:]


def metric_heading(metric: str) -> str:
    """The name of a metric as a heading; symbols such as nDCG@10 stay as they are.

    >>> metric_heading("held-out accuracy (%)"), metric_heading("nDCG@10")
    ('Held-out accuracy (%)', 'nDCG@10')
    """
    return capitalised(metric) if _WORD.match(metric) else metric


UNIT_SUFFIXES = {"ms": " (ms)", "queries a second": " (queries/s)", "km": " (km)"}
"""What follows the name of a metric in a heading, by the unit of its values."""


def with_unit(metric: str, unit: str) -> str:
    """The name of a metric with its unit, if it has one that readers have to know.

    >>> with_unit("Latency", "ms"), with_unit("MRR", "fraction")
    ('Latency (ms)', 'MRR')
    """
    return metric + UNIT_SUFFIXES.get(unit, "")


_WORD = re.compile(r"[a-z-]{4,}( |$)")


def metric_in_percent(metric: str) -> str:
    """The name of a metric with its unit in words.

    >>> metric_in_percent("Acc@1 (%)"), metric_in_percent("MRR")
    ('Acc@1 in percent', 'MRR')
    """
    return metric.replace(PERCENT_UNIT, " in percent")


def percent_sign(metric: str) -> str:
    """What follows the values of a metric in a sentence: a percent sign if they are printed in percent."""
    return " %" if metric.endswith(PERCENT_UNIT) else ""


def value_in_sentence(metric: str, text: str) -> str:
    """A printed value, with or without its interval, and the percent sign if the name of its metric has one.

    >>> value_in_sentence("Acc@1 (%)", "82.9 [73.1, 89.6]"), value_in_sentence("MRR", "0.41")
    ('82.9 % [73.1, 89.6]', '0.41')
    """
    value, *interval = text.split(" ", 1)
    return " ".join((value + percent_sign(metric), *interval)) if value[-1:].isdigit() else text


def format_value(value: float, decimals: int = DEFAULT_DECIMALS, *, reason: str = "") -> str:
    """A number, or ``n/a`` and why.

    >>> format_value(0.41234, 3), format_value(float("nan"), reason="one unit")
    ('0.412', 'n/a (one unit)')
    """
    if isnan(value):
        return f"n/a ({reason})" if reason else "n/a"
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def format_difference(value: float, decimals: int = DEFAULT_DECIMALS, *, reason: str = "") -> str:
    """A difference, with its sign.

    >>> format_difference(0.01, 2), format_difference(-0.5, 1), format_difference(0.0001, 2)
    ('+0.01', '-0.5', '0.00')
    """
    text = format_value(value, decimals, reason=reason)
    return f"+{text}" if value > 0 and float(text.replace(",", "")) != 0 else text


def format_interval(interval: Interval, decimals: int | None = None) -> str:
    """An interval, or ``n/a`` and why.

    >>> from equipoise.stats.intervals import Interval
    >>> format_interval(Interval(0.371, 0.452)), format_interval(Interval.unknown("one unit"))
    ('[0.371, 0.452]', 'n/a (one unit)')
    """
    if interval.reason:
        return f"n/a ({interval.reason})"
    decimals = n_decimals(interval) if decimals is None else decimals
    return f"[{format_value(interval.low, decimals)}, {format_value(interval.high, decimals)}]"


def format_p(p: float, *, reason: str = "") -> str:
    """A p value to two significant digits, never 0.

    >>> format_p(0.0421), format_p(0.31), format_p(1e-4), format_p(0.9999)
    ('0.042', '0.31', '<0.001', '1.00')
    """
    if isnan(p):
        return format_value(p, reason=reason)
    if p < SMALLEST_P:
        return f"<{SMALLEST_P}"
    return f"{p:.{2 if p >= 0.0995 else 3}f}"


def p_in_sentence(p: float | str) -> str:
    """A p value, or the text that ``format_p`` makes of it, as it is written in a sentence.

    >>> p_in_sentence(0.0421), p_in_sentence("<0.001")
    ('p = 0.042', 'p < 0.001')
    """
    text = p if isinstance(p, str) else format_p(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def format_percent(confidence_level: float) -> str:
    """A confidence level.

    >>> format_percent(0.95), format_percent(0.995)
    ('95 %', '99.5 %')
    """
    return f"{confidence_level * 100:.10g} %"


def format_count(number: int) -> str:
    """A count with thousands separators.

    >>> format_count(12345)
    '12,345'
    """
    return f"{number:,}"


def about(number: float) -> str:
    """A planned count to two significant digits, the precision of the values that it is computed from.

    >>> about(1_724.0)
    '1,700'
    """
    step = 10 ** max(0, floor(log10(number)) - 1)
    return f"{round(number / step) * step:,}"


def format_range(low: float, high: float, decimals: int = DEFAULT_DECIMALS) -> str:
    """One number, or the two ends of a range where they differ in print.

    >>> format_range(0.1, 0.1001), format_range(0.1, 0.2, 1)
    ('0.100', '0.1 to 0.2')
    """
    ends = format_value(low, decimals), format_value(high, decimals)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def format_ranks(low: int, high: int) -> str:
    """The ranks that a system may have.

    >>> format_ranks(2, 2), format_ranks(1, 3)
    ('2', '1-3')
    """
    return str(low) if low == high else f"{low}-{high}"


def format_bounds(bounds: tuple[float, float]) -> str:
    """The range of a metric as text.

    >>> format_bounds((0.0, 1.0)), format_bounds((1.0, float("inf")))
    ('0 to 1', '1 or more')
    """
    low, high = bounds
    if isinf(low) and isinf(high):
        return "any number"
    if isinf(high):
        return f"{low:g} or more"
    return f"{high:g} or less" if isinf(low) else f"{low:g} to {high:g}"


@dataclass(frozen=True, slots=True)
class ScoreFormat:
    """How scores of one metric are printed: as they are, or in percent with one significant digit of the interval."""

    decimals: int
    percent: bool = False

    @classmethod
    def of(cls, intervals: Sequence[Interval], *, percent: bool) -> ScoreFormat:
        """The format for scores with these intervals."""
        decimals = shared_decimals(intervals)
        return cls(max(0, decimals - 3) if percent else decimals, percent)

    def value(self, value: float) -> str:
        """A score; below 1 % with a decimal.

        >>> ScoreFormat(0, percent=True).value(0.829), ScoreFormat(2).value(0.829)
        ('83 %', '0.83')
        >>> ScoreFormat(0, percent=True).value(0.0033), ScoreFormat(0, percent=True).value(0.0)
        ('0.3 %', '0 %')
        """
        if not self.percent:
            return format_value(value, self.decimals)
        return _with_sign(100 * value, max(self.decimals, 1) if 0 < value < 0.01 else self.decimals)

    def interval(self, interval: Interval) -> str:
        """An interval of scores.

        >>> from equipoise.stats.intervals import Interval
        >>> ScoreFormat(0, percent=True).interval(Interval(0.731, 0.896)), ScoreFormat(2).interval(Interval(0.7, 0.9))
        ('73-90 %', '[0.70, 0.90]')
        """
        if not self.percent or not interval.known:
            return format_interval(interval, self.decimals)
        low, high = (format_value(100 * end, self.decimals) for end in (interval.low, interval.high))
        return f"{low}-{high} %"

    def range(self, values: Sequence[float]) -> str:
        """The smallest and the largest of several scores; one score if they are equal in print."""
        low, high = self.value(min(values)), self.value(max(values))
        return low if low == high else f"{low.removesuffix(' %')} to {high}"

    def difference(self, contrast: Contrast) -> str:
        """The size of a difference, with at least one digit that is not 0."""
        size = abs(contrast.difference) * (100 if self.percent else 1)
        first = -floor(log10(size)) if size > 0 else 0
        if self.percent:
            return f"{format_value(size, max(self.decimals, first))} points"
        return format_value(size, max(n_decimals(contrast.interval), first))

    def difference_interval(self, interval: Interval) -> str:
        """An interval of a difference, without a unit.

        >>> from equipoise.stats.intervals import Interval
        >>> ScoreFormat(1, percent=True).difference_interval(Interval(-0.043, 0.186))
        '[-4.3, 18.6]'
        """
        factor = 100 if self.percent else 1
        return format_interval(replace(interval, low=factor * interval.low, high=factor * interval.high), self.decimals)

    def signed_difference(self, value: float) -> str:
        """A difference with its sign, without a unit."""
        return format_difference(100 * value if self.percent else value, self.decimals)


def _with_sign(percent: float, decimals: int) -> str:
    text = format_value(percent, decimals)
    return text if isnan(percent) else f"{text} %"
