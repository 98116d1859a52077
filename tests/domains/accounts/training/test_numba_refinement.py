"""Refinement: negatives equal a brute-force search, the gradient is that of the loss, ranks improve."""

from __future__ import annotations

import numpy as np
import pytest

from domains.accounts.training.reference_manifold import (
    SPACES,
    distance_and_gradient,
    exp_map,
    on_hyperboloid,
    some_points,
)
from equipoise.domains.accounts.evaluation import reconstruct
from equipoise.domains.accounts.training.layouts import cone_initialization
from equipoise.domains.accounts.training.objective import Manifold, PositivePairs, chunk_rows, hyperboloid
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.metrics.parser import parse_metrics

refinement_module = pytest.importorskip("equipoise.domains.accounts.training.numba_refinement")
kernels = refinement_module


def ternary_tree(count: int = 40) -> Tree:
    return Tree.from_edges([(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, count)])


def squared_distances(space: Manifold, points: np.ndarray, node: int) -> np.ndarray:
    """Squared distances of a node from all others."""
    distance, _ = distance_and_gradient(space, np.broadcast_to(points[node], points.shape), points)
    return np.asarray(distance) ** 2


def reference_loss(space: Manifold, points: np.ndarray, positives: PositivePairs, nodes: list[int]) -> float:
    """The loss by its definition, one pair at a time."""
    total = 0.0
    for node in nodes:
        square, targets = squared_distances(space, points, node), positives.lists[node]
        negatives = np.setdiff1d(np.arange(len(points)), [*targets, node])
        for other in targets:
            total += np.maximum(square[other] + refinement_module.MARGIN - square[negatives], 0.0).sum()
    return total


def all_negatives(positives: PositivePairs) -> refinement_module.ViolatingNegatives:
    """All negatives of every node."""
    count = len(positives.lists)
    negatives = [np.setdiff1d(np.arange(count), [*positives.lists[node], node]) for node in range(count)]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in negatives])])
    ids = np.concatenate(negatives).astype(np.int32)
    return refinement_module.ViolatingNegatives(starts, ids, np.ones(len(ids)))


@pytest.mark.parametrize("relation", ["ancestors", "closure"])
@pytest.mark.parametrize("space", SPACES)
def test_the_gradient_is_that_of_the_loss(space: Manifold, relation: str) -> None:
    tree = ternary_tree()
    positives, points = PositivePairs.of(tree, relation), some_points(space, len(tree))
    nodes = [0, 2, 7, 30]
    chunks = chunk_rows(positives.lists, 4)
    chunks = chunks[np.isin(chunks[:, 0], nodes)]
    state, negatives = kernels.new_adam_state(points), all_negatives(positives)
    updated, loss = kernels.hinge_gradient(
        points, space.is_hyperbolic, chunks, positives.lists.values, negatives.starts, negatives.ids,
        negatives.multiplicity,
        refinement_module.MARGIN, 0.0, state,
    )  # fmt: skip
    assert loss == pytest.approx(reference_loss(space, points, positives, nodes))
    assert set(updated) == set(np.flatnonzero(state.gradient.any(axis=1)))
    step = 1e-6
    for node in (0, 2, 11, 39):
        for other in (5, 20):
            if node == other:
                continue
            _, tangent = distance_and_gradient(space, points[node : node + 1], points[other : other + 1])
            losses = []
            for sign in (1.0, -1.0):
                moved_points = points.copy()
                moved_points[node] = exp_map(space, points[node : node + 1], sign * step * tangent)[0]
                losses.append(reference_loss(space, moved_points, positives, nodes))
            signs = np.where((np.arange(points.shape[1]) == 0) & space.is_hyperbolic, -1.0, 1.0)
            derivative = float((signs * state.gradient[node] * tangent[0]).sum())
            assert derivative == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("relation", ["ancestors", "closure"])
