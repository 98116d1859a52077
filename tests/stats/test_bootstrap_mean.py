"""Bootstrap intervals, compared with scipy, and data without an interval."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from studies.interval_calibration_data import NumberRows

from equipoise.config import StatsConfig
from equipoise.errors import ShapeError, UndefinedError
from equipoise.stats.bootstrap_mean import ResamplingUnits, bootstrap_means, gaffke_limits, mean_intervals
from equipoise.stats.corpus_metrics import evidence_intervals
from equipoise.stats.intervals import Interval, wilson_interval
from equipoise.types import Floats


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def beta_values(units: int, columns: int = 1, seed: int = 5) -> Floats:
    return rng(seed).beta(2, 3, (units, columns))


def interval_of(values: object, **options: object) -> Interval:
    (interval,) = mean_intervals(values, rng=rng(), **options)  # type: ignore[arg-type]
    return interval


def test_bootstrap_means_have_the_mean_and_standard_error_of_the_weighted_mean() -> None:
    values, weights = beta_values(200, 2), rng(6).integers(1, 5, (200, 2)).astype(float)
    means = bootstrap_means(values, weights=weights, n_resamples=4000, rng=rng())
    expected = np.average(values, axis=0, weights=weights)
    residuals = weights * (values - expected)
    standard_error = np.sqrt((residuals**2).sum(axis=0)) / weights.sum(axis=0)
    assert means.mean(axis=0) == pytest.approx(expected, abs=4 * standard_error.max() / np.sqrt(4000))
    assert means.std(axis=0) == pytest.approx(standard_error, rel=0.06)


def test_the_same_seed_gives_the_same_bytes() -> None:
    values = beta_values(300, 5)
    first, second = (bootstrap_means(values, n_resamples=100, rng=rng(9)).tobytes() for _ in range(2))
    assert first == second
    assert mean_intervals(values, rng=rng(9)) == mean_intervals(values, rng=rng(9))
    assert mean_intervals(values, rng=rng(9)) != mean_intervals(values, rng=rng(10))


def test_undefined_units_are_excluded_and_empty_resamples_are_nan() -> None:
    values = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, np.nan], [4.0, np.nan]])
    means = bootstrap_means(values, n_resamples=500, rng=rng())
    undefined = np.isnan(means[:, 1])
    assert not np.isnan(means[:, 0]).any()
    assert undefined.mean() == pytest.approx(0.75**4, abs=0.07)
    assert (means[~undefined, 1] == 5.0).all()


def test_whole_clusters_are_resampled() -> None:
    values = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    means = bootstrap_means(values, clusters=["a", "a", "b", "b", "b", "b"], n_resamples=200, rng=rng())
    assert set(means.ravel().round(12)) == {0.0, round(4 / 6, 12), 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_bca_agrees_with_scipy_up_to_the_widened_tails(seed: int) -> None:
    values = rng(seed).beta(0.5, 3, 400)
    expected = stats.bootstrap((values,), np.mean, n_resamples=9999, rng=rng(seed)).confidence_interval
    interval = interval_of(values, config=StatsConfig(n_resamples=9999))
    assert interval.method == "bca"
    slack = 0.05 * (expected.high - expected.low)
    assert interval.low == pytest.approx(expected.low, abs=slack)
    assert interval.high == pytest.approx(expected.high, abs=slack)


def test_intervals_of_weighted_means_agree_with_scipy() -> None:
    values, weights = beta_values(300)[:, 0], rng(3).integers(1, 9, 300).astype(float)

    def weighted(v: Floats, w: Floats, axis: int) -> Floats:
        return (v * w).sum(axis=axis) / w.sum(axis=axis)

    expected = stats.bootstrap((values, weights), weighted, paired=True, rng=rng()).confidence_interval
    interval = interval_of(values, weights=weights, config=StatsConfig(n_resamples=9999))
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.05 * interval.width)


def test_unbounded_columns_use_the_bayesian_bootstrap_with_half_a_unit_added() -> None:
    """Weights from scipy's Dirichlet distribution, the last of them for the added value."""
    values = rng(4).geometric(0.1, 60).astype(float)
    interval = interval_of(values, bounds=[(1.0, inf)], limits=[(1.0, 500.0)], config=StatsConfig(n_resamples=8000))
    largest_deviation = np.abs(values - values.mean()).max()
    weights = stats.dirichlet([1.0] * 60 + [0.5], seed=8).rvs(8000)
    low, high = (
        np.quantile(weights @ np.r_[values, added], share)
        for added, share in ((1.0, 0.025), (values.mean() + 2 * largest_deviation, 0.975))
    )
    assert interval.method == "gaffke"
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.06 * interval.width)


