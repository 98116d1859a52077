"""Intervals of mean scores over few data sets cover the true means."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.bench.results import mean_scores
from equipoise.types import Floats

CONFIG = StatsConfig(n_resamples=400)
TRUE_MEAN, BETWEEN, WITHIN, N_UNITS, N_TRIALS = 0.5, 0.1, 0.3, 60, 300


def simulate_means(n_datasets: int, rng: np.random.Generator) -> tuple[Floats, Floats, list[Floats]]:
    """True means and observed means (data sets, 2 systems), and resampled means; both systems are equally good."""
    true = TRUE_MEAN + BETWEEN * rng.standard_normal((n_datasets, 2))
    units = true[:, None] + WITHIN * rng.standard_normal((n_datasets, N_UNITS, 2))
    counts = rng.multinomial(N_UNITS, np.full(N_UNITS, 1 / N_UNITS), size=200)
    return true, units.mean(axis=1), [counts @ values / N_UNITS for values in units]


@pytest.mark.slow
@pytest.mark.parametrize("n_datasets", [3, 6, 12])
def test_intervals_cover_the_mean_of_these_and_of_other_data_sets(n_datasets: int) -> None:
    rng = np.random.default_rng(n_datasets)
    covered_on_these, covered_on_others, covered_by_percentiles, false_positives = [], [], [], []
    for _ in range(N_TRIALS):
        true, scores, tables = simulate_means(n_datasets, rng)
        on_these, on_others = mean_scores(scores, tables, [N_UNITS] * n_datasets, CONFIG)
        first, second = on_these.intervals()[0], on_others.intervals()[0]
        covered_on_these.append(first.low <= true[:, 0].mean() <= first.high)
        covered_on_others.append(second.low <= TRUE_MEAN <= second.high)
        low, high = np.percentile(rng.choice(scores[:, 0], size=(400, n_datasets)).mean(axis=1), [2.5, 97.5])
        covered_by_percentiles.append(low <= TRUE_MEAN <= high)
        false_positives.append(bool(on_others.separation.any()))
    assert 0.91 < np.mean(covered_on_these) < 0.99
    assert np.mean(covered_on_others) > 0.93
    assert np.mean(covered_on_others) > np.mean(covered_by_percentiles)
    assert np.mean(false_positives) < 0.08


def test_a_system_that_is_better_everywhere_is_significantly_better_on_these_data_sets() -> None:
    rng = np.random.default_rng(0)
    units = [rng.uniform(0, 0.5, (50, 2)) + np.array([0.4, 0.0]) for _ in range(2)]
    counts = rng.multinomial(50, np.full(50, 0.02), size=200)
    tables = [counts @ values / 50 for values in units]
    on_these, on_others = mean_scores(np.array([values.mean(axis=0) for values in units]), tables, [50, 50], CONFIG)
    assert on_these.rank_intervals.tolist() == [[1, 1], [2, 2]]
    assert on_these.separation[1, 0] == 1
    assert on_others.degrees == 1
