"""A hierarchy: nodes with names, and edges to their parents. Several roots and several parents are allowed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError, UnknownNameError, did_you_mean
from equipoise.io import dag
from equipoise.io.dag import Edge, Rows, find_cycle, longest_paths, reachable, shortest_paths
from equipoise.types import Bools, Floats, Ints

# Requirements of a hierarchy: unique ids, known parents, no cycle.

Node = str | tuple[str, str]
ErrorExcerpt = Callable[[Sequence[str]], str]
PATH_SEPARATOR = ":"
"""The lines of the file that contain the given ids, shown with an error."""

_SHOWN = 12


@dataclass(frozen=True)
class TreeRows:
    """Nodes and edges as they were read, before they are validated; ids may be empty, unknown or repeated.

    ``nodes`` are (id, name) pairs, and the name is empty if there is none. ``edges`` are (child id, parent id) pairs.
    """

    nodes: Sequence[tuple[str, str]]
    edges: Sequence[Edge]
    source: str

    __checks__ = "equipoise.domains.accounts.checks"


class InvalidTreeError(InputError):
    """Nodes and edges that are not a hierarchy. ``rows`` has all of them, so that all problems can be found."""

    rows: TreeRows | None = None


class DuplicateInTreeError(InvalidTreeError, DuplicateError):
    """An id or an edge that occurs twice."""


class MissingIdError(InvalidTreeError, FormatError):
    """A node without an id."""


def validate_nodes(nodes: Iterable[tuple[str, str]], source: str, excerpt: ErrorExcerpt) -> dict[str, str]:
    """Names by id, in order; no nodes, an empty id and a duplicate id are errors."""
    names: dict[str, str] = {}
    for key, name in nodes:
        if not key:
            raise MissingIdError(f"{source} has a node with an empty id, named {name!r}", hint="every node needs an id")
        if key in names:
            raise DuplicateInTreeError(
                f"{source} has the id {key} twice",
                excerpt=excerpt([key]),
                hint="ids are unique in a hierarchy; keep one of them",
            )
        names[key] = name or key
    if not names:
        raise InputError(f"{source} has no nodes", hint="a hierarchy has at least one node")
    return names


def validate_edges(edges: Iterable[Edge], ids: dict[str, int], source: str, excerpt: ErrorExcerpt) -> Ints:
    """(child, parent) positions of edges between known ids, none of them twice, and no cycle."""
    pairs_so_far: dict[Edge, None] = {}
    pairs = []
    for child, parent in edges:
        edge = (child, parent)
        for end in edge:
            if end not in ids:
                raise _orphan(edge, end, ids, source, excerpt)
        if child == parent:
            raise InvalidTreeError(
                f"{source}: {child} is its own parent",
                excerpt=excerpt([child]),
                hint="leave the parent of a root empty",
            )
        if edge in pairs_so_far:
            raise DuplicateInTreeError(
                f"{source} gives the edge {child} -> {parent} twice",
                excerpt=excerpt([child]),
                hint="keep one of them",
            )
        pairs_so_far[edge] = None
        pairs.append((ids[child], ids[parent]))
    edge_array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    parents, children = Rows.of_pairs(len(ids), edge_array), Rows.of_pairs(len(ids), edge_array[:, ::-1])
    if (longest_paths(parents, children) < 0).any():
        raise _cycle(find_cycle(pairs_so_far), source, excerpt)
    return edge_array


def unknown_node_error(name: str, ids: Iterable[str], source: str) -> UnknownNameError:
    """The error for an id that a hierarchy does not hold."""
    return UnknownNameError(
        f"{source} has no node {name!r}", hint=did_you_mean(name, ids) or "give the id, the name, or the path of names"
    )


def _orphan(edge: Edge, absent: str, ids: Iterable[str], source: str, excerpt: ErrorExcerpt) -> InvalidTreeError:
    child, parent = edge
    nearest = did_you_mean(absent, ids) if absent else ""
    if absent == parent:
        return InvalidTreeError(
            f"{source}: the parent of {child} is {parent!r}, which does not exist",
            excerpt=excerpt([child]),
            hint=nearest or "add that node, leave the parent empty, or use --orphans root or --orphans drop",
        )
    return InvalidTreeError(
        f"{source}: the edge {child} -> {parent} is of {child!r}, which does not exist",
        hint=nearest or "add that node, or drop the edge",
    )


def _cycle(nodes: list[str], source: str, excerpt: ErrorExcerpt) -> InvalidTreeError:
    path = [*nodes, nodes[0]]
    cycle_nodes = path if len(path) <= _SHOWN else [*path[: _SHOWN - 2], f"... {len(path) - _SHOWN + 1} more", path[-1]]
    return InvalidTreeError(
        f"{source} has a cycle of {len(nodes)} nodes: {' -> '.join(cycle_nodes)}",
        excerpt=excerpt(nodes[:5]),
        hint="an ancestor cannot be its own descendant; remove one of these edges",
    )


PARENT, ANCESTORS, CLOSURE = "parent", "ancestors", "closure"
RELATIONS = (PARENT, ANCESTORS, CLOSURE)
_Array = TypeVar("_Array", Ints, Floats)


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """Nodes in an order, and (child, parent) edges between their positions.

    Made by ``Tree.of`` or ``Tree.from_edges``, which check what they are given.

    >>> tree = Tree.of(["assets", ("cash", "Cash on hand")], [("cash", "assets")])
    >>> tree
    Tree('nodes and edges', 2 nodes, 1 edge, 1 root, 2 levels)
    >>> tree.names, tree.depth.tolist()
    (('assets', 'Cash on hand'), [0.0, 1.0])
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    edges: Ints
    source: str
    unnamed: frozenset[str] = frozenset()
    """The ids of nodes without a name; their names are their ids."""

    @classmethod
    def of(
        cls,
        nodes: Iterable[Node],
        edges: Iterable[Edge],
        *,
        source: str = "nodes and edges",
        excerpt: ErrorExcerpt = lambda ids: "",
    ) -> Tree:
        """A tree of nodes, each an id or (id, name), and of (child id, parent id) edges.

        Duplicate ids, edges to unknown ids, nodes that are their own parent, duplicate edges and
        cycles are errors that name them. ``excerpt`` gives the lines of a file for some ids.
        """
        rows = TreeRows([(node, node) if isinstance(node, str) else node for node in nodes], list(edges), source)
        try:
            names = validate_nodes(rows.nodes, source, excerpt)
            positions = {key: index for index, key in enumerate(names)}
            edge_array = validate_edges(rows.edges, positions, source, excerpt)
        except InvalidTreeError as error:
            error.rows = rows
            raise
        unnamed = frozenset(key for key, name in rows.nodes if not name)
        return cls(tuple(names), tuple(names.values()), _frozen(edge_array), source, unnamed)

    @classmethod
    def from_edges(
        cls,
        pairs: Iterable[Edge],
        names: Mapping[str, str] | None = None,
        *,
        source: str = "edges",
        excerpt: ErrorExcerpt = lambda ids: "",
    ) -> Tree:
        """A tree of the nodes in the (child, parent) pairs, in order of appearance.

        >>> Tree.from_edges([("cash", "assets"), ("bank", "assets")]).ids
        ('cash', 'assets', 'bank')
        """
        edges = list(pairs)
        name_of = names or {}
        ids = dict.fromkeys(node for pair in edges for node in pair)
        return cls.of([(node, name_of.get(node, node)) for node in ids], edges, source=source, excerpt=excerpt)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        levels = int(self.depth.max(initial=-1)) + 1
        sizes = {"node": len(self), "edge": len(self.edges), "root": len(self.roots), "level": levels}
        counts = ", ".join(f"{size} {noun}{'' if size == 1 else 's'}" for noun, size in sizes.items())
        return f"Tree({self.source!r}, {counts})"

    @cached_property
    def positions(self) -> dict[str, int]:
        """The index of each id."""
        return {key: index for index, key in enumerate(self.ids)}

    def position(self, key: str) -> int:
        """The index of this id, or of the only node of this name or path; otherwise an error with a suggestion."""
        if key in self.positions:
            return self.positions[key]
        last = key.rpartition(PATH_SEPARATOR)[2]
        named = [index for index, name in enumerate(self.names) if name == key] or [
            index for index, name in enumerate(self.names) if name == last and self.path_of_names(index) == key
        ]
        if not named:
            raise unknown_node_error(key, (*self.ids, *self.names), self.source)
        if len(named) > 1:
            paths = [(self.ids[index], self.path_of_names(index)) for index in named[:5]]
            nodes = ", ".join(path if is_random_id(node) else f"{node} ({path})" for node, path in paths)
            raise InputError(
                f"{len(named)} nodes of {self.source} have the name {key!r}", hint=f"give an id or a path: {nodes}"
            )
        return named[0]

    def path_of_names(self, position: int) -> str:
        """The names from a root to a node, as GnuCash writes them: Assets:Current Assets:Petty Cash."""
        return PATH_SEPARATOR.join(self.names[node] for node in (*reversed(self.first_ancestors(position)), position))

    def first_ancestors(self, position: int) -> list[int]:
        """The positions from the first parent of a node to a root."""
        path = []
        while (position := int(self.first_parents[position])) >= 0:
            path.append(position)
        return path

    @cached_property
    def up(self) -> Rows:
        """The parents of every node."""
        return Rows.of_pairs(len(self), self.edges)

    @cached_property
    def down(self) -> Rows:
        """The children of every node."""
        return Rows.of_pairs(len(self), self.edges[:, ::-1])

    def parents(self, position: int) -> Ints:
        """The positions of a node's parents."""
        return self.up[position]

    def children(self, position: int) -> Ints:
        """The positions of a node's children."""
        return self.down[position]

    @cached_property
    def first_parents(self) -> Ints:
        """One parent a node: the first edge on a shortest path from a root; -1 for a root.

        >>> Tree.from_edges([("c", "b"), ("b", "a"), ("c", "a")]).first_parents.tolist()
        [2, 2, -1]
        """
        parents = np.full(len(self), -1, dtype=np.int64)
        child, parent = self.edges[:, 0], self.edges[:, 1]
        shortest = self.depth[parent] + 1.0 == self.depth[child]
        # Written from the last edge to the first, so that the first one is kept.
        parents[child[shortest][::-1]] = parent[shortest][::-1]
        return _frozen(parents)

    @cached_property
    def roots(self) -> Ints:
        """The nodes without a parent; an isolated node is one of them."""
        return _frozen(np.flatnonzero(self.up.counts == 0))

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without a child; an isolated node is one of them."""
        return _frozen(np.flatnonzero(self.down.counts == 0))

    @property
    def is_forest(self) -> bool:
        """Whether no node has several parents."""
        return bool((self.up.counts <= 1).all())

    @cached_property
    def isolated(self) -> Bools:
        """Which nodes have neither parent nor child."""
        return (self.up.counts == 0) & (self.down.counts == 0)

    @cached_property
    def depth(self) -> Floats:
        """sp: the shortest path from a root to each node; 0 for a root."""
        return _frozen(shortest_paths(self.down, self.roots).astype(np.float64))

    @cached_property
    def height(self) -> Floats:
        """lp: the longest path from each node down to a descendant; 0 for a leaf."""
        return _frozen(longest_paths(self.down, self.up).astype(np.float64))

    @cached_property
    def normalised_rank(self) -> Floats:
        """sp / (sp + lp): 0 for a root, 1 for a leaf below one, NaN for an isolated node.

        >>> Tree.from_edges([("c", "b"), ("b", "a")]).normalised_rank.tolist()
        [1.0, 0.5, 0.0]
        """
        length = self.depth + self.height
        return _frozen(np.divide(self.depth, length, out=np.full(len(self), np.nan), where=length > 0))

    @cached_property
    def branches(self) -> tuple[str, ...]:
        """The id of the top-level branch of each node.

        That is the root it hangs from; where only one root has children, the child of that root. A
        node of several branches takes the one with the shortest path, then the first in order. A root
        above the branches and an isolated node are separate branches.
        """
        inner_roots = self.roots[self.down.counts[self.roots] > 0]
        branch_roots = self.children(int(inner_roots[0])) if len(inner_roots) == 1 else inner_roots
        branch = np.arange(len(self))
        depth = shortest_paths(self.down, branch_roots)
        for level in range(1, int(depth.max(initial=0)) + 1):
            layer = np.flatnonzero(depth == level - 1)
            owners, below = self.down.gather(layer)
            next_layer = depth[below] == level
            below, inherited = below[next_layer], branch[layer[owners[next_layer]]]
            branch[below] = len(self)
            np.minimum.at(branch, below, inherited)
        return tuple(self.ids[index] for index in branch)

    def closure(self) -> Ints:
        """All (descendant, ancestor) positions, each pair once, in order."""
        return self._closure

    @cached_property
    def _closure(self) -> Ints:
        return _frozen(dag.closure(len(self), self.edges))

    def pairs(self, relation: str) -> Ints:
        """(node, target) positions of a relation.

        ``parent`` gives the edges, ``ancestors`` every ancestor, ``closure`` every ancestor and every
        descendant: the undirected closure.
        """
        if relation == PARENT:
            return self.edges
        if relation == ANCESTORS:
            return self.closure()
        if relation == CLOSURE:
            return np.concatenate([self.closure(), self.closure()[:, ::-1]])
        raise UnknownNameError.of("relation", relation, RELATIONS, more=f"there are: {', '.join(RELATIONS)}")

    def rooted(self, name: str = "(root)") -> Tree:
        """The same hierarchy under one root: an invented one, unless there is one root already.

        The artificial root is last, so that all indices are unchanged.
        """
        if len(self.roots) == 1:
            return self
        nodes = [*zip(self.ids, self.names, strict=True), (name, name)]
        edges = [*self.named_edges(), *((self.ids[root], name) for root in self.roots)]
        return replace(Tree.of(nodes, edges, source=self.source), unnamed=self.unnamed)

    def subtree(self, key: str) -> Tree:
        """A node and all its descendants, with the edges among them.

        >>> Tree.from_edges([("c", "b"), ("b", "a"), ("d", "a")]).subtree("b").ids
        ('c', 'b')
        """
        return self.taken(reachable(self.down, self.position(key)))

    def taken(self, positions: Ints) -> Tree:
        """The nodes of these positions and the edges among them."""
        new_index = np.full(len(self), -1, dtype=np.int64)
        new_index[positions] = np.arange(len(positions))
        edges = new_index[self.edges]
        ids, names = ([column[position] for position in positions] for column in (self.ids, self.names))
        edges = _frozen(edges[(edges >= 0).all(axis=1)])
        return Tree(tuple(ids), tuple(names), edges, self.source, self.unnamed.intersection(ids))

    def named_edges(self) -> list[Edge]:
        """The edges as (child id, parent id)."""
        return [(self.ids[child], self.ids[parent]) for child, parent in self.edges]

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of ids, names and edges; neither source nor the order of the edges counts."""
        ordered = self.edges[np.lexsort((self.edges[:, 1], self.edges[:, 0]))]
        content = json.dumps([self.ids, self.names, ordered.tolist()], separators=(",", ":"))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array


