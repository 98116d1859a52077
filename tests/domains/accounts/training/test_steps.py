"""One step of training: the gradient of the loss, geodesics, and equal results of numba and numpy."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.training.layouts import cone_initialization
from equipoise.domains.accounts.training.manifolds import (
    MAX_STEP,
    EuclideanManifold,
    Hyperboloid,
    Manifold,
    on_hyperboloid,
)
from equipoise.domains.accounts.training.objective import _batch_softmax_gradient
from equipoise.domains.accounts.training.sampling import (
    NO_NODE,
    POSITIVES_PER_CHUNK,
    NegativePool,
    PositivePairs,
    empty_hard_negatives,
    sample_negatives,
    update_hard_negatives,
)
from equipoise.domains.accounts.trees.tree import RELATIONS, Tree
from equipoise.geometry import distances as functions

TREE = Tree.from_edges([(f"{node}", f"{node // 3}") for node in range(3, 120)])
SPACES = [EuclideanManifold(), Hyperboloid()]


def some_points(space: Manifold, count: int = 20, dim: int = 3, seed: int = 0) -> np.ndarray:
    """Points a few units from the origin."""
    coordinates = np.random.default_rng(seed).normal(size=(count, dim))
    return on_hyperboloid(coordinates, space.max_norm) if space.is_hyperbolic else coordinates


def distances(space: Manifold, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By the functions of the geometry."""
    return (functions.lorentz if space.is_hyperbolic else functions.euclidean)(x, y)


@pytest.mark.parametrize("space", SPACES)
def test_a_step_away_lengthens_the_distance_by_just_its_length(space: Manifold) -> None:
    points = some_points(space)
    x, y = points[:10], points[10:]
    before, away = space.distance_and_gradient(x, y)
    np.testing.assert_allclose(before, distances(space, x, y), rtol=1e-6)
    np.testing.assert_allclose(distances(space, space.exp_map(x, 0.2 * away), y), before + 0.2, rtol=1e-6)
    np.testing.assert_allclose(distances(space, space.exp_map(x, -0.2 * away), y), before - 0.2, rtol=1e-6)


@pytest.mark.parametrize("space", SPACES)
def test_no_step_is_longer_than_the_longest(space: Manifold) -> None:
    x = some_points(space)
    _, away = space.distance_and_gradient(x, x[::-1])
    np.testing.assert_allclose(distances(space, space.exp_map(x, 1e30 * away), x), MAX_STEP, rtol=1e-6)


def loss_of(distance: np.ndarray, here: np.ndarray, inverse_temperature: float) -> float:
    """The loss as the documentation writes it."""
    multiplicity = np.exp(-inverse_temperature * distance) * here
    total = 0.0
    for row, present in zip(multiplicity, here, strict=True):
        for near in row[:POSITIVES_PER_CHUNK][present[:POSITIVES_PER_CHUNK]]:
            total -= np.log(near / (near + row[POSITIVES_PER_CHUNK:].sum()))
    return total


def test_the_batch_gradient_is_the_derivative_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    distance = rng.uniform(0.5, 3.0, (3, POSITIVES_PER_CHUNK + 6))
    here = rng.random(distance.shape) < 0.6
    gradient, loss = _batch_softmax_gradient(distance, here, 2.0)
    assert loss == pytest.approx(loss_of(distance, here, 2.0))
    for place in np.ndindex(distance.shape):
        step = np.zeros_like(distance)
        step[place] = 1e-6
        slope = (loss_of(distance + step, here, 2.0) - loss_of(distance - step, here, 2.0)) / 2e-6
        assert 2.0 * gradient[place] == pytest.approx(slope, abs=1e-6)


def test_a_node_without_negatives_has_no_gradient() -> None:
    here = np.zeros((1, POSITIVES_PER_CHUNK + 4), dtype=bool)
    here[0, :3] = True
    gradient, loss = _batch_softmax_gradient(np.ones(here.shape), here, 8.0)
    assert loss == 0.0
    assert not gradient.any()


def test_numba_gradient_equals_numpy() -> None:
    compiled = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
    rng = np.random.default_rng(1)
    distance = rng.uniform(0.0, 20.0, (1, POSITIVES_PER_CHUNK + 9))
    gradient, loss = _batch_softmax_gradient(distance, np.ones(distance.shape, dtype=bool), 8.0)
    near, far = np.empty(POSITIVES_PER_CHUNK), np.empty(9)
    assert compiled.softmax_gradient(
        distance[0, :POSITIVES_PER_CHUNK], distance[0, POSITIVES_PER_CHUNK:], 8.0, near, far
    ) == pytest.approx(loss)
    np.testing.assert_allclose(np.concatenate([near, -far]), gradient[0], atol=1e-12)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("step", [0.3, -0.3, 1e9])
