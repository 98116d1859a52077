"""Recommendations: the best model by the ground-truth metric; never one at or below chance, or a collapsed one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from zlib import crc32

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.concepts.comparison import ScoreComparison
from equipoise.domains.concepts.experiment import evaluate_concepts
from equipoise.domains.concepts.recommendation import recommend
from equipoise.domains.concepts.results import ConceptEvaluation
from equipoise.stats.comparison import Contrast
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction


def estimate(value: float, low: float, high: float, chance: float = 0.0) -> Estimate:
    return Estimate("x", value, Interval(low, high), 50, 0, chance, Direction.UP)


BEST, GOOD, AT_CHANCE = estimate(0.8, 0.7, 0.9), estimate(0.5, 0.4, 0.6), estimate(0.02, -0.1, 0.2)


def higher(a: str, b: str, p: float) -> Contrast:
    """A contrast in which the first model has a higher ARI, with this p-value."""
    return Contrast("ARI", a, b, Direction.UP, 0.3, Interval(0.1, 0.5), p, p, 50, 0)


def comparison(
    ari: Mapping[str, Estimate],
    contrasts: Sequence[Contrast] = (),
    scores: Mapping[str, Estimate] | None = None,
) -> ScoreComparison:
    """A comparison of models in the order of their score, which differs from that of the ARI."""
    values = scores or {name: estimate(0.9 - 0.1 * index, 0.0, 1.0) for index, name in enumerate(ari)}
    return ScoreComparison(
        score="clustering_score",
        title="",
        formula="",
        estimates=values,
        contrasts=(),
        letters={name: (name,) for name in ari},
        order=tuple(ari),
        resampling="",
        truth="ARI",
        truth_contrasts=tuple(contrasts),
        chance_p={name: 0.4 if value is AT_CHANCE else 0.001 for name, value in ari.items()},
        reference_metrics={"ARI": ari},
    )


def test_the_best_model_by_the_ground_truth_is_recommended_and_not_the_highest_score() -> None:
    (advice,) = recommend([comparison({"a": GOOD, "b": BEST}, [higher("b", "a", 0.001)])])
    assert (advice.use, advice.metric, advice.models) == ("Concept Clustering", "ARI", ("b",))
    assert len(advice.models) == 1
    assert "ARI 0.80 [0.70, 0.90], chance 0.00" in advice.text
    assert "would recommend a (0.90)" in advice.formula
    assert "significantly lower" in advice.formula


def test_models_that_are_not_significantly_worse_are_all_recommended() -> None:
    contrasts = [higher("b", "a", 0.3), higher("b", "c", 0.01), higher("a", "c", 0.01)]
    (advice,) = recommend([comparison({"a": GOOD, "b": BEST, "c": GOOD}, contrasts)])
    assert advice.models == ("b", "a")
    assert len(advice.models) != 1
    assert "not significantly different, adjusted p 0.30" in advice.text
    assert advice.formula.endswith("not significantly worse")


def test_a_score_that_selects_the_recommended_model_has_no_note() -> None:
    (advice,) = recommend([comparison({"a": BEST, "b": AT_CHANCE}, [higher("a", "b", 0.001)])])
    assert (advice.models, advice.formula) == (("a",), "")
    assert list(advice.excluded) == ["b"]


def test_a_model_at_chance_is_not_recommended_without_a_significant_difference() -> None:
    (advice,) = recommend([comparison({"a": AT_CHANCE, "b": GOOD}, [higher("b", "a", 0.4)])])
    assert advice.models == ("b",)
    reason = "its ARI 0.02 [-0.10, 0.20] is not significantly above chance (0.00, adjusted p 0.40)"
    assert f"rejected because {reason}" in advice.formula


def test_a_collapsed_model_is_not_recommended_with_any_ground_truth() -> None:
    (advice,) = recommend([comparison({"a": BEST, "b": GOOD}, [higher("a", "b", 0.001)])], {"a"})
    assert advice.models == ("b",)
    assert "EQ310" in advice.formula


def test_a_model_whose_score_is_at_most_its_chance_level_is_not_recommended() -> None:
    scores = {"a": estimate(0.3, 0.2, 0.4, chance=0.3), "b": estimate(0.2, 0.1, 0.3, chance=0.1)}
    (advice,) = recommend([comparison({"a": BEST, "b": GOOD}, [higher("a", "b", 0.001)], scores)])
    assert advice.models == ("b",)
    assert "chance level" in advice.excluded["a"]


def test_no_model_is_recommended_if_none_is_above_chance() -> None:
    (advice,) = recommend([comparison({"a": AT_CHANCE, "b": AT_CHANCE})])
    assert advice.models == ()
    assert len(advice.models) != 1
    assert advice.message.startswith("The highest ARI (a, 0.02 [-0.10, 0.20]) is not significantly above chance")


def test_undefined_ground_truth_gives_no_recommendation() -> None:
    (advice,) = recommend([comparison({"a": estimate(nan, 0, 1)})])
    assert (advice.models, advice.message) == ((), "ARI is undefined for every model")


def test_permutation_p_values_and_not_intervals_decide_which_model_is_above_chance() -> None:
    result = replace(comparison({"a": AT_CHANCE, "b": GOOD}), chance_p={"a": 0.01, "b": 0.2})
    assert result.above_chance("a")
    assert not result.above_chance("b")


def test_a_weak_p_value_needs_a_second_metric_above_chance() -> None:
    weak = replace(comparison({"a": GOOD}), chance_p={"a": 0.02})
    (advice,) = recommend([replace(weak, n_above_chance={"a": 1})])
    assert advice.models == ()
    assert "adjusted p 0.020), but no second metric is" in advice.message
    (advice,) = recommend([replace(weak, n_above_chance={"a": 2})])
    assert advice.models == ("a",)


def test_a_value_at_most_its_chance_level_is_not_recommended_with_any_p_value() -> None:
    result = comparison({"a": estimate(0.029, 0.028, 0.05, chance=0.03)})
    assert not result.above_chance("a")
    (advice,) = recommend([result])
    assert advice.models == ()
    assert advice.message.endswith("does not exceed its chance level 0.030")


def test_the_choice_of_the_score_is_named_if_no_model_is_recommended() -> None:
    (advice,) = recommend([comparison({"a": BEST, "b": AT_CHANCE})], {"a"})
    assert advice.models == ()
    assert "its vectors are collapsed (EQ310)" in advice.message
    assert advice.formula == "clustering_score would recommend a (0.90), which is rejected for the same reason"
    (advice,) = recommend([comparison({"b": AT_CHANCE, "a": BEST})], {"a"})
    assert advice.formula.startswith("clustering_score would recommend b (0.90), which is rejected because its ARI")


class HashedWords:
    """Hashed words: texts with the same words are similar."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.direction(text) for text in texts])

    def direction(self, text: str) -> np.ndarray:
        words = [np.random.default_rng(crc32(word.encode())).normal(size=64) for word in text.casefold().split()]
        return np.sum(words, axis=0)


