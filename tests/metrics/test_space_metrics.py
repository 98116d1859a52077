"""Properties of vectors, against scikit-learn, scipy and definitions written out the slow way."""

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
from equipoise.metrics.class_separation import Silhouette
from equipoise.metrics.intrinsic import (
    EffectiveRank,
    Hubness,
    Isotropy,
    MeanCosine,
    Uniformity,
    k_occurrences,
)
from equipoise.metrics.structure import METRICS, Alignment, EdgeCoherence, GraphMetric, NormDepthCorrelation

SHAPES = [(2, 2), (7, 3), (40, 5), (25, 40)]
COSINE_METRICS = (
    Silhouette(),
    Uniformity(),
    MeanCosine(),
    Hubness(neighbours=3),
    EdgeCoherence(),
    Alignment(),
)


def cloud(n: int = 60, d: int = 4, seed: int = 0, **known) -> Space:
    rng = np.random.default_rng(seed)
    edges = np.unique(np.sort(rng.integers(0, n, size=(2 * n, 2)), axis=1), axis=0)
    facts = {
        "labels": rng.integers(0, 3, size=n),
        "depth": rng.integers(0, 5, size=n),
        "edges": edges[edges[:, 0] != edges[:, 1]],
    }
    return Space.of(rng.normal(size=(n, d)) + rng.normal(size=d), **{**facts, **known})


