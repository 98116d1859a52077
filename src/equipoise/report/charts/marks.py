"""Layers that charts share: rows of names and texts beside a plot, whiskers, axes with our own labels.

A row is drawn at its place (``row``), never at its name, so that equal or shortened names stay apart.
Names are texts of the data: no name ever becomes part of an expression.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec

if TYPE_CHECKING:
    from equipoise.report.view_model import AxisScale, Value

Row = dict[str, Any]

ROW_HEIGHT = 28
CROWDED_HEIGHT = 21
CROWDED = 16
LETTER_WIDTH = 6.6
"""About how wide a letter is at the small size: enough to keep columns of texts apart."""

ROW_POSITION: Spec = {"field": "row", "type": "ordinal", "axis": None}
TOOLTIP: Spec = {"description": {"field": "says"}, "tooltip": {"field": "says"}}
"""What a mark says when it is pointed at, and to those who hear the page."""
HAS_VALUE: Spec = {"filter": "isValid(datum.value)"}
HAS_INTERVAL: Spec = {"filter": "isValid(datum.low) && isValid(datum.high)"}


def row_step(count: int) -> Spec:
    """How high rows are: closer together when there are many."""
    return {"step": CROWDED_HEIGHT if count > CROWDED else ROW_HEIGHT}


def text_width(texts: Iterable[str]) -> float:
    """About how wide the longest of these texts is in pixels."""
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0) * LETTER_WIDTH


def value_label(figure: Value) -> str:
    """A value and its interval as they stand beside the plot, or why there is none."""
    return f"{figure.text} {figure.span}" if figure.value is not None else figure.span or figure.text


def text_column(field: str, x: float, *, align: str = "left", **mark: Any) -> Spec:
    """A column of texts, one a row, at a distance from the left edge of the plot."""
    return {
        "mark": {"type": "text", "align": align, "fontSize": SMALL_SIZE, **mark},
        "encoding": {"y": ROW_POSITION, "x": {"value": x}, "text": {"field": field}},
    }


def row_labels() -> Spec:
    """The names of the rows, ending where the plot begins."""
    return text_column("name", -12, align="right", fontSize=TEXT_SIZE)


def column_header(text: str, x: float, *, align: str = "left", y: float = -11) -> Spec:
    """A small head above a column."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "text", "align": align, "fill": LIGHT["soft"], "fontSize": SMALL_SIZE},
        "encoding": {"x": {"value": x}, "y": {"value": y}, "text": {"value": text}},
    }


def legend(entries: Sequence[tuple[str, str, str, str]], *, y: float = -36) -> list[Spec]:
    """What the marks mean, in one line above the plot: shape, fill, stroke and text of each."""
    own = {"type": "nominal", "scale": None}
    marks, left = [], 5.0
    for shape, fill, stroke, text in entries:
        marks.append({"shape": shape, "fill": fill, "stroke": stroke, "text": text, "at": left})
        left += 30 + text_width([text])
    x: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    return [
        {
            "data": {"values": marks},
            "mark": {"type": "point", "size": 70, "strokeWidth": 1.8, "opacity": 1, "aria": False},
            "encoding": {
                "x": x,
                "y": {"value": y},
                "shape": {"field": "shape", **own},
                "fill": {"field": "fill", **own},
                "stroke": {"field": "stroke", **own},
            },
        },
        {
            "data": {"values": marks},
            "mark": {"type": "text", "align": "left", "dx": 10, "fill": LIGHT["soft"]},
            "encoding": {"x": x, "y": {"value": y}, "text": {"field": "text"}},
        },
    ]


def row_lines(width: float) -> Spec:
    """A faint line through every row, so that the eye finds the figures at its end."""
    return {
        "mark": {"type": "rule", "stroke": LIGHT["grid"], "strokeWidth": 1},
        "encoding": {"y": ROW_POSITION, "x": {"value": 0}, "x2": {"value": width}},
    }


def interval_bars(x: Spec) -> list[Spec]:
    """The interval of every row that has one: a line with a cap at each end."""
    stroke: Spec = {"field": "stroke", "type": "nominal", "scale": None}
    caps: list[Spec] = [
        {
            "transform": [HAS_INTERVAL],
            "mark": {"type": "tick", "orient": "vertical", "size": 8, "thickness": 1.5, "opacity": 1},
            "encoding": {"y": ROW_POSITION, "x": {**x, "field": end}, "color": stroke},
        }
        for end in ("low", "high")
    ]
    line: Spec = {
        "transform": [HAS_INTERVAL],
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {"y": ROW_POSITION, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": stroke},
    }
    return [line, *caps]


def points(x: Spec, *, size: float = 90) -> Spec:
    """The value of every row that has one; shape, fill and stroke are in the row."""
    own = {"type": "nominal", "scale": None}
    return {
        "transform": [HAS_VALUE],
        "mark": {"type": "point", "size": size, "strokeWidth": 1.8, "opacity": 1},
        "encoding": {
            "y": ROW_POSITION,
            "x": {**x, "field": "value"},
            "shape": {"field": "shape", **own},
            "fill": {"field": "fill", **own},
            "stroke": {"field": "stroke", **own},
            **TOOLTIP,
        },
    }


def reference_line(value: float, x: Spec, *, colour: str = "line", **mark: Any) -> Spec:
    """A line through all rows at one value."""
    return {
        "data": {"values": [{"value": value}]},
        "mark": {"type": "rule", "stroke": LIGHT[colour], **mark},
        "encoding": {"x": {**x, "field": "value"}},
    }


def scale_axis(scale: AxisScale, title: str) -> Spec:
    """A quantitative axis from one end of a scale to the other, with the labels that the scale has."""
    return linear_axis(scale.low, scale.high, scale.ticks, title)


def linear_axis(low: float, high: float, ticks: Sequence[tuple[float, str]], title: str, **more: Any) -> Spec:
    """The same from plain numbers."""
    return {
        "type": "quantitative",
        "scale": {"domain": [low, high], "nice": False, "zero": False, **more},
        "axis": {
            "values": [value for value, _ in ticks],
            "labelExpr": _lookup(dict(ticks)),
            "title": title,
            "grid": False,
            "labelFlush": False,
        },
    }


def metric_axis_title(metric: str, better: str) -> str:
    """The title of an axis: the metric, and which way is better."""
    return f"{metric} (higher is better →)" if better == "up" else f"{metric} (← lower is better)"


def _lookup(labels: Mapping[float, str]) -> str:
    """An expression that gives each tick its label; both stand in it as literals."""
    places = json.dumps(list(labels))
    return f"{json.dumps(list(labels.values()))}[indexof({places}, datum.value)]"