@pytest.mark.parametrize("space", SPACES)
def test_violating_negatives_equal_a_brute_force_search(space: Manifold, relation: str) -> None:
    tree = ternary_tree(200)
    positives, points = PositivePairs.of(tree, relation), some_points(space, len(tree), scale=2.0)
    lists = positives.lists
    violating = refinement_module.find_violating_negatives(
        space, points, lists.starts, lists.values, np.random.default_rng(0)
    )
    assert (violating.multiplicity == 1.0).all()
    for node in range(len(tree)):
        square = squared_distances(space, points, node)
        # A node without positives has no negatives.
        limit = (
            square[lists[node]].max() + refinement_module.MARGIN + refinement_module.REFRESH_SLACK
            if len(lists[node])
            else -1.0
        )
        expected = np.setdiff1d(np.flatnonzero(square < limit), [*lists[node], node])
        found_ids = set(violating.ids[violating.starts[node] : violating.starts[node + 1]].tolist())
        # The search is in float32, so that only those at the limit may differ.
        for other in found_ids.symmetric_difference(expected.tolist()):
            assert square[other] == pytest.approx(limit, rel=1e-4)


def test_points_far_from_the_origin_are_searched_in_float64() -> None:
    points = on_hyperboloid(1e7 * np.eye(4, 3))
    left, right = refinement_module._factors(points, is_hyperbolic=True)
    assert left.dtype == right.dtype == np.float64
    assert refinement_module._factors(some_points(hyperboloid(), 5), is_hyperbolic=True)[0].dtype == np.float32


def test_too_many_negatives_are_subsampled_with_multiplicities() -> None:
    proxies = np.random.default_rng(0).random(1000)
    ids, multiplicity = np.empty(100, np.int32), np.empty(100)
    kernels.subsample(np.full(1, 5, np.uint64), np.arange(1000, dtype=np.int32), proxies, ids, multiplicity)
    assert set(ids[:50]) == set(np.argsort(proxies)[:50])
    assert len(set(ids)) == 100
    assert (multiplicity[:50] == 1.0).all()
    assert multiplicity.sum() == pytest.approx(1000)


def test_a_pair_with_many_violations_is_damped() -> None:
    tree = ternary_tree()
    positives, points = PositivePairs.of(tree, "closure"), some_points(hyperboloid(), len(tree))
    negatives = all_negatives(positives)
    gradient_sums = []
    for damping in (0.0, 10.0):
        state = kernels.new_adam_state(points)
        kernels.hinge_gradient(
            points, True, chunk_rows(positives.lists, 64), positives.lists.values, negatives.starts, negatives.ids,
            negatives.multiplicity, refinement_module.MARGIN, damping, state,
        )  # fmt: skip
        gradient_sums.append(np.abs(state.gradient).sum())
    assert gradient_sums[1] < 0.5 * gradient_sums[0]


@pytest.mark.parametrize("space", SPACES)
def test_refinement_lowers_ranks_and_is_deterministic(space: Manifold) -> None:
    tree = ternary_tree(300)
    positives = PositivePairs.of(tree, "closure")
    name = "lorentz" if space.is_hyperbolic else "euclidean"

    def mean_rank(points: np.ndarray) -> float:
        ranking = reconstruct(tree, points, name, relation="closure").ranking
        return float(parse_metrics("MR(filtered)")[0].measure(ranking).value)

    runs = []
    for _ in range(2):
        points = cone_initialization(tree, 4, np.random.default_rng(0), min_radius=2.0, max_radius=6.0)
        points = points if space.is_hyperbolic else np.ascontiguousarray(points[:, 1:] / 50.0)
        initial_mean_rank = mean_rank(points)
        refinement = refinement_module.HardNegativeRefinement(space, points, positives, np.random.default_rng(1))
        losses = [refinement.epoch(done, 60) for done in range(60)]
        runs.append(points.tobytes())
        assert losses[-1] < losses[0]
        assert mean_rank(points) < 0.8 * initial_mean_rank
    assert runs[0] == runs[1]


def test_nodes_without_positives_are_ignored() -> None:
    isolated = [f"isolated{node}" for node in range(500)]
    tree = Tree.of(["root", "a", "b", *isolated], [("a", "root"), ("b", "root")])
    space = hyperboloid()
    points = cone_initialization(tree, 3, np.random.default_rng(0), min_radius=2.0, max_radius=6.0)
    refinement = refinement_module.HardNegativeRefinement(
        space, points, PositivePairs.of(tree, "closure"), np.random.default_rng(0)
    )
    assert [refinement.epoch(done, 4) >= 0.0 for done in range(4)] == [True] * 4
    assert np.isfinite(points).all()
