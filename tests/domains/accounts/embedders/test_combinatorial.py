"""The combinatorial construction: growing edges, parents as nearest nodes, and the tree's distances."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.evaluation import reconstruct
from equipoise.domains.accounts.training.layouts import growing_edge_layout, sibling_angle, to_ball, to_hyperboloid
from equipoise.domains.accounts.training.turning_layout import turning_layout
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import ParameterError
from equipoise.geometry import distances

BINARY = Tree.from_edges([(f"{node}", f"{node // 2}") for node in range(2, 32)])


def chart_of_accounts(seed: int, n_nodes: int) -> Tree:
    """Six classes, and accounts below random ones of the classes and groups so far."""
    rng = np.random.default_rng(seed)
    nodes, groups = [str(top) for top in range(6)], [str(top) for top in range(6)]
    edges = []
    while len(nodes) < n_nodes:
        parent = groups[int(rng.integers(len(groups)))]
        group = [f"{parent}.{len(nodes) + index}" for index in range(int(rng.integers(1, 30)))]
        edges += [(child, parent) for child in group]
        nodes += group
        if parent.count(".") < 3:
            groups += group[:2]
    return Tree.of(nodes, edges)


def nearest_nodes(points: np.ndarray) -> np.ndarray:
    """The nearest other point of each point of the ball, by all distances."""
    all_distances = distances.pairwise(distances.poincare, points, points)
    np.fill_diagonal(all_distances, np.inf)
    return all_distances.argmin(axis=1)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 10_000), n_nodes=st.sampled_from([50, 200, 500]))
def test_the_parent_is_the_nearest_node_in_two_dimensions(seed: int, n_nodes: int) -> None:
    tree = chart_of_accounts(seed, n_nodes)
    nearest = nearest_nodes(tree_embedder("combinatorial").fit(tree, 2).vectors)
    child, parent = tree.edges.T
    assert (nearest[child] == parent).all()


def caterpillar(n_levels: int, n_legs: int) -> Tree:
    """A path with leaves at each of its nodes."""
    path = [(f"{level}", f"{level - 1}") for level in range(1, n_levels)]
    return Tree.from_edges(
        [*path, *((f"{level}.{leg}", f"{level}") for level in range(n_levels) for leg in range(n_legs))]
    )


def random_tree(seed: int, n_nodes: int, n_recent: int) -> Tree:
    """Each node is below one of the ``n_recent`` nodes before it; a small ``n_recent`` gives a deep tree."""
    rng = np.random.default_rng(seed)
    edges = [(f"{node}", f"{int(rng.integers(max(0, node - n_recent), node))}") for node in range(1, n_nodes)]
    return Tree.from_edges(edges)


DEEP_TREES = {
    "chain": Tree.from_edges([(f"{node + 1}", f"{node}") for node in range(300)]),
    "caterpillar": caterpillar(120, 3),
    "several roots": Tree.from_edges(
        [(f"{top}.{node + 1}", f"{top}.{node}") for top in range(3) for node in range(150)]
    ),
    "deep": random_tree(0, 400, 10),
    "very deep": random_tree(1, 400, 3),
    "recursive": random_tree(2, 800, 800),
    "star": Tree.from_edges([(f"{node}", "top") for node in range(800)]),
}


@pytest.mark.parametrize("name", DEEP_TREES)
@pytest.mark.parametrize("embedder", ["combinatorial", "lorentz"])
def test_the_parent_is_nearest_in_trees_of_any_depth(name: str, embedder: str) -> None:
    tree = DEEP_TREES[name]
    vectors = tree_embedder(embedder, **({"epochs": 20} if embedder == "lorentz" else {})).fit(tree, 2)
    ranks = reconstruct(tree, vectors.vectors, vectors.geometry).ranking.ranks
    assert float(np.mean(1.0 / ranks)) >= 0.99


@pytest.mark.parametrize("name", DEEP_TREES)
def test_turning_layouts_are_within_the_radius(name: str) -> None:
    for radius in (1.0, 8.0, 30.0):
        radii, directions = turning_layout(DEEP_TREES[name], radius)
        assert np.isfinite(radii).all()
        assert radii.max() <= radius
        np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)


def test_the_lorentz_embedding_of_a_chart_in_two_dimensions_is_exact() -> None:
    tree = chart_of_accounts(0, 300)
    embedding = tree_embedder("lorentz").fit(tree, 2)
    nearest = nearest_nodes(distances.hyperboloid_to_ball(embedding.vectors))
    child, parent = tree.edges.T
    assert (nearest[child] == parent).all()


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_every_edge_is_longer_than_the_edge_above(dim: int) -> None:
    embedding = tree_embedder("combinatorial").fit(BINARY, dim)
    parents = BINARY.first_parents
    above = np.flatnonzero(parents >= 0)
    above = above[parents[parents[above]] >= 0]
    points = embedding.vectors
    lengths = distances.poincare(points[above], points[parents[above]])
    parent_lengths = distances.poincare(points[parents[above]], points[parents[parents[above]]])
    assert (lengths > 1.02 * parent_lengths).all()


def test_distances_in_the_disk_are_close_to_those_along_the_edges() -> None:
    embedding = tree_embedder("combinatorial").fit(BINARY, 2)
    child, parent = BINARY.edges.T
    lengths = distances.poincare(embedding.vectors[child], embedding.vectors[parent])
    graph = networkx.Graph()
    graph.add_weighted_edges_from(zip(child.tolist(), parent.tolist(), lengths.tolist(), strict=True))
    path_lengths = dict(networkx.all_pairs_dijkstra_path_length(graph))
    expected = np.array([[path_lengths[i][j] for j in range(len(BINARY))] for i in range(len(BINARY))])
    measured = distances.pairwise(distances.poincare, embedding.vectors, embedding.vectors)
    off_diagonal = expected > 0
    assert np.abs(measured[off_diagonal] / expected[off_diagonal] - 1.0).max() < 0.15


@given(shorter=st.floats(0.1, 8.0), factor=st.floats(1.0, 3.0))
def test_siblings_at_the_sibling_angle_are_not_nearer_than_their_parent(shorter: float, factor: float) -> None:
    angle = float(sibling_angle(np.array(shorter)))
    radii = np.array([shorter, shorter * factor])
    directions = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    points = to_ball(radii, directions)
    assert distances.poincare(points[0], points[1]) >= radii.max() * (1.0 - 1e-6)


def test_children_of_a_root_are_at_equal_angles() -> None:
    tree = Tree.from_edges([(child, "r") for child in "abcde"])
    vectors = tree_embedder("combinatorial").fit(tree, 2).vectors
    angles = np.sort(np.arctan2(*vectors[[tree.position(child) for child in "abcde"]].T))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / 5, atol=1e-9)


def test_a_node_with_two_parents_is_below_the_first_and_the_other_edge_is_counted() -> None:
    tree = Tree.of(["a", "b", "c"], [("c", "b"), ("c", "a")])
    embedding = tree_embedder("combinatorial").fit(tree, 2)
    first_distance, second_distance = distances.poincare(embedding.vectors[2], embedding.vectors[:2])
    assert first_distance < second_distance
    assert embedding.settings["unused_edges"] == 1


def test_deep_trees_are_inside_the_ball() -> None:
    path = Tree.from_edges([(str(node), str(node - 1)) for node in range(1, 500)])
    embedding = tree_embedder("combinatorial").fit(path, 2)
    assert np.isfinite(embedding.vectors).all()
    assert distances.norm(embedding.vectors).max() < 1.0


@pytest.mark.parametrize("radius", [0.0, -1.0, 31.0, float("nan")])
def test_a_radius_that_float64_cannot_represent_is_an_error(radius: float) -> None:
    with pytest.raises(ParameterError):
        tree_embedder("combinatorial", radius=radius)


@pytest.mark.parametrize("dim", [2, 5])
def test_the_farthest_node_is_at_the_radius(dim: int) -> None:
    radii, directions = growing_edge_layout(BINARY, dim, 9.0, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(directions[radii > 0.0], axis=1), 1.0)
    assert 8.0 < radii.max() <= 9.0
    points = to_hyperboloid(radii, directions)
    np.testing.assert_allclose(distances.hyperboloid_to_ball(points), to_ball(radii, directions), atol=1e-12)