class Cone:
    """Noise in a narrow cone: every cosine is high."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        noise = [np.random.default_rng(crc32(text.encode())).normal(size=64) for text in texts]
        return 1.0 + 0.1 * np.array(noise)


class UnevenNoise:
    """Noise around a common direction, with norms that vary."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rngs = [np.random.default_rng(crc32(text.encode())) for text in texts]
        return np.array([(0.7 + 0.4 * rng.normal(size=64)) * np.exp(rng.normal()) for rng in rngs])


@pytest.fixture(scope="module")
def noise() -> ConceptEvaluation:
    pytest.importorskip("sklearn")
    models = {"words": HashedWords(), "cone": Cone(), "uneven": UnevenNoise()}
    return evaluate_concepts(models, cache=False, config=StatsConfig(n_resamples=24))


@pytest.mark.slow
def test_noise_has_the_highest_scores_and_is_never_recommended(noise: ConceptEvaluation) -> None:
    leaders = [comparison.leader for comparison in noise.all_score_comparisons]
    assert sum(leader in ("cone", "uneven") for leader in leaders) >= 4
    for advice in noise.advice:
        assert not {"cone", "uneven"} & set(advice.models), advice
        assert {"cone", "uneven"} <= set(advice.excluded)


@pytest.mark.slow
def test_the_ground_truth_score_is_the_mean_of_its_metrics_above_chance(noise: ConceptEvaluation) -> None:
    composite = noise.composite
    assert composite is not None
    for name, value in composite.reference_metrics["ground_truth_score"].items():
        metrics = [
            compared.reference_metrics[compared.truth][name] for compared in noise.score_comparisons if compared.truth
        ]
        assert len(metrics) == 4
        expected = np.mean([(metric.value - metric.chance) / (1 - metric.chance) for metric in metrics])
        assert value.value == pytest.approx(expected)
        assert value.interval.covers(value.value)


@pytest.mark.engines("wordllama", "sklearn")
def test_the_included_set_separates_a_sentence_model_from_hashed_words() -> None:
    evaluation = evaluate_concepts(
        ["wordllama", "hash"], tasks=["similarity", "relations"], cache=False, config=StatsConfig(n_resamples=24)
    )
    for advice in evaluation.advice:
        assert advice.models == ("wordllama",), advice
    by_category = {
        name: {category: value.value for category, value in scores.tasks["similarity"].observed.slices.items()}
        for name, scores in evaluation.scores.items()
    }
    strata = by_category["wordllama"]
    assert list(strata) == ["easy: paraphrase", "medium: topic", "hard: term", "hard: contrast"]
    assert strata["easy: paraphrase"] > strata["medium: topic"] > max(strata["hard: term"], strata["hard: contrast"])
    assert strata["easy: paraphrase"] - by_category["hash"]["easy: paraphrase"] > 0.5


@pytest.mark.engines("wordllama")
def test_without_a_composite_the_headline_names_every_use() -> None:
    tasks = ["similarity", "relations"]
    config = StatsConfig(n_resamples=24)
    models = {"wordllama": "wordllama", "cone": Cone()}
    evaluation = evaluate_concepts(models, tasks=tasks, cache=False, config=config)
    first_line = evaluation.summary.splitlines()[0]
    assert first_line == "Recommended for philosophy: wordllama (similarity, relations)."
