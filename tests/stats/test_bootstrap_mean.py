"""Bootstrap intervals against scipy's, and the rules for data that allow none."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from studies.interval_calibration_data import NumberRows

from equipoise.errors import ParameterError, ShapeError, UndefinedError
from equipoise.stats.bootstrap_mean import ResamplingUnits, bootstrap_means, gaffke_limits, mean_intervals
from equipoise.stats.corpus_metrics import evidence_intervals
from equipoise.stats.intervals import Interval, wilson_interval
from equipoise.types import Floats


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def graded(units: int, columns: int = 1, seed: int = 5) -> Floats:
    return rng(seed).beta(2, 3, (units, columns))


def only(values: object, **options: object) -> Interval:
    (interval,) = mean_intervals(values, rng=rng(), **options)  # type: ignore[arg-type]
    return interval


def test_bootstrap_means_have_the_mean_and_spread_of_the_weighted_mean() -> None:
    values, weights = graded(200, 2), rng(6).integers(1, 5, (200, 2)).astype(float)
    means = bootstrap_means(values, weights=weights, n_resamples=4000, rng=rng())
    expected = np.average(values, axis=0, weights=weights)
    residuals = weights * (values - expected)
    spread = np.sqrt((residuals**2).sum(axis=0)) / weights.sum(axis=0)
    assert means.mean(axis=0) == pytest.approx(expected, abs=4 * spread.max() / np.sqrt(4000))
    assert means.std(axis=0) == pytest.approx(spread, rel=0.06)


def test_the_same_seed_gives_the_same_bytes() -> None:
    values = graded(300, 5)
    first, second = (bootstrap_means(values, n_resamples=100, rng=rng(9)).tobytes() for _ in range(2))
    assert first == second
    assert mean_intervals(values, rng=rng(9)) == mean_intervals(values, rng=rng(9))
    assert mean_intervals(values, rng=rng(9)) != mean_intervals(values, rng=rng(10))


def test_undefined_units_count_nothing_and_an_empty_resample_is_nan() -> None:
    values = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, np.nan], [4.0, np.nan]])
    means = bootstrap_means(values, n_resamples=500, rng=rng())
    missed = np.isnan(means[:, 1])
    assert not np.isnan(means[:, 0]).any()
    assert missed.mean() == pytest.approx(0.75**4, abs=0.07)
    assert (means[~missed, 1] == 5.0).all()


def test_whole_clusters_are_drawn() -> None:
    values = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    means = bootstrap_means(values, clusters=["a", "a", "b", "b", "b", "b"], n_resamples=200, rng=rng())
    assert set(means.ravel().round(12)) == {0.0, round(4 / 6, 12), 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_bca_agrees_with_scipy_up_to_the_widened_tails(seed: int) -> None:
    values = rng(seed).beta(0.5, 3, 400)
    expected = stats.bootstrap((values,), np.mean, n_resamples=9999, rng=rng(seed)).confidence_interval
    interval = only(values, n_resamples=9999)
    assert interval.method == "bca"
    slack = 0.05 * (expected.high - expected.low)
    assert interval.low == pytest.approx(expected.low, abs=slack)
    assert interval.high == pytest.approx(expected.high, abs=slack)


def test_a_weighted_mean_agrees_with_scipy_resampling_values_and_weights_together() -> None:
    values, weights = graded(300)[:, 0], rng(3).integers(1, 9, 300).astype(float)

    def weighted(v: Floats, w: Floats, axis: int) -> Floats:
        return (v * w).sum(axis=axis) / w.sum(axis=axis)

    peer = stats.bootstrap((values, weights), weighted, paired=True, rng=rng()).confidence_interval
    interval = only(values, weights=weights, n_resamples=9999)
    assert (interval.low, interval.high) == pytest.approx((peer.low, peer.high), abs=0.05 * interval.width)


def test_an_open_column_is_the_bayesian_bootstrap_with_half_a_draw_beyond_the_largest() -> None:
    """Weights from scipy's Dirichlet distribution, the last of them for the added value."""
    values = rng(4).geometric(0.1, 60).astype(float)
    interval = only(values, bounds=[(1.0, inf)], limits=[(1.0, 500.0)], n_resamples=8000)
    largest = np.abs(values - values.mean()).max()
    weights = stats.dirichlet([1.0] * 60 + [0.5], seed=8).rvs(8000)
    low, high = (
        np.quantile(weights @ np.r_[values, added], share)
        for added, share in ((1.0, 0.025), (values.mean() + 2 * largest, 0.975))
    )
    assert interval.method == "gaffke"
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.06 * interval.width)


