"""How far a nested figure may lie from the truth: units drawn anew, dealt to folds, and all chosen again.

Units that are scored by what other units chose are not independent. A trial that is lucky in two folds is
chosen for each because of the other, and both then count the same luck. With 27 configurations of about equal
worth and 100 questions the nested figure varies by a third more than as many independent answers would, and
Wilson's 95 % interval covers in 85 to 89 % of trials (``python -m equipoise.tune.calibration``). No figure of
one split shows that dependence (Bengio and Grandvalet, 2004), but here the value of every trial on every unit
is known. So the whole procedure is repeated on resampled units, at the price of a matrix product.
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


def choice_errors(
    values: Any,
    folds: Sequence[Fold],
    *,
    costs: Any = None,
    allowed: Any = None,
    better: Direction = Direction.UP,
    clusters: Any = None,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> Floats:
    """Resampled errors of the nested figure: what it says minus what the deployed trial is worth.

    The units at hand stand for all there are. Each resample draws as many for each fold, chooses without
    each fold, and chooses on all of them what would be deployed; that trial's mean over the units at hand is
    the truth there. A copy in two folds is no leak: both are new draws. With ``clusters`` (an id a unit, such
    as the groups of the folds) whole clusters are drawn. The other arguments are those of
    ``nested_choice``. The same randomness gives paired errors for systems on the same units and folds.
    """
    table = table_of(values)
    units = table.shape[1]
    codes = cluster_codes(range(units) if clusters is None else clusters, units)
    tests = tested(folds, units)
    sizes = [len(np.unique(codes[tests[:, fold]])) for fold in range(len(folds))]
    choose = partial(chosen_trials, costs=costs, allowed=allowed, better=better)
    height = max(1, BLOCK_CELLS // (units * len(sizes)))
    blocks = [min(height, resamples - start) for start in range(0, checked_resamples(resamples), height)]
    return np.concatenate([_errors(table, _counts(sizes, codes, rows, rng), choose) for rows in blocks])


def _errors(table: Floats, counts: Floats, choose: Callable[[Floats], Ints]) -> Floats:
    """The errors of some resamples; ``counts`` says how often each unit is in each fold of each of them."""
    filled, defined = np.nan_to_num(table), (~np.isnan(table)).astype(np.float64)
    whole = counts.sum(axis=0)
    rows = np.arange(whole.shape[1])
    total, mass = np.zeros(len(rows)), np.zeros(len(rows))
    for part in counts:
        chosen = choose(part_means(table, whole - part))
        total += (filled @ part)[chosen, rows]
        mass += (defined @ part)[chosen, rows]
    truth = part_means(table, np.ones((table.shape[1], 1)))[:, 0]
    return ratio(total, mass) - truth[choose(part_means(table, whole))]


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
    ('wilson-redrawn', 0.34, 0.25)
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


def _counts(sizes: Sequence[int], codes: Ints, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each unit is drawn for each fold: shape (folds, units, resamples)."""
    clusters = int(codes.max()) + 1
    columns = np.arange(resamples)[:, None]
    found = []
    for size in sizes:
        cells = rng.integers(0, clusters, size=(resamples, size)) * resamples + columns
        drawn = np.bincount(cells.ravel(), minlength=clusters * resamples).reshape(clusters, resamples)
        found.append(drawn[codes])
    return np.stack(found).astype(np.float64)
