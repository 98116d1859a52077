"""Summaries over seeds, compared with scipy."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equipoise.errors import PairingError
from equipoise.stats.seeds import compare_seeds, summarise_seeds


@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=2, max_size=20, unique=True))
def test_summaries_have_mean_standard_deviation_and_student_interval(values: list[float]) -> None:
    summary = summarise_seeds(values)
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.deviation == pytest.approx(np.std(values, ddof=1))
    assert (summary.interval.low, summary.interval.high) == pytest.approx((low, high))
    assert summary.seeds == len(values)


def test_one_seed_has_no_standard_deviation() -> None:
    summary = summarise_seeds([0.4])
    assert isnan(summary.deviation)
    assert summary.interval.reason == "one seed"
    assert str(summary) == "0.4 (one seed)"


def test_equal_seeds_have_no_interval() -> None:
    summary = summarise_seeds([0.3, 0.3, 0.3])
    assert summary.deviation == 0.0
    assert summary.interval.reason == "all seeds have the same value"


def test_undefined_seeds_are_counted_and_excluded() -> None:
    summary = summarise_seeds([0.2, nan, 0.4])
    assert (summary.mean, summary.seeds, summary.undefined) == (pytest.approx(0.3), 2, 1)
    assert str(summarise_seeds([nan])) == "n/a (no defined seed)"
    assert summarise_seeds([]).interval.reason == "no defined seed"


def test_the_interval_is_clipped_to_the_bounds_of_the_metric() -> None:
    assert summarise_seeds([0.9, 1.0], bounds=(0.0, 1.0)).interval.high == 1.0


def test_systems_with_the_same_seeds_get_paired_tests() -> None:
    a, b = {1: 0.52, 2: 0.55, 3: 0.53, 4: 0.56}, {4: 0.53, 3: 0.52, 2: 0.50, 1: 0.51}
    comparison = compare_seeds(a, b)
    expected = stats.ttest_rel([a[seed] for seed in a], [b[seed] for seed in a])
    low, high = expected.confidence_interval()
    assert comparison.p == pytest.approx(expected.pvalue)
    assert (comparison.interval.low, comparison.interval.high) == pytest.approx((low, high))
    assert comparison.p_permutation == 2 / 2**4
    assert (comparison.seeds, comparison.difference) == (4, pytest.approx(0.025))


def test_one_common_seed_is_not_tested() -> None:
    comparison = compare_seeds({7: 0.5}, {7: 0.4})
    assert isnan(comparison.p)
    assert isnan(comparison.p_permutation)
    assert (comparison.reason, str(comparison)) == ("one seed", "0.1 (one seed)")


def test_equal_differences_are_not_tested() -> None:
    comparison = compare_seeds({1: 0.75, 2: 0.5}, {1: 0.5, 2: 0.25})
    assert isnan(comparison.p)
    assert comparison.reason == "all differences are equal"


def test_different_seeds_raise_pairing_error() -> None:
    with pytest.raises(PairingError, match="2, 3"):
        compare_seeds({1: 0.5, 2: 0.4}, {1: 0.5, 3: 0.4})


def test_intervals_over_seeds_are_clipped_to_the_range_of_differences() -> None:
    comparison = compare_seeds({1: 1.0, 2: 0.1}, {1: 0.0, 2: 0.9}, bounds=(0.0, 1.0))
    assert (comparison.interval.low, comparison.interval.high) == (-1.0, 1.0)
