"""Summaries over seeds against the textbook formulas."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equipoise.errors import PairingError, ParameterError
from equipoise.stats.seeds import compare_seeds, summarise_seeds


@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=2, max_size=20, unique=True))
def test_several_seeds_give_mean_sample_deviation_and_students_interval(values: list[float]) -> None:
    summary = summarise_seeds(values)
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.deviation == pytest.approx(np.std(values, ddof=1))
    assert (summary.interval.low, summary.interval.high) == pytest.approx((low, high))
    assert summary.seeds == len(values)


def test_one_seed_says_so_and_gives_no_spread() -> None:
    summary = summarise_seeds([0.4])
    assert isnan(summary.deviation)
    assert summary.interval.reason == "one seed"
    assert str(summary) == "0.4 (one seed)"


def test_seeds_that_agree_exactly_claim_no_certainty() -> None:
    summary = summarise_seeds([0.3, 0.3, 0.3])
    assert summary.deviation == 0.0
    assert summary.interval.reason == "all seeds have the same value"


def test_undefined_seeds_are_counted_and_left_out() -> None:
    summary = summarise_seeds([0.2, nan, 0.4])
    assert (summary.mean, summary.seeds, summary.undefined) == (pytest.approx(0.3), 2, 1)
    assert str(summarise_seeds([nan])) == "n/a (no defined seed)"
    assert summarise_seeds([]).interval.reason == "no defined seed"


def test_the_interval_is_clipped_to_the_bounds_of_the_metric() -> None:
    assert summarise_seeds([0.9, 1.0], bounds=(0.0, 1.0)).interval.high == 1.0


def test_two_systems_with_the_same_seeds_get_the_paired_tests() -> None:
    a, b = {1: 0.52, 2: 0.55, 3: 0.53, 4: 0.56}, {4: 0.53, 3: 0.52, 2: 0.50, 1: 0.51}
    told = compare_seeds(a, b)
    oracle = stats.ttest_rel([a[seed] for seed in a], [b[seed] for seed in a])
    low, high = oracle.confidence_interval()
    assert told.p == pytest.approx(oracle.pvalue)
    assert (told.interval.low, told.interval.high) == pytest.approx((low, high))
    assert told.p_permutation == 2 / 2**4
    assert (told.seeds, told.difference) == (4, pytest.approx(0.025))


def test_one_shared_seed_says_so_and_is_not_tested() -> None:
    told = compare_seeds({7: 0.5}, {7: 0.4})
    assert isnan(told.p)
    assert isnan(told.p_permutation)
    assert (told.reason, str(told)) == ("one seed", "0.1 (one seed)")


def test_seeds_with_equal_differences_have_no_spread_to_be_judged_by() -> None:
    told = compare_seeds({1: 0.75, 2: 0.5}, {1: 0.5, 2: 0.25})
    assert isnan(told.p)
    assert told.reason == "all differences are equal"


def test_systems_run_with_other_seeds_are_refused() -> None:
    with pytest.raises(PairingError, match="same seeds: 2, 3"):
        compare_seeds({1: 0.5, 2: 0.4}, {1: 0.5, 3: 0.4})
    with pytest.raises(ParameterError, match="-1"):
        compare_seeds({1: 0.5}, {1: 0.4}, seed=-1)


def test_the_interval_over_seeds_stays_within_reach_of_the_metric() -> None:
    told = compare_seeds({1: 1.0, 2: 0.1}, {1: 0.0, 2: 0.9}, bounds=(0.0, 1.0))
    assert (told.interval.low, told.interval.high) == (-1.0, 1.0)
