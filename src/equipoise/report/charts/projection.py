"""Maps: points in the plane or in the unit disk with their links; pointing at a point shows its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, hypot
from typing import TYPE_CHECKING

import numpy as np

from equipoise.geometry.distances import ball_to_hyperboloid, hyperboloid_to_ball, poincare
from equipoise.report.charts.chart import Chart, chart, shorten_label, slug
from equipoise.report.charts.marks import LETTER_WIDTH, TOOLTIP, Row
from equipoise.report.charts.theme import LIGHT, Spec, series_style
from equipoise.stats.formatting import format_count

if TYPE_CHECKING:
    from equipoise.report.view_model import Point, Projection
    from equipoise.types import Floats

SIZE = 500
MOST_POINTS = 600
"""More points than this are a cloud that only makes the file large; the first ones are kept."""
MOST_LABELS = 24
MOST_GROUPS = 12
LONGEST_LABEL = 24
DENSE_POINTS = 150
SMALLEST, LARGEST, USUAL = 26.0, 110.0, 48.0
DENSE_SIZE_FACTOR = 0.5
"""By how much the marks of a crowd are smaller."""
STRAIGHT = 0.05
MAX_SEGMENTS = 16
"""Links shorter than the one are straight; of more pieces than the other no curve is made."""
DISK_LIMIT = 1 - 1e-9
DISK = (-1.04, 1.04)


def projection_chart(drawn: Projection, name: str = "") -> Chart:
    """The points with their links; the best linked ones have their names beside them."""
    points = drawn.points[:MOST_POINTS]
    links = [link for link in drawn.links if max(link) < len(points)]
    groups = list(dict.fromkeys(point.group for point in points))
    x, y = (_axis(DISK), _axis(DISK)) if drawn.kind == "disk" else _square(points)
    layers = [*_circle(x, y, drawn.kind), *_links(drawn.kind, points, links, x, y)]
    layers += [_points(points, groups, x, y), *_labels(points, links, x, y), *_key(groups)]
    left_out = len(drawn.points) - len(points)
    made = chart(
        name or f"map-{slug(drawn.title)}",
        drawn.title,
        _sentence(drawn, groups),
        layers,
        subtitle=f"The first {format_count(len(points))} of {format_count(len(drawn.points))} points."
        if left_out
        else "",
        width=SIZE,
        height=SIZE,
    )
    return replace(made, zoom=True)


def _axis(domain: Sequence[float]) -> Spec:
    return {
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": None,
    }


def _square(points: Sequence[Point]) -> tuple[Spec, Spec]:
    """Axes of the same length, so that distances look like what they are."""
    xs, ys = [point.x for point in points] or [0.0], [point.y for point in points] or [0.0]
    half = max(max(xs) - min(xs), max(ys) - min(ys)) * 0.53 or 1.0
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    left, right = (_axis([each - half, each + half]) for each in middle)
    return left, right


def _at(x: Spec, y: Spec) -> Spec:
    return {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}}


def _circle(x: Spec, y: Spec, kind: str) -> list[Spec]:
    """The border of the disk."""
    if kind != "disk":
        return []
    angles = np.linspace(0.0, 2 * np.pi, 181)
    rim = [{"x": float(np.cos(at)), "y": float(np.sin(at)), "step": step} for step, at in enumerate(angles)]
    return [
        {
            "data": {"values": rim},
            "mark": {"type": "line", "stroke": LIGHT["line"], "strokeWidth": 1.2, "aria": False},
            "encoding": {**_at(x, y), "order": {"field": "step"}},
        }
    ]


def _links(kind: str, points: Sequence[Point], links: Sequence[tuple[int, int]], x: Spec, y: Spec) -> list[Spec]:
    if not links:
        return []
    rows: list[Row] = []
    for place, (start, end) in enumerate(links):
        ends = [[points[each].x, points[each].y] for each in (start, end)]
        path = poincare_geodesic(*ends) if kind == "disk" else np.array(ends)
        rows += [{"link": place, "x": float(at[0]), "y": float(at[1]), "step": step} for step, at in enumerate(path)]
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "stroke": LIGHT["line"], "strokeWidth": 0.8, "aria": False},
            "encoding": {
                **_at(x, y),
                "detail": {"field": "link", "type": "nominal"},
                "order": {"field": "step"},
            },
        }
    ]


def poincare_geodesic(start: Sequence[float], end: Sequence[float]) -> Floats:
    """Points on the shortest path of the disk between two points of it, evenly apart as the disk measures.

    Points on the rim or beyond it have no such path and are linked by a straight line.

    >>> poincare_geodesic([-0.5, 0.0], [0.5, 0.0]).round(3)[0].tolist()
    [-0.5, 0.0]
    """
    ends = np.array([start, end], dtype=np.float64)
    if max(hypot(*each) for each in ends) >= DISK_LIMIT:
        return ends
    length = float(poincare(ends[0], ends[1]))
    if length < STRAIGHT:
        return ends
    share = np.linspace(0.0, 1.0, min(ceil(3 * length) + 2, MAX_SEGMENTS))[:, None]
    above = ball_to_hyperboloid(ends)
    path = (np.sinh((1 - share) * length) * above[0] + np.sinh(share * length) * above[1]) / np.sinh(length)
    return hyperboloid_to_ball(path)


def _points(points: Sequence[Point], groups: Sequence[str], x: Spec, y: Spec) -> Spec:
    sizes = _sizes(points)
    rows = []
    for point, size in zip(points, sizes, strict=True):
        colour, shape = series_style(groups.index(point.group))
        says = f"{point.label} ({point.group})" if point.group else point.label
        rows.append({"x": point.x, "y": point.y, "fill": colour, "shape": shape, "size": size, "says": says})
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": rows},
        "mark": {
            "type": "point",
            "filled": True,
            "opacity": 0.9,
            "stroke": LIGHT["paper"],
            "strokeWidth": 0.6,
        },
        "encoding": {
            **_at(x, y),
            "shape": {"field": "shape", **own},
            "fill": {"field": "fill", **own},
            "size": {"field": "size", "type": "quantitative", "scale": None},
            **TOOLTIP,
        },
    }


def _sizes(points: Sequence[Point]) -> list[float]:
    known = [point.size for point in points if point.size is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    factor = DENSE_SIZE_FACTOR if len(points) > DENSE_POINTS else 1.0
    if high <= low:
        return [USUAL * factor] * len(points)
    shares = [0.0 if point.size is None else (point.size - low) / (high - low) for point in points]
    return [factor * (SMALLEST + (LARGEST - SMALLEST) * share) for share in shares]


def _labels(points: Sequence[Point], links: Sequence[tuple[int, int]], x: Spec, y: Spec) -> list[Spec]:
    """Names beside the points, the best linked first, as long as they do not cover each other."""
    degree = Counter(place for link in links for place in link)
    wanted = sorted(range(len(points)), key=lambda place: -degree[place])
    if len(points) > MOST_LABELS:
        wanted = [place for place in wanted if degree[place] > 1]
    left, right = (each["scale"]["domain"] for each in (x, y))
    taken: list[tuple[float, float, float]] = []
    rows: list[Row] = []
    for place in wanted:
        point, text = points[place], shorten_label(points[place].label, LONGEST_LABEL)
        at = (
            (point.x - left[0]) / (left[1] - left[0]) * SIZE,
            (point.y - right[0]) / (right[1] - right[0]) * SIZE,
        )
        width = len(text) * LETTER_WIDTH + 8
        if len(rows) < MOST_LABELS and not any(_covers(each, (*at, width)) for each in taken):
            taken.append((*at, width))
            rows.append({"x": point.x, "y": point.y, "text": text})
    # The same text below, wider and in the colour of the paper, keeps the name readable on top of links.
    halo = {"stroke": LIGHT["paper"], "strokeWidth": 3, "strokeJoin": "round"}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left", "dx": 8, **look},
            "encoding": {**_at(x, y), "text": {"field": "text"}},
        }
        for look in (halo, {})
    ]


def _covers(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether two texts, each by its left end, its height and its width, overlap."""
    beside = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
    return not beside and abs(one[1] - other[1]) < 13


