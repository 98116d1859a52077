"""What people see after scoring: each figure with interval, n, undefined units and chance level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, floor, isfinite, isnan, log10
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.checks.scores import UNKNOWN_CANDIDATES
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.report.view_model import AxisScale, Number, ReportTable, Value
from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_percent,
    format_value,
    shared_decimals,
)
from equipoise.types import Direction, Finding

if TYPE_CHECKING:
    from equipoise.report.build import RunSet
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate, Result

# The chance level as people read it; where the number of candidates is unknown it is only a bound.

BOUND_NOTE = (
    "With <= or >= it is only a bound: nobody said how many documents could have been retrieved, and "
    "luck does worse among more of them (--corpus-size)."
)


def bounded_systems(findings: Iterable[Finding]) -> set[str]:
    """The systems whose chance levels count only the items that were retrieved or judged relevant."""
    return {finding.subject for finding in findings if finding.code == UNKNOWN_CANDIDATES}


def chance_text(estimate: Estimate, places: int, *, bounded: bool) -> str:
    """The figure; with more candidates luck would do worse, so that of a smaller pool is a bound."""
    text = format_value(estimate.chance, places)
    return f"{chance_bound_sign(estimate.better)}{text}" if bounded and not isnan(estimate.chance) else text


def chance_bound_sign(better: Direction) -> str:
    """On which side of the bound the true chance level lies."""
    return "<= " if better == Direction.UP else ">= "


def score_part(results: Sequence[Result], *, quiet: bool = False) -> list[Any]:
    """Title, table and caption of one or more results over the same metrics."""
    first = results[0]
    title = f"{first.system} on " if len(results) == 1 else f"{len(results)} systems on "
    title += " or ".join(dict.fromkeys(map(_size, results)))
    table = TerminalTable(score_columns(results))
    parts: list[Any] = [heading(title), Paragraph(""), table]
    return parts if quiet else [*parts, Paragraph(""), Paragraph(caption(results))]


def score_columns(results: Sequence[Result]) -> list[ReportColumn]:
    """One row a metric and system, the metric named once."""
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(name for result in results for name in result.names):
        having = [result for result in results if name in result.estimates]
        places = shared_decimals(result.estimates[name].interval for result in having)
        for number, result in enumerate(having):
            bounded = result.system in bounded_systems(result.findings)
            cells = _cells(result.estimates[name], places, bounded=bounded)
            rows.append((name if number == 0 else "", result.system, *cells))
    metric, system, value, reach, n, undefined, chance = zip(*rows, strict=True)
    level = next(iter(results[0].estimates.values())).interval.confidence_level
    columns = [
        ReportColumn("metric", metric),
        ReportColumn("system", system, shortens="middle"),
        ReportColumn("estimate", value, right=True),
        ReportColumn(f"{format_percent(level)} interval", reach, right=True, rank=1),
        ReportColumn("n", n, right=True, rank=3),
        ReportColumn("undefined", undefined, right=True, rank=4),
        ReportColumn("chance", chance, right=True, rank=2),
    ]
    return columns if len(results) > 1 else [columns[0], *columns[2:]]


def _size(result: Result) -> str:
    """How many units there are, and in how many clusters."""
    units = pluralize(len(result.unit_ids), "unit")
    if result.clusters is None:
        return units
    return f"{units} in {pluralize(len(set(result.clusters.tolist())), 'cluster')}"


def _cells(estimate: Estimate, places: int, *, bounded: bool) -> tuple[str, ...]:
    return (
        format_value(estimate.value, places),
        format_interval(estimate.interval, places),
        format_count(estimate.n),
        format_count(estimate.undefined),
        chance_text(estimate, places, bounded=bounded),
    )


def caption(results: Sequence[Result]) -> str:
    """How the intervals were made, and which figures are better when smaller."""
    estimates = [estimate for result in results for estimate in result.estimates.values()]
    methods = dict.fromkeys(each.interval.method for each in estimates if each.interval.known)
    down = dict.fromkeys(each.metric for each in estimates if each.better == Direction.DOWN)
    sentences = [f"Intervals: {', '.join(methods)}."] if methods else []
    if down:
        sentences.append(f"Smaller is better: {', '.join(down)}.")
    sentences.append("Chance is what a system that knows nothing would score.")
    if any(bounded_systems(result.findings) for result in results):
        sentences.append(BOUND_NOTE)
    return " ".join(sentences)


# Numbers of the statistics as numbers to draw and texts to read, and the axis they share.

STEPS = (1, 2, 5, 10)
TICKS = 5


def finite_or_none(value: float) -> Number:
    """A number that can be drawn; None for one that does not exist."""
    return float(value) if isfinite(value) else None


def to_value(value: float, interval: Interval, places: int, *, difference: bool = False) -> Value:
    """A value and its interval; a difference shows its sign."""
    text = format_difference(value, places) if difference else format_value(value, places)
    return Value(
        finite_or_none(value),
        finite_or_none(interval.low),
        finite_or_none(interval.high),
        text,
        format_interval(interval, places),
    )


def axis_scale(figures: Iterable[Value], also: Iterable[Number] = ()) -> AxisScale:
    """An axis from a round number below everything to a round number above it.

    >>> axis_scale([], [0.13, 0.48]).ticks
    ((0.1, '0.1'), (0.2, '0.2'), (0.3, '0.3'), (0.4, '0.4'), (0.5, '0.5'))
    """
    numbers = [end for each in figures for end in (each.value, each.low, each.high)] + list(also)
    known = [each for each in numbers if each is not None]
    if not known:
        return AxisScale(0.0, 1.0, ((0.0, "0"), (1.0, "1")))
    low, high = min(known), max(known)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    step = _step((high - low) / TICKS)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    places = max(0, -floor(log10(step) + 1e-9))
    ticks = tuple((round(at * step, 12), format_value(at * step, places)) for at in range(first, last + 1))
    return AxisScale(ticks[0][0], ticks[-1][0], ticks)


def _step(rough: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below this."""
    power: float = 10.0 ** floor(log10(rough))
    return next(step for step in STEPS if step * power >= rough * (1 - 1e-9)) * power


