"""Properties of vectors, compared with scikit-learn, scipy and direct implementations."""

from __future__ import annotations

from math import exp, isnan, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import silhouette_samples, silhouette_score

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.space import Space
from equipoise.metrics import intrinsic
from equipoise.metrics.intrinsic import (
    EffectiveRank,
    Hubness,
    Isotropy,
    MeanCosine,
    Uniformity,
    k_occurrences,
)
from equipoise.metrics.structure import METRICS, Alignment, EdgeCoherence, GraphMetric, NormDepthCorrelation, Silhouette

SHAPES = [(2, 2), (7, 3), (40, 5), (25, 40)]
COSINE_METRICS = (
    Silhouette(),
    Uniformity(),
    MeanCosine(),
    Hubness(neighbours=3),
    EdgeCoherence(),
    Alignment(),
)


def random_space(n: int = 60, d: int = 4, seed: int = 0, **columns) -> Space:
    rng = np.random.default_rng(seed)
    edges = np.unique(np.sort(rng.integers(0, n, size=(2 * n, 2)), axis=1), axis=0)
    default_columns = {
        "labels": rng.integers(0, 3, size=n),
        "depth": rng.integers(0, 5, size=n),
        "edges": edges[edges[:, 0] != edges[:, 1]],
    }
    return Space.of(rng.normal(size=(n, d)) + rng.normal(size=d), **{**default_columns, **columns})


