"""Ranks with uncertainty, compared with scipy, a direct bootstrap and simulations with known ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata, ttest_rel, zscore

from equipoise.config import StatsConfig
from equipoise.errors import ParameterError
from equipoise.stats.aggregate_ranks import (
    AggregateScores,
    adjacent_pairs,
    aggregate_scores,
    borda_points,
    first_places,
    kendall_tau,
    leave_one_out,
    median_ranks,
    order_change,
    z_points,
)

CONFIG = StatsConfig(n_resamples=400)


def random_scores(n_datasets: int, n_models: int, seed: int = 0) -> np.ndarray:
    """Integer scores with many ties."""
    return np.random.default_rng(seed).integers(0, 6, (n_datasets, n_models)).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_borda_points_agree_with_average_ranks(seed: int) -> None:
    rows = random_scores(7, 5, seed)
    expected = [len(row) - rankdata(-row) for row in rows]
    assert np.allclose(borda_points(rows), expected)


@pytest.mark.parametrize("seed", range(5))
def test_median_rank_and_first_places_agree_with_scipy(seed: int) -> None:
    rows = random_scores(7, 5, seed)
    assert np.allclose(median_ranks(rows), np.median([rankdata(-row) for row in rows], axis=0))
    assert first_places(rows).tolist() == [sum(rankdata(-row, "min")[model] == 1 for row in rows) for model in range(5)]


def test_z_points_agree_with_scipy_and_constant_rows_give_zero() -> None:
    rows = np.array([[1.0, 2.0, 4.0], [5.0, 5.0, 5.0]])
    assert np.allclose(z_points(rows)[0], zscore(rows[0]))
    assert z_points(rows)[1].tolist() == [0.0, 0.0, 0.0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_kendall_tau_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    expected = kendalltau(a, b).statistic
    assert kendall_tau(a, b) == pytest.approx(expected, nan_ok=True)


def reference_resamples(units: list[np.ndarray], n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Means of resampled data sets and of resampled units within each of them, one at a time."""
    resampled_means = []
    for _ in range(n_resamples):
        datasets = rng.integers(0, len(units), len(units))
        means = [
            units[dataset][rng.integers(0, len(units[dataset]), len(units[dataset]))].mean(0) for dataset in datasets
        ]
        resampled_means.append(np.mean(means, axis=0))
    return np.array(resampled_means)


def test_hierarchical_resamples_have_the_covariance_of_a_direct_bootstrap() -> None:
    rng = np.random.default_rng(3)
    units = [rng.normal(level, 1.0, (size, 3)) for level, size in ((0.0, 8), (1.0, 20), (3.0, 5), (4.0, 11))]
    rows = np.array([values.mean(axis=0) for values in units])
    config = StatsConfig(n_resamples=4000)
    resamples = aggregate_scores(rows, units, "both", config)["mean"].resamples
    expected = reference_resamples(units, 4000, rng)
    assert np.allclose(resamples.mean(axis=0), expected.mean(axis=0), atol=0.08)
    assert np.allclose(np.cov(resamples.T), np.cov(expected.T), rtol=0.1, atol=0.03)


def test_resampled_units_of_fixed_data_sets_vary_less_than_data_sets() -> None:
    rng = np.random.default_rng(4)
    units = [rng.normal(level, 1.0, (30, 2)) for level in (0.0, 5.0, 10.0, 20.0)]
    rows = np.array([values.mean(axis=0) for values in units])
    fixed = aggregate_scores(rows, units, "units", CONFIG)["mean"].resamples.std(axis=0)
    expected = np.sqrt(np.mean([values.var(axis=0) / 30 for values in units], axis=0) / 4)
    assert np.allclose(fixed, expected, rtol=0.15)
    assert (aggregate_scores(rows, units, "both", CONFIG)["mean"].resamples.std(axis=0) > 5 * fixed).all()


