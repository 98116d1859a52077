"""Charts of concepts: cosine against expected similarity, distribution of cosines, and a projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from equipoise.metrics.intrinsic import directions
from equipoise.report.charts.bars import radar_chart
from equipoise.report.charts.chart import (
    LIGHT,
    TEXT_SIZE,
    Chart,
    Spec,
    chart,
    shorten_label,
    shorten_labels,
    slug,
    unique_names,
)
from equipoise.report.charts.marks import (
    PIXELS,
    Row,
    column_header,
    line,
    linear_axis,
    position,
    rectangles,
    series_points,
    text_marks,
    with_grid,
)
from equipoise.report.charts.projection import projection_chart
from equipoise.report.view_model import Point, Projection
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value

if TYPE_CHECKING:
    from equipoise.domains.concepts.results import ConceptEvaluation
    from equipoise.evidence.space import Space
    from equipoise.types import Floats, Ints

SIZE = 440
TENTHS = tuple((tenth / 10, format_value(tenth / 10, 1)) for tenth in range(-10, 11, 2))
BAND, WIDTH, BIN = 64, 520, 0.05
MAX_MODEL_LENGTH = 20
"""Characters of a model's name in a title."""
SUBTITLE_WIDTH = 78
"""Characters per line of a subtitle."""


def similarity_chart(
    model: str, pairs: Sequence[str], predicted: Floats, expected: Floats, correlation: str = ""
) -> Chart:
    """A dot per pair: the expected similarity, and the cosine; on the line they are equal."""
    low = min(0.0, float(np.floor(predicted.min(initial=0.0) * 5) / 5))
    x = linear_axis(0.0, 1.0, [tick for tick in TENTHS if tick[0] >= 0], "expected similarity (0 to 1)")
    y = linear_axis(low, 1.0, [tick for tick in TENTHS if tick[0] >= low - 1e-9], "cosine of the two texts (-1 to 1)")
    where = position(with_grid(x), with_grid(y))
    rows: list[Row] = [
        {"x": float(value), "y": float(cosine), "tooltip": f"{name}: expected {value:.2f}, cosine {cosine:.2f}"}
        for name, cosine, value in zip(pairs, predicted, expected, strict=True)
    ]
    farthest = int(np.argmax(np.abs(predicted - expected)))
    suffix = f" {correlation}." if correlation else ""
    return chart(
        f"similarity-{slug(model)}",
        f"Cosine and expected similarity: {shorten_label(model, MAX_MODEL_LENGTH)}",
        f"{format_count(len(rows))} pairs.{suffix} Farthest from the line: {rows[farthest]['tooltip']}.",
        [
            line([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}], where, LIGHT["chance"], strokeDash=[5, 3]),
            series_points(rows, where, LIGHT["lead"], "circle", size=56),
        ],
        subtitle=f"Dashed: cosine = expected.{suffix}",
        width=SIZE,
        height=SIZE,
    )


def cosine_histogram(cosines: Mapping[str, Floats], related: Mapping[str, Floats] | None = None) -> Chart:
    """A histogram per model: cosines of all pairs of concepts, and as a line those of pairs within a cluster."""
    all_cosines = [*cosines.values(), *(related or {}).values()]
    first = min(0, int(np.floor(min(values.min() for values in all_cosines) / BIN)))
    # Rounded, since a cosine of exactly 0 belongs above the edge at 0.
    edges = np.round(np.arange(first, round(1 / BIN) + 2) * BIN, 6)
    low = float(edges[0])
    x = linear_axis(low, 1.0 + BIN, [tick for tick in TENTHS if tick[0] >= low], "cosine of two concepts")
    layers: list[Spec] = []
    for place, (model, values) in enumerate(cosines.items()):
        layers += _histogram(model, (place + 1) * BAND - 4, values, (related or {}).get(model), edges, x)
    labels = shorten_labels(list(cosines), 28)
    names = [{"text": label, "at": (place + 0.75) * BAND} for place, label in enumerate(labels)]
    label_position = {"x": {"value": -12}, "y": {"field": "at", **PIXELS}}
    layers.append(text_marks(names, label_position, align="right", fontSize=TEXT_SIZE))
    if related:
        layers.append(column_header("bars: all pairs; line: pairs within a cluster", WIDTH, align="right"))
    means = [f"{model} {format_value(float(values.mean()), 2)}" for model, values in cosines.items()]
    return chart(
        "cosines",
        "Cosines of pairs of concepts",
        f"Mean cosine of two concepts: {', '.join(means)}.",
        layers,
        subtitle="The scale of cosines depends on the model: a threshold for one does not fit another.",
        width=WIDTH,
        height=len(cosines) * BAND,
    )


