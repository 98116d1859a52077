"""Settling: strangers are those of a plain search, the gradient is that of the loss, ranks get better."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.reconstruction import reconstruct
from equipoise.domains.accounts.training.initialization import cone_initialization
from equipoise.domains.accounts.training.manifolds import (
    EuclideanManifold,
    Hyperboloid,
    Manifold,
    on_hyperboloid,
)
from equipoise.domains.accounts.training.sampling import PositivePairs
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.metrics.parser import parse_metrics

settle = pytest.importorskip("equipoise.domains.accounts.training.numba_refinement")
kernels = settle
SPACES = [EuclideanManifold(), Hyperboloid()]


def a_tree(count: int = 40) -> Tree:
    return Tree.from_edges([(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, count)])


def points_of(space: Manifold, count: int, dims: int = 3, scale: float = 1.0) -> np.ndarray:
    rows = scale * np.random.default_rng(3).normal(size=(count, dims))
    return on_hyperboloid(rows, space.reach) if space.curved else rows


def squares(space: Manifold, points: np.ndarray, node: int) -> np.ndarray:
    """Squared distances of a node from all, by the space's own code."""
    distance, _ = space.apart(np.broadcast_to(points[node], points.shape), points)
    return np.asarray(distance) ** 2


def plain_loss(space: Manifold, points: np.ndarray, relatives: PositivePairs, nodes: list[int]) -> float:
    """The loss as it is defined, one pair at a time."""
    total = 0.0
    for node in nodes:
        square, near = squares(space, points, node), relatives.links[node]
        far = np.setdiff1d(np.arange(len(points)), [*near, node])
        for other in near:
            total += np.maximum(square[other] + settle.MARGIN - square[far], 0.0).sum()
    return total


def everyone(relatives: PositivePairs) -> settle.ViolatingNegatives:
    """All strangers of every node, one by one."""
    count = len(relatives)
    far = [np.setdiff1d(np.arange(count), [*relatives.links[node], node]) for node in range(count)]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in far])])
    who = np.concatenate(far).astype(np.int32)
    return settle.ViolatingNegatives(starts, who, np.ones(len(who)))


@pytest.mark.parametrize("relation", ["ancestors", "closure"])
@pytest.mark.parametrize("space", SPACES)
def test_the_gradient_is_that_of_the_loss(space: Manifold, relation: str) -> None:
    tree = a_tree()
    relatives, points = PositivePairs.of(tree, relation), points_of(space, len(tree))
    nodes = [0, 2, 7, 30]
    pieces = relatives.cut(4)
    pieces = pieces[np.isin(pieces[:, 0], nodes)]
    state, far = kernels.new_adam_state(points), everyone(relatives)
    touched, loss = kernels.hinge_gradient(
        points, space.curved, pieces, relatives.links.targets, far.starts, far.who, far.weight,
        settle.MARGIN, 0.0, state,
    )  # fmt: skip
    assert loss == pytest.approx(plain_loss(space, points, relatives, nodes))
    assert set(touched) == set(np.flatnonzero(state.gradient.any(axis=1)))
    step = 1e-6
    for node in (0, 2, 11, 39):
        for towards in (5, 20):
            if node == towards:
                continue
            _, tangent = space.apart(points[node : node + 1], points[towards : towards + 1])
            ends = []
            for sign in (1.0, -1.0):
                moved = points.copy()
                moved[node] = space.moved(points[node : node + 1], sign * step * tangent)[0]
                ends.append(plain_loss(space, moved, relatives, nodes))
            signs = np.where((np.arange(points.shape[1]) == 0) & space.curved, -1.0, 1.0)
            slope = float((signs * state.gradient[node] * tangent[0]).sum())
            assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("relation", ["ancestors", "closure"])
