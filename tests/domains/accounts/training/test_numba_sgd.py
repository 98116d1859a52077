"""The epoch with shared negatives: a chunk moves along its gradient; hard negatives are the nearest sampled nodes."""

from __future__ import annotations

import numpy as np
import pytest

from domains.accounts.training import reference_manifold
from domains.accounts.training.reference_losses import softmax_loss
from domains.accounts.training.reference_manifold import SPACES, distance_and_gradient, exp_map
from equipoise.domains.accounts.training.layouts import cone_initialization
from equipoise.domains.accounts.training.objective import Manifold, PositivePairs, hyperboloid
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.geometry import distances as functions

numba_sgd = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
SPACE = hyperboloid()
TREE = Tree.from_edges([("a", "root"), ("b", "root"), ("c", "a"), ("d", "b"), ("e", "b")])
LEARNING_RATE, INVERSE_TEMPERATURE = 0.2, 0.7


def some_points(space: Manifold = SPACE, count: int = len(TREE)) -> np.ndarray:
    return reference_manifold.some_points(space, count)


def no_hard_negatives(size: int) -> np.ndarray:
    return np.full((len(TREE), size), numba_sgd.NO_NODE)


def run_epoch(points: np.ndarray, node: int, hard_negatives: np.ndarray, space: Manifold = SPACE, **options) -> float:
    """The chunks of one node, with all nodes as negatives."""
    positives = PositivePairs.of(TREE, "closure")
    chunks = positives.chunks[positives.chunks[:, 0] == node]
    ancestors, related = positives.ancestors, positives.related
    return numba_sgd.sgd_epoch(
        points, space.is_hyperbolic, space.max_norm, chunks, np.arange(len(chunks)), (60, 0, 0),
        options.get("use_hard_negatives", False), hard_negatives, (positives.lists.starts, positives.lists.values),
        (ancestors.starts, ancestors.values, related.starts, related.values), np.ones(len(points)), INVERSE_TEMPERATURE,
        options.get("learning_rate", LEARNING_RATE), 1e6, 1,
    )  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_a_chunk_moves_along_the_gradient_of_the_reference_loss(space: Manifold) -> None:
    node, rate = TREE.position("a"), 1e-3
    targets = PositivePairs.of(TREE, "closure").lists[node]
    negatives = np.setdiff1d(np.arange(len(TREE)), [*targets, node])
    initial = some_points(space)
    after = initial.copy()
    loss = run_epoch(after, node, no_hard_negatives(1), space, learning_rate=rate)
    others = np.concatenate([targets, negatives])
    distance, at_node = distance_and_gradient(
        space, np.broadcast_to(initial[node], initial[others].shape), initial[others]
    )
    _, at_other = distance_and_gradient(space, initial[others], np.broadcast_to(initial[node], initial[others].shape))
    power = 2.0 if space.is_hyperbolic else 1.0
    options = {"temperature": 1.0 / INVERSE_TEMPERATURE, "power": power}
    expected_loss, *slopes = softmax_loss(distance[: len(targets)], distance[len(targets) :], **options)
    scale = 1.0 / INVERSE_TEMPERATURE / (2.0 * numba_sgd.REFERENCE_DISTANCE if space.is_hyperbolic else 1.0)
    steps = -rate * scale * np.concatenate(slopes)[:, None]
    expected = initial.copy()
    expected[others] = exp_map(space, initial[others], steps * at_other)
    expected[node] = exp_map(space, initial[[node]], (steps * at_node).sum(axis=0, keepdims=True))[0]
    assert loss == pytest.approx(expected_loss)
    np.testing.assert_allclose(after - initial, expected - initial, rtol=1e-4, atol=1e-9)
    assert not np.allclose(after, initial, atol=1e-9)


def test_hard_negatives_are_the_nearest_sampled_ones() -> None:
    node = TREE.position("a")
    negatives = [TREE.position(name) for name in ("b", "d", "e")]
    points = some_points()
    hard_negatives = no_hard_negatives(2)
    distance, _ = distance_and_gradient(SPACE, np.broadcast_to(points[node], (3, 4)), points[negatives])
    run_epoch(points, node, hard_negatives, use_hard_negatives=True)
    nearest = {negatives[index] for index in np.argsort(distance)[:2]}
    assert set(hard_negatives[node].tolist()) == nearest


def test_positives_are_never_negatives() -> None:
    points = some_points()
    initial = points.copy()
    # All other nodes are positives of the root.
    run_epoch(points, TREE.position("root"), no_hard_negatives(2))
    np.testing.assert_array_equal(points, initial)


