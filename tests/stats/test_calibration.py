"""A small, seeded run of the coverage trials, and the true values of the trials."""

import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from studies.interval_calibration import CoverageRow, interval_coverage, table_lines
from studies.interval_calibration_data import MeanTrial, NumberRows, corpus_trials, mean_trials

from equipoise.config import StatsConfig
from equipoise.stats.bootstrap_mean import mean_intervals
from marked import marked

SIMULATIONS = 400 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 120
TRIALS_WITH_TRUTH = [trial for trial in corpus_trials() if trial.truth is not None]


@pytest.fixture(scope="module")
@marked(pytest.mark.slow)
def rows() -> list[CoverageRow]:
    return interval_coverage(
        sizes=(50, 200),
        clusters=(14, 60),
        simulations=SIMULATIONS,
        n_resamples=200,
        rng=np.random.default_rng(11),
    )


def test_intervals_cover_93_to_97_percent_within_monte_carlo_error(rows: list[CoverageRow]) -> None:
    promised_rows = [row for row in rows if row.promised]
    assert not [line for row, line in zip(promised_rows, table_lines(promised_rows)[1:], strict=True) if not row.kept]
    assert {row.data for row in rows} - {row.data for row in promised_rows} == {"binary, p = 0.99"}


def test_every_method_is_covered(rows: list[CoverageRow]) -> None:
    methods = {row.method for row in rows}
    assert methods == {
        "wilson",
        "wilson-effective",
        "gaffke",
        "bias-corrected",
        "subsample",
    }


def test_intervals_narrow_as_units_are_added(rows: list[CoverageRow]) -> None:
    pairs = [(a, b) for a, b in pairwise(rows) if a.data == b.data]
    assert len(pairs) == len(rows) / 2
    for fewer, more in pairs:
        assert more.mean_width < 0.7 * fewer.mean_width


@pytest.mark.parametrize("trial", mean_trials(), ids=lambda trial: trial.data)
def test_true_means_agree_with_large_samples(trial: MeanTrial) -> None:
    sample = trial.draw(4000, 10, np.random.default_rng(3))
    weights = np.ones_like(sample.values) if sample.weights is None else sample.weights
    means = (sample.values * weights).sum(axis=0) / weights.sum(axis=0)
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert means.mean() == pytest.approx(trial.truth, abs=5 * error)


@pytest.mark.parametrize("trial", TRIALS_WITH_TRUTH, ids=lambda trial: trial.data)
def test_true_values_agree_with_large_samples(trial: object) -> None:
    rng = np.random.default_rng(4)
    values = [trial.figure(NumberRows(trial.draw(20_000, rng))) for _ in range(10)]  # type: ignore[attr-defined]
    error = np.std(values, ddof=1) / np.sqrt(10)
    assert np.mean(values) == pytest.approx(trial.truth, abs=5 * error)  # type: ignore[attr-defined]


def test_ignoring_clusters_lowers_the_coverage() -> None:
    """Without clusters, the intervals of clustered data have a coverage well below 93 %."""
    rng = np.random.default_rng(5)
    trial = next(trial for trial in mean_trials() if trial.data == "graded in clusters")
    sample = trial.draw(40, 200, rng)
    naive = mean_intervals(sample.values, config=StatsConfig(n_resamples=300), rng=rng)
    assert np.mean([interval.covers(trial.truth) for interval in naive]) < 0.88


def test_coverage_rows_report_coverage_and_status() -> None:
    row = CoverageRow("x", "bca", 50, None, 1000, below=30, above=20, unknown=0, mean_width=0.1)
    assert row.coverage == pytest.approx(0.95)
    assert row.promised
    assert row.kept
    assert not replace(row, below=100).kept
    assert not replace(row, units=49).promised
    assert not replace(row, clusters=9).promised
    assert "not 93 to 97 %" in table_lines([replace(row, below=100)])[1]
    assert "too few for a promise" in table_lines([replace(row, clusters=5)])[1]
    assert replace(row, below=0, above=0, rare=True).kept
    assert not replace(row, below=0, above=0).kept
    assert "below 93%" in table_lines([replace(row, below=100, rare=True)])[1]
    assert "too near a bound" in table_lines([replace(row, extreme=True)])[1]
    assert np.isnan(replace(row, trials=5, unknown=5).coverage)