def test_mean_intervals_agree_with_student_intervals() -> None:
    rows = np.random.default_rng(5).normal(50, 10, (25, 2))
    scores = aggregate_scores(rows, None, "datasets", StatsConfig(n_resamples=20_000))["mean"]
    from scipy.stats import t

    for model, interval in enumerate(scores.intervals()):
        low, high = t.interval(0.95, 24, rows[:, model].mean(), rows[:, model].std(ddof=1) / 5)
        assert (interval.low, interval.high) == (pytest.approx(low, abs=0.2), pytest.approx(high, abs=0.2))


@pytest.mark.parametrize("seed", range(8))
def test_rank_intervals_of_two_models_agree_with_the_paired_t_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(50, 10, (30, 1)) + rng.normal([0.0, 1.0], 2.0, (30, 2))
    p = ttest_rel(rows[:, 0], rows[:, 1]).pvalue
    scores = aggregate_scores(rows, None, "datasets", StatsConfig(n_resamples=4000))["mean"]
    separated = scores.rank_intervals[:, 0].max() == 2
    if abs(p - 0.05) > 0.01:
        assert separated == (p < 0.05)


def coverage(n_datasets: int, true_scores: np.ndarray, n_tables: int, aggregate: str = "mean") -> tuple[float, float]:
    """How often a rank interval includes the true ranks, and how often the best model is in the group for first."""
    rng = np.random.default_rng(n_datasets)
    lowest = 1 + (true_scores > true_scores[:, np.newaxis]).sum(axis=1)
    highest = (true_scores >= true_scores[:, np.newaxis]).sum(axis=1)
    covered, best = [], []
    for seed in range(n_tables):
        rows = rng.normal(50, 10, (n_datasets, 1)) + true_scores + rng.normal(0, 3, (n_datasets, len(true_scores)))
        scores = aggregate_scores(rows, None, "datasets", StatsConfig(n_resamples=300, seed=seed))[aggregate]
        ranks = scores.rank_intervals
        covered.append(((ranks[:, 0] <= lowest) & (ranks[:, 1] >= highest)).mean())
        best.append(ranks[true_scores.argmax(), 0] == 1)
    return float(np.mean(covered)), float(np.mean(best))


@pytest.mark.parametrize("n_datasets", [4, 9, 12, 40])
def test_rank_intervals_cover_the_ranks_of_equal_models(n_datasets: int) -> None:
    covered, best = coverage(n_datasets, np.zeros(6), 150)
    assert covered > 0.91
    assert best > 0.91


def test_rank_intervals_of_borda_counts_cover_the_ranks_of_equal_models() -> None:
    covered, best = coverage(12, np.zeros(6), 150, "borda")
    assert covered > 0.91
    assert best > 0.91


@pytest.mark.parametrize("mode", ["units", "both"])
def test_rank_intervals_from_units_cover_the_ranks_of_equal_models(mode: str) -> None:
    rng = np.random.default_rng(11)
    covered = []
    for seed in range(80):
        units = [rng.normal(level, 1, (30, 1)) + rng.normal(0, 1, (30, 4)) for level in (0.0, 2.0, 5.0)]
        rows = np.array([values.mean(axis=0) for values in units])
        config = StatsConfig(n_resamples=200, seed=seed)
        ranks = aggregate_scores(rows, units, mode, config)["mean"].rank_intervals  # type: ignore[arg-type]
        covered.append((ranks == [1, 4]).all(axis=1).mean())
    assert np.mean(covered) > 0.9


def test_rank_intervals_cover_the_ranks_of_different_models() -> None:
    covered, best = coverage(15, np.linspace(0.0, 6.0, 6), 100)
    assert covered > 0.95
    assert best > 0.95


def test_distant_models_have_narrow_rank_intervals() -> None:
    rows = np.random.default_rng(1).normal([90.0, 60.0, 30.0], 1.0, (12, 3))
    scores = aggregate_scores(rows, None, "datasets", CONFIG)["mean"]
    assert scores.rank_intervals.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_equal_differences_need_six_data_sets() -> None:
    def ranks(n_datasets: int) -> list[list[int]]:
        rows = np.arange(n_datasets)[:, np.newaxis] + np.array([1.0, 0.0])
        return aggregate_scores(rows, None, "datasets", CONFIG)["mean"].rank_intervals.tolist()

    assert ranks(5) == [[1, 2], [1, 2]]
    assert ranks(6) == [[1, 1], [2, 2]]


