"""The components of concept scores, compared with scikit-learn, networkx and direct implementations."""

from __future__ import annotations

from itertools import combinations
from math import isnan

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

from equipoise.config import StatsConfig
from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.space import Space
from equipoise.metrics import intrinsic
from equipoise.metrics.base import Metric
from equipoise.metrics.intrinsic import Diversity, EmbeddingVariance, NormRatio, random_vectors
from equipoise.metrics.parser import parse_metrics
from equipoise.metrics.structure import (
    ClusterCoherence,
    ClusterSeparation,
    GraphClustering,
    GraphDensity,
    NeighborPurity,
)
from equipoise.runs.evaluate import evaluate


def random_space(n: int = 40, d: int = 6, seed: int = 0, classes: int = 4) -> Space:
    rng = np.random.default_rng(seed)
    edges = np.unique(rng.integers(0, n, size=(2 * n, 2)), axis=0)
    return Space.of(
        rng.normal(size=(n, d)) * rng.uniform(0.5, 2, size=(n, 1)) + 0.5,
        labels=[f"c{code}" for code in rng.integers(0, classes, size=n)],
        edges=edges[edges[:, 0] != edges[:, 1]],
    )


@pytest.fixture(params=[32 << 20, 1000], ids=["one block", "many blocks"])
def _block_sizes(request, monkeypatch):
    monkeypatch.setattr(intrinsic, "BLOCK_BYTES", request.param)


# ---- classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_coherence_is_the_mean_pairwise_cosine_per_class(seed):
    space = random_space(seed=seed)
    cosines = cosine_similarity(space.vectors)
    means = []
    for code in np.unique(space.labels):
        members = np.flatnonzero(space.labels == code)
        means.append(np.mean([cosines[pair] for pair in combinations(members, 2)]))
    assert ClusterCoherence().value(space) == pytest.approx(np.mean(means))


@pytest.mark.parametrize("seed", range(5))
def test_separation_is_the_mean_distance_between_classes(seed):
    space = random_space(seed=seed)
    distances = 1 - cosine_similarity(space.vectors)
    means = [
        distances[np.ix_(space.labels == one, space.labels == other)].mean()
        for one, other in combinations(np.unique(space.labels), 2)
    ]
    assert ClusterSeparation().value(space) == pytest.approx(np.mean(means))


def test_classes_of_one_point_are_excluded_from_coherence():
    space = Space.of([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], labels=["x", "x", "singleton"])
    assert ClusterCoherence().value(space) == 1.0
    assert isnan(ClusterCoherence().value(space.take(np.array([0, 2]))))


def test_separation_of_a_single_class_is_undefined():
    assert isnan(ClusterSeparation().value(Space.of([[1.0, 0.0], [0.0, 1.0]], labels=["x", "x"])))


@pytest.mark.usefixtures("_block_sizes")
@pytest.mark.parametrize("neighbours", [1, 3, 5])
def test_purity_agrees_with_the_neighbours_of_scikit_learn(neighbours):
    space = random_space(n=60)
    search = NearestNeighbors(n_neighbors=neighbours + 1, metric="cosine").fit(space.vectors)
    nearest = search.kneighbors(space.vectors, return_distance=False)
    expected = [
        np.mean(space.labels[[other for other in row if other != index][:neighbours]] == space.labels[index])
        for index, row in enumerate(nearest)
    ]
    assert NeighborPurity(neighbours=neighbours).per_unit(space) == pytest.approx(expected)


def test_neighbours_tied_at_the_cutoff_share_the_last_rank():
    space = Space.of([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], labels=["x", "x", "y"])
    assert NeighborPurity(neighbours=1).per_unit(space)[0] == 0.5


@pytest.mark.parametrize("metric", [ClusterCoherence(), ClusterSeparation(), NeighborPurity()], ids=str)
def test_the_chance_level_is_the_mean_over_shuffled_classes(metric: Metric[Space]):
    space = random_space()
    rng = np.random.default_rng(1)
    shuffled = np.mean([metric.measure(space.shuffled(rng)).value for _ in range(2000)])
    assert metric.chance(space, rng) == pytest.approx(shuffled, abs=0.004)


@pytest.mark.parametrize("metric", [ClusterCoherence(), ClusterSeparation(), NeighborPurity()], ids=str)
def test_missing_classes_raise_undefined_error(metric: Metric[Space]):
    with pytest.raises(UndefinedError):
        metric.measure(Space.of([[1.0], [2.0]]))


@settings(max_examples=40, deadline=None)
@given(scales=st.lists(st.floats(0.01, 100), min_size=20, max_size=20))
def test_cosine_metrics_do_not_depend_on_norms(scales: list[float]):
    space = random_space(n=20)
    scaled = Space.of(space.vectors * np.array(scales)[:, None], labels=space.labels)
    for metric in (ClusterCoherence(), ClusterSeparation(), NeighborPurity(), Diversity()):
        assert metric.measure(scaled).value == pytest.approx(metric.measure(space).value)