@pytest.fixture(params=[32 << 20, 1000], ids=["one block", "many blocks"])
def _block_sizes(request, monkeypatch):
    monkeypatch.setattr(intrinsic, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_silhouettes_agree_with_scikit_learn_point_by_point(distance, shift):
    rng = np.random.default_rng(2)
    labels = np.concatenate([rng.integers(0, 6, size=89), [9]])  # the last class has a single point
    vectors = rng.normal(size=(90, 7)) + labels[:, None] % 3 + shift
    ours = Silhouette(distance=distance).measure(Space.of(vectors, labels=labels)).per_unit
    tolerance = 1e-9 if shift == 0 else 1e-6  # far out, the oracle itself has fewer digits
    np.testing.assert_allclose(ours, silhouette_samples(vectors, labels, metric=distance), atol=tolerance)
    assert ours[-1] == 0.0


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_single_precision_vectors_are_measured_in_double(distance):
    space = cloud(200, 16)
    single = Space.of(space.vectors.astype(np.float32), labels=space.labels)
    double = Space.of(single.vectors.astype(np.float64), labels=space.labels)
    metric = Silhouette(distance=distance)
    np.testing.assert_array_equal(metric.per_unit(single), metric.per_unit(double))


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_identical_points_in_different_classes_are_not_separated(distance):
    space = Space.of(np.full((30, 5), 0.1), labels=np.arange(30) % 3)
    assert Silhouette(distance=distance).per_unit(space).tolist() == [0.0] * 30


def test_a_silhouette_needs_two_classes_and_a_direction():
    assert np.isnan(Silhouette().per_unit(Space.of(np.eye(3), labels=[1, 1, 1]))).all()
    vectors = np.array([[0.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]])
    with_zero = Silhouette().per_unit(Space.of(vectors, labels=[0, 0, 0, 1, 1]))
    without = Silhouette().per_unit(Space.of(vectors[1:], labels=[0, 0, 1, 1]))
    np.testing.assert_array_equal(with_zero, [nan, *without])
    assert not np.isnan(Silhouette(distance="euclidean").per_unit(Space.of(vectors, labels=[0, 0, 0, 1, 1]))).any()


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_figures_agree_with_all_pairs(shape):
    space = cloud(*shape)
    cosines = 1 - pdist(space.vectors, "cosine")
    units = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    assert MeanCosine().measure(space).value == pytest.approx(cosines.mean(), abs=1e-12)
    for t in (0.5, 2.0):
        expected = log(np.exp(-t * pdist(units, "sqeuclidean")).mean())
        assert Uniformity(t=t).measure(space).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_edge_figures_agree_with_a_loop_over_edges(alpha):
    space = cloud()
    units = space.vectors / np.linalg.norm(space.vectors, axis=1, keepdims=True)
    cosines = [units[i] @ units[j] for i, j in space.edges]
    lengths = [np.linalg.norm(units[i] - units[j]) ** alpha for i, j in space.edges]
    assert EdgeCoherence().measure(space).value == pytest.approx(np.mean(cosines), abs=1e-12)
    assert Alignment(alpha=alpha).measure(space).value == pytest.approx(np.mean(lengths), abs=1e-9)


def test_edges_of_zero_vectors_have_a_cosine_of_0_and_no_length():
    vectors = [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    joined = Space.of(vectors, edges=[[0, 1], [0, 2]])
    assert EdgeCoherence().measure(joined).value == pytest.approx(sqrt(0.5) / 2)
    assert Alignment().measure(joined).value == pytest.approx(2 - 2 * sqrt(0.5))
    nothing_left = Space.of(vectors, edges=[[0, 1]])
    assert isnan(EdgeCoherence().measure(nothing_left).value)
    assert isnan(Alignment().measure(nothing_left).value)


def isoscore(points) -> float:
    """The published steps: rotate to principal axes, normalise the variances, compare with the identity."""
    d = points.shape[1]
    variances = np.linalg.eigvalsh(np.cov(points.T))
    normalised = sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalised - np.ones(d)) / sqrt(2 * (d - sqrt(d)))
    filled = (d - defect**2 * (d - sqrt(d))) ** 2 / d**2
    return (d * filled - 1) / (d - 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_isotropy_agrees_with_the_published_steps(shape):
    space = cloud(*shape)
    stretched = Space.of(space.vectors * np.arange(1, shape[1] + 1))
    for each in (space, stretched):
        assert Isotropy().measure(each).value == pytest.approx(isoscore(each.vectors), abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_effective_rank_is_the_exponential_of_the_entropy(shape):
    space = cloud(*shape)
    entropy = stats.entropy(np.linalg.svd(space.vectors)[1])
    assert EffectiveRank().measure(space).value == pytest.approx(exp(entropy), rel=1e-9)


def test_effective_rank_counts_equal_axes():
    assert EffectiveRank().measure(Space.of(np.eye(6)[:, :4] * 3)).value == pytest.approx(4.0)
    line = np.outer(np.arange(1.0, 50.0), np.arange(1.0, 9.0))
    assert EffectiveRank().measure(Space.of(line)).value == pytest.approx(1.0, abs=1e-9)


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("neighbours", [1, 5, 10])
def test_hubness_agrees_with_counting_neighbours(neighbours):
    space = cloud(80, 20)
    distances = cdist(space.vectors, space.vectors, "cosine")
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :neighbours]
    expected = stats.skew(np.bincount(nearest.ravel(), minlength=80))
    assert Hubness(neighbours=neighbours).measure(space).value == pytest.approx(expected, abs=1e-9)


def test_equal_neighbours_share_the_last_place():
    vectors = np.repeat(cloud(12, 3).vectors, 4, axis=0)
    times = k_occurrences(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 5)
    assert times.sum() == pytest.approx(5 * 48)
    np.testing.assert_allclose(times.reshape(12, 4), times[::4, None].repeat(4, axis=1), atol=1e-12)


def test_points_that_are_all_neighbours_alike_have_no_hubness():
    around = np.arange(12) * np.pi / 6
    ring = Space.of(np.column_stack([np.cos(around), np.sin(around)]))
    assert isnan(Hubness(neighbours=2).measure(ring).value)
    assert isnan(Hubness(neighbours=11).measure(cloud(12)).value)


def test_norm_and_depth_correlate_as_scipy_says():
    space = cloud()
    expected = stats.spearmanr(np.linalg.norm(space.vectors, axis=1), space.depth).statistic
    assert NormDepthCorrelation().measure(space).value == pytest.approx(expected, abs=1e-12)
    norms = np.random.default_rng(3).random(60)
    given_norms = Space.of(space.vectors, depth=space.depth, norms=norms)
    expected = stats.spearmanr(norms, space.depth).statistic
    assert NormDepthCorrelation().measure(given_norms).value == pytest.approx(expected, abs=1e-12)


def test_points_of_unknown_depth_are_left_out_and_constant_norms_are_undefined():
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
def test_cosine_figures_ignore_the_length_of_every_vector(lengths):
    space = cloud()
    stretched = cloud().take(np.arange(60))
    object.__setattr__(stretched, "vectors", space.vectors * np.array(lengths)[:, None])
    for metric in COSINE_METRICS:
        assert metric.measure(stretched).value == pytest.approx(metric.measure(space).value, abs=1e-9)


@pytest.mark.parametrize("metric", [*COSINE_METRICS, EffectiveRank(), Isotropy(), NormDepthCorrelation()], ids=str)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_no_figure_depends_on_the_unit_of_length(metric, scale):
    space = cloud()
    scaled = Space.of(space.vectors * scale, labels=space.labels, depth=space.depth, edges=space.edges)
    assert metric.measure(scaled).value == pytest.approx(metric.measure(space).value, abs=1e-9)


@pytest.mark.parametrize("metric", [kind() for kind in METRICS], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_no_figure_depends_on_the_order_of_the_points_or_leaves_its_bounds(metric, seed):
    space = cloud(30, 3, seed)
    value = metric.measure(space).value
    turned = space.take(np.random.default_rng(seed).permutation(30))
    assert metric.measure(turned).value == pytest.approx(value, abs=1e-9)
    assert metric.bounds[0] <= value <= metric.bounds[1]


@pytest.mark.parametrize("metric", [kind() for kind in METRICS], ids=str)
def test_one_point_zero_vectors_and_no_points_give_no_number(metric):
    for vectors in ([[1.0, 2.0]], np.zeros((12, 2)), np.empty((0, 2))):
        n = len(vectors)
        space = Space.of(vectors, labels=np.arange(n) % 2, depth=np.arange(n), edges=[])
        if not (n == 1 and isinstance(metric, EffectiveRank)) and not isinstance(metric, GraphMetric):
            assert isnan(metric.measure(space).value)


def test_one_vector_has_effective_rank_one():
    assert EffectiveRank().measure(Space.of([[1.0, 2.0]])).value == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_shuffled_classes_are_as_separated_as_scikit_learn_finds_random_ones(classes):
    labels = np.repeat(np.arange(classes), 120 // classes)
    vectors = np.random.default_rng(0).normal(size=(120, 6)) + 6 * np.eye(6)[labels]
    space = Space.of(vectors, labels=labels)
    rng = np.random.default_rng(1)
    luck = [silhouette_score(vectors, rng.permutation(labels), metric="cosine") for _ in range(40)]
    chance = Silhouette().chance(space, np.random.default_rng(0))
    assert Silhouette().measure(space).value > 0.5
    assert chance == pytest.approx(np.mean(luck), abs=4 * np.std(luck) * sqrt(1 / 40 + 1 / 20))
    assert (abs(chance) < 0.02) == (classes == 2)


@pytest.mark.parametrize("metric", [EdgeCoherence(), NormDepthCorrelation()], ids=str)
def test_closed_form_chance_is_the_mean_over_shuffles(metric):
    space, rng = cloud(), np.random.default_rng(4)
    values = [metric.measure(space.shuffled(rng)).value for _ in range(400)]
    assert np.mean(values) == pytest.approx(metric.chance(space, rng), abs=4 * np.std(values) / 20)


def test_figures_without_a_truth_have_no_chance_level():
    for metric in (EffectiveRank(), Uniformity(), MeanCosine(), Hubness(), Isotropy()):
        assert isnan(metric.chance(cloud(), np.random.default_rng(0)))


def test_what_the_space_does_not_know_is_asked_for():
    bare = Space.of(np.eye(3))
    for metric, word in (
        (Silhouette(), "classes"),
        (NormDepthCorrelation(), "depths"),
        (EdgeCoherence(), "edges"),
    ):
        with pytest.raises(UndefinedError, match=word):
            metric.measure(bare)


def test_impossible_parameters_are_refused():
    for make, word in (
        (lambda: Silhouette(distance="manhattan"), "manhattan"),
        (lambda: Hubness(neighbours=0), "0 neighbours"),
        (lambda: Uniformity(t=0), "t = 0"),
        (lambda: Alignment(alpha=-1), "alpha = -1"),
    ):
        with pytest.raises(ParameterError, match=word):
            make()
