"""How sure a loss is: p keeps its promise on lopsided differences, and knows how small it can become."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.config import StatsConfig
from equipoise.errors import ParameterError
from equipoise.runs.regression_test import RegressionTest, UnitGains

AT_95 = RegressionTest(margin=0.0)


def false_alarms(units: int, repeats: int = 400) -> float:
    """How often a loss of the margin is called larger, where few units gain much and all others lose."""
    rng = np.random.default_rng(7)
    asked = RegressionTest(margin=0.95 * 0.037 - 0.05 * 0.5, test="bounds", config=StatsConfig(n_permutations=999))
    samples = np.where(rng.random((repeats, units)) < 0.05, 0.5, -0.037)
    p = [UnitGains(sample, None, None, 1.0).p_of_loss(asked) for sample in samples]
    return float(np.mean(np.array(p) < asked.alpha))


@pytest.mark.parametrize("units", [20, 50, 200])
def test_rare_large_gains_are_not_taken_for_a_loss_beyond_the_margin(units: int) -> None:
    # So many false alarms in 400 would be seen once in a thousand times at a rate of 5 %.
    assert false_alarms(units) * 400 <= binom.ppf(0.999, 400, 0.05)


def test_a_clear_loss_beyond_the_margin_is_seen() -> None:
    gains = np.random.default_rng(0).normal(-0.1, 0.2, 150).clip(-1, 1)
    assert (
        UnitGains(gains, None, None, 1.0).p_of_loss(RegressionTest(0.01, config=StatsConfig(n_permutations=10_000)))
        < 0.01
    )


def test_where_all_is_won_or_lost_p_is_the_exact_binomial_one() -> None:
    won, units, margin = 10, 40, 0.2
    gains = np.where(np.arange(units) < won, 1.0, -1.0)
    found = UnitGains(gains, None, None, 1.0).p_of_loss(
        RegressionTest(margin, "bounds", StatsConfig(n_permutations=200_000))
    )
    # A mean of -margin between -1 and 1 is won with a chance of (1 - margin) / 2.
    assert found == pytest.approx(binom.cdf(won, units, (1 - margin) / 2), abs=0.002)


def test_a_small_margin_asks_nearly_what_no_margin_asks() -> None:
    gains = UnitGains(np.random.default_rng(3).normal(-0.02, 0.1, 150), None, None, 1.0)
    without, with_little = (
        gains.p_of_loss(RegressionTest(margin, config=StatsConfig(n_permutations=20_000))) for margin in (0.0, 1e-6)
    )
    assert with_little == pytest.approx(without, abs=0.01)


def test_the_visible_loss_is_seen_four_times_in_five() -> None:
    rng, asked = np.random.default_rng(5), RegressionTest(0.01, config=StatsConfig(n_permutations=999))
    sample = rng.normal(0, 0.1, 200_000)
    visible = UnitGains(sample[:120], None, None, 1.0).visible(asked)
    scale = 0.1 / sample[:120].std(ddof=1)
    true = 0.01 + (visible - 0.01) * scale
    p = [UnitGains(rng.normal(-true, 0.1, 120), None, None, 1.0).p_of_loss(asked) for _ in range(600)]
    seen = np.count_nonzero(np.array(p) < asked.alpha)
    assert binom.ppf(0.001, 600, 0.8) <= seen <= binom.ppf(0.999, 600, 0.8)


@pytest.mark.parametrize(("margin", "width"), [(0.0, 1.0), (0.1, 1.0), (0.5, 2.0)])
def test_the_smallest_p_is_that_of_losing_all_there_is(margin: float, width: float) -> None:
    gains, asked = (
        UnitGains(np.full(6, -width), None, None, width),
        RegressionTest(margin, "bounds", StatsConfig(n_permutations=200_000)),
    )
    assert gains.p_of_loss(asked) == pytest.approx(gains.smallest_p(asked), abs=0.002)


def test_units_of_a_cluster_count_once() -> None:
    clusters = np.repeat(["a", "b", "c"], 10)
    assert UnitGains(np.full(30, -0.5), None, clusters, 1.0).smallest_p(AT_95) == 0.125


def test_as_many_flips_are_asked_for_as_the_level_and_the_metrics_need() -> None:
    assert RegressionTest(0.0, config=StatsConfig(n_permutations=20)).checked(1).config.n_permutations == 20
    for n_permutations, metrics in ((19, 1), (39, 2)):
        with pytest.raises(ParameterError, match="cannot show a loss"):
            RegressionTest(0.0, config=StatsConfig(n_permutations=n_permutations)).checked(metrics)
