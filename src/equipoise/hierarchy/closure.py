"""The transitive closure of a hierarchy, and the way back: which of closed pairs are direct."""

from __future__ import annotations

import numpy as np

from equipoise.hierarchy.links import Links, longest_paths, runs
from equipoise.types import Bools, Ints


def closure(count: int, edges: Ints) -> Ints:
    """All (descendant, ancestor) pairs of (child, parent) edges without a cycle, each once, in order.

    From the roots down, one layer at a time: the ancestors of a node are its parents and theirs.

    >>> closure(3, np.array([[0, 1], [1, 2]])).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    parents, children = Links.of(count, edges), Links.of(count, edges[:, ::-1])
    level = longest_paths(parents, children)
    by_level = Links.of(int(level.max(initial=-1)) + 1, np.column_stack([level, np.arange(count)]))
    starts, sizes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    known = np.empty(max(16, 4 * len(edges)), dtype=np.int64)
    used = 0
    for depth in range(1, len(by_level)):
        layer = by_level[depth]
        owners, direct = parents.gather(layer)
        via, further = runs(known, starts[direct], sizes[direct])
        keys = np.concatenate([owners * count + direct, owners[via] * count + further])
        owners, ancestors = np.divmod(np.unique(keys), count)
        known = _grown(known, used + len(ancestors))
        known[used : used + len(ancestors)] = ancestors
        sizes[layer] = np.bincount(owners, minlength=len(layer))
        starts[layer] = used + np.cumsum(sizes[layer]) - sizes[layer]
        used += len(ancestors)
    descendants, ancestors = runs(known, starts, sizes)
    return np.column_stack([descendants, ancestors])


def direct_pairs(count: int, pairs: Ints) -> tuple[Bools, Ints]:
    """Which of closed pairs are direct, and the pairs that are missing for them to be closed.

    A pair is direct when no third node stands between its two.

    >>> direct, missing = direct_pairs(3, np.array([[0, 1], [0, 2], [1, 2]]))
    >>> direct.tolist(), missing.tolist()
    ([True, False, True], [])
    """
    ancestors = Links.of(count, pairs)
    via, further = ancestors.gather(pairs[:, 1])
    bridged = np.unique(pairs[via, 0] * count + further)
    keys = pairs[:, 0] * count + pairs[:, 1]
    absent = bridged[~np.isin(bridged, keys)]
    return ~np.isin(keys, bridged), np.column_stack(np.divmod(absent, count))


def _grown(array: Ints, size: int) -> Ints:
    """The same array with room for ``size`` values; doubling keeps the copying linear."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.empty(max(size, 2 * len(array)) - len(array), dtype=np.int64)])
