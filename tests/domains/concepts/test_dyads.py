"""Errors of a mean over relations, against theory and against slow sums."""

import numpy as np
import pytest

from equipoise.domains.concepts.evidence import dyadic_errors, dyadic_weights

EDGES = np.array([[0, 1], [0, 2], [3, 0], [3, 4], [5, 6], [7, 5], [8, 9]])


def test_edges_that_share_no_point_are_independent() -> None:
    values = np.random.default_rng(0).normal(size=40)
    apart = np.arange(80).reshape(40, 2)
    errors = dyadic_errors(values, apart, 80, 20_000, np.random.default_rng(1))
    assert errors.std() == pytest.approx(values.std() / np.sqrt(40), rel=0.03)


def test_the_variance_is_at_least_that_of_the_sum_over_edges_that_meet() -> None:
    values = np.random.default_rng(2).normal(size=len(EDGES))
    off = values - values.mean()
    meet = [[bool(set(one) & set(other)) for other in EDGES.tolist()] for one in EDGES.tolist()]
    known = off @ np.array(meet, dtype=float) @ off / len(EDGES) ** 2
    errors = dyadic_errors(values, EDGES, 10, 40_000, np.random.default_rng(3))
    assert known * 0.95 < errors.var() < 2 * known


def test_points_that_carry_the_figure_count_in_full() -> None:
    """All edges of a star owe their value to the same point, which was drawn once."""
    star = np.array([[0, other] for other in range(1, 21)])
    weights = dyadic_weights(star, 21, 5000, np.random.default_rng(4))
    assert np.corrcoef(weights.T).min() > 0.9
    assert weights.var() == pytest.approx(1.0, rel=0.1)


def test_random_vectors_stray_as_much_as_their_errors_say() -> None:
    """Forty models that know nothing: the spread of their coherence, and the error that each expects."""
    rng = np.random.default_rng(6)
    edges = np.unique(np.sort([rng.choice(60, 2, replace=False) for _ in range(60)], axis=1), axis=0)
    means, errors = [], []
    for _ in range(40):
        vectors = rng.normal(size=(60, 24))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        values = np.einsum("ij,ij->i", vectors[edges[:, 0]], vectors[edges[:, 1]])
        means.append(values.mean())
        errors.append(dyadic_errors(values, edges, 60, 300, rng).std())
    assert 0.85 < np.mean(errors) / np.std(means) < 1.45
