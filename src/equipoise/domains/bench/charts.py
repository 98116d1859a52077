"""Chart of benchmarks: quality against cost, with the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.marks import (
    TOOLTIP,
    line,
    literals,
    log_axis,
    log_scale,
    position,
    scale_axis,
    text_marks,
    with_grid,
)
from equipoise.report.charts.theme import LIGHT, series_style
from equipoise.report.sections import axis_scale

if TYPE_CHECKING:
    from equipoise.report.charts.marks import Row

WIDTH, HEIGHT = 560, 300


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One system: milliseconds per document, the score, and its interval."""

    system: str
    milliseconds: float
    score: float
    low: float
    high: float


def pareto_front(points: Sequence[CostPoint]) -> list[CostPoint]:
    """The systems that no other beats in score at no more cost, cheapest first.

    >>> a, b, c = (CostPoint(n, ms, s, s, s) for n, ms, s in (("a", 1, 0.2), ("b", 2, 0.1), ("c", 3, 0.5)))
    >>> [point.system for point in pareto_front([c, b, a])]
    ['a', 'c']
    """
    front: list[CostPoint] = []
    for point in sorted(points, key=lambda each: (each.milliseconds, -each.score)):
        if not front or point.score > front[-1].score:
            front.append(point)
    return front


def cost_chart(points: Sequence[CostPoint], metric: str, name: str = "cost") -> Chart:
    """Score by time per document; the line is the Pareto front."""
    front = pareto_front(points)
    times = [point.milliseconds for point in points]
    scale = log_scale(min(times) / 1.5, max(times) * 1.5)
    x = with_grid(log_axis(scale.low, scale.high, scale.ticks, "milliseconds per document (logarithmic)"))
    y_scale = axis_scale([], [end for point in points for end in (point.low, point.high)])
    y = with_grid(scale_axis(y_scale, metric))
    where = position(x, y, "cost", "value")
    rows = [_row(point, index) for index, point in enumerate(points)]
    for row, label in zip(rows, shorten_labels([point.system for point in points]), strict=True):
        row["text"] = label
    steps: list[Row] = [{"cost": point.milliseconds, "value": point.score} for point in front]
    layers = [
        line([*steps, {**steps[-1], "cost": scale.high}], where, LIGHT["chance"], interpolate="step-after"),
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.6},
            "encoding": {
                "x": {**x, "field": "cost", "type": "quantitative"},
                "y": {**y, "field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
            },
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1},
            "encoding": {**where, **literals("shape", "fill"), **TOOLTIP},
        },
        text_marks(rows, where, align="left", dx=8, dy=-6),
    ]
    listed = ", ".join(point.system for point in front)
    return chart(
        name,
        f"{metric} by cost",
        f"The Pareto front of {metric} and time per document: {listed}.",
        layers,
        subtitle="Line: the best score at or below each cost. Bars: intervals.",
        width=WIDTH,
        height=HEIGHT,
    )


def _row(point: CostPoint, index: int) -> Row:
    color, shape = series_style(index)
    return {
        "cost": point.milliseconds,
        "value": point.score,
        "low": point.low,
        "high": point.high,
        "fill": color,
        "shape": shape,
        "tooltip": f"{point.system}: {point.score:.3f}, {point.milliseconds:.3g} ms per document",
    }