def test_purity_of_zero_neighbours_raises_parameter_error():
    with pytest.raises(ParameterError, match="neighbours is 0"):
        NeighborPurity(neighbours=0)


# ---- the graph ---------------------------------------------------------------------------------


def test_graph_metrics_agree_with_networkx():
    space = random_space()
    graph = nx.DiGraph(space.edges.tolist())
    graph.add_nodes_from(range(len(space)))
    assert GraphDensity().value(space) == nx.density(graph) == len(space.edges) / (40 * 39)
    assert GraphClustering().value(space) == nx.average_clustering(nx.Graph(graph))


@pytest.mark.parametrize("metric", [GraphDensity(), GraphClustering()], ids=str)
def test_graph_metrics_do_not_depend_on_the_vectors(metric: Metric[Space]):
    space = random_space()
    other = Space.of(np.random.default_rng(9).normal(size=(40, 3)), edges=space.edges)
    assert metric.measure(other).value == metric.measure(space).value
    assert metric.chance(space, np.random.default_rng(0)) == metric.measure(space).value
    with pytest.raises(UndefinedError):
        metric.measure(Space.of([[1.0], [2.0]]))


# ---- quality -----------------------------------------------------------------------------------


def test_quality_terms_agree_with_their_definitions():
    space = random_space()
    cosines, norms = cosine_similarity(space.vectors), np.linalg.norm(space.vectors, axis=1)
    assert Diversity().value(space) == pytest.approx(1 - cosines[np.triu_indices(40, 1)].mean())
    assert EmbeddingVariance().value(space) == pytest.approx(np.var(space.vectors, axis=0).mean())
    assert NormRatio().value(space) == pytest.approx(norms.std() / norms.mean())


def test_variance_of_unit_vectors_is_at_most_one_over_the_dimension():
    vectors = np.random.default_rng(0).normal(size=(50, 8))
    space = Space.of(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    assert 0 < EmbeddingVariance().value(space) <= 1 / 8


def test_rounding_of_float32_gives_a_norm_ratio_of_zero():
    vectors = np.random.default_rng(0).normal(size=(50, 384)).astype(np.float32)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    assert NormRatio().value(Space.of(unit)) == 0.0


def test_random_vectors_have_the_shape_and_the_norms_of_the_model():
    space = random_space()
    random_copy = random_vectors(space, np.random.default_rng(0))
    assert random_copy.vectors.shape == space.vectors.shape
    assert np.linalg.norm(random_copy.vectors, axis=1) == pytest.approx(np.linalg.norm(space.vectors, axis=1))
    assert Diversity().chance(space, np.random.default_rng(0)) == pytest.approx(1.0, abs=0.05)


def test_a_collapsed_space_has_no_diversity():
    assert Diversity().value(Space.of([[1.0, 0.0], [2.0, 0.0], [9.0, 0.0]])) == pytest.approx(0.0)


# ---- names and intervals -----------------------------------------------------------------------


def test_names_of_the_ontology_scores_are_parsed():
    names = ["cluster_coherence", "cluster_separation", "graph_density", "clustering_coefficient"]
    names += ["diversity_score", "embedding_variance", "norm_consistency", "knn_purity"]
    assert len(parse_metrics(names, evidence=Space)) == 8


def test_every_component_has_an_interval_around_its_value():
    names = ("ClusterCoherence", "ClusterSeparation", "Purity", "GraphDensity", "Diversity", "NormRatio")
    result = evaluate(random_space(), names, config=StatsConfig(n_resamples=100))
    for estimate in result.estimates.values():
        assert estimate.interval.low < estimate.value < estimate.interval.high


def test_zero_vectors_have_cosine_0_as_in_scikit_learn():
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    vectors = np.random.default_rng(3).normal(size=(8, 3))
    vectors[[1, 6]] = 0.0
    labels = np.repeat([0, 1], 4)
    cosines = pairwise.cosine_similarity(vectors)
    space = Space.of(vectors, labels=labels)
    upper = np.triu_indices(8, 1)
    assert Diversity().value(space) == pytest.approx(1 - cosines[upper].mean())
    within_classes = [
        cosines[np.ix_(labels == label, labels == label)][np.triu_indices(4, 1)].mean() for label in (0, 1)
    ]
    assert ClusterCoherence().value(space) == pytest.approx(np.mean(within_classes))
    assert ClusterSeparation().value(space) == pytest.approx(1 - cosines[:4, 4:].mean())
    assert ClusterCoherence().chance(space, np.random.default_rng(0)) == pytest.approx(cosines[upper].mean())
