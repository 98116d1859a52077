"""The descent against shared strangers: one piece moves as the loss says, and memory keeps the nearest."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.training.manifolds import Hyperboloid, on_hyperboloid
from equipoise.domains.accounts.training.sampling import PositivePairs, empty_hard_negatives
from equipoise.domains.accounts.trees.tree import Tree

crowd = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
SPACE = Hyperboloid()
TREE = Tree.from_edges([("a", "root"), ("b", "root"), ("c", "a"), ("d", "b"), ("e", "b")])
RATE, SHARPNESS = 0.2, 0.7


def some_points(count: int = len(TREE)) -> np.ndarray:
    return on_hyperboloid(np.random.default_rng(2).normal(size=(count, 3)), SPACE.reach)


def one_epoch(points: np.ndarray, node: int, strangers: list[int], memory: np.ndarray, **changed) -> None:
    """The pieces of one node alone, against these strangers."""
    relatives = PositivePairs.of(TREE, "closure")
    pieces = relatives.pieces[relatives.pieces[:, 0] == node]
    members = np.array(strangers)
    count = len(points)
    pool = (members, np.zeros(count, np.int64), np.full(count, len(members)))
    crowd.crowd_compiled_epoch(
        points, SPACE.reach, pieces, np.arange(len(pieces)), changed.get("counts", (len(members), 0, 0)),
        changed.get("remembers", False), memory, pool,
        (relatives.links.starts, relatives.links.targets),
        relatives.family, np.ones(count), SHARPNESS, RATE, 1e6, 1,
    )  # fmt: skip


def test_a_piece_moves_as_the_loss_says() -> None:
    node, stranger = TREE.position("a"), TREE.position("d")
    near = PositivePairs.of(TREE, "closure").links[node]
    before = some_points()
    after = before.copy()
    one_epoch(after, node, [stranger], empty_hard_negatives(len(TREE), 1))

    def apart(other: int) -> tuple[float, np.ndarray, np.ndarray]:
        distance, at_node = SPACE.apart(before[[node]], before[[other]])
        _, at_other = SPACE.apart(before[[other]], before[[node]])
        return float(distance[0]), at_node[0], at_other[0]

    far, from_far, away = apart(stranger)
    closeness = np.exp(-SHARPNESS * far**2)
    wanted, gradient, pushed = before.copy(), np.zeros(before.shape[1]), 0.0
    for other in near:
        distance, at_node, at_other = apart(other)
        total = np.exp(-SHARPNESS * distance**2) + closeness
        pull = closeness / total * distance / crowd.REFERENCE_DISTANCE
        wanted[other] = SPACE.moved(before[[other]], -RATE * pull * at_other[None])[0]
        gradient += pull * at_node
        pushed += closeness / total * far / crowd.REFERENCE_DISTANCE
    wanted[stranger] = SPACE.moved(before[[stranger]], RATE * pushed * away[None])[0]
    gradient -= pushed * from_far
    wanted[node] = SPACE.moved(before[[node]], -RATE * gradient[None])[0]
    np.testing.assert_allclose(after, wanted, rtol=1e-6, atol=1e-6)
    assert not np.allclose(after, before)


def test_a_node_remembers_the_nearest_strangers_it_has_met() -> None:
    node = TREE.position("a")
    strangers = [TREE.position(name) for name in ("b", "d", "e")]
    points = some_points()
    memory = empty_hard_negatives(len(TREE), 2)
    distance, _ = SPACE.apart(np.broadcast_to(points[node], (3, 4)), points[strangers])
    # Many draws, so that each of the three is met.
    one_epoch(points, node, strangers, memory, remembers=True, counts=(60, 0, 0))
    nearest = {strangers[place] for place in np.argsort(distance)[:2]}
    assert set(memory[node].tolist()) == nearest


def test_relatives_are_never_taken_for_strangers() -> None:
    node = TREE.position("a")
    points = some_points()
    before = points.copy()
    one_epoch(
        points,
        node,
        [node, *PositivePairs.of(TREE, "closure").links[node]],
        empty_hard_negatives(len(TREE), 2),
        counts=(40, 0, 0),
    )
    np.testing.assert_array_equal(points, before)


def test_separations_are_those_of_pairs() -> None:
    points = some_points(30)
    found = np.empty(30)
    crowd.distance_proxies(points[4], np.ascontiguousarray(points.T), found)
    wanted, _ = SPACE.apart(np.broadcast_to(points[4], points.shape), points)
    np.testing.assert_allclose(np.arccosh(np.maximum(found, 1.0)), wanted, atol=2e-6)


def test_nobody_is_drawn_twice_for_a_run() -> None:
    points, who, copies = some_points(), np.empty(40, np.int64), np.empty((4, 40))
    many = crowd.sample_shared_negatives(
        np.full(1, 3, np.uint64), points, np.repeat(np.arange(6), 5), 5, 30, who, copies
    )
    assert sorted(who[:many]) == [1, 2, 3, 4, 5], "all that may be drawn, once each"
    np.testing.assert_array_equal(copies[:, :many], points[who[:many]].T)


def test_pieces_that_share_strangers_of_a_depth_are_of_that_depth() -> None:
    from equipoise.domains.accounts.training.sampling import NegativePool
    from equipoise.domains.accounts.training.trainer import TrainingConfig, TrainingProblem, _in_runs

    tree = Tree.from_edges([(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, 400)])
    relatives, schedule = PositivePairs.of(tree, "closure"), TrainingConfig(aim="depth")
    pool = NegativePool.of(tree, relatives, "depth")
    work = TrainingProblem(SPACE, np.empty(0), relatives, pool, schedule, np.random.default_rng(0))
    order = _in_runs(work, 8)
    assert sorted(order) == list(range(len(relatives.pieces)))
    depth = tree.depth[relatives.pieces[order, 0]]
    mixed = sum(len(set(depth[begin : begin + 8])) > 1 for begin in range(0, len(order), 8))
    assert mixed <= tree.depth.max(), "one run at most between two depths"
    assert (np.diff(depth) < 0).any(), "runs come in any order"
