"""How well classes are separated: the silhouette, without ever holding all distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.space import Space
from equipoise.metrics.base import UnitMetric
from equipoise.metrics.directions import NOISE, blocks, directions
from equipoise.types import Floats, Ints

Distance = Literal["cosine", "euclidean"]


@dataclass(frozen=True)
class Silhouette(UnitMetric[Space]):
    """(b - a) / max(a, b) of a point at mean distance a from its own class and b from the nearest other.

    From -1 to 1 on the true labels; 0 for the only point of a class and where a = b. Chance is 0 for two
    classes and falls below with more, since b is a minimum. The cosine distance ignores norms, and points
    without a direction are left out there.

    >>> space = Space.of([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]], labels=["x", "x", "y", "y"])
    >>> Silhouette().measure(space).value
    1.0
    """

    distance: Distance = "cosine"

    symbol = "Silhouette"
    title = "silhouette on the true labels"
    evidence = Space
    aliases = ("silhouette", "silhouette_score")
    bounds = (-1.0, 1.0)
    unit = "index"
    formula = r"\frac{b_i - a_i}{\max(a_i, b_i)}"
    undefined = "a single class; with the cosine distance, a zero vector"
    cite = "Rousseeuw, Journal of Computational and Applied Mathematics 20, 1987"

    def per_unit(self, evidence: Space) -> Floats:
        """The silhouette of each point."""
        if evidence.labels is None:
            raise UndefinedError(
                "the silhouette needs classes, and this space has none",
                hint="Space.of(vectors, labels=...) adds them",
            )
        if self.distance == "cosine":
            points, kept = directions(evidence)
        else:
            points, kept = evidence.vectors.astype(np.float64), np.ones(len(evidence), dtype=bool)
        values = np.full(len(evidence), np.nan)
        values[kept] = silhouettes(points, evidence.labels[kept], self.distance)
        return values


def silhouettes(points: Floats, labels: Ints, distance: Distance) -> Floats:
    """The silhouette of each point, never holding all distances; unit vectors where it is the cosine one."""
    values = np.full(len(points), np.nan)
    _, own, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return values
    order = np.argsort(own, kind="stable")
    sums_to_classes = _cosine_sums if distance == "cosine" else _euclidean_sums
    for rows, sums in sums_to_classes(points, order, sizes):
        here = np.arange(len(sums)), own[rows]
        within = sums[here] / np.maximum(sizes[own[rows]] - 1, 1)
        means = sums / sizes
        means[here] = inf
        nearest = means.min(axis=1)
        larger = np.maximum(within, nearest)
        values[rows] = np.divide(nearest - within, larger, out=np.zeros(len(sums)), where=larger > 0)
        values[rows][sizes[own[rows]] == 1] = 0.0
    return values


def _cosine_sums(points: Floats, order: Ints, sizes: Ints) -> Iterator[tuple[slice, Floats]]:
    """Summed cosine distances of points to classes: a class of m points with sum s is m - x.s away."""
    totals = np.add.reduceat(points[order], np.cumsum(sizes) - sizes, axis=0)
    for rows in blocks(len(points), len(sizes)):
        sums = sizes - points[rows] @ totals.T
        sums[sums < NOISE * sizes] = 0.0
        yield rows, sums


def _euclidean_sums(points: Floats, order: Ints, sizes: Ints) -> Iterator[tuple[slice, Floats]]:
    """Summed euclidean distances of points to classes, each distance taken once and counted at both ends."""
    # Centred, since far from the origin the squares would drown the differences; a class side by side.
    points = (points - points.mean(axis=0))[order]
    squares = np.einsum("ij,ij->i", points, points)
    starts, classes = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    floor = 8 * np.finfo(float).eps * squares.max()
    sums = np.zeros((len(points), len(sizes)))
    for rows in blocks(len(points), len(points)):
        distances = points[rows] @ points[rows.start :].T
        distances *= -2.0
        distances += squares[rows, None]
        distances += squares[rows.start :]
        distances[distances < floor] = 0.0
        np.fill_diagonal(distances, 0.0)
        np.sqrt(distances, out=distances)
        first, last = classes[rows.start], classes[rows.stop - 1]
        edges = np.maximum(starts - rows.start, 0)
        sums[rows, first:] += np.add.reduceat(distances, edges[first:], axis=1)
        later = distances[:, rows.stop - rows.start :]
        sums[rows.stop :, first : last + 1] += np.add.reduceat(later, edges[first : last + 1], axis=0).T
    place = np.argsort(order)
    return ((rows, sums[place[rows]]) for rows in blocks(len(points), len(sizes)))