def _histogram(
    model: str, base: float, values: Floats, related_values: Floats | None, edges: Floats, x: Spec
) -> list[Spec]:
    """The bars of all pairs on a line at ``base``, and the outline of the pairs within a cluster."""
    shares = np.histogram(values, edges)[0] / max(len(values), 1)
    related = np.zeros(0) if related_values is None else related_values
    inner = np.histogram(related, edges)[0] / max(len(related), 1)
    tops = base - (BAND - 14) * np.stack([shares, inner]) / (max(shares.max(), inner.max()) or 1.0)
    bars: list[Row] = [
        {
            "from": float(left),
            "to": float(right),
            "base": base,
            "top": float(top),
            "tooltip": f"{model}: {format_percent(float(share))} of the pairs from {left:.2f} to {right:.2f}",
        }
        for left, right, share, top in zip(edges[:-1], edges[1:], shares, tops[0], strict=True)
        if share > 0
    ]
    layers = [rectangles(bars, {"x": {**x, "field": "from"}, "x2": {"field": "to"}}, fill=LIGHT["heat3"])]
    if related_values is not None:
        steps: list[Row] = [
            {"x": float(edge), "y": float(top), "step": 2 * at + side}
            for at, top in enumerate(tops[1])
            for side, edge in enumerate((edges[at], edges[at + 1]))
        ]
        outline = {**position(x, PIXELS), "order": {"field": "step"}}
        layers.append(line(steps, outline, LIGHT["chance"], width=1.6))
    return layers


def concept_projection(
    model: str, names: Sequence[str], clusters: Sequence[str], points: Floats, caption: str
) -> Chart:
    """Concepts in the plane by cluster; ``caption`` says how many of the nearest neighbours are kept."""
    plotted = tuple(
        Point(float(at[0]), float(at[1]), label, group)
        for at, label, group in zip(points, names, clusters, strict=True)
    )
    title = f"The concepts in two dimensions: {shorten_label(model)}"
    chart = projection_chart(Projection(title, "plane", plotted), f"map-{slug(model)}")
    texts = (chart.spec["title"].get("subtitle", ""), *wrap(caption, SUBTITLE_WIDTH))
    heading = {**chart.spec["title"], "subtitle": [text for text in texts if text]}
    return replace(chart, spec={**chart.spec, "title": heading}, description=f"{chart.description} {caption}")


# The projection of points to the plane, and the share of nearest neighbours that it keeps.

NEIGHBOURS = 5


@dataclass(frozen=True)
class PlaneProjection:
    """Two coordinates a point, and what they keep of the space.

    ``kept`` is the share of the nearest neighbours of a point, by cosine, that are among its nearest in
    the plane too, averaged over the points; ``chance_overlap`` is the overlap of random points; ``variance`` is
    the share of the variance of the directions that the two axes carry.
    """

    points: Floats
    rows: Ints
    kept: float
    chance_overlap: float
    variance: float
    neighbours: int

    @property
    def caption(self) -> str:
        """The caption of the chart."""
        return (
            f"The plane keeps {format_percent(round(self.kept, 2))} of the {self.neighbours} nearest neighbours "
            f"(at random: {format_percent(round(self.chance_overlap, 2))}) "
            f"and {format_percent(round(self.variance, 2))} of the variance: distances in the plane can mislead."
        )


