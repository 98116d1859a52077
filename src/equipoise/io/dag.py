"""Directed acyclic graphs: edge lists, and levels, depths and all ancestors of all terms as arrays.

Everything is computed level by level with whole arrays, so that an ontology of 20,000 terms takes
milliseconds. Several roots and several parents are normal; a cycle is an error that names its terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import FormatError, InputError
from equipoise.io.arrays import segment_indices, segment_offsets
from equipoise.io.tables import find_delimiter, records, table_format
from equipoise.io.text import PathLike, TextFile, open_text

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints

# Edges as arrays: the targets of every node, and traversals layer by layer.


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of unequal length (CSR), such as the parents of each node: ``values[starts[i]:starts[i + 1]]`` is row ``i``.

    >>> rows = Rows.of([[4, 5], [], [6]])
    >>> rows[0], rows.counts
    (array([4, 5]), array([2, 0, 1]))
    """

    starts: Ints
    values: Ints

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Rows:
        """From lists of numbers."""
        rows = [list(row) for row in lists]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        return cls(segment_offsets(counts), np.array([node for row in rows for node in row], dtype=np.int64))

    @classmethod
    def of_pairs(cls, count: int, pairs: Ints) -> Rows:
        """From pairs of a row and a value; each row keeps the order of the pairs."""
        order = np.argsort(pairs[:, 0], kind="stable")
        return cls(segment_offsets(np.bincount(pairs[:, 0], minlength=count)), pairs[order, 1])

    @classmethod
    def grouped(cls, owner: Ints, values: Ints, rows: int) -> Rows:
        """From pairs of a row and a value; each row is in ascending order."""
        order = np.lexsort((values, owner))
        return cls(segment_offsets(np.bincount(owner, minlength=rows)), values[order])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def counts(self) -> Ints:
        """The length of each row."""
        return np.diff(self.starts)

    @property
    def owner(self) -> Ints:
        """The row of each value."""
        return np.repeat(np.arange(len(self)), self.counts)

    def slots(self, rows: Ints) -> Ints:
        """The indices in ``values`` of the values of these rows, one row after another."""
        first = self.starts[rows]
        return segment_indices(first, self.starts[rows + 1] - first)

    def gather(self, rows: Ints) -> tuple[Ints, Ints]:
        """All values of these rows, and for each its index in ``rows``."""
        return np.repeat(np.arange(len(rows)), self.counts[rows]), self.values[self.slots(rows)]

    def reversed(self) -> Rows:
        """For each index that occurs as a value, the rows that contain it: children from parents."""
        return Rows.grouped(self.values, self.owner, len(self))


def longest_paths(links: Rows, reversed_links: Rows) -> Ints:
    """The longest path from each node along ``links``; -1 for nodes that lead to a cycle.

    ``back`` is the same links reversed. A node follows one step after the last of its targets.
    """
    lengths = np.full(len(links), -1, dtype=np.int64)
    waiting = links.counts.copy()
    layer = np.flatnonzero(waiting == 0)
    steps = 0
    while len(layer):
        lengths[layer] = steps
        nodes, counts = np.unique(reversed_links.gather(layer)[1], return_counts=True)
        waiting[nodes] -= counts
        layer = nodes[waiting[nodes] == 0]
        steps += 1
    return lengths


def shortest_paths(links: Rows, starts: Ints) -> Ints:
    """The fewest steps along ``links`` from any of ``starts`` to each node; -1 if there is no path."""
    lengths = np.full(len(links), -1, dtype=np.int64)
    layer = starts
    steps = 0
    while len(layer):
        lengths[layer] = steps
        reached = np.unique(links.gather(layer)[1])
        layer = reached[lengths[reached] < 0]
        steps += 1
    return lengths


def reachable(links: Rows, start: int) -> Ints:
    """The node and all nodes that are reachable from it, in order of position."""
    return np.flatnonzero(shortest_paths(links, np.array([start])) >= 0)


# The transitive closure of a hierarchy, and the transitive reduction.


