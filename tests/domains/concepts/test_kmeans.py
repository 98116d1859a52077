"""K-means in numpy: compared with all partitions of a few points and with scikit-learn."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from equipoise.tasks.numpy_estimators import _lloyd, fast_kmeans, kmeans, rotate_to_span


def inertia(points: np.ndarray, labels: np.ndarray) -> float:
    groups = [points[labels == label] for label in np.unique(labels)]
    return float(sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups))


@pytest.mark.parametrize("seed", range(5))
def test_many_starts_find_the_optimal_partition(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(7, 2))
    best = min(inertia(points, np.array(labels)) for labels in product(range(3), repeat=7) if len(set(labels)) == 3)
    assert inertia(points, fast_kmeans(points, 3, seed=seed, starts=60)) == pytest.approx(best)


def test_inertia_is_close_to_that_of_scikit_learn() -> None:
    engine = pytest.importorskip("sklearn.cluster").KMeans
    rng = np.random.default_rng(0)
    ratios = []
    for seed in range(12):
        points = rng.normal(size=(35, 20))
        expected = engine(8, n_init=10, random_state=seed).fit_predict(points)
        ratios.append(inertia(points, fast_kmeans(points, 8, seed=seed)) / inertia(points, expected))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_few_points_are_clustered_as_by_scikit_learn(spread: float) -> None:
    engine = pytest.importorskip("sklearn.cluster").KMeans
    rng = np.random.default_rng(int(spread))
    for seed in range(15):
        n_points, dim, count = int(rng.integers(12, 130)), int(rng.choice([1, 2, 30, 200])), int(rng.integers(2, 12))
        centers = spread * rng.normal(size=(count, dim))
        points = centers[rng.integers(0, count, n_points)] + rng.normal(size=(n_points, dim))
        expected = engine(count, n_init=10, random_state=seed).fit_predict(points)
        assert np.array_equal(kmeans(points, count, seed=seed), expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_points_are_clustered_as_by_scikit_learn(sparse: bool) -> None:
    engine = pytest.importorskip("sklearn.cluster").KMeans
    rng = np.random.default_rng(3)
    points = rng.normal(size=(40, 50))[rng.integers(0, 40, 2500)] + rng.normal(size=(2500, 50))
    vectors = csr_array(np.where(points > 1, points, 0)) if sparse else points
    assert np.array_equal(kmeans(vectors, 40), engine(40, n_init=10, random_state=0).fit_predict(vectors))


@pytest.mark.parametrize("sparse", [False, True])
def test_empty_clusters_get_the_points_of_scikit_learn(sparse: bool) -> None:
    private = pytest.importorskip("sklearn.cluster._kmeans")
    rng = np.random.default_rng(5)
    for _ in range(20):
        points = rng.normal(size=(40, 3))
        points -= points.mean(axis=0)
        squares = np.square(points).sum(axis=1)
        centers = np.vstack([points[:3], np.full((2, 3), 50.0)])  # no point is near the last two
        vectors = csr_array(points) if sparse else points
        expected, inertia, *_ = private._kmeans_single_lloyd(vectors, np.ones(40), centers.copy(), tol=1e-4)
        labels, own_inertia = _lloyd(vectors, squares, centers.copy(), 1e-4)
        assert np.array_equal(labels, expected)
        assert own_inertia == pytest.approx(inertia)
        assert len(set(labels.tolist())) == 5


def test_separated_groups_are_clusters_and_a_seed_repeats_its_clusters() -> None:
    rng = np.random.default_rng(1)
    points = np.repeat(np.eye(4) * 20, 5, axis=0) + rng.normal(size=(20, 4))
    labels = fast_kmeans(points, 4, seed=2)
    assert len(np.unique(labels)) == 4
    assert all(len(set(labels[start : start + 5].tolist())) == 1 for start in range(0, 20, 5))
    assert np.array_equal(labels, fast_kmeans(points, 4, seed=2))


def test_equal_points_are_one_cluster() -> None:
    assert len(set(fast_kmeans(np.ones((6, 3)), 3).tolist())) == 1


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.floats(-10, 10)))
def test_rotation_keeps_every_inner_product(vectors: np.ndarray) -> None:
    rotated = rotate_to_span(vectors)
    assert rotated.shape[1] <= max(vectors.shape[0], 1) or rotated.shape == vectors.shape
    assert rotated @ rotated.T == pytest.approx(vectors @ vectors.T, abs=1e-8)
