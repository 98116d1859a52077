"""Folds: every unit is tested once, groups are not split, strata are distributed evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.errors import DuplicateError, ParameterError, ShapeError
from equipoise.types import Ints

Fold = tuple[Ints, Ints]


def kfold_splits(
    unit_ids: Sequence[Any],
    k: int,
    *,
    stratify: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    rng: np.random.Generator,
) -> list[Fold]:
    """``k`` pairs of (train, test) positions; each unit is in exactly one test part.

    ``stratify`` and ``groups`` give one value per unit. Without groups, the sizes of the folds differ by at most one,
    overall and within each stratum. Units of one group are in one fold; then sizes and strata are balanced greedily,
    the largest groups first.
    """
    n = len(unit_ids)
    _check(unit_ids, k, stratify=stratify, groups=groups)
    strata = _codes(stratify, n)
    if groups is None:
        _check_enough(k, n, "units")
        fold_of = _assign_units(strata, k, rng)
    else:
        members = _codes(groups, n)
        _check_enough(k, int(members.max(initial=-1)) + 1, "groups")
        fold_of = _assign_groups(strata, members, k, rng)[members]
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(k)]


def _assign_units(strata: Ints, k: int, rng: np.random.Generator) -> Ints:
    """Assign the units to folds round-robin, stratum after stratum, without restarting at each stratum."""
    shuffled = rng.permutation(len(strata))
    by_stratum = shuffled[np.argsort(strata[shuffled], kind="stable")]
    fold_of = np.empty(len(strata), dtype=np.int64)
    fold_of[by_stratum] = np.arange(len(strata)) % k
    return rng.permutation(k)[fold_of]


def _assign_groups(strata: Ints, members: Ints, k: int, rng: np.random.Generator) -> Ints:
    """The fold of each group, the largest first: the fold with the smallest increase of imbalance."""
    counts = np.zeros((int(members.max()) + 1, int(strata.max()) + 1))
    np.add.at(counts, (members, strata), 1.0)
    weights = 1.0 / counts.sum(axis=0) ** 2  # squared shares of a stratum, so that rare ones count as well
    shuffled = rng.permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]
    filled = np.zeros((k, counts.shape[1]))
    fold_of = np.empty(len(counts), dtype=np.int64)
    for left, group in zip(range(len(order), 0, -1), order, strict=True):
        sizes = filled.sum(axis=1)
        # The growth of the sum of squares, which is smallest for the fold with the fewest units of these strata.
        cost = (filled * counts[group]) @ weights
        empty = sizes == 0
        if left <= empty.sum():
            cost = np.where(empty, cost, np.inf)
        fold = np.lexsort((sizes, cost))[0]
        fold_of[group] = fold
        filled[fold] += counts[group]
    return rng.permutation(k)[fold_of]


def _codes(values: Sequence[Any] | None, n: int) -> Ints:
    """0, 1, 2, ... for the distinct values in order of appearance; zeros when there are none."""
    code_of: dict[Any, int] = {}
    codes = [0] * n if values is None else [code_of.setdefault(value, len(code_of)) for value in values]
    return np.asarray(codes, dtype=np.int64)


def _check(unit_ids: Sequence[Any], k: int, **keys: Sequence[Any] | None) -> None:
    if k < 2:
        raise ParameterError(f"{k} folds leave nothing to train on", hint="use at least 2")
    previous: set[Any] = set()
    for unit in unit_ids:
        if unit in previous:
            raise DuplicateError(f"unit {unit} appears twice", hint="a unit must not be in train and test at once")
        previous.add(unit)
    for name, values in keys.items():
        if values is not None and len(values) != len(unit_ids):
            raise ShapeError(f"{name} has {len(values)} values for {len(unit_ids)} units")


def _check_enough(k: int, available: int, noun: str) -> None:
    if k > available:
        raise ParameterError(
            f"{k} folds need at least {k} {noun}, and there are {available}",
            hint=f"use at most {available} folds",
        )