def test_numba_step_equals_numpy(space: Manifold, step: float) -> None:
    compiled = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
    points = some_points(space)
    u, wanted = points[0].copy(), points.copy()
    _, away = space.distance_and_gradient(points[1:], u)
    wanted[1:] = space.exp_map(points[1:], step * away)
    exp_map = points.copy()
    for y in range(1, len(points)):
        gap = compiled.distance_proxy(u, exp_map, y, space.is_hyperbolic)
        distance, inverse = compiled.distance_from_proxy(gap, space.is_hyperbolic)
        assert distance == pytest.approx(distances(space, u, exp_map[y]))
        compiled.move_along_geodesic(exp_map, y, u, step, gap, inverse, space.is_hyperbolic, space.max_norm)
    np.testing.assert_allclose(exp_map, wanted, rtol=1e-4, atol=1e-4)
    walked = points.copy()
    compiled.riemannian_step(walked, 3, points[3].copy(), -away[2], abs(step), space.is_hyperbolic, space.max_norm)
    np.testing.assert_allclose(walked[3], space.exp_map(points[3:4], abs(step) * away[2:3])[0], rtol=1e-9)


def test_random_int_is_uniform_and_within_bounds() -> None:
    compiled = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
    state = np.full(1, 7, dtype=np.uint64)
    counts = np.bincount([compiled.random_int(state, 3, 8) for _ in range(5000)], minlength=9)
    assert counts[:3].sum() == counts[8] == 0
    assert np.abs(counts[3:8] - 1000).max() < 150


@pytest.mark.parametrize("relation", RELATIONS)
def test_positives_follow_the_relation_and_related_is_symmetric(relation: str) -> None:
    positives = PositivePairs.of(TREE, relation)
    up = {(int(a), int(b)) for a, b in (TREE.edges if relation == "parent" else TREE.closure())}
    wanted = up | {(b, a) for a, b in up} if relation == "closure" else up
    all_ways = {(int(a), int(b)) for pair in TREE.closure() for a, b in (pair, pair[::-1])}
    assert {(node, int(other)) for node in range(len(TREE)) for other in positives.related[node]} == all_ways
    all_negatives = np.arange(len(TREE))
    found = positives.contains(all_negatives[:, None], all_negatives[None, :])
    assert {(int(a), int(b)) for a, b in np.argwhere(found) if a != b} == wanted
    seen = [
        (int(node), int(other))
        for node, start, stop in positives.chunks
        for other in positives.lists.targets[start:stop]
    ]
    assert sorted(seen) == sorted(wanted)
    assert (positives.chunks[:, 2] - positives.chunks[:, 1]).max() <= POSITIVES_PER_CHUNK


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("negative_sampling", ["uniform", "degree", "depth"])
def test_candidates_come_from_their_sources(negative_sampling: str, relation: str) -> None:
    positives = PositivePairs.of(TREE, relation)
    pool = NegativePool.of(TREE, positives, negative_sampling)
    nodes = np.arange(len(TREE))
    hard_negatives = empty_hard_negatives(len(TREE), 4)
    hard_negatives[:, 0] = (nodes + 1) % len(TREE)
    found = sample_negatives(nodes, hard_negatives, pool, positives, (50, 40, 10), np.random.default_rng(0))
    from_pool, related, of_neighbors = found[:, :50], found[:, 50:90], found[:, 90:]
    if negative_sampling == "depth":
        assert (TREE.depth[from_pool] == TREE.depth[:, None]).all()
    if negative_sampling == "degree":
        share = np.bincount(from_pool.ravel(), minlength=len(TREE))
        assert share[TREE.roots].mean() > 3 * share[TREE.leaves].mean()
    assert (related[TREE.roots] == NO_NODE).all()
    for node in TREE.leaves:
        assert all(
            any(each in positives.related[above] for above in positives.ancestors[node]) for each in related[node]
        )
    assert set(np.unique(of_neighbors - nodes[:, None]) % len(TREE)) <= {2, len(TREE) - 1 - nodes.max()} | set(
        (NO_NODE - nodes) % len(TREE)
    )


def test_hard_negatives_are_the_nearest() -> None:
    hard_negatives = empty_hard_negatives(2, 2)
    update_hard_negatives(hard_negatives, np.array([1]), np.array([[5, 6, 7, 8]]), np.array([[3.0, np.inf, 1.0, 2.0]]))
    assert sorted(hard_negatives[1].tolist()) == [7, 8]
    assert hard_negatives[0].tolist() == [NO_NODE, NO_NODE]


def test_cones_put_most_ancestors_first_before_any_training() -> None:
    points = cone_initialization(TREE, 10, np.random.default_rng(0), min_radius=2.0, max_radius=8.0)
    below, above = TREE.closure().T
    gaps = functions.pairwise(functions.lorentz, points, points)
    related = PositivePairs.of(TREE, "closure").contains(np.arange(len(TREE))[:, None], np.arange(len(TREE))[None, :])
    nearer = [np.sum((gaps[b] < gaps[b, a]) & ~related[b]) for b, a in zip(below, above, strict=True)]
    assert np.mean(nearer) < 1.0
