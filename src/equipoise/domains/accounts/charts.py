"""The charts of an embedded tree: the disk with its edges, norms against depth, figures by dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.evaluation import SPEARMAN
from equipoise.domains.accounts.experiment import TRAINED
from equipoise.domains.accounts.results import (
    CHARTS,
    RUNS,
    AccountsEvaluation,
    last_run_systems,
    read_kept_vectors,
    read_stored_tree,
    stored_systems,
)
from equipoise.domains.accounts.vectors import NodeVectors, align_to_tree
from equipoise.errors import MissingExtraError, ParameterError, StoreError, UnknownNameError
from equipoise.geometry.distances import ball_to_hyperboloid, lorentz_norm
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.io.atomic import write_bytes
from equipoise.report.charts.chart import Chart, chart, shorten_label, slug
from equipoise.report.charts.curves import CurvePoint, metric_by_dimension_chart
from equipoise.report.charts.marks import TOOLTIP, Row, linear_axis, scale_axis
from equipoise.report.charts.projection import projection_chart
from equipoise.report.charts.render import render_png, render_svg
from equipoise.report.charts.theme import LIGHT, Spec
from equipoise.report.tables import axis_scale
from equipoise.report.view_model import Point, Projection
from equipoise.runs.store import load_run
from equipoise.stats.formatting import format_count, format_interval, format_value

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Floats, Ints

# Embedded trees: the disk with its edges, and norms against depths.

WIDTH, HEIGHT = 520, 320
MOST_DOTS = 3000
"""More dots than this hide each other; they are thinned out evenly."""
MOST_GROUPS = 8
FOLDED = 80
GOLDEN, JITTER = 0.6180339887498949, 0.04
OTHERS = "others"


@dataclass(frozen=True)
class NodeLabel:
    """What a picture tells of a node: its name, and the name of the branch that it hangs from."""

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
    return _captioned(projection_chart(Projection(title, kind, drawn, links), kind), caption)


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


def norm_depth_chart(
    nodes: Sequence[NodeLabel], norms: Floats, ranks: Floats, *, system: str, correlation: str = ""
) -> Chart:
    """A dot a node: its norm, over where it stands between root (0) and leaf (1)."""
    known = np.flatnonzero(~np.isnan(ranks) & np.isfinite(norms))
    shown = known[:: max(1, ceil(len(known) / MOST_DOTS))]
    far = axis_scale([], [0.0, *(float(norms[at]) for at in shown)])
    x = linear_axis(
        -0.04,
        1.04,
        [(tenth / 10, format_value(tenth / 10, 1)) for tenth in range(0, 11, 2)],
        "place in the tree: 0 is a root, 1 is a leaf",
    )
    y = scale_axis(far, "norm")
    for each in (x, y):
        each["axis"]["grid"] = True
    rows: list[Row] = [
        {
            "rank": float(ranks[at]) + _beside(at),
            "norm": float(norms[at]),
            "tooltip": _norm_says(nodes[at], ranks[at], norms[at]),
        }
        for at in shown.tolist()
    ]
    dots: Spec = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.45, "fill": LIGHT["lead"]},
        "encoding": {"x": {**x, "field": "rank"}, "y": {**y, "field": "norm"}, **TOOLTIP},
    }
    thinned = (
        ""
        if len(shown) == len(known)
        else f"; {format_count(len(shown))} of {format_count(len(known))} nodes are drawn"
    )
    told = f"Spearman's correlation {correlation}" if correlation else "A dot is a node"
    return chart(
        f"norm-depth-{slug(system)}",
        f"How far out the nodes of {shorten_label(system)} lie",
        f"Norms of {format_count(len(known))} nodes of {system} against their place between root and leaf. {told}.",
        [dots],
        subtitle=f"{told}{thinned}.",
        width=WIDTH,
        height=HEIGHT,
    )


def _beside(place: int) -> float:
    """A little to one side, so that nodes of one rank do not hide each other."""
    return (place * GOLDEN % 1.0 - 0.5) * JITTER


def _norm_says(node: NodeLabel, rank: float, norm: float) -> str:
    where = f" ({node.branch})" if node.branch and node.branch != node.name else ""
    return f"{node.name}{where}: norm {format_value(float(norm))}, place {format_value(float(rank), 2)}"


# Points of any dimension as points of the disk or the plane, for pictures alone.

HYPERBOLIC = ("poincare", "lorentz")
PROJECTED = "Seen in the two directions that differ most: how far from the middle is that of all dimensions."

FARTHEST = 5.0
"""Points farther out than this lie on the rim for the eye; here 1.3 % of the radius is left to it."""


@dataclass(frozen=True)
class DiskProjection:
    """Two coordinates a node; ``kind`` is "disk" or "plane", ``caption`` says what was lost."""

    points: Floats
    kind: str
    caption: str = ""


def project_to_disk(embedded: NodeVectors) -> DiskProjection:
    """Hyperbolic points in the Poincare disk, flat ones in the plane.

    Two dimensions are drawn as they are. More are turned until the two directions in which the points differ
    most lie in the picture; each point keeps its distance from the origin, so that its depth can be seen. A
    disk whose points would crowd on the rim is shrunk towards its middle.

    >>> project_to_disk(NodeVectors(("a",), ("a",), np.array([[1.0, 0.0, 0.0]]), "lorentz")).points.tolist()
    [[0.0, 0.0]]
    """
    if embedded.dim < 2:
        raise ParameterError("one dimension is too few for a picture", hint="embed the tree in 2 or more")
    if embedded.geometry not in HYPERBOLIC:
        plane = embedded.vectors if embedded.dim == 2 else _directions(embedded.vectors)
        return DiskProjection(plane, "plane", "" if embedded.dim == 2 else PROJECTED)
    above = embedded.vectors if embedded.geometry == "lorentz" else ball_to_hyperboloid(embedded.vectors)
    ways = above[:, 1:]
    if embedded.dim > 2:
        ways = _directions(ways / np.maximum(above[:, :1], 1.0))
    length = np.sqrt((ways * ways).sum(axis=1, keepdims=True))
    ways = np.divide(ways, length, out=np.zeros_like(ways), where=length > 0)
    far = lorentz_norm(above)
    factor = max(1.0, float(far.max(initial=0.0)) / FARTHEST)
    captions = ([PROJECTED] if embedded.dim > 2 else []) + ([_shrunk(factor)] if factor > 1 else [])
    return DiskProjection(np.tanh(far / factor / 2)[:, None] * ways, "disk", " ".join(captions))


def _shrunk(factor: float) -> str:
    return (
        f"All distances from the middle are drawn {factor:.2g} times shorter than they are, since most "
        "points would lie on the rim; directions are kept."
    )


def _directions(rows: Floats) -> Floats:
    """The coordinates along the two directions in which the rows differ most, signs made definite."""
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    chosen = np.zeros((2, rows.shape[1]))
    chosen[: min(2, len(axes))] = axes[:2]
    # A direction and its opposite are alike; the one whose largest part is positive is taken.
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.sign(chosen[np.arange(2), largest])
    found: Floats = rows @ (chosen * np.where(signs == 0, 1.0, signs)[:, None]).T
    return found


CHART_METRICS = ("MR", "MAP")
"""The figures that are drawn against dimensions, by how their names begin."""


@dataclass(frozen=True)
class TreeCharts:
    """A tree, the embedding that is drawn, and the results of all."""

    tree: Tree
    system: str
    embedded: NodeVectors
    results: tuple[Result, ...] = ()

    @classmethod
    def of(cls, found: AccountsEvaluation, system: str | None = None) -> TreeCharts:
        """What an evaluation in hand has to show."""
        vectors = {each.system: each.embedded for each in found.judged}
        name = system or default_embedding(vectors)
        return cls(found.tree, name, found[name].embedded, tuple(each.result for each in found.judged))

    @classmethod
    def read(cls, folder: Path, system: str | None = None) -> TreeCharts:
        """The same from the folder of an evaluation."""
        tree, kept = read_stored_tree(folder), stored_systems(folder)
        if system is not None and system not in kept:
            raise UnknownNameError.of("embedding", system, kept, more=f"there are: {', '.join(kept)}")
        vectors = {
            name: align_to_tree(read_kept_vectors(folder, path), tree)
            for name, path in kept.items()
            if system in (None, name)
        }
        chosen = system or default_embedding(vectors)
        # Of earlier evaluations with other settings, runs may still lie there: they are not drawn together.
        shown = dict.fromkeys([*(last_run_systems(folder) or kept), chosen])
        runs = [folder / RUNS / kept[name].stem for name in shown if name in kept]
        results = [load_run(run, evidence=False).result for run in runs if run.is_dir()]
        return cls(tree, chosen, vectors[chosen], tuple(results))

    def pictures(self) -> list[Chart]:
        """The tree first, then norms and figures."""
        return [self.map(), self.norms(), *dimension_charts(self.results)]

    def map(self) -> Chart:
        """The tree in the disk, or in the plane where its points are flat."""
        flat = project_to_disk(self.embedded)
        where = "the Poincaré disk" if flat.kind == "disk" else "the plane"
        return tree_chart(
            self._nodes,
            flat.points,
            self.tree.edges,
            self.tree.depth,
            kind=flat.kind,
            caption=flat.caption,
            title=f"{self.system} in {where}",
        )

    def norms(self) -> Chart:
        """Norms against the place between root and leaf."""
        norms = geometry_named(self.embedded.geometry).norm(self.embedded.vectors)
        told = next((_told(each.estimates[SPEARMAN]) for each in self.results if each.system == self.system), "")
        return norm_depth_chart(self._nodes, norms, self.tree.normalised_rank, system=self.system, correlation=told)

    @property
    def _nodes(self) -> list[NodeLabel]:
        tree = self.tree
        names = dict(zip(tree.ids, tree.names, strict=True))
        return [NodeLabel(name, names[branch]) for name, branch in zip(tree.names, tree.branches, strict=True)]


def default_embedding(vectors: Mapping[str, NodeVectors]) -> str:
    """Which embedding shows most: hyperbolic before flat, two dimensions before more, trained first."""
    drawable = {name: each for name, each in vectors.items() if each.dim >= 2}
    if not drawable:
        raise StoreError("no embedding has the two dimensions of a picture", hint="evaluate with --dims 2")
    return min(
        drawable,
        key=lambda name: (
            drawable[name].geometry not in HYPERBOLIC,
            drawable[name].dim,
            drawable[name].settings.get("embedder") not in TRAINED,
        ),
    )


def dimension_charts(results: Sequence[Result]) -> list[Chart]:
    """Mean rank and MAP of every embedder that was tried at two dimensions or more."""
    families: dict[str, list[tuple[int, Result]]] = {}
    for result in results:
        name, dash, dim = result.system.rpartition("-")
        if dash and dim.isdigit():
            families.setdefault(name, []).append((int(dim), result))
    if max((len(each) for each in families.values()), default=0) < 2:
        return []
    charts = []
    for start in CHART_METRICS:
        curves = {
            name: [_reach(dim, _named(result, start)) for dim, result in sorted(rows, key=lambda each: each[0])]
            for name, rows in families.items()
        }
        first = _named(next(iter(families.values()))[0][1], start)
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


def _named(result: Result, start: str) -> Estimate:
    return next(each for name, each in result.estimates.items() if name.partition("(")[0] == start)


def _reach(dim: int, estimate: Estimate) -> CurvePoint:
    ends = (estimate.interval.low, estimate.interval.high) if estimate.interval.known else (None, None)
    return CurvePoint(dim, estimate.value, *ends)


def _told(estimate: Estimate) -> str:
    return f"{format_value(estimate.value, 2)} {format_interval(estimate.interval, 2)}"


def write_charts(pictures: Iterable[Chart], folder: Path) -> str:
    """Every chart as SVG and PNG into a folder; a sentence where they cannot be drawn here."""
    try:
        (folder / CHARTS).mkdir(parents=True, exist_ok=True)
        for each in pictures:
            write_bytes(folder / CHARTS / f"{each.name}.svg", render_svg(each).encode())
            write_bytes(folder / CHARTS / f"{each.name}.png", render_png(each))
    except MissingExtraError as error:
        return f"For charts: {error.hint}"
    except OSError as error:
        raise StoreError(
            f"{folder / CHARTS} cannot be written: {error.strerror}", hint="choose another folder"
        ) from error
    return ""
