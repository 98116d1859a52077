"""Metrics of vectors against a known structure: classes of points, depths, and edges of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from math import inf, isnan, nan
from typing import Literal

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.segments import average_ranks
from equipoise.evidence.space import Space
from equipoise.metrics.base import DOWN, CorpusMetric, UnitMetric
from equipoise.metrics.intrinsic import (
    NOISE,
    Diversity,
    EffectiveRank,
    EmbeddingVariance,
    Hubness,
    Isotropy,
    MeanCosine,
    NormRatio,
    Uniformity,
    directions,
    mean_cosine,
    neighbourhoods,
    row_blocks,
)
from equipoise.metrics.pairs import correlation
from equipoise.types import Floats, Ints

# The silhouette, computed in blocks without storing all distances.

Distance = Literal["cosine", "euclidean"]


@dataclass(frozen=True)
class Silhouette(UnitMetric[Space]):
    """(b - a) / max(a, b) of a point at mean distance a from its own class and b from the nearest other class.

    From -1 to 1; 0 for the only point of a class and where a = b. The chance level is 0 for two classes and below 0
    for more, because b is a minimum. The cosine distance ignores norms and leaves out zero vectors.

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
    # Centred, since far from the origin the squares would dominate the differences; the points of a class are adjacent.
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
    zero vector with any other is 0. Chance is the mean cosine of all pairs: a collapsed space has a
    high value for any labels.

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
        """From the summed directions of each class, in time linear in the points."""
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

    From 0 to 1. Points tied for the last place share it equally. Chance is the share of other points that are of
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
    undefined = "at most as many points as neighbours; a zero vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1:
            raise ParameterError(f"neighbours is {self.neighbours} in Purity", hint="neighbours must be 1 or more")

    def per_unit(self, evidence: Space) -> Floats:
        """The share of each point."""
        labels = _labels(evidence, self.symbol)
        units, is_nonzero = directions(evidence)
        values = np.full(len(evidence), nan)
        if len(units) > self.neighbours:
            values[is_nonzero] = same_class_fractions(units, labels[is_nonzero], self.neighbours)
        return values

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The exact mean over all permutations of the classes."""
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


# Values of the graph alone: they do not depend on the vectors, and so not on the model.


def _edges(space: Space) -> Ints:
    if space.edges is None:
        raise UndefinedError(
            "this metric needs edges, and the space has none",
            hint="Space.of(vectors, edges=...) adds them",
        )
    return space.edges


class GraphMetric(CorpusMetric[Space]):
    """A value of the edges that does not depend on the vectors; the chance level is the same value."""

    evidence = Space

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The value itself: it does not depend on the model."""
        return self.value(evidence)


@dataclass(frozen=True)
class GraphDensity(GraphMetric):
    """The number of edges over the number of ordered pairs of points.

    From 0 to 1. The same for every model: it describes the data.

    >>> GraphDensity().measure(Space.of([[1.0], [2.0], [3.0]], edges=[[0, 1], [1, 2], [0, 2]])).value
    0.5
    """

    symbol = "GraphDensity"
    title = "density of the directed graph"
    aliases = ("graph_density",)
    formula = r"\frac{|E|}{n (n - 1)}"
    undefined = "fewer than two points"

    def value(self, evidence: Space) -> float:
        """Repeated edges count once."""
        n_points = len(evidence)
        if n_points < 2:
            return nan
        return len({*map(tuple, _edges(evidence).tolist())}) / (n_points * (n_points - 1))


@dataclass(frozen=True)
class GraphClustering(GraphMetric):
    """The share of pairs of a point's neighbours that are connected, averaged over the points.

    From 0 to 1; edges are undirected here. 0 for a point with fewer than two neighbours. The same for
    every model: it describes the data.

    >>> GraphClustering().measure(Space.of([[1.0], [2.0], [3.0]], edges=[[0, 1], [1, 2], [0, 2]])).value
    1.0
    """

    symbol = "GraphClustering"
    title = "clustering coefficient of the graph"
    aliases = ("clustering_coefficient", "average_clustering")
    formula = r"\frac{1}{n} \sum_i \frac{2 T_i}{k_i (k_i - 1)}"
    undefined = "no points"
    cite = "Watts and Strogatz, Nature 393, 1998"

    def value(self, evidence: Space) -> float:
        """Edges from a point to itself are left out."""
        neighbors: list[set[int]] = [set() for _ in range(len(evidence))]
        for one, other in _edges(evidence).tolist():
            if one != other:
                neighbors[one].add(other)
                neighbors[other].add(one)
        if not neighbors:
            return nan
        return sum(map(_local_clustering, neighbors, repeat(neighbors))) / len(neighbors)


def _local_clustering(near: set[int], neighbors: list[set[int]]) -> float:
    """The share of pairs of a point's neighbours that are joined."""
    n_pairs = len(near) * (len(near) - 1)
    return sum(len(near & neighbors[point]) for point in near) / n_pairs if n_pairs else 0.0


