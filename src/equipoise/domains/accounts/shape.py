"""The shape of a tree and of its embeddings: hyperbolicity, distortion, Dasgupta cost, curvature.

All are computed from the distances between a sample of the nodes. The distance of two nodes in a tree is the number of
edges between them; roots are connected to each other by two edges, as if there were one node above them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import StatsConfig
from equipoise.domains.accounts.reconstruction import check_has_edges, reconstruction_metrics
from equipoise.domains.accounts.trees.tree import PARENT, RELATIONS
from equipoise.errors import InputError, ShapeError
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.io.dag import Links, shortest_paths
from equipoise.stats.estimate import estimate
from equipoise.stats.result import DATA
from equipoise.stats.verdict import UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.domains.accounts.evaluation import RelationScores
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.stats.result import Result
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
        suits = (
            "suits hyperbolic space"
            if self.relative_delta <= TREE_LIKE
            else "does not suit hyperbolic space"
            if self.relative_delta >= NOT_TREE_LIKE
            else "partly suits hyperbolic space"
        )
        return (
            f"Delta-hyperbolicity {self.delta:.2g}, relative to the diameter {self.relative_delta:.2f} "
            f"(0 is a tree, 1 is not tree-like; {self.n_nodes:,} nodes): {suits}."
        )


@dataclass(frozen=True)
class EmbeddingShape:
    """How an embedding keeps the distances of the tree.

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
    sample = _sample(len(tree))
    return shape_of_distances(tree_distances(tree, sample)) if len(sample) >= 4 else None


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
        through = np.minimum(product[row][:, None], product).max(axis=0)
        delta = max(delta, float((through - product[row]).max()))
    diameter = float(distances.max(initial=0.0))
    relative = min(1.0, 2.0 * delta / diameter) if diameter > 0.0 else 0.0
    return TreeShape(delta, relative, diameter, len(distances))


def embedding_shape(tree: Tree, vectors: NodeVectors) -> EmbeddingShape | None:
    """Distortion and Dasgupta cost of an embedding; None for fewer than four nodes."""
    sample = _sample(len(tree))
    if len(sample) < 4:
        return None
    edges = tree_distances(tree, sample)
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


def tree_distances(tree: Tree, sample: Ints) -> Floats:
    """The numbers of edges between the nodes of a sample, (n, n)."""
    pairs = tree.edges
    if len(tree.roots) > 1:
        # One more node above all roots.
        pairs = np.concatenate([pairs, np.column_stack([tree.roots, np.full(len(tree.roots), len(tree))])])
    links = Links.of(len(tree) + 1, np.concatenate([pairs, pairs[:, ::-1]]))
    return np.array([shortest_paths(links, np.array([node]))[sample] for node in sample], dtype=np.float64)


def dasgupta_cost(tree: Tree, sample: Ints, similarities: Floats) -> float:
    """Dasgupta's (2016) cost of the tree for similarities between a sample of its leaves and nodes.

    ``sum over pairs of w(i, j) * n(i, j)``, where n is the number of sampled nodes below the lowest common ancestor,
    divided by the sum with n equal to the size of the sample. Several parents count by the first one.
    """
    ancestors = [[node, *_path(tree, node)] for node in sample.tolist()]
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


def align_distances(tree: Tree, ids: list[str] | None, distances: Floats) -> Floats:
    """The distances in the order of the tree's nodes; without ids they must be in that order already."""
    if ids is None:
        if len(distances) != len(tree):
            raise ShapeError(
                f"there are distances of {len(distances)} points for the {len(tree)} nodes of {tree.source}",
                hint="give one row per node, or ids in the first column",
            )
        return distances
    position = {key: index for index, key in enumerate(ids)}
    missing = [key for key in tree.ids if key not in position]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(tree)} nodes have no distances, {missing[0]} is the first",
            hint="the ids of the distances must be those of the tree",
        )
    order = np.array([position[key] for key in tree.ids])
    return distances[np.ix_(order, order)]


def ranking_by_distances(tree: Tree, distances: Floats, relation: str) -> Ranking:
    """The ranks of the targets of each node among all other nodes, by given distances in the order of the tree."""
    pairs = tree.pairs(relation)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    above, tied = np.empty(len(pairs), dtype=np.int64), np.empty(len(pairs), dtype=np.int64)
    for index, (node, target) in enumerate(pairs.tolist()):
        others = np.delete(distances[node], [node, target])
        above[index] = np.count_nonzero(others < distances[node, target])
        tied[index] = np.count_nonzero(others == distances[node, target])
    pool = np.full(len(tree), len(tree) - 1, dtype=np.int64)
    counts = np.bincount(pairs[:, 0], minlength=len(tree))
    ids = np.array(tree.ids, dtype=object)
    return Ranking.of_items(ids, counts, gain=np.ones(len(pairs)), above=above, tied=tied, depth=pool, candidates=pool)


def scores_of_distances(tree: Tree, distances: Floats) -> dict[str, RelationScores]:
    """MR and MAP of each relation by given distances; ranks are raw for parents and filtered otherwise."""
    from equipoise.domains.accounts.evaluation import RelationScores

    scores = {}
    for relation in RELATIONS:
        ranking = ranking_by_distances(tree, distances, relation)
        mean_rank, _, _, average_precision, _ = reconstruction_metrics(filtered=relation != PARENT)
        values = [metric.measure(ranking).value for metric in (mean_rank, average_precision)]
        scores[relation] = RelationScores(*values)
    return scores


@dataclass(frozen=True)
class DistanceEvaluation:
    """Ranks by a distance matrix with intervals, the scores of all relations, and the hyperbolicity."""

    result: Result
    relations: Mapping[str, RelationScores]
    shape: TreeShape

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        relations = {name: asdict(scores) for name, scores in self.relations.items()}
        return {**self.result.to_dict(), "relations": relations, "shape": asdict(self.shape)}


def evaluate_distances(
    tree: Tree, system: str, distances: Floats, *, relation: str, filtered: bool | None, config: StatsConfig
) -> DistanceEvaluation:
    """Rank the targets of every node by given distances, in the order of the tree; intervals resample branches."""
    from equipoise.domains.accounts.evaluation import branch_clusters

    check_has_edges(tree)
    filtered = relation != PARENT if filtered is None else filtered
    result = estimate(
        ranking_by_distances(tree, distances, relation),
        reconstruction_metrics(filtered=filtered),
        system=system,
        config=replace(config, clusters=branch_clusters(tree).labels),
        settings={"relation": relation, "filtered": filtered, DATA: {"tree": tree.fingerprint}, UNIT_NOUN: "node"},
    )
    sample = _sample(len(tree))
    return DistanceEvaluation(
        result, scores_of_distances(tree, distances), shape_of_distances(distances[np.ix_(sample, sample)])
    )


def _path(tree: Tree, node: int) -> list[int]:
    """The first ancestors of a node, from its parent to a root."""
    path = []
    parent = int(tree.first_parents[node])
    while parent >= 0:
        path.append(parent)
        parent = int(tree.first_parents[parent])
    return path


def _sample(n_nodes: int) -> Ints:
    """All nodes, or evenly spaced ones of a large tree."""
    return np.unique(np.linspace(0, n_nodes - 1, min(n_nodes, MAX_SAMPLE)).astype(np.int64))
