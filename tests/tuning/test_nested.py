"""What is chosen without a fold scores it, and nothing of the fold has a say."""

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
from equipoise.tuning.nested_cv import nested_cv, repeated_choice, select_best
from equipoise.types import Direction

NAN = float("nan")
Made = tuple[Any, list[Fold]]


@st.composite
def tables(draw: st.DrawFn, undefined: bool = False) -> Made:
    trials, units = draw(st.integers(1, 6)), draw(st.integers(4, 14))
    cell = st.sampled_from([0.0, 0.5, 1.0, NAN] if undefined else [0.0, 0.5, 1.0])
    rows = draw(st.lists(st.lists(cell, min_size=units, max_size=units), min_size=trials, max_size=trials))
    seed = draw(st.integers(0, 99))
    return np.array(rows), kfold_splits(range(units), draw(st.integers(2, 4)), rng=np.random.default_rng(seed))


def slow_choice(values: Any, units: Any, costs: Any) -> int | None:
    """The best trial by its mean over these units, one trial after the other."""
    best, key = None, (-1.0, 0.0)
    for trial in range(len(values)):
        known = [values[trial][unit] for unit in units if values[trial][unit] == values[trial][unit]]
        if known:
            mean = round(sum(known) / len(known), 9)
            if best is None or (mean, -costs[trial]) > key:
                best, key = trial, (mean, -costs[trial])
    return best


@settings(max_examples=150)
@given(tables(undefined=True), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_every_fold_is_scored_by_what_the_others_chose(made: Made, costs: list[int]) -> None:
    values, parts = made
    expected = [slow_choice(values, train, costs) for train, _ in parts]
    if None in expected:
        with pytest.raises(UndefinedError):
            nested_cv(values, parts, costs=costs[: len(values)])
        return
    nested = nested_cv(values, parts, costs=costs[: len(values)])
    assert nested.chosen.tolist() == expected
    for trial, inner, outer, (train, test) in zip(expected, nested.inner, nested.outer, parts, strict=True):
        assert np.array_equal(nested.values[test], values[trial][test], equal_nan=True)
        assert inner == pytest.approx(np.nanmean(values[trial][train]))
        if not np.isnan(values[trial][test]).all():
            assert outer == pytest.approx(np.nanmean(values[trial][test]))
        else:
            assert np.isnan(outer)
    assert nested.best == slow_choice(values, range(values.shape[1]), costs)
    assert nested.best == select_best(values, costs=costs[: len(values)])
    assert nested.optimistic == pytest.approx(np.nanmean(values[nested.best]))


@given(tables(), st.data())
def test_what_a_unit_scores_never_depends_on_its_own_column(made: Made, data: st.DataObject) -> None:
    values, parts = made
    unit = data.draw(st.integers(0, values.shape[1] - 1))
    column = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(values), max_size=len(values)))
    fold = next(place for place, (_, test) in enumerate(parts) if unit in test)
    changed = values.copy()
    changed[:, unit] = column
    before, after = nested_cv(values, parts), nested_cv(changed, parts)
    assert before.chosen[fold] == after.chosen[fold]
    assert after.values[unit] == column[before.chosen[fold]]


@given(tables())
def test_the_best_trial_on_all_units_is_at_least_as_good_as_any(made: Made) -> None:
    values, parts = made
    nested = nested_cv(values, parts)
    assert nested.optimistic == pytest.approx(values.mean(axis=1).max())
    assert nested.gap == pytest.approx(nested.optimistic - nested.values.mean())


class Lookup(BaseEstimator):  # type: ignore[misc]
    """A model that fits nothing: its score on units is the mean of a row of a table."""

    def __init__(self, row: int = 0, table: Any = None) -> None:
        self.row, self.table = row, table

    def fit(self, units: Any, y: Any = None) -> Lookup:
        return self

    def score(self, units: Any, y: Any = None) -> float:
        return float(self.table[self.row][units[:, 0]].mean())


def test_it_is_scikit_learn_s_nested_cross_validation() -> None:
    """Its inner folds average the training units' values, so they choose as the mean does.

    48 units, outer folds of 12 and inner folds of 9: equal sizes, so that means of means are means.
    """
    rng = np.random.default_rng(4)
    for _ in range(10):
        table = rng.random((6, 48))
        units = np.arange(48)[:, None]
        parts = kfold_splits(range(48), 4, rng=rng)
        search = GridSearchCV(Lookup(table=table), {"row": list(range(6))}, cv=4)
        theirs = cross_val_score(search, units, cv=[(train, test) for train, test in parts])
        assert nested_cv(table, parts).outer == pytest.approx(theirs)


