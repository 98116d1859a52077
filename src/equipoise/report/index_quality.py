"""What people see of an index: recall, latency and throughput, and what the figures rest on."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value, n_decimals

if TYPE_CHECKING:
    from equipoise.stats.result import Estimate, Result

_UNITS = {"fraction": "", "queries a second": "queries/s"}
"""The unit after a value; a fraction has none."""


def index_report(result: Result, cost: dict[str, float], *, exact: bool, quiet: bool = False) -> list[Any]:
    """A title, a line a figure, and sentences on how they were measured."""
    recall, *_ = result.estimates.values()
    vectors = int(result.settings["vectors"])
    rows = [_cells(each) for each in result.estimates.values()]
    names, values, units, reaches, n = zip(*rows, strict=True)
    table = TerminalTable(
        [
            ReportColumn("figure", names),
            ReportColumn("estimate", values, right=True),
            ReportColumn("unit", units),
            ReportColumn(f"{format_percent(recall.interval.confidence_level)} interval", reaches, right=True, rank=1),
            ReportColumn("n", n, right=True, rank=2),
        ]
    )
    parts: list[Any] = [heading(f"{result.system} on {format_count(vectors)} vectors"), Paragraph(""), table]
    if quiet:
        return parts
    return [
        *parts,
        Paragraph(""),
        *map(Paragraph, _reasons(result)),
        Paragraph(_measured(result, cost, exact=exact)),
        Paragraph(_methods(result)),
    ]


def _cells(estimate: Estimate) -> tuple[str, ...]:
    places = n_decimals(estimate.interval) if estimate.interval.known else _places(estimate.value)
    return (
        estimate.metric,
        format_value(estimate.value, places),
        _UNITS.get(estimate.unit, estimate.unit),
        format_interval(estimate.interval, places) if estimate.interval.known else "n/a",
        format_count(estimate.n),
    )


def _reasons(result: Result) -> list[str]:
    """Why some intervals are not known: sentences below the table, which a long cell would push apart."""
    found: dict[str, list[str]] = {}
    for estimate in result.estimates.values():
        if not estimate.interval.known:
            found.setdefault(estimate.interval.reason, []).append(estimate.metric)
    return [f"No interval of {', '.join(names)}: {reason}." for reason, names in found.items()]


def _places(value: float) -> int:
    """The decimals of a figure without an interval: a large one needs none."""
    return 0 if isnan(value) or value >= 100 else 3


def _measured(result: Result, cost: dict[str, float], *, exact: bool) -> str:
    recall = next(iter(result.estimates.values()))
    column = result.per_unit[recall.metric]
    complete = int((column == 1.0).sum())
    kind = "compares with every vector" if exact else "is approximate"
    return (
        f"The store {kind}; it missed nothing for {format_count(complete)} of {format_count(recall.n)} "
        f"queries, and random "
        f"answers would find {recall.chance:.2g}. It was filled in {cost['fill_seconds']:.3g} s and ready "
        f"{cost['build_seconds']:.3g} s later; exact search of the same vectors took "
        f"{cost['exact_seconds']:.3g} s for all queries. Latency is that of one query at a time as this "
        f"program sees it, network included; throughput is that of batches."
    )


def _methods(result: Result) -> str:
    reaches = [each.interval for each in result.estimates.values() if each.interval.known]
    methods = ", ".join(dict.fromkeys(reach.method for reach in reaches))
    return f"Intervals: {methods}." if methods else "No interval is known."
