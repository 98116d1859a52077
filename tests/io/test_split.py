"""Folds: every unit once, groups whole, strata spread."""

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


def check_partition(parts, n):
    tested = np.concatenate([test for _, test in parts])
    assert sorted(tested.tolist()) == list(range(n))
    for train, test in parts:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(n))
        assert len(test) > 0


@given(st.integers(2, 60), st.integers(2, 10), seeds)
def test_plain_folds_test_every_unit_once_and_differ_by_one_at_most(n, k, seed):
    if k > n:
        with pytest.raises(ParameterError, match=rf"{k} folds.*{k} units.*{n}"):
            kfold_splits(range(n), k, rng=rng(seed))
        return
    parts = kfold_splits(range(n), k, rng=rng(seed))
    check_partition(parts, n)
    sizes = [len(test) for _, test in parts]
    assert max(sizes) - min(sizes) <= 1


@given(labels, st.integers(2, 6), seeds)
def test_strata_differ_by_one_at_most_in_every_fold(strata, k, seed):
    parts = kfold_splits(range(len(strata)), k, stratify=strata, rng=rng(seed))
    check_partition(parts, len(strata))
    assert max(len(test) for _, test in parts) - min(len(test) for _, test in parts) <= 1
    for label in set(strata):
        counts = [sum(strata[index] == label for index in test) for _, test in parts]
        assert max(counts) - min(counts) <= 1


@given(st.lists(st.integers(0, 8), min_size=2, max_size=40), st.data(), seeds)
def test_groups_never_straddle_and_no_fold_is_empty(groups, data, seed):
    distinct = len(set(groups))
    strata = data.draw(st.none() | st.lists(st.sampled_from("ab"), min_size=len(groups), max_size=len(groups)))
    for k in range(2, distinct + 1):
        parts = kfold_splits(range(len(groups)), k, groups=groups, stratify=strata, rng=rng(seed))
        check_partition(parts, len(groups))
        for train, test in parts:
            assert not {groups[index] for index in train} & {groups[index] for index in test}
    with pytest.raises(ParameterError):
        kfold_splits(range(len(groups)), max(2, distinct + 1), groups=groups, stratify=strata, rng=rng(seed))


@given(st.lists(st.integers(0, 8), min_size=20, max_size=60), seeds)
def test_grouped_folds_are_as_even_as_the_largest_group_allows(groups, seed):
    k = min(3, len(set(groups)))
    if k < 2:
        return
    sizes = [len(test) for _, test in kfold_splits(range(len(groups)), k, groups=groups, rng=rng(seed))]
    assert max(sizes) - min(sizes) <= max(Counter(groups).values())


def test_strata_with_groups_are_spread_about_as_well_as_scikit_learn_does():
    def imbalance(parts, strata):
        rates = [np.mean([strata[index] for index in test]) for _, test in parts]
        return float(np.std(rates))

    ours, theirs = [], []
    for seed in range(10):
        source = rng(seed)
        groups = source.integers(0, 40, 400)
        strata = (source.random(400) < 0.05 + 0.5 * (groups % 4 == 0)).astype(int)
        ours.append(imbalance(kfold_splits(range(400), 5, stratify=strata, groups=groups, rng=source), strata))
        peer = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        theirs.append(imbalance(list(peer.split(np.zeros(400), strata, groups)), strata))
    assert np.mean(ours) < 1.5 * np.mean(theirs)


def test_a_seed_decides_the_folds_and_another_changes_them():
    def tests(seed):
        return [test.tolist() for _, test in kfold_splits(range(30), 3, rng=rng(seed))]

    assert tests(1) == tests(1)
    assert tests(1) != tests(2)


def test_every_unit_meets_every_fold_equally_often():
    counts = np.zeros((3, 7))
    for seed in range(600):
        for fold, (_, test) in enumerate(kfold_splits("abcdefg", 3, stratify="xxyyyzz", rng=rng(seed))):
            counts[fold, test] += 1
    np.testing.assert_allclose(counts / 600, 1 / 3, atol=0.08)


def test_bad_requests_are_refused():
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
    with pytest.raises(ParameterError, match="groups, and there are 0"):
        kfold_splits([], 2, groups=[], rng=rng())
