"""The neighbourhood of a node: its nearest nodes, its ancestors by norm, and nodes that are nearer than its parent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError
from equipoise.geometry.spaces import geometry as geometry_named

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.domains.accounts.vectors import NodeVectors
    from equipoise.types import Floats

N_VOTES = 5
"""Nearest nodes whose parents are counted for a suggestion."""
MAX_NODES = 6000
"""Larger trees are not searched for displaced nodes: that needs all distances."""
OWN_CHILD, SIBLING, SAME_BRANCH, MISFILED = "own child", "sibling", "same branch", "likely misfiled"
"""What a node is to the one that it displaces as nearest node of an account, and what that suggests."""


@dataclass(frozen=True)
class Neighbor:
    """A node and its distance."""

    id: str
    name: str
    distance: float


@dataclass(frozen=True)
class DisplacedNode:
    """A node whose nearest node is not a parent.

    ``kind`` is what the nearest node is: an own child, a sibling, or another node of the same top-level branch. If it
    is in another branch, or if most of the nearest nodes are below another parent, the node is likely misfiled, and
    ``suggestion`` is the id of that parent.
    """

    id: str
    name: str
    parent: str
    nearest: str
    parent_distance: float
    nearest_distance: float
    parent_rank: int
    kind: str
    suggestion: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def nearest_nodes(tree: Tree, vectors: NodeVectors, node: str, k: int = 10) -> list[Neighbor]:
    """The nearest nodes of a node.

    Parameters
    ----------
    tree
        The tree.
    vectors
        One vector per node, in the order of the tree.
    node
        The id of the node.
    k
        The number of nodes.

    Returns
    -------
    list of Neighbor
        The nearest first; ties are in the order of the tree.

    Examples
    --------
    >>> nearest_nodes(tree, embed(tree, dim=5), "1000", k=3)  # doctest: +SKIP
    """
    if k < 1:
        raise ParameterError(f"k is {k}", hint="k is 1 or more")
    position = tree.position(node)
    distances = _distances(vectors, position)
    order = np.argsort(distances, kind="stable")[: min(k, len(tree) - 1)]
    return [Neighbor(tree.ids[other], tree.names[other], float(distances[other])) for other in order.tolist()]


def ancestors_by_norm(tree: Tree, vectors: NodeVectors, node: str) -> list[Neighbor]:
    """Ancestors of a node as the embedding alone suggests them.

    From each node to the nearest node with a smaller norm, until no norm is smaller: in a good hyperbolic embedding
    these are the parent, its parent, and so on up to a root.
    """
    norms = geometry_named(vectors.geometry).norm(vectors.vectors)
    position = tree.position(node)
    path: list[Neighbor] = []
    while True:
        distances = np.where(norms < norms[position], _distances(vectors, position), np.inf)
        above = int(distances.argmin())
        if not np.isfinite(distances[above]):
            return path
        path.append(Neighbor(tree.ids[above], tree.names[above], float(distances[above])))
        position = above


def _distances(vectors: NodeVectors, position: int) -> Floats:
    """Distances of all nodes to one node, that of the node itself infinite."""
    points = vectors.vectors
    distances = geometry_named(vectors.geometry).distance(points[position], points)
    distances[position] = np.inf
    return np.asarray(distances)


def displaced_nodes(tree: Tree, vectors: NodeVectors) -> tuple[DisplacedNode, ...]:
    """The nodes whose nearest node is not a parent, the worst ranks of the parent first; none for a large tree."""
    if len(tree) > MAX_NODES:
        return ()
    branches = tree.branches
    displaced = []
    for position in range(len(tree)):
        parents = tree.parents(position)
        if not len(parents):
            continue
        distances = _distances(vectors, position)
        parent = int(parents[distances[parents].argmin()])
        nearer = np.flatnonzero(distances < distances[parent])
        if not len(nearer):
            continue
        order = nearer[np.argsort(distances[nearer], kind="stable")]
        nearest = int(order[0])
        suggestion = _other_parent(tree, position, distances)
        if nearest in tree.children(position):
            kind, suggestion = OWN_CHILD, None
        elif suggestion is not None:
            kind = MISFILED
        elif np.isin(tree.parents(nearest), parents).any():
            kind = SIBLING
        else:
            kind = SAME_BRANCH if branches[nearest] == branches[position] else MISFILED
            suggestion = _first_parent(tree, nearest) if kind == MISFILED else None
        displaced.append(
            DisplacedNode(
                tree.ids[position],
                tree.names[position],
                tree.ids[parent],
                tree.ids[nearest],
                float(distances[parent]),
                float(distances[nearest]),
                len(nearer) + 1,
                kind,
                suggestion,
            )
        )
    return tuple(sorted(displaced, key=lambda item: -item.parent_rank))


def _other_parent(tree: Tree, position: int, distances: Floats) -> str | None:
    """The parent of most of the nearest nodes, if it is not a parent of the node."""
    nearest = np.argsort(distances, kind="stable")[:N_VOTES].tolist()
    votes = Counter(int(parent) for node in nearest for parent in tree.parents(node).tolist())
    if not votes:
        return None
    parent, count = votes.most_common(1)[0]
    is_other = parent != position and parent not in tree.parents(position)
    return tree.ids[parent] if is_other and 2 * count > N_VOTES else None


def _first_parent(tree: Tree, position: int) -> str:
    """The parent of a node, or the node itself if it is a root."""
    parent = int(tree.first_parents[position])
    return tree.ids[parent if parent >= 0 else position]
