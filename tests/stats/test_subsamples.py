"""Subsamples of the evidence: their rows, their number, and intervals of clustering metrics."""

import numpy as np
import pytest
from studies.interval_calibration_data import NumberRows

from equipoise.config import StatsConfig
from equipoise.evidence.labels import Labels
from equipoise.metrics.labels import AdjustedRand, Completeness, Homogeneity, MutualInformation, VMeasure
from equipoise.stats.corpus_metrics import HALVES_AND_MOST, evidence_intervals, n_subsamples, resampled_rows
from equipoise.stats.estimate import estimate

CLUSTERING_METRICS = [AdjustedRand(), MutualInformation(), Homogeneity(), Completeness(), VMeasure()]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_labels(units: int, classes: int, agreement: float) -> Labels:
    true, other = rng(1).integers(0, classes, (2, units))
    return Labels.of(true, np.where(rng(2).random(units) < agreement, true, other))


@pytest.mark.parametrize("agreement", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("classes", [3, 50])
def test_intervals_of_clustering_metrics_include_the_estimate(classes: int, agreement: float) -> None:
    result = estimate(
        random_labels(600, classes, agreement), CLUSTERING_METRICS, config=StatsConfig(n_resamples=100), chance=False
    )
    for name in result.names:
        interval = result[name].interval
        assert interval.method == "subsample"
        assert interval.covers(result[name].value)
        assert 0 < interval.width < 0.5


def test_partitions_without_common_pairs_have_no_rand_index_interval() -> None:
    labels = Labels.of(np.arange(30), np.arange(30) // 2)
    assert "fewer than 5 pairs" in estimate(labels, [AdjustedRand()]).estimates["ARI"].interval.reason


def test_metrics_sensitive_to_repeated_units_are_subsampled() -> None:
    """The share of distinct values is 1 on the sample, and about 0.63 on any resample of it."""

    def share_of_distinct(rows: NumberRows) -> float:
        return len(np.unique(rows.table)) / 100 + 0.01 * float(rows.table.mean())

    interval = evidence_intervals(
        [share_of_distinct], NumberRows(rng().random((100, 1))), config=StatsConfig(n_resamples=200), rng=rng()
    )[0]
    assert interval.method == "subsample"
    assert interval.covers(share_of_distinct(NumberRows(rng().random((100, 1)))))


def test_subsamples_alternate_between_two_sizes() -> None:
    blocks = [np.array([index]) for index in range(20)]
    sizes = [len(np.unique(rows)) for rows in resampled_rows(blocks, HALVES_AND_MOST, 4, rng())]
    assert sizes == [10, 18, 10, 18]


def test_the_number_of_subsamples_decreases_with_the_number_of_units() -> None:
    for kind in ("labels", "space"):
        counts = [n_subsamples(kind, units, 2000) for units in (10, 100, 1000, 10_000, 100_000)]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] >= 64
        assert n_subsamples(kind, 10, 30) == 30
