"""Class separation of vectors: silhouette, cohesion within classes, distance between classes, k-NN purity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.space import Space
from equipoise.metrics.base import CorpusMetric, UnitMetric
from equipoise.metrics.intrinsic import NOISE, directions, mean_cosine, neighbourhoods, row_blocks

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

# The silhouette, computed in blocks without storing all distances.

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
        labels = _labels(evidence, "the silhouette")
        if self.distance == "cosine":
            points, indices = directions(evidence)
        else:
            points, indices = evidence.vectors.astype(np.float64), np.ones(len(evidence), dtype=bool)
        values = np.full(len(evidence), np.nan)
        values[indices] = silhouette_samples(points, labels[indices], self.distance)
        return values


def silhouette_samples(points: Floats, labels: Ints, distance: Distance) -> Floats:
    """The silhouette of each point, never holding all distances; unit vectors where it is the cosine one."""
    values = np.full(len(points), np.nan)
    _, label_codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return values
    order = np.argsort(label_codes, kind="stable")
    sums_to_classes = _cosine_sums if distance == "cosine" else _euclidean_sums
    for rows, sums in sums_to_classes(points, order, sizes):
        own_class = np.arange(len(sums)), label_codes[rows]
        within = sums[own_class] / np.maximum(sizes[label_codes[rows]] - 1, 1)
        means = sums / sizes
        means[own_class] = inf
        nearest = means.min(axis=1)
        larger = np.maximum(within, nearest)
        values[rows] = np.divide(nearest - within, larger, out=np.zeros(len(sums)), where=larger > 0)
        values[rows][sizes[label_codes[rows]] == 1] = 0.0
    return values


def _cosine_sums(points: Floats, order: Ints, sizes: Ints) -> Iterator[tuple[slice, Floats]]:
    """Summed cosine distances of points to classes: a class of m points with sum s is m - x.s away."""
    totals = np.add.reduceat(points[order], np.cumsum(sizes) - sizes, axis=0)
    for rows in row_blocks(len(points), len(sizes)):
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
    for rows in row_blocks(len(points), len(points)):
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
    position = np.argsort(order)
    return ((rows, sums[position[rows]]) for rows in row_blocks(len(points), len(sizes)))


def _labels(space: Space, metric: str) -> Ints:
    if space.labels is None:
        raise UndefinedError(
            f"{metric} needs classes, and this space has none", hint="Space.of(vectors, labels=...) adds them"
        )
    return space.labels


def class_sums(space: Space, metric: str) -> tuple[Floats, Ints, Ints]:
    """The summed directions of each class, how many of its points have one, and how many points it has."""
    labels = _labels(space, metric)
    units, is_nonzero = directions(space)
    _, label_codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    codes = label_codes[is_nonzero]
    directed = np.bincount(codes, minlength=len(sizes))
    sums = np.zeros((len(sizes), space.vectors.shape[1]))
    if len(units):
        filled = directed > 0
        starts = (np.cumsum(directed) - directed)[filled]
        sums[filled] = np.add.reduceat(units[np.argsort(codes, kind="stable")], starts, axis=0)
    return sums, directed, sizes


@dataclass(frozen=True)
class ClusterCoherence(CorpusMetric[Space]):
    """Mean cosine over the pairs of points of a class, averaged over the classes.

    From -1 to 1. Classes have equal weight; one with a single point has no pair and is left out. The cosine of a
    zero vector with any other is 0. Chance is the mean cosine of all pairs: a collapsed space is coherent
    however it is labelled.

    >>> space = Space.of([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 4.0]], labels=["x", "x", "y", "y"])
    >>> round(ClusterCoherence().measure(space).value, 4)
    0.9
    """

    symbol = "ClusterCoherence"
    title = "mean cosine within classes"
    evidence = Space
    aliases = ("cluster_coherence",)
    bounds = (-1.0, 1.0)
    unit = "cosine"
    formula = r"\frac{1}{|C|} \sum_c \frac{\|s_c\|^2 - n_c}{n_c (n_c - 1)}, s_c = \sum_{i \in c} u_i"
    undefined = "no class of two points, or fewer than two points that are not zero"

    def value(self, evidence: Space) -> float:
        """From the summed directions of each class; no pair is looked at."""
        sums, directed, sizes = class_sums(evidence, self.symbol)
        several = sizes > 1
        if not several.any() or directed.sum() < 2:
            return nan
        squares = np.einsum("ij,ij->i", sums, sums)
        return float(np.mean((squares - directed)[several] / (sizes * (sizes - 1))[several]))

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean cosine of all pairs: all pairs are equally likely within a random class."""
        if np.isnan(self.value(evidence)):
            return nan
        return mean_cosine(directions(evidence)[0], len(evidence))