def test_columns_do_not_influence_each_other() -> None:
    values = np.column_stack([beta_values(50), rng().random(50) < 0.5, rng().geometric(0.2, 50)])
    bounds = [(0.0, 1.0), (0.0, 1.0), (1.0, inf)]
    joint = mean_intervals(values, bounds=bounds, rng=rng())
    separate = [interval_of(values[:, column], bounds=[bounds[column]]) for column in range(3)]
    assert [interval.method for interval in joint] == ["gaffke", "wilson", "gaffke"]
    for joint_interval, separate_interval in zip(joint, separate, strict=True):
        assert (joint_interval.low, joint_interval.high) == pytest.approx(
            (separate_interval.low, separate_interval.high), abs=1e-12
        )


def test_bounds_widen_the_interval_of_rare_large_values() -> None:
    values = np.r_[np.full(59, 0.002), 0.5]
    bounded, unbounded = interval_of(values, bounds=[(0.0, 1.0)]), interval_of(values)
    assert (bounded.method, unbounded.method) == ("gaffke", "bca")
    assert bounded.high > unbounded.high
    assert bounded.low < values.mean() < bounded.high
    assert interval_of(values, bounds=[(0.0, 1.0)]) == bounded


def test_gaffke_limits_of_hits_are_beta_quantiles_with_half_a_unit_added() -> None:
    units = ResamplingUnits.of(np.r_[np.ones(3), np.zeros(47)])
    low, high = gaffke_limits(units, (np.zeros(1), np.ones(1)), 0.95, 40_000, rng())
    exact = stats.beta.ppf(0.025, 3, 47.5), stats.beta.ppf(0.975, 3.5, 47)
    assert (low[0], high[0]) == pytest.approx(exact, abs=0.003)


@pytest.mark.parametrize("seed", range(20))
def test_intervals_of_mean_ranks_stay_within_the_possible_ranks(seed: int) -> None:
    """Nearly all ranks are 1, and a resample without the few others has next to no standard error."""
    ranks = np.ones(25)
    ranks[: 1 + seed % 3] = rng(seed).integers(100, 204, 1 + seed % 3)
    interval = interval_of(ranks, bounds=[(1.0, inf)], limits=[(1.0, 203.0)])
    assert 1.0 <= interval.low <= ranks.mean() <= interval.high < 60.0


def test_random_rankings_get_intervals_of_similar_width() -> None:
    """A single high rank in a sample must not change the method of the interval."""
    ranks = rng(1).integers(1, 204, (45, 40))
    intervals = mean_intervals(1.0 / ranks, bounds=[(0.0, 1.0)] * 40, rng=rng())
    assert {interval.method for interval in intervals} == {"gaffke"}
    widths = np.array([interval.width for interval in intervals])
    assert widths.max() < 3 * widths.min()


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0), (0.0, inf)])
def test_intervals_do_not_depend_on_the_order_of_units(bounds: object, clustered: bool) -> None:
    values, weights = beta_values(60, 3), rng(2).integers(1, 4, 60).astype(float)
    clusters = rng(3).integers(0, 20, 60)
    order = rng(4).permutation(60)
    original, shuffled = (
        mean_intervals(
            values[rows],
            weights=weights[rows],
            clusters=clusters[rows] if clustered else None,
            bounds=None if bounds is None else [bounds] * 3,
            config=StatsConfig(n_resamples=200),
            rng=rng(),
        )
        for rows in (np.arange(60), order)
    )
    for left, right in zip(original, shuffled, strict=True):
        assert (left.low, left.high) == pytest.approx((right.low, right.high), rel=1e-12)


def test_bootstrap_means_do_not_depend_on_the_order_of_units() -> None:
    values = beta_values(60, 3)
    original, shuffled = (
        bootstrap_means(values[rows], n_resamples=50, rng=rng()) for rows in (np.arange(60), rng(4).permutation(60))
    )
    assert original.tobytes() == shuffled.tobytes()


