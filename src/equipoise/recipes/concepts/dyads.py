"""Errors of a mean over pairs that share members: relations of one entity are not independent.

Leaving entities out would count what is particular to a single relation twice, once for each of its ends.
Here every relation gets a random weight instead, correlated with those that it shares an entity with, so
that the errors have the variance of a mean over dyads (Aronow, Samii and Assenova, Political Analysis 23,
2015).
"""

from __future__ import annotations

import numpy as np

from equipoise.types import Floats, Ints


def dyad_weights(edges: Ints, points: int, draws: int, rng: np.random.Generator) -> Floats:
    """A row a draw and a column an edge: weights with variance 1, and covariance 1 where edges meet.

    No weights have exactly these covariances in every graph; the nearest that exist are a little larger.

    >>> apart = dyad_weights(np.array([[0, 1], [2, 3]]), 4, 20_000, np.random.default_rng(0))
    >>> bool(np.allclose(np.cov(apart.T), np.eye(2), atol=0.05))
    True
    """
    ends = np.zeros((len(edges), points))
    rows = np.arange(len(edges))
    ends[rows, edges[:, 0]] = ends[rows, edges[:, 1]] = 1.0
    # Edges that meet share 1 in ends @ ends.T, but an edge shares 2 with itself: one of them is taken off,
    # and what would be a negative variance is cut. The eigenvalues are those of the smaller matrix.
    values, vectors = np.linalg.eigh(ends.T @ ends)
    kept = values > 1.0
    across = ends @ vectors[:, kept] * np.sqrt((values[kept] - 1.0) / values[kept])
    return np.asarray(rng.standard_normal((draws, int(kept.sum()))) @ across.T)


def dyad_errors(values: Floats, edges: Ints, points: int, draws: int, rng: np.random.Generator) -> Floats:
    """How far the mean of ``values``, one an edge, may be off: one error a draw."""
    weights = dyad_weights(edges, points, draws, rng)
    return np.asarray(weights @ (values - values.mean()) / len(values))