def project_to_plane(space: Space) -> PlaneProjection:
    """The directions along the two axes in which they differ most; points without a direction are left out."""
    units, is_nonzero = directions(space)
    n_points = len(units)
    centred = units - units.mean(axis=0) if n_points else units
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((n_points, 2))
    width = min(2, len(sizes))
    points[:, :width] = left[:, :width] * sizes[:width]
    # The sign of a direction is arbitrary; the one with a positive largest coordinate is used.
    largest = np.abs(points).argmax(axis=0) if n_points else np.zeros(2, dtype=np.int64)
    points *= np.where(points[largest, [0, 1]] < 0, -1.0, 1.0) if n_points else 1.0
    count = max(1, min(NEIGHBOURS, n_points - 1))
    near, flat = nearest_neighbors(-(units @ units.T), count), nearest_neighbors(_squares(points), count)
    shared = [len(set(a) & set(b)) for a, b in zip(near.tolist(), flat.tolist(), strict=True)]
    total = float((sizes**2).sum())
    return PlaneProjection(
        points,
        np.flatnonzero(is_nonzero),
        float(np.mean(shared)) / count if n_points > 1 else float("nan"),
        count / (n_points - 1) if n_points > 1 else float("nan"),
        float((sizes[:2] ** 2).sum()) / total if total else float("nan"),
        count,
    )


def nearest_neighbors(distances: Floats, count: int) -> Ints:
    """The nearest others of each point, nearest first."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    return np.argsort(others, axis=1, kind="stable")[:, :count].astype(np.int64)


def _squares(points: Floats) -> Floats:
    gaps = points[:, None, :] - points[None, :, :]
    return np.asarray((gaps**2).sum(axis=2))


# The charts of an evaluation: the radar chart of the scores, similarities, cosines and projections.

MIN_RADAR_AXES = 3
"""A radar chart of fewer scores is a line."""
MIN_POINTS = 3


def concept_charts(evaluation: ConceptEvaluation) -> tuple[Chart, ...]:
    """Every chart that the measured tasks allow; names of files all differ."""
    charts: list[Chart] = []
    if len(evaluation.tasks) >= MIN_RADAR_AXES:
        charts.append(
            radar_chart({comparison.score: comparison.estimates for comparison in evaluation.score_comparisons})
        )
    charts += _similarities(evaluation)
    spaces = _spaces(evaluation)
    if spaces:
        all_cosines = {name: _cosines(space) for name, space in spaces.items()}
        charts.append(cosine_histogram(all_cosines, {name: _related(space) for name, space in spaces.items()}))
        charts += [_map(name, space) for name, space in spaces.items()]
    return unique_names(charts)


def _similarities(evaluation: ConceptEvaluation) -> list[Chart]:
    charts = []
    for name, model_scores in evaluation.scores.items():
        observed = model_scores.tasks["similarity"].observed if "similarity" in model_scores.tasks else None
        if observed is None or observed.pairs is None:
            continue
        pairs, ranked, linear = observed.pairs, observed.reference_metrics["Spearman"], observed.parts["correlation"]
        subtitle = (
            f"Spearman {format_value(ranked.value, 2)} {format_interval(ranked.interval, 2)}, "
            f"Pearson {format_value(linear.value, 2)}"
        )
        ids = [str(unit_id) for unit_id in pairs.unit_ids]
        charts.append(similarity_chart(name, ids, pairs.predicted, pairs.expected, subtitle))
    return charts


def _spaces(evaluation: ConceptEvaluation) -> dict[str, Space]:
    """The concepts of the clusters with their true clusters, where there are any to draw."""
    spaces = {}
    for name, model_scores in evaluation.scores.items():
        space = model_scores.tasks["clustering"].observed.space if "clustering" in model_scores.tasks else None
        if space is not None and int(directions(space)[1].sum()) >= MIN_POINTS:
            spaces[name] = space
    return spaces


def _map(name: str, space: Space) -> Chart:
    plane = project_to_plane(space)
    labels = [] if space.labels is None or space.classes is None else space.classes[space.labels].tolist()
    return concept_projection(
        name,
        [str(space.unit_ids[row]) for row in plane.rows],
        [str(labels[row]) for row in plane.rows],
        plane.points,
        plane.caption,
    )


def _cosines(space: Space) -> Floats:
    units, _ = directions(space)
    return np.asarray((units @ units.T)[np.triu_indices(len(units), 1)])


def _related(space: Space) -> Floats:
    """The cosines of the pairs within a cluster."""
    units, is_nonzero = directions(space)
    labels = np.zeros(len(units)) if space.labels is None else space.labels[is_nonzero]
    one, other = np.triu_indices(len(units), 1)
    return np.asarray((units @ units.T)[one, other][labels[one] == labels[other]])
