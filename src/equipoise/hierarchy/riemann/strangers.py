"""Which nodes are pushed away: drawn alike, by degree, or from the node's own depth."""

from __future__ import annotations

import numpy as np

from equipoise.hierarchy.riemann.relatives import Relatives
from equipoise.hierarchy.riemann.schedule import Aim
from equipoise.hierarchy.tree import Tree
from equipoise.types import Ints


class Strangers:
    """Draws candidates for each node; some may turn out to be relatives, which whoever uses them leaves out."""

    def __init__(self, tree: Tree, relatives: Relatives, aim: Aim) -> None:
        self._count = len(tree)
        self._aim = aim
        weights = (relatives.links.counts + 1.0) ** 0.75
        self._cumulated = np.cumsum(weights) / weights.sum()
        self._level = tree.depth.astype(np.int64)
        self._by_level = np.argsort(self._level, kind="stable")
        self._sizes = np.bincount(self._level)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Ints:
        """``count`` candidates for each node, a row each."""
        shape = (len(nodes), count)
        if self._aim == "degree":
            return np.minimum(np.searchsorted(self._cumulated, rng.random(shape)), self._count - 1)
        drawn = rng.integers(0, self._count, shape)
        if self._aim == "depth":
            # Half of them from the same depth: siblings and cousins are the ones that rank too high.
            level = self._level[nodes][:, None]
            own = self._starts[level] + (rng.random((len(nodes), count // 2)) * self._sizes[level]).astype(
                np.int64
            )
            drawn[:, : count // 2] = self._by_level[own]
        return drawn
