"""Permutation tests against chance equal plain loops, and noise is significant at the stated error rate."""

from collections.abc import Callable, Sequence
from itertools import product
from math import nan
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import spearmanr

from equipoise.config import StatsConfig
from equipoise.domains.concepts.comparison import ScoreComparison, chance_p_values
from equipoise.domains.concepts.concept_set import ConceptPair, ConceptSet
from equipoise.domains.concepts.concept_set_reader import read_concept_set
from equipoise.domains.concepts.evidence import pair_texts, relation_evidence, unit_rows
from equipoise.domains.concepts.experiment import evaluate_concepts
from equipoise.domains.concepts.permutation import (
    ChanceTest,
    length_preserving_orders,
    permuted_ari,
    permuted_mrr,
    permuted_probe,
    permuted_spearman,
)
from equipoise.domains.concepts.scores import CONCEPT_SCORES, GROUND_TRUTH
from equipoise.domains.concepts.uncertainty import BootstrapErrors, ResamplingPlan, TaskEvidence, TaskScore
from equipoise.metrics.ranking import ReciprocalRank
from equipoise.models.embedder import embedder
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction

Encoder = Callable[[Sequence[str]], np.ndarray]
PHILOSOPHY = read_concept_set()


def text_rng(seed: int, text: str) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(text.encode())])


def isotropic(seed: int, dims: int = 64) -> Encoder:
    return lambda texts: np.array([text_rng(seed, text).normal(size=dims) for text in texts])


def flat(seed: int) -> Encoder:
    return isotropic(seed, 2)


def collapsed(seed: int) -> Encoder:
    return lambda texts: 1.0 + 0.3 * isotropic(seed)(texts)


def hubs(seed: int) -> Encoder:
    """Some texts are near the mean of all, others are far from it."""
    center = np.random.default_rng(seed).normal(size=8)
    return lambda texts: np.array(
        [center * (rng := text_rng(seed, text)).exponential() + 0.5 * rng.normal(size=8) for text in texts]
    )


def length_only(seed: int) -> Encoder:
    """Smooth features of the number of characters."""
    frequencies, phases = np.random.default_rng(seed).normal(size=(2, 16))
    return lambda texts: np.cos(np.log1p([[len(text)] for text in texts]) * 2 * frequencies + phases)


def hashed_length(seed: int) -> Encoder:
    """Texts of one length have one vector."""
    return lambda texts: np.array([np.random.default_rng([seed, len(text)]).normal(size=32) for text in texts])


NOISE = (isotropic, flat, collapsed, hubs, length_only, hashed_length)


def some_pairs(seed: int, count: int) -> list[ConceptPair]:
    assert PHILOSOPHY.pairs is not None
    rows = np.random.default_rng(seed).choice(len(PHILOSOPHY.pairs), count, replace=False)
    return [PHILOSOPHY.pairs[row] for row in rows]


def similarity_test(encode: Encoder, pairs: Sequence[ConceptPair], n_permutations: int = 499) -> ChanceTest:
    texts, ends = pair_texts(pairs)
    directions, expected = unit_rows(encode(texts)), np.array([pair.expected for pair in pairs])
    orders = length_preserving_orders(texts, [0], n_permutations)
    return ChanceTest.of(lambda part: permuted_spearman(directions, ends, expected, part), orders)


@pytest.mark.parametrize("noise", NOISE)
def test_spearman_equals_scipy_with_permuted_vectors(noise: Callable[[int], Encoder]) -> None:
    pairs = some_pairs(0, 30)
    texts, ends = pair_texts(pairs)
    vectors, expected_similarities = unit_rows(noise(0)(texts)), np.array([pair.expected for pair in pairs])
    orders = length_preserving_orders(texts, [1], 5)
    expected = []
    for order in orders:
        cosines = [vectors[order[first]] @ vectors[order[second]] for first, second in ends.T]
        expected.append(spearmanr(np.round(cosines, 12), expected_similarities).statistic)
    assert permuted_spearman(vectors, ends, expected_similarities, orders) == pytest.approx(expected, abs=1e-9)


def test_spearman_is_the_same_without_the_matrix_of_all_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = similarity_test(isotropic(0), some_pairs(0, 30), 20).values
    monkeypatch.setattr("equipoise.domains.concepts.permutation.MAX_GRAM_TEXTS", 1)
    assert similarity_test(isotropic(0), some_pairs(0, 30), 20).values == pytest.approx(expected)


