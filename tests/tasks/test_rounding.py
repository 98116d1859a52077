"""Points that rounding has moved: what it may have told apart is tied, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.domains.accounts.embedders import rounding_error_bound, tree_embedder
from equipoise.domains.accounts.evaluation import evaluate_embedding
from equipoise.domains.accounts.reconstruction import ranking_with_rounding, reconstruct, tie_by_error
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.evidence.ranking_among_points import ranking_among_points
from equipoise.geometry.spaces import geometry
from equipoise.metrics.structure import NormDepthCorrelation

FLAT = geometry("euclidean")


@st.composite
def grids(draw):
    """Whole coordinates, of which many are equally far from each other, and some pairs of them."""
    coordinate = st.integers(-2, 2)
    rows = draw(st.lists(st.tuples(coordinate, coordinate), min_size=2, max_size=12))
    place = st.integers(0, len(rows) - 1)
    pairs = draw(st.sets(st.tuples(place, place).filter(lambda pair: pair[0] != pair[1]), min_size=1))
    return np.array(rows, dtype=float), np.array(sorted(pairs))


@given(grids())
def test_points_that_stand_still_are_ranked_by_their_distances(grid):
    points, pairs = grid
    found = ranking_with_rounding(points, pairs, FLAT, np.zeros(len(points)))
    exact = ranking_among_points(points, pairs, FLAT)
    for column in ("unit_ids", "starts", "above", "tied", "before", "candidates"):
        np.testing.assert_array_equal(getattr(found, column), getattr(exact, column))


@given(grids(), st.integers(0, 2**32))
def test_points_moved_a_little_are_ranked_as_where_they_were(grid, seed):
    points, pairs = grid
    moved = np.random.default_rng(seed).uniform(-1e-9, 1e-9, points.shape)
    found = ranking_with_rounding(points + moved, pairs, FLAT, np.full(len(points), 2e-9))
    exact = ranking_among_points(points, pairs, FLAT)
    for column in ("above", "tied", "before"):
        np.testing.assert_array_equal(getattr(found, column), getattr(exact, column))


def test_groups_are_opened_only_by_gaps_beyond_both_errors():
    values = np.array([0.0, 0.15, 0.4, 0.2])
    assert tie_by_error(values, np.full(4, 0.1)).tolist() == [0, 0, 0, 0]
    assert tie_by_error(values, np.full(4, 0.05)).tolist() == [0, 1, 2, 1]
    assert tie_by_error(np.empty(0), np.empty(0)).tolist() == []


def _even(levels: int, children: int) -> Tree:
    """A tree in which every node above the leaves has as many children."""
    edges, layer = [], ["r"]
    for _ in range(levels):
        below = [(f"{above}{child}", above) for above in layer for child in range(children)]
        edges += below
        layer = [child for child, _ in below]
    return Tree.from_edges(edges)


@pytest.mark.parametrize(("levels", "children"), [(2, 5), (3, 4), (5, 2)])
@pytest.mark.parametrize("dim", [2, 4])
def test_parent_and_children_tie_in_the_combinatorial_construction(levels, children, dim):
    tree = _even(levels, children)
    built = tree_embedder("combinatorial").fit(tree, dim)
    # A node and its children are one edge away, all others more: half of the children come before.
    expected = np.mean([1.0 + len(tree.children(child)) / 2 for child, _ in tree.edges])
    evaluation = evaluate_embedding(tree, built, config=StatsConfig(n_resamples=20))
    assert evaluation.mean_rank.value == pytest.approx(expected)
    assert reconstruct(tree, built.vectors, "poincare").ranking.ranks.mean() != pytest.approx(expected)


@pytest.mark.slow
def test_leaves_at_one_distance_share_their_norm():
    star = Tree.from_edges([(str(leaf), "root") for leaf in range(600)])
    built = tree_embedder("combinatorial").fit(star, 2)
    assert evaluate_embedding(star, built, config=StatsConfig(n_resamples=20)).spearman.value == pytest.approx(1.0)
    assert NormDepthCorrelation().value(reconstruct(star, built.vectors, "poincare").space) < 0.5


def test_the_error_of_a_point_covers_how_far_its_edge_is_off():
    tree = _even(4, 3)
    built = tree_embedder("combinatorial").fit(tree, 3)
    child, parent = tree.edges.T
    lengths = geometry("poincare").distance(built.vectors[child], built.vectors[parent])
    off = np.abs(lengths - built.settings["edge"])
    moved = rounding_error_bound(built.vectors)
    assert off.max() > 0.0
    assert (off <= moved[child] + moved[parent]).all()
