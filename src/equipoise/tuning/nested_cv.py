"""Nested cross-validation: the score of a tuned system on units that were held out from its tuning.

The best of many trials has a selection-biased score on the units that selected it. Therefore a trial is
selected for every fold on the units outside it, and scored on the units inside.

Trials have no parameters that are fitted to units: a trial's value on a unit does not depend on which other
units there are. An inner cross-validation would therefore average, over its folds, the same values that
the training units already have, and the mean over the training units is the inner cross-validation score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import CONFIDENCE_LEVEL, N_RESAMPLES
from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.metrics.base import MetricValue
from equipoise.stats.bootstrap_mean import cluster_codes, ratio
from equipoise.stats.intervals import Bounds, Interval
from equipoise.stats.tuning_uncertainty import interval_from_errors
from equipoise.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from equipoise.io.splits import Fold

ROUNDING = 1e-12
"""Means closer than this, relative to the larger, are equal: rounding in a sum does not decide a selection."""


@dataclass(frozen=True)
class NestedResult:
    """The nested estimate: the trial selected without each fold, and its score on the fold.

    With S splits of F folds each and U units:

    - ``values`` (U): the score of each unit, the mean over the splits of the trials chosen without it; NaN
      where all of them are undefined.
    - ``chosen`` (S * F, split by split): the index of the trial that was selected without each fold.
    - ``inner`` and ``outer`` (S * F): its mean over the units that selected it, and over those of the fold.
    - ``trial_of`` (S x U): the trial that scored each unit in each split.
    - ``by_split`` (S): the nested score of each split alone.
    - ``best`` is the trial selected on all units, which would be deployed; ``optimistic`` is its mean over
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


def nested_cv(
    values: Any,
    folds: Sequence[Fold],
    *,
    costs: Any = None,
    allowed: Any = None,
) -> NestedResult:
    """Select a trial for each fold on the units outside it, and score it on the fold.

    ``values`` has one row per trial and one column per unit, higher is better, NaN where undefined; ``folds`` come
    from ``kfold_splits``. The best mean over the defined training units wins; of equal means the lower ``costs`` (one
    number per trial, NaN is the most expensive), then the earlier trial. ``allowed`` marks the trials that may be
    selected, such as those within a budget.

    >>> from equipoise.io.splits import kfold_splits
    >>> halves = kfold_splits("abcd", 2, groups="xxyy", rng=np.random.default_rng(0))
    >>> nested = nested_cv([[1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]], halves)
    >>> nested.chosen.tolist(), nested.values.tolist(), nested.optimistic
    ([1, 0], [0.0, 1.0, 1.0, 0.0], 0.75)
    """
    return repeated_nested_cv(values, [folds], costs=costs, allowed=allowed)


def repeated_nested_cv(
    values: Any,
    splits: Sequence[Sequence[Fold]],
    *,
    costs: Any = None,
    allowed: Any = None,
) -> NestedResult:
    """Repeated nested cross-validation: ``nested_cv`` on several splits, averaged unit by unit.

    Which trial is chosen depends on how units are assigned to folds, and so does the score of a single
    split. The mean over many splits hardly does. Every split has the same number of folds.
    """
    table = check_score_table(values)
    units = table.shape[1]
    tests = np.concatenate([tested_units(folds, units) for folds in splits], axis=1)
    inner = fold_means(table, (~tests).astype(np.float64))
    outer = fold_means(table, tests.astype(np.float64))
    chosen = select_trials(inner, costs=costs, allowed=allowed)
    best = select_best(table, costs=costs, allowed=allowed)
    positions = np.arange(tests.shape[1])
    fold_of = tests.T.reshape(len(splits), -1, units).argmax(axis=1)
    trial_of = np.take_along_axis(chosen.reshape(len(splits), -1), fold_of, axis=1)
    scores = table[trial_of, np.arange(units)]
    return NestedResult(
        values=fold_means(scores.T, np.ones((len(splits), 1)))[:, 0],
        chosen=chosen,
        inner=_check_means(inner[chosen, positions]),
        outer=outer[chosen, positions],
        best=best,
        optimistic=_mean(table[best]),
        trial_of=trial_of,
        by_split=fold_means(scores, np.ones((units, 1)))[:, 0],
    )


