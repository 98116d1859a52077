"""What people see after scoring: each figure with interval, n, undefined units and chance level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.chance import BOUND_NOTE, bounded_systems, chance_text
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.numbers import count, figure, percent, shared_decimals, span
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction


def score_part(results: Sequence[Result], *, quiet: bool = False) -> list[Any]:
    """Title, table and caption of one or more results over the same metrics."""
    first = results[0]
    title = f"{first.system} on " if len(results) == 1 else f"{len(results)} systems on "
    title += " or ".join(dict.fromkeys(map(_size, results)))
    table = FittedTable(score_columns(results))
    parts: list[Any] = [heading(title), Paragraph(""), table]
    return parts if quiet else [*parts, Paragraph(""), Paragraph(caption(results))]


def score_columns(results: Sequence[Result]) -> list[Column]:
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
    level = next(iter(results[0].estimates.values())).interval.level
    columns = [
        Column("metric", metric),
        Column("system", system, shortens="middle"),
        Column("estimate", value, right=True),
        Column(f"{percent(level)} interval", reach, right=True, rank=1),
        Column("n", n, right=True, rank=3),
        Column("undefined", undefined, right=True, rank=4),
        Column("chance", chance, right=True, rank=2),
    ]
    return columns if len(results) > 1 else [columns[0], *columns[2:]]


def _size(result: Result) -> str:
    """How many units there are, and in how many clusters."""
    units = counted(len(result.unit_ids), "unit")
    if result.clusters is None:
        return units
    return f"{units} in {counted(len(set(result.clusters.tolist())), 'cluster')}"


def _cells(estimate: Estimate, places: int, *, bounded: bool) -> tuple[str, ...]:
    return (
        figure(estimate.value, places),
        span(estimate.interval, places),
        count(estimate.n),
        count(estimate.undefined),
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
