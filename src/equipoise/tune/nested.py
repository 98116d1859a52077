"""The nested estimate: what a tuned system is worth on units that had no say in its tuning.

The best of many trials looks better than it is, on the units that made it the best. So the choice is made
again for every fold, on the units outside it, and the units inside score what was chosen without them.

Trials have no parameters that are fitted to units: a trial's value on a unit is the same whatever other
units there are. An inner cross-validation would therefore average, over its own folds, the very values that
the training units have already, and the mean over the training units is the inner cross-validation score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.data.split import Fold
from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.metrics.base import Measurement
from equipoise.types import Bools, Direction, Floats, Ints

ROUNDING = 1e-12
"""Means closer than this, relative to the larger, are equal: the order of a sum decides no choice."""


@dataclass(frozen=True)
class Nested:
    """The nested estimate: what was chosen without each fold, and what that scores there.

    With S splits of F folds each and U units:

    - ``values`` (U): the score of each unit, the mean over the splits of the trials chosen without it; NaN
      where all of them are undefined.
    - ``chosen`` (S * F, split by split): the place of the trial that was chosen without each fold.
    - ``inner`` and ``outer`` (S * F): its mean over the units that chose it, and over those of the fold.
    - ``trial_of`` (S x U): the trial that scored each unit in each split.
    - ``by_split`` (S): the nested score of each split alone.
    - ``best`` is the trial chosen on all units, which people would deploy; ``optimistic`` is its mean over
      the same units.
    """

    values: Floats
    chosen: Ints
    inner: Floats
    outer: Floats
    best: int
    optimistic: float
    trial_of: Ints
    by_split: Floats

    @property
    def value(self) -> float:
        """The nested score: the mean over the defined units."""
        return _mean(self.values)

    @property
    def gap(self) -> float:
        """How much better the tuned system looks on the units that tuned it."""
        return self.optimistic - self.value

    @property
    def split_sd(self) -> float:
        """The standard deviation of the nested score over the splits; NaN for a single split."""
        return float(np.std(self.by_split, ddof=1)) if len(self.by_split) > 1 else float("nan")

    @property
    def usual_trial(self) -> Ints:
        """For each unit the trial that scored it in most splits; of equally frequent ones the first."""
        counts = np.zeros((int(self.trial_of.max()) + 1, self.trial_of.shape[1]), dtype=np.int64)
        for row in self.trial_of:
            counts[row, np.arange(counts.shape[1])] += 1
        return np.asarray(counts.argmax(axis=0), dtype=np.int64)

    @property
    def stable(self) -> bool:
        """Whether every fold, and all units together, chose the same trial."""
        return bool((self.chosen == self.best).all())


def nested_choice(
    values: Any,
    folds: Sequence[Fold],
    *,
    costs: Any = None,
    allowed: Any = None,
    better: Direction = Direction.UP,
) -> Nested:
    """Choose a trial for each fold on the units outside it, and score the fold with that.

    ``values`` has a row a trial and a column a unit, NaN where undefined; ``folds`` come from
    ``data.split.folds``. The best mean over the defined training units wins; of equal means the lower
    ``costs`` (a number a trial, NaN is the dearest), then the earlier trial. ``allowed`` says which trials
    may be chosen at all, such as those within a budget.

    >>> from equipoise.data.split import folds
    >>> halves = folds("abcd", 2, groups="xxyy", rng=np.random.default_rng(0))
    >>> nested = nested_choice([[1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]], halves)
    >>> nested.chosen.tolist(), nested.values.tolist(), nested.optimistic
    ([1, 0], [0.0, 1.0, 1.0, 0.0], 0.75)
    """
    return repeated_choice(values, [folds], costs=costs, allowed=allowed, better=better)


def repeated_choice(
    values: Any,
    splits: Sequence[Sequence[Fold]],
    *,
    costs: Any = None,
    allowed: Any = None,
    better: Direction = Direction.UP,
) -> Nested:
    """Repeated nested cross-validation: ``nested_choice`` on several splits, averaged unit by unit.

    Which trial is chosen depends on how units are assigned to folds, and so does the score of a single
    split. The mean over many splits hardly does. Every split has the same number of folds.
    """
    table = table_of(values)
    units = table.shape[1]
    tests = np.concatenate([tested(folds, units) for folds in splits], axis=1)
    inner = part_means(table, (~tests).astype(np.float64))
    outer = part_means(table, tests.astype(np.float64))
    chosen = chosen_trials(inner, costs=costs, allowed=allowed, better=better)
    best = best_trial(table, costs=costs, allowed=allowed, better=better)
    places = np.arange(tests.shape[1])
    fold_of = tests.T.reshape(len(splits), -1, units).argmax(axis=1)
    trial_of = np.take_along_axis(chosen.reshape(len(splits), -1), fold_of, axis=1)
    scores = table[trial_of, np.arange(units)]
    return Nested(
        values=part_means(scores.T, np.ones((len(splits), 1)))[:, 0],
        chosen=chosen,
        inner=_known(inner[chosen, places]),
        outer=outer[chosen, places],
        best=best,
        optimistic=_mean(table[best]),
        trial_of=trial_of,
        by_split=part_means(scores, np.ones((units, 1)))[:, 0],
    )


def majority_hits(values: Any) -> Floats:
    """Binary hits from the shares of splits in which units were hit: 1 where more than half of them were.

    McNemar's test counts hits and misses, and the mean over splits is neither.

    >>> majority_hits([0.0, 0.45, 0.5, 0.55, 1.0]).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    return (np.asarray(values, dtype=np.float64) > 0.5).astype(np.float64)