def majority_hits(values: Any) -> Floats:
    """Binary hits from the shares of splits in which units were hit: 1 where more than half of them were.

    McNemar's test counts hits and misses, and the mean over splits is neither.

    >>> majority_hits([0.0, 0.45, 0.5, 0.55, 1.0]).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    return (np.asarray(values, dtype=np.float64) > 0.5).astype(np.float64)


def select_best(values: Any, *, costs: Any = None, allowed: Any = None) -> int:
    """The trial that is best on all units: the one to deploy, whose mean here is optimistic (selection-biased).

    >>> select_best([[1, 0, 0], [1, 1, 0], [0, 1, 1]], costs=[1, 9, 5])
    2
    """
    table = check_score_table(values)
    means = fold_means(table, np.ones((table.shape[1], 1)))
    best = select_trials(means, costs=costs, allowed=allowed)
    _check_means(means[best, 0])
    return int(best[0])


def select_trials(means: Floats, *, costs: Any = None, allowed: Any = None) -> Ints:
    """For each column of means (one row per trial) the best allowed trial; ties by cost, then order.

    A trial without a mean is worse than any other.
    """
    trials = len(means)
    open_to_choice = _mask(allowed, trials)[:, None]
    scores = np.where(open_to_choice & ~np.isnan(means), means, -np.inf)
    top = scores.max(axis=0)
    tied = open_to_choice & (scores >= top - ROUNDING * np.abs(np.where(np.isinf(top), 0.0, top)))
    priority = np.empty(trials, dtype=np.int64)
    priority[np.argsort(_costs(costs, trials), kind="stable")] = np.arange(trials)
    return np.asarray(np.where(tied, priority[:, None], trials).argmin(axis=0), dtype=np.int64)


def _check_means(means: Floats) -> Floats:
    """The means of the selected trials; an error if one is undefined."""
    if np.isnan(means).any():
        raise UndefinedError(
            "no trial has a value on the units that are used for selection",
            hint="use fewer folds, or leave out units that are undefined for every trial",
        )
    return means


def fold_means(table: Floats, columns: Floats) -> Floats:
    """Means over the defined units, one row per trial and one column per part; ``columns`` counts the units in it."""
    counts = (~np.isnan(table)).astype(np.float64) @ columns
    sums = np.nan_to_num(table) @ columns
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), np.nan)


def _mean(values: Floats) -> float:
    return MetricValue.mean(values).value


def check_score_table(values: Any) -> Floats:
    """The values as numbers, one row per trial and one column per unit."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ShapeError(
            f"values of shape {table.shape} are not a table of trials and units",
            hint="give one row per trial and one column per unit",
        )
    if np.isinf(table).any():
        raise NotFiniteError("a value is infinite, and so is any mean of it", hint="undefined units are NaN")
    return table


def tested_units(folds: Sequence[Fold], units: int) -> Bools:
    """Which unit (row) is tested in which fold (column); every unit must be, once, and not trained on."""
    tests = np.zeros((units, len(folds)), dtype=bool)
    for number, (train, test) in enumerate(folds):
        both = np.sort(np.concatenate([train, test]))
        if not np.array_equal(both, np.arange(units)):
            raise ShapeError(
                f"train and test of fold {number + 1} are not a partition of the {units} units",
                hint="make the folds of these units with kfold_splits",
            )
        tests[test, number] = True
    counts = tests.sum(axis=1)
    if not (counts == 1).all():
        unit = int(np.flatnonzero(counts != 1)[0])
        raise ShapeError(
            f"the unit at index {unit} is tested in {counts[unit]} folds",
            hint="every unit is tested once: make the folds with kfold_splits",
        )
    return tests


def _mask(allowed: Any, trials: int) -> Bools:
    mask = np.ones(trials, dtype=bool) if allowed is None else np.asarray(allowed)
    if mask.shape != (trials,) or mask.dtype != bool:
        raise ShapeError(
            f"allowed has shape {mask.shape} and type {mask.dtype} for {trials} trials",
            hint="give True or False for each trial",
        )
    if not mask.any():
        raise ParameterError("no trial is allowed to be chosen", hint="raise the budget, or add cheaper trials")
    return mask


def _costs(costs: Any, trials: int) -> Floats:
    per_trial = np.zeros(trials) if costs is None else np.asarray(costs, dtype=np.float64)
    if per_trial.shape != (trials,):
        raise ShapeError(f"costs has shape {per_trial.shape} for {trials} trials", hint="give one number per trial")
    return per_trial


# The error of a nested score: units are resampled and assigned to folds, and the selection is repeated.

RESAMPLED_SPLITS = 4
"""Splits per resample if the score is the mean over many splits."""
BLOCK_CELLS = 1 << 17
"""Resamples x units that are computed at once: 1 MB stays in the processor's cache, twice as fast as 8 MB."""


