"""Figures against the dimensions of an embedding, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log10

from equipoise.report.charts.chart import Chart, chart, slug
from equipoise.report.charts.frontier import powers, spaced
from equipoise.report.charts.layers import SAID, Row, axis, axis_of
from equipoise.report.charts.naming import short_names
from equipoise.report.charts.theme import LIGHT, Spec, identity
from equipoise.report.page.figures import scale_of
from equipoise.report.page.model import Scale
from equipoise.stats.numbers import figure, percent

WIDTH, HEIGHT = 520, 320
APART = 1.015
"""Each line stands by this factor to the right of the one before, so that whiskers do not hide each other."""
LOGARITHMIC = 20
"""Ranks that differ by this factor are drawn on a logarithmic axis."""
_OWN: Spec = {"type": "nominal", "scale": None}


@dataclass(frozen=True)
class Reach:
    """A figure at one dimension, with the ends of its interval (None where it is unknown)."""

    dim: int
    value: float
    low: float | None = None
    high: float | None = None


def dimensions_chart(
    metric: str,
    curves: Mapping[str, Sequence[Reach]],
    *,
    better: str,
    chance: float | None = None,
    level: float = 0.95,
) -> Chart:
    """A line an embedder: the metric at every dimension with its interval; the dashes are luck."""
    curves = {name: [each for each in curve if isfinite(each.value)] for name, curve in curves.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    dims = sorted({each.dim for curve in curves.values() for each in curve})
    ends = [end for curve in curves.values() for each in curve for end in (each.value, each.low, each.high)]
    up = _upright([end for end in ends if end is not None], chance, metric)
    x = axis(
        dims[0] / APART,
        max(dims[-1] * APART ** len(curves), dims[0] + 1),
        [(dim, str(dim)) for dim in dims],
        "dimensions (logarithmic)",
        type="log",
    )
    del x["scale"]["zero"]  # a logarithmic axis has none
    y = axis_of(
        up.scale,
        f"{metric} ({'higher' if better == 'up' else 'lower'} is better{', logarithmic' if up.log else ''})",
    )
    if up.log:
        y["scale"] = {"domain": y["scale"]["domain"], "nice": False, "type": "log"}
    for each in (x, y):
        each["axis"]["grid"] = True
    layers: list[Spec] = [] if chance is None else [_luck(chance, y)]
    for place, (system, curve) in enumerate(curves.items()):
        layers += _curve(metric, system, curve, place, x, y)
    layers += _names(curves, up)
    return chart(
        f"dimensions-{slug(metric)}",
        f"{metric} by dimension",
        _dimensions_sentence(metric, curves, chance),
        layers,
        subtitle=f"Whiskers: {percent(level)} intervals." + ("" if chance is None else " Dashed: by chance."),
        width=WIDTH,
        height=HEIGHT,
    )


@dataclass(frozen=True)
class _Upright:
    """The axis that goes up, and whether it is logarithmic."""

    scale: Scale
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
        return _Upright(powers(min(values), max(values)), log=True)
    if min(values) >= 0 and max(values) <= 1:
        return _Upright(scale_of([], [0.0, 1.0]), log=False)
    return _Upright(scale_of([], values), log=False)


def _luck(chance: float, y: Spec) -> Spec:
    return {
        "data": {"values": [{"value": chance}]},
        "mark": {"type": "rule", "stroke": LIGHT["chance"], "strokeDash": [4, 3], "strokeWidth": 1.4},
        "encoding": {"y": {**y, "field": "value"}},
    }


def _curve(metric: str, system: str, curve: Sequence[Reach], place: int, x: Spec, y: Spec) -> list[Spec]:
    """The line, the whiskers, and a mark at each dimension."""
    colour, shape = identity(place)
    rows: list[Row] = [
        {
            "dim": each.dim * APART**place,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "says": f"{system}, {each.dim} dimensions: {metric} {figure(each.value)}{_span(each)}",
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
            "encoding": {**at, **SAID},
        },
    ]


def _span(each: Reach) -> str:
    return "" if each.low is None or each.high is None else f" [{figure(each.low)}, {figure(each.high)}]"


def _names(curves: Mapping[str, Sequence[Reach]], up: _Upright) -> list[Spec]:
    """The names at the right end, in the order of the lines there and moved apart."""
    systems = list(curves)
    called = dict(zip(systems, short_names(systems, 28), strict=True))
    ends = sorted((up.share(curve[-1].value) * HEIGHT, name) for name, curve in curves.items())
    rows = []
    for at, (_, name) in zip(spaced([at for at, _ in ends]), ends, strict=True):
        colour, shape = identity(systems.index(name))
        rows.append({"at": at, "text": called[name], "fill": colour, "shape": shape})
    y: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
            "encoding": {
                "x": {"value": WIDTH + 14},
                "y": y,
                "shape": {"field": "shape", **_OWN},
                "fill": {"field": "fill", **_OWN},
            },
        },
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left"},
            "encoding": {"x": {"value": WIDTH + 24}, "y": y, "text": {"field": "text"}},
        },
    ]


def _dimensions_sentence(metric: str, curves: Mapping[str, Sequence[Reach]], chance: float | None) -> str:
    parts = [
        f"{system} from {figure(curve[0].value)} in {curve[0].dim} dimensions to {figure(curve[-1].value)} "
        f"in {curve[-1].dim}"
        for system, curve in curves.items()
    ]
    luck = "" if chance is None else f"; chance is {figure(chance)}"
    return f"{metric}: {', '.join(parts)}{luck}."