def closure(count: int, edges: Ints) -> Ints:
    """All (descendant, ancestor) pairs of (child, parent) edges without a cycle, each once, in order.

    From the roots down, one layer at a time: the ancestors of a node are its parents and theirs.

    >>> closure(3, np.array([[0, 1], [1, 2]])).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    parents = Rows.of_pairs(count, edges)
    by_level = topological_levels(parents) or []
    starts, sizes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    pairs = np.empty(max(16, 4 * len(edges)), dtype=np.int64)
    used = 0
    for layer in by_level[1:]:
        owners, direct = parents.gather(layer)
        via = np.repeat(np.arange(len(direct)), sizes[direct])
        further = pairs[segment_indices(starts[direct], sizes[direct])]
        keys = np.concatenate([owners * count + direct, owners[via] * count + further])
        owners, ancestors = np.divmod(np.unique(keys), count)
        pairs = _grown(pairs, used + len(ancestors))
        pairs[used : used + len(ancestors)] = ancestors
        sizes[layer] = np.bincount(owners, minlength=len(layer))
        starts[layer] = used + np.cumsum(sizes[layer]) - sizes[layer]
        used += len(ancestors)
    return np.column_stack([np.repeat(np.arange(count), sizes), pairs[segment_indices(starts, sizes)]])


def transitive_reduction(count: int, pairs: Ints) -> tuple[Bools, Ints]:
    """Which of closed pairs are direct, and the pairs that are missing for them to be closed.

    A pair is direct if no third node is between its two nodes.

    >>> direct, missing = transitive_reduction(3, np.array([[0, 1], [0, 2], [1, 2]]))
    >>> direct.tolist(), missing.tolist()
    ([True, False, True], [])
    """
    ancestors = Rows.of_pairs(count, pairs)
    via, further = ancestors.gather(pairs[:, 1])
    bridged = np.unique(pairs[via, 0] * count + further)
    keys = pairs[:, 0] * count + pairs[:, 1]
    absent = bridged[~np.isin(bridged, keys)]
    return ~np.isin(keys, bridged), np.column_stack(np.divmod(absent, count))


def _grown(array: Ints, size: int) -> Ints:
    """The same array with room for ``size`` values; doubling keeps the time for copies linear."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.empty(max(size, 2 * len(array)) - len(array), dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class AncestorTable:
    """The ancestors of every term, the term itself among them, and the steps up to each.

    ``rows`` is ascending within each term; ``steps`` is aligned with ``rows.values``: the length of the
    shortest upward path from the term to that ancestor, 0 for itself.
    """

    rows: Rows
    steps: Ints

    @cached_property
    def below(self) -> Ints:
        """The number of descendants of each term, itself included."""
        return np.bincount(self.rows.values, minlength=len(self.rows))


def topological_levels(parents: Rows) -> list[Ints] | None:
    """The terms by their longest path from a root, roots first; None when there is a cycle."""
    level = longest_paths(parents, parents.reversed())
    if level.min(initial=0) < 0:
        return None
    by_level = Rows.grouped(level, np.arange(len(parents)), int(level.max(initial=-1)) + 1)
    return [by_level[depth] for depth in range(len(by_level))]


def lineage(parents: Rows, by_level: list[Ints]) -> AncestorTable:
    """All ancestors of all terms with the steps up to them."""
    size = len(parents)
    owner = ancestor = step = np.zeros(0, dtype=np.int64)
    start, length = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for level in by_level:
        # A term inherits the ancestors of its parents, one step farther, and adds itself.
        parent = parents.values[parents.slots(level)]
        child = np.repeat(level, parents.counts[level])
        inherited = segment_indices(start[parent], length[parent])
        node, above, steps = _nearest(
            np.concatenate([level, np.repeat(child, length[parent])]),
            np.concatenate([level, ancestor[inherited]]),
            np.concatenate([np.zeros_like(level), step[inherited] + 1]),
            size,
        )
        terms, first, counts = np.unique(node, return_index=True, return_counts=True)
        start[terms], length[terms] = len(owner) + first, counts
        owner, ancestor = np.concatenate([owner, node]), np.concatenate([ancestor, above])
        step = np.concatenate([step, steps])
    order = np.lexsort((ancestor, owner))
    return AncestorTable(Rows(segment_offsets(length), ancestor[order]), step[order])


