"""Bootstrap standard errors equal theory, and the resamples of models are paired."""

from math import isnan, sqrt

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.concepts.concept_set import ConceptCluster, ConceptSet
from equipoise.domains.concepts.scores import ConceptScore, ScoreTerm
from equipoise.domains.concepts.tasks import observe_clustering
from equipoise.domains.concepts.uncertainty import (
    BootstrapErrors,
    ResamplingPlan,
    bootstrap_score,
    combine_errors,
    score_task,
)
from equipoise.stats.corpus_metrics import HALF_SAMPLES, WITH_REPLACEMENT, SubsampleFractions

pytestmark = pytest.mark.slow

MEAN = ConceptScore("mean_score", "mean", "Mean", "numbers", "", "", "", (ScoreTerm("mean", 1.0),))


def sampling(values: np.ndarray, shares: SubsampleFractions) -> ResamplingPlan:
    return ResamplingPlan("numbers", len(values), shares, lambda rows: {"mean": float(values[rows].mean())})


@pytest.mark.parametrize("shares", [HALF_SAMPLES, WITH_REPLACEMENT])
def test_the_error_of_a_mean_is_its_standard_error(shares: SubsampleFractions) -> None:
    values = np.random.default_rng(1).normal(size=80)
    spread, parts = bootstrap_score(MEAN, sampling(values, shares), config=StatsConfig(n_resamples=4000))
    standard_error = values.std(ddof=1) / sqrt(len(values))
    assert spread.standard_error == pytest.approx(standard_error, rel=0.05)
    assert parts["mean"].standard_error == spread.standard_error


def test_the_same_seed_resamples_the_same_units_for_every_model() -> None:
    values = np.random.default_rng(2).normal(size=40)
    errors, _ = bootstrap_score(MEAN, sampling(values, HALF_SAMPLES), config=StatsConfig(n_resamples=50, seed=3))
    shifted_errors, _ = bootstrap_score(
        MEAN, sampling(values + 5.0, HALF_SAMPLES), config=StatsConfig(n_resamples=50, seed=3)
    )
    assert errors.minus(shifted_errors).errors == pytest.approx(np.zeros(50), abs=1e-12)


def test_a_constant_nonzero_difference_has_no_p_value_and_a_zero_difference_has_p_one() -> None:
    zero_errors = BootstrapErrors(np.zeros(20), 30.0)
    assert isnan(zero_errors.p(0.3))
    assert zero_errors.p(0.0) == 1.0
    assert zero_errors.interval(0.3).reason == "every resample gives the same value"


def test_p_agrees_with_the_interval() -> None:
    spread = BootstrapErrors(np.random.default_rng(4).normal(scale=0.1, size=300), 40.0)
    edge = spread.interval(0.0).high
    assert spread.p(edge) == pytest.approx(0.05)
    assert spread.p(edge * 1.2) < 0.05 < spread.p(edge * 0.8)


def test_few_units_and_undefined_resamples_give_reasons_instead_of_intervals() -> None:
    few_errors, _ = bootstrap_score(MEAN, sampling(np.arange(3.0), HALF_SAMPLES), config=StatsConfig(n_resamples=20))
    assert few_errors.interval(1.0).reason == "3 numbers are too few to resample"
    undefined = ResamplingPlan("numbers", 9, HALF_SAMPLES, lambda rows: {"mean": float("nan") if 0 in rows else 1.0})
    spread, _ = bootstrap_score(MEAN, undefined, config=StatsConfig(n_resamples=40))
    assert spread.interval(1.0).reason == "undefined in too many resamples"
    assert combine_errors([few_errors, spread], [0.5, 0.5]).reason


def test_the_error_of_a_weighted_sum_adds_variances() -> None:
    rng = np.random.default_rng(5)
    first, second = (BootstrapErrors(rng.normal(scale=scale, size=20_000), 30.0) for scale in (0.1, 0.2))
    combined = combine_errors([first, second], [0.25, 0.75])
    assert combined.standard_error == pytest.approx(sqrt((0.25 * 0.1) ** 2 + (0.75 * 0.2) ** 2), rel=0.03)
    assert 30 <= combined.degrees <= 60


def test_a_single_unit_is_named_in_the_singular() -> None:
    for unit, text in (("sentences", "1 sentence is"), ("entities", "1 entity is")):
        assert ResamplingPlan(unit, 1).counted == text


def test_standard_errors_of_clustering_scores_are_close_to_the_variability_of_random_models() -> None:
    """Random models: the standard deviation of their scores and the mean of the estimated errors."""
    pytest.importorskip("sklearn")
    clusters = tuple(
        ConceptCluster(f"c{cluster}", tuple(f"{cluster} {index}" for index in range(6))) for cluster in range(6)
    )
    rng = np.random.default_rng(0)
    config = StatsConfig(n_resamples=20)
    scores, errors = [], []
    for _ in range(6):
        vectors = rng.normal(size=(36, 12))
        observed = observe_clustering(
            lambda texts, fixed=vectors: fixed, ConceptSet("f", clusters=clusters), "m", config
        )
        task_score = score_task(observed, config=config)
        scores.append(task_score.value)
        errors.append(task_score.spread.standard_error)
    assert 0.6 < np.mean(errors) / np.std(scores, ddof=1) < 1.7