def test_the_adjusted_rand_index_equals_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(4, size=30), rng.integers(3, size=30)
    orders = rng.permuted(np.tile(np.arange(30), (6, 1)), axis=1)
    expected = [metrics.adjusted_rand_score(true, predicted[order]) for order in orders]
    assert permuted_ari(true, predicted, orders) == pytest.approx(expected)
    assert np.isnan(permuted_ari(np.zeros(3, dtype=int), np.zeros(3, dtype=int), orders[:, :3] % 3)).all()


@pytest.mark.parametrize("noise", [isotropic, hashed_length])
def test_the_rank_of_objects_is_counted_among_the_candidates(noise: Callable[[int], Encoder]) -> None:
    assert PHILOSOPHY.relations is not None
    evidence = relation_evidence(noise(0), PHILOSOPHY.relations)
    scores = (unit_rows(evidence.queries) @ unit_rows(evidence.space.vectors.astype(float)).T).round(12)
    names = evidence.space.unit_ids.tolist()
    orders = np.vstack([np.arange(len(names)), length_preserving_orders(names, [0], 3)])
    expected = []
    for order in orders:
        reciprocal_ranks = []
        for row, (subject, answer) in enumerate(evidence.ends):
            other_rows = [
                index for index in range(len(names)) if index not in {subject, answer, *evidence.other_answers[row]}
            ]
            score, other_scores = scores[row, order[answer]], scores[row, order[other_rows]]
            above, tied = (other_scores > score).sum(), (other_scores == score).sum()
            reciprocal_ranks.append(np.mean([1 / rank for rank in range(above + 1, above + tied + 2)]))
        expected.append(np.mean(reciprocal_ranks))
    values = permuted_mrr(scores, evidence.ends, evidence.other_answers, orders)
    assert values == pytest.approx(expected)
    assert values[0] == pytest.approx(ReciprocalRank().measure(evidence.ranking).value)