def test_binary_values_get_wilson_intervals_over_defined_units() -> None:
    assert interval_of([1.0, 0.0, 1.0, np.nan, 1.0]) == wilson_interval(3, 4)
    assert interval_of([1.0, 1.0], weights=[3.0, 3.0]) == wilson_interval(2, 2)


def test_differences_of_0_and_1_get_no_wilson_interval() -> None:
    interval = interval_of([1.0, 0.0, 0.0] * 10, bounds=[(-1.0, 1.0)])
    assert interval.method == "gaffke"
    assert interval_of([0.0] * 30, bounds=[(-1.0, 1.0)]).method == "gaffke"


@pytest.mark.parametrize(("value", "n"), [(0.5, 5), (0.18, 50), (0.2, 3000)])
def test_equal_values_between_bounds_get_the_interval_of_half_a_unit_at_a_bound(value: float, n: int) -> None:
    # The weight of the n units is a beta variate with parameters n and 1/2.
    weight = stats.beta.ppf(0.025, n, 0.5)
    interval = interval_of([value] * n, bounds=[(0.0, 1.0)])
    assert (interval.low, interval.high) == pytest.approx((value * weight, 1 - (1 - value) * weight), abs=0.15 / n)
    assert interval_of([value] * n, bounds=[(0.0, np.inf)]).reason == "all values are equal"


def test_clusters_of_equal_binary_values_count_as_one_unit() -> None:
    hits = np.repeat(rng(2).random(40) < 0.7, 5).astype(float)
    clusters = np.repeat(np.arange(40), 5)
    clustered, unclustered = interval_of(hits, clusters=clusters), interval_of(hits)
    assert clustered.method == "wilson-effective"
    assert clustered.width == pytest.approx(interval_of(hits[::5]).width, rel=0.05)
    assert unclustered.width < 0.6 * clustered.width


def test_random_clusters_hardly_widen_binary_intervals() -> None:
    hits = (rng(3).random(400) < 0.7).astype(float)
    clustered = interval_of(hits, clusters=np.repeat(np.arange(100), 4))
    assert clustered.width == pytest.approx(interval_of(hits).width, rel=0.2)


def test_clusters_of_hits_only_count_as_one_trial_each() -> None:
    interval = interval_of(np.ones(60), clusters=np.repeat(np.arange(12), 5))
    assert (interval.low, interval.high) == (pytest.approx(wilson_interval(12, 12).low, abs=0.06), 1.0)


@pytest.mark.parametrize(
    ("values", "clusters", "reason"),
    [
        ([np.nan, np.nan], None, "no defined value"),
        ([], None, "no defined value"),
        ([0.5, np.nan], None, "one value"),
        ([1.0], None, "one value"),
        ([0.1, 0.5, 0.7], ["a", "a", "a"], "one cluster"),
        ([0.5] * 30, None, "all values are equal"),
        ([0.1, 0.3] * 15, np.repeat(np.arange(15), 2), "all clusters have the same mean"),
    ],
)
def test_missing_intervals_have_a_reason(values: list[float], clusters: object, reason: str) -> None:
    interval = interval_of(values, clusters=clusters)
    assert (interval.reason, interval.method) == (reason, "none")
    assert np.isnan([interval.low, interval.high]).all()


