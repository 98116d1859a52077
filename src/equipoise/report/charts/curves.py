"""Classes and ranks: accuracy over every k, where the right class stands, and who is taken for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log10
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, shorten_label, shorten_labels, slug
from equipoise.report.charts.heatmap import HeatmapCell, cell_size, heatmap, shade_legend
from equipoise.report.charts.marks import TOOLTIP, Row, column_header, linear_axis, scale_axis
from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec, series_style
from equipoise.report.charts.tuning import log_scale, spread_labels
from equipoise.report.tables import axis_scale
from equipoise.stats.formatting import format_count, format_percent, format_value

if TYPE_CHECKING:
    from equipoise.report.view_model import AxisScale

WIDTH, HEIGHT = 520, 320
CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARES = tuple((tenth / 10, format_value(tenth / 10, 1)) for tenth in range(0, 11, 2))
BAND = 58
BAR_ROOM = 0.66
"""The share of a band that the tallest bar takes; a figure stands above it."""
LEAST_FIGURE = 0.0005
CHANCE = "chance"
_OWN: Spec = {"type": "nominal", "scale": None}
_PLAIN: Spec = {"type": "quantitative", "scale": None, "axis": None}


def accuracy_at_k_chart(
    curves: Mapping[str, Sequence[float]],
    chance: Sequence[float] | None = None,
    name: str = "accuracy-over-k",
    *,
    what: str = "Accuracy",
    symbol: str = "Acc",
) -> Chart:
    """A line a system: Acc@1, Acc@2, ... as given; the k axis is logarithmic, the dashes are luck.

    ``what`` and ``symbol`` are how the field calls the share of units whose answer is within the first k.
    """
    deepest = max(len(curve) for curve in curves.values())
    cutoffs = [k for k in CUTOFFS if k <= deepest]
    x = linear_axis(1, max(deepest, 2), [(k, str(k)) for k in cutoffs], "k (logarithmic)", type="log")
    del x["scale"]["zero"]  # a logarithmic axis has none
    y = linear_axis(0.0, 1.0, SHARES, f"{what.casefold()} within the first k (higher is better ↑)")
    for each in (x, y):
        each["axis"]["grid"] = True
    layers: list[Spec] = [] if chance is None else [_luck(chance[:deepest], x, y)]
    for place, (system, curve) in enumerate(curves.items()):
        layers += _curve(system, curve, place, cutoffs, x, y, symbol)
    layers += series_labels(list(curves), [curve[-1] for curve in curves.values()], WIDTH, HEIGHT)
    return chart(
        name,
        f"{what} over k",
        _curves_sentence(curves, chance, what),
        layers,
        subtitle="" if chance is None else "Dashed: what a scorer that knows nothing would reach.",
        width=WIDTH,
        height=HEIGHT,
    )


def _line(rows: list[Row], x: Spec, y: Spec, **mark: object) -> Spec:
    return {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "aria": False, **mark},
        "encoding": {"x": {**x, "field": "k"}, "y": {**y, "field": "value"}},
    }


def _luck(chance: Sequence[float], x: Spec, y: Spec) -> Spec:
    rows = [{"k": k, "value": value} for k, value in enumerate(chance, start=1)]
    return _line(rows, x, y, stroke=LIGHT[CHANCE], strokeDash=[4, 3], strokeWidth=1.4)


def _curve(
    system: str,
    curve: Sequence[float],
    place: int,
    cutoffs: Sequence[int],
    x: Spec,
    y: Spec,
    symbol: str,
) -> list[Spec]:
    """The line, and a mark at each cutoff that people quote."""
    colour, shape = series_style(place)
    rows = [{"k": k, "value": value} for k, value in enumerate(curve, start=1)]
    marks = [
        {**rows[k - 1], "says": f"{system}: {symbol}@{k} {format_value(curve[k - 1])}"}
        for k in cutoffs
        if k <= len(curve)
    ]
    dots: Spec = {
        "data": {"values": marks},
        "mark": {"type": "point", "shape": shape, "fill": colour, "stroke": colour, "size": 44, "opacity": 1},
        "encoding": {"x": {**x, "field": "k"}, "y": {**y, "field": "value"}, **TOOLTIP},
    }
    return [_line(rows, x, y, stroke=colour), dots]


def series_labels(systems: Sequence[str], values: Sequence[float], width: float, height: float) -> list[Spec]:
    """The names at the right of shares, in the order of these and moved apart."""
    called = shorten_labels(systems, 28)
    ends = sorted(((1.0 - value) * height, place) for place, value in enumerate(values))
    rows = [
        {"at": at, "text": called[place], **dict(zip(("fill", "shape"), series_style(place), strict=True))}
        for at, (_, place) in zip(spread_labels([at for at, _ in ends]), ends, strict=True)
    ]
    y: Spec = {"field": "at", **_PLAIN}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
            "encoding": {
                "x": {"value": width + 14},
                "y": y,
                "shape": {"field": "shape", **_OWN},
                "fill": {"field": "fill", **_OWN},
            },
        },
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left"},
            "encoding": {"x": {"value": width + 24}, "y": y, "text": {"field": "text"}},
        },
    ]


def _curves_sentence(curves: Mapping[str, Sequence[float]], chance: Sequence[float] | None, what: str) -> str:
    parts = [
        f"{system} from {format_value(curve[0])} at k = 1 to {format_value(curve[-1])} at k = {len(curve)}"
        for system, curve in curves.items()
    ]
    luck = "" if chance is None else f"; chance begins at {format_value(chance[0], 4)}"
    return f"{what} grows with k: {', '.join(parts)}{luck}."


def rank_histogram_chart(
    classes: Sequence[str], shares: Mapping[str, Sequence[float]], name: str = "rank-distribution"
) -> Chart:
    """A row of bars a system: the share of units whose right class stands in each class of ranks."""
    tallest = max((max(row) for row in shares.values()), default=0.0) or 1.0
    bars = [
        bar for place, (system, row) in enumerate(shares.items()) for bar in _bars(system, place, classes, row, tallest)
    ]
    x: Spec = {
        "field": "bin",
        "type": "ordinal",
        "scale": {"domain": list(range(len(classes))), "paddingInner": 0.12, "paddingOuter": 0.06},
        "axis": None,
    }
    named = [
        {"name": called, "at": (place + 0.7) * BAND} for place, called in enumerate(shorten_labels(list(shares), 28))
    ]
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "y": {"field": "top", **_PLAIN},
                "y2": {"field": "base"},
                "fill": {"field": "fill", **_OWN},
                **TOOLTIP,
            },
        },
        _words(bars, x, {"field": "top", **_PLAIN}, "text", dy=-8, fill=LIGHT["soft"]),
        {
            "data": {"values": named},
            "mark": {"type": "text", "align": "right", "fontSize": TEXT_SIZE},
            "encoding": {"x": {"value": -12}, "y": {"field": "at", **_PLAIN}, "text": {"field": "name"}},
        },
        _words(
            [{"bin": place, "text": text} for place, text in enumerate(classes)],
            x,
            {"value": len(shares) * BAND + 14},
            "text",
            fontSize=SMALL_SIZE,
        ),
        column_header("rank of the right class", 0, y=len(shares) * BAND + 34),
    ]
    return chart(
        name,
        "Where the right class stands",
        _ranks_sentence(classes, shares),
        layers,
        subtitle="The share of units in each class of ranks; equal scores share their ranks.",
        width=WIDTH,
        height=len(shares) * BAND,
    )


def _bars(system: str, place: int, classes: Sequence[str], row: Sequence[float], tallest: float) -> list[Row]:
    base = (place + 1) * BAND - 4
    return [
        {
            "bin": at,
            "base": base,
            "top": base - BAND * BAR_ROOM * share / tallest,
            "text": format_value(share, 2 if share >= 0.005 or share < LEAST_FIGURE else 3),
            "fill": LIGHT["lead" if at == 0 else "heat4"],
            "says": f"{system}: {format_value(share)} of the units have rank {classes[at]}",
        }
        for at, share in enumerate(row)
    ]


def _words(rows: list[Row], x: Spec, y: Spec, field: str, **mark: object) -> Spec:
    return {
        "data": {"values": rows},
        "mark": {"type": "text", "fontSize": SMALL_SIZE, **mark},
        "encoding": {"x": x, "y": y, "text": {"field": field}},
    }


def _ranks_sentence(classes: Sequence[str], shares: Mapping[str, Sequence[float]]) -> str:
    parts = [
        f"{system} has {format_value(row[0])} of the units at rank {classes[0]} and {format_value(row[-1])} at "
        f"{classes[-1]}"
        for system, row in shares.items()
    ]
    return f"{'; '.join(parts)}."


def confusion_chart(system: str, classes: Sequence[str], counts: Sequence[Sequence[int]], name: str = "") -> Chart:
    """A row a true class, a column a predicted one, the last for all others; shades are shares of a row."""
    cells = [
        _cell(row, column, units, sum(line), classes)
        for row, line in enumerate(counts)
        for column, units in enumerate(line)
    ]
    size = cell_size(cells)
    rows = [
        f"{called} (n {format_count(sum(line))})"
        for called, line in zip(shorten_labels(list(classes), 20), counts, strict=True)
    ]
    columns = [*shorten_labels(list(classes), 20), "others"]
    layers = heatmap(cells, rows, columns, size)
    layers += [column_header("true ↓  predicted →", -10, align="right", y=-10)]
    layers += shade_legend("none of the row", "all of it", y=len(rows) * size.height + 20)
    return chart(
        name or f"confusion-{slug(system)}",
        f"What {shorten_label(system)} takes the most frequent classes for",
        _confusion_sentence(system, classes, counts),
        layers,
        subtitle="Shares of the units of each true class; framed: predicted right.",
        **size.of(rows, columns),
    )


def _cell(row: int, column: int, units: int, total: int, classes: Sequence[str]) -> HeatmapCell:
    share = units / total if total else 0.0
    taken = classes[column] if column < len(classes) else "another class"
    return HeatmapCell(
        row,
        column,
        format_value(share, 2) if units else "",
        f"{format_count(units)} of {format_count(total)} units of {classes[row]} are predicted as {taken}",
        share,
        strong=row == column,
    )


def _confusion_sentence(system: str, classes: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    right = sum(line[row] for row, line in enumerate(counts))
    total = sum(map(sum, counts))
    wrong = [
        (units, classes[row], classes[column])
        for row, line in enumerate(counts)
        for column, units in enumerate(line[:-1])
        if row != column and units
    ]
    most = max(wrong, default=None)
    told = f"; {most[1]} is most often taken for {most[2]} ({format_count(most[0])} units)" if most else ""
    return (
        f"{system} predicts {format_count(right)} of {format_count(total)} units of the {len(classes)} most frequent "
        f"classes right{told}."
    )


# Figures against the dimensions of an embedding, with their intervals.

DIMENSIONS_WIDTH, DIMENSIONS_HEIGHT = 520, 320
APART = 1.015
"""Each line stands by this factor to the right of the one before, so that whiskers do not hide each other."""
LOGARITHMIC = 20
"""Ranks that differ by this factor are drawn on a logarithmic axis."""
_DIMENSIONS_OWN: Spec = {"type": "nominal", "scale": None}


@dataclass(frozen=True)
class CurvePoint:
    """A figure at one dimension, with the ends of its interval (None where it is unknown)."""

    dim: int
    value: float
    low: float | None = None
    high: float | None = None


def metric_by_dimension_chart(
    metric: str,
    curves: Mapping[str, Sequence[CurvePoint]],
    *,
    better: str,
    chance: float | None = None,
    confidence_level: float = 0.95,
) -> Chart:
    """A line an embedder: the metric at every dimension with its interval; the dashes are luck."""
    curves = {name: [each for each in curve if isfinite(each.value)] for name, curve in curves.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    dims = sorted({each.dim for curve in curves.values() for each in curve})
    ends = [end for curve in curves.values() for each in curve for end in (each.value, each.low, each.high)]
    up = _upright([end for end in ends if end is not None], chance, metric)
    x = linear_axis(
        dims[0] / APART,
        max(dims[-1] * APART ** len(curves), dims[0] + 1),
        [(dim, str(dim)) for dim in dims],
        "dimensions (logarithmic)",
        type="log",
    )
    del x["scale"]["zero"]  # a logarithmic axis has none
    y = scale_axis(
        up.scale,
        f"{metric} ({'higher' if better == 'up' else 'lower'} is better{', logarithmic' if up.log else ''})",
    )
    if up.log:
        y["scale"] = {"domain": y["scale"]["domain"], "nice": False, "type": "log"}
    for each in (x, y):
        each["axis"]["grid"] = True
    layers: list[Spec] = [] if chance is None else [_dimensions_luck(chance, y)]
    for place, (system, curve) in enumerate(curves.items()):
        layers += _dimensions_curve(metric, system, curve, place, x, y)
    layers += _names(curves, up)
    return chart(
        f"dimensions-{slug(metric)}",
        f"{metric} by dimension",
        _dimensions_sentence(metric, curves, chance),
        layers,
        subtitle=f"Whiskers: {format_percent(confidence_level)} intervals."
        + ("" if chance is None else " Dashed: by chance."),
        width=DIMENSIONS_WIDTH,
        height=DIMENSIONS_HEIGHT,
    )


@dataclass(frozen=True)
class _Upright:
    """The axis that goes up, and whether it is logarithmic."""

    scale: AxisScale
    log: bool

    def share(self, value: float) -> float:
        """How far down from the top a value stands, from 0 to 1."""
        low, high = self.scale.low, self.scale.high
        if self.log:
            return (log10(high) - log10(value)) / (log10(high) - log10(low))
        return (high - value) / (high - low)


def _upright(ends: list[float], chance: float | None, metric: str) -> _Upright:
    values = ends + ([] if chance is None else [chance])
    if metric.startswith("MR") and min(values) > 0 and max(values) / min(values) >= LOGARITHMIC:
        return _Upright(log_scale(min(values), max(values)), log=True)
    if min(values) >= 0 and max(values) <= 1:
        return _Upright(axis_scale([], [0.0, 1.0]), log=False)
    return _Upright(axis_scale([], values), log=False)


def _dimensions_luck(chance: float, y: Spec) -> Spec:
    return {
        "data": {"values": [{"value": chance}]},
        "mark": {"type": "rule", "stroke": LIGHT["chance"], "strokeDash": [4, 3], "strokeWidth": 1.4},
        "encoding": {"y": {**y, "field": "value"}},
    }


def _dimensions_curve(
    metric: str, system: str, curve: Sequence[CurvePoint], place: int, x: Spec, y: Spec
) -> list[Spec]:
    """The line, the whiskers, and a mark at each dimension."""
    colour, shape = series_style(place)
    rows: list[Row] = [
        {
            "dim": each.dim * APART**place,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "says": f"{system}, {each.dim} dimensions: {metric} {format_value(each.value)}{_span(each)}",
        }
        for each in curve
    ]
    at: Spec = {"x": {**x, "field": "dim"}, "y": {**y, "field": "value"}}
    bounded = [row for row in rows if row["low"] is not None and row["high"] is not None]
    return [
        {
            "data": {"values": bounded},
            "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1.3, "opacity": 0.7},
            "encoding": {"x": at["x"], "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "line", "stroke": colour, "strokeWidth": 2, "aria": False},
            "encoding": at,
        },
        {
            "data": {"values": rows},
            "mark": {
                "type": "point",
                "shape": shape,
                "fill": colour,
                "stroke": colour,
                "size": 44,
                "opacity": 1,
            },
            "encoding": {**at, **TOOLTIP},
        },
    ]


def _span(each: CurvePoint) -> str:
    return "" if each.low is None or each.high is None else f" [{format_value(each.low)}, {format_value(each.high)}]"


def _names(curves: Mapping[str, Sequence[CurvePoint]], up: _Upright) -> list[Spec]:
    """The names at the right end, in the order of the lines there and moved apart."""
    systems = list(curves)
    called = dict(zip(systems, shorten_labels(systems, 28), strict=True))
    ends = sorted((up.share(curve[-1].value) * DIMENSIONS_HEIGHT, name) for name, curve in curves.items())
    rows = []
    for at, (_, name) in zip(spread_labels([at for at, _ in ends]), ends, strict=True):
        colour, shape = series_style(systems.index(name))
        rows.append({"at": at, "text": called[name], "fill": colour, "shape": shape})
    y: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
            "encoding": {
                "x": {"value": DIMENSIONS_WIDTH + 14},
                "y": y,
                "shape": {"field": "shape", **_DIMENSIONS_OWN},
                "fill": {"field": "fill", **_DIMENSIONS_OWN},
            },
        },
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left"},
            "encoding": {"x": {"value": DIMENSIONS_WIDTH + 24}, "y": y, "text": {"field": "text"}},
        },
    ]


def _dimensions_sentence(metric: str, curves: Mapping[str, Sequence[CurvePoint]], chance: float | None) -> str:
    parts = [
        f"{system} from {format_value(curve[0].value)} in {curve[0].dim} dimensions to {format_value(curve[-1].value)} "
        f"in {curve[-1].dim}"
        for system, curve in curves.items()
    ]
    luck = "" if chance is None else f"; chance is {format_value(chance)}"
    return f"{metric}: {', '.join(parts)}{luck}."
