"""Several scores of several systems as stars, with their intervals along the spokes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, isnan, pi, sin
from typing import TYPE_CHECKING

import numpy as np

from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.marks import TOOLTIP, Row, legend
from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec, series_style
from equipoise.stats.formatting import format_interval, format_value

if TYPE_CHECKING:
    from equipoise.stats.result import Estimate

RADIUS = 170
"""Pixels from the middle of the star to its rim."""
_PLAIN: Spec = {"type": "quantitative", "scale": None, "axis": None}


def radar_chart(scores: Mapping[str, Mapping[str, Estimate]], name: str = "five-scores") -> Chart:
    """A star a model: a spoke a score, its interval along the spoke. ``scores`` are by score and model."""
    spokes = list(scores)
    models = list(dict.fromkeys(model for own in scores.values() for model in own))
    ends = [end for own in scores.values() for each in own.values() for end in _reach(each)]
    rim = max(0.2, float(np.ceil(max(ends, default=1.0) * 5) / 5))
    layers = _web(spokes, rim)
    for place, model in enumerate(models):
        layers += _star(model, place, len(models), [scores[spoke].get(model) for spoke in spokes], spokes, rim)
    colours = [series_style(place) for place in range(len(models))]
    layers += legend(
        [(shape, fill, fill, text) for (fill, shape), text in zip(colours, shorten_labels(models, 28), strict=True)]
    )
    parts = [
        f"{model}: " + ", ".join(f"{spoke} {format_value(own[model].value)}" for spoke, own in scores.items())
        for model in models
    ]
    return chart(
        name,
        "The scores of each model",
        f"{'; '.join(parts)}.",
        layers,
        subtitle="0 in the middle, lines along the spokes are intervals; below 0 is drawn as 0.",
        width=2 * RADIUS + 60,
        height=2 * RADIUS + 60,
    )


def _reach(each: Estimate) -> tuple[float, ...]:
    known = (each.value, each.interval.low, each.interval.high)
    return tuple(value for value in known if not isnan(value))


def _place(spoke: int, spokes: int, share: float, aside: float = 0.0) -> dict[str, float]:
    """The pixel at a share of the way to the rim, ``aside`` pixels to the right of the spoke."""
    angle = 2 * pi * spoke / spokes
    far = RADIUS * min(max(share, 0.0), 1.1)
    middle = RADIUS + 30
    return {
        "x": middle + far * sin(angle) + aside * cos(angle),
        "y": middle - far * cos(angle) + aside * sin(angle),
    }


_AT: Spec = {"x": {"field": "x", **_PLAIN}, "y": {"field": "y", **_PLAIN}}


def _web(spokes: Sequence[str], rim: float) -> list[Spec]:
    """Rings with their values, spokes and their names."""
    many = len(spokes)
    steps = [step / 5 for step in range(1, round(rim * 5) + 1)]
    rings: list[Row] = [
        {**_place(spoke % many, many, step / rim), "ring": step, "step": spoke}
        for step in steps
        for spoke in range(many + 1)
    ]
    rays: list[Row] = [
        {**_place(spoke, many, share), "ring": spoke, "step": share} for spoke in range(many) for share in (0.0, 1.0)
    ]
    values: list[Row] = [{**_place(0, many, step / rim), "text": format_value(step, 1)} for step in steps]
    names = [_name(spoke, many, text) for spoke, text in enumerate(spokes)]
    line = {"type": "line", "stroke": LIGHT["grid"], "strokeWidth": 1, "aria": False}
    by_ring: Spec = {"detail": {"field": "ring"}, "order": {"field": "step"}}
    return [
        {"data": {"values": rings}, "mark": line, "encoding": {**_AT, **by_ring}},
        {"data": {"values": rays}, "mark": line, "encoding": {**_AT, **by_ring}},
        _words(values, align="left", dx=4, fill=LIGHT["soft"], fontSize=SMALL_SIZE),
        *(_words([row], align=row["align"], fontSize=TEXT_SIZE) for row in names),
    ]


def _name(spoke: int, many: int, text: str) -> Row:
    at = _place(spoke, many, 1.08)
    side = sin(2 * pi * spoke / many)
    align = "center" if abs(side) < 0.05 else "left" if side > 0 else "right"
    return {**at, "text": text.removesuffix("_score").replace("_", " "), "align": align}


def _words(rows: list[Row], **mark: object) -> Spec:
    return {
        "data": {"values": rows},
        "mark": {"type": "text", **mark},
        "encoding": {**_AT, "text": {"field": "text"}},
    }


def _star(
    model: str,
    place: int,
    models: int,
    values: Sequence[Estimate | None],
    spokes: Sequence[str],
    rim: float,
) -> list[Spec]:
    """The outline of a model, a mark on every spoke, and the intervals beside each other."""
    colour, shape = series_style(place)
    many, aside = len(spokes), 5.0 * (place - (models - 1) / 2)
    known = [(at, each) for at, each in enumerate(values) if each is not None and not isnan(each.value)]
    marks: list[Row] = [
        {
            **_place(at, many, each.value / rim, aside),
            "step": at,
            "says": f"{model}: {spokes[at]} {format_value(each.value)} {format_interval(each.interval)}",
        }
        for at, each in known
    ]
    whiskers: list[Row] = [
        {**_place(at, many, end / rim, aside), "spoke": at}
        for at, each in known
        if each.interval.known
        for end in (each.interval.low, each.interval.high)
    ]
    closed = [*marks, {**marks[0], "step": many}] if len(marks) == many else []
    return [
        {
            "data": {"values": closed},
            "mark": {"type": "line", "stroke": colour, "strokeWidth": 1.2, "opacity": 0.6, "aria": False},
            "encoding": {**_AT, "order": {"field": "step"}},
        },
        {
            "data": {"values": whiskers},
            "mark": {"type": "line", "stroke": colour, "strokeWidth": 2.4, "aria": False},
            "encoding": {**_AT, "detail": {"field": "spoke"}},
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
            "encoding": {**_AT, **TOOLTIP},
        },
    ]