def test_few_units_get_the_student_interval() -> None:
    values = beta_values(6)[:, 0]
    low, high = stats.t.interval(0.95, 5, values.mean(), stats.sem(values))
    interval = interval_of(values)
    assert interval.method == "t"
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_intervals_are_clipped_to_the_bounds_of_the_metric() -> None:
    values = np.array([0.9, 1.0, 0.6, 1.0])
    assert interval_of(values).high > 1.0
    assert interval_of(values, bounds=[(0.0, 1.0)]).high == 1.0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.just(np.nan), st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), max_size=40),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_any_scores_give_an_interval_within_bounds_or_a_reason(
    scores: list[float], clustered: bool, weighted: bool, seed: int
) -> None:
    clusters = [unit // 3 for unit in range(len(scores))] if clustered else None
    weights = rng(seed).integers(0, 3, len(scores)) if weighted else None
    for bounds in ((0.0, 1.0), (0.0, inf)):
        (interval,) = mean_intervals(
            scores,
            weights=weights,
            clusters=clusters,
            bounds=[bounds],
            config=StatsConfig(n_resamples=50),
            rng=rng(seed),
        )
        assert interval.known == (bounds[0] <= interval.low <= interval.high <= bounds[1])


def test_invalid_bounds_raise_an_error() -> None:
    with pytest.raises(ShapeError, match=r"2 pairs.*1"):
        interval_of(beta_values(20), bounds=[(0.0, 1.0)] * 2)


def mean_of(rows: NumberRows) -> float:
    return float(rows.table[:, 0].mean())


def test_resampled_evidence_agrees_with_the_interval_of_its_mean() -> None:
    values = beta_values(80)
    expected = interval_of(values, config=StatsConfig(n_resamples=4000))
    interval = evidence_intervals([mean_of], NumberRows(values), config=StatsConfig(n_resamples=4000), rng=rng())[0]
    assert interval.method == "bias-corrected"
    assert interval.low == pytest.approx(expected.low, abs=0.06 * expected.width)
    assert interval.high == pytest.approx(expected.high, abs=0.06 * expected.width)


def test_resampled_evidence_takes_whole_clusters() -> None:
    values = np.repeat(beta_values(40), 6, axis=0)
    clusters = np.repeat(np.arange(40), 6)
    expected = interval_of(values, clusters=clusters, config=StatsConfig(n_resamples=4000))
    interval = evidence_intervals(
        [mean_of], NumberRows(values), clusters=clusters, config=StatsConfig(n_resamples=2000), rng=rng()
    )[0]
    assert interval.width == pytest.approx(expected.width, rel=0.08)


@pytest.mark.parametrize("units", [61, 200])
def test_subsampled_means_get_the_student_interval(units: int) -> None:
    values = beta_values(units)
    low, high = stats.t.interval(0.95, units - 1, values.mean(), stats.sem(values[:, 0]))
    interval = evidence_intervals(
        [mean_of], NumberRows(values), subsample=True, config=StatsConfig(n_resamples=4000), rng=rng()
    )[0]
    assert interval.method == "subsample"
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.04 * (high - low))


def test_subsamples_are_without_replacement() -> None:
    sizes = []

    def mean_with_sizes(rows: NumberRows) -> float:
        sizes.append((len(rows.table), len(np.unique(rows.table))))
        return mean_of(rows)

    evidence_intervals(
        [mean_with_sizes], NumberRows(beta_values(21)), subsample=True, config=StatsConfig(n_resamples=20), rng=rng()
    )[0]
    assert set(sizes) == {(21, 21), (10, 10)}


def test_all_metrics_share_the_resampled_evidence() -> None:
    recorded_values: list[list[float]] = [[], []]

    def record(index: int, rows: NumberRows) -> float:
        recorded_values[index].append(mean_of(rows))
        return recorded_values[index][-1]

    evidence_intervals(
        [lambda rows: record(0, rows), lambda rows: record(1, rows)],
        NumberRows(beta_values(9)),
        config=StatsConfig(n_resamples=5),
        rng=rng(),
    )
    assert recorded_values[0] == recorded_values[1]
    assert len(set(recorded_values[0])) > 1


def undefined_below(rows: NumberRows, min_distinct: int) -> float:
    if len(np.unique(rows.table)) < min_distinct:
        raise UndefinedError("too few")
    return mean_of(rows)


@pytest.mark.parametrize(
    ("metric", "units", "reason"),
    [
        (mean_of, 0, "no defined value"),
        (mean_of, 1, "one value"),
        (mean_of, 4, "4 values are too few to resample"),
        (lambda rows: float("nan"), 30, "the value is undefined"),
        (lambda rows: 0.7, 30, "every resample gives the same value"),
        (lambda rows: undefined_below(rows, 30), 30, "undefined on 50 of 50 resamples"),
    ],
)
def test_missing_intervals_of_corpus_metrics_have_a_reason(metric: object, units: int, reason: str) -> None:
    interval = evidence_intervals(
        [metric], NumberRows(beta_values(units)), config=StatsConfig(n_resamples=50), rng=rng()
    )[0]  # type: ignore[arg-type]
    assert interval.reason == reason


def test_a_few_undefined_resamples_are_excluded() -> None:
    interval = evidence_intervals([lambda rows: undefined_below(rows, 14)], NumberRows(beta_values(30)), rng=rng())[0]
    assert interval.known