def _key(groups: Sequence[str]) -> list[Spec]:
    """What colours and shapes mean, beside the map."""
    named = [(place, group) for place, group in enumerate(groups) if group]
    if not named:
        return []
    rows = [
        {"at": 10 + 18 * line, "text": shorten_label(group, LONGEST_LABEL), "fill": colour, "shape": shape}
        for line, (group, (colour, shape)) in enumerate(
            (group, series_style(place)) for place, group in named[:MOST_GROUPS]
        )
    ]
    more = len(named) - MOST_GROUPS
    y: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    own = {"type": "nominal", "scale": None}
    texts = [*rows, {"at": 10 + 18 * len(rows), "text": f"and {more} more"}] if more > 0 else rows
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
            "encoding": {
                "x": {"value": SIZE + 16},
                "y": y,
                "shape": {"field": "shape", **own},
                "fill": {"field": "fill", **own},
            },
        },
        {
            "data": {"values": texts},
            "mark": {"type": "text", "align": "left"},
            "encoding": {"x": {"value": SIZE + 28}, "y": y, "text": {"field": "text"}},
        },
    ]


def _sentence(drawn: Projection, groups: Sequence[str]) -> str:
    where = "in the unit disk" if drawn.kind == "disk" else "in the plane"
    named = [group for group in groups if group]
    kinds = f" in {len(named)} groups" if len(named) > 1 else ""
    sizes = f"{format_count(len(drawn.points))} points{kinds} and {format_count(len(drawn.links))} links"
    return f"{sizes} {where}: {drawn.title}."
