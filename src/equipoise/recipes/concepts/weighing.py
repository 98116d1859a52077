"""How much the winner owes to the weights: in what share of all weightings each model comes first."""

from __future__ import annotations

import numpy as np

from equipoise.errors import ShapeError
from equipoise.types import Floats

WEIGHTINGS = 20_000
"""Weightings that are drawn: a share of one half is then known to within 0.007."""


def winning_shares(
    scores: Floats, errors: Floats | None = None, *, weightings: int = WEIGHTINGS, seed: int = 0
) -> Floats:
    """The share of the simplex of weights in which each model has the highest weighted sum.

    ``scores`` has a row a model and a column a score. Weights are drawn evenly from all that are not negative
    and add up to 1. ``errors`` (models, scores, redraws) moves the scores by one redraw of their units a
    weighting, so that a lead that other data could undo counts only as often as it holds. Models that are
    equal share a win.

    >>> winning_shares(np.array([[0.9, 0.1], [0.1, 0.9]])).round(1).tolist()
    [0.5, 0.5]
    """
    if scores.ndim != 2:
        raise ShapeError(
            f"the scores have {scores.ndim} dimensions", hint="give an array of (models, scores)"
        )
    rng = np.random.default_rng([seed, weightings])
    weights = rng.dirichlet(np.ones(scores.shape[1]), size=weightings)
    totals = weights @ scores.T
    if errors is not None and errors.shape[2]:
        totals += np.einsum("ws,msw->wm", weights, errors[:, :, np.arange(weightings) % errors.shape[2]])
    best = totals >= totals.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))
