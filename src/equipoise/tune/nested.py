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
    """What was chosen without each fold, and what that scores there.

    ``values`` holds a number a unit, from the trial chosen without it, NaN where that is undefined;
    ``chosen`` a place among the trials a fold; ``inner`` its mean over the units that chose it and ``outer``
    its mean over those of the fold. ``best`` is chosen on all units, and is what people would deploy;
    ``optimistic`` is its mean over the same units.
    """

    values: Floats
    chosen: Ints
    inner: Floats
    outer: Floats
    best: int
    optimistic: float

    @property
    def value(self) -> float:
        """The nested figure: the mean over the defined units."""
        return _mean(self.values)

    @property
    def gap(self) -> float:
        """How much better the tuned system looks on the units that tuned it."""
        return self.optimistic - self.value

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
    table = table_of(values)
    tests = tested(folds, table.shape[1])
    inner = part_means(table, (~tests).astype(np.float64))
    outer = part_means(table, tests.astype(np.float64))
    chosen = chosen_trials(inner, costs=costs, allowed=allowed, better=better)
    best = best_trial(table, costs=costs, allowed=allowed, better=better)
    places = np.arange(len(folds))
    return Nested(
        values=table[chosen[tests.argmax(axis=1)], np.arange(table.shape[1])],
        chosen=chosen,
        inner=_known(inner[chosen, places]),
        outer=outer[chosen, places],
        best=best,
        optimistic=_mean(table[best]),
    )


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
