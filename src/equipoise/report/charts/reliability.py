"""The reliability diagram: accuracy by confidence bin, and the number of units per bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.report.charts.chart import Chart, chart, shorten_label, slug
from equipoise.report.charts.marks import (
    FRACTION_TICKS,
    PIXELS,
    Row,
    column_header,
    line,
    linear_axis,
    position,
    rectangles,
    series_points,
    vertical_intervals,
    with_grid,
)
from equipoise.report.charts.theme import LIGHT, Spec
from equipoise.stats.formatting import format_count, format_value

SIZE = 340
COUNT_HEIGHT = 54
"""The height of the histogram of units below the diagram."""
GAP = 46


@dataclass(frozen=True, slots=True)
class CalibrationPoint:
    """One confidence bin: its edges, mean confidence, accuracy with its interval, and number of units."""

    left: float
    right: float
    confidence: float
    accuracy: float
    low: float | None
    high: float | None
    n: int


def reliability_chart(
    system: str, bins: Sequence[CalibrationPoint], ece: float, calibrated_ece: float, name: str = ""
) -> Chart:
    """Points on the diagonal are calibrated, those below it overconfident; the histogram counts the units.

    ``ece`` is the expected calibration error, ``calibrated_ece`` its expectation for a calibrated model.
    """
    x = with_grid(linear_axis(0.0, 1.0, FRACTION_TICKS, ""))
    y = with_grid(linear_axis(0.0, 1.0, FRACTION_TICKS, "accuracy"))
    rows = [_row(point) for point in bins]
    where = position(x, y)
    ends = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]
    layers = [
        line(ends, where, LIGHT["soft"], width=1.3, strokeDash=[4, 3]),
        _gaps(rows, where),
        vertical_intervals(rows, x, y, "x", stroke=LIGHT["lead"], strokeWidth=1.4),
        series_points(rows, where, LIGHT["lead"], "circle", size=64),
        *_unit_counts(bins),
        column_header("↑ underconfident", 8, y=12),
        column_header("overconfident ↓", SIZE - 8, align="right", y=SIZE - 12),
    ]
    return chart(
        name or f"reliability-{slug(system)}",
        f"Reliability of {shorten_label(system)}",
        _describe(system, bins, ece, calibrated_ece),
        layers,
        subtitle=f"Expected calibration error {format_value(ece)}; by chance {format_value(calibrated_ece)}.",
        width=SIZE,
        height=SIZE,
    )


def _row(point: CalibrationPoint) -> Row:
    has_interval = point.low is not None and point.high is not None
    interval = f" [{format_value(point.low or 0.0, 2)}, {format_value(point.high or 0.0, 2)}]" if has_interval else ""
    return {
        "x": point.confidence,
        "y": point.accuracy,
        "low": point.low,
        "high": point.high,
        "tooltip": (
            f"confidence {format_value(point.confidence, 2)}: accuracy {format_value(point.accuracy, 2)}{interval}; "
            f"{format_count(point.n)} units"
        ),
    }


def _gaps(rows: list[Row], where: Spec) -> Spec:
    """From each point to the diagonal: the calibration error of the bin."""
    return {
        "data": {"values": [{"x": row["x"], "y": row["y"], "to": row["x"]} for row in rows]},
        "mark": {"type": "rule", "stroke": LIGHT["heat3"], "strokeWidth": 5},
        "encoding": {**where, "y2": {"field": "to"}},
    }


def _unit_counts(bins: Sequence[CalibrationPoint]) -> list[Spec]:
    """The number of units per bin, below the diagram on the same axis."""
    most = max((point.n for point in bins), default=1)
    base = SIZE + GAP + COUNT_HEIGHT
    bars = [
        {
            "left": point.left * SIZE + 0.5,
            "right": point.right * SIZE - 0.5,
            "top": base - COUNT_HEIGHT * point.n / most,
            "base": base,
            "tooltip": f"{format_count(point.n)} units",
        }
        for point in bins
    ]
    return [
        rectangles(bars, {"x": {"field": "left", **PIXELS}, "x2": {"field": "right"}}, fill=LIGHT["heat4"]),
        column_header(f"units (at most {format_count(most)} in a bin)", 0, y=SIZE + GAP - 8),
        column_header("confidence", SIZE / 2, align="center", y=base + 14),
    ]


def _describe(system: str, bins: Sequence[CalibrationPoint], ece: float, calibrated_ece: float) -> str:
    overconfident = sum(point.n for point in bins if point.confidence > point.accuracy)
    total = sum(point.n for point in bins)
    return (
        f"The expected calibration error of {system} is {format_value(ece)}; a calibrated model would have "
        f"{format_value(calibrated_ece)} on these {format_count(total)} units. {format_count(overconfident)} of them "
        "are in overconfident bins."
    )
