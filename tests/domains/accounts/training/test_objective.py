"""The reference losses, and every back end compared with them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from domains.accounts.training.reference_losses import hinge_loss, softmax_loss
from domains.accounts.training.reference_manifold import SPACES, distance_and_gradient, some_points
from equipoise.domains.accounts.training.objective import (
    POSITIVES_PER_CHUNK,
    Manifold,
    PositivePairs,
    chunk_rows,
)
from equipoise.domains.accounts.trees.tree import RELATIONS, Tree

RNG = np.random.default_rng(4)
NEAR, FAR = RNG.uniform(0.3, 3.0, POSITIVES_PER_CHUNK), RNG.uniform(0.3, 3.0, 9)
TREE = Tree.from_edges([(f"n{node}", f"n{(node - 1) // 3}") for node in range(1, 30)])


def central_differences(loss, values: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a loss by each value."""
    shifts = step * np.eye(len(values))
    return np.array([(loss(values + shift) - loss(values - shift)) / (2.0 * step) for shift in shifts])


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("weight", [1.0, 0.2])
def test_softmax_derivatives_equal_central_differences(power: float, weight: float) -> None:
    options = {"temperature": 0.4, "power": power, "negative_weight": weight}
    _, by_positive, by_negative = softmax_loss(NEAR, FAR, **options)
    np.testing.assert_allclose(
        by_positive, central_differences(lambda d: softmax_loss(d, FAR, **options)[0], NEAR), atol=1e-7
    )
    np.testing.assert_allclose(
        by_negative, central_differences(lambda d: softmax_loss(NEAR, d, **options)[0], FAR), atol=1e-7
    )


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_numba_equals_the_softmax_reference(power: float) -> None:
    numba_sgd = pytest.importorskip("equipoise.domains.accounts.training.numba_sgd")
    loss, by_positive, by_negative = softmax_loss(NEAR, FAR, temperature=0.5, power=power)
    positive, negative = np.empty(len(NEAR)), np.empty(len(FAR))
    assert numba_sgd.softmax_gradient(NEAR**power, FAR**power, 2.0, positive, negative) == pytest.approx(loss)
    np.testing.assert_allclose(2.0 * power * NEAR ** (power - 1) * positive, by_positive, atol=1e-10)
    np.testing.assert_allclose(-2.0 * power * FAR ** (power - 1) * negative, by_negative, atol=1e-10)


@pytest.mark.parametrize("manifold", SPACES)
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_refinement_equals_the_hinge_reference(manifold: Manifold, damping: float) -> None:
    refinement = pytest.importorskip("equipoise.domains.accounts.training.numba_refinement")
    positives = PositivePairs.of(TREE, "closure")
    points = some_points(manifold, len(TREE))
    node, targets = 1, positives.lists[1]
    negatives = np.setdiff1d(np.arange(len(TREE)), [*targets, node])
    starts = np.concatenate([[0, 0], np.full(len(TREE) - 1, len(negatives))])
    multiplicity = np.linspace(1.0, 3.0, len(negatives))
    chunks = chunk_rows(positives.lists, 64)
    state = refinement.new_adam_state(points)
    _, loss_of_kernel = refinement.hinge_gradient(
        points, manifold.is_hyperbolic, chunks[chunks[:, 0] == node], positives.lists.values, starts,
        negatives.astype(np.int32), multiplicity, refinement.MARGIN, damping, state,
    )  # fmt: skip
    others = np.concatenate([targets, negatives])
    distance, _ = distance_and_gradient(manifold, np.broadcast_to(points[node], points[others].shape), points[others])
    loss, *by_distance = hinge_loss(distance[: len(targets)], distance[len(targets) :], multiplicity, damping=damping)
    assert loss_of_kernel == pytest.approx(loss)
    _, tangents = distance_and_gradient(manifold, points[others], np.broadcast_to(points[node], points[others].shape))
    signs = np.where((np.arange(points.shape[1]) == 0) & manifold.is_hyperbolic, -1.0, 1.0)
    slopes = (signs * state.gradient[others] * tangents).sum(axis=1)
    np.testing.assert_allclose(slopes, np.concatenate(by_distance), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
def test_torch_equals_the_softmax_reference() -> None:
    import torch

    from equipoise.domains.accounts.training.torch_backend import _FullSoftmax

    positives = PositivePairs.of(TREE, "closure").lists
    points = some_points(SPACES[1], len(TREE))
    full_softmax = _FullSoftmax.of(positives, len(TREE), torch.device("cpu"))
    _, loss = full_softmax.gradient(torch.tensor(points), torch.arange(len(TREE)), 2.0, 0.3)
    expected = 0.0
    for node in range(len(TREE)):
        distance, _ = distance_and_gradient(SPACES[1], np.broadcast_to(points[node], points.shape), points)
        negatives = np.setdiff1d(np.arange(len(TREE)), [*positives[node], node])
        expected += softmax_loss(
            distance[positives[node]], distance[negatives], temperature=0.5, power=2.0, negative_weight=0.3
        )[0]
    assert loss == pytest.approx(expected)


@pytest.mark.parametrize("relation", RELATIONS)
def test_positives_follow_the_relation_and_related_is_symmetric(relation: str) -> None:
    positives = PositivePairs.of(TREE, relation)
    ancestor_pairs = {(int(a), int(b)) for a, b in (TREE.edges if relation == "parent" else TREE.closure())}
    expected = ancestor_pairs | {(b, a) for a, b in ancestor_pairs} if relation == "closure" else ancestor_pairs
    related_pairs = {(int(a), int(b)) for pair in TREE.closure() for a, b in (pair, pair[::-1])}
    assert {(node, int(other)) for node in range(len(TREE)) for other in positives.related[node]} == related_pairs
    pairs = [
        (int(node), int(other))
        for node, start, stop in positives.chunks
        for other in positives.lists.values[start:stop]
    ]
    assert pairs == sorted(expected)
    assert (positives.chunks[:, 2] - positives.chunks[:, 1]).max() <= POSITIVES_PER_CHUNK
