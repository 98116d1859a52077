"""Trees in files of edges: one (child, parent) pair a line, or every (descendant, ancestor) pair."""

from __future__ import annotations

import numpy as np

from equipoise.data.graph import Edge
from equipoise.data.graph import edges as read_pairs
from equipoise.data.text import PathLike, shown
from equipoise.errors import InputError
from equipoise.hierarchy.closure import direct_pairs
from equipoise.hierarchy.tree import Tree


def read_edges(path: PathLike, *, closure: bool = False) -> Tree:
    """The tree of a CSV or TSV file of child, parent; a header and a weight are known and passed over.

    ``closure=True`` says that the pairs are descendants and all their ancestors. Those that follow from
    others are then left out of the edges, and ``Tree.closure`` gives the pairs of the file.
    """
    pairs = read_pairs(path)
    return tree_of_closure(pairs, shown(path)) if closure else Tree.from_edges(pairs, source=shown(path))


def tree_of_closure(pairs: list[Edge], source: str) -> Tree:
    """The tree whose closure these pairs are; pairs that are not closed are an error with an example."""
    closed = Tree.from_edges(pairs, source=source)
    direct, missing = direct_pairs(len(closed), closed.edges)
    if len(missing):
        low, high = (closed.ids[place] for place in missing[0])
        between = _between(closed, *missing[0])
        raise InputError(
            f"{source} is not closed: it has {low} -> {between} -> {high}, but not {low} -> {high}, "
            f"and {len(missing)} such pairs in all",
            hint="if the pairs are edges to parents, read it without closure",
        )
    edges = closed.edges[direct]
    edges.setflags(write=False)
    return Tree(closed.ids, closed.names, edges, source)


def _between(tree: Tree, low: int, high: int) -> str:
    """One node above the first that stands below the second."""
    return tree.ids[int(np.intersect1d(tree.parents(low), tree.children(high))[0])]