def test_identical_models_share_all_ranks() -> None:
    rows = np.repeat(np.random.default_rng(2).normal(50, 5, (12, 1)), 3, axis=1)
    scores = aggregate_scores(rows, None, "datasets", CONFIG)["mean"]
    assert scores.rank_intervals.tolist() == [[1, 3]] * 3


def test_one_data_set_leaves_all_ranks_open() -> None:
    scores = aggregate_scores(np.array([[3.0, 1.0, 2.0]]), None, "datasets", CONFIG)["mean"]
    assert scores.rank_intervals.tolist() == [[1, 3]] * 3
    assert not scores.intervals()[0].known


def test_adjacent_pairs_follow_the_order_and_are_corrected() -> None:
    rows = np.random.default_rng(8).normal([50.0, 60.0, 58.0], 2.0, (20, 3))
    scores = aggregate_scores(rows, None, "datasets", CONFIG)["mean"]
    pairs = adjacent_pairs(scores, None, "datasets", StatsConfig(test="t"))
    assert [(pair.better, pair.worse) for pair in pairs] == [(1, 2), (2, 0)]
    p = [ttest_rel(rows[:, 1], rows[:, 2]).pvalue, ttest_rel(rows[:, 2], rows[:, 0]).pvalue]
    assert [pair.p for pair in pairs] == pytest.approx(p)
    assert pairs[1].p_adjusted == pytest.approx(2 * p[1])


def test_adjacent_pairs_of_fixed_data_sets_compare_units() -> None:
    rng = np.random.default_rng(9)
    units = [rng.normal([0.5, 0.0], 1.0, (60, 2)) for _ in range(3)]
    rows = np.array([values.mean(axis=0) for values in units])
    unit_scores = aggregate_scores(rows, units, "units", CONFIG)["mean"]
    (pair,) = adjacent_pairs(unit_scores, units, "units", CONFIG)
    (dataset_pair,) = adjacent_pairs(unit_scores, units, "both", CONFIG)
    assert pair.p < 0.01
    assert dataset_pair.p >= 0.25


def test_leave_one_out_gives_the_order_on_the_other_data_sets() -> None:
    rows = np.array([[9.0, 1.0, 2.0], [1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])
    scores = aggregate_scores(rows, None, "datasets", CONFIG)["mean"]
    changes = leave_one_out(scores, rows, "mean")
    assert [change.first for change in changes] == [1, 0, 0]
    scores_of_others = rows[1:].mean(axis=0)
    assert changes[0].tau == pytest.approx(kendalltau(scores.points, scores_of_others).statistic)
    assert (changes[0].moved, changes[0].rank, changes[0].new_rank) == (0, 1, 3)


def test_the_same_order_has_tau_one_and_no_move() -> None:
    change = order_change(np.array([3.0, 1.0, 2.0]), np.array([30.0, 10.0, 20.0]))
    assert (change.tau, change.first, change.rank) == (pytest.approx(1.0), 0, change.new_rank)


def test_resamples_depend_on_the_seed() -> None:
    rows = random_scores(8, 4)

    def resamples(seed: int) -> AggregateScores:
        return aggregate_scores(rows, None, "datasets", StatsConfig(n_resamples=50, seed=seed))["borda"]

    assert np.array_equal(resamples(1).resamples, resamples(1).resamples)
    assert not np.array_equal(resamples(1).resamples, resamples(2).resamples)


@pytest.mark.parametrize("mode", ["units", "both", "dataset"])
def test_unknown_modes_and_missing_units_raise_parameter_error(mode: str) -> None:
    with pytest.raises(ParameterError) as error:
        aggregate_scores(random_scores(4, 3), None, mode, CONFIG)  # type: ignore[arg-type]
    assert error.value.hint
