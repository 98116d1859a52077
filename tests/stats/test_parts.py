"""Parts of the evidence: which are drawn, how many, and what agreements of partitions get from them."""

import numpy as np
import pytest
from studies.interval_calibration_data import NumberRows

from equipoise.config import StatsConfig
from equipoise.evidence.labels import Labels
from equipoise.metrics.clustering import AdjustedRand, Completeness, Homogeneity, MutualInformation, VMeasure
from equipoise.stats.corpus_metrics import HALVES_AND_MOST, evidence_intervals, n_subsamples, resampled_rows
from equipoise.stats.estimate import estimate

AGREEMENTS = [AdjustedRand(), MutualInformation(), Homogeneity(), Completeness(), VMeasure()]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def labels(units: int, classes: int, kept: float) -> Labels:
    true, other = rng(1).integers(0, classes, (2, units))
    return Labels.of(true, np.where(rng(2).random(units) < kept, true, other))


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("classes", [3, 50])
def test_intervals_of_agreements_hold_their_estimate_and_have_a_width(classes: int, kept: float) -> None:
    result = estimate(labels(600, classes, kept), AGREEMENTS, config=StatsConfig(n_resamples=100), chance=False)
    for name in result.names:
        interval = result[name].interval
        assert interval.method == "subsample"
        assert interval.covers(result[name].value)
        assert 0 < interval.width < 0.5


def test_partitions_that_share_no_pairs_get_no_interval_of_the_rand_index() -> None:
    sparse = Labels.of(np.arange(30), np.arange(30) // 2)
    assert "fewer than 5 pairs" in estimate(sparse, [AdjustedRand()]).estimates["ARI"].interval.reason


def test_a_figure_that_repetition_moves_is_measured_without_it() -> None:
    """The share of distinct values is 1 on the sample, and about 0.63 on any resample of it."""

    def distinct(rows: NumberRows) -> float:
        return len(np.unique(rows.table)) / 100 + 0.01 * float(rows.table.mean())

    interval = evidence_intervals([distinct], NumberRows(rng().random((100, 1))), n_resamples=200, rng=rng())[0]
    assert interval.method == "subsample"
    assert interval.covers(distinct(NumberRows(rng().random((100, 1)))))


def test_parts_without_repetition_take_turns_in_size() -> None:
    blocks = [np.array([at]) for at in range(20)]
    sizes = [len(np.unique(rows)) for rows in resampled_rows(blocks, HALVES_AND_MOST, 4, rng())]
    assert sizes == [10, 18, 10, 18]


def test_the_number_of_parts_falls_with_the_size_and_never_exceeds_what_was_asked() -> None:
    for kind in ("labels", "space"):
        counts = [n_subsamples(kind, units, 2000) for units in (10, 100, 1000, 10_000, 100_000)]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] >= 64
        assert n_subsamples(kind, 10, 30) == 30