def test_equal_means_go_to_the_cheaper_and_then_to_the_earlier() -> None:
    values = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert select_best(values) == 0
    assert select_best(values, costs=[9, 4, 4]) == 1
    assert select_best(values, costs=[NAN, NAN, 4]) == 2


def test_the_order_of_a_sum_decides_no_choice() -> None:
    values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    assert select_best(values, costs=[2, 1]) == 1
    assert select_best(values[::-1], costs=[2, 1]) == 1


def test_lower_is_better_is_understood() -> None:
    assert select_best([[3.0, 5.0], [2.0, 4.0]], better=Direction.DOWN) == 1


def test_only_allowed_trials_are_chosen() -> None:
    values = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    parts = kfold_splits(range(4), 2, rng=np.random.default_rng(0))
    nested = nested_cv(values, parts, allowed=[False, True])
    assert nested.chosen.tolist() == [1, 1]
    assert nested.optimistic == nested.value == 0.5
    with pytest.raises(ParameterError):
        nested_cv(values, parts, allowed=[False, False])


def test_an_allowed_trial_that_is_undefined_does_not_let_a_forbidden_one_in() -> None:
    values = np.array([[1.0, 1.0], [NAN, NAN]])
    with pytest.raises(UndefinedError):
        select_best(values, allowed=[False, True])


def test_folds_that_are_no_partition_are_refused() -> None:
    values = np.ones((2, 4))
    some, rest = np.array([0, 1]), np.array([2, 3])
    with pytest.raises(ShapeError, match=r"fold 1.*4 units"):
        nested_cv(values, [(some, np.array([2])), (rest, some)])
    with pytest.raises(ShapeError, match=r"2.*0 folds"):
        nested_cv(values, [(rest, some)])
    with pytest.raises(ShapeError, match="2 folds"):
        nested_cv(values, [(rest, some), (rest, some), (some, rest)])


def test_tables_that_fit_nothing_are_refused() -> None:
    with pytest.raises(ShapeError):
        select_best([1.0, 2.0])
    with pytest.raises(NotFiniteError):
        select_best([[1.0, float("inf")]])
    with pytest.raises(ShapeError, match="costs has shape"):
        select_best([[1.0], [0.0]], costs=[1.0])
    with pytest.raises(ShapeError, match="allowed has shape"):
        select_best([[1.0], [0.0]], allowed=[1, 0])


def splits_of(units: int, repeats: int, seed: int) -> list[list[Fold]]:
    rng = np.random.default_rng(seed)
    return [kfold_splits(range(units), 5, rng=rng) for _ in range(repeats)]


def test_repeated_splits_are_averaged_unit_by_unit() -> None:
    values = (np.random.default_rng(1).random((7, 40)) < 0.6).astype(float)
    splits = splits_of(40, 6, 2)
    repeated = repeated_choice(values, splits, costs=range(7))
    alone = [nested_cv(values, parts, costs=range(7)) for parts in splits]
    assert repeated.values == pytest.approx(np.mean([each.values for each in alone], axis=0))
    assert repeated.by_split == pytest.approx([each.value for each in alone])
    assert repeated.split_sd == pytest.approx(np.std([each.value for each in alone], ddof=1))
    assert repeated.chosen.tolist() == [place for each in alone for place in each.chosen.tolist()]
    assert repeated.best == alone[0].best


def test_a_unit_is_undefined_only_where_every_split_leaves_it_so() -> None:
    values = np.array([[1.0, 1.0, 1.0, np.nan, 0.0, 1.0], [0.0, 0.0, 1.0, np.nan, 1.0, 0.0]])
    repeated = repeated_choice(values, [kfold_splits(range(6), 3, rng=np.random.default_rng(at)) for at in range(4)])
    assert np.flatnonzero(np.isnan(repeated.values)).tolist() == [3]


def test_the_score_of_many_splits_hardly_depends_on_the_seed() -> None:
    """Over 12 seeds, the score of 60 splits varies by less than a quarter of that of one split."""
    values = (np.random.default_rng(3).random((20, 60)) < 0.7).astype(float)
    single, repeated = (
        np.std([repeated_choice(values, splits_of(60, repeats, seed)).value for seed in range(12)])
        for repeats in (1, 60)
    )
    assert single > 0.01
    assert repeated < single / 4


def test_the_usual_trial_of_a_unit_is_the_one_that_scored_it_most_often() -> None:
    values = (np.random.default_rng(5).random((4, 30)) < 0.5).astype(float)
    repeated = repeated_choice(values, splits_of(30, 9, 6))
    for unit, trial in enumerate(repeated.usual_trial.tolist()):
        counts = np.bincount(repeated.trial_of[:, unit], minlength=4)
        assert counts[trial] == counts.max()