@pytest.mark.parametrize("space", SPACES)
def test_distance_proxies_equal_those_of_pairs(space: Manifold) -> None:
    points = some_points(space, 30)
    proxies = np.empty(30)
    numba_sgd.distance_proxies(points[4], np.ascontiguousarray(points.T), space.is_hyperbolic, proxies)
    expected = [numba_sgd.distance_proxy(points[4], points, other, space.is_hyperbolic) for other in range(30)]
    np.testing.assert_allclose(proxies, expected, atol=1e-9)


def test_shared_negatives_are_sampled_without_replacement() -> None:
    points, ids, coordinates = some_points(), np.empty(60, np.int64), np.empty((4, 60))
    n_sampled = numba_sgd.sample_shared_negatives(np.full(1, 3, np.uint64), points, ids, coordinates)
    assert sorted(ids[:n_sampled]) == list(range(len(TREE))), "every node once"
    np.testing.assert_array_equal(coordinates[:, :n_sampled], points[ids[:n_sampled]].T)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("step", [0.3, -0.3, 1e9])
def test_steps_follow_geodesics(space: Manifold, step: float) -> None:
    points = some_points(space, 20)
    u, expected, moved = points[0].copy(), points.copy(), points.copy()
    distance, gradient = distance_and_gradient(space, points[1:], u)
    distance_of = functions.lorentz if space.is_hyperbolic else functions.euclidean
    np.testing.assert_allclose(distance, distance_of(points[1:], u), rtol=1e-6)
    expected[1:] = exp_map(space, points[1:], step * gradient)
    for y in range(1, len(points)):
        proxy = numba_sgd.distance_proxy(u, moved, y, space.is_hyperbolic)
        result, inverse = numba_sgd.distance_from_proxy(proxy, space.is_hyperbolic)
        assert result == pytest.approx(distance[y - 1])
        assert numba_sgd.proxy_of_distance(result, space.is_hyperbolic) == pytest.approx(proxy)
        numba_sgd.move_along_geodesic(moved, y, u, step, proxy, inverse, space.is_hyperbolic, space.max_norm)
    np.testing.assert_allclose(moved, expected, rtol=1e-4, atol=1e-4)
    stepped = points.copy()
    numba_sgd.riemannian_step(
        stepped, 3, points[3].copy(), -gradient[2], abs(step), space.is_hyperbolic, space.max_norm
    )
    np.testing.assert_allclose(stepped[3], exp_map(space, points[3:4], abs(step) * gradient[2:3])[0], rtol=1e-9)


def test_random_int_is_uniform_and_within_bounds() -> None:
    state = np.full(1, 7, dtype=np.uint64)
    counts = np.bincount([numba_sgd.random_int(state, 3, 8) for _ in range(5000)], minlength=9)
    assert counts[:3].sum() == counts[8] == 0
    assert np.abs(counts[3:8] - 1000).max() < 150


def test_branch_negatives_are_related_to_an_ancestor() -> None:
    positives = PositivePairs.of(TREE, "parent")
    ancestors, related = positives.ancestors, positives.related
    lists = (ancestors.starts, ancestors.values, related.starts, related.values)
    state, hard_negatives = np.full(1, 7, dtype=np.uint64), no_hard_negatives(2)
    candidates = {numba_sgd.sample_candidate(state, True, TREE.position("c"), hard_negatives, lists) for _ in range(99)}
    assert candidates == {TREE.position(name) for name in ("root", "a", "b", "c", "d", "e")}
    assert numba_sgd.sample_candidate(state, True, TREE.position("root"), hard_negatives, lists) == numba_sgd.NO_NODE
    assert numba_sgd.sample_candidate(state, False, 0, hard_negatives, lists) == numba_sgd.NO_NODE
    hard_negatives[0], hard_negatives[4] = 4, 5
    assert numba_sgd.sample_candidate(state, False, 0, hard_negatives, lists) == 5


def test_the_cone_initialization_ranks_most_ancestors_first() -> None:
    tree = Tree.from_edges([(f"{node}", f"{node // 3}") for node in range(3, 120)])
    points = cone_initialization(tree, 10, np.random.default_rng(0), min_radius=2.0, max_radius=8.0)
    descendants, ancestors = tree.closure().T
    distances = functions.pairwise(functions.lorentz, points, points)
    related = np.eye(len(tree), dtype=bool)
    related[descendants, ancestors] = related[ancestors, descendants] = True
    n_nearer = [
        np.sum((distances[b] < distances[b, a]) & ~related[b]) for b, a in zip(descendants, ancestors, strict=True)
    ]
    assert np.mean(n_nearer) < 1.0
