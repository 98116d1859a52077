"""Nested cross-validation: every fold is scored by the trial selected on the other folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.io.splits import Fold, kfold_splits
from equipoise.tuning.nested_cv import nested_cv, repeated_nested_cv, select_best

NAN = float("nan")
Case = tuple[Any, list[Fold]]


@st.composite
def cases(draw: st.DrawFn, undefined: bool = False) -> Case:
    trials, units = draw(st.integers(1, 6)), draw(st.integers(4, 14))
    cell = st.sampled_from([0.0, 0.5, 1.0, NAN] if undefined else [0.0, 0.5, 1.0])
    rows = draw(st.lists(st.lists(cell, min_size=units, max_size=units), min_size=trials, max_size=trials))
    seed = draw(st.integers(0, 99))
    return np.array(rows), kfold_splits(range(units), draw(st.integers(2, 4)), rng=np.random.default_rng(seed))


def best_trial_by_loop(values: Any, units: Any, costs: Any) -> int | None:
    """The best trial by its mean over the given units, by a loop over the trials."""
    best, key = None, (-1.0, 0.0)
    for trial in range(len(values)):
        defined = [values[trial][unit] for unit in units if values[trial][unit] == values[trial][unit]]
        if defined:
            mean = round(sum(defined) / len(defined), 9)
            if best is None or (mean, -costs[trial]) > key:
                best, key = trial, (mean, -costs[trial])
    return best


@settings(max_examples=150)
@given(cases(undefined=True), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_every_fold_is_scored_by_the_trial_selected_on_the_others(case: Case, costs: list[int]) -> None:
    values, splits = case
    expected = [best_trial_by_loop(values, train, costs) for train, _ in splits]
    if None in expected:
        with pytest.raises(UndefinedError):
            nested_cv(values, splits, costs=costs[: len(values)])
        return
    nested = nested_cv(values, splits, costs=costs[: len(values)])
    assert nested.chosen.tolist() == expected
    for trial, inner, outer, (train, test) in zip(expected, nested.inner, nested.outer, splits, strict=True):
        assert np.array_equal(nested.values[test], values[trial][test], equal_nan=True)
        assert inner == pytest.approx(np.nanmean(values[trial][train]))
        if not np.isnan(values[trial][test]).all():
            assert outer == pytest.approx(np.nanmean(values[trial][test]))
        else:
            assert np.isnan(outer)
    assert nested.best == best_trial_by_loop(values, range(values.shape[1]), costs)
    assert nested.best == select_best(values, costs=costs[: len(values)])
    assert nested.optimistic == pytest.approx(np.nanmean(values[nested.best]))


@given(cases(), st.data())
def test_scores_of_a_unit_select_no_trial_for_its_fold(case: Case, data: st.DataObject) -> None:
    values, splits = case
    unit = data.draw(st.integers(0, values.shape[1] - 1))
    column = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(values), max_size=len(values)))
    fold = next(index for index, (_, test) in enumerate(splits) if unit in test)
    changed = values.copy()
    changed[:, unit] = column
    before, after = nested_cv(values, splits), nested_cv(changed, splits)
    assert before.chosen[fold] == after.chosen[fold]
    assert after.values[unit] == column[before.chosen[fold]]


@given(cases())
def test_the_optimistic_score_is_the_largest_mean(case: Case) -> None:
    values, splits = case
    nested = nested_cv(values, splits)
    assert nested.optimistic == pytest.approx(values.mean(axis=1).max())


class TableLookup(BaseEstimator):  # type: ignore[misc]
    """A model without parameters: its score is the mean of a row of a table over the units."""

    def __init__(self, row: int = 0, table: Any = None) -> None:
        self.row, self.table = row, table

    def fit(self, units: Any, y: Any = None) -> TableLookup:
        return self

    def score(self, units: Any, y: Any = None) -> float:
        return float(self.table[self.row][units[:, 0]].mean())


def test_nested_cv_agrees_with_scikit_learn() -> None:
    """The inner folds average the values of the training units, so they select as the mean does.

    48 units, outer folds of 12 and inner folds of 9: equal sizes, so that means of means are means.
    """
    rng = np.random.default_rng(4)
    for _ in range(10):
        table = rng.random((6, 48))
        units = np.arange(48)[:, None]
        splits = kfold_splits(range(48), 4, rng=rng)
        search = GridSearchCV(TableLookup(table=table), {"row": list(range(6))}, cv=4)
        expected = cross_val_score(search, units, cv=[(train, test) for train, test in splits])
        assert nested_cv(table, splits).outer == pytest.approx(expected)


def test_ties_are_broken_by_cost_and_then_by_order() -> None:
    values = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert select_best(values) == 0
    assert select_best(values, costs=[9, 4, 4]) == 1
    assert select_best(values, costs=[NAN, NAN, 4]) == 2


def test_rounding_errors_of_a_mean_do_not_break_ties() -> None:
    values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    assert select_best(values, costs=[2, 1]) == 1
    assert select_best(values[::-1], costs=[2, 1]) == 1


def test_only_allowed_trials_are_chosen() -> None:
    values = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    splits = kfold_splits(range(4), 2, rng=np.random.default_rng(0))
    nested = nested_cv(values, splits, allowed=[False, True])
    assert nested.chosen.tolist() == [1, 1]
    assert nested.optimistic == nested.value == 0.5
    with pytest.raises(ParameterError):
        nested_cv(values, splits, allowed=[False, False])


def test_undefined_allowed_trials_raise_undefined_error() -> None:
    values = np.array([[1.0, 1.0], [NAN, NAN]])
    with pytest.raises(UndefinedError):
        select_best(values, allowed=[False, True])


def test_folds_that_are_not_a_partition_raise_shape_error() -> None:
    values = np.ones((2, 4))
    first_half, second_half = np.array([0, 1]), np.array([2, 3])
    with pytest.raises(ShapeError, match=r"fold 1.*4 units"):
        nested_cv(values, [(first_half, np.array([2])), (second_half, first_half)])
    with pytest.raises(ShapeError, match=r"2.*0 folds"):
        nested_cv(values, [(second_half, first_half)])
    with pytest.raises(ShapeError, match="2 folds"):
        nested_cv(values, [(second_half, first_half), (second_half, first_half), (first_half, second_half)])


def test_invalid_tables_raise_errors() -> None:
    with pytest.raises(ShapeError):
        select_best([1.0, 2.0])
    with pytest.raises(NotFiniteError):
        select_best([[1.0, float("inf")]])
    with pytest.raises(ShapeError) as error:
        select_best([[1.0], [0.0]], costs=[1.0])
    assert error.value.code == "E206"
    with pytest.raises(ShapeError) as error:
        select_best([[1.0], [0.0]], allowed=[1, 0])
    assert error.value.code == "E206"


def repeated_splits(units: int, repeats: int, seed: int) -> list[list[Fold]]:
    rng = np.random.default_rng(seed)
    return [kfold_splits(range(units), 5, rng=rng) for _ in range(repeats)]


def test_repeated_splits_are_averaged_per_unit() -> None:
    values = (np.random.default_rng(1).random((7, 40)) < 0.6).astype(float)
    splits = repeated_splits(40, 6, 2)
    repeated = repeated_nested_cv(values, splits, costs=range(7))
    single_results = [nested_cv(values, folds, costs=range(7)) for folds in splits]
    assert repeated.values == pytest.approx(np.mean([result.values for result in single_results], axis=0))
    assert repeated.by_split == pytest.approx([result.value for result in single_results])
    assert repeated.split_sd == pytest.approx(np.std([result.value for result in single_results], ddof=1))
    assert repeated.chosen.tolist() == [trial for result in single_results for trial in result.chosen.tolist()]
    assert repeated.best == single_results[0].best


def test_units_are_undefined_only_if_undefined_in_every_split() -> None:
    values = np.array([[1.0, 1.0, 1.0, np.nan, 0.0, 1.0], [0.0, 0.0, 1.0, np.nan, 1.0, 0.0]])
    repeated = repeated_nested_cv(
        values, [kfold_splits(range(6), 3, rng=np.random.default_rng(seed)) for seed in range(4)]
    )
    assert np.flatnonzero(np.isnan(repeated.values)).tolist() == [3]


def test_the_score_of_many_splits_hardly_depends_on_the_seed() -> None:
    """Over 12 seeds, the score of 60 splits varies by less than a quarter of that of one split."""
    values = (np.random.default_rng(3).random((20, 60)) < 0.7).astype(float)
    single_sd, repeated_sd = (
        np.std([repeated_nested_cv(values, repeated_splits(60, repeats, seed)).value for seed in range(12)])
        for repeats in (1, 60)
    )
    assert single_sd > 0.01
    assert repeated_sd < single_sd / 4


def test_the_usual_trial_of_a_unit_is_the_most_frequent_one() -> None:
    values = (np.random.default_rng(5).random((4, 30)) < 0.5).astype(float)
    repeated = repeated_nested_cv(values, repeated_splits(30, 9, 6))
    for unit, trial in enumerate(repeated.usual_trial.tolist()):
        counts = np.bincount(repeated.trial_of[:, unit], minlength=4)
        assert counts[trial] == counts.max()
