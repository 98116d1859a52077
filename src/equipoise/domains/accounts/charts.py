"""The charts of an embedded tree: the disk with its edges, norms against depth, and metrics by dimension.

``TreeCharts`` collects the charts of an evaluation or of its folder; ``project_to_disk`` maps points of any dimension
to two coordinates for display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.disk_chart import TreeDrawing
from equipoise.domains.accounts.evaluation import SPEARMAN, origin_distances
from equipoise.domains.accounts.experiment import COMBINATORIAL, HYPERBOLIC
from equipoise.domains.accounts.results import (
    AccountsEvaluation,
    last_run_systems,
    read_stored_tree,
    read_stored_vectors,
    stored_systems,
)
from equipoise.domains.accounts.trees.tree import is_random_id
from equipoise.domains.accounts.vectors import NodeVectors, align_to_tree
from equipoise.errors import ParameterError, StoreError, UnknownNameError
from equipoise.geometry.distances import ball_to_hyperboloid, lorentz_norm
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.report.charts.chart import LIGHT, Chart, Spec, chart, shorten_label, slug
from equipoise.report.charts.curves import CurvePoint, metric_by_dimension_chart
from equipoise.report.charts.marks import TOOLTIP, Row, linear_axis, scale_axis
from equipoise.report.charts.projection import projection_chart
from equipoise.report.sections import axis_scale
from equipoise.report.view_model import Point, Projection
from equipoise.runs.experiment_folder import RUNS
from equipoise.runs.run_folder import load_run
from equipoise.stats.formatting import format_count, format_interval, format_value

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ints

WIDTH, HEIGHT = 520, 320
MAX_DOTS = 3000
"""A larger number of dots is thinned out evenly."""
MAX_GROUPS = 8
CAPTION_WIDTH = 80
GOLDEN, JITTER = 0.6180339887498949, 0.04
OTHER_BRANCHES = "others"


@dataclass(frozen=True)
class NodeLabel:
    """The label of a node: its name, and the name of its top-level branch."""

    name: str
    branch: str = ""


def tree_chart(
    nodes: Sequence[NodeLabel],
    points: Floats,
    edges: Ints,
    depth: Floats,
    *,
    title: str,
    kind: str = "disk",
    caption: str = "",
) -> Chart:
    """The nodes in the disk or the plane with lines to their parents; of a large tree only the upper levels."""
    order = np.argsort(depth, kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    shades = _branch_groups([nodes[node].branch for node in order])
    points_drawn = tuple(
        Point(
            float(points[node, 0]),
            float(points[node, 1]),
            nodes[node].name,
            shades[nodes[node].branch],
            -float(depth[node]),
        )
        for node in order.tolist()
    )
    links = tuple((int(position[child]), int(position[parent])) for child, parent in edges.tolist())
    return _with_caption(projection_chart(Projection(title, kind, points_drawn, links), kind), caption)


def _with_caption(chart: Chart, caption: str) -> Chart:
    """The chart with more lines below its title, wrapped to its width."""
    lines = [line for line in (chart.spec["title"].get("subtitle", ""), *wrap(caption, CAPTION_WIDTH)) if line]
    if not lines:
        return chart
    return replace(chart, spec={**chart.spec, "title": {**chart.spec["title"], "subtitle": lines}})


def _branch_groups(branches: Sequence[str]) -> dict[str, str]:
    """The largest branches by name, and one group for all others: the number of colours is limited."""
    sizes: dict[str, int] = {}
    for branch in branches:
        sizes[branch] = sizes.get(branch, 0) + 1
    largest = sorted(sizes, key=lambda branch: -sizes[branch])[: MAX_GROUPS - (len(sizes) > MAX_GROUPS)]
    return {branch: branch if branch in largest else OTHER_BRANCHES for branch in sizes}


def norm_position_chart(
    nodes: Sequence[NodeLabel], norms: Floats, ranks: Floats, *, system: str, correlation: str = ""
) -> Chart:
    """One dot per node: its norm over its position between root (0) and leaf (1)."""
    valid = np.flatnonzero(~np.isnan(ranks) & np.isfinite(norms))
    shown = valid[:: max(1, ceil(len(valid) / MAX_DOTS))]
    norm_scale = axis_scale([], [0.0, *(float(norms[node]) for node in shown)])
    x = linear_axis(
        -0.04,
        1.04,
        [(tenth / 10, format_value(tenth / 10, 1)) for tenth in range(0, 11, 2)],
        "position in the tree: 0 is a root, 1 is a leaf",
    )
    y = scale_axis(norm_scale, "norm (distance from the origin)")
    for axis in (x, y):
        axis["axis"]["grid"] = True
    rows: list[Row] = [
        {
            # A small offset, so that nodes of one rank do not overlap.
            "rank": float(ranks[node]) + (node * GOLDEN % 1.0 - 0.5) * JITTER,
            "norm": float(norms[node]),
            "says": _norm_tooltip(nodes[node], ranks[node], norms[node]),
        }
        for node in shown.tolist()
    ]
    dots: Spec = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.45, "fill": LIGHT["lead"]},
        "encoding": {"x": {**x, "field": "rank"}, "y": {**y, "field": "norm"}, **TOOLTIP},
    }
    sampling_note = (
        ""
        if len(shown) == len(valid)
        else f"; {format_count(len(shown))} of {format_count(len(valid))} nodes are drawn"
    )
    correlation_text = f"Spearman's correlation {correlation}" if correlation else "One dot per node"
    return chart(
        f"norm-position-{slug(system)}",
        f"Norm by position in the tree: {shorten_label(system)}",
        f"Norms of {format_count(len(valid))} nodes of {system} against their position between root and leaf. "
        f"{correlation_text}.",
        [dots],
        subtitle=f"{correlation_text}{sampling_note}.",
        width=WIDTH,
        height=HEIGHT,
    )


def _norm_tooltip(node: NodeLabel, rank: float, norm: float) -> str:
    where = f" ({node.branch})" if node.branch and node.branch != node.name else ""
    return f"{node.name}{where}: norm {format_value(float(norm))}, position {format_value(float(rank), 2)}"


PROJECTED = "Projected onto two principal components; each node keeps its distance from the origin."

SPREAD = "Angles are spaced evenly, in their original order, because most points would otherwise overlap."
ONE_PARENT = "A node with several parents is linked to one of them."
N_ANGLE_BINS, MIN_OCCUPIED_SHARE = 360, 0.6
"""Angles are spread if fewer than this share of the bins would have a point."""
MAX_DRAWN_RADIUS = 5.0
"""Points farther out cannot be distinguished from the rim: 1.3 % of the radius is left at this distance."""


@dataclass(frozen=True)
class DiskProjection:
    """Two coordinates per node; ``kind`` is "disk" or "plane", ``caption`` states what the projection loses."""

    points: Floats
    kind: str
    caption: str = ""


def project_to_disk(vectors: NodeVectors) -> DiskProjection:
    """Hyperbolic points in the Poincare disk, Euclidean ones in the plane.

    Two dimensions are drawn as they are. More dimensions are projected to the two principal directions; each point
    keeps its distance from the origin, so that its depth is visible. If points would be too close to the rim, all
    distances from the origin are shortened by one factor.

    >>> project_to_disk(NodeVectors(("a",), ("a",), np.array([[1.0, 0.0, 0.0]]), "lorentz")).points.tolist()
    [[0.0, 0.0]]
    """
    if vectors.dim < 2:
        raise ParameterError("a chart needs at least two dimensions", hint="embed the tree in 2 or more")
    if vectors.geometry not in HYPERBOLIC:
        plane = vectors.vectors if vectors.dim == 2 else _principal_coordinates(vectors.vectors)
        return DiskProjection(plane, "plane", "" if vectors.dim == 2 else PROJECTED)
    hyperboloid = vectors.vectors if vectors.geometry == "lorentz" else ball_to_hyperboloid(vectors.vectors)
    directions = hyperboloid[:, 1:]
    if vectors.dim > 2:
        directions = _principal_coordinates(directions / np.maximum(hyperboloid[:, :1], 1.0))
    length = np.sqrt((directions * directions).sum(axis=1, keepdims=True))
    directions = np.divide(directions, length, out=np.zeros_like(directions), where=length > 0)
    radii = lorentz_norm(hyperboloid)
    factor = max(1.0, float(radii.max(initial=0.0)) / MAX_DRAWN_RADIUS)
    captions = ([PROJECTED] if vectors.dim > 2 else []) + ([_shrink_caption(factor)] if factor > 1 else [])
    return DiskProjection(np.tanh(radii / factor / 2)[:, None] * directions, "disk", " ".join(captions))


def spread_angles(projection: DiskProjection) -> DiskProjection:
    """The points of a disk at evenly spaced angles in the same order, if they would overlap otherwise.

    Subtrees in hyperbolic space are seen from the origin at tiny angles, so that thousands of nodes would be on a few
    lines. Distances from the origin and the order of the angles are unchanged.
    """
    points = projection.points
    off_centre = np.flatnonzero(np.hypot(points[:, 0], points[:, 1]) > 1e-9)
    if projection.kind != "disk" or len(off_centre) < 3:
        return projection
    angles = np.arctan2(points[off_centre, 1], points[off_centre, 0])
    occupied = len(np.unique(np.floor((angles + np.pi) * N_ANGLE_BINS / (2.0 * np.pi))))
    if occupied >= MIN_OCCUPIED_SHARE * min(N_ANGLE_BINS, len(off_centre)):
        return projection
    order = np.argsort(angles, kind="stable")
    ordered = angles[order]
    # The largest gap is where the order begins, so that no subtree is split.
    gaps = np.diff(np.concatenate([ordered, [ordered[0] + 2.0 * np.pi]]))
    order = np.roll(order, -int(gaps.argmax()) - 1)
    spread = np.empty(len(order))
    spread[order] = 2.0 * np.pi * (np.arange(len(order)) + 0.5) / len(order)
    radii = np.hypot(points[off_centre, 0], points[off_centre, 1])
    spread_points = points.copy()
    spread_points[off_centre] = radii[:, None] * np.stack([np.cos(spread), np.sin(spread)], axis=1)
    return DiskProjection(spread_points, projection.kind, f"{projection.caption} {SPREAD}".strip())


def _shrink_caption(factor: float) -> str:
    return f"Distances from the origin are divided by {factor:.2g}, because most points would otherwise be at the rim."


def _principal_coordinates(rows: Floats) -> Floats:
    """The coordinates along the two principal directions, with deterministic signs."""
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    chosen = np.zeros((2, rows.shape[1]))
    chosen[: min(2, len(axes))] = axes[:2]
    # Of a direction and its opposite, the one whose largest component is positive is used.
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.sign(chosen[np.arange(2), largest])
    coordinates: Floats = rows @ (chosen * np.where(signs == 0, 1.0, signs)[:, None]).T
    return coordinates


LAYOUT_CHARTS = ("disk", "plane")
"""Names of the chart of the tree itself, by the kind of projection."""
CHART_METRICS = ("MR", "MAP")
"""The metrics that are plotted against the dimension, by the start of their names."""


@dataclass(frozen=True)
class TreeCharts:
    """A tree, the embedding that is plotted, and the results of all embeddings."""

    tree: Tree
    system: str
    vectors: NodeVectors
    results: tuple[Result, ...] = ()

    @classmethod
    def of(cls, evaluation: AccountsEvaluation, system: str | None = None) -> TreeCharts:
        """The charts of an evaluation."""
        vectors = {item.system: item.vectors for item in evaluation.evaluations}
        name = system or default_embedding(vectors)
        return cls(
            evaluation.tree, name, evaluation[name].vectors, tuple(item.result for item in evaluation.evaluations)
        )

    @classmethod
    def read(cls, folder: Path, system: str | None = None) -> TreeCharts:
        """The charts of the folder of an evaluation."""
        tree, stored = read_stored_tree(folder), stored_systems(folder)
        if system is not None and system not in stored:
            raise UnknownNameError.of("embedding", system, stored, more=f"there are: {', '.join(stored)}")
        vectors = {
            name: align_to_tree(read_stored_vectors(folder, path), tree)
            for name, path in stored.items()
            if system in (None, name)
        }
        chosen = system or default_embedding(vectors)
        # Runs of earlier evaluations with other settings are not plotted together.
        shown = dict.fromkeys([*(last_run_systems(folder) or stored), chosen])
        runs = [folder / RUNS / stored[name].stem for name in shown if name in stored]
        results = [load_run(run, evidence=False).result for run in runs if run.is_dir()]
        return cls(tree, chosen, vectors[chosen], tuple(results))

    def charts(self) -> list[Chart]:
        """The layout of the tree, the norms, and the metrics by dimension."""
        return [self.layout_chart(), self.norm_chart(), *dimension_charts(self.results)]

    def drawing(self) -> TreeDrawing:
        """Every node of the tree in the disk or the plane, for the page and for print."""
        projection = spread_angles(project_to_disk(self.vectors))
        where = "the Poincaré disk" if projection.kind == "disk" else "the plane"
        order = np.argsort(self.tree.depth, kind="stable")
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        parents = self.tree.first_parents[order]
        one_parent = "" if self.tree.is_forest else ONE_PARENT
        shades = _branch_groups([self._nodes[node].branch for node in order])
        group_names = list(dict.fromkeys(shades.values()))
        return TreeDrawing(
            title=f"{self.system} in {where}",
            kind=projection.kind,
            points=projection.points[order],
            ids=["" if is_random_id(self.tree.ids[node]) else self.tree.ids[node] for node in order],
            names=[self.tree.names[node] for node in order],
            parents=np.where(parents >= 0, position[np.maximum(parents, 0)], -1),
            depth=self.tree.depth[order].astype(np.int64),
            groups=[group_names.index(shades[self._nodes[node].branch]) for node in order],
            group_names=group_names,
            caption=" ".join(filter(None, [projection.caption, one_parent])),
        )

    def layout_chart(self) -> Chart:
        """The tree in the disk, or in the plane if the points are Euclidean."""
        projection = spread_angles(project_to_disk(self.vectors))
        where = "the Poincaré disk" if projection.kind == "disk" else "the plane"
        return tree_chart(
            self._nodes,
            projection.points,
            self.tree.edges,
            self.tree.depth,
            kind=projection.kind,
            caption=projection.caption,
            title=f"{self.system} in {where}",
        )

    def norm_chart(self) -> Chart:
        """Norms against the position between root and leaf."""
        norms = origin_distances(geometry_named(self.vectors.geometry), self.vectors.vectors)
        estimates = [result.estimates[SPEARMAN] for result in self.results if result.system == self.system][:1]
        text = "".join(f"{format_value(item.value, 2)} {format_interval(item.interval, 2)}" for item in estimates)
        return norm_position_chart(self._nodes, norms, self.tree.normalised_rank, system=self.system, correlation=text)

    @cached_property
    def _nodes(self) -> list[NodeLabel]:
        tree = self.tree
        names = dict(zip(tree.ids, tree.names, strict=True))
        return [NodeLabel(name, names[branch]) for name, branch in zip(tree.names, tree.branches, strict=True)]


def default_embedding(vectors: Mapping[str, NodeVectors]) -> str:
    """The embedding that is plotted by default: hyperbolic first, then low dimension, then the construction."""
    drawable = {name: node_vectors for name, node_vectors in vectors.items() if node_vectors.dim >= 2}
    if not drawable:
        raise StoreError("no embedding has at least two dimensions", hint="evaluate with --dims 2")
    return min(
        drawable,
        key=lambda name: (
            drawable[name].geometry not in HYPERBOLIC,
            drawable[name].dim,
            drawable[name].settings.get("embedder") != COMBINATORIAL,
        ),
    )


def dimension_charts(results: Sequence[Result]) -> list[Chart]:
    """Mean rank and MAP of every embedder with at least two dimensions."""
    by_embedder: dict[str, list[tuple[int, Result]]] = {}
    for result in results:
        name, dash, dim = result.system.rpartition("-")
        if dash and dim.isdigit():
            by_embedder.setdefault(name, []).append((int(dim), result))
    if max((len(rows) for rows in by_embedder.values()), default=0) < 2:
        return []
    charts = []
    for prefix in CHART_METRICS:
        curves = {
            name: [
                _curve_point(dim, _estimate_by_prefix(result, prefix))
                for dim, result in sorted(rows, key=lambda pair: pair[0])
            ]
            for name, rows in by_embedder.items()
        }
        first = _estimate_by_prefix(next(iter(by_embedder.values()))[0][1], prefix)
        charts.append(
            metric_by_dimension_chart(
                first.metric,
                curves,
                better=str(first.better),
                chance=first.chance,
                confidence_level=first.interval.confidence_level,
            )
        )
    return charts


def _estimate_by_prefix(result: Result, prefix: str) -> Estimate:
    return next(estimate for name, estimate in result.estimates.items() if name.partition("(")[0] == prefix)


def _curve_point(dim: int, estimate: Estimate) -> CurvePoint:
    ends = (estimate.interval.low, estimate.interval.high) if estimate.interval.known else (None, None)
    return CurvePoint(dim, estimate.value, *ends)
