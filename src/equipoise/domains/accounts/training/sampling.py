"""Positive pairs and negative samples of training.

Positives of a node are its parent, its ancestors, or its ancestors and descendants. Four sources of negatives
are mixed, since a uniform sample rarely contains the few nodes that rank too high: the hard negatives of the
node (its nearest negatives so far), hard negatives of those, nodes related to a random ancestor (branch
negatives), and nodes sampled from the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.trees.tree import CLOSURE, Tree
from equipoise.io.dag import Links
from equipoise.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.trainer import NegativeSampling

RelatedLists = tuple[Ints, Ints, Ints, Ints]
"""``starts`` and ``targets`` of the ancestors of each node, then of its ancestors and descendants."""
POSITIVES_PER_CHUNK = 16
"""Positives of one node that share one set of negatives."""


@dataclass(frozen=True, eq=False)
class PositivePairs:
    """The positives of each node under a relation of ``Tree.pairs``, in ascending order.

    ``lists`` holds the positives, ``ancestors`` and ``related`` (ancestors and descendants) do not depend on the
    relation. ``keys`` has one sorted integer ``node * n_nodes + positive`` per pair. ``chunks`` has (node, start,
    stop) rows, each with at most ``POSITIVES_PER_CHUNK`` positives of the node.
    """

    lists: Links
    ancestors: Links
    related: Links
    keys: Ints
    chunks: Ints

    @classmethod
    def of(cls, tree: Tree, relation: str) -> PositivePairs:
        """The positives of every node of a tree."""
        keys = _keys(tree, relation)
        lists = _by_keys(tree, keys)
        related = lists if relation == CLOSURE else _by_keys(tree, _keys(tree, CLOSURE))
        return cls(lists, Links.of(len(tree), tree.closure()), related, keys, _chunk_rows(lists, POSITIVES_PER_CHUNK))

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def related_lists(self) -> RelatedLists:
        """The lists for branch negatives, as compiled code takes them."""
        up, related = self.ancestors, self.related
        return up.starts, up.targets, related.starts, related.targets

    @property
    def learning_rate_scale(self) -> Floats:
        """Factor of the learning rate of each node, (n_nodes,): ``min(1, 2 median(k) / k) ** 0.25``.

        ``k`` is the number of positives plus 1. A node with many positives is moved by all of them.
        """
        sizes = self.lists.counts + 1.0
        return np.asarray(np.minimum(1.0, 2.0 * np.median(sizes) / sizes) ** 0.25)

    def chunked(self, size: int) -> Ints:
        """The (node, start, stop) rows of chunks with at most this many positives."""
        return _chunk_rows(self.lists, size)

    def contains(self, nodes: Ints, others: Ints) -> Bools:
        """Whether each of ``others`` is a positive of its node, or the node itself."""
        pair_keys = nodes * len(self) + others
        index = np.minimum(np.searchsorted(self.keys, pair_keys), len(self.keys) - 1)
        return np.asarray((self.keys[index] == pair_keys) | (nodes == others))


def _keys(tree: Tree, relation: str) -> Ints:
    """One integer per pair of a node and a positive, sorted."""
    pairs = tree.pairs(relation)
    return np.sort(pairs[:, 0] * len(tree) + pairs[:, 1])


def _by_keys(tree: Tree, keys: Ints) -> Links:
    return Links.of(len(tree), np.column_stack(np.divmod(keys, max(1, len(tree)))))


def _chunk_rows(lists: Links, size: int) -> Ints:
    """The positives of each node, split at multiples of the chunk size."""
    counts = -(-lists.counts // size)
    nodes = np.repeat(np.arange(len(lists)), counts)
    nth = np.arange(len(nodes)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = lists.starts[nodes] + nth * size
    return np.column_stack([nodes, starts, np.minimum(starts + size, lists.starts[nodes + 1])])


NO_NODE = -1


@dataclass(frozen=True, eq=False, slots=True)
class NegativePool:
    """The population of negatives: node i samples uniformly from ``members[low[i]:high[i]]``; repeats are weights."""

    members: Ints
    low: Ints
    high: Ints

    @classmethod
    def of(cls, tree: Tree, positives: PositivePairs, negative_sampling: NegativeSampling) -> NegativePool:
        """All nodes uniformly, weighted by degree^0.75 (ancestors and descendants), or the nodes of equal depth."""
        count = len(tree)
        members = np.arange(count)
        low, high = np.zeros(count, dtype=np.int64), np.full(count, count)
        if negative_sampling == "degree":
            weight = (positives.related.counts + 1.0) ** 0.75
            members = np.repeat(members, np.ceil(4.0 * weight / weight.mean()).astype(np.int64))
            high = np.full(count, len(members))
        elif negative_sampling == "depth":
            level = tree.depth.astype(np.int64)
            members = np.argsort(level, kind="stable")
            sizes = np.bincount(level)
            high = np.cumsum(sizes)[level]
            low = high - sizes[level]
        return cls(members, low, high)


def empty_hard_negatives(count: int, size: int) -> Ints:
    """Hard negatives of ``count`` nodes before training, (count, size)."""
    return np.full((count, size), NO_NODE, dtype=np.int64)


def sample_negatives(
    nodes: Ints,
    hard_negatives: Ints,
    pool: NegativePool,
    positives: PositivePairs,
    counts: tuple[int, int, int],
    rng: np.random.Generator,
) -> Ints:
    """New candidates, one row per node: from the pool, branch negatives, and hard negatives of hard negatives."""
    n_uniform, n_branch, n_neighbor = counts
    from_pool = pool.members[_random_positions(pool.low[nodes], pool.high[nodes], n_uniform, rng)]
    up, related = positives.ancestors.starts, positives.related
    above = _random_positions(up[nodes], up[nodes + 1], n_branch, rng)
    has_ancestor = (up[nodes] < up[nodes + 1])[:, None]
    ancestor = np.where(has_ancestor, positives.ancestors.targets[np.where(has_ancestor, above, 0)], 0)
    index = related.starts[ancestor] + (rng.random(ancestor.shape) * related.counts[ancestor]).astype(np.int64)
    from_branch = np.where(has_ancestor, related.targets[np.where(has_ancestor, index, 0)], NO_NODE)
    size = hard_negatives.shape[1]
    via = hard_negatives[nodes[:, None], rng.integers(0, size, (len(nodes), n_neighbor))]
    of_neighbors = np.where(via == NO_NODE, NO_NODE, hard_negatives[via, rng.integers(0, size, via.shape)])
    return np.concatenate([from_pool, from_branch, of_neighbors], axis=1)


def update_hard_negatives(hard_negatives: Ints, nodes: Ints, candidates: Ints, distances: Floats) -> None:
    """Keep the nearest candidates of each node; an infinite distance marks a candidate to drop."""
    size = hard_negatives.shape[1]
    nearest = np.argpartition(distances, size - 1, axis=1)[:, :size]
    nearest_ids = np.take_along_axis(candidates, nearest, axis=1)
    nearest_ids[np.isinf(np.take_along_axis(distances, nearest, axis=1))] = NO_NODE
    hard_negatives[nodes] = nearest_ids


def _random_positions(low: Ints, high: Ints, count: int, rng: np.random.Generator) -> Ints:
    """``count`` random integers per node, at least its ``low`` and below its ``high``."""
    return low[:, None] + (rng.random((len(low), count)) * (high - low)[:, None]).astype(np.int64)