@dataclass(frozen=True)
class NormDepthCorrelation(CorpusMetric[Space]):
    """Spearman's correlation of each point's norm with its depth; equal values share the mean of their ranks.

    From -1 to 1; positive if points of larger depth are farther from the origin. eq accounts evaluate calls it
    norm-position and replaces the depth by the position between root (0) and leaf (1), the normalised rank of Nickel
    and Kiela: sp / (sp + lp), where sp is the shortest path from a root and lp the longest path down to a descendant.
    The norms are those of the geometry if the evidence has them, otherwise Euclidean. Points of undefined depth are
    left out. Chance is exactly 0.

    >>> NormDepthCorrelation().measure(Space.of([[0.1, 0.0], [0.0, 0.5], [0.9, 0.0]], depth=[0, 1, 2])).value
    1.0
    """

    symbol = "NormDepth"
    title = "Spearman correlation of norm and depth, or of norm and position between root and leaf"
    evidence = Space
    aliases = ("Spearman", "rho", "norm_depth", "norm_position", "spearman_norm_depth", "norm_depth_correlation")
    zero_by_chance = True
    bounds = (-1.0, 1.0)
    unit = "correlation"
    formula = r"\mathrm{Pearson}(\mathrm{rank}\,\|x\|, \mathrm{rank}\,\mathrm{depth}(x))"
    undefined = "fewer than two points of known depth, or norms or depths that are all the same"
    cite = "Nickel and Kiela, ICML 2018"

    def value(self, evidence: Space) -> float:
        """The correlation of average ranks."""
        if evidence.depth is None:
            raise UndefinedError(
                "the norm-depth correlation needs depths, and this space has none",
                hint="Space.of(vectors, depth=...) adds them",
            )
        has_depth = ~np.isnan(evidence.depth)
        return correlation(average_ranks(evidence.radii[has_depth]), average_ranks(evidence.depth[has_depth]))


def edge_cosines(space: Space) -> Floats:
    """The cosine of the two ends of each edge; NaN where an end is a zero vector."""
    edges = _edges(space)
    units, is_nonzero = directions(space)
    defined = is_nonzero[edges].all(axis=1)
    first, second = (np.cumsum(is_nonzero) - 1)[edges[defined]].T
    cosines = np.empty(len(first))
    for rows in row_blocks(len(first), units.shape[1]):
        cosines[rows] = np.einsum("ij,ij->i", units[first[rows]], units[second[rows]])
    edge_values = np.full(len(edges), nan)
    edge_values[defined] = np.clip(cosines, -1.0, 1.0)
    return edge_values


@dataclass(frozen=True)
class EdgeCoherence(CorpusMetric[Space]):
    """Mean cosine over the edges.

    From -1 to 1. Chance is the mean cosine over all pairs: a collapsed space is coherent everywhere. The
    cosine of a zero vector with any other is 0.

    >>> EdgeCoherence().measure(Space.of([[1.0, 0.0], [3.0, 4.0], [0.0, 1.0]], edges=[[0, 1], [1, 2]])).value
    0.7
    """

    symbol = "Coherence"
    title = "mean cosine of related points"
    evidence = Space
    aliases = ("coherence", "relation_coherence")
    bounds = (-1.0, 1.0)
    unit = "cosine"
    formula = r"\frac{1}{|E|} \sum_{(i, j) \in E} \cos(x_i, x_j)"
    undefined = "no edge between points that are not zero"

    def value(self, evidence: Space) -> float:
        """The mean over edges."""
        cosines = edge_cosines(evidence)
        return nan if np.isnan(cosines).all() else float(np.nan_to_num(cosines).mean())

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The mean cosine of all pairs: all pairs are equally likely as edges between random points."""
        if isnan(self.value(evidence)):
            return nan
        return mean_cosine(directions(evidence)[0], len(evidence))


@dataclass(frozen=True)
class Alignment(CorpusMetric[Space]):
    """Mean over the edges of |u - v|^alpha, where u and v are the unit vectors of the two ends.

    A collapsed space is perfectly aligned, so report it together with uniformity. Edges of zero vectors are left out.

    >>> Alignment().measure(Space.of([[2.0, 0.0], [0.0, 1.0]], edges=[[0, 1]])).value
    2.0
    """

    alpha: float = 2.0

    symbol = "Alignment"
    title = "alignment of related points"
    evidence = Space
    aliases = ("alignment", "alignment_loss")
    bounds = (0.0, inf)
    better = DOWN
    unit = "distance"
    formula = r"\frac{1}{|E|} \sum_{(i, j) \in E} \|u_i - u_j\|^{\alpha}"
    undefined = "no edge between points that are not zero"
    cite = "Wang and Isola, ICML 2020"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < inf:
            raise ParameterError(f"alignment has alpha = {self.alpha}", hint="it is a number above 0")

    def value(self, evidence: Space) -> float:
        """The mean over edges."""
        cosines = edge_cosines(evidence)
        cosines = cosines[~np.isnan(cosines)]
        return float(np.mean((2 - 2 * cosines) ** (self.alpha / 2))) if len(cosines) else nan


METRICS = (
    NormDepthCorrelation,
    Silhouette,
    EffectiveRank,
    Uniformity,
    MeanCosine,
    Hubness,
    Isotropy,
    EdgeCoherence,
    Alignment,
    ClusterCoherence,
    ClusterSeparation,
    NeighborPurity,
    GraphDensity,
    GraphClustering,
    Diversity,
    EmbeddingVariance,
    NormRatio,
)