def best_trial(
    values: Any, *, costs: Any = None, allowed: Any = None, better: Direction = Direction.UP
) -> int:
    """The trial that is best on all units: the one to deploy, whose mean here is an optimistic figure.

    >>> best_trial([[1, 0, 0], [1, 1, 0], [0, 1, 1]], costs=[1, 9, 5])
    2
    """
    table = table_of(values)
    means = part_means(table, np.ones((table.shape[1], 1)))
    best = chosen_trials(means, costs=costs, allowed=allowed, better=better)
    _known(means[best, 0])
    return int(best[0])


def chosen_trials(
    means: Floats, *, costs: Any = None, allowed: Any = None, better: Direction = Direction.UP
) -> Ints:
    """For each column of means (a row a trial) the best allowed trial; equal means go by cost, then by order.

    A trial without a mean is worse than any other.
    """
    trials = len(means)
    open_to_choice = _mask(allowed, trials)[:, None]
    signed = means if better == Direction.UP else -means
    scores = np.where(open_to_choice & ~np.isnan(means), signed, -np.inf)
    top = scores.max(axis=0)
    tied = open_to_choice & (scores >= top - ROUNDING * np.abs(np.where(np.isinf(top), 0.0, top)))
    priority = np.empty(trials, dtype=np.int64)
    priority[np.argsort(_costs(costs, trials), kind="stable")] = np.arange(trials)
    return np.asarray(np.where(tied, priority[:, None], trials).argmin(axis=0), dtype=np.int64)


def _known(means: Floats) -> Floats:
    """The means of what was chosen, when all of them are known."""
    if np.isnan(means).any():
        raise UndefinedError(
            "no trial has a value on the units that must choose one",
            hint="use fewer folds, or leave out units that are undefined for every trial",
        )
    return means


def part_means(table: Floats, columns: Floats) -> Floats:
    """Means over the defined units, a row a trial and a column a part; ``columns`` counts the units in it."""
    counts = (~np.isnan(table)).astype(np.float64) @ columns
    sums = np.nan_to_num(table) @ columns
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), np.nan)


def _mean(values: Floats) -> float:
    return Measurement.mean(values).value


def table_of(values: Any) -> Floats:
    """The values as numbers, a row a trial and a column a unit."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ShapeError(
            f"values of shape {table.shape} are no table of trials and units",
            hint="give a row a trial and a column a unit",
        )
    if np.isinf(table).any():
        raise NotFiniteError("a value is infinite, and so is any mean of it", hint="undefined units are NaN")
    return table


def tested(folds: Sequence[Fold], units: int) -> Bools:
    """Which unit (row) is tested in which fold (column); every unit must be, once, and not trained on."""
    tests = np.zeros((units, len(folds)), dtype=bool)
    for place, (train, test) in enumerate(folds):
        both = np.sort(np.concatenate([train, test]))
        if not np.array_equal(both, np.arange(units)):
            raise ShapeError(
                f"train and test of fold {place + 1} are no partition of the {units} units",
                hint="make the folds of these units with data.split.folds",
            )
        tests[test, place] = True
    counts = tests.sum(axis=1)
    if not (counts == 1).all():
        unit = int(np.flatnonzero(counts != 1)[0])
        raise ShapeError(
            f"the unit at place {unit} is tested in {counts[unit]} folds",
            hint="every unit is tested once: make the folds with data.split.folds",
        )
    return tests


def _mask(allowed: Any, trials: int) -> Bools:
    mask = np.ones(trials, dtype=bool) if allowed is None else np.asarray(allowed)
    if mask.shape != (trials,) or mask.dtype != bool:
        raise ShapeError(
            f"allowed has shape {mask.shape} and type {mask.dtype} for {trials} trials",
            hint="give True or False a trial",
        )
    if not mask.any():
        raise ParameterError(
            "no trial is allowed to be chosen", hint="raise the budget, or add cheaper trials"
        )
    return mask


def _costs(costs: Any, trials: int) -> Floats:
    found = np.zeros(trials) if costs is None else np.asarray(costs, dtype=np.float64)
    if found.shape != (trials,):
        raise ShapeError(f"costs has shape {found.shape} for {trials} trials", hint="give a number a trial")
    return found
