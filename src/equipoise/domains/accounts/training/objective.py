"""The objective of tree training: the losses, the positive pairs, and the loss by which runs are compared.

For a node u, a positive v and negatives w, with the distance d of the manifold, the softmax loss is

    -log( exp(-d(u,v)^p / T) / (exp(-d(u,v)^p / T) + c * sum over w of exp(-d(u,w)^p / T)) )

with the temperature T, the power p (1 or 2) and the weight c of the negatives: the loss of Nickel and Kiela (2017,
2018) with a temperature. Refinement replaces it by a hinge on squared distances with the margin m,

    H(u, v) = sum over w of max(0, d(u,v)^2 + m - d(u,w)^2)

which bounds the number of negatives that rank before v. Its gradient is that of ``(m / D) * log(1 + D * H / m)`` with
the damping D, which limits the weight of pairs with many such negatives. Which back end uses which terms:

    numba_sgd         Euclidean    p = 1, c = 1         shared, branch and hard negatives
    numba_sgd         hyperboloid  p = 2, c = 1, 8 T    shared, then also branch and hard negatives
    numba_refinement  both         hinge                all that violate the margin
    torch_backend     hyperboloid  p = 2, c rises to 1  all nodes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.domains.accounts.trees.tree import CLOSURE, Tree
from equipoise.io.dag import Rows
from equipoise.types import Floats, Ints

POSITIVES_PER_CHUNK = 16
"""Positives of one node that share one set of negatives."""


@dataclass(frozen=True)
class Manifold:
    """The space of the points: Euclidean, or the hyperboloid of curvature -1 with the time coordinate first.

    Lorentz and Poincare embeddings are both trained on the hyperboloid: the models are isometric, and the exponential
    map is exact and cheap there (Nickel and Kiela 2018). ``max_norm`` bounds the norm of the space coordinates.
    """

    is_hyperbolic: bool
    max_norm: float


EUCLIDEAN = Manifold(False, 1e6)


def hyperboloid(radius: float = 17.0) -> Manifold:
    """Points within this distance of the origin.

    At radius 17 the time coordinate is 1e7, and the inner product of two points still has seven digits.
    """
    return Manifold(True, math.sinh(radius))


@dataclass(frozen=True, eq=False)
class PositivePairs:
    """The positives of each node under a relation of ``Tree.pairs``, in ascending order.

    ``lists`` holds the positives; ``ancestors`` and ``related`` (ancestors and descendants) do not depend on the
    relation. ``chunks`` has (node, start, stop) rows, each with at most ``POSITIVES_PER_CHUNK`` positives of the node.
    """

    lists: Rows
    ancestors: Rows
    related: Rows
    chunks: Ints

    @classmethod
    def of(cls, tree: Tree, relation: str) -> PositivePairs:
        """The positives of every node of a tree."""
        lists = _sorted_links(tree, relation)
        related = lists if relation == CLOSURE else _sorted_links(tree, CLOSURE)
        return cls(lists, Rows.of_pairs(len(tree), tree.closure()), related, chunk_rows(lists, POSITIVES_PER_CHUNK))

    def __len__(self) -> int:
        return len(self.lists.values)

    @property
    def learning_rate_scale(self) -> Floats:
        """Factor of the learning rate of each node, (n_nodes,): ``min(1, 2 median(k) / k) ** 0.25``.

        ``k`` is the number of positives plus 1. A node with many positives is moved by all of them.
        """
        sizes = self.lists.counts + 1.0
        return np.asarray(np.minimum(1.0, 2.0 * np.median(sizes) / sizes) ** 0.25)


def _sorted_links(tree: Tree, relation: str) -> Rows:
    pairs = tree.pairs(relation)
    return Rows.grouped(pairs[:, 0], pairs[:, 1], len(tree))


def chunk_rows(lists: Rows, size: int) -> Ints:
    """(node, start, stop) of the positives of each node, split at multiples of the chunk size."""
    counts = -(-lists.counts // size)
    nodes = np.repeat(np.arange(len(lists)), counts)
    rank_in_node = np.arange(len(nodes)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = lists.starts[nodes] + rank_in_node * size
    return np.column_stack([nodes, starts, np.minimum(starts + size, lists.starts[nodes + 1])])


MAX_RANKED_NODES = 6000
"""Larger trees are compared by the loss of the last epoch: ranks need all pairs of nodes."""
_ROWS_PER_BLOCK = 256


def rank_loss(manifold: Manifold, points: Floats, positives: PositivePairs, history: Sequence[float]) -> float:
    """The mean over all positives of ``log(1 + n)``, where n negatives are nearer to the node than the positive.

    The losses of training depend on the scale of the distances, and runs from different starts differ in it. This one
    does not, and it is 0 if every positive is nearer than all negatives. For a large tree it is the loss of the last
    epoch.
    """
    if len(points) > MAX_RANKED_NODES or not len(positives) or not np.isfinite(points).all():
        return history[-1] if history else math.inf
    starts, targets = positives.lists.starts, positives.lists.values
    columns = points.T.copy()
    if manifold.is_hyperbolic:
        columns[1:] *= -1.0
    squares = np.einsum("ij,ij->i", points, points)
    total = 0.0
    for begin in range(0, len(points), _ROWS_PER_BLOCK):
        end = min(begin + _ROWS_PER_BLOCK, len(points))
        # cosh of the distance, or half the squared distance; ranks need no more.
        proxies = points[begin:end] @ columns
        if not manifold.is_hyperbolic:
            proxies = 0.5 * (squares[begin:end, None] + squares) - proxies
        proxies[np.arange(end - begin), np.arange(begin, end)] = np.inf
        for row, node in enumerate(range(begin, end)):
            near = np.sort(proxies[row, targets[starts[node] : starts[node + 1]]])
            if len(near):
                # Positives among the nearer nodes are not negatives.
                total += np.log1p(_n_nearer(proxies[row], near) - np.arange(len(near))).sum()
    return float(total / len(positives))


def _n_nearer(proxies: Floats, targets: Floats) -> Floats:
    """For each of the sorted targets, the number of proxies below it."""
    if len(targets) == 1:
        return np.array([np.count_nonzero(proxies < targets[0])], dtype=np.float64)
    candidates = np.sort(proxies[proxies < targets[-1]])
    return np.maximum(np.searchsorted(candidates, targets), np.arange(len(targets))).astype(np.float64)
