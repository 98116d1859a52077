"""Who belongs together: every node with those it should have near, cut into pieces of equal work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.hierarchy.links import Links
from equipoise.hierarchy.tree import CLOSURE, Tree
from equipoise.types import Bools, Floats, Ints

Family = tuple[Ints, Ints, Ints, Ints]
"""For each node where its ancestors begin, who they are, where its kin begins, and who they are."""
PIECE = 16
"""How many relatives of one node are drawn near at a time, against the same strangers."""


@dataclass(frozen=True, eq=False)
class Relatives:
    """The relatives of each node by a relation of ``Tree.pairs``, in order of position.

    ``ancestors`` and ``kin``, which are ancestors and descendants, are the same for every relation.
    ``pieces`` are (node, start, stop) rows: at most ``PIECE`` of the node's relatives each.
    """

    links: Links
    ancestors: Links
    kin: Links
    keys: Ints
    pieces: Ints

    @classmethod
    def of(cls, tree: Tree, relation: str) -> Relatives:
        """The relatives of every node of a tree."""
        keys = _keys(tree, relation)
        links = _by_keys(tree, keys)
        kin = links if relation == CLOSURE else _by_keys(tree, _keys(tree, CLOSURE))
        return cls(links, Links.of(len(tree), tree.closure()), kin, keys, _pieces(links, PIECE))

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