# What each system takes: dimensions, seconds, bytes a vector, and how much of the texts it did not read.

FIGURES = 3
"""A cost is measured once, so more figures than these would be noise."""


def cost_table(subject: RunSet) -> tuple[ReportTable, ...]:
    """A column for every usual kind of cost that some run knows; the protocol has the others."""
    recorded = [run.manifest.cost for run in subject.runs]
    values = {name: [each.get(name) for each in recorded] for name in KNOWN}
    return tuple(_cost(name, found) for name, found in values.items() if any(v is not None for v in found))


def extra_costs(cost: Mapping[str, float | None]) -> dict[str, str]:
    """What a run recorded beyond the usual costs, as people read it."""
    known = {name: None if v is None else finite_or_none(v) for name, v in cost.items() if name not in KNOWN}
    return {name: "" if value is None else _plain(value) for name, value in known.items()}


def _cost(name: str, values: list[float | None]) -> ReportTable:
    head, text = KNOWN[name]
    numbers: tuple[Number, ...] = tuple(None if value is None else finite_or_none(value) for value in values)
    return ReportTable(name, head, numbers, tuple("" if value is None else text(value) for value in numbers))


def _plain(value: float) -> str:
    """A number to three figures, a whole number in full."""
    if value == int(value):
        return format_value(value, 0)
    return format_value(value, max(0, FIGURES - 1 - floor(log10(abs(value)))))


def _share(value: float) -> str:
    return format_percent(round(value, 3))


KNOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "dims": ("dims", _plain),
    "seconds": ("seconds", _plain),
    "bytes_per_vector": ("bytes a vector", _plain),
    "truncated_share": ("texts truncated", _share),
    "retrieved_tokens": ("tokens retrieved", _plain),
}


# How dark a cell of a heat table is.


def relative_shade(value: float, seen: Sequence[float], better: Direction) -> float:
    """Where a value lies between the worst seen (0) and the best (1).

    >>> relative_shade(0.5, [0.0, 0.5, 1.0], Direction.UP), relative_shade(3.0, [3.0, 9.0], Direction.DOWN)
    (0.5, 1.0)
    """
    low, high = min(seen), max(seen)
    if high <= low:
        return 0.5
    place = (value - low) / (high - low)
    return place if better == Direction.UP else 1 - place