def test_corpus_intervals_are_clipped() -> None:
    rows = NumberRows(beta_values(12))
    for subsample in (False, True):
        options = {"subsample": subsample, "rng": rng()}
        unbounded = evidence_intervals([mean_of], rows, **options)[0]  # type: ignore[arg-type]
        upper_bound = (mean_of(rows) + unbounded.high) / 2
        clipped = evidence_intervals([mean_of], rows, bounds=[(0.0, upper_bound)], **options)[0]  # type: ignore[arg-type]
        assert clipped.high == upper_bound


@pytest.mark.parametrize("seed", range(25))
def test_nearly_constant_ranks_get_a_narrow_interval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters, ranks = rng.integers(0, 20, 55), np.ones(55)
    n_different = rng.integers(1, 4)
    ranks[rng.choice(55, n_different, replace=False)] = rng.integers(2, 4, n_different)
    interval = mean_intervals(ranks[:, None], clusters=clusters, bounds=[(1.0, np.inf)], rng=rng)[0]
    assert 1.0 <= interval.low <= ranks.mean() <= interval.high < 3.0


@pytest.mark.parametrize("kind", ["uniform", "lognormal", "mostly zero"])
def test_grouped_units_keep_mean_and_variance_of_the_bayesian_bootstrap(kind: str) -> None:
    rng = np.random.default_rng(0)
    values = {
        "uniform": rng.random((5000, 1)),
        "lognormal": rng.lognormal(size=(5000, 1)),
        "mostly zero": np.where(rng.random((5000, 1)) < 0.97, 0.0, rng.random((5000, 1))),
    }[kind]
    units = ResamplingUnits.of(values).ordered()
    totals, masses, sizes = units.grouped()
    assert len(totals) < 600
    assert sizes.sum() == len(values)
    # The weight of a row of m units is the mean of m exponentials: mean 1, variance 1/m.
    residuals = totals - values.mean(axis=0) * masses
    np.testing.assert_allclose(totals.sum(axis=0) / masses.sum(axis=0), values.mean(axis=0), rtol=1e-12)
    variance = (residuals**2 / sizes[:, None]).sum(axis=0) / len(values)
    np.testing.assert_allclose(variance, values.var(axis=0), rtol=1e-9)


@pytest.mark.parametrize(("share_of_non_zero", "units"), [(1.0, 1500), (0.1, 3000), (0.02, 4000)])
def test_limits_of_many_units_agree_with_8000_resamples(share_of_non_zero: float, units: int) -> None:
    generator = rng(3)
    values = np.where(generator.random(units) < share_of_non_zero, generator.beta(1, 2, units), 0.0)
    interval = interval_of(values, bounds=[(0.0, 1.0)], config=StatsConfig(n_resamples=40))
    limits = []
    for bound, quantile in ((0.0, 0.025), (1.0, 0.975)):
        weights, extra = generator.standard_exponential((8000, units)), generator.standard_gamma(0.5, 8000)
        means = (weights @ values + extra * bound) / (weights.sum(axis=1) + extra)
        limits.append(np.quantile(means, quantile))
    error = stats.sem(values)
    assert (interval.low, interval.high) == pytest.approx(limits, abs=0.12 * error)


def test_limits_of_many_units_do_not_depend_on_the_number_of_resamples_or_the_seed() -> None:
    values = beta_values(2000)
    interval = interval_of(values, bounds=[(0.0, 1.0)], config=StatsConfig(n_resamples=50))
    assert interval == interval_of(values, bounds=[(0.0, 1.0)], config=StatsConfig(n_resamples=5000))
    assert interval == mean_intervals(values, bounds=[(0.0, 1.0)], rng=rng(9))[0]


@pytest.mark.parametrize(("confidence_level", "min_resamples"), [(0.95, 40), (0.9, 20), (0.99, 200)])
def test_too_few_resamples_give_no_interval(confidence_level: float, min_resamples: int) -> None:
    enough, too_few = (
        StatsConfig(n_resamples=n_resamples, confidence_level=confidence_level)
        for n_resamples in (min_resamples, min_resamples - 1)
    )
    for options in ({}, {"bounds": [(0.0, 1.0)]}):
        interval = interval_of(beta_values(30), config=too_few, **options)
        assert not interval.known
        assert f"{min_resamples} are needed" in interval.reason
        assert interval_of(beta_values(30), config=enough, **options).known
    interval = evidence_intervals(
        [lambda rows: float(np.median(rows.table))],
        NumberRows(beta_values(30)),
        config=StatsConfig(n_resamples=9),
        rng=rng(),
    )[0]
    assert not interval.known
