"""The combinatorial construction: edges of one length, distances of the tree, siblings at equal angles."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.training.manifolds import constant_edge_layout, lorentz_boost, spanning_tree_parents
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import ParameterError
from equipoise.geometry import distances

BINARY = Tree.from_edges([(f"{node}", f"{node // 2}") for node in range(2, 32)])


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_every_edge_of_a_tree_has_the_same_length(dim: int) -> None:
    found = tree_embedder("combinatorial", edge=3.0).fit(BINARY, dim)
    child, parent = BINARY.edges.T
    lengths = distances.poincare(found.vectors[child], found.vectors[parent])
    np.testing.assert_allclose(lengths, 3.0, atol=1e-3)


def test_distances_in_the_disk_come_near_those_in_the_tree() -> None:
    found = tree_embedder("combinatorial").fit(BINARY, 2)
    graph = networkx.Graph(BINARY.edges.tolist())
    hops = dict(networkx.all_pairs_shortest_path_length(graph))
    wanted = np.array([[hops[i][j] for j in range(len(BINARY))] for i in range(len(BINARY))])
    scaled = distances.pairwise(distances.poincare, found.vectors, found.vectors) / found.settings["edge"]
    other = wanted > 0
    assert np.abs(scaled[other] / wanted[other] - 1.0).max() < 0.1


def test_children_of_a_root_stand_at_equal_angles() -> None:
    tree = Tree.from_edges([(child, "r") for child in "abcde"])
    found = tree_embedder("combinatorial").fit(tree, 2).vectors
    angles = np.sort(np.arctan2(*found[[tree.position(child) for child in "abcde"]].T))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / 5, atol=1e-9)


def test_a_node_with_two_parents_hangs_from_the_first_and_the_other_edge_is_counted() -> None:
    tree = Tree.of(["a", "b", "c"], [("c", "b"), ("c", "a")])
    assert spanning_tree_parents(tree).tolist() == [-1, -1, 1]
    assert tree_embedder("combinatorial").fit(tree, 2).settings["unused_edges"] == 1


def test_deep_trees_stay_inside_the_ball() -> None:
    path = Tree.from_edges([(str(node), str(node - 1)) for node in range(1, 500)])
    found = tree_embedder("combinatorial").fit(path, 2)
    assert np.isfinite(found.vectors).all()
    assert distances.norm(found.vectors).max() < 1.0
    with pytest.raises(ParameterError, match=r"float64 can.*30"):
        tree_embedder("combinatorial", edge=5.0).fit(path, 2)


def test_a_boost_keeps_distances_and_can_be_undone() -> None:
    rng = np.random.default_rng(0)
    points = constant_edge_layout(BINARY, 3, 1.0, rng, 10.0)
    base = np.broadcast_to(points[7], points.shape)
    moved = lorentz_boost(base, points)
    np.testing.assert_allclose(
        distances.lorentz(moved[:-1], moved[1:]), distances.lorentz(points[:-1], points[1:]), rtol=1e-6
    )
    np.testing.assert_allclose(lorentz_boost(base, moved, inverse=True), points, rtol=1e-6, atol=1e-6)