def test_each_column_is_answered_as_if_it_stood_alone() -> None:
    values = np.column_stack([graded(50), rng().random(50) < 0.5, rng().geometric(0.2, 50)])
    bounds = [(0.0, 1.0), (0.0, 1.0), (1.0, inf)]
    together = mean_intervals(values, bounds=bounds, rng=rng())
    alone = [only(values[:, at], bounds=[bounds[at]]) for at in range(3)]
    assert [interval.method for interval in together] == ["gaffke", "wilson", "gaffke"]
    for one, other in zip(together, alone, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-12)


def test_rare_large_values_get_limits_from_the_bounds() -> None:
    values = np.r_[np.full(59, 0.002), 0.5]
    bounded, free = only(values, bounds=[(0.0, 1.0)]), only(values)
    assert (bounded.method, free.method) == ("gaffke", "bca")
    assert bounded.high > free.high
    assert bounded.low < values.mean() < bounded.high
    assert only(values, bounds=[(0.0, 1.0)]) == bounded


def test_limits_of_hits_are_quantiles_of_the_beta_distribution_with_half_a_draw_more() -> None:
    draws = ResamplingUnits.of(np.r_[np.ones(3), np.zeros(47)])
    low, high = gaffke_limits(draws, (np.zeros(1), np.ones(1)), 0.95, 40_000, rng())
    exact = stats.beta.ppf(0.025, 3, 47.5), stats.beta.ppf(0.975, 3.5, 47)
    assert (low[0], high[0]) == pytest.approx(exact, abs=0.003)


@pytest.mark.parametrize("seed", range(20))
def test_no_interval_of_a_mean_rank_leaves_the_ranks_of_the_candidates(seed: int) -> None:
    """Nearly all ranks are 1, and a resample without the few others has next to no standard error."""
    ranks = np.ones(25)
    ranks[: 1 + seed % 3] = rng(seed).integers(100, 204, 1 + seed % 3)
    interval = only(ranks, bounds=[(1.0, inf)], limits=[(1.0, 203.0)])
    assert 1.0 <= interval.low <= ranks.mean() <= interval.high < 60.0


def test_systems_that_rank_at_random_get_intervals_of_similar_width() -> None:
    """Whether one sample happens to hold a rank near the top must not change how an interval is made."""
    ranks = rng(1).integers(1, 204, (45, 40))
    found = mean_intervals(1.0 / ranks, bounds=[(0.0, 1.0)] * 40, rng=rng())
    assert {interval.method for interval in found} == {"gaffke"}
    widths = np.array([interval.width for interval in found])
    assert widths.max() < 3 * widths.min()


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0), (0.0, inf)])
def test_the_order_of_the_units_changes_no_interval(bounds: object, clustered: bool) -> None:
    values, weights = graded(60, 3), rng(2).integers(1, 4, 60).astype(float)
    clusters = rng(3).integers(0, 20, 60)
    order = rng(4).permutation(60)
    given, shuffled = (
        mean_intervals(
            values[rows],
            weights=weights[rows],
            clusters=clusters[rows] if clustered else None,
            bounds=None if bounds is None else [bounds] * 3,
            n_resamples=200,
            rng=rng(),
        )
        for rows in (np.arange(60), order)
    )
    for one, other in zip(given, shuffled, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-12)


def test_the_order_of_the_units_changes_no_resampled_mean() -> None:
    values = graded(60, 3)
    given, shuffled = (
        bootstrap_means(values[rows], n_resamples=50, rng=rng()) for rows in (np.arange(60), rng(4).permutation(60))
    )
    assert given.tobytes() == shuffled.tobytes()


def test_binary_values_get_wilson_over_the_defined_units() -> None:
    assert only([1.0, 0.0, 1.0, np.nan, 1.0]) == wilson_interval(3, 4)
    assert only([1.0, 1.0], weights=[3.0, 3.0]) == wilson_interval(2, 2)


def test_differences_that_happen_to_be_hits_are_no_shares() -> None:
    interval = only([1.0, 0.0, 0.0] * 10, bounds=[(-1.0, 1.0)])
    assert interval.method == "gaffke"
    assert only([0.0] * 30, bounds=[(-1.0, 1.0)]).reason == "all values are equal"


def test_binary_values_in_clusters_of_equals_are_worth_one_unit_a_cluster() -> None:
    hits = np.repeat(rng(2).random(40) < 0.7, 5).astype(float)
    clusters = np.repeat(np.arange(40), 5)
    clustered, alone = only(hits, clusters=clusters), only(hits)
    assert clustered.method == "wilson-effective"
    assert clustered.width == pytest.approx(only(hits[::5]).width, rel=0.05)
    assert alone.width < 0.6 * clustered.width


def test_binary_values_in_random_clusters_lose_little() -> None:
    hits = (rng(3).random(400) < 0.7).astype(float)
    clustered = only(hits, clusters=np.repeat(np.arange(100), 4))
    assert clustered.width == pytest.approx(only(hits).width, rel=0.2)


