"""Quality against cost: the score of every system over one of its costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, slug
from equipoise.report.charts.marks import (
    Row,
    linear_axis,
    log_axis,
    log_scale,
    metric_axis_title,
    position,
    scale_axis,
    series_labels,
    series_points,
    value_label,
    vertical_intervals,
    with_grid,
)
from equipoise.report.charts.theme import Spec, series_style
from equipoise.report.tables import STANDARD_COSTS, axis_scale

if TYPE_CHECKING:
    from equipoise.report.view_model import Leaderboard, Report, SystemColumn

WIDTH, HEIGHT = 400, 280
LOG_RATIO = 20
"""Costs that differ by this factor or more get a logarithmic axis."""
MIN_SYSTEMS = 2
"""With fewer systems that recorded a cost, there is nothing to compare."""


def cost_charts(report: Report) -> Iterator[Chart]:
    """One chart per cost that at least two systems recorded with a score."""
    for cost in report.costs:
        if STANDARD_COSTS[cost.name].charted and len(_rows(report.leaderboard, cost)) >= MIN_SYSTEMS:
            yield cost_chart(report.leaderboard, cost)


def cost_chart(board: Leaderboard, cost: SystemColumn) -> Chart:
    """The systems as points with the interval of their score; those without this cost are named in the subtitle."""
    rows = _rows(board, cost)
    missing = [row.system for row, value in zip(board.rows, cost.values, strict=True) if value is None]
    x = cost_axis([row["cost"] for row in rows], cost.title)
    scale = axis_scale([], [end for row in rows for end in (row["value"], row["low"], row["high"])])
    y = with_grid(scale_axis(scale, metric_axis_title(board.metric, board.better).replace("→", "↑").replace("←", "↓")))
    layers: list[Spec] = []
    for row in rows:
        color, shape = series_style(row["index"])
        layers.append(vertical_intervals([row], x, y, "cost", stroke=color, strokeWidth=1.4))
        layers.append(series_points([row], position(x, y, "cost", "value"), color, shape, size=80))
    heights = [(scale.high - row["value"]) / (scale.high - scale.low) * HEIGHT for row in rows]
    layers += series_labels([row["name"] for row in rows], heights, WIDTH, style_index=[row["index"] for row in rows])
    return chart(
        f"cost-{slug(cost.name)}",
        f"{board.metric} by {cost.title}",
        f"{board.metric} and {cost.title}: {'; '.join(row['tooltip'] for row in rows)}.",
        layers,
        subtitle=f"Bars are {board.confidence_level} intervals.{_missing(missing)}",
        width=WIDTH,
        height=HEIGHT,
    )


def _rows(board: Leaderboard, cost: SystemColumn) -> list[Row]:
    return [
        {
            "index": index,
            "name": row.system,
            "cost": value,
            "value": row.score.number,
            "low": row.score.low,
            "high": row.score.high,
            "tooltip": f"{row.system}: {value_label(row.score)} at {text} {cost.title}",
        }
        for index, (row, value, text) in enumerate(zip(board.rows, cost.values, cost.texts, strict=True))
        if value is not None and row.score.number is not None
    ]


def _missing(names: Sequence[str]) -> str:
    return f" Not recorded: {', '.join(names)}." if names else ""


def cost_axis(costs: Sequence[float], title: str) -> Spec:
    """An axis from 0, or logarithmic if the costs differ widely."""
    if min(costs) > 0 and max(costs) / min(costs) >= LOG_RATIO:
        scale = log_scale(min(costs), max(costs))
        return with_grid(log_axis(scale.low, scale.high, scale.ticks, f"{title} (logarithmic)"))
    scale = axis_scale([], [0.0, max(costs)])
    return with_grid(linear_axis(scale.low, scale.high, scale.ticks, title))
