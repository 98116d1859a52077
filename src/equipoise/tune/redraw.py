"""How far a nested score may be from the truth: units resampled, assigned to folds, and all chosen again.

Units that are scored by what other units chose are not independent. A trial that is good by chance in two
folds is chosen for each because of the other, and both then count the same chance. With 27 configurations of
about equal accuracy and 100 questions the nested score of one split varies by a third more than as many
independent answers would, and Wilson's 95 % interval covers in 85 to 89 % of simulations
(``python -m equipoise.tune.calibration``). No statistic of one split shows that dependence (Bengio and
Grandvalet, 2004), but here the value of every trial on every unit is known. So the whole procedure is
repeated on resampled units, for the cost of a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from equipoise.data.split import Fold
from equipoise.stats.draws import BLOCK_CELLS, checked_resamples, cluster_codes, ratio
from equipoise.stats.interval import Bounds, Interval, t_critical, t_interval, wilson
from equipoise.stats.redrawn import METHOD, root_mean_square
from equipoise.tune.nested import Nested, chosen_trials, part_means, table_of, tested
from equipoise.types import Direction, Floats, Ints

RESAMPLED_SPLITS = 4
"""Into how many splits the units of a resample are put where the score is the mean over many."""


def choice_errors(
    values: Any,
    folds: Sequence[Fold],
    *,
    splits: int = 1,
    costs: Any = None,
    allowed: Any = None,
    better: Direction = Direction.UP,
    clusters: Any = None,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> Floats:
    """Bootstrap errors of the nested score: what it says minus what the deployed trial is worth.

    The units at hand stand for all there are. Each resample draws as many for each fold, chooses without
    each fold, and chooses on all of them what would be deployed; that trial's mean over the units at hand is
    the truth there. A copy in two folds is no leak: both are new draws. With ``clusters`` (an id a unit, such
    as the groups of the folds) whole clusters are drawn. The other arguments are those of
    ``nested_choice``. The same randomness gives paired errors for systems on the same units and folds.

    With ``splits`` above 1 the drawn units of each resample are assigned to folds that many times, and the
    score is the mean over them, as in ``repeated_choice``. A few splits are enough here: with S of them the
    error has the variance between resamples plus 1/S of the variance between splits, which is the smaller.
    """
    table = table_of(values)
    units = table.shape[1]
    codes = cluster_codes(range(units) if clusters is None else clusters, units)
    tests = tested(folds, units)
    sizes = [len(np.unique(codes[tests[:, fold]])) for fold in range(len(folds))]
    assigned = _assignments(sizes, splits, rng)
    choose = partial(chosen_trials, costs=costs, allowed=allowed, better=better)
    sums = _Sums(table, codes)
    height = max(1, BLOCK_CELLS // units)
    blocks = [min(height, resamples - start) for start in range(0, checked_resamples(resamples), height)]
    draws = (rng.integers(0, int(codes.max()) + 1, size=(rows, sum(sizes))) for rows in blocks)
    return np.concatenate([_errors(sums, drawn, assigned, choose) for drawn in draws])


def _assignments(sizes: Sequence[int], splits: int, rng: np.random.Generator) -> list[Ints]:
    """The fold of each drawn cluster, split by split; draws are exchangeable, so one set serves them all."""
    first = np.repeat(np.arange(len(sizes)), sizes)
    return [first, *(rng.permutation(first) for _ in range(splits - 1))]


def _errors(sums: _Sums, drawn: Ints, assigned: Sequence[Ints], choose: Callable[[Floats], Ints]) -> Floats:
    """The errors of some resamples; ``drawn`` has a row a resample and a column a drawn cluster."""
    whole = sums.over(drawn)
    rows = np.arange(len(drawn))
    scores = np.zeros(len(drawn))
    for fold_of in assigned:
        total, defined = np.zeros(len(drawn)), np.zeros(len(drawn))
        for fold in range(int(fold_of.max()) + 1):
            part = sums.over(drawn[:, fold_of == fold])
            chosen = choose(ratio(whole[0] - part[0], whole[1] - part[1]))
            total += part[0][chosen, rows]
            defined += np.broadcast_to(part[1], part[0].shape)[chosen, rows]
        scores += ratio(total, defined) / len(assigned)
    return scores - sums.means[choose(ratio(*whole))]


class _Sums:
    """The table added up cluster by cluster: sums of values, and how many of them are defined.

    ``means`` is the mean of each trial over all units.
    """

    def __init__(self, table: Floats, codes: Ints) -> None:
        members = np.equal.outer(codes, np.arange(int(codes.max()) + 1)).astype(np.float64)
        defined = ~np.isnan(table)
        # Where all values are defined, one row of counts serves every trial.
        self.counts = (defined[:1] if defined.all() else defined) @ members
        self.totals = np.nan_to_num(table) @ members
        self.means = part_means(table, np.ones((table.shape[1], 1)))[:, 0]

    def over(self, drawn: Ints) -> tuple[Floats, Floats]:
        """Sums and counts over drawn clusters, a row a trial (or one for all) and a column a resample."""
        resamples, clusters = len(drawn), self.totals.shape[1]
        cells = drawn * resamples + np.arange(resamples)[:, None]
        times = np.bincount(cells.ravel(), minlength=clusters * resamples)
        times = times.reshape(clusters, resamples).astype(np.float64)
        return self.totals @ times, self.counts @ times


def nested_interval(
    nested: Nested, errors: Floats, *, bounds: Bounds = (0.0, 1.0), level: float = 0.95
) -> Interval:
    """The interval of a nested figure from its resampled errors.

    A share gets Wilson's interval with as many independent units as would err that much, never more than
    there are hits and misses; another figure gets Student's. Errors are squared around 0, not around their
    mean: choosing on fewer units is a little worse than what is deployed, and that is part of the error.

    >>> from equipoise.data.split import folds
    >>> from equipoise.tune.nested import nested_choice
    >>> rng = np.random.default_rng(0)
    >>> values, parts = rng.integers(0, 2, (9, 60)), folds(range(60), 5, rng=rng)
    >>> interval = nested_interval(nested_choice(values, parts), choice_errors(values, parts, rng=rng))
    >>> interval.method, round(interval.width, 2), round(wilson(30, 60).width, 2)
    ('wilson-redrawn', 0.35, 0.25)
    """
    known = nested.values[~np.isnan(nested.values)]
    if len(known) < 2:
        return Interval.unknown("one unit" if len(known) else "no defined unit", level=level)
    share, error, degrees = nested.value, root_mean_square(errors), len(known) - 1
    if bounds != (0.0, 1.0):
        if error == 0.0:
            return Interval.unknown("all units have the same value", level=level)
        return t_interval(share, error, degrees, level, method=METHOD).clipped(bounds)
    trials = share * (1.0 - share) / error**2 if error > 0.0 and 0.0 < share < 1.0 else float(len(known))
    if np.isin(known, (0.0, 1.0)).all():
        trials = min(trials, float(len(known)))
    hits = min(share * trials, trials)
    return wilson(hits, trials, level, critical=t_critical(level, degrees), method=f"wilson-{METHOD}")
