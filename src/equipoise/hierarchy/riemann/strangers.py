"""Whom to push away: those who rank too high are few among thousands, and chance rarely meets them.

Four sources are mixed: the nearest strangers met so far, which every node remembers; the remembered strangers
of those; kin, that is relatives of an ancestor, from siblings to the far end of the tree; and draws at large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import Aim
from equipoise.hierarchy.tree import Tree
from equipoise.types import Floats, Ints

NOBODY = -1


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """Draws at large: node i draws alike from ``members[low[i]:high[i]]``, where a node may stand often."""

    members: Ints
    low: Ints
    high: Ints

    @classmethod
    def of(cls, tree: Tree, relatives: Relatives, aim: Aim) -> Pool:
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


def no_memory(count: int, size: int) -> Ints:
    """The memory of ``count`` nodes that have met nobody."""
    return np.full((count, size), NOBODY, dtype=np.int64)


def drawn(
    nodes: Ints,
    memory: Ints,
    pool: Pool,
    relatives: Relatives,
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
    kindred = np.where(has_ancestor, kin_of.targets[np.where(has_ancestor, place, 0)], NOBODY)
    size = memory.shape[1]
    via = memory[nodes[:, None], rng.integers(0, size, (len(nodes), chained))]
    further = np.where(via == NOBODY, NOBODY, memory[via, rng.integers(0, size, via.shape)])
    return np.concatenate([at_large, kindred, further], axis=1)


def remembered(memory: Ints, nodes: Ints, candidates: Ints, distances: Floats) -> None:
    """Keep for each node the nearest of these candidates; an infinite distance marks one not to keep."""
    size = memory.shape[1]
    nearest = np.argpartition(distances, size - 1, axis=1)[:, :size]
    kept = np.take_along_axis(candidates, nearest, axis=1)
    kept[np.isinf(np.take_along_axis(distances, nearest, axis=1))] = NOBODY
    memory[nodes] = kept


def _between(low: Ints, high: Ints, count: int, rng: np.random.Generator) -> Ints:
    """``count`` whole numbers for each node, at least its low and below its high."""
    return low[:, None] + (rng.random((len(low), count)) * (high - low)[:, None]).astype(np.int64)
