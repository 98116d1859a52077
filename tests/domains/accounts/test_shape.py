"""Hyperbolicity, distortion and Dasgupta cost, compared with their definitions."""

from __future__ import annotations

from itertools import combinations, product

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.shape import (
    dasgupta_cost,
    embedding_shape,
    shape_of_distances,
    tree_distances,
    tree_shape,
)
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.domains.accounts.vectors import NodeVectors

CHART = Tree.from_edges([(f"{node}", f"{node // 2}") for node in range(2, 20)])


def test_a_tree_has_hyperbolicity_0() -> None:
    shape = tree_shape(CHART)
    assert shape is not None
    assert shape.delta == 0.0
    assert shape.relative_delta == 0.0


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 1000))
def test_the_hyperbolicity_equals_the_definition(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(7, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    gromov = 0.5 * (distances[0][None, :] + distances[0][:, None] - distances)
    expected = max(min(gromov[x, z], gromov[z, y]) - gromov[x, y] for x, y, z in product(range(7), repeat=3))
    assert shape_of_distances(distances).delta == pytest.approx(expected)


def test_distances_in_the_tree_equal_networkx() -> None:
    sample = np.arange(len(CHART))
    graph = networkx.Graph(CHART.edges.tolist())
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[i][j] for j in range(len(CHART))] for i in range(len(CHART))]
    np.testing.assert_array_equal(tree_distances(CHART, sample), expected)
    forest = Tree.of(["a", "b", "c"], [("c", "b")])
    np.testing.assert_array_equal(tree_distances(forest, np.arange(3))[0], [0, 2, 3])


def test_an_isometric_embedding_has_no_distortion() -> None:
    path = Tree.from_edges([(str(node + 1), str(node)) for node in range(6)])
    rows = np.array([[3.0 * float(key)] for key in path.ids])
    shape = embedding_shape(path, NodeVectors(path.ids, path.names, rows, "euclidean"))
    assert shape is not None
    assert shape.scale == pytest.approx(3.0)
    assert shape.mean_distortion == pytest.approx(0.0, abs=1e-12)
    assert shape.worst_distortion == pytest.approx(1.0)


def test_the_cost_of_dasgupta_counts_the_nodes_below_the_lowest_common_ancestor() -> None:
    tree = Tree.of(list("rabcd"), [("a", "r"), ("b", "r"), ("c", "a"), ("d", "a")])
    leaves = np.array([tree.position(key) for key in "bcd"])
    weights = np.random.default_rng(0).random((3, 3))
    weights = weights + weights.T
    lca_sizes = {frozenset({0, 1}): 3, frozenset({0, 2}): 3, frozenset({1, 2}): 2}
    cost = sum(weights[i, j] * lca_sizes[frozenset({i, j})] for i, j in combinations(range(3), 2))
    total = sum(3 * weights[i, j] for i, j in combinations(range(3), 2))
    assert dasgupta_cost(tree, leaves, weights) == pytest.approx(cost / total)


def test_the_construction_distorts_less_than_a_random_embedding() -> None:
    construction, random = (
        embedding_shape(CHART, tree_embedder(name).fit(CHART, 2)) for name in ("combinatorial", "random")
    )
    assert construction is not None
    assert random is not None
    assert construction.mean_distortion < random.mean_distortion
    assert construction.dasgupta_cost < random.dasgupta_cost