@dataclass(frozen=True)
class ClusterSeparation(CorpusMetric[Space]):
    """Mean of 1 - cosine over the points of one class and those of another, averaged over pairs of classes.

    From 0 to 2. Pairs of classes have equal weight; the cosine of a zero vector with any other is 0. Chance is the
    mean distance of all pairs of points.

    >>> space = Space.of([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], labels=["x", "x", "y"])
    >>> ClusterSeparation().measure(space).value
    1.0
    """

    symbol = "ClusterSeparation"
    title = "mean cosine distance between classes"
    evidence = Space
    aliases = ("cluster_separation",)
    bounds = (0.0, 2.0)
    unit = "distance"
    formula = r"1 - \frac{2}{|C| (|C| - 1)} \sum_{c < d} \frac{s_c \cdot s_d}{n_c n_d}"
    undefined = "a single class, or fewer than two points that are not zero"

    def value(self, evidence: Space) -> float:
        """From the mean direction of each class: their inner products are the mean cosines."""
        sums, directed, sizes = class_sums(evidence, self.symbol)
        count = len(sizes)
        if count < 2 or directed.sum() < 2:
            return nan
        means = sums / sizes[:, None]
        total = means.sum(axis=0)
        cross_sum = total @ total - np.einsum("ij,ij->", means, means)
        return float(np.clip(1.0 - cross_sum / (count * (count - 1)), 0.0, 2.0))

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean distance of all pairs: all pairs are equally likely across random classes."""
        if np.isnan(self.value(evidence)):
            return nan
        return 1.0 - mean_cosine(directions(evidence)[0], len(evidence))


@dataclass(frozen=True)
class NeighborPurity(UnitMetric[Space]):
    """The share of a point's nearest ``neighbours``, by cosine, that are of its own class.

    From 0 to 1. Points tied for the last rank share it. Chance is the share of other points that are of
    the point's class. Zero vectors are left out.

    >>> space = Space.of([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], labels=["x", "x", "y", "x"])
    >>> NeighborPurity(neighbours=1).measure(space).value
    0.5
    """

    neighbours: int = 5

    symbol = "Purity"
    title = "share of neighbours of the same class"
    evidence = Space
    aliases = ("purity", "knn_purity")
    formula = r"\frac{1}{k} \sum_{j \in N_k(i)} [\,c_j = c_i\,]"
    undefined = "no more points than neighbours; a zero vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1:
            raise ParameterError(f"purity looks at {self.neighbours} neighbours", hint="it is 1 or more")

    def per_unit(self, evidence: Space) -> Floats:
        """The share of each point."""
        labels = _labels(evidence, self.symbol)
        units, is_nonzero = directions(evidence)
        values = np.full(len(evidence), nan)
        if len(units) > self.neighbours:
            values[is_nonzero] = same_class_fractions(units, labels[is_nonzero], self.neighbours)
        return values

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The exact mean over all ways to assign the classes."""
        is_nonzero = directions(evidence)[1]
        count = int(is_nonzero.sum())
        if count <= self.neighbours:
            return nan
        sizes = np.bincount(_labels(evidence, self.symbol)[is_nonzero])
        return float((sizes * (sizes - 1)).sum() / (count * (count - 1)))


def same_class_fractions(units: Floats, labels: Ints, neighbours: int) -> Floats:
    """How much of each point's neighbourhood is of its class; ties share the last ranks."""
    shares = np.empty(len(units))
    for rows, nearer, tied, share in neighbourhoods(units, neighbours):
        same_class = labels[rows][:, None] == labels
        shares[rows] = (nearer & same_class).sum(axis=1) + share * (tied & same_class).sum(axis=1)
    return shares / neighbours