def test_only_hits_in_clusters_are_bounded_as_one_trial_a_cluster() -> None:
    interval = only(np.ones(60), clusters=np.repeat(np.arange(12), 5))
    assert (interval.low, interval.high) == (pytest.approx(wilson_interval(12, 12).low, abs=0.06), 1.0)


@pytest.mark.parametrize(
    ("values", "clusters", "reason"),
    [
        ([np.nan, np.nan], None, "no defined value"),
        ([], None, "no defined value"),
        ([0.5, np.nan], None, "one unit"),
        ([1.0], None, "one unit"),
        ([0.1, 0.5, 0.7], ["a", "a", "a"], "one cluster"),
        ([0.5] * 30, None, "all values are equal"),
        ([0.1, 0.3] * 15, np.repeat(np.arange(15), 2), "all clusters have the same mean"),
    ],
)
def test_no_interval_is_made_up(values: list[float], clusters: object, reason: str) -> None:
    interval = only(values, clusters=clusters)
    assert (interval.reason, interval.method) == (reason, "none")
    assert np.isnan([interval.low, interval.high]).all()


def test_few_draws_get_students_interval() -> None:
    values = graded(6)[:, 0]
    low, high = stats.t.interval(0.95, 5, values.mean(), stats.sem(values))
    interval = only(values)
    assert interval.method == "t"
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_intervals_are_clipped_to_the_bounds_of_the_metric() -> None:
    values = np.array([0.9, 1.0, 0.6, 1.0])
    assert only(values).high > 1.0
    assert only(values, bounds=[(0.0, 1.0)]).high == 1.0


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
    clusters = [at // 3 for at in range(len(scores))] if clustered else None
    weights = rng(seed).integers(0, 3, len(scores)) if weighted else None
    for bounds in ((0.0, 1.0), (0.0, inf)):
        (interval,) = mean_intervals(
            scores, weights=weights, clusters=clusters, bounds=[bounds], n_resamples=50, rng=rng(seed)
        )
        assert interval.known == (bounds[0] <= interval.low <= interval.high <= bounds[1])


def test_bounds_and_resamples_must_make_sense() -> None:
    with pytest.raises(ShapeError, match=r"2 pairs.*1"):
        only(graded(20), bounds=[(0.0, 1.0)] * 2)
    with pytest.raises(ParameterError, match="0 resamples"):
        only(graded(20), n_resamples=0)
    with pytest.raises(ParameterError, match="0 resamples"):
        only([1.0, 0.0, 1.0], n_resamples=0)
    with pytest.raises(ParameterError, match="0 and 1"):
        only(graded(20), bounds=[(0.0, inf)], confidence_level=95)


def mean_of(rows: NumberRows) -> float:
    return float(rows.table[:, 0].mean())


def test_resampled_evidence_agrees_with_the_interval_of_its_mean() -> None:
    values = graded(80)
    expected = only(values, n_resamples=4000)
    interval = evidence_intervals([mean_of], NumberRows(values), n_resamples=4000, rng=rng())[0]
    assert interval.method == "bias-corrected"
    assert interval.low == pytest.approx(expected.low, abs=0.06 * expected.width)
    assert interval.high == pytest.approx(expected.high, abs=0.06 * expected.width)


def test_resampled_evidence_takes_whole_clusters() -> None:
    values = np.repeat(graded(40), 6, axis=0)
    clusters = np.repeat(np.arange(40), 6)
    expected = only(values, clusters=clusters, n_resamples=4000)
    interval = evidence_intervals([mean_of], NumberRows(values), clusters=clusters, n_resamples=2000, rng=rng())[0]
    assert interval.width == pytest.approx(expected.width, rel=0.08)


@pytest.mark.parametrize("units", [61, 200])
def test_subsampling_a_mean_gives_students_interval(units: int) -> None:
    values = graded(units)
    low, high = stats.t.interval(0.95, units - 1, values.mean(), stats.sem(values[:, 0]))
    interval = evidence_intervals([mean_of], NumberRows(values), subsample=True, n_resamples=4000, rng=rng())[0]
    assert interval.method == "subsample"
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.04 * (high - low))


def test_a_subsample_never_repeats_a_unit() -> None:
    sizes = []

    def distinct(rows: NumberRows) -> float:
        sizes.append((len(rows.table), len(np.unique(rows.table))))
        return mean_of(rows)

    evidence_intervals([distinct], NumberRows(graded(21)), subsample=True, n_resamples=20, rng=rng())[0]
    assert set(sizes) == {(21, 21), (10, 10)}