def _nearest(owner: Ints, ancestor: Ints, step: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Each pair of term and ancestor once, with the fewest steps."""
    key = owner * size + ancestor
    order = np.lexsort((step, key))
    first = np.ones(len(key), dtype=bool)
    first[1:] = np.diff(key[order]) != 0
    nearest = order[first]
    return owner[nearest], ancestor[nearest], step[nearest]


# Edge lists of trees and graphs: one ``child, parent`` pair per line, several parents allowed.

# Header detection: whether the first line names the columns, and which one is the parent.

Roles = tuple[str, str]

_KNOWN = {
    **dict.fromkeys(("child", "child_id", "node", "id", "source", "id1"), "child"),
    **dict.fromkeys(("parent", "parent_id", "target", "id2"), "parent"),
}
_ABOVE = {"parent", "parents", "above", "ancestor", "belongs", "super", "broader", "hypernym", "target"}
_BELOW = {"child", "below", "descendant", "sub", "narrower", "hyponym", "source", "account", "id", "code"}
_PLAIN = {"node", "guid", "uuid", "key", "number", "no", "nr", "name", "item", "term", "category", "group"}
_FILLERS = {"of", "to", "in", "the", "is", "a"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")


def standard_header_roles(fields: list[str]) -> Roles | None:
    """The roles of two columns with the usual names; None for other names.

    >>> standard_header_roles(["Parent", "id"]), standard_header_roles(["till", "cash"])
    (('parent', 'child'), None)
    """
    roles = tuple(_KNOWN.get(field.strip().casefold(), "") for field in fields)
    return (roles[0], roles[1]) if sorted(roles) == ["child", "parent"] else None


def guess_header_roles(fields: list[str], others: Iterable[str]) -> Roles | None:
    """The roles of two cells that consist of words for columns and occur nowhere else in the file.

    >>> guess_header_roles(["child_account", "ParentAccount"], ["b", "a"])
    ('child', 'parent')
    >>> guess_header_roles(["Bank account", "Asset account"], ["b", "a"])
    >>> guess_header_roles(["account", "belongs_to"], ["account", "a"])
    """
    cells = [field.strip() for field in fields]
    other_ids = set(others)
    if len(cells) != 2 or cells[0] == cells[1] or not other_ids or not other_ids.isdisjoint(cells):
        return None
    words = [{word.casefold() for word in _WORD.findall(cell)} - _FILLERS for cell in cells]
    if not all(word and word <= _ABOVE | _BELOW | _PLAIN for word in words):
        return None
    if not (words[0] | words[1]) & (_ABOVE | _BELOW):
        return None
    upside_down = bool(words[0] & _ABOVE) and not words[1] & _ABOVE
    return ("parent", "child") if upside_down else ("child", "parent")


Edge = tuple[str, str]

_WEIGHT = "weight"
"""A third column of many closure files; weights do not change the edges."""


def edge_lines(path: PathLike) -> tuple[TextFile, list[tuple[int, Edge]]]:
    """A CSV or TSV file with two columns, and its (child, parent) edges with their lines.

    A first line that names the columns is a header, and then decides their order; it may name a third
    column ``weight``, which is ignored. Unknown names are a header if they look like
    column names and occur nowhere else. Duplicate edges and cycles are not checked.
    """
    file = open_text(path)
    lines = records(file, find_delimiter(file, table_format(path)))
    if not lines:
        raise InputError(f"{file.name} holds no edges", hint="an edge is two ids: child, parent")
    columns, weighted = _header(lines)
    edges = []
    for line, fields in lines[1:] if columns else lines:
        left, right = _pair(file, line, fields[:-1] if weighted else fields)
        edges.append((line, (right, left) if columns == ("parent", "child") else (left, right)))
    return file, edges


def _pair(file: TextFile, line: int, fields: list[str]) -> tuple[str, str]:
    cleaned = [field.strip() for field in fields]
    if len(cleaned) != 2 or not all(cleaned):
        raise file.error(
            FormatError,
            line,
            "is not an edge; an edge is two ids: child, parent",
            hint="a root needs no line",
        )
    return cleaned[0], cleaned[1]


def _header(lines: list[tuple[int, list[str]]]) -> tuple[Roles | None, bool]:
    """The two column names in a first line, and whether a weight follows; None if it is an edge."""
    fields = lines[0][1]
    weighted = len(fields) == 3 and fields[2].strip().casefold() == _WEIGHT
    ids = fields[:2] if weighted else fields
    roles = standard_header_roles(ids) or guess_header_roles(
        ids, (cell.strip() for _, row in lines[1:] for cell in row)
    )
    return (roles, weighted) if roles else (None, False)


def find_cycle(pairs: Iterable[Edge]) -> list[str]:
    """The nodes of one cycle, each followed by its parent, or nothing when there is none.

    >>> find_cycle([("a", "b"), ("b", "c"), ("c", "b")])
    ['b', 'c']
    """
    parents: dict[str, list[str]] = {}
    for child, parent in pairs:
        parents.setdefault(child, []).append(parent)
    finished: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        stack = [(start, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                path.pop(node)
                finished.add(node)
            elif node in path:
                nodes = list(path)
                return nodes[nodes.index(node) :]
            elif node not in finished:
                path[node] = None
                stack.append((node, True))
                stack.extend((parent, False) for parent in parents.get(node, ()))
    return []