@pytest.mark.parametrize("space", SPACES)
def test_the_strangers_are_those_of_a_plain_search(space: Manifold, relation: str) -> None:
    tree = a_tree(200)
    relatives, points = PositivePairs.of(tree, relation), points_of(space, len(tree), scale=2.0)
    links = relatives.links
    found = settle.find_violating_negatives(space, points, links.starts, links.targets, np.random.default_rng(0))
    assert (found.weight == 1.0).all()
    for node in range(len(tree)):
        square = squares(space, points, node)
        # A node without relatives is told from nobody.
        edge = square[links[node]].max() + settle.MARGIN + settle.REFRESH_SLACK if len(links[node]) else -1.0
        wanted = np.setdiff1d(np.flatnonzero(square < edge), [*links[node], node])
        got = set(found.who[found.starts[node] : found.starts[node + 1]].tolist())
        # The look is in float32, so that only those at the very edge may differ.
        for other in got.symmetric_difference(wanted.tolist()):
            assert square[other] == pytest.approx(edge, rel=1e-4)


def test_points_far_out_are_looked_at_in_float64() -> None:
    points = on_hyperboloid(1e7 * np.eye(4, 3), Hyperboloid().reach)
    left, right = settle._factors(points, curved=True)
    assert left.dtype == right.dtype == np.float64
    assert settle._factors(points_of(Hyperboloid(), 5), curved=True)[0].dtype == np.float32


def test_of_too_many_strangers_the_nearest_stay_and_a_sample_stands_for_the_rest() -> None:
    apart = np.random.default_rng(0).random(1000)
    who, weight = np.empty(100, np.int32), np.empty(100)
    kernels.subsample(np.full(1, 5, np.uint64), np.arange(1000, dtype=np.int32), apart, who, weight)
    assert set(who[:50]) == set(np.argsort(apart)[:50])
    assert len(set(who)) == 100
    assert (weight[:50] == 1.0).all()
    assert weight.sum() == pytest.approx(1000)


def test_the_weight_of_a_pair_far_down_is_damped() -> None:
    tree = a_tree()
    relatives, points = PositivePairs.of(tree, "closure"), points_of(Hyperboloid(), len(tree))
    far = everyone(relatives)
    lengths = []
    for damping in (0.0, 10.0):
        state = kernels.new_adam_state(points)
        kernels.hinge_gradient(
            points, True, relatives.cut(64), relatives.links.targets, far.starts, far.who, far.weight,
            settle.MARGIN, damping, state,
        )  # fmt: skip
        lengths.append(np.abs(state.gradient).sum())
    assert lengths[1] < 0.5 * lengths[0]


@pytest.mark.parametrize("space", SPACES)
def test_settling_brings_ranks_down_and_repeats_itself(space: Manifold) -> None:
    tree = a_tree(300)
    relatives = PositivePairs.of(tree, "closure")
    name = "lorentz" if space.curved else "euclidean"

    def mean_rank(points: np.ndarray) -> float:
        ranking = reconstruct(tree, points, name, relation="closure").ranking
        return float(parse_metrics("MR(filtered)")[0].measure(ranking).value)

    runs = []
    for _ in range(2):
        points = cone_initialization(tree, 4, np.random.default_rng(0), inner=2.0, outer=6.0)
        points = points if space.curved else np.ascontiguousarray(points[:, 1:] / 50.0)
        before = mean_rank(points)
        settling = settle.HardNegativeRefinement(space, points, relatives, np.random.default_rng(1))
        losses = [settling.epoch(done, 60) for done in range(60)]
        runs.append(points.tobytes())
        assert losses[-1] < losses[0]
        assert mean_rank(points) < 0.8 * before
    assert runs[0] == runs[1]


def test_nodes_without_relatives_are_no_trouble() -> None:
    alone = [f"alone{node}" for node in range(500)]
    tree = Tree.of(["root", "a", "b", *alone], [("a", "root"), ("b", "root")])
    space = Hyperboloid()
    points = cone_initialization(tree, 3, np.random.default_rng(0), inner=2.0, outer=6.0)
    settling = settle.HardNegativeRefinement(space, points, PositivePairs.of(tree, "closure"), np.random.default_rng(0))
    assert [settling.epoch(done, 4) >= 0.0 for done in range(4)] == [True] * 4
    assert np.isfinite(points).all()