def test_all_figures_share_the_resampled_evidence() -> None:
    seen: list[list[float]] = [[], []]

    def record(at: int, rows: NumberRows) -> float:
        seen[at].append(mean_of(rows))
        return seen[at][-1]

    evidence_intervals(
        [lambda rows: record(0, rows), lambda rows: record(1, rows)],
        NumberRows(graded(9)),
        n_resamples=5,
        rng=rng(),
    )
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 1


def undefined_below(rows: NumberRows, distinct: int) -> float:
    if len(np.unique(rows.table)) < distinct:
        raise UndefinedError("too few")
    return mean_of(rows)


@pytest.mark.parametrize(
    ("figure", "units", "reason"),
    [
        (mean_of, 0, "no defined value"),
        (mean_of, 1, "one unit"),
        (mean_of, 4, "4 units are too few to resample"),
        (lambda rows: float("nan"), 30, "the value is undefined"),
        (lambda rows: 0.7, 30, "every resample gives the same value"),
        (lambda rows: undefined_below(rows, 30), 30, "undefined on 50 of 50 resamples"),
    ],
)
def test_no_interval_of_a_corpus_figure_is_made_up(figure: object, units: int, reason: str) -> None:
    interval = evidence_intervals([figure], NumberRows(graded(units)), n_resamples=50, rng=rng())[0]  # type: ignore[arg-type]
    assert interval.reason == reason


def test_a_few_undefined_resamples_are_left_out() -> None:
    interval = evidence_intervals([lambda rows: undefined_below(rows, 14)], NumberRows(graded(30)), rng=rng())[0]
    assert interval.known


def test_corpus_intervals_are_clipped_and_check_their_options() -> None:
    rows = NumberRows(graded(12))
    for subsample in (False, True):
        options = {"subsample": subsample, "rng": rng()}
        free = evidence_intervals([mean_of], rows, **options)[0]  # type: ignore[arg-type]
        ceiling = (mean_of(rows) + free.high) / 2
        clipped = evidence_intervals([mean_of], rows, bounds=[(0.0, ceiling)], **options)[0]  # type: ignore[arg-type]
        assert clipped.high == ceiling
    with pytest.raises(ParameterError, match="0 resamples"):
        evidence_intervals([mean_of], NumberRows(graded(9)), n_resamples=0, rng=rng())[0]


@pytest.mark.parametrize("seed", range(25))
def test_rounding_is_no_standard_error_where_nearly_all_ranks_are_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters, ranks = rng.integers(0, 20, 55), np.ones(55)
    few = rng.integers(1, 4)
    ranks[rng.choice(55, few, replace=False)] = rng.integers(2, 4, few)
    found = mean_intervals(ranks[:, None], clusters=clusters, bounds=[(1.0, np.inf)], rng=rng)[0]
    assert 1.0 <= found.low <= ranks.mean() <= found.high < 3.0


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


@pytest.mark.parametrize(("rare", "units"), [(1.0, 1500), (0.1, 3000), (0.02, 4000)])
def test_limits_of_many_units_are_those_of_very_many_resamples(rare: float, units: int) -> None:
    draw = rng(3)
    values = np.where(draw.random(units) < rare, draw.beta(1, 2, units), 0.0)
    interval = only(values, bounds=[(0.0, 1.0)], n_resamples=40)
    limits = []
    for end, share in ((0.0, 0.025), (1.0, 0.975)):
        weights, extra = draw.standard_exponential((8000, units)), draw.standard_gamma(0.5, 8000)
        means = (weights @ values + extra * end) / (weights.sum(axis=1) + extra)
        limits.append(np.quantile(means, share))
    error = stats.sem(values)
    assert (interval.low, interval.high) == pytest.approx(limits, abs=0.12 * error)


def test_limits_of_many_units_do_not_depend_on_the_number_of_resamples_or_the_seed() -> None:
    values = graded(2000)
    first = only(values, bounds=[(0.0, 1.0)], n_resamples=50)
    assert first == only(values, bounds=[(0.0, 1.0)], n_resamples=5000)
    assert first == mean_intervals(values, bounds=[(0.0, 1.0)], rng=rng(9))[0]


@pytest.mark.parametrize(("level", "enough"), [(0.95, 40), (0.9, 20), (0.99, 200)])
def test_too_few_resamples_give_no_interval(level: float, enough: int) -> None:
    for options in ({}, {"bounds": [(0.0, 1.0)]}):
        few = only(graded(30), n_resamples=enough - 1, confidence_level=level, **options)
        assert not few.known
        assert f"{enough} are needed" in few.reason
        assert only(graded(30), n_resamples=enough, confidence_level=level, **options).known
    few = evidence_intervals(
        [lambda rows: float(np.median(rows.table))], NumberRows(graded(30)), n_resamples=9, rng=rng()
    )[0]
    assert not few.known
