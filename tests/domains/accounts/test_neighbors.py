"""Nearest nodes, ancestors by norm, and nodes that are nearer than the parent."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.placement import (
    OTHER_PARENT,
    OWN_CHILD,
    SIBLING,
    ancestors_by_norm,
    displaced_nodes,
    nearest_nodes,
)
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.errors import ParameterError, UnknownNameError


def vectors_on_a_line(tree: Tree, **positions: float) -> NodeVectors:
    rows = np.array([[positions[key]] for key in tree.ids])
    return NodeVectors(tree.ids, tree.names, rows, "euclidean")


TREE = Tree.of(list("rabcdef"), [("a", "r"), ("b", "r"), ("c", "a"), ("d", "a"), ("e", "b"), ("f", "b")])


def test_the_nearest_nodes_are_sorted_by_distance() -> None:
    vectors = vectors_on_a_line(TREE, r=0.0, a=1.0, b=-1.0, c=1.5, d=2.1, e=-1.6, f=-3.0)
    neighbors = nearest_nodes(TREE, vectors, "a", 3)
    assert [item.id for item in neighbors] == ["c", "r", "d"]
    assert [item.distance for item in neighbors] == pytest.approx([0.5, 1.0, 1.1])
    assert len(nearest_nodes(TREE, vectors, "a", 100)) == len(TREE) - 1
    with pytest.raises(UnknownNameError):
        nearest_nodes(TREE, vectors, "x")
    with pytest.raises(ParameterError):
        nearest_nodes(TREE, vectors, "a", 0)


def test_ancestors_by_norm_of_an_exact_embedding_are_the_ancestors() -> None:
    vectors = tree_embedder("combinatorial").fit(TREE, 2)
    assert [item.id for item in ancestors_by_norm(TREE, vectors, "e")] == ["b", "r"]
    assert ancestors_by_norm(TREE, vectors, "r") == []


def test_an_exact_embedding_has_no_displaced_nodes() -> None:
    assert displaced_nodes(TREE, tree_embedder("combinatorial").fit(TREE, 2)) == ()


def test_displaced_nodes_have_a_kind_and_a_suggestion() -> None:
    # a has its child c nearer than its parent; c and d are siblings; f is among the children of a.
    vectors = vectors_on_a_line(TREE, r=0.0, a=1.0, b=-1.0, c=1.5, d=1.6, e=-1.6, f=1.55)
    displaced = {item.id: item for item in displaced_nodes(TREE, vectors)}
    assert displaced["a"].kind == OWN_CHILD
    assert (displaced["f"].kind, displaced["f"].suggestion) == (OTHER_PARENT, "a")
    assert displaced["f"].parent_rank == 5
    assert displaced["f"].nearest == "c"
    assert next(iter(displaced)) == "f"
    displaced_siblings = {
        item.id: item for item in displaced_nodes(TREE, vectors_on_a_line(TREE, r=0, a=1, b=-1, c=2, d=2.1, e=-2, f=-9))
    }
    assert (displaced_siblings["c"].kind, displaced_siblings["c"].suggestion) == (SIBLING, None)
