"""Projections: points in the plane or in the Poincare disk with their links; a tooltip shows the name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, hypot
from typing import TYPE_CHECKING

import numpy as np

from equipoise.geometry.distances import ball_to_hyperboloid, hyperboloid_to_ball, poincare
from equipoise.report.charts import marks
from equipoise.report.charts.chart import LIGHT, Chart, Spec, chart, series_style, shorten_label, slug
from equipoise.stats.formatting import format_count

if TYPE_CHECKING:
    from equipoise.report.view_model import Point, Projection
    from equipoise.types import Floats

SIZE = 500
MAX_POINTS = 600
"""Only the first points are drawn: more make the file large and are not legible."""
MAX_LABELS = 24
MAX_GROUPS = 12
MAX_LABEL_LENGTH = 24
LABEL_HEIGHT = 13
DENSE_POINTS = 150
MIN_SIZE, MAX_SIZE, DEFAULT_SIZE = 26.0, 110.0, 48.0
DENSE_SIZE_FACTOR = 0.5
"""The factor of mark sizes with more than ``DENSE_POINTS`` points."""
MIN_CURVED = 0.05
"""Shorter links are straight."""
MAX_SEGMENTS = 16
"""The maximum number of points on a curved link."""
DISK_LIMIT = 1 - 1e-9
DISK = (-1.04, 1.04)


def projection_chart(projection: Projection, name: str = "") -> Chart:
    """The points with their links; the points with most links are labelled, and without links as many as fit."""
    points = projection.points[:MAX_POINTS]
    links = [link for link in projection.links if max(link) < len(points)]
    groups = list(dict.fromkeys(point.group for point in points))
    x, y = (_axis(DISK), _axis(DISK)) if projection.kind == "disk" else _square(points)
    where = marks.position(x, y)
    layers = [*_disk_border(where, projection.kind), *_links(projection.kind, points, links, where)]
    layers += [_points(points, groups, where), *_labels(points, links, x, y), *_group_legend(groups)]
    left_out = len(projection.points) - len(points)
    result = chart(
        name or f"projection-{slug(projection.title)}",
        projection.title,
        _describe(projection, groups),
        layers,
        subtitle=f"The first {format_count(len(points))} of {format_count(len(projection.points))} points."
        if left_out
        else "",
        width=SIZE,
        height=SIZE,
    )
    return replace(result, zoom=True)


def _axis(domain: Sequence[float]) -> Spec:
    return {
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": None,
    }


def _square(points: Sequence[Point]) -> tuple[Spec, Spec]:
    """Axes of the same length, so that distances are to scale."""
    xs, ys = [point.x for point in points] or [0.0], [point.y for point in points] or [0.0]
    half = max(max(xs) - min(xs), max(ys) - min(ys)) * 0.53 or 1.0
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    x, y = (_axis([center - half, center + half]) for center in middle)
    return x, y


def _disk_border(where: Spec, kind: str) -> list[Spec]:
    """The unit circle."""
    if kind != "disk":
        return []
    angles = np.linspace(0.0, 2 * np.pi, 181)
    rows = [{"x": float(np.cos(angle)), "y": float(np.sin(angle)), "step": step} for step, angle in enumerate(angles)]
    return [marks.line(rows, {**where, "order": {"field": "step"}}, LIGHT["line"], width=1.2)]


def _links(kind: str, points: Sequence[Point], links: Sequence[tuple[int, int]], where: Spec) -> list[Spec]:
    if not links:
        return []
    rows: list[marks.Row] = []
    for index, (start, end) in enumerate(links):
        ends = [[points[end_index].x, points[end_index].y] for end_index in (start, end)]
        path = poincare_geodesic(*ends) if kind == "disk" else np.array(ends)
        rows += [{"link": index, "x": float(at[0]), "y": float(at[1]), "step": step} for step, at in enumerate(path)]
    by_link: Spec = {**where, "detail": {"field": "link", "type": "nominal"}, "order": {"field": "step"}}
    return [marks.line(rows, by_link, LIGHT["line"], width=0.8)]


def poincare_geodesic(start: Sequence[float], end: Sequence[float]) -> Floats:
    """Equidistant points on the geodesic of the Poincare disk between two points.

    Points on the unit circle or outside it have no geodesic and are linked by a straight line.
    """
    ends = np.array([start, end], dtype=np.float64)
    if max(hypot(*end) for end in ends) >= DISK_LIMIT:
        return ends
    length = float(poincare(ends[0], ends[1]))
    if length < MIN_CURVED:
        return ends
    fraction = np.linspace(0.0, 1.0, min(ceil(3 * length) + 2, MAX_SEGMENTS))[:, None]
    lifted = ball_to_hyperboloid(ends)
    path = (np.sinh((1 - fraction) * length) * lifted[0] + np.sinh(fraction * length) * lifted[1]) / np.sinh(length)
    return hyperboloid_to_ball(path)


def _points(points: Sequence[Point], groups: Sequence[str], where: Spec) -> Spec:
    sizes = _sizes(points)
    rows = []
    for point, size in zip(points, sizes, strict=True):
        color, shape = series_style(groups.index(point.group))
        tooltip = f"{point.label} ({point.group})" if point.group else point.label
        rows.append({"x": point.x, "y": point.y, "fill": color, "shape": shape, "size": size, "tooltip": tooltip})
    size_encoding = {"field": "size", "type": "quantitative", "scale": None}
    style = {**where, **marks.literals("shape", "fill"), "size": size_encoding, **marks.TOOLTIP}
    return marks.layer("point", style, rows, filled=True, opacity=0.9, stroke=LIGHT["paper"], strokeWidth=0.6)


def _sizes(points: Sequence[Point]) -> list[float]:
    sizes = [point.size for point in points if point.size is not None]
    low, high = (min(sizes), max(sizes)) if sizes else (0.0, 0.0)
    factor = DENSE_SIZE_FACTOR if len(points) > DENSE_POINTS else 1.0
    if high <= low:
        return [DEFAULT_SIZE * factor] * len(points)
    fractions = [0.0 if point.size is None else (point.size - low) / (high - low) for point in points]
    return [factor * (MIN_SIZE + (MAX_SIZE - MIN_SIZE) * fraction) for fraction in fractions]


def _labels(points: Sequence[Point], links: Sequence[tuple[int, int]], x: Spec, y: Spec) -> list[Spec]:
    """Names of the points with most links, or of any points without links; no two overlap."""
    degree = Counter(index for link in links for index in link)
    candidates = sorted(range(len(points)), key=lambda index: -degree[index])
    max_labels = MAX_LABELS if links else len(points)
    if len(points) > max_labels:
        candidates = [index for index in candidates if degree[index] > 1]
    x_domain, y_domain = (axis["scale"]["domain"] for axis in (x, y))
    placed: list[tuple[float, float, float]] = []
    rows: list[marks.Row] = []
    for index in candidates:
        point, text = points[index], shorten_label(points[index].label, MAX_LABEL_LENGTH)
        at = (
            (point.x - x_domain[0]) / (x_domain[1] - x_domain[0]) * SIZE,
            (point.y - y_domain[0]) / (y_domain[1] - y_domain[0]) * SIZE,
        )
        width = len(text) * marks.LETTER_WIDTH + 8
        if len(rows) < max_labels and not any(_overlap(label, (*at, width)) for label in placed):
            placed.append((*at, width))
            rows.append({"x": point.x, "y": point.y, "text": text})
    # A halo in the background colour below the text keeps the name readable on top of links.
    halo: Spec = {"stroke": LIGHT["paper"], "strokeWidth": 3, "strokeJoin": "round"}
    return [marks.text_marks(rows, marks.position(x, y), align="left", dx=8, **style) for style in (halo, {})]


def _overlap(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Whether two texts overlap, each given by its left end, its y position and its width."""
    disjoint = a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0]
    return not disjoint and abs(a[1] - b[1]) < LABEL_HEIGHT


def _group_legend(groups: Sequence[str]) -> list[Spec]:
    """The groups with their colours and shapes, to the right of the plot."""
    named = [(index, group) for index, group in enumerate(groups) if group]
    if not named:
        return []
    rows: list[marks.Row] = [
        {"at": 10 + 18 * number, "text": shorten_label(group, MAX_LABEL_LENGTH), "fill": color, "shape": shape}
        for number, (group, (color, shape)) in enumerate(
            (group, series_style(index)) for index, group in named[:MAX_GROUPS]
        )
    ]
    more = len(named) - MAX_GROUPS
    if more > 0:
        rows.append({"at": 10 + 18 * len(rows), "text": f"and {more} more"})
    return marks.label_list(rows, SIZE + 16, gap=12)


def _describe(projection: Projection, groups: Sequence[str]) -> str:
    where = "in the unit disk" if projection.kind == "disk" else "in the plane"
    named = [group for group in groups if group]
    kinds = f" in {len(named)} groups" if len(named) > 1 else ""
    sizes = f"{format_count(len(projection.points))} points{kinds} and {format_count(len(projection.links))} links"
    return f"{sizes} {where}: {projection.title}."
