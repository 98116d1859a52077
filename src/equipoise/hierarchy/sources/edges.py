"""Trees in files of edges: one (child, parent) pair a line, or every (descendant, ancestor) pair."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np

from equipoise.data.graph import Edge
from equipoise.data.graph import edges as read_pairs
from equipoise.data.tables import delimiter_of, format_of
from equipoise.data.text import PathLike, open_text, shown
from equipoise.errors import InputError
from equipoise.hierarchy.closure import direct_pairs
from equipoise.hierarchy.tree import Tree
from equipoise.types import Bools

READ_AS_CLOSURE = "(read as a closure)"
"""What the source of a tree says where nobody said that the pairs are closed."""


def read_edges(path: PathLike, *, closure: bool | None = None) -> Tree:
    """The tree of a CSV or TSV file of child, parent; a header and a weight are known and passed over.

    A first line that may be a header of unknown words is read as an edge, and the source of the tree says so.

    ``closure=True`` says that the pairs are descendants and all their ancestors. Those that follow from
    others are then left out of the edges, and ``Tree.closure`` gives the pairs of the file. Left alone, pairs
    of which some follow from others and none is missing are read so, and the source of the tree says it;
    ``closure=False`` takes every pair for an edge to a parent.
    """
    pairs = read_pairs(path)
    source = f"{shown(path)}{_doubt(path, pairs)}"
    if closure:
        return replace(tree_of_closure(pairs, shown(path)), source=source)
    tree = Tree.from_edges(pairs, source=source)
    if closure is None:
        direct, missing = direct_pairs(len(tree), tree.edges)
        if not len(missing) and not direct.all():
            return _reduced(tree, direct, f"{tree.source} {READ_AS_CLOSURE}")
    return tree


def _doubt(path: PathLike, pairs: list[Edge]) -> str:
    """What to say of a first edge whose nodes come nowhere else, and which may be a header."""
    first, *others = pairs
    if not others or any(node in edge for edge in others for node in first):
        return ""
    file = open_text(path)
    fields = next(csv.reader([file.first_line], delimiter=delimiter_of(file, format_of(path))))
    if [each.strip() for each in fields[:2]] != list(first):
        return ""
    return f" (line 1 was read as an edge: {first[0]} -> {first[1]})"


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
    return _reduced(closed, direct, source)


def _reduced(closed: Tree, direct: Bools, source: str) -> Tree:
    """The same nodes with the direct edges alone."""
    edges = closed.edges[direct]
    edges.setflags(write=False)
    return Tree(closed.ids, closed.names, edges, source)


def _between(tree: Tree, low: int, high: int) -> str:
    """One node above the first that stands below the second."""
    return tree.ids[int(np.intersect1d(tree.parents(low), tree.children(high))[0])]