ORPHAN_POLICIES = ("error", "root", "drop")
"""The treatment of a node whose parent does not exist, and of its descendants."""


def is_random_id(key: str) -> bool:
    """Whether an id is a GUID of GnuCash, which is replaced by names in output."""
    return re.fullmatch("[0-9a-f]{32}", key) is not None


def orphan_edges(rows: TreeRows) -> list[Edge]:
    """The edges to parents that do not exist."""
    known = {key for key, _ in rows.nodes}
    return [(child, parent) for child, parent in rows.edges if parent not in known]


def with_orphans(rows: TreeRows, policy: str) -> Tree:
    """The tree of rows in which some parents do not exist.

    ``root`` makes nodes without an existing parent roots; ``drop`` leaves them and their descendants out. ``source``
    states how many there were.

    >>> rows = TreeRows([("1", "Assets"), ("21", "Loans"), ("211", "Bank loan")], [("21", "2"), ("211", "21")], "chart")
    >>> with_orphans(rows, "root")
    Tree('chart (1 orphan as root)', 3 nodes, 1 edge, 2 roots, 2 levels)
    >>> with_orphans(rows, "drop").ids
    ('1',)
    """
    if policy not in ORPHAN_POLICIES:
        raise ParameterError(f"orphans is {policy!r}", hint=f"it is one of {', '.join(ORPHAN_POLICIES)}")
    missing = set(orphan_edges(rows))
    edges = [edge for edge in rows.edges if edge not in missing]
    if policy == "error" or not missing:
        return Tree.of(rows.nodes, rows.edges, source=rows.source)
    plural = "" if len(missing) == 1 else "s"
    count = f"{len(missing):,} orphan{plural}"
    if policy == "root":
        return Tree.of(rows.nodes, edges, source=f"{rows.source} ({count} as root{plural})")
    parents = {child for child, _ in edges}
    dropped = {child for child, _ in missing} - parents
    while below := {child for child, parent in edges if parent in dropped} - dropped:
        dropped |= below
    nodes = f"{len(dropped):,} node{'' if len(dropped) == 1 else 's'}"
    return Tree.of(
        [node for node in rows.nodes if node[0] not in dropped],
        [(child, parent) for child, parent in edges if child not in dropped and parent not in dropped],
        source=f"{rows.source} (without {count} and descendants: {nodes})",
    )
