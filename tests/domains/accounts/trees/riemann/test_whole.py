"""Training against all strangers at once: its gradient is that of automatic differentiation; it learns."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.accounts.training.initialization import cone_initialization
from equipoise.domains.accounts.training.torch_backend import (
    WholeSchedule,
    _FullSoftmax,
    _tangent,
    train_whole,
)
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.geometry.spaces import geometry
from equipoise.io.dag import Links

pytestmark = pytest.mark.engines("torch")
if find_spec("torch"):
    import torch


def a_tree() -> tuple[Tree, Links]:
    """A tree of three levels, and the relatives of each node."""
    edges = [(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, 22)]
    tree = Tree.from_edges(edges)
    pairs = tree.pairs("closure")
    return tree, Links.of(len(tree), pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])


def points_of(tree: Tree, seed: int = 0, dims: int = 3) -> np.ndarray:
    space = np.random.default_rng(seed).normal(size=(len(tree), dims))
    return np.concatenate([np.sqrt(1 + (space**2).sum(1, keepdims=True)), space], axis=1)


def plain_loss(points, relatives: Links, nodes: list[int], sharpness: float, weight: float):
    """The loss written down as it is defined, one pair at a time."""
    total = 0.0
    for node in nodes:
        near = set(relatives[node].tolist())
        product = points[:, 0] * points[node, 0] - (points[:, 1:] * points[node, 1:]).sum(dim=1)
        closeness = {
            other: torch.exp(-sharpness * torch.acosh(product[other]) ** 2)
            for other in range(len(points))
            if other != node
        }
        crowd = weight * sum(value for other, value in closeness.items() if other not in near)
        for other in near:
            total = total - torch.log(closeness[other] / (closeness[other] + crowd))
    return total


@pytest.mark.parametrize(("sharpness", "crowd"), [(1.0, 5), (0.5, 1000)])
def test_the_gradient_is_that_of_automatic_differentiation(sharpness: float, crowd: int) -> None:
    tree, relatives = a_tree()
    nodes = [0, 3, 7, 20]
    points = torch.tensor(points_of(tree), requires_grad=True)
    loss = plain_loss(points, relatives, nodes, sharpness, min(1.0, crowd / len(tree)))
    loss.backward()
    raised = points.grad.clone()
    raised[:, 0] *= -1  # from the gradient of coordinates to that of Lorentz's product
    work = _FullSoftmax.of(relatives, len(tree), torch.device("cpu"))
    weight = WholeSchedule(crowd=crowd).weight_at(0, len(tree))
    found, total = work.gradient(points.detach(), torch.tensor(nodes), sharpness, weight)
    assert total == pytest.approx(loss.item(), rel=1e-9)
    wanted = _tangent(points.detach(), raised)
    torch.testing.assert_close(_tangent(points.detach(), found), wanted, rtol=1e-8, atol=1e-10)


def test_training_brings_relatives_nearer_than_strangers() -> None:
    tree, relatives = a_tree()
    # A crowd of all from the beginning, since losses of different crowds do not compare.
    schedule = WholeSchedule(epochs=150, rate=0.1, batches=4, crowd=len(tree))
    _, history = train_whole(points_of(tree), relatives, schedule, device="cpu")
    assert history[-1] < 0.2 * history[0]


def test_the_crowd_grows_until_it_is_everyone() -> None:
    schedule = WholeSchedule(epochs=11, crowd=4)
    weights = [schedule.weight_at(epoch, 64) for epoch in range(11)]
    assert weights[0] == pytest.approx(4 / 64)
    assert weights[5] == pytest.approx(16 / 64)  # half way along a geometric curve
    assert weights[10] == pytest.approx(1.0)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([1e-12, 0.1, 1e3, 1e200, 1e300]), st.sampled_from([0.1, 4.0, 1e4]), st.integers(0, 9))
def test_no_rate_drives_a_point_out_of_its_space(rate: float, sharpness: float, seed: int) -> None:
    tree, relatives = a_tree()
    schedule = WholeSchedule(epochs=5, rate=rate, last_rate=rate, sharpness=sharpness, batches=22)
    far_out = cone_initialization(tree, 3, np.random.default_rng(seed), inner=2.0, outer=6.0)
    points, _ = train_whole(far_out, relatives, schedule, device="cpu")
    assert geometry("lorentz").check(points).ok


def test_the_same_seed_gives_the_same_points() -> None:
    tree, relatives = a_tree()
    one, other = (
        train_whole(points_of(tree), relatives, WholeSchedule(epochs=3), device="cpu", seed=5)[0] for _ in range(2)
    )
    assert one.tobytes() == other.tobytes()
