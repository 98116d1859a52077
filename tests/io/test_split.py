"""Folds: partitions, groups and stratification."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

from equipoise.errors import DuplicateError, ParameterError, ShapeError
from equipoise.io.splits import kfold_splits

seeds = st.integers(0, 2**32 - 1)
labels = st.lists(st.sampled_from("abc"), min_size=6, max_size=40)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def assert_partition(splits, n):
    tested = np.concatenate([test for _, test in splits])
    assert sorted(tested.tolist()) == list(range(n))
    for train, test in splits:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(n))
        assert len(test) > 0


@given(st.integers(2, 60), st.integers(2, 10), seeds)
def test_folds_test_every_unit_once_and_differ_by_at_most_one(n, k, seed):
    if k > n:
        with pytest.raises(ParameterError, match=rf"{k} folds.*{k} units.*{n}"):
            kfold_splits(range(n), k, rng=rng(seed))
        return
    splits = kfold_splits(range(n), k, rng=rng(seed))
    assert_partition(splits, n)
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1


@given(labels, st.integers(2, 6), seeds)
def test_stratum_counts_differ_by_at_most_one_between_folds(strata, k, seed):
    splits = kfold_splits(range(len(strata)), k, stratify=strata, rng=rng(seed))
    assert_partition(splits, len(strata))
    assert max(len(test) for _, test in splits) - min(len(test) for _, test in splits) <= 1
    for label in set(strata):
        counts = [sum(strata[index] == label for index in test) for _, test in splits]
        assert max(counts) - min(counts) <= 1


@given(st.lists(st.integers(0, 8), min_size=2, max_size=40), st.data(), seeds)
def test_groups_are_not_split_and_no_fold_is_empty(groups, data, seed):
    distinct = len(set(groups))
    strata = data.draw(st.none() | st.lists(st.sampled_from("ab"), min_size=len(groups), max_size=len(groups)))
    for k in range(2, distinct + 1):
        splits = kfold_splits(range(len(groups)), k, groups=groups, stratify=strata, rng=rng(seed))
        assert_partition(splits, len(groups))
        for train, test in splits:
            assert not {groups[index] for index in train} & {groups[index] for index in test}
    with pytest.raises(ParameterError):
        kfold_splits(range(len(groups)), max(2, distinct + 1), groups=groups, stratify=strata, rng=rng(seed))


@given(st.lists(st.integers(0, 8), min_size=20, max_size=60), seeds)
def test_grouped_fold_sizes_differ_by_at_most_the_largest_group(groups, seed):
    k = min(3, len(set(groups)))
    if k < 2:
        return
    sizes = [len(test) for _, test in kfold_splits(range(len(groups)), k, groups=groups, rng=rng(seed))]
    assert max(sizes) - min(sizes) <= max(Counter(groups).values())


def test_stratified_groups_are_about_as_balanced_as_in_scikit_learn():
    def imbalance(splits, strata):
        rates = [np.mean([strata[index] for index in test]) for _, test in splits]
        return float(np.std(rates))

    imbalances, expected_imbalances = [], []
    for seed in range(10):
        generator = rng(seed)
        groups = generator.integers(0, 40, 400)
        strata = (generator.random(400) < 0.05 + 0.5 * (groups % 4 == 0)).astype(int)
        imbalances.append(imbalance(kfold_splits(range(400), 5, stratify=strata, groups=groups, rng=generator), strata))
        splitter = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        expected_imbalances.append(imbalance(list(splitter.split(np.zeros(400), strata, groups)), strata))
    assert np.mean(imbalances) < 1.5 * np.mean(expected_imbalances)


def test_folds_depend_on_the_seed():
    def held_out_units(seed):
        return [test.tolist() for _, test in kfold_splits(range(30), 3, rng=rng(seed))]

    assert held_out_units(1) == held_out_units(1)
    assert held_out_units(1) != held_out_units(2)


def test_every_unit_is_in_every_fold_equally_often():
    counts = np.zeros((3, 7))
    for seed in range(600):
        for fold, (_, test) in enumerate(kfold_splits("abcdefg", 3, stratify="xxyyyzz", rng=rng(seed))):
            counts[fold, test] += 1
    np.testing.assert_allclose(counts / 600, 1 / 3, atol=0.08)


def test_invalid_arguments_raise_errors():
    with pytest.raises(ParameterError, match="1 folds"):
        kfold_splits("abc", 1, rng=rng())
    with pytest.raises(DuplicateError):
        kfold_splits("aba", 2, rng=rng())
    with pytest.raises(ShapeError, match=r"stratify.*2 values.*3 units"):
        kfold_splits("abc", 2, stratify="xy", rng=rng())
    with pytest.raises(ShapeError, match=r"groups.*4 values.*3 units"):
        kfold_splits("abc", 2, groups="wxyz", rng=rng())
    with pytest.raises(ParameterError, match=r"2 units.*0"):
        kfold_splits([], 2, rng=rng())
    with pytest.raises(ParameterError) as error:
        kfold_splits([], 2, groups=[], rng=rng())
    assert error.value.code == "E310"