def selection_errors(
    values: Any,
    folds: Sequence[Fold],
    *,
    splits: int = 1,
    costs: Any = None,
    allowed: Any = None,
    clusters: Any = None,
    n_resamples: int = N_RESAMPLES,
    rng: np.random.Generator,
) -> Floats:
    """Bootstrap errors of the nested score: the nested score minus the true score of the deployed trial.

    The sample represents the population. Each resample has as many units per fold, selects a trial without
    each fold, and selects the deployed trial on all of them; the mean of that trial over the original units is
    the truth. A copy in two folds is not a leak: both are independent samples. With ``clusters`` (one id per unit, such
    as the groups of the folds) clusters are resampled. The other arguments are those of
    ``nested_cv``. The same randomness gives paired errors for systems on the same units and folds.

    With ``splits`` above 1 the units of each resample are assigned to folds that many times, and the
    score is the mean over them, as in ``repeated_nested_cv``. A few splits are enough here: with S of them the
    error has the variance between resamples plus 1/S of the variance between splits, which is the smaller.
    """
    table = check_score_table(values)
    units = table.shape[1]
    codes = cluster_codes(range(units) if clusters is None else clusters, units)
    tests = tested_units(folds, units)
    sizes = [len(np.unique(codes[tests[:, fold]])) for fold in range(len(folds))]
    assigned = _assignments(sizes, splits, rng)
    choose = partial(select_trials, costs=costs, allowed=allowed)
    sums = _Sums(table, codes)
    height = max(1, BLOCK_CELLS // units)
    blocks = [min(height, n_resamples - start) for start in range(0, n_resamples, height)]
    samples = (rng.integers(0, int(codes.max()) + 1, size=(rows, sum(sizes))) for rows in blocks)
    return np.concatenate([_errors(sums, sample, assigned, choose) for sample in samples])


def _assignments(sizes: Sequence[int], splits: int, rng: np.random.Generator) -> list[Ints]:
    """The fold of each sampled cluster, split by split; shared by all resamples, which are exchangeable."""
    first = np.repeat(np.arange(len(sizes)), sizes)
    return [first, *(rng.permutation(first) for _ in range(splits - 1))]


def _errors(sums: _Sums, sample: Ints, assigned: Sequence[Ints], choose: Callable[[Floats], Ints]) -> Floats:
    """The errors of some resamples; ``sample`` has one row per resample and one column per sampled cluster."""
    totals = sums.over(sample)
    rows = np.arange(len(sample))
    scores = np.zeros(len(sample))
    for fold_of in assigned:
        total, defined = np.zeros(len(sample)), np.zeros(len(sample))
        for fold in range(int(fold_of.max()) + 1):
            part = sums.over(sample[:, fold_of == fold])
            chosen = choose(ratio(totals[0] - part[0], totals[1] - part[1]))
            total += part[0][chosen, rows]
            defined += np.broadcast_to(part[1], part[0].shape)[chosen, rows]
        scores += ratio(total, defined) / len(assigned)
    return scores - sums.means[choose(ratio(*totals))]


class _Sums:
    """The table added up cluster by cluster: sums of values, and how many of them are defined.

    ``means`` is the mean of each trial over all units.
    """

    def __init__(self, table: Floats, codes: Ints) -> None:
        members = np.equal.outer(codes, np.arange(int(codes.max()) + 1)).astype(np.float64)
        defined = ~np.isnan(table)
        # If all values are defined, all trials have the same counts.
        self.counts = (defined[:1] if defined.all() else defined) @ members
        self.totals = np.nan_to_num(table) @ members
        self.means = fold_means(table, np.ones((table.shape[1], 1)))[:, 0]

    def over(self, sample: Ints) -> tuple[Floats, Floats]:
        """Sums and counts over sampled clusters, one row per trial (or one for all) and one column per resample."""
        n_resamples, clusters = len(sample), self.totals.shape[1]
        cells = sample * n_resamples + np.arange(n_resamples)[:, None]
        times = np.bincount(cells.ravel(), minlength=clusters * n_resamples)
        times = times.reshape(clusters, n_resamples).astype(np.float64)
        return self.totals @ times, self.counts @ times


def nested_interval(
    nested: NestedResult, errors: Floats, *, bounds: Bounds = (0.0, 1.0), confidence_level: float = CONFIDENCE_LEVEL
) -> Interval:
    """The interval of a nested score from its bootstrap errors.

    >>> from equipoise.io.splits import kfold_splits
    >>> from equipoise.stats.intervals import wilson_interval
    >>> from equipoise.tuning.nested_cv import nested_cv
    >>> rng = np.random.default_rng(0)
    >>> values, parts = rng.integers(0, 2, (9, 60)), kfold_splits(range(60), 5, rng=rng)
    >>> interval = nested_interval(nested_cv(values, parts), selection_errors(values, parts, rng=rng))
    >>> interval.method, round(interval.width, 2), round(wilson_interval(30, 60).width, 2)
    ('wilson-bootstrap-errors', 0.35, 0.25)
    """
    return interval_from_errors(nested.value, nested.values, errors, bounds, confidence_level)
