"""Pairs of texts: centred and whitened cosines, pair classification and categories, compared with other libraries."""

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.domains.concepts.concept_set import ConceptPair, ConceptSet
from equipoise.domains.concepts.evidence import binary_pairs, centered_and_whitened, whitened
from equipoise.domains.concepts.tasks import observe_similarity
from equipoise.domains.concepts.uncertainty import score_task
from equipoise.evidence.pairs import Pairs

QUICK = StatsConfig(n_resamples=40)


def encode(texts: Sequence[str]) -> np.ndarray:
    """A large common direction and a random one per text."""
    return np.array([3.0 + np.random.default_rng(crc32(text.encode())).normal(size=40) for text in texts])


def simulated_pairs(count: int = 30) -> tuple[ConceptPair, ...]:
    rng = np.random.default_rng(1)
    return tuple(
        ConceptPair(f"a{index % 17}", f"b{index}", float(rng.random()), "even" if index % 2 == 0 else "odd")
        for index in range(count)
    )


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    stats = pytest.importorskip("scipy.stats")
    return float(stats.spearmanr(x, y)[0])


@pytest.mark.parametrize("shape", [(12, 40), (60, 8)])
def test_whitening_equals_the_ledoit_wolf_covariance(shape: tuple[int, int]) -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    vectors = np.random.default_rng(0).normal(size=shape) * np.linspace(1, 5, shape[1])
    vectors -= vectors.mean(axis=0)
    precision = np.linalg.inv(covariance.ledoit_wolf(vectors, assume_centered=True)[0])
    points = whitened(vectors)
    assert points @ points.T == pytest.approx(vectors @ precision @ vectors.T)


@given(st.floats(0.01, 100), st.integers(0, 50))
def test_whitened_cosines_do_not_depend_on_scale(scale: float, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(9, 5))
    vectors -= vectors.mean(axis=0)
    points, scaled_points = whitened(vectors), whitened(scale * vectors)
    assert points @ points.T == pytest.approx(scaled_points @ scaled_points.T, abs=1e-6)


def test_equal_vectors_have_no_direction_after_centring() -> None:
    centered, white = centered_and_whitened(lambda texts: np.ones((len(texts), 3)), simulated_pairs(4))
    assert centered.predicted.tolist() == white.predicted.tolist() == [0.0] * 4


def test_centred_cosines_are_those_of_vectors_minus_their_mean() -> None:
    pairs = simulated_pairs()
    texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
    vectors = encode(texts)
    centred = dict(zip(texts, vectors - vectors.mean(axis=0), strict=True))
    cosines = [
        centred[pair.first]
        @ centred[pair.second]
        / np.linalg.norm(centred[pair.first])
        / np.linalg.norm(centred[pair.second])
        for pair in pairs
    ]
    assert centered_and_whitened(encode, pairs)[0].predicted == pytest.approx(np.array(cosines))


def test_spearman_is_first_and_every_reference_metric_equals_other_libraries() -> None:
    concept_pairs = simulated_pairs()
    observed = observe_similarity(encode, ConceptSet("simulated", pairs=concept_pairs), "m", QUICK)
    reference = observed.reference_metrics
    assert list(reference) == ["Spearman", "Spearman, centred", "Spearman, whitened", "pair AP", "mean absolute error"]
    pairs = observed.pairs
    assert pairs is not None
    assert reference["Spearman"].value == pytest.approx(rank_correlation(pairs.predicted, pairs.expected))
    centered = centered_and_whitened(encode, concept_pairs)[0]
    assert reference["Spearman, centred"].value == pytest.approx(rank_correlation(centered.predicted, pairs.expected))
    metrics = pytest.importorskip("sklearn.metrics")
    expected = metrics.average_precision_score(pairs.expected >= 0.5, pairs.predicted)
    assert reference["pair AP"].value == pytest.approx(expected)
    for category, rows in (("even", slice(0, None, 2)), ("odd", slice(1, None, 2))):
        expected = rank_correlation(pairs.predicted[rows], pairs.expected[rows])
        assert observed.slices[category].value == pytest.approx(expected)
        assert observed.slices[category].interval.covers(observed.slices[category].value)


def test_pairs_of_one_class_have_no_pair_classification() -> None:
    assert binary_pairs(Pairs.of([0.1, 0.5], [0.6, 0.9])) is None
    binary = binary_pairs(Pairs.of([0.1, 0.5], [0.5, 0.4]))
    assert binary is not None
    assert binary.expected.tolist() == [1.0, 0.0]


def test_resampling_errors_of_the_ground_truth_metric_equal_its_standard_error() -> None:
    pairs = tuple(replace(pair, first=f"c{index}") for index, pair in enumerate(simulated_pairs(200)))
    concept_set = ConceptSet("simulated", pairs=pairs)
    task_score = score_task(observe_similarity(encode, concept_set, "m", QUICK), config=StatsConfig(n_resamples=400))
    # The standard error of a rank correlation near 0 is 1 / sqrt(n - 1).
    assert task_score.truth_spread.standard_error == pytest.approx(1 / np.sqrt(199), rel=0.2)


def test_pairs_with_the_same_first_text_are_resampled_together() -> None:
    plan = observe_similarity(encode, ConceptSet("simulated", pairs=simulated_pairs(60)), "m", QUICK).sampling
    assert (plan.count, plan.n_blocks) == (60, 17)
    assert sorted(np.concatenate(plan.blocks).tolist()) == list(range(60))
    assert all(len({row % 17 for row in block.tolist()}) == 1 for block in plan.blocks)
