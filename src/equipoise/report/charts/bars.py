"""Term retrieval: bars by metric and system with intervals, and precision against recall as more is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.curves import SHARES, series_labels
from equipoise.report.charts.marks import TOOLTIP, Row, linear_axis
from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec, series_style
from equipoise.stats.formatting import format_interval, format_value

if TYPE_CHECKING:
    from equipoise.stats.result import Estimate

WIDTH, HEIGHT = 460, 320
STEP, BAR, HEAD = 22, 13, 30
QUOTED = (1, 3, 5, 10)
"""The numbers of terms read that get a mark on a curve."""
_OWN: Spec = {"type": "nominal", "scale": None}
_AT: Spec = {"type": "quantitative", "scale": None, "axis": None}


def metric_bars(
    estimates: Mapping[str, Sequence[Estimate]], *, name: str = "metrics", title: str = "Metrics by system"
) -> Chart:
    """A group a metric, in it a bar a system with its interval; a thin mark is the chance level."""
    systems = list(estimates)
    called = shorten_labels(systems, 34)
    metrics = [each.metric for each in estimates[systems[0]]]
    bars: list[Row] = []
    heads: list[Row] = []
    at = 0.0
    for place, metric in enumerate(metrics):
        heads.append({"at": at + HEAD / 2, "text": metric})
        at += HEAD
        for number, system in enumerate(systems):
            bars.append(_bar(system, called[number], number, estimates[system][place], at + STEP / 2))
            at += STEP
    x = linear_axis(0.0, 1.0, SHARES, "estimate with its interval (higher is better →)")
    x["axis"]["grid"] = True
    return chart(
        name,
        title,
        _bars_sentence(estimates),
        [*_bar_layers(bars, x), *_name_layers(bars, heads)],
        subtitle="Thin marks: what a scorer that knows nothing would reach.",
        width=WIDTH,
        height=at,
    )


def _bar(system: str, called: str, place: int, estimate: Estimate, at: float) -> Row:
    reach = estimate.interval
    return {
        "at": at,
        "top": at - BAR / 2,
        "base": at + BAR / 2,
        "zero": 0.0,
        "name": called,
        "value": _drawn(estimate.value),
        "low": reach.low if reach.known else None,
        "high": reach.high if reach.known else None,
        "chance": _drawn(estimate.chance),
        "fill": series_style(place)[0],
        "figure": f"{format_value(estimate.value, 3)} {format_interval(reach, 3)}",
        "says": f"{system}: {estimate.metric} {format_value(estimate.value, 3)}, interval {format_interval(reach, 3)}, "
        f"chance {format_value(estimate.chance, 4)}, n {estimate.n}",
    }


def _bar_layers(bars: list[Row], x: Spec) -> list[Spec]:
    data: Spec = {"values": bars}
    middle: Spec = {"field": "at", **_AT}
    known: Spec = {"filter": "isValid(datum.low) && isValid(datum.high)"}
    return [
        {
            "data": data,
            "mark": {"type": "rect", "opacity": 0.72},
            "encoding": {
                "x": {**x, "field": "zero"},
                "x2": {"field": "value"},
                "y": {"field": "top", **_AT},
                "y2": {"field": "base"},
                "fill": {"field": "fill", **_OWN},
                **TOOLTIP,
            },
        },
        {
            "data": data,
            "transform": [known],
            "mark": {"type": "rule", "stroke": LIGHT["ink"], "strokeWidth": 1.6},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": middle},
        },
        {
            "data": data,
            "transform": [{"filter": "isValid(datum.chance)"}],
            "mark": {"type": "rule", "stroke": LIGHT["chance"], "strokeWidth": 2},
            "encoding": {
                "x": {**x, "field": "chance"},
                "y": {"field": "top", **_AT},
                "y2": {"field": "base"},
            },
        },
    ]


def _drawn(value: float) -> float | None:
    """Nothing where there is no number."""
    return None if value != value else value


def _name_layers(bars: list[Row], heads: list[Row]) -> list[Spec]:
    y: Spec = {"field": "at", **_AT}

    def words(rows: list[Row], field: str, place: float, **mark: object) -> Spec:
        return {
            "data": {"values": rows},
            "mark": {"type": "text", "fontSize": SMALL_SIZE, **mark},
            "encoding": {"x": {"value": place}, "y": y, "text": {"field": field}},
        }

    return [
        words(bars, "name", -12, align="right"),
        words(bars, "figure", WIDTH + 10, align="left", fill=LIGHT["soft"]),
        words(heads, "text", -12, align="right", fontSize=TEXT_SIZE, fontWeight="bold"),
    ]


def _bars_sentence(estimates: Mapping[str, Sequence[Estimate]]) -> str:
    first = {system: row[0] for system, row in estimates.items()}
    best = max(first, key=lambda system: first[system].value)
    told = ", ".join(f"{system} {format_value(each.value, 3)}" for system, each in first.items())
    return f"{first[best].metric}: {told}; the highest is that of {best}."


def precision_recall_chart(
    curves: Mapping[str, Sequence[tuple[float, float]]], name: str = "precision-recall"
) -> Chart:
    """A line a system: mean (recall, precision) after reading 1, 2, ... terms."""
    x = linear_axis(0.0, 1.0, SHARES, "mean recall of the terms read")
    y = linear_axis(0.0, 1.0, SHARES, "mean precision of the terms read")
    for each in (x, y):
        each["axis"]["grid"] = True
    layers: list[Spec] = []
    for place, (system, curve) in enumerate(curves.items()):
        layers += _curve(system, curve, place, x, y)
    layers += series_labels(list(curves), [curve[0][1] for curve in curves.values()], WIDTH, HEIGHT)
    return chart(
        name,
        "Precision against recall",
        _curves_sentence(curves),
        layers,
        subtitle="From left to right more terms are read; marks stand at 1, 3, 5 and 10.",
        width=WIDTH,
        height=HEIGHT,
    )


def _curve(system: str, curve: Sequence[tuple[float, float]], place: int, x: Spec, y: Spec) -> list[Spec]:
    colour, shape = series_style(place)
    rows = [{"k": k, "x": recall, "y": precision} for k, (recall, precision) in enumerate(curve, start=1)]
    marks = [
        {
            **row,
            "says": f"{system}: recall {format_value(row['x'])}, precision {format_value(row['y'])} after {row['k']}",
        }
        for row in rows
        if row["k"] in QUOTED
    ]
    where: Spec = {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "stroke": colour, "strokeWidth": 2, "aria": False},
            "encoding": {**where, "order": {"field": "k", "type": "quantitative"}},
        },
        {
            "data": {"values": marks},
            "mark": {
                "type": "point",
                "shape": shape,
                "fill": colour,
                "stroke": colour,
                "size": 50,
                "opacity": 1,
            },
            "encoding": {**where, **TOOLTIP},
        },
    ]


def _curves_sentence(curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    parts = [
        f"{system} begins at recall {format_value(curve[0][0])} with precision {format_value(curve[0][1])} "
        f"and reaches recall {format_value(curve[-1][0])} after {len(curve)} terms"
        for system, curve in curves.items()
    ]
    return f"{'; '.join(parts)}."