def test_the_probe_is_fitted_without_each_point_for_every_permutation() -> None:
    """Compared with one ridge regression per left-out point."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=20)
    vectors = rng.normal(size=(20, 5)) + labels[:, None]
    orders = np.vstack([np.arange(20), rng.permuted(np.tile(np.arange(20), (3, 1)), axis=1)])
    rows = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    ridge = np.trace(rows @ rows.T) / 20
    expected = []
    for order in orders:
        targets = np.eye(3)[labels[order]] - np.eye(3)[labels].mean(axis=0)
        hits = []
        for left_out in range(20):
            is_train = np.arange(20) != left_out
            train_rows = rows[is_train]
            weights = np.linalg.solve(train_rows.T @ train_rows + ridge * np.eye(5), train_rows.T @ targets[is_train])
            hits.append((rows[left_out] @ weights).argmax() == labels[order][left_out])
        expected.append(np.mean(hits))
    assert permuted_probe(vectors, labels, orders) == pytest.approx(expected)
    assert expected[0] > max(expected[1:])


def test_texts_of_equal_length_are_permuted_in_any_order() -> None:
    orders = length_preserving_orders(["same"] * 32, [0], 200)
    assert len(np.unique(orders[:, 0])) == 32
    assert (np.sort(orders, axis=1) == np.arange(32)).all()


def test_texts_of_different_lengths_are_not_exchanged() -> None:
    texts = [letter * length for length in (1, 5, 9) for letter in "abcdefgh"]
    lengths = np.array([len(text) for text in texts])
    orders = length_preserving_orders(texts, [0], 50)
    assert (lengths[orders] == lengths).all()


def test_the_p_value_includes_the_observed_order_and_is_undefined_where_the_metric_is() -> None:
    assert ChanceTest(0.5, np.array([0.1, 0.5, 0.4])).p == 0.5
    assert np.isnan(ChanceTest(nan, np.zeros(9)).p)


@pytest.mark.parametrize("noise", NOISE)
def test_noise_is_above_chance_in_five_percent_of_cases(noise: Callable[[int], Encoder]) -> None:
    """150 models per kind on sets of 20 to 70 pairs: more than 16 significant ones have a probability of 0.1 %."""
    p_values = [similarity_test(noise(seed), some_pairs(seed, 20 + seed % 51)).p for seed in range(150)]
    assert sum(p < 0.05 for p in p_values) <= 16
    assert np.mean(p_values) > 0.4


def task_score(task: str, test: ChanceTest) -> TaskScore:
    blend = CONCEPT_SCORES[task]
    evidence = TaskEvidence(blend, {}, {}, {}, "", ResamplingPlan("", 1), chance_test=test)
    errors = BootstrapErrors(np.zeros(0), nan)
    return TaskScore(evidence, Estimate(blend.name, 0.0, Interval(0.0, 0.0), 1, 0, 0.0, Direction.UP), errors, errors)


def test_the_correction_covers_all_models_and_all_metrics() -> None:
    values = np.arange(1.0, 100.0)
    tests = {"similarity": ChanceTest(100.0, values), "relations": ChanceTest(50.0, values)}
    scores = {model: {task: task_score(task, test) for task, test in tests.items()} for model in ("a", "b")}
    without_weights = chance_p_values(scores, {})
    assert without_weights["Spearman"] == {"a": pytest.approx(0.04), "b": pytest.approx(0.04)}
    assert set(chance_p_values(scores, {"similarity": 1.0, "relations": 1.0})) == {
        "Spearman",
        "link MRR",
        GROUND_TRUTH,
    }


def test_the_mean_of_an_incomplete_evaluation_is_corrected_separately() -> None:
    values = np.arange(1.0, 100.0) / 200
    tests = {"similarity": ChanceTest(0.5, values), "relations": ChanceTest(0.5, values)}
    scores = {"a": {task: task_score(task, test) for task, test in tests.items()}}
    complete = chance_p_values(scores, {"similarity": 1.0, "relations": 1.0})
    incomplete = chance_p_values(scores, {"similarity": 1.0, "relations": 1.0, "clustering": 1.0})
    assert complete["Spearman"]["a"] == pytest.approx(0.03)
    assert incomplete["Spearman"]["a"] == pytest.approx(0.02)
    assert incomplete[GROUND_TRUTH]["a"] == pytest.approx(0.01)


def test_one_of_several_noise_models_is_above_chance_in_five_percent_of_runs() -> None:
    """80 runs with three noise models and two metrics: more than 10 with an error have a probability of 0.3 %."""
    tasks = ("similarity", "clustering")
    errors = 0
    for run in range(80):
        pairs = some_pairs(run, 66)
        scores: dict[str, dict[str, TaskScore]] = {}
        for model_index, (task_index, task) in product(range(3), enumerate(tasks)):
            encode = NOISE[(run + model_index) % len(NOISE)](1000 * run + 10 * model_index + task_index)
            scores.setdefault(str(model_index), {})[task] = task_score(task, similarity_test(encode, pairs))
        adjusted = chance_p_values(scores, {})
        errors += any(p < 0.05 for by_model in adjusted.values() for p in by_model.values())
    assert errors <= 10


@pytest.mark.engines("wordllama")
def test_noise_is_rarely_recommended_next_to_a_real_model() -> None:
    """40 runs with four noise models and one metric, for which strong evidence is required."""
    texts, _ = pair_texts(PHILOSOPHY.pairs or ())
    vectors_by_text = dict(zip(texts, embedder("wordllama", cache=False).encode(texts), strict=True))
    n_real = n_noise = 0
    for run in range(40):
        pairs = some_pairs(run, 66)
        encoders = {
            f"noise {model_index}": NOISE[(run + model_index) % len(NOISE)](1000 * run + model_index)
            for model_index in range(4)
        }
        encoders["real"] = lambda texts: np.array([vectors_by_text[text] for text in texts])
        scores = {
            name: {"similarity": task_score("similarity", similarity_test(encode, pairs, 1_999))}
            for name, encode in encoders.items()
        }
        estimates = {name: score["similarity"].estimate for name, score in scores.items()}
        comparison = ScoreComparison(
            "", "", "", estimates, (), {}, (), "", chance_p=chance_p_values(scores, {})["Spearman"]
        )
        eligible = {name for name in scores if comparison.can_be_recommended(name)}
        n_real += "real" in eligible
        n_noise += bool(eligible - {"real"})
    assert n_real >= 28
    assert n_noise <= 1


class NoiseModel:
    def __init__(self, encode: Encoder) -> None:
        self.encode = encode


@pytest.mark.slow
@pytest.mark.engines("wordllama")
def test_noise_is_excluded_with_its_p_value() -> None:
    concept_set = ConceptSet("pairs", pairs=tuple(some_pairs(1, 66)))
    models = {noise.__name__: NoiseModel(noise(1)) for noise in NOISE[:4]}
    evaluation = evaluate_concepts(
        {"wordllama": "wordllama", **models}, concept_set, cache=False, config=StatsConfig(n_resamples=24)
    )
    (advice,) = evaluation.advice
    assert advice.models == ("wordllama",)
    assert set(models) == set(advice.excluded)
    assert "adjusted p 1.00" in advice.excluded["hubs"]
