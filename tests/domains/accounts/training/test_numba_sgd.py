"""The epoch with shared negatives: one chunk moves along its gradient, and hard negatives are the nearest."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.training.manifolds import Hyperboloid, on_hyperboloid
from equipoise.domains.accounts.training.sampling import PositivePairs, empty_hard_negatives
from equipoise.domains.accounts.trees.tree import Tree

numba_sgd = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
SPACE = Hyperboloid()
TREE = Tree.from_edges([("a", "root"), ("b", "root"), ("c", "a"), ("d", "b"), ("e", "b")])
LEARNING_RATE, INVERSE_TEMPERATURE = 0.2, 0.7


def some_points(count: int = len(TREE)) -> np.ndarray:
    return on_hyperboloid(np.random.default_rng(2).normal(size=(count, 3)), SPACE.max_norm)


def one_epoch(points: np.ndarray, node: int, negatives: list[int], hard_negatives: np.ndarray, **changed) -> None:
    """The chunks of one node, with these negatives."""
    positives = PositivePairs.of(TREE, "closure")
    chunks = positives.chunks[positives.chunks[:, 0] == node]
    members = np.array(negatives)
    count = len(points)
    pool = (members, np.zeros(count, np.int64), np.full(count, len(members)))
    numba_sgd.shared_negatives_epoch(
        points, SPACE.max_norm, chunks, np.arange(len(chunks)), changed.get("counts", (len(members), 0, 0)),
        changed.get("use_hard_negatives", False), hard_negatives, pool,
        (positives.lists.starts, positives.lists.targets),
        positives.related_lists, np.ones(count), INVERSE_TEMPERATURE, LEARNING_RATE, 1e6, 1,
    )  # fmt: skip


def test_a_chunk_moves_along_the_gradient() -> None:
    node, negative = TREE.position("a"), TREE.position("d")
    near = PositivePairs.of(TREE, "closure").lists[node]
    before = some_points()
    after = before.copy()
    one_epoch(after, node, [negative], empty_hard_negatives(len(TREE), 1))

    def distance_and_gradient(other: int) -> tuple[float, np.ndarray, np.ndarray]:
        distance, at_node = SPACE.distance_and_gradient(before[[node]], before[[other]])
        _, at_other = SPACE.distance_and_gradient(before[[other]], before[[node]])
        return float(distance[0]), at_node[0], at_other[0]

    far, from_far, away = distance_and_gradient(negative)
    closeness = np.exp(-INVERSE_TEMPERATURE * far**2)
    wanted, gradient, pushed = before.copy(), np.zeros(before.shape[1]), 0.0
    for other in near:
        distance, at_node, at_other = distance_and_gradient(other)
        total = np.exp(-INVERSE_TEMPERATURE * distance**2) + closeness
        pull = closeness / total * distance / numba_sgd.REFERENCE_DISTANCE
        wanted[other] = SPACE.exp_map(before[[other]], -LEARNING_RATE * pull * at_other[None])[0]
        gradient += pull * at_node
        pushed += closeness / total * far / numba_sgd.REFERENCE_DISTANCE
    wanted[negative] = SPACE.exp_map(before[[negative]], LEARNING_RATE * pushed * away[None])[0]
    gradient -= pushed * from_far
    wanted[node] = SPACE.exp_map(before[[node]], -LEARNING_RATE * gradient[None])[0]
    np.testing.assert_allclose(after, wanted, rtol=1e-6, atol=1e-6)
    assert not np.allclose(after, before)


def test_hard_negatives_are_the_nearest_sampled_ones() -> None:
    node = TREE.position("a")
    negatives = [TREE.position(name) for name in ("b", "d", "e")]
    points = some_points()
    hard_negatives = empty_hard_negatives(len(TREE), 2)
    distance, _ = SPACE.distance_and_gradient(np.broadcast_to(points[node], (3, 4)), points[negatives])
    # A large sample, so that it contains each of the three.
    one_epoch(points, node, negatives, hard_negatives, use_hard_negatives=True, counts=(60, 0, 0))
    nearest = {negatives[place] for place in np.argsort(distance)[:2]}
    assert set(hard_negatives[node].tolist()) == nearest


def test_positives_are_never_negatives() -> None:
    node = TREE.position("a")
    points = some_points()
    before = points.copy()
    one_epoch(
        points,
        node,
        [node, *PositivePairs.of(TREE, "closure").lists[node]],
        empty_hard_negatives(len(TREE), 2),
        counts=(40, 0, 0),
    )
    np.testing.assert_array_equal(points, before)


def test_distance_proxies_are_those_of_pairs() -> None:
    points = some_points(30)
    found = np.empty(30)
    numba_sgd.distance_proxies(points[4], np.ascontiguousarray(points.T), found)
    wanted, _ = SPACE.distance_and_gradient(np.broadcast_to(points[4], points.shape), points)
    np.testing.assert_allclose(np.arccosh(np.maximum(found, 1.0)), wanted, atol=2e-6)


def test_shared_negatives_are_sampled_without_replacement() -> None:
    points, ids, copies = some_points(), np.empty(40, np.int64), np.empty((4, 40))
    many = numba_sgd.sample_shared_negatives(
        np.full(1, 3, np.uint64), points, np.repeat(np.arange(6), 5), 5, 30, ids, copies
    )
    assert sorted(ids[:many]) == [1, 2, 3, 4, 5], "the whole population, once each"
    np.testing.assert_array_equal(copies[:, :many], points[ids[:many]].T)


def test_chunks_that_share_negatives_by_depth_have_that_depth() -> None:
    from equipoise.domains.accounts.training.sampling import NegativePool
    from equipoise.domains.accounts.training.trainer import TrainingConfig, TrainingProblem, shuffled_chunks

    tree = Tree.from_edges([(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, 400)])
    positives, config = PositivePairs.of(tree, "closure"), TrainingConfig(negative_sampling="depth")
    pool = NegativePool.of(tree, positives, "depth")
    problem = TrainingProblem(SPACE, np.empty(0), positives, pool, config, np.random.default_rng(0))
    order = shuffled_chunks(problem, 8)
    assert sorted(order) == list(range(len(positives.chunks)))
    depth = tree.depth[positives.chunks[order, 0]]
    mixed = sum(len(set(depth[begin : begin + 8])) > 1 for begin in range(0, len(order), 8))
    assert mixed <= tree.depth.max(), "at most one run with two depths"
    assert (np.diff(depth) < 0).any(), "runs are in random order"
