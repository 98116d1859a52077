"""Whom to push away: those who rank too high are few among thousands, and chance rarely meets them.

Four sources are mixed: the nearest strangers met so far, which every node remembers; the remembered strangers
of those; kin, that is relatives of an ancestor, from siblings to the far end of the tree; and draws at large.
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

# Who belongs together: every node with those it should have near, cut into pieces of equal work.

Family = tuple[Ints, Ints, Ints, Ints]
"""For each node where its ancestors begin, who they are, where its kin begins, and who they are."""
POSITIVES_PER_CHUNK = 16
"""How many relatives of one node are drawn near at a time, against the same strangers."""


@dataclass(frozen=True, eq=False)
class PositivePairs:
    """The relatives of each node by a relation of ``Tree.pairs``, in order of position.

    ``ancestors`` and ``kin``, which are ancestors and descendants, are the same for every relation.
    ``pieces`` are (node, start, stop) rows: at most ``POSITIVES_PER_CHUNK`` of the node's relatives each.
    """

    links: Links
    ancestors: Links
    kin: Links
    keys: Ints
    pieces: Ints

    @classmethod
    def of(cls, tree: Tree, relation: str) -> PositivePairs:
        """The relatives of every node of a tree."""
        keys = _keys(tree, relation)
        links = _by_keys(tree, keys)
        kin = links if relation == CLOSURE else _by_keys(tree, _keys(tree, CLOSURE))
        return cls(links, Links.of(len(tree), tree.closure()), kin, keys, _pieces(links, POSITIVES_PER_CHUNK))

    def __len__(self) -> int:
        return len(self.links)

    @property
    def family(self) -> Family:
        """Whom a node may meet by way of an ancestor, as compiled code takes it."""
        up, kin = self.ancestors, self.kin
        return up.starts, up.targets, kin.starts, kin.targets

    @property
    def pace(self) -> Floats:
        """How much of a step each node takes: one that has many near is moved by all, and hurries less.

        One for most nodes, less by the fourth root of the number of relatives above twice the median.
        """
        relatives = self.links.counts + 1.0
        return np.asarray(np.minimum(1.0, 2.0 * np.median(relatives) / relatives) ** 0.25)

    def cut(self, size: int) -> Ints:
        """The (node, start, stop) rows of pieces with at most this many relatives."""
        return _pieces(self.links, size)

    def include(self, nodes: Ints, others: Ints) -> Bools:
        """Whether each other is a relative of its node, or the node itself."""
        wanted = nodes * len(self) + others
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.asarray((self.keys[place] == wanted) | (nodes == others))


def _keys(tree: Tree, relation: str) -> Ints:
    """One number for each pair of a node and a relative, sorted."""
    pairs = tree.pairs(relation)
    return np.sort(pairs[:, 0] * len(tree) + pairs[:, 1])


def _by_keys(tree: Tree, keys: Ints) -> Links:
    return Links.of(len(tree), np.column_stack(np.divmod(keys, max(1, len(tree)))))


def _pieces(links: Links, size: int) -> Ints:
    """Each node's run of relatives, cut at multiples of the piece size."""
    counts = -(-links.counts // size)
    nodes = np.repeat(np.arange(len(links)), counts)
    nth = np.arange(len(nodes)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = links.starts[nodes] + nth * size
    return np.column_stack([nodes, starts, np.minimum(starts + size, links.starts[nodes + 1])])


NO_NODE = -1


@dataclass(frozen=True, eq=False, slots=True)
class NegativePool:
    """Draws at large: node i draws alike from ``members[low[i]:high[i]]``, where a node may stand often."""

    members: Ints
    low: Ints
    high: Ints

    @classmethod
    def of(cls, tree: Tree, relatives: PositivePairs, aim: NegativeSampling) -> NegativePool:
        """All nodes alike, by their number of kin to the power of 3/4, or of the node's own depth."""
        count = len(tree)
        members = np.arange(count)
        low, high = np.zeros(count, dtype=np.int64), np.full(count, count)
        if aim == "degree":
            weight = (relatives.kin.counts + 1.0) ** 0.75
            members = np.repeat(members, np.ceil(4.0 * weight / weight.mean()).astype(np.int64))
            high = np.full(count, len(members))
        elif aim == "depth":
            level = tree.depth.astype(np.int64)
            members = np.argsort(level, kind="stable")
            sizes = np.bincount(level)
            high = np.cumsum(sizes)[level]
            low = high - sizes[level]
        return cls(members, low, high)


def empty_hard_negatives(count: int, size: int) -> Ints:
    """The memory of ``count`` nodes that have met nobody."""
    return np.full((count, size), NO_NODE, dtype=np.int64)


def sample_negatives(
    nodes: Ints,
    memory: Ints,
    pool: NegativePool,
    relatives: PositivePairs,
    counts: tuple[int, int, int],
    rng: np.random.Generator,
) -> Ints:
    """New candidates for each node, a row each: at large, kin, and remembered by the remembered."""
    large, kin, chained = counts
    at_large = pool.members[_between(pool.low[nodes], pool.high[nodes], large, rng)]
    up, kin_of = relatives.ancestors.starts, relatives.kin
    above = _between(up[nodes], up[nodes + 1], kin, rng)
    has_ancestor = (up[nodes] < up[nodes + 1])[:, None]
    ancestor = np.where(has_ancestor, relatives.ancestors.targets[np.where(has_ancestor, above, 0)], 0)
    place = kin_of.starts[ancestor] + (rng.random(ancestor.shape) * kin_of.counts[ancestor]).astype(np.int64)
    kindred = np.where(has_ancestor, kin_of.targets[np.where(has_ancestor, place, 0)], NO_NODE)
    size = memory.shape[1]
    via = memory[nodes[:, None], rng.integers(0, size, (len(nodes), chained))]
    further = np.where(via == NO_NODE, NO_NODE, memory[via, rng.integers(0, size, via.shape)])
    return np.concatenate([at_large, kindred, further], axis=1)


def update_hard_negatives(memory: Ints, nodes: Ints, candidates: Ints, distances: Floats) -> None:
    """Keep for each node the nearest of these candidates; an infinite distance marks one not to keep."""
    size = memory.shape[1]
    nearest = np.argpartition(distances, size - 1, axis=1)[:, :size]
    kept = np.take_along_axis(candidates, nearest, axis=1)
    kept[np.isinf(np.take_along_axis(distances, nearest, axis=1))] = NO_NODE
    memory[nodes] = kept


def _between(low: Ints, high: Ints, count: int, rng: np.random.Generator) -> Ints:
    """``count`` whole numbers for each node, at least its low and below its high."""
    return low[:, None] + (rng.random((len(low), count)) * (high - low)[:, None]).astype(np.int64)
