"""What a hierarchy must be before anything is computed from it: unique ids, known parents, no cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from equipoise.data.graph import Edge, find_cycle
from equipoise.errors import DuplicateError, InputError, UnknownNameError, did_you_mean
from equipoise.hierarchy.links import Links, longest_paths
from equipoise.types import Ints

Node = str | tuple[str, str]
Excerpt = Callable[[Sequence[str]], str]
"""Given ids, the lines of the file that they stand in; what an error shows."""

_SHOWN = 12


def checked_nodes(nodes: Iterable[Node], source: str, excerpt: Excerpt) -> dict[str, str]:
    """Names by id, in order; no nodes, an empty id and an id that stands twice are errors."""
    names: dict[str, str] = {}
    for node in nodes:
        key, name = (node, node) if isinstance(node, str) else node
        if not key:
            raise InputError(
                f"{source} has a node with an empty id, named {name!r}", hint="give every node an id"
            )
        if key in names:
            raise DuplicateError(
                f"{source} has the id {key} twice",
                excerpt=excerpt([key]),
                hint="ids are unique in a hierarchy; keep one of them",
            )
        names[key] = name or key
    if not names:
        raise InputError(f"{source} holds no nodes", hint="a hierarchy has one node at least")
    return names


def checked_edges(edges: Iterable[Edge], ids: dict[str, int], source: str, excerpt: Excerpt) -> Ints:
    """(child, parent) positions of edges between known ids, none of them twice, and no cycle."""
    seen: dict[Edge, None] = {}
    pairs = []
    for child, parent in edges:
        edge = (child, parent)
        for end in edge:
            if end not in ids:
                raise _orphan(edge, end, ids, source, excerpt)
        if child == parent:
            raise InputError(
                f"{source}: {child} is its own parent",
                excerpt=excerpt([child]),
                hint="leave the parent of a root empty",
            )
        if edge in seen:
            raise DuplicateError(
                f"{source} gives the edge {child} -> {parent} twice",
                excerpt=excerpt([child]),
                hint="keep one of them",
            )
        seen[edge] = None
        pairs.append((ids[child], ids[parent]))
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    parents, children = Links.of(len(ids), found), Links.of(len(ids), found[:, ::-1])
    if (longest_paths(parents, children) < 0).any():
        raise _cycle(find_cycle(seen), source, excerpt)
    return found


def unknown_node(name: str, ids: Iterable[str], source: str) -> UnknownNameError:
    """The error for an id that a hierarchy does not hold."""
    return UnknownNameError(
        f"{source} has no node {name!r}", hint=did_you_mean(name, ids) or "ids are matched letter by letter"
    )


def _orphan(edge: Edge, absent: str, ids: Iterable[str], source: str, excerpt: Excerpt) -> InputError:
    child, parent = edge
    nearest = did_you_mean(absent, ids) if absent else ""
    if absent == parent:
        return InputError(
            f"{source}: the parent of {child} is {parent!r}, which does not exist",
            excerpt=excerpt([child]),
            hint=nearest or "add that node, or leave the parent empty",
        )
    return InputError(
        f"{source}: the edge {child} -> {parent} is of {child!r}, which does not exist",
        hint=nearest or "add that node, or drop the edge",
    )


def _cycle(nodes: list[str], source: str, excerpt: Excerpt) -> InputError:
    path = [*nodes, nodes[0]]
    shown = (
        path if len(path) <= _SHOWN else [*path[: _SHOWN - 2], f"... {len(path) - _SHOWN + 1} more", path[-1]]
    )
    return InputError(
        f"{source} has a cycle of {len(nodes)} nodes: {' -> '.join(shown)}",
        excerpt=excerpt(nodes[:5]),
        hint="an ancestor cannot be its own descendant; remove one of these edges",
    )
