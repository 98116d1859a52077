"""Marks that charts share: Vega-Lite layers for rows of labels, intervals, points, lines, axes and legends.

A mark is a function that returns one or more layers. A row is positioned by its index (``row``), never by its
name, so that equal or shortened names stay separate. Names are data: no name becomes part of an expression.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from equipoise.report.charts.chart import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec, series_style, shorten_labels
from equipoise.report.view_model import AxisScale, Value
from equipoise.stats.formatting import format_value

Row = dict[str, Any]

ROW_HEIGHT = 28
DENSE_ROW_HEIGHT = 21
DENSE_ROWS = 16
"""With more rows than this, rows are closer together."""
LETTER_WIDTH = 6.6
"""Approximate width of a letter at the small size, in pixels."""
LINE_HEIGHT = 14
MAX_SERIES_LABEL = 28
PERCENT_TICKS = tuple((tenth / 10, f"{10 * tenth} %") for tenth in range(0, 11, 2))
FRACTION_TICKS = tuple((tenth / 10, format_value(tenth / 10, 1)) for tenth in range(0, 11, 2))
"""Ticks of an axis from 0 to 1."""

LITERAL: Spec = {"type": "nominal", "scale": None}
"""An encoding whose field holds the colour or shape itself."""
PIXELS: Spec = {"type": "quantitative", "scale": None, "axis": None}
"""An encoding whose field holds a position in pixels."""
ROW_POSITION: Spec = {"field": "row", "type": "ordinal", "axis": None}
TOOLTIP: Spec = {"description": {"field": "tooltip"}, "tooltip": {"field": "tooltip"}}
"""The text of a mark on hover and for screen readers."""
HAS_VALUE: Spec = {"filter": "isValid(datum.value)"}
HAS_INTERVAL: Spec = {"filter": "isValid(datum.low) && isValid(datum.high)"}
HAS_CHANCE: Spec = {"filter": "isValid(datum.chance)"}


def literals(*keys: str) -> Spec:
    """Encodings of colours and shapes that the rows hold."""
    return {key: {"field": key, **LITERAL} for key in keys}


def position(x: Spec, y: Spec, x_key: str = "x", y_key: str = "y") -> Spec:
    """The encoding of a position by two fields of a row."""
    return {"x": {**x, "field": x_key}, "y": {**y, "field": y_key}}


def layer(
    kind: str, encoding: Spec, rows: Sequence[Row] | None = None, *, only: Spec | None = None, **mark: Any
) -> Spec:
    """Marks of one kind for these rows, by default those of the chart; ``only`` is a filter of the rows."""
    spec: Spec = {"mark": {"type": kind, **mark}, "encoding": encoding}
    if rows is not None:
        spec["data"] = {"values": list(rows)}
    return spec if only is None else {**spec, "transform": [only]}


# Rows of labels and texts.


def row_step(n_rows: int) -> Spec:
    """The height of a row: smaller if there are many."""
    return {"step": DENSE_ROW_HEIGHT if n_rows > DENSE_ROWS else ROW_HEIGHT}


def text_width(texts: Iterable[str]) -> float:
    """Approximate width of the longest of these texts in pixels."""
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0) * LETTER_WIDTH


def value_label(value: Value) -> str:
    """A value and its interval as text, or the reason why there is none."""
    return f"{value.text} {value.interval_text}" if value.number is not None else value.interval_text or value.text


def text_column(key: str, x: float, *, align: str = "left", **mark: Any) -> Spec:
    """A column of texts, one per row, ``x`` pixels from the left edge of the plot."""
    where = {"y": ROW_POSITION, "x": {"value": x}, "text": {"field": key}}
    return layer("text", where, align=align, **{"fontSize": SMALL_SIZE, **mark})


def row_labels() -> Spec:
    """The names of the rows, right-aligned at the left edge of the plot."""
    return text_column("name", -12, align="right", fontSize=TEXT_SIZE)


def column_header(text: str, x: float, *, align: str = "left", y: float = -11) -> Spec:
    """A small title above a column."""
    where = {"x": {"value": x}, "y": {"value": y}, "text": {"value": text}}
    return layer("text", where, [{}], align=align, fill=LIGHT["soft"], fontSize=SMALL_SIZE)


def row_lines(width: float) -> Spec:
    """A faint line through every row, from its label to its texts."""
    where = {"y": ROW_POSITION, "x": {"value": 0}, "x2": {"value": width}}
    return layer("rule", where, stroke=LIGHT["grid"], strokeWidth=1)


def text_marks(rows: Sequence[Row], encoding: Spec, key: str = "text", **mark: Any) -> Spec:
    """The texts of the rows at their positions."""
    return layer("text", {**encoding, "text": {"field": key}}, rows, **mark)


# Legends and labels of series.


def legend(entries: Sequence[tuple[str, str, str, str]]) -> list[Spec]:
    """The meaning of the marks, in one line above the plot: shape, fill, stroke and text of each."""
    rows, left = [], 5.0
    for shape, fill, stroke, text in entries:
        rows.append({"shape": shape, "fill": fill, "stroke": stroke, "text": text, "at": left})
        left += 30 + text_width([text])
    where: Spec = {"x": {"field": "at", **PIXELS}, "y": {"value": -36}}
    style = {**where, **literals("shape", "fill", "stroke")}
    return [
        layer("point", style, rows, size=70, strokeWidth=1.8, opacity=1, aria=False),
        text_marks(rows, where, align="left", dx=10, fill=LIGHT["soft"]),
    ]


def label_list(rows: Sequence[Row], x: float, *, gap: float = 10) -> list[Spec]:
    """A filled symbol and a text per row, one below the other at ``at`` pixels from the top."""
    y: Spec = {"field": "at", **PIXELS}
    symbols = [row for row in rows if "shape" in row]
    style = {"x": {"value": x}, "y": y, **literals("shape", "fill")}
    return [
        layer("point", style, symbols, filled=True, size=70, opacity=1, aria=False),
        text_marks(rows, {"x": {"value": x + gap}, "y": y}, align="left"),
    ]


def series_labels(
    names: Sequence[str], positions: Sequence[float], x: float, *, style_index: Sequence[int] | None = None
) -> list[Spec]:
    """The names of the series at the right end of a plot, moved apart where lines end close together.

    ``positions`` are pixels from the top; ``style_index`` is the index of each series in ``series_style``.
    """
    labels = shorten_labels(names, MAX_SERIES_LABEL)
    styles = [series_style(index) for index in style_index or range(len(names))]
    order = sorted(range(len(names)), key=lambda index: (positions[index], index))
    spread = spread_labels([positions[index] for index in order])
    rows = [
        {"at": at, "text": labels[index], "fill": styles[index][0], "shape": styles[index][1]}
        for at, index in zip(spread, order, strict=True)
    ]
    return label_list(rows, x + 14)


def spread_labels(positions: Sequence[float]) -> list[float]:
    """Ascending positions moved apart to at least ``LINE_HEIGHT``; a moved group keeps its mean position."""
    groups: list[list[float]] = []
    for position in positions:
        groups.append([position])
        while len(groups) > 1 and _top(groups[-1]) < _top(groups[-2]) + LINE_HEIGHT * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_top(group) + LINE_HEIGHT * index for group in groups for index in range(len(group))]


def _top(group: Sequence[float]) -> float:
    return sum(group) / len(group) - LINE_HEIGHT * (len(group) - 1) / 2


# Intervals, points, lines and rectangles.


def interval_bars(x: Spec) -> list[Spec]:
    """The interval of every row that has one: a line with a cap at each end."""
    stroke: Spec = {"field": "stroke", **LITERAL}
    low, high = ({"y": ROW_POSITION, "x": {**x, "field": end}, "color": stroke} for end in ("low", "high"))
    cap: Spec = {"orient": "vertical", "size": 8, "thickness": 1.5, "opacity": 1}
    return [
        layer("rule", {**low, "x2": {"field": "high"}}, only=HAS_INTERVAL, strokeWidth=1.5),
        *(layer("tick", end, only=HAS_INTERVAL, **cap) for end in (low, high)),
    ]


def vertical_intervals(rows: Sequence[Row], x: Spec, y: Spec, x_key: str, **mark: Any) -> Spec:
    """The interval of every row that has one as a vertical line at its position."""
    known = [row for row in rows if row["low"] is not None and row["high"] is not None]
    return layer("rule", {**position(x, y, x_key, "low"), "y2": {"field": "high"}}, known, **mark)


def points(x: Spec) -> Spec:
    """The value of every row that has one; shape, fill and stroke are in the row."""
    where = {"y": ROW_POSITION, "x": {**x, "field": "value"}}
    style = {**literals("shape", "fill", "stroke"), **TOOLTIP}
    return layer("point", {**where, **style}, only=HAS_VALUE, size=90, strokeWidth=1.8, opacity=1)


def series_points(rows: Sequence[Row], encoding: Spec, color: str, shape: str, *, size: float = 50) -> Spec:
    """The points of one series, all of one colour and shape."""
    style: Spec = {"shape": shape, "fill": color, "stroke": color, "size": size, "opacity": 1}
    return layer("point", {**encoding, **TOOLTIP}, rows, **style)


def line(rows: Sequence[Row], encoding: Spec, color: str, *, width: float = 2, **mark: Any) -> Spec:
    """A line through the rows, hidden from screen readers."""
    return layer("line", encoding, rows, stroke=color, strokeWidth=width, aria=False, **mark)


def rectangles(rows: Sequence[Row], x: Spec, *, fill: str = "", **mark: Any) -> Spec:
    """Bars from ``base`` to ``top`` (both in pixels); ``fill`` is one colour, or in each row if empty."""
    where = {**x, "y": {"field": "top", **PIXELS}, "y2": {"field": "base"}, **TOOLTIP}
    if fill:
        return layer("rect", where, rows, fill=fill, **mark)
    return layer("rect", {**where, **literals("fill")}, rows, **mark)


def bin_axis(n_bins: int, *, gap: float) -> Spec:
    """An axis of ``n_bins`` bins of equal width, by the field ``bin``."""
    scale = {"domain": list(range(n_bins)), "paddingInner": gap, "paddingOuter": gap / 2}
    return {"field": "bin", "type": "ordinal", "scale": scale, "axis": None}


def reference_line(value: float, axis: Spec, *, orient: str = "x", color: str = "line", **mark: Any) -> Spec:
    """A line through the whole plot at one value of the x axis (vertical) or of the y axis (horizontal)."""
    return layer("rule", {orient: {**axis, "field": "value"}}, [{"value": value}], stroke=LIGHT[color], **mark)


# Axes.


def scale_axis(scale: AxisScale, title: str) -> Spec:
    """A quantitative axis over a scale, with the labels of the scale."""
    return linear_axis(scale.low, scale.high, scale.ticks, title)


def linear_axis(low: float, high: float, ticks: Sequence[tuple[float, str]], title: str) -> Spec:
    """A linear axis with labels at the given ticks."""
    return {
        "type": "quantitative",
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {
            "values": [value for value, _ in ticks],
            "labelExpr": _tick_labels(dict(ticks)),
            "title": title,
            "grid": False,
            "labelFlush": False,
        },
    }


def log_axis(low: float, high: float, ticks: Sequence[tuple[float, str]], title: str) -> Spec:
    """The same with a logarithmic scale, which has no zero."""
    axis = linear_axis(low, high, ticks, title)
    axis["scale"] = {"domain": [low, high], "nice": False, "type": "log"}
    return axis


def with_grid(axis: Spec) -> Spec:
    """The axis with grid lines at its ticks."""
    return {**axis, "axis": {**axis["axis"], "grid": True}}


def log_scale(low: float, high: float) -> AxisScale:
    """A logarithmic scale with ticks at 1, 2 and 5 times the powers of ten."""
    ticks = [
        (step * 10.0**power) for power in range(floor(log10(low)) - 1, ceil(log10(high)) + 1) for step in (1, 2, 5)
    ]
    first = max(tick for tick in ticks if tick <= low)
    last = min([tick for tick in ticks if tick >= high] or [ticks[-1]])
    shown = tuple((tick, format_value(tick, max(0, -floor(log10(tick))))) for tick in ticks if first <= tick <= last)
    return AxisScale(first, last, shown)


def metric_axis_title(metric: str, better: str) -> str:
    """The title of an axis: the metric and its better direction."""
    return f"{metric} (higher is better →)" if better == "up" else f"{metric} (← lower is better)"


def _tick_labels(labels: Mapping[float, str]) -> str:
    """An expression that maps each tick to its label; both are literals in it."""
    values = json.dumps(list(labels))
    return f"{json.dumps(list(labels.values()))}[indexof({values}, datum.value)]"
