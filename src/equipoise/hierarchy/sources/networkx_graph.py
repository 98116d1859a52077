"""Trees from NetworkX graphs."""

from __future__ import annotations

from typing import Any

from equipoise.errors import InputError, UnknownNameError
from equipoise.hierarchy.tree import Tree

DIRECTIONS = ("down", "up")


def from_networkx(graph: Any, direction: str = "down", *, name: str = "name") -> Tree:
    """The tree of a directed graph, whose edges lead ``down`` to the children or ``up`` to the parents.

    Ids are the nodes as text; the attribute ``name`` of a node is its name.
    """
    if direction not in DIRECTIONS:
        raise UnknownNameError.of("direction", direction, DIRECTIONS, more="edges lead down or up")
    if not graph.is_directed():
        raise InputError(
            "the graph has no directions, so nobody can tell parent from child",
            hint="networkx.bfs_tree(graph, root) gives a directed tree",
        )
    nodes = [(str(node), str(data.get(name) or node)) for node, data in graph.nodes(data=True)]
    pairs = [(str(left), str(right)) for left, right in graph.edges()]
    edges = pairs if direction == "up" else [(right, left) for left, right in pairs]
    return Tree.of(nodes, edges, source=str(graph.name or "networkx graph"))
