"""Bootstrap errors of nested scores: selection and scoring are repeated on resampled units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.io.splits import kfold_splits
from equipoise.stats.intervals import t_critical, wilson_interval
from equipoise.stats.tuning_uncertainty import bootstrap_difference
from equipoise.tuning import nested_cv as nested_cv_module
from equipoise.tuning.nested_cv import nested_cv, nested_interval, select_best, selection_errors
from equipoise.types import Floats


def random_hits(trials: int, units: int, seed: int, share: float = 0.5) -> Floats:
    return (np.random.default_rng(seed).random((trials, units)) < share).astype(float)


def error_by_loop(values: Any, groups: Any, resampled: Any, assignments: list[Any], **options: Any) -> float:
    """The error of one resample by a loop over its splits and folds."""
    members = [np.flatnonzero(groups == cluster) for cluster in resampled]
    columns = np.concatenate(members)
    table = values[:, columns]
    scores = []
    for fold_of in assignments:
        fold_of_unit = np.repeat(fold_of, [len(member) for member in members])
        splits = [
            (np.flatnonzero(fold_of_unit != fold), np.flatnonzero(fold_of_unit == fold))
            for fold in range(int(fold_of.max()) + 1)
        ]
        scores.append(nested_cv(table, splits, **options).value)
    best = select_best(table, **options)
    return float(np.mean(scores)) - float(np.nanmean(values[best]))


def resamples_of(sizes: list[int], splits: int, blocks: list[int], seed: int) -> tuple[Any, list[Any]]:
    """The resampled clusters and their fold assignments, from the same random numbers."""
    rng = np.random.default_rng(seed)
    assignments = nested_cv_module._assignments(sizes, splits, rng)
    resampled = [rng.integers(0, sum(sizes), size=(rows, sum(sizes))) for rows in blocks]
    return np.concatenate(resampled), assignments


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.booleans(), st.integers(1, 3))
def test_errors_agree_with_a_loop_over_resamples(seed: int, is_clustered: bool, splits: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.round(rng.random((5, 24)), 1)
    values[rng.random(values.shape) < 0.05] = np.nan
    groups = np.repeat(np.arange(12), 2) if is_clustered else np.arange(24)
    folds = kfold_splits(range(24), 3, groups=groups.tolist(), rng=rng)
    options: dict[str, Any] = {"costs": [3, 1, 2, 2, 1]}
    rng = np.random.default_rng(seed)
    errors = selection_errors(values, folds, splits=splits, clusters=groups, n_resamples=8, rng=rng, **options)
    sizes = [len(set(groups[test].tolist())) for _, test in folds]
    resampled, assignments = resamples_of(sizes, splits, [8], seed)
    expected = [error_by_loop(values, groups, row, assignments, **options) for row in resampled]
    assert errors == pytest.approx(expected)


def test_every_split_of_a_resample_has_folds_of_the_same_sizes() -> None:
    for fold_of in nested_cv_module._assignments([3, 2], 6, np.random.default_rng(0)):
        assert np.bincount(fold_of).tolist() == [3, 2]


def test_resamples_in_blocks_give_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    values, folds = random_hits(4, 30, 1), kfold_splits(range(30), 3, rng=np.random.default_rng(1))
    monkeypatch.setattr(nested_cv_module, "BLOCK_CELLS", 30 * 7)
    errors = selection_errors(values, folds, n_resamples=20, rng=np.random.default_rng(2))
    resampled, assignments = resamples_of([len(test) for _, test in folds], 1, [7, 7, 6], 2)
    assert errors == pytest.approx([error_by_loop(values, np.arange(30), row, assignments) for row in resampled])


def test_one_trial_gives_the_wilson_interval() -> None:
    values, folds = random_hits(1, 200, 3, 0.8), kfold_splits(range(200), 5, rng=np.random.default_rng(0))
    nested = nested_cv(values, folds)
    interval = nested_interval(nested, selection_errors(values, folds, rng=np.random.default_rng(0)))
    expected = wilson_interval(values.sum(), 200, critical=t_critical(0.95, 199))
    assert interval.width == pytest.approx(expected.width, rel=0.06)
    assert interval.width >= expected.width


def test_many_equal_trials_widen_the_interval() -> None:
    values, folds = random_hits(27, 100, 4, 0.75), kfold_splits(range(100), 5, rng=np.random.default_rng(0))
    nested = nested_cv(values, folds)
    interval = nested_interval(nested, selection_errors(values, folds, rng=np.random.default_rng(0)))
    assert interval.covers(nested.value)
    assert interval.width > 1.2 * wilson_interval(nested.values.sum(), 100).width
    assert interval.method == "wilson-bootstrap-errors"


def test_all_hits_give_an_interval_below_one() -> None:
    values, folds = np.ones((3, 20)), kfold_splits(range(20), 4, rng=np.random.default_rng(0))
    nested = nested_cv(values, folds)
    interval = nested_interval(nested, selection_errors(values, folds, rng=np.random.default_rng(0)))
    assert interval.high == 1.0
    assert interval.low == pytest.approx(wilson_interval(20, 20).low, abs=0.03)


def test_unbounded_scores_get_student_intervals_within_their_bounds() -> None:
    rng = np.random.default_rng(5)
    values, folds = rng.normal(10, 3, (4, 60)), kfold_splits(range(60), 5, rng=rng)
    nested = nested_cv(values, folds)
    interval = nested_interval(nested, selection_errors(values, folds, rng=rng), bounds=(1.0, float("inf")))
    assert interval.method == "bootstrap-errors"
    assert interval.covers(nested.value)
    constant = nested_cv(np.full((2, 20), 7.0), kfold_splits(range(20), 4, rng=rng))
    errors = selection_errors(np.full((2, 20), 7.0), kfold_splits(range(20), 4, rng=rng), rng=rng)
    assert nested_interval(constant, errors, bounds=(1.0, 99.0)).reason == "all values are equal"


def test_no_interval_without_two_defined_units() -> None:
    nested = nested_cv([[1.0, np.nan, 1.0]], kfold_splits(range(3), 3, rng=np.random.default_rng(0)))
    assert nested_interval(nested, np.zeros(5)).known
    one_value = replace(nested, values=np.array([1.0, np.nan]))
    assert nested_interval(one_value, np.zeros(5)).reason == "one value"


def test_errors_with_the_same_random_numbers_are_paired() -> None:
    values, folds = random_hits(9, 80, 6), kfold_splits(range(80), 5, rng=np.random.default_rng(0))
    first, second, other = (selection_errors(values, folds, rng=np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert bootstrap_difference(0.0, first - second, 79)[0].width == 0.0
    assert bootstrap_difference(0.0, first - other, 79)[0].width > 0.0


def test_clear_differences_are_significant_and_p_is_never_zero() -> None:
    good_hits, poor_hits = random_hits(9, 100, 8, 0.9), random_hits(9, 100, 9, 0.3)
    folds = kfold_splits(range(100), 5, rng=np.random.default_rng(0))
    good_errors, poor_errors = (
        selection_errors(system_hits, folds, n_resamples=400, rng=np.random.default_rng(1))
        for system_hits in (good_hits, poor_hits)
    )
    difference = nested_cv(good_hits, folds).value - nested_cv(poor_hits, folds).value
    interval, p = bootstrap_difference(difference, good_errors - poor_errors, 99)
    assert interval.low > 0.3
    assert 0 < p < 1 / 401
