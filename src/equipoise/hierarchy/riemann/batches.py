"""One batch of training in numpy: relatives are drawn near, strangers pushed away."""

from __future__ import annotations

import numpy as np

from equipoise.hierarchy.riemann.relatives import PIECE, Relatives
from equipoise.hierarchy.riemann.spaces import Space
from equipoise.types import Bools, Floats, Ints


def descend(
    space: Space,
    points: Floats,
    relatives: Relatives,
    pieces: Ints,
    strangers: Ints,
    rate: float,
    sharpness: float,
) -> float:
    """Move the points of one batch in place; returns the sum of the losses of its pairs.

    The loss of a node u and its relative v is ``-log(e(u,v) / (e(u,v) + sum of e(u,w)))`` over the strangers w,
    with ``e(u,v) = exp(-sharpness d(u,v))``. Strangers that turn out to be relatives are left out.
    """
    nodes = pieces[:, 0]
    place = pieces[:, 1, None] + np.arange(PIECE)
    near_here = place < pieces[:, 2, None]
    near = relatives.links.targets[np.where(near_here, place, pieces[:, 1, None])]
    far_here = ~relatives.include(np.broadcast_to(nodes[:, None], strangers.shape), strangers)
    others = np.concatenate([near, strangers], axis=1)
    here = np.concatenate([near_here, far_here], axis=1)
    x = points[nodes][:, None, :]
    y = points[others]
    distance, from_other = space.apart(x, y)
    pull, loss = _pulls(distance, here, sharpness)
    _, from_node = space.apart(y, x)
    at_node = np.einsum("bk,bkd->bd", pull, from_other)
    moving = np.concatenate([nodes, others[here]])
    tangents = np.concatenate([at_node, (pull[..., None] * from_node)[here]])
    touched, at = np.unique(moving, return_inverse=True)
    gradient = np.stack(
        [np.bincount(at, weights=tangents[:, axis], minlength=len(touched)) for axis in range(x.shape[-1])],
        axis=1,
    )
    points[touched] = space.moved(points[touched], -rate * gradient)
    return loss


def _pulls(distance: Floats, here: Bools, sharpness: float) -> tuple[Floats, float]:
    """The derivative of the summed loss by each distance, 0 where nobody is, and the loss itself."""
    score = np.where(here, -sharpness * distance, -np.inf)
    score -= score.max(axis=1, keepdims=True)
    weight = np.exp(score)
    near, far = weight[:, :PIECE], weight[:, PIECE:]
    total = near + far.sum(axis=1, keepdims=True)
    wanted = here[:, :PIECE]
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=wanted & (total > 0.0))
    loss = float(
        np.sum(np.log(total, where=wanted, out=np.zeros_like(total)) - np.where(wanted, score[:, :PIECE], 0))
    )
    pull = np.empty_like(distance)
    pull[:, :PIECE] = np.where(wanted, 1.0 - near * inverse, 0.0)
    pull[:, PIECE:] = -far * inverse.sum(axis=1, keepdims=True)
    return sharpness * pull, loss
