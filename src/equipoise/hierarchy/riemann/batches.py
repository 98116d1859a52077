"""Training in numpy, a batch of pieces at a time: relatives are drawn near, strangers pushed away."""

from __future__ import annotations

import numpy as np

from equipoise.hierarchy.riemann.relatives import PIECE, Relatives
from equipoise.hierarchy.riemann.schedule import Schedule
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.hierarchy.riemann.strangers import NOBODY, Pool, drawn, remembered
from equipoise.types import Bools, Floats, Ints

BATCH = 64


def epoch(
    space: Space,
    points: Floats,
    memory: Ints,
    relatives: Relatives,
    pool: Pool,
    schedule: Schedule,
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
    for begin in range(0, len(order), BATCH):
        pieces = relatives.pieces[order[begin : begin + BATCH]]
        fresh = drawn(pieces[:, 0], memory, pool, relatives, counts, rng)
        loss += _descend(space, points, memory, relatives, pieces, fresh, rates, schedule.sharpness)
    return loss


def _descend(
    space: Space,
    points: Floats,
    memory: Ints,
    relatives: Relatives,
    pieces: Ints,
    fresh: Ints,
    rates: Floats,
    sharpness: float,
) -> float:
    nodes = pieces[:, 0]
    place = pieces[:, 1, None] + np.arange(PIECE)
    near_here = place < pieces[:, 2, None]
    near = relatives.links.targets[np.where(near_here, place, pieces[:, 1, None])]
    known = memory[nodes]
    strangers = np.concatenate([known, fresh], axis=1)
    far_here = (strangers != NOBODY) & ~relatives.include(nodes[:, None], strangers)
    far_here[:, known.shape[1] :] &= ~(fresh[:, :, None] == known[:, None, :]).any(axis=2)
    others, here = np.concatenate([near, strangers], axis=1), np.concatenate([near_here, far_here], axis=1)
    x, y = points[nodes][:, None, :], points[others]
    distance, from_other = space.apart(x, y)
    remembered(memory, nodes, strangers, np.where(far_here, distance[:, PIECE:], np.inf))
    pull, loss = _pulls(distance, here, sharpness)
    _, from_node = space.apart(y, x)
    gradient = [np.einsum("bk,bkd->bd", pull, from_other), (pull[..., None] * from_node)[here]]
    _move(space, points, np.concatenate([nodes, others[here]]), np.concatenate(gradient), rates)
    return loss


def _pulls(distance: Floats, here: Bools, sharpness: float) -> tuple[Floats, float]:
    """The derivative of the loss by each distance, over the sharpness, and the loss of the batch."""
    score = np.where(here, -sharpness * distance, -np.inf)
    wanted = here[:, :PIECE] & here[:, PIECE:].any(axis=1, keepdims=True)
    # The nearest stranger is the unit of weight, so that their sum is neither 0 nor infinite.
    unit = np.max(score[:, PIECE:], axis=1, keepdims=True, initial=-1e300)
    far = np.exp(score[:, PIECE:] - unit)
    lead = np.minimum(np.where(wanted, score[:, :PIECE] - unit, 0.0), 500.0)
    near = np.exp(lead)
    crowd = far.sum(axis=1, keepdims=True)
    total = near + crowd
    loss = float(np.sum(np.where(wanted, np.log(total) - lead, 0.0)))
    pull = np.empty_like(distance)
    pull[:, :PIECE] = np.where(wanted, crowd / total, 0.0)
    pull[:, PIECE:] = -far * np.where(wanted, 1.0 / total, 0.0).sum(axis=1, keepdims=True)
    return pull, loss


def _move(space: Space, points: Floats, moving: Ints, tangents: Floats, rates: Floats) -> None:
    """Move each point against the sum of its gradients, at its own rate."""
    touched, at = np.unique(moving, return_inverse=True)
    summed = np.empty((len(touched), points.shape[1]))
    for axis in range(points.shape[1]):
        summed[:, axis] = np.bincount(at, weights=tangents[:, axis], minlength=len(touched))
    points[touched] = space.moved(points[touched], -rates[touched, None] * summed)
