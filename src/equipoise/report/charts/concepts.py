"""Concepts: similarities against what is expected, how cosines are spread, and a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import wrap

import numpy as np

from equipoise.report.charts.chart import Chart, chart, slug
from equipoise.report.charts.layers import SAID, Row, axis, head
from equipoise.report.charts.map import MOST_POINTS, map_chart
from equipoise.report.charts.map import SIZE as MAP_SIZE
from equipoise.report.charts.naming import short, short_names
from equipoise.report.charts.theme import LIGHT, TEXT_SIZE, Spec
from equipoise.report.page.model import Map, Point
from equipoise.stats.numbers import count, figure
from equipoise.types import Floats

SIZE = 380
TENTHS = tuple((tenth / 10, figure(tenth / 10, 1)) for tenth in range(-10, 11, 2))
BAND, WIDTH, BIN = 64, 520, 0.05
FOLDED = 78
NAME_SIZE, LONGEST_NAME = 9, 26
_PLAIN: Spec = {"type": "quantitative", "scale": None, "axis": None}


def similarity_chart(
    model: str, pairs: Sequence[str], predicted: Floats, expected: Floats, correlation: str = ""
) -> Chart:
    """A dot a pair: the expected similarity, and the cosine; on the line they would agree."""
    low = min(0.0, float(np.floor(predicted.min(initial=0.0) * 5) / 5))
    x = axis(0.0, 1.0, [tick for tick in TENTHS if tick[0] >= 0], "expected similarity")
    y = axis(low, 1.0, [tick for tick in TENTHS if tick[0] >= low - 1e-9], "cosine")
    for each in (x, y):
        each["axis"]["grid"] = True
    rows: list[Row] = [
        {"x": float(wanted), "y": float(said), "says": f"{name}: expected {wanted:.2f}, cosine {said:.2f}"}
        for name, said, wanted in zip(pairs, predicted, expected, strict=True)
    ]
    line: Spec = {
        "data": {"values": [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]},
        "mark": {"type": "line", "stroke": LIGHT["chance"], "strokeDash": [5, 3], "aria": False},
        "encoding": {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}},
    }
    dots: Spec = {
        "data": {"values": rows},
        "mark": {
            "type": "point",
            "filled": True,
            "fill": LIGHT["lead"],
            "stroke": LIGHT["paper"],
            "strokeWidth": 0.6,
            "size": 56,
            "opacity": 0.8,
        },
        "encoding": {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}, **SAID},
    }
    farthest = int(np.argmax(np.abs(predicted - expected)))
    told = f" {correlation}." if correlation else ""
    return chart(
        f"similarity-{slug(model)}",
        f"Similarities of {short(model)} against what is expected",
        f"{count(len(rows))} pairs.{told} Farthest from the line: {rows[farthest]['says']}.",
        [line, dots],
        subtitle=f"Dashed: where both are the same.{told}",
        width=SIZE,
        height=SIZE,
    )


def cosines_chart(
    cosines: Mapping[str, Floats], related: Mapping[str, Floats] | None = None, name: str = "cosines"
) -> Chart:
    """A histogram a model: cosines of all pairs of concepts, and as a line those of one cluster."""
    every = [*cosines.values(), *(related or {}).values()]
    first = min(0, int(np.floor(min(each.min() for each in every) / BIN)))
    # Rounded, since a cosine of exactly 0 belongs above the edge at 0.
    edges = np.round(np.arange(first, round(1 / BIN) + 2) * BIN, 6)
    low = float(edges[0])
    x = axis(low, 1.0 + BIN, [tick for tick in TENTHS if tick[0] >= low], "cosine of two concepts")
    layers: list[Spec] = []
    for place, (model, values) in enumerate(cosines.items()):
        own = (related or {}).get(model)
        layers += _histogram(model, place, values, own, edges, x)
    named = [
        {"name": called, "at": (place + 0.75) * BAND}
        for place, called in enumerate(short_names(list(cosines), 28))
    ]
    layers.append(
        {
            "data": {"values": named},
            "mark": {"type": "text", "align": "right", "fontSize": TEXT_SIZE},
            "encoding": {"x": {"value": -12}, "y": {"field": "at", **_PLAIN}, "text": {"field": "name"}},
        }
    )
    if related:
        layers.append(head("bars: all pairs; line: pairs of one cluster", WIDTH, align="right"))
    means = [f"{model} {figure(float(values.mean()), 2)}" for model, values in cosines.items()]
    return chart(
        name,
        "How alike concepts are to each model",
        f"Mean cosine of two concepts: {', '.join(means)}.",
        layers,
        subtitle="Models differ in what a cosine means, so that no threshold fits two of them.",
        width=WIDTH,
        height=len(cosines) * BAND,
    )


def _histogram(
    model: str, place: int, values: Floats, own: Floats | None, edges: Floats, x: Spec
) -> list[Spec]:
    shares = np.histogram(values, edges)[0] / max(len(values), 1)
    inner = None if own is None else np.histogram(own, edges)[0] / max(len(own), 1)
    tallest = max(float(shares.max()), 0.0 if inner is None else float(inner.max())) or 1.0
    base = (place + 1) * BAND - 4

    def top(share: float) -> float:
        return base - (BAND - 14) * share / tallest

    bars: list[Row] = [
        {
            "from": float(left),
            "to": float(right),
            "base": base,
            "top": top(share),
            "says": f"{model}: {figure(float(share))} of all pairs lie from {left:.2f} to {right:.2f}",
        }
        for left, right, share in zip(edges[:-1], edges[1:], shares, strict=True)
        if share > 0
    ]
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "rect", "fill": LIGHT["heat3"]},
            "encoding": {
                "x": {**x, "field": "from"},
                "x2": {"field": "to"},
                "y": {"field": "top", **_PLAIN},
                "y2": {"field": "base"},
                **SAID,
            },
        }
    ]
    if inner is not None:
        steps: list[Row] = [
            {"x": float(edge), "y": top(share), "step": 2 * at + side}
            for at, share in enumerate(inner)
            for side, edge in enumerate((edges[at], edges[at + 1]))
        ]
        layers.append(
            {
                "data": {"values": steps},
                "mark": {"type": "line", "stroke": LIGHT["chance"], "strokeWidth": 1.6, "aria": False},
                "encoding": {
                    "x": {**x, "field": "x"},
                    "y": {"field": "y", **_PLAIN},
                    "order": {"field": "step"},
                },
            }
        )
    return layers


def concept_map_chart(
    model: str, names: Sequence[str], clusters: Sequence[str], points: Floats, caption: str
) -> Chart:
    """Concepts in the plane by cluster; ``caption`` says how much of the neighbourhoods is left."""
    drawn = tuple(
        Point(float(at[0]), float(at[1]), label, group)
        for at, label, group in zip(points, names, clusters, strict=True)
    )
    made = map_chart(Map(f"Concepts as {short(model)} sees them", "plane", drawn), f"map-{slug(model)}")
    made = replace(
        made, spec={**made.spec, "layer": [*made.spec["layer"], _names(drawn, made.spec["layer"])]}
    )
    lines = [each for each in (made.spec["title"].get("subtitle", ""), *wrap(caption, FOLDED)) if each]
    told = {**made.spec["title"], "subtitle": lines}
    return replace(made, spec={**made.spec, "title": told}, description=f"{made.description} {caption}")


def _names(points: Sequence[Point], layers: Sequence[Spec]) -> Spec:
    """As many names as there is room for: a picture on paper cannot be pointed at."""
    marks = next(layer for layer in layers if layer["mark"]["type"] == "point")
    axes = {side: marks["encoding"][side] for side in "xy"}
    ends = [axes[side]["scale"]["domain"] for side in "xy"]
    taken: list[tuple[float, float, float]] = []
    rows: list[Row] = []
    for point in points[:MOST_POINTS]:
        text = short(point.label, LONGEST_NAME)
        across, up = (
            (value - low) / (high - low) * MAP_SIZE
            for value, (low, high) in zip((point.x, point.y), ends, strict=True)
        )
        width = len(text) * NAME_SIZE * 0.55 + 4
        if across + width <= MAP_SIZE and not any(
            abs(up - other) < NAME_SIZE + 1 and across < left + wide and left < across + width
            for left, other, wide in taken
        ):
            taken.append((across, up, width))
            rows.append({"x": point.x, "y": point.y, "text": text})
    return {
        "data": {"values": rows},
        "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": NAME_SIZE, "aria": False},
        "encoding": {**axes, "text": {"field": "text"}},
    }
