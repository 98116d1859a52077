"""Redrawn choices: how far a nested figure strays, from the whole procedure on units drawn anew."""

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
from equipoise.tuning import nested_cv as redraw
from equipoise.tuning.nested_cv import nested_cv, nested_interval, select_best, selection_errors
from equipoise.types import Direction, Floats


def hits(trials: int, units: int, seed: int, share: float = 0.5) -> Floats:
    return (np.random.default_rng(seed).random((trials, units)) < share).astype(float)


def slow_error(values: Any, groups: Any, drawn: Any, assigned: list[Any], **options: Any) -> float:
    """One resample written out: the units of its clusters side by side, its folds, its choices."""
    members = [np.flatnonzero(groups == cluster) for cluster in drawn]
    columns = np.concatenate(members)
    table = values[:, columns]
    scores = []
    for fold_of in assigned:
        fold_of_unit = np.repeat(fold_of, [len(member) for member in members])
        dealt = [
            (np.flatnonzero(fold_of_unit != fold), np.flatnonzero(fold_of_unit == fold))
            for fold in range(int(fold_of.max()) + 1)
        ]
        scores.append(nested_cv(table, dealt, **options).value)
    deployed = select_best(table, **options)
    return float(np.mean(scores)) - float(np.nanmean(values[deployed]))


def draws_of(sizes: list[int], splits: int, blocks: list[int], seed: int) -> tuple[Any, list[Any]]:
    """The clusters that are drawn and the folds that they are put into, by the same randomness."""
    rng = np.random.default_rng(seed)
    assigned = redraw._assignments(sizes, splits, rng)
    drawn = [rng.integers(0, sum(sizes), size=(rows, sum(sizes))) for rows in blocks]
    return np.concatenate(drawn), assigned


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.booleans(), st.sampled_from(list(Direction)), st.integers(1, 3))
def test_a_resample_is_the_whole_procedure_on_resampled_units(
    seed: int, clustered: bool, better: Direction, splits: int
) -> None:
    rng = np.random.default_rng(seed)
    values = np.round(rng.random((5, 24)), 1)
    values[rng.random(values.shape) < 0.05] = np.nan
    groups = np.repeat(np.arange(12), 2) if clustered else np.arange(24)
    parts = kfold_splits(range(24), 3, groups=groups.tolist(), rng=rng)
    options: dict[str, Any] = {"costs": [3, 1, 2, 2, 1], "better": better}
    rng = np.random.default_rng(seed)
    errors = selection_errors(values, parts, splits=splits, clusters=groups, n_resamples=8, rng=rng, **options)
    sizes = [len(set(groups[test].tolist())) for _, test in parts]
    drawn, assigned = draws_of(sizes, splits, [8], seed)
    expected = [slow_error(values, groups, row, assigned, **options) for row in drawn]
    assert errors == pytest.approx(expected)


def test_every_split_of_a_resample_has_folds_of_the_same_sizes() -> None:
    for fold_of in redraw._assignments([3, 2], 6, np.random.default_rng(0)):
        assert np.bincount(fold_of).tolist() == [3, 2]


def test_many_units_are_drawn_in_blocks_that_give_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    values, parts = hits(4, 30, 1), kfold_splits(range(30), 3, rng=np.random.default_rng(1))
    monkeypatch.setattr(redraw, "BLOCK_CELLS", 30 * 7)
    errors = selection_errors(values, parts, n_resamples=20, rng=np.random.default_rng(2))
    drawn, assigned = draws_of([len(test) for _, test in parts], 1, [7, 7, 6], 2)
    assert errors == pytest.approx([slow_error(values, np.arange(30), row, assigned) for row in drawn])


def test_with_nothing_to_choose_the_interval_is_wilson_s() -> None:
    values, parts = hits(1, 200, 3, 0.8), kfold_splits(range(200), 5, rng=np.random.default_rng(0))
    nested = nested_cv(values, parts)
    interval = nested_interval(nested, selection_errors(values, parts, rng=np.random.default_rng(0)))
    plain = wilson_interval(values.sum(), 200, critical=t_critical(0.95, 199))
    assert interval.width == pytest.approx(plain.width, rel=0.06)
    assert interval.width >= plain.width


def test_much_to_choose_among_equals_widens_it() -> None:
    values, parts = hits(27, 100, 4, 0.75), kfold_splits(range(100), 5, rng=np.random.default_rng(0))
    nested = nested_cv(values, parts)
    interval = nested_interval(nested, selection_errors(values, parts, rng=np.random.default_rng(0)))
    assert interval.covers(nested.value)
    assert interval.width > 1.2 * wilson_interval(nested.values.sum(), 100).width
    assert interval.method == "wilson-bootstrap-errors"


def test_all_hits_still_leave_room_below() -> None:
    values, parts = np.ones((3, 20)), kfold_splits(range(20), 4, rng=np.random.default_rng(0))
    nested = nested_cv(values, parts)
    interval = nested_interval(nested, selection_errors(values, parts, rng=np.random.default_rng(0)))
    assert interval.high == 1.0
    assert interval.low == pytest.approx(wilson_interval(20, 20).low, abs=0.03)


def test_figures_that_are_no_shares_get_student_s_interval_within_their_bounds() -> None:
    rng = np.random.default_rng(5)
    values, parts = rng.normal(10, 3, (4, 60)), kfold_splits(range(60), 5, rng=rng)
    nested = nested_cv(values, parts)
    interval = nested_interval(nested, selection_errors(values, parts, rng=rng), bounds=(1.0, float("inf")))
    assert interval.method == "bootstrap-errors"
    assert interval.covers(nested.value)
    flat = nested_cv(np.full((2, 20), 7.0), kfold_splits(range(20), 4, rng=rng))
    errors = selection_errors(np.full((2, 20), 7.0), kfold_splits(range(20), 4, rng=rng), rng=rng)
    assert nested_interval(flat, errors, bounds=(1.0, 99.0)).reason == "all values are equal"


def test_no_interval_without_two_defined_units() -> None:
    nested = nested_cv([[1.0, np.nan, 1.0]], kfold_splits(range(3), 3, rng=np.random.default_rng(0)))
    assert nested_interval(nested, np.zeros(5)).known
    lone = replace(nested, values=np.array([1.0, np.nan]))
    assert nested_interval(lone, np.zeros(5)).reason == "one value"


def test_systems_on_the_same_units_pair_when_they_share_their_randomness() -> None:
    values, parts = hits(9, 80, 6), kfold_splits(range(80), 5, rng=np.random.default_rng(0))
    one, same, other = (selection_errors(values, parts, rng=np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert bootstrap_difference(0.0, one - same, 79)[0].width == 0.0
    assert bootstrap_difference(0.0, one - other, 79)[0].width > 0.0


def test_a_clear_difference_is_told_and_p_is_never_zero() -> None:
    good, poor = hits(9, 100, 8, 0.9), hits(9, 100, 9, 0.3)
    parts = kfold_splits(range(100), 5, rng=np.random.default_rng(0))
    one, other = (selection_errors(each, parts, n_resamples=400, rng=np.random.default_rng(1)) for each in (good, poor))
    seen = nested_cv(good, parts).value - nested_cv(poor, parts).value
    interval, p = bootstrap_difference(seen, one - other, 99)
    assert interval.low > 0.3
    assert p == pytest.approx(1 / 401)
