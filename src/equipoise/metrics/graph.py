"""Figures of the graph alone: they say nothing about the vectors, and so nothing about the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.space import Space
from equipoise.metrics.base import CorpusMetric
from equipoise.types import need


def graph_of(space: Space) -> Any:
    """The points and edges of a space as a directed graph of networkx."""
    if space.edges is None:
        raise UndefinedError(
            "this figure is about a graph, and this space has no edges",
            hint="Space.of(vectors, edges=...) adds them",
        )
    graph = need("networkx", extra="concepts").DiGraph()
    graph.add_nodes_from(range(len(space)))
    graph.add_edges_from(space.edges.tolist())
    return graph


class OfGraph(CorpusMetric[Space]):
    """A figure of the edges, whatever the vectors are; a model that knows nothing earns the same."""

    evidence = Space

    def chance(self, evidence: Space, rng: np.random.Generator) -> float:
        """The figure itself: no model can change it."""
        return self.value(evidence)


@dataclass(frozen=True)
class GraphDensity(OfGraph):
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
        """By networkx."""
        graph = graph_of(evidence)
        if len(graph) < 2:
            return nan
        return float(need("networkx", extra="concepts").density(graph))


@dataclass(frozen=True)
class GraphClustering(OfGraph):
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
        """By networkx."""
        graph = graph_of(evidence)
        if not len(graph):
            return nan
        return float(need("networkx", extra="concepts").average_clustering(graph.to_undirected()))