@pytest.fixture(params=[32 << 20, 1000], ids=["one block", "many blocks"])
def _block_sizes(request, monkeypatch):
    monkeypatch.setattr(intrinsic, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_silhouettes_agree_with_scikit_learn_per_point(distance, shift):
    rng = np.random.default_rng(2)
    labels = np.concatenate([rng.integers(0, 6, size=89), [9]])  # the last class has a single point
    vectors = rng.normal(size=(90, 7)) + labels[:, None] % 3 + shift
    silhouettes = Silhouette(distance=distance).measure(Space.of(vectors, labels=labels)).per_unit
    tolerance = 1e-9 if shift == 0 else 1e-6  # scikit-learn has fewer correct digits far from the origin
    np.testing.assert_allclose(silhouettes, silhouette_samples(vectors, labels, metric=distance), atol=tolerance)
    assert silhouettes[-1] == 0.0


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_float32_vectors_are_measured_in_float64(distance):
    space = random_space(200, 16)
    single = Space.of(space.vectors.astype(np.float32), labels=space.labels)
    double = Space.of(single.vectors.astype(np.float64), labels=space.labels)
    metric = Silhouette(distance=distance)
    np.testing.assert_array_equal(metric.per_unit(single), metric.per_unit(double))


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_identical_points_in_different_classes_are_not_separated(distance):
    space = Space.of(np.full((30, 5), 0.1), labels=np.arange(30) % 3)
    assert Silhouette(distance=distance).per_unit(space).tolist() == [0.0] * 30


def test_silhouettes_need_two_classes_and_non_zero_vectors():
    assert np.isnan(Silhouette().per_unit(Space.of(np.eye(3), labels=[1, 1, 1]))).all()
    vectors = np.array([[0.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]])
    with_zero = Silhouette().per_unit(Space.of(vectors, labels=[0, 0, 0, 1, 1]))
    without_zero = Silhouette().per_unit(Space.of(vectors[1:], labels=[0, 0, 1, 1]))
    np.testing.assert_array_equal(with_zero, [nan, *without_zero])
    assert not np.isnan(Silhouette(distance="euclidean").per_unit(Space.of(vectors, labels=[0, 0, 0, 1, 1]))).any()


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_metrics_agree_with_all_pairs(shape):
    space = random_space(*shape)
    cosines = 1 - pdist(space.vectors, "cosine")
    unit_vectors = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    assert MeanCosine().measure(space).value == pytest.approx(cosines.mean(), abs=1e-12)
    for t in (0.5, 2.0):
        expected = log(np.exp(-t * pdist(unit_vectors, "sqeuclidean")).mean())
        assert Uniformity(t=t).measure(space).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_edge_metrics_agree_with_a_loop_over_edges(alpha):
    space = random_space()
    unit_vectors = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    cosines = [unit_vectors[i] @ unit_vectors[j] for i, j in space.edges]
    lengths = [np.linalg.norm(unit_vectors[i] - unit_vectors[j]) ** alpha for i, j in space.edges]
    assert EdgeCoherence().measure(space).value == pytest.approx(np.mean(cosines), abs=1e-12)
    assert Alignment(alpha=alpha).measure(space).value == pytest.approx(np.mean(lengths), abs=1e-9)


def test_edges_of_zero_vectors_have_cosine_0_and_no_length():
    vectors = [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    two_edges = Space.of(vectors, edges=[[0, 1], [0, 2]])
    assert EdgeCoherence().measure(two_edges).value == pytest.approx(sqrt(0.5) / 2)
    assert Alignment().measure(two_edges).value == pytest.approx(2 - 2 * sqrt(0.5))
    zero_edge_only = Space.of(vectors, edges=[[0, 1]])
    assert isnan(EdgeCoherence().measure(zero_edge_only).value)
    assert isnan(Alignment().measure(zero_edge_only).value)


def isoscore(points) -> float:
    """IsoScore as published: rotate to principal axes, normalise the variances, compare with the identity."""
    d = points.shape[1]
    variances = np.linalg.eigvalsh(np.cov(points.T))
    normalised = sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalised - np.ones(d)) / sqrt(2 * (d - sqrt(d)))
    isotropic_share = (d - defect**2 * (d - sqrt(d))) ** 2 / d**2
    return (d * isotropic_share - 1) / (d - 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_isotropy_agrees_with_the_published_isoscore(shape):
    space = random_space(*shape)
    stretched = Space.of(space.vectors * np.arange(1, shape[1] + 1))
    for measured_space in (space, stretched):
        assert Isotropy().measure(measured_space).value == pytest.approx(isoscore(measured_space.vectors), abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_effective_rank_is_the_exponential_of_the_entropy(shape):
    space = random_space(*shape)
    entropy = stats.entropy(np.linalg.svd(space.vectors)[1])
    assert EffectiveRank().measure(space).value == pytest.approx(exp(entropy), rel=1e-9)


def test_effective_rank_counts_equal_axes():
    assert EffectiveRank().measure(Space.of(np.eye(6)[:, :4] * 3)).value == pytest.approx(4.0)
    line = np.outer(np.arange(1.0, 50.0), np.arange(1.0, 9.0))
    assert EffectiveRank().measure(Space.of(line)).value == pytest.approx(1.0, abs=1e-9)


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("neighbours", [1, 5, 10])
def test_hubness_agrees_with_neighbour_counts(neighbours):
    space = random_space(80, 20)
    distances = cdist(space.vectors, space.vectors, "cosine")
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :neighbours]
    expected = stats.skew(np.bincount(nearest.ravel(), minlength=80))
    assert Hubness(neighbours=neighbours).measure(space).value == pytest.approx(expected, abs=1e-9)


def test_neighbours_tied_at_the_cutoff_share_the_last_rank():
    vectors = np.repeat(random_space(12, 3).vectors, 4, axis=0)
    occurrences = k_occurrences(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 5)
    assert occurrences.sum() == pytest.approx(5 * 48)
    np.testing.assert_allclose(occurrences.reshape(12, 4), occurrences[::4, None].repeat(4, axis=1), atol=1e-12)


def test_hubness_of_equal_neighbour_counts_is_undefined():
    angles = np.arange(12) * np.pi / 6
    ring = Space.of(np.column_stack([np.cos(angles), np.sin(angles)]))
    assert isnan(Hubness(neighbours=2).measure(ring).value)
    assert isnan(Hubness(neighbours=11).measure(random_space(12)).value)


def test_norm_depth_correlation_agrees_with_scipy():
    space = random_space()
    expected = stats.spearmanr(np.linalg.norm(space.vectors, axis=1), space.depth).statistic
    assert NormDepthCorrelation().measure(space).value == pytest.approx(expected, abs=1e-12)
    norms = np.random.default_rng(3).random(60)
    space_with_norms = Space.of(space.vectors, depth=space.depth, norms=norms)
    expected = stats.spearmanr(norms, space.depth).statistic
    assert NormDepthCorrelation().measure(space_with_norms).value == pytest.approx(expected, abs=1e-12)


def test_unknown_depths_are_excluded_and_constant_norms_are_undefined():
    vectors = np.array([[1.0], [2.0], [9.0], [3.0]])
    assert NormDepthCorrelation().measure(Space.of(vectors, depth=[0, 1, nan, 2])).value == 1.0
    for space in (
        Space.of(vectors, depth=[0, 1, 2, 3], norms=np.ones(4)),
        Space.of(vectors, depth=[1, 1, 1, 1]),
        Space.of(vectors, depth=[1, nan, nan, nan]),
    ):
        assert isnan(NormDepthCorrelation().measure(space).value)
        assert isnan(NormDepthCorrelation().chance(space, np.random.default_rng(0)))


@given(st.lists(st.floats(1e-3, 1e3), min_size=60, max_size=60))
@settings(max_examples=25)
def test_cosine_metrics_do_not_depend_on_norms(lengths):
    space = random_space()
    stretched = random_space().take(np.arange(60))
    object.__setattr__(stretched, "vectors", space.vectors * np.array(lengths)[:, None])
    for metric in COSINE_METRICS:
        assert metric.measure(stretched).value == pytest.approx(metric.measure(space).value, abs=1e-9)


@pytest.mark.parametrize("metric", [*COSINE_METRICS, EffectiveRank(), Isotropy(), NormDepthCorrelation()], ids=str)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_metrics_do_not_depend_on_the_scale(metric, scale):
    space = random_space()
    scaled = Space.of(space.vectors * scale, labels=space.labels, depth=space.depth, edges=space.edges)
    assert metric.measure(scaled).value == pytest.approx(metric.measure(space).value, abs=1e-9)


@pytest.mark.parametrize("metric", [kind() for kind in METRICS], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_metrics_ignore_the_order_of_points_and_stay_within_bounds(metric, seed):
    space = random_space(30, 3, seed)
    value = metric.measure(space).value
    permuted = space.take(np.random.default_rng(seed).permutation(30))
    assert metric.measure(permuted).value == pytest.approx(value, abs=1e-9)
    assert metric.bounds[0] <= value <= metric.bounds[1]


@pytest.mark.parametrize("metric", [kind() for kind in METRICS], ids=str)
def test_one_point_zero_vectors_and_no_points_give_nan(metric):
    for vectors in ([[1.0, 2.0]], np.zeros((12, 2)), np.empty((0, 2))):
        n = len(vectors)
        space = Space.of(vectors, labels=np.arange(n) % 2, depth=np.arange(n), edges=[])
        if not (n == 1 and isinstance(metric, EffectiveRank)) and not isinstance(metric, GraphMetric):
            assert isnan(metric.measure(space).value)


def test_one_vector_has_effective_rank_one():
    assert EffectiveRank().measure(Space.of([[1.0, 2.0]])).value == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_silhouette_chance_is_the_mean_silhouette_of_permuted_labels(classes):
    labels = np.repeat(np.arange(classes), 120 // classes)
    vectors = np.random.default_rng(0).normal(size=(120, 6)) + 6 * np.eye(6)[labels]
    space = Space.of(vectors, labels=labels)
    rng = np.random.default_rng(1)
    permuted_scores = [silhouette_score(vectors, rng.permutation(labels), metric="cosine") for _ in range(40)]
    chance = Silhouette().chance(space, np.random.default_rng(0))
    assert Silhouette().measure(space).value > 0.5
    assert chance == pytest.approx(np.mean(permuted_scores), abs=4 * np.std(permuted_scores) * sqrt(1 / 40 + 1 / 20))
    assert (abs(chance) < 0.02) == (classes == 2)


@pytest.mark.parametrize("metric", [EdgeCoherence(), NormDepthCorrelation()], ids=str)
def test_closed_form_chance_is_the_mean_over_shuffles(metric):
    space, rng = random_space(), np.random.default_rng(4)
    values = [metric.measure(space.shuffled(rng)).value for _ in range(400)]
    assert np.mean(values) == pytest.approx(metric.chance(space, rng), abs=4 * np.std(values) / 20)


def test_metrics_without_ground_truth_have_no_chance_level():
    for metric in (EffectiveRank(), Uniformity(), MeanCosine(), Hubness(), Isotropy()):
        assert isnan(metric.chance(random_space(), np.random.default_rng(0)))


def test_missing_columns_raise_undefined_error():
    space = Space.of(np.eye(3))
    for metric, column in (
        (Silhouette(), "classes"),
        (NormDepthCorrelation(), "depths"),
        (EdgeCoherence(), "edges"),
    ):
        with pytest.raises(UndefinedError, match=column):
            metric.measure(space)


def test_invalid_parameters_raise_parameter_error():
    for build, fragment in (
        (lambda: Silhouette(distance="manhattan"), "manhattan"),
        (lambda: Hubness(neighbours=0), "neighbours is 0"),
        (lambda: Uniformity(t=0), "t is 0"),
        (lambda: Alignment(alpha=-1), "alpha = -1"),
    ):
        with pytest.raises(ParameterError, match=fragment):
            build()
