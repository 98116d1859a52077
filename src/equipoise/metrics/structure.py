"""Metrics of vectors against a known structure: depths and edges of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from math import inf, isnan, nan

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.segments import average_ranks
from equipoise.evidence.space import Space
from equipoise.metrics.base import DOWN, CorpusMetric
from equipoise.metrics.class_separation import ClusterCoherence, ClusterSeparation, NeighborPurity, Silhouette
from equipoise.metrics.intrinsic import (
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
    row_blocks,
)
from equipoise.metrics.pairs import correlation
from equipoise.types import Floats, Ints

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
    """Edges over the ordered pairs of points that could be joined.

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
    """The share of pairs of a point's neighbours that are joined, averaged over the points.

    From 0 to 1, edges taken without direction; 0 for a point with fewer than two neighbours. The same for
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
    norm-position, and as depth it takes the position between root (0) and leaf (1), the normalised rank of Nickel and
    Kiela: sp / (sp + lp), where sp is the shortest path from a root and lp the longest path down to a descendant.
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
    """Mean over the edges of |u - v|^alpha, u and v being the ends as unit vectors.

    At least 0, lower is better. A collapsed space is perfectly aligned: report it together with uniformity. Edges of
    zero vectors are left out.

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
