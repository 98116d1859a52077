"""Embedded trees: the disk with its edges, and norms against depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from textwrap import wrap

import numpy as np

from equipoise.report.charts.chart import Chart, chart, slug
from equipoise.report.charts.layers import SAID, Row, axis, axis_of
from equipoise.report.charts.map import map_chart
from equipoise.report.charts.naming import short
from equipoise.report.charts.theme import LIGHT, Spec
from equipoise.report.page.figures import scale_of
from equipoise.report.page.model import Map, Point
from equipoise.stats.numbers import count, figure
from equipoise.types import Floats, Ints

WIDTH, HEIGHT = 520, 320
MOST_DOTS = 3000
"""More dots than this hide each other; they are thinned out evenly."""
MOST_GROUPS = 8
FOLDED = 80
GOLDEN, JITTER = 0.6180339887498949, 0.04
OTHERS = "others"


@dataclass(frozen=True)
class Node:
    """What a picture tells of a node: its name, and the name of the branch that it hangs from."""

    name: str
    branch: str = ""


def tree_chart(
    nodes: Sequence[Node],
    points: Floats,
    edges: Ints,
    depth: Floats,
    *,
    title: str,
    kind: str = "disk",
    caption: str = "",
) -> Chart:
    """The nodes in the disk or the plane with lines to their parents; of a large tree the upper levels."""
    order = np.argsort(depth, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    shades = _groups([nodes[at].branch for at in order])
    drawn = tuple(
        Point(
            float(points[at, 0]),
            float(points[at, 1]),
            nodes[at].name,
            shades[nodes[at].branch],
            -float(depth[at]),
        )
        for at in order.tolist()
    )
    links = tuple((int(place[child]), int(place[parent])) for child, parent in edges.tolist())
    return _captioned(map_chart(Map(title, kind, drawn, links), kind), caption)


def _captioned(drawn: Chart, caption: str) -> Chart:
    """The chart with more lines below its title, folded to its width."""
    lines = [each for each in (drawn.spec["title"].get("subtitle", ""), *wrap(caption, FOLDED)) if each]
    if not lines:
        return drawn
    return replace(drawn, spec={**drawn.spec, "title": {**drawn.spec["title"], "subtitle": lines}})


def _groups(branches: Sequence[str]) -> dict[str, str]:
    """The largest branches by name, the rest together: more colours than a few say nothing."""
    sizes: dict[str, int] = {}
    for branch in branches:
        sizes[branch] = sizes.get(branch, 0) + 1
    kept = sorted(sizes, key=lambda branch: -sizes[branch])[: MOST_GROUPS - (len(sizes) > MOST_GROUPS)]
    return {branch: branch if branch in kept else OTHERS for branch in sizes}


def norms_chart(
    nodes: Sequence[Node], norms: Floats, ranks: Floats, *, system: str, correlation: str = ""
) -> Chart:
    """A dot a node: its norm, over where it stands between root (0) and leaf (1)."""
    known = np.flatnonzero(~np.isnan(ranks) & np.isfinite(norms))
    shown = known[:: max(1, ceil(len(known) / MOST_DOTS))]
    far = scale_of([], [0.0, *(float(norms[at]) for at in shown)])
    x = axis(
        -0.04,
        1.04,
        [(tenth / 10, figure(tenth / 10, 1)) for tenth in range(0, 11, 2)],
        "place in the tree: 0 is a root, 1 is a leaf",
    )
    y = axis_of(far, "norm")
    for each in (x, y):
        each["axis"]["grid"] = True
    rows: list[Row] = [
        {
            "rank": float(ranks[at]) + _beside(at),
            "norm": float(norms[at]),
            "says": _norm_says(nodes[at], ranks[at], norms[at]),
        }
        for at in shown.tolist()
    ]
    dots: Spec = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.45, "fill": LIGHT["lead"]},
        "encoding": {"x": {**x, "field": "rank"}, "y": {**y, "field": "norm"}, **SAID},
    }
    thinned = (
        "" if len(shown) == len(known) else f"; {count(len(shown))} of {count(len(known))} nodes are drawn"
    )
    told = f"Spearman's correlation {correlation}" if correlation else "A dot is a node"
    return chart(
        f"norm-depth-{slug(system)}",
        f"How far out the nodes of {short(system)} lie",
        f"Norms of {count(len(known))} nodes of {system} against their place between root and leaf. {told}.",
        [dots],
        subtitle=f"{told}{thinned}.",
        width=WIDTH,
        height=HEIGHT,
    )


def _beside(place: int) -> float:
    """A little to one side, so that nodes of one rank do not hide each other."""
    return (place * GOLDEN % 1.0 - 0.5) * JITTER


def _norm_says(node: Node, rank: float, norm: float) -> str:
    where = f" ({node.branch})" if node.branch and node.branch != node.name else ""
    return f"{node.name}{where}: norm {figure(float(norm))}, place {figure(float(rank), 2)}"
