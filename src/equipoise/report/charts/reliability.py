"""The reliability diagram: how often a model is right when it says that it is so sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.report.charts.chart import Chart, chart, shorten_label, slug
from equipoise.report.charts.marks import TOOLTIP, Row, column_header, linear_axis
from equipoise.report.charts.theme import LIGHT, Spec
from equipoise.stats.formatting import format_count, format_value

SIZE = 340
STRIP = 54
"""How high the strip is that says how many units there are."""
GAP = 46
TICKS = tuple((tenth / 10, format_value(tenth / 10, 1)) for tenth in range(0, 11, 2))
_PLAIN: Spec = {"type": "quantitative", "scale": None, "axis": None}


@dataclass(frozen=True, slots=True)
class CalibrationPoint:
    """One bin: from where to where it reaches, how sure the model was in it, and how often it was right."""

    left: float
    right: float
    confidence: float
    accuracy: float
    low: float | None
    high: float | None
    n: int


def reliability_chart(
    system: str, dots: Sequence[CalibrationPoint], error: float, calibrated: float, name: str = ""
) -> Chart:
    """Dots on the diagonal are calibrated, those below it too sure; the strip below counts the units.

    ``error`` is the expected calibration error, ``calibrated`` what a calibrated model would show.
    """
    x = linear_axis(0.0, 1.0, TICKS, "")
    y = linear_axis(0.0, 1.0, TICKS, "share that is right")
    for each in (x, y):
        each["axis"]["grid"] = True
    rows = [_row(dot) for dot in dots]
    layers = [_diagonal(x, y), *_gaps(rows, x, y), *_whiskers(rows, x, y), _points(rows, x, y)]
    layers += [
        *_strip(dots),
        column_header("↑ not sure enough", 8, y=12),
        column_header("too sure ↓", SIZE - 8, align="right", y=SIZE - 12),
    ]
    return chart(
        name or f"reliability-{slug(system)}",
        f"How far {shorten_label(system)} can be taken at its word",
        _sentence(system, dots, error, calibrated),
        layers,
        subtitle=f"Expected calibration error {format_value(error)}; by luck alone {format_value(calibrated)}.",
        width=SIZE,
        height=SIZE,
    )


def _row(dot: CalibrationPoint) -> Row:
    reach = "" if dot.low is None or dot.high is None else f" [{format_value(dot.low, 2)}, {format_value(dot.high, 2)}]"
    return {
        "x": dot.confidence,
        "y": dot.accuracy,
        "low": dot.low,
        "high": dot.high,
        "says": (
            f"confidence {format_value(dot.confidence, 2)}: right {format_value(dot.accuracy, 2)}{reach}; "
            f"{format_count(dot.n)} units"
        ),
    }


def _where(x: Spec, y: Spec) -> Spec:
    return {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}}


def _diagonal(x: Spec, y: Spec) -> Spec:
    return {
        "data": {"values": [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]},
        "mark": {
            "type": "line",
            "stroke": LIGHT["soft"],
            "strokeDash": [4, 3],
            "strokeWidth": 1.3,
            "aria": False,
        },
        "encoding": _where(x, y),
    }


def _gaps(rows: list[Row], x: Spec, y: Spec) -> list[Spec]:
    """From each dot to the diagonal: the length is what the error adds up."""
    return [
        {
            "data": {"values": [{"x": row["x"], "y": row["y"], "to": row["x"]} for row in rows]},
            "mark": {"type": "rule", "stroke": LIGHT["heat3"], "strokeWidth": 5},
            "encoding": {**_where(x, y), "y2": {"field": "to"}},
        }
    ]


def _whiskers(rows: list[Row], x: Spec, y: Spec) -> list[Spec]:
    known = [row for row in rows if row["low"] is not None]
    return [
        {
            "data": {"values": known},
            "mark": {"type": "rule", "stroke": LIGHT["lead"], "strokeWidth": 1.4},
            "encoding": {
                "x": {**x, "field": "x"},
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
            },
        }
    ]


def _points(rows: list[Row], x: Spec, y: Spec) -> Spec:
    return {
        "data": {"values": rows},
        "mark": {
            "type": "point",
            "shape": "circle",
            "fill": LIGHT["lead"],
            "stroke": LIGHT["lead"],
            "size": 64,
            "opacity": 1,
        },
        "encoding": {**_where(x, y), **TOOLTIP},
    }


def _strip(dots: Sequence[CalibrationPoint]) -> list[Spec]:
    """How many units each bin holds, below the diagram on the same axis."""
    most = max((dot.n for dot in dots), default=1)
    base = SIZE + GAP + STRIP
    bars = [
        {
            "left": dot.left * SIZE + 0.5,
            "right": dot.right * SIZE - 0.5,
            "top": base - STRIP * dot.n / most,
            "base": base,
            "says": f"{format_count(dot.n)} units",
        }
        for dot in dots
    ]
    return [
        {
            "data": {"values": bars},
            "mark": {"type": "rect", "fill": LIGHT["heat4"]},
            "encoding": {
                "x": {"field": "left", **_PLAIN},
                "x2": {"field": "right"},
                "y": {"field": "top", **_PLAIN},
                "y2": {"field": "base"},
                **TOOLTIP,
            },
        },
        column_header(f"units (at most {format_count(most)} in a bin)", 0, y=SIZE + GAP - 8),
        column_header("how sure the model says it is", SIZE / 2, align="center", y=base + 14),
    ]


def _sentence(system: str, dots: Sequence[CalibrationPoint], error: float, calibrated: float) -> str:
    sure = sum(dot.n for dot in dots if dot.confidence > dot.accuracy)
    total = sum(dot.n for dot in dots)
    return (
        f"The expected calibration error of {system} is {format_value(error)}, and a calibrated model would show "
        f"{format_value(calibrated)} on these {format_count(total)} units; {format_count(sure)} of them "
        f"are in bins where it is "
        "too sure."
    )
