"""The objective of tree training: reference losses, and the numpy back end that uses them.

For a node u, a positive v and negatives w, with the distance d of the manifold, the softmax loss is

    -log( exp(-d(u,v)^p / T) / (exp(-d(u,v)^p / T) + c * sum over w of exp(-d(u,w)^p / T)) )

with the temperature T, the power p (1 or 2) and the weight c of the negatives: the loss of Nickel and Kiela (2017,
2018) with a temperature. Refinement replaces it by a hinge on squared distances. ``softmax_loss`` and ``hinge_loss``
state both with their derivatives; tests compare every back end with them. Which back end uses which terms:

    numpy                         both manifolds  p = 1, c = 1         sampled, branch and hard negatives
    numba, sgd_epoch              Euclidean       p = 1, c = 1         sampled, branch and hard negatives
    numba, shared_negatives_epoch hyperboloid     p = 2, c = 1, 8 T    shared, then also branch and hard negatives
    numba, refinement             both manifolds  hinge                all that violate the margin
    torch                         hyperboloid     p = 2, c rises to 1  all nodes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.accounts.training.sampling import (
    NO_NODE,
    POSITIVES_PER_CHUNK,
    NegativePool,
    PositivePairs,
    sample_negatives,
    update_hard_negatives,
)

if TYPE_CHECKING:
    from equipoise.domains.accounts.training.manifolds import Manifold
    from equipoise.domains.accounts.training.trainer import TrainingConfig
    from equipoise.types import Bools, Floats, Ints

BATCH_SIZE = 64
"""Chunks of positives per step of the numpy back end."""


def softmax_loss(
    positive_distances: Floats,
    negative_distances: Floats,
    *,
    temperature: float,
    power: float = 1.0,
    negative_weight: float = 1.0,
) -> tuple[float, Floats, Floats]:
    """Softmax loss of one node, and its derivatives by the distances.

    Parameters
    ----------
    positive_distances : (n_positives,) distances d(u, v)
    negative_distances : (n_negatives,) distances d(u, w)
    temperature : T in the formula of the module
    power : p in the formula
    negative_weight : c in the formula

    Returns
    -------
    The loss summed over the positives, its derivatives by d(u, v), (n_positives,), and by d(u, w), (n_negatives,).
    Without negatives all of them are 0.

    >>> loss, positive_gradient, negative_gradient = softmax_loss(np.ones(1), np.ones(3), temperature=0.5)
    >>> round(loss, 4), positive_gradient.tolist(), negative_gradient.tolist()
    (1.3863, [1.5], [-0.5, -0.5, -0.5])
    """
    if not len(negative_distances):
        return 0.0, np.zeros(len(positive_distances)), np.zeros(0)
    positive_logits = -(positive_distances**power) / temperature
    negative_logits = -(negative_distances**power) / temperature
    log_sum = np.logaddexp.reduce(negative_logits)
    log_negatives = log_sum + math.log(negative_weight)
    log_total = np.logaddexp(positive_logits, log_negatives)
    p_negative = np.exp(log_negatives - log_total)
    positive_slopes = power * positive_distances ** (power - 1.0) / temperature
    negative_slopes = power * negative_distances ** (power - 1.0) / temperature
    negative_gradient = -np.exp(negative_logits - log_sum) * p_negative.sum() * negative_slopes
    return float((log_total - positive_logits).sum()), p_negative * positive_slopes, negative_gradient


def hinge_loss(
    positive_distances: Floats,
    negative_distances: Floats,
    multiplicity: Floats,
    *,
    margin: float = 2.0,
    damping: float = 0.0,
) -> tuple[float, Floats, Floats]:
    """Hinge loss of one node on squared distances, and the derivatives of its damped form by the distances.

    ``H(u, v) = sum over w of multiplicity[w] * max(0, d(u,v)^2 + margin - d(u,w)^2)`` bounds the number of
    negatives that rank before v. The derivatives are those of ``(margin / damping) * log(1 + damping * H / margin)``,
    which limits the weight of pairs with many such negatives; damping 0 is H itself.

    Parameters
    ----------
    positive_distances : (n_positives,) distances d(u, v)
    negative_distances : (n_negatives,) distances d(u, w)
    multiplicity : (n_negatives,) number of negatives that each one represents
    margin, damping : as in the formulas

    Returns
    -------
    The sum of H over the positives, the derivatives by d(u, v), (n_positives,), and by d(u, w), (n_negatives,).

    >>> loss, positive_gradient, negative_gradient = hinge_loss(np.array([1.0]), np.array([1.0, 3.0]), np.ones(2))
    >>> loss, positive_gradient.tolist(), negative_gradient.tolist()
    (2.0, [2.0], [-2.0, -0.0])
    """
    excess = positive_distances[:, None] ** 2 + margin - negative_distances[None, :] ** 2
    hinge = (multiplicity * np.maximum(excess, 0.0)).sum(axis=1)
    pair_weights = 1.0 / (1.0 + damping * hinge / margin)
    active = multiplicity * (excess > 0.0) * pair_weights[:, None]
    positive_gradient = 2.0 * positive_distances * active.sum(axis=1)
    return float(hinge.sum()), positive_gradient, -2.0 * negative_distances * active.sum(axis=0)


MAX_RANKED_NODES = 6000
"""Larger trees are compared by the loss of the last epoch: ranks need all pairs of nodes."""
_ROWS_PER_BLOCK = 256


def rank_loss(manifold: Manifold, points: Floats, positives: PositivePairs, history: Sequence[float]) -> float:
    """The mean over all positives of ``log(1 + n)``, where n negatives are nearer to the node than the positive.

    The losses of training depend on the scale of the distances, and runs from different starts differ in it. This one
    does not, and it is 0 if every positive is nearer than all negatives. For a large tree it is the loss of the last
    epoch.
    """
    if len(points) > MAX_RANKED_NODES or not len(positives.keys) or not np.isfinite(points).all():
        return history[-1] if history else math.inf
    starts, targets = positives.lists.starts, positives.lists.targets
    columns = points.T.copy()
    if manifold.is_hyperbolic:
        columns[1:] *= -1.0
    squares = np.einsum("ij,ij->i", points, points)
    total = 0.0
    for begin in range(0, len(points), _ROWS_PER_BLOCK):
        end = min(begin + _ROWS_PER_BLOCK, len(points))
        # cosh of the distance, or half the squared distance; ranks need no more.
        proxies = points[begin:end] @ columns
        if not manifold.is_hyperbolic:
            proxies = 0.5 * (squares[begin:end, None] + squares) - proxies
        proxies[np.arange(end - begin), np.arange(begin, end)] = np.inf
        for row, node in enumerate(range(begin, end)):
            near = np.sort(proxies[row, targets[starts[node] : starts[node + 1]]])
            if len(near):
                # Positives among the nearer nodes are not negatives.
                total += np.log1p(_n_nearer(proxies[row], near) - np.arange(len(near))).sum()
    return float(total / len(positives.keys))


def _n_nearer(proxies: Floats, targets: Floats) -> Floats:
    """For each of the sorted targets, the number of proxies below it."""
    if len(targets) == 1:
        return np.array([np.count_nonzero(proxies < targets[0])], dtype=np.float64)
    candidates = np.sort(proxies[proxies < targets[-1]])
    return np.maximum(np.searchsorted(candidates, targets), np.arange(len(targets))).astype(np.float64)


def numpy_epoch(
    manifold: Manifold,
    points: Floats,
    hard_negatives: Ints,
    positives: PositivePairs,
    pool: NegativePool,
    config: TrainingConfig,
    learning_rates: Floats,
    rng: np.random.Generator,
) -> float:
    """One epoch over all chunks in random order; moves the points in place and returns the summed loss.

    ``learning_rates`` has one value per node. The loss is ``softmax_loss`` with power 1.
    """
    order = rng.permutation(len(positives.chunks))
    counts = (config.n_negatives, config.n_branch_negatives, config.n_neighbor_negatives)
    loss = 0.0
    for begin in range(0, len(order), BATCH_SIZE):
        chunks = positives.chunks[order[begin : begin + BATCH_SIZE]]
        sampled = sample_negatives(chunks[:, 0], hard_negatives, pool, positives, counts, rng)
        loss += _gradient_step(
            manifold, points, hard_negatives, positives, chunks, sampled, learning_rates, config.inverse_temperature
        )
    return loss


def _gradient_step(
    manifold: Manifold,
    points: Floats,
    hard_negatives: Ints,
    positives: PositivePairs,
    chunks: Ints,
    sampled: Ints,
    learning_rates: Floats,
    inverse_temperature: float,
) -> float:
    nodes = chunks[:, 0]
    index = chunks[:, 1, None] + np.arange(POSITIVES_PER_CHUNK)
    is_positive_slot = index < chunks[:, 2, None]
    positive_ids = positives.lists.targets[np.where(is_positive_slot, index, chunks[:, 1, None])]
    hard_ids = hard_negatives[nodes]
    negative_ids = np.concatenate([hard_ids, sampled], axis=1)
    is_negative_slot = (negative_ids != NO_NODE) & ~positives.contains(nodes[:, None], negative_ids)
    is_negative_slot[:, hard_ids.shape[1] :] &= ~(sampled[:, :, None] == hard_ids[:, None, :]).any(axis=2)
    other_ids = np.concatenate([positive_ids, negative_ids], axis=1)
    valid = np.concatenate([is_positive_slot, is_negative_slot], axis=1)
    node_points, other_points = points[nodes][:, None, :], points[other_ids]
    distance, gradient_at_node = manifold.distance_and_gradient(node_points, other_points)
    update_hard_negatives(
        hard_negatives, nodes, negative_ids, np.where(is_negative_slot, distance[:, POSITIVES_PER_CHUNK:], np.inf)
    )
    weights, loss = _batch_softmax_gradient(distance, valid, inverse_temperature)
    _, gradient_at_other = manifold.distance_and_gradient(other_points, node_points)
    gradient = [np.einsum("bk,bkd->bd", weights, gradient_at_node), (weights[..., None] * gradient_at_other)[valid]]
    _apply_gradient(
        manifold, points, np.concatenate([nodes, other_ids[valid]]), np.concatenate(gradient), learning_rates
    )
    return loss


def _batch_softmax_gradient(distance: Floats, valid: Bools, inverse_temperature: float) -> tuple[Floats, float]:
    """``softmax_loss`` with power 1 for a batch: derivatives by the distances times the temperature, and the loss.

    ``distance`` is (n_chunks, POSITIVES_PER_CHUNK + n_negatives); ``valid`` marks the entries in use.
    """
    logits = np.where(valid, -inverse_temperature * distance, -np.inf)
    used = valid[:, :POSITIVES_PER_CHUNK] & valid[:, POSITIVES_PER_CHUNK:].any(axis=1, keepdims=True)
    # Relative to the nearest negative, so that the sum of weights is neither 0 nor infinite.
    nearest = np.max(logits[:, POSITIVES_PER_CHUNK:], axis=1, keepdims=True, initial=-1e300)
    negative_weights = np.exp(logits[:, POSITIVES_PER_CHUNK:] - nearest)
    log_ratio = np.minimum(np.where(used, logits[:, :POSITIVES_PER_CHUNK] - nearest, 0.0), 500.0)
    positive_weights = np.exp(log_ratio)
    negative_sum = negative_weights.sum(axis=1, keepdims=True)
    total = positive_weights + negative_sum
    loss = float(np.sum(np.where(used, np.log(total) - log_ratio, 0.0)))
    gradient = np.empty_like(distance)
    gradient[:, :POSITIVES_PER_CHUNK] = np.where(used, negative_sum / total, 0.0)
    gradient[:, POSITIVES_PER_CHUNK:] = -negative_weights * np.where(used, 1.0 / total, 0.0).sum(axis=1, keepdims=True)
    return gradient, loss


def _apply_gradient(
    manifold: Manifold, points: Floats, node_ids: Ints, tangents: Floats, learning_rates: Floats
) -> None:
    """Move each point against the sum of its gradients, at its learning rate."""
    unique_ids, at = np.unique(node_ids, return_inverse=True)
    summed = np.empty((len(unique_ids), points.shape[1]))
    for axis in range(points.shape[1]):
        summed[:, axis] = np.bincount(at, weights=tangents[:, axis], minlength=len(unique_ids))
    points[unique_ids] = manifold.exp_map(points[unique_ids], -learning_rates[unique_ids, None] * summed)
