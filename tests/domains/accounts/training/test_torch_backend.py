"""The torch back end: its gradient equals automatic differentiation and the reference; training converges."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.accounts.training.layouts import cone_initialization
from equipoise.domains.accounts.training.torch_backend import (
    FullSoftmaxConfig,
    _FullSoftmax,
    _project_to_tangent,
    train_full_softmax,
)
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.geometry.spaces import geometry
from equipoise.io.dag import Rows

pytestmark = pytest.mark.engines("torch")
if find_spec("torch"):
    import torch


def ternary_tree() -> tuple[Tree, Rows]:
    """A tree of three levels, and the ancestors and descendants of each node."""
    edges = [(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, 22)]
    tree = Tree.from_edges(edges)
    pairs = tree.pairs("closure")
    return tree, Rows.of_pairs(len(tree), pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])


def points_of(tree: Tree, seed: int = 0, dims: int = 3) -> np.ndarray:
    space = np.random.default_rng(seed).normal(size=(len(tree), dims))
    return np.concatenate([np.sqrt(1 + (space**2).sum(1, keepdims=True)), space], axis=1)


def reference_loss(points, positives: Rows, nodes: list[int], inverse_temperature: float, negative_weight: float):
    """The loss by its definition, one pair at a time."""
    total = 0.0
    for node in nodes:
        targets = set(positives[node].tolist())
        product = points[:, 0] * points[node, 0] - (points[:, 1:] * points[node, 1:]).sum(dim=1)
        closeness = {
            other: torch.exp(-inverse_temperature * torch.acosh(product[other]) ** 2)
            for other in range(len(points))
            if other != node
        }
        initial_weight = negative_weight * sum(value for other, value in closeness.items() if other not in targets)
        for other in targets:
            total = total - torch.log(closeness[other] / (closeness[other] + initial_weight))
    return total


@pytest.mark.parametrize(("inverse_temperature", "initial_weight"), [(1.0, 5), (0.5, 1000)])
def test_the_gradient_equals_automatic_differentiation(inverse_temperature: float, initial_weight: int) -> None:
    tree, positives = ternary_tree()
    nodes = [0, 3, 7, 20]
    points = torch.tensor(points_of(tree), requires_grad=True)
    loss = reference_loss(points, positives, nodes, inverse_temperature, min(1.0, initial_weight / len(tree)))
    loss.backward()
    lorentz_gradient = points.grad.clone()
    lorentz_gradient[:, 0] *= -1  # from the coordinate gradient to the Lorentz gradient
    objective = _FullSoftmax.of(positives, len(tree), torch.device("cpu"))
    negative_weight = FullSoftmaxConfig(initial_negative_weight=initial_weight).negative_weight_at(0, len(tree))
    gradient, total = objective.gradient(points.detach(), torch.tensor(nodes), inverse_temperature, negative_weight)
    assert total == pytest.approx(loss.item(), rel=1e-9)
    expected = _project_to_tangent(points.detach(), lorentz_gradient)
    torch.testing.assert_close(_project_to_tangent(points.detach(), gradient), expected, rtol=1e-8, atol=1e-10)


def test_training_lowers_the_loss() -> None:
    tree, positives = ternary_tree()
    # Full weight from the first epoch, since losses with different weights are not comparable.
    config = FullSoftmaxConfig(epochs=150, learning_rate=0.1, n_batches=4, initial_negative_weight=len(tree))
    _, history = train_full_softmax(points_of(tree), positives, config, device="cpu")
    assert history[-1] < 0.2 * history[0]


def test_the_negative_weight_increases_to_one() -> None:
    config = FullSoftmaxConfig(epochs=11, initial_negative_weight=4)
    weights = [config.negative_weight_at(epoch, 64) for epoch in range(11)]
    assert weights[0] == pytest.approx(4 / 64)
    assert weights[5] == pytest.approx(16 / 64)  # half way along a geometric curve
    assert weights[10] == pytest.approx(1.0)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([1e-12, 0.1, 1e3, 1e200, 1e300]), st.sampled_from([0.1, 4.0, 1e4]), st.integers(0, 9))
def test_no_learning_rate_moves_a_point_out_of_its_space(
    learning_rate: float, inverse_temperature: float, seed: int
) -> None:
    tree, positives = ternary_tree()
    config = FullSoftmaxConfig(
        epochs=5,
        learning_rate=learning_rate,
        final_learning_rate=learning_rate,
        temperature=1.0 / inverse_temperature,
        n_batches=22,
    )
    initial = cone_initialization(tree, 3, np.random.default_rng(seed), min_radius=2.0, max_radius=6.0)
    points, _ = train_full_softmax(initial, positives, config, device="cpu")
    assert geometry("lorentz").check(points).ok


def test_the_same_seed_gives_the_same_points() -> None:
    tree, positives = ternary_tree()
    first, second = (
        train_full_softmax(points_of(tree), positives, FullSoftmaxConfig(epochs=3), device="cpu", seed=5)[0]
        for _ in range(2)
    )
    assert first.tobytes() == second.tobytes()
