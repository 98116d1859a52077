"""Training in numpy, a batch of pieces at a time: relatives are drawn near, strangers pushed away."""

from __future__ import annotations

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


def NumpyBackend(
    space: Manifold,
    points: Floats,
    memory: Ints,
    relatives: PositivePairs,
    pool: NegativePool,
    schedule: TrainingConfig,
    rates: Floats,
    rng: np.random.Generator,
) -> float:
    """One walk over all pieces in random order; moves the points in place and returns the summed loss.

    Each node has a rate of its own.
    The loss of a node u and its relative v is ``-log(e(u,v) / (e(u,v) + sum of e(u,w)))`` over strangers w,
    with ``e(u,v) = exp(-sharpness d(u,v))``.
    """
    order = rng.permutation(len(relatives.pieces))
    counts = (schedule.strangers, schedule.kin, schedule.chained)
    loss = 0.0
    for begin in range(0, len(order), BATCH_SIZE):
        pieces = relatives.pieces[order[begin : begin + BATCH_SIZE]]
        fresh = sample_negatives(pieces[:, 0], memory, pool, relatives, counts, rng)
        loss += _gradient_step(space, points, memory, relatives, pieces, fresh, rates, schedule.sharpness)
    return loss


def _gradient_step(
    space: Manifold,
    points: Floats,
    memory: Ints,
    relatives: PositivePairs,
    pieces: Ints,
    fresh: Ints,
    rates: Floats,
    sharpness: float,
) -> float:
    nodes = pieces[:, 0]
    place = pieces[:, 1, None] + np.arange(POSITIVES_PER_CHUNK)
    near_here = place < pieces[:, 2, None]
    near = relatives.links.targets[np.where(near_here, place, pieces[:, 1, None])]
    known = memory[nodes]
    strangers = np.concatenate([known, fresh], axis=1)
    far_here = (strangers != NO_NODE) & ~relatives.include(nodes[:, None], strangers)
    far_here[:, known.shape[1] :] &= ~(fresh[:, :, None] == known[:, None, :]).any(axis=2)
    others, here = np.concatenate([near, strangers], axis=1), np.concatenate([near_here, far_here], axis=1)
    x, y = points[nodes][:, None, :], points[others]
    distance, from_other = space.apart(x, y)
    update_hard_negatives(memory, nodes, strangers, np.where(far_here, distance[:, POSITIVES_PER_CHUNK:], np.inf))
    pull, loss = softmax_loss(distance, here, sharpness)
    _, from_node = space.apart(y, x)
    gradient = [np.einsum("bk,bkd->bd", pull, from_other), (pull[..., None] * from_node)[here]]
    _apply_gradient(space, points, np.concatenate([nodes, others[here]]), np.concatenate(gradient), rates)
    return loss


def softmax_loss(distance: Floats, here: Bools, sharpness: float) -> tuple[Floats, float]:
    """The derivative of the loss by each distance, over the sharpness, and the loss of the batch."""
    score = np.where(here, -sharpness * distance, -np.inf)
    wanted = here[:, :POSITIVES_PER_CHUNK] & here[:, POSITIVES_PER_CHUNK:].any(axis=1, keepdims=True)
    # The nearest stranger is the unit of weight, so that their sum is neither 0 nor infinite.
    unit = np.max(score[:, POSITIVES_PER_CHUNK:], axis=1, keepdims=True, initial=-1e300)
    far = np.exp(score[:, POSITIVES_PER_CHUNK:] - unit)
    lead = np.minimum(np.where(wanted, score[:, :POSITIVES_PER_CHUNK] - unit, 0.0), 500.0)
    near = np.exp(lead)
    crowd = far.sum(axis=1, keepdims=True)
    total = near + crowd
    loss = float(np.sum(np.where(wanted, np.log(total) - lead, 0.0)))
    pull = np.empty_like(distance)
    pull[:, :POSITIVES_PER_CHUNK] = np.where(wanted, crowd / total, 0.0)
    pull[:, POSITIVES_PER_CHUNK:] = -far * np.where(wanted, 1.0 / total, 0.0).sum(axis=1, keepdims=True)
    return pull, loss


def _apply_gradient(space: Manifold, points: Floats, moving: Ints, tangents: Floats, rates: Floats) -> None:
    """Move each point against the sum of its gradients, at its own rate."""
    touched, at = np.unique(moving, return_inverse=True)
    summed = np.empty((len(touched), points.shape[1]))
    for axis in range(points.shape[1]):
        summed[:, axis] = np.bincount(at, weights=tangents[:, axis], minlength=len(touched))
    points[touched] = space.moved(points[touched], -rates[touched, None] * summed)
