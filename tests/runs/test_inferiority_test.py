"""The test of a loss: its false-positive rate, its power, and its smallest possible p value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from equipoise.config import StatsConfig
from equipoise.errors import ParameterError
from equipoise.evidence.ranking import Ranking
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.runs.gate import BaselineCheck, check_gate
from equipoise.runs.inferiority_test import TESTS, InferiorityTest, UnitGains
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import StoredRun
from equipoise.stats.estimate import result_from_values
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID

DEFAULT_TEST = InferiorityTest(margin=0.0)


def false_positive_rate(units: int, repeats: int = 400) -> float:
    """False-positive rate for a loss of the margin, with few units of large gain and many of small loss."""
    rng = np.random.default_rng(7)
    test = InferiorityTest(margin=0.95 * 0.037 - 0.05 * 0.5, test="bounds", config=StatsConfig(n_permutations=999))
    samples = np.where(rng.random((repeats, units)) < 0.05, 0.5, -0.037)
    p = [UnitGains(sample, None, None, 1.0).p_of_loss(test) for sample in samples]
    return float(np.mean(np.array(p) < test.alpha))


@pytest.mark.parametrize("units", [20, 50, 200])
def test_rare_large_gains_keep_the_false_positive_rate(units: int) -> None:
    # At a rate of 5 %, 400 tests have more false positives with a probability of 0.1 %.
    assert false_positive_rate(units) * 400 <= binom.ppf(0.999, 400, 0.05)


def test_a_clear_loss_beyond_the_margin_is_significant() -> None:
    gains = np.random.default_rng(0).normal(-0.1, 0.2, 150).clip(-1, 1)
    assert (
        UnitGains(gains, None, None, 1.0).p_of_loss(InferiorityTest(0.01, config=StatsConfig(n_permutations=10_000)))
        < 0.01
    )


def test_for_binary_differences_p_equals_the_binomial_test() -> None:
    n_wins, units, margin = 10, 40, 0.2
    gains = np.where(np.arange(units) < n_wins, 1.0, -1.0)
    p = UnitGains(gains, None, None, 1.0).p_of_loss(
        InferiorityTest(margin, "bounds", StatsConfig(n_permutations=200_000))
    )
    # A mean of -margin of values -1 and 1 needs wins with probability (1 - margin) / 2.
    assert p == pytest.approx(binom.cdf(n_wins, units, (1 - margin) / 2), abs=0.002)


def test_a_tiny_margin_gives_nearly_the_p_without_margin() -> None:
    gains = UnitGains(np.random.default_rng(3).normal(-0.02, 0.1, 150), None, None, 1.0)
    without, with_little = (
        gains.p_of_loss(InferiorityTest(margin, config=StatsConfig(n_permutations=20_000))) for margin in (0.0, 1e-6)
    )
    assert with_little == pytest.approx(without, abs=0.01)


def test_students_t_is_also_a_test_without_a_margin() -> None:
    values = np.random.default_rng(3).normal(-0.02, 0.1, 8)
    p = UnitGains(values, None, None, 1.0).p_of_loss(InferiorityTest(0.0, "t"))
    assert p == pytest.approx(ttest_1samp(values, 0.0, alternative="less").pvalue)


def test_every_test_gives_a_p_without_a_margin_and_randomisation_takes_none() -> None:
    gains = UnitGains(np.random.default_rng(3).normal(-0.02, 0.1, 30), None, None, 1.0)
    assert len({gains.p_of_loss(InferiorityTest(0.0, name)) for name in TESTS}) == len(TESTS)
    assert gains.p_of_loss(InferiorityTest(0.0)) == gains.p_of_loss(InferiorityTest(0.0, "randomisation"))
    assert gains.p_of_loss(InferiorityTest(0.1)) == gains.p_of_loss(InferiorityTest(0.1, "t"))
    with pytest.raises(ParameterError) as error:
        InferiorityTest(0.1, "randomisation")
    assert error.value.code == "E310"


def test_the_detectable_loss_is_detected_with_80_percent_power() -> None:
    rng, test = np.random.default_rng(5), InferiorityTest(0.01, config=StatsConfig(n_permutations=999))
    sample = rng.normal(0, 0.1, 200_000)
    detectable = UnitGains(sample[:120], None, None, 1.0).visible(test, 1)
    scale = 0.1 / sample[:120].std(ddof=1)
    true_loss = 0.01 + (detectable - 0.01) * scale
    p = [UnitGains(rng.normal(-true_loss, 0.1, 120), None, None, 1.0).p_of_loss(test) for _ in range(600)]
    n_detected = np.count_nonzero(np.array(p) < test.alpha)
    assert binom.ppf(0.001, 600, 0.8) <= n_detected <= binom.ppf(0.999, 600, 0.8)


@pytest.mark.parametrize(("margin", "width"), [(0.0, 1.0), (0.1, 1.0), (0.5, 2.0)])
def test_the_smallest_p_is_that_of_the_largest_loss(margin: float, width: float) -> None:
    gains, test = (
        UnitGains(np.full(6, -width), None, None, width),
        InferiorityTest(margin, "bounds", StatsConfig(n_permutations=200_000)),
    )
    assert gains.p_of_loss(test) == pytest.approx(gains.smallest_p(test), abs=0.002)


def test_a_cluster_counts_as_one_unit() -> None:
    clusters = np.repeat(["a", "b", "c"], 10)
    assert UnitGains(np.full(30, -0.5), None, clusters, 1.0).smallest_p(DEFAULT_TEST) == 0.125


def test_too_few_permutations_for_the_level_are_an_error() -> None:
    assert InferiorityTest(0.0, "bounds", StatsConfig(n_permutations=20)).checked(1).config.n_permutations == 20
    for n_permutations, metrics in ((19, 1), (39, 2)):
        with pytest.raises(ParameterError) as error:
            InferiorityTest(0.0, "bounds", StatsConfig(n_permutations=n_permutations)).checked(metrics)
        assert error.value.code == "E310"


def test_few_permutations_can_show_a_loss() -> None:
    gains = UnitGains(np.full(40, -0.5), None, None, 1.0)
    p = gains.p_of_loss(InferiorityTest(0.0, config=StatsConfig(n_permutations=19)).checked(50))
    assert p == pytest.approx(0.5**40, rel=0.2)


@pytest.mark.parametrize(("n_units", "n_metrics"), [(4, 1), (5, 2), (7, 10)])
def test_no_loss_is_detectable_on_too_few_units_for_the_test(n_units: int, n_metrics: int) -> None:
    gains = np.random.default_rng(0).normal(0.2, 0.05, n_units + 1)
    assert np.isnan(UnitGains(gains[1:], None, None, 1.0).visible(DEFAULT_TEST, n_metrics))
    assert UnitGains(gains, None, None, 1.0).visible(DEFAULT_TEST, n_metrics) > 0


def test_a_loss_that_no_metric_allows_is_not_detectable() -> None:
    gains = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    assert np.isnan(UnitGains(gains, None, None, 1.0).visible(DEFAULT_TEST, 1))
    assert UnitGains(gains, None, None, 10.0).visible(DEFAULT_TEST, 1) > 1


def test_a_gain_on_too_few_units_makes_no_claim_about_losses() -> None:
    run, baseline = (
        StoredRun(evaluate(Ranking.from_ranks(ranks, candidates=50), ["MRR"], system="a"), Manifest("a"), Path())
        for ranks in ([1, 1, 1], [2, 5, 9])
    )
    (gain,) = check_gate(run, against=BaselineCheck(baseline)).verdicts
    (loss,) = check_gate(baseline, against=BaselineCheck(run)).verdicts
    assert gain.passed
    assert not loss.passed
    assert "; a loss could not be tested: 3 values cannot give a p below 0.12 (" in gain.message
    assert "; a loss that cannot be tested: 3 values cannot give a p below 0.12 (" in loss.message
    assert all("would be detected" not in check.message for check in (gain, loss))


def tuned_runs(settings: dict[str, float], n_resamples: int = 1000) -> tuple[StoredRun, StoredRun]:
    """A run with 12 hits less than its baseline, and bootstrap errors of both scores."""
    errors = np.random.default_rng(1).normal(0, 0.25, (2, n_resamples))
    run, baseline = (
        StoredRun(
            result_from_values(
                name,
                range(60),
                {"accuracy": [1.0] * hits + [0.0] * (60 - hits)},
                errors={"accuracy": own_errors},
                settings={RESAMPLE_ID: "same", **settings},
            ),
            Manifest(name).finish(),
            Path(name),
        )
        for name, hits, own_errors in zip(("run", "baseline"), (28, 40), errors, strict=True)
    )
    return run, baseline


@pytest.mark.parametrize("settings", [{}, {ERROR_DF: 30.0}])
def test_a_loss_of_a_tuned_run_has_half_the_p_of_the_comparison(settings: dict[str, float]) -> None:
    run, baseline = tuned_runs(settings)
    two_sided = StatsConfig(confidence_level=0.9)
    (contrast,) = compare([run.result, baseline.result], config=two_sided).contrasts
    (check,) = check_gate(run, against=BaselineCheck(baseline)).verdicts
    assert check.p == pytest.approx(contrast.p / 2)
    assert contrast.p > two_sided.alpha
    assert check.passed
    (gain,) = check_gate(baseline, against=BaselineCheck(run)).verdicts
    assert (gain.p or 0.0) > 0.5
    (within_margin,) = check_gate(run, against=BaselineCheck(baseline, 0.19)).verdicts
    assert 0.4 < (within_margin.p or 0.0) < 0.5


def test_the_smallest_p_is_adjusted_by_the_correction() -> None:
    """Benjamini-Hochberg does not change equal p values: five units can show a loss on two metrics."""
    run, baseline = (
        StoredRun(evaluate(Ranking.from_ranks(ranks, candidates=50), ["MRR", "MR"], system="a"), Manifest("a"), Path())
        for ranks in ([50, 49, 48, 47, 46], [1] * 5)
    )
    against = BaselineCheck(baseline, metrics=("MRR", "MR"))
    checks = check_gate(run, against=against, config=StatsConfig(correction="bh", n_permutations=32)).verdicts
    assert [check.p for check in checks] == [0.03125, 0.03125]
    assert all("a significant loss (p = 0.031 adjusted" in check.message for check in checks)
