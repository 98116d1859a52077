"""Errors of a mean over relations, compared with theory and with plain sums."""

import numpy as np
import pytest

from equipoise.domains.concepts.evidence import dyadic_errors, dyadic_weights

EDGES = np.array([[0, 1], [0, 2], [3, 0], [3, 4], [5, 6], [7, 5], [8, 9]])


def test_edges_without_shared_points_are_independent() -> None:
    values = np.random.default_rng(0).normal(size=40)
    disjoint_edges = np.arange(80).reshape(40, 2)
    errors = dyadic_errors(values, disjoint_edges, 80, 20_000, np.random.default_rng(1))
    assert errors.std() == pytest.approx(values.std() / np.sqrt(40), rel=0.03)


def test_the_variance_is_at_least_that_of_the_sum_over_edges_that_share_a_point() -> None:
    values = np.random.default_rng(2).normal(size=len(EDGES))
    deviations = values - values.mean()
    share_point = [[bool(set(first) & set(second)) for second in EDGES.tolist()] for first in EDGES.tolist()]
    variance = deviations @ np.array(share_point, dtype=float) @ deviations / len(EDGES) ** 2
    errors = dyadic_errors(values, EDGES, 10, 40_000, np.random.default_rng(3))
    assert variance * 0.95 < errors.var() < 2 * variance


def test_edges_of_one_point_have_correlated_weights() -> None:
    """All edges of a star share one point, which is resampled once."""
    star = np.array([[0, point] for point in range(1, 21)])
    weights = dyadic_weights(star, 21, 5000, np.random.default_rng(4))
    assert np.corrcoef(weights.T).min() > 0.9
    assert weights.var() == pytest.approx(1.0, rel=0.1)


def test_errors_of_random_vectors_are_close_to_the_standard_deviation_of_their_means() -> None:
    """The standard deviation of the coherence of 400 random models, and the mean of the estimated errors."""
    rng = np.random.default_rng(6)
    edges = np.unique(np.sort([rng.choice(60, 2, replace=False) for _ in range(60)], axis=1), axis=0)
    means, errors = [], []
    for _ in range(400):
        vectors = rng.normal(size=(60, 24))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        values = np.einsum("ij,ij->i", vectors[edges[:, 0]], vectors[edges[:, 1]])
        means.append(values.mean())
        errors.append(dyadic_errors(values, edges, 60, 300, rng).std())
    assert 0.85 < np.mean(errors) / np.std(means) < 1.45
