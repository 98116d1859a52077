"""Branches of a tree that are resampled whole: those at the top, or further down where these are too few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.hierarchy.tree import Tree
from equipoise.stats.resample import FEW_DRAWS
from equipoise.types import Ids, Ints


@dataclass(frozen=True)
class Branches:
    """The branch of each node, by the id of its top, and how many levels of branches stand above these."""

    of_nodes: Ids
    level: int

    def __len__(self) -> int:
        return len(set(self.of_nodes.tolist()))

    @property
    def sentence(self) -> str:
        """What a caption says of them."""
        told = f"Whole branches are resampled: {len(self)}"
        if not self.level:
            return f"{told} at the top."
        levels = "one level" if self.level == 1 else f"{self.level} levels"
        return f"{told} of them, {levels} below the top, since those at the top are too few for any test."


def resampled_branches(tree: Tree) -> Branches:
    """The top-level branches; below ten of them, those of the first level that has as many.

    With five branches no pattern of signs is rarer than one in sixteen, so that not even a random embedding
    could be told from a perfect one. A chart of accounts rarely has more at its top. A node above the level
    is a branch of its own. Where no level has ten, the top-level branches stay.

    >>> groups = [f"{top}{group}" for top in "abc" for group in range(5)]
    >>> chart = [(group, group[0]) for group in groups] + [(f"{group}.1", group) for group in groups]
    >>> found = resampled_branches(Tree.from_edges(chart))
    >>> len(found), found.level
    (18, 1)
    """
    tops = np.array(tree.branches, dtype=object)
    found = Branches(tops, 0)
    if len(found) >= FEW_DRAWS:
        return found
    first = {tree.positions[key] for key in found.of_nodes.tolist()}
    # Leaves alone would make every node a branch, which is no clustering at all.
    for level in range(1, int(tree.depth.max(initial=0.0))):
        below = [_ancestor(node, level, tree.first_parents, first) for node in range(len(tree))]
        ids = np.array([tree.ids[each] for each in below], dtype=object)
        if len(set(below)) >= FEW_DRAWS:
            return Branches(ids, level)
    return found


def _ancestor(node: int, level: int, above: Ints, tops: set[int]) -> int:
    """The node on the way up that stands this many levels below the top of its branch."""
    way = [node]
    while way[-1] not in tops and above[way[-1]] >= 0:
        way.append(int(above[way[-1]]))
    return way[max(0, len(way) - 1 - level)]
