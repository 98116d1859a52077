"""The shape of a tree and of its embeddings: hyperbolicity, distortion, Dasgupta cost, curvature.

All are computed from the distances between a sample of the nodes. The distance of two nodes in a tree is the number of
edges between them; roots are connected to each other by two edges, as if there were one node above them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.io.dag import Rows, shortest_paths

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.types import Floats, Ints

MAX_SAMPLE = 300
"""Nodes of which all distances are computed."""
TREE_LIKE, NOT_TREE_LIKE = 0.15, 0.4
"""Relative hyperbolicity up to which distances suit hyperbolic space, and from which they do not."""


@dataclass(frozen=True)
class TreeShape:
    """``delta`` is Gromov's hyperbolicity, ``relative_delta`` is 2 delta / diameter: 0 for a tree, at most 1."""

    delta: float
    relative_delta: float
    diameter: float
    n_nodes: int

    @property
    def sentence(self) -> str:
        """Whether these distances suit hyperbolic space."""
        verb = (
            "suits"
            if self.relative_delta <= TREE_LIKE
            else "does not suit"
            if self.relative_delta >= NOT_TREE_LIKE
            else "partly suits"
        )
        return (
            f"Hyperbolic space {verb} these distances: delta-hyperbolicity {self.delta:.2g} on {self.n_nodes:,} "
            f"nodes, {self.relative_delta:.2f} relative to the diameter (0 is a tree, 1 is not tree-like)."
        )


@dataclass(frozen=True)
class EmbeddingShape:
    """The distortion of the distances of the tree by an embedding.

    ``scale`` is the mean ratio of distances to edges. ``mean_distortion`` is the mean of
    ``|distance / (scale edges) - 1|``, ``worst_distortion`` the largest ratio over the smallest. ``dasgupta_cost`` is
    the cost of the tree for similarities exp(-distance / median), as a share of that of a tree without groups.
    """

    scale: float
    mean_distortion: float
    worst_distortion: float
    dasgupta_cost: float


def tree_shape(tree: Tree) -> TreeShape | None:
    """The hyperbolicity of a tree; None for fewer than four nodes."""
    sample, edges = _sampled_distances(tree)
    return shape_of_distances(edges) if len(sample) >= 4 else None


def shape_of_distances(distances: Floats) -> TreeShape:
    """The hyperbolicity of a distance matrix, (n, n), with the first point as base.

    With the Gromov product (x|y) = (d(x, 0) + d(y, 0) - d(x, y)) / 2, delta is the maximum over x, y of
    ``max over z of min((x|z), (z|y)) - (x|y)``: for a fixed base at most half of the value over all bases.

    >>> cycle = np.array([[min(abs(i - j), 8 - abs(i - j)) for j in range(8)] for i in range(8)], dtype=float)
    >>> shape_of_distances(cycle).delta
    2.0
    """
    product = 0.5 * (distances[:1] + distances[:, :1] - distances)
    delta = 0.0
    for row in range(len(product)):
        # max over z of min((x|z), (z|y)) for all y at once.
        largest = np.minimum(product[row][:, None], product).max(axis=0)
        delta = max(delta, float((largest - product[row]).max()))
    diameter = float(distances.max(initial=0.0))
    relative = min(1.0, 2.0 * delta / diameter) if diameter > 0.0 else 0.0
    return TreeShape(delta, relative, diameter, len(distances))


def embedding_shape(tree: Tree, vectors: NodeVectors) -> EmbeddingShape | None:
    """Distortion and Dasgupta cost of an embedding; None for fewer than four nodes."""
    sample, edges = _sampled_distances(tree)
    if len(sample) < 4:
        return None
    points = vectors.vectors[sample]
    space = geometry_named(vectors.geometry)
    measured = np.array([space.distance(point, points) for point in points])
    upper = np.triu_indices(len(sample), 1)
    ratios = measured[upper] / edges[upper]
    scale = float(ratios.mean())
    if not scale > 0.0 or not np.isfinite(scale):
        return None
    least = float(ratios.min())
    return EmbeddingShape(
        scale,
        float(np.abs(ratios / scale - 1.0).mean()),
        float(ratios.max()) / least if least > 0.0 else float("inf"),
        dasgupta_cost(tree, sample, np.exp(-measured / np.median(measured[upper]))),
    )


@lru_cache(maxsize=1)
def _sampled_distances(tree: Tree) -> tuple[Ints, Floats]:
    """A sample of the nodes and their distances, which all embeddings of the tree are compared with."""
    sample = sample_nodes(len(tree))
    return sample, tree_distances(tree, sample)


def tree_distances(tree: Tree, sample: Ints) -> Floats:
    """The numbers of edges between the nodes of a sample, (n, n)."""
    pairs = tree.edges
    if len(tree.roots) > 1:
        # One more node above all roots.
        pairs = np.concatenate([pairs, np.column_stack([tree.roots, np.full(len(tree.roots), len(tree))])])
    links = Rows.of_pairs(len(tree) + 1, np.concatenate([pairs, pairs[:, ::-1]]))
    return np.array([shortest_paths(links, np.array([node]))[sample] for node in sample], dtype=np.float64)


def dasgupta_cost(tree: Tree, sample: Ints, similarities: Floats) -> float:
    """Dasgupta's (2016) cost of the tree for similarities between a sample of its leaves and nodes.

    ``sum over pairs of w(i, j) * n(i, j)``, where n is the number of sampled nodes below the lowest common ancestor,
    divided by the sum with n equal to the size of the sample. Several parents count by the first one.
    """
    ancestors = [[node, *tree.first_ancestors(node)] for node in sample.tolist()]
    below: dict[int, int] = {}
    for path in ancestors:
        for node in path:
            below[node] = below.get(node, 0) + 1
    total, cost = 0.0, 0.0
    position = [dict.fromkeys(path) for path in ancestors]
    for i in range(len(sample)):
        for j in range(i):
            common = next((node for node in ancestors[i] if node in position[j]), None)
            weight = float(similarities[i, j])
            cost += weight * (len(sample) if common is None else below[common])
            total += weight * len(sample)
    return cost / total if total > 0.0 else float("nan")


def sample_nodes(n_nodes: int) -> Ints:
    """All nodes, or evenly spaced ones of a large tree."""
    return np.unique(np.linspace(0, n_nodes - 1, min(n_nodes, MAX_SAMPLE)).astype(np.int64))
