"""Statistics of a leaderboard: aggregates, paired bootstrap, rank intervals, adjacent ranks and sensitivity.

A row is a data set and a column is a model. An aggregate maps each row to points and averages the rows, so that
one resample of the data sets gives all aggregates of all models.

Rank intervals come from simultaneous tests of each model against all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.errors import ParameterError, did_you_mean
from equipoise.stats.bootstrap_mean import FEW_RESAMPLING_UNITS, ROUNDING, UNBOUNDED, bootstrap_sums, mean_intervals
from equipoise.stats.intervals import Bounds, Interval, t_interval
from equipoise.stats.multiple_comparisons import adjust, order_by_score, rank_intervals
from equipoise.stats.paired_tests import run_test
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.types import Floats, Ints

Resample = Literal["datasets", "units", "both"]
RESAMPLE_MODES: tuple[Resample, ...] = ("datasets", "units", "both")


def mean_points(rows: Floats) -> Floats:
    """The scores themselves."""
    return rows


def borda_points(rows: Floats) -> Floats:
    """The number of models that a model beats in each row; a tie counts one half.

    >>> borda_points(np.array([[0.9, 0.5, 0.5]]))
    array([[2. , 0.5, 0.5]])
    """
    points = np.empty(rows.shape)
    for model in range(rows.shape[1]):
        scores = rows[:, model : model + 1]
        points[:, model] = (rows < scores).sum(axis=1) + ((rows == scores).sum(axis=1) - 1) / 2
    return points


def z_points(rows: Floats) -> Floats:
    """The scores of each row with mean 0 and standard deviation 1; 0 where all models are equal.

    >>> z_points(np.array([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    deviations = rows - rows.mean(axis=1, keepdims=True)
    spread = rows.std(axis=1, keepdims=True)
    constant = spread <= ROUNDING * np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    return np.where(constant, 0.0, deviations / np.where(constant, 1.0, spread))


AGGREGATES: dict[str, Callable[[Floats], Floats]] = {
    "mean": mean_points,
    "borda": borda_points,
    "zscore": z_points,
}
"""The points of the models on each data set, by the name of the aggregate."""


@dataclass(frozen=True)
class AggregateScores:
    """One aggregate of all models: points per data set, their mean, and the mean of each resample.

    ``degrees`` are the degrees of freedom of the resampled standard errors. ``unit_intervals`` are the intervals of
    means over the units of a single data set, the same as in an evaluation of that data set.
    """

    by_dataset: Floats
    points: Floats
    resamples: Floats
    degrees: int
    confidence_level: float
    unit_intervals: tuple[Interval, ...] = ()

    @property
    def order(self) -> Ints:
        """The models from best to worst."""
        return order_by_score(self.points, Direction.UP)

    @property
    def small_sample(self) -> float:
        """The factor by which a bootstrap of n values understates a standard error."""
        return sqrt((self.degrees + 1) / self.degrees) if self.degrees else float("nan")

    def intervals(self) -> list[Interval]:
        """The interval of each model: that of its units, or Student's t with the bootstrap standard error."""
        if self.unit_intervals:
            return list(self.unit_intervals)
        if not self.degrees:
            reason = "one data set"
            return [Interval.unknown(reason, confidence_level=self.confidence_level) for _ in self.points]
        errors = self.resamples.std(axis=0) * self.small_sample
        return [
            t_interval(float(point), float(error), self.degrees, self.confidence_level, method="bootstrap t")
            for point, error in zip(self.points, errors, strict=True)
        ]

    def difference_interval(self, model: int, other: int) -> Interval:
        """The interval of one model minus another one, not adjusted for the number of pairs."""
        if not self.degrees:
            return Interval.unknown("one data set", confidence_level=self.confidence_level)
        error = float((self.resamples[:, model] - self.resamples[:, other]).std()) * self.small_sample
        difference = float(self.points[model] - self.points[other])
        return t_interval(difference, error, self.degrees, self.confidence_level, method="bootstrap t")

    @cached_property
    def separation(self) -> Ints:
        """1 where the model of the column is significantly better than that of the row, -1 where it is worse."""
        return significant_signs(
            self.points,
            self.resamples,
            n_values=self.degrees + 1,
            confidence_level=self.confidence_level,
        )

    @cached_property
    def rank_intervals(self) -> Ints:
        """The lowest and highest rank of each model: shape (models, 2)."""
        return rank_intervals(self.separation)


def significant_signs(scores: Floats, resamples: Floats, *, n_values: int, confidence_level: float) -> Ints:
    """1 where the system of the column is significantly better than that of the row, -1 where it is worse.

    Each system is compared with all others simultaneously: its critical value is the quantile of its largest
    absolute studentised difference over the resamples. (Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks",
    Review of Economic Studies, 2024.) Ranks counted in each resample would be too narrow for systems that are nearly
    equal. ``n_values`` values were resampled. A difference that is the same for all of them has no standard error, and
    is significant if their sign test is.
    """
    n_systems = len(scores)
    signs = np.zeros((n_systems, n_systems), dtype=np.int64)
    resamples = resamples[~np.isnan(resamples).any(axis=1)]
    if n_values < 2 or not len(resamples):
        return signs
    deviations = np.ascontiguousarray((resamples - resamples.mean(axis=0)).T)
    slack = ROUNDING * max(float(np.abs(resamples).max(initial=0.0)), 1e-300)
    sign_test_significant = 2.0 ** (1 - n_values) < round(1 - confidence_level, 12)
    small_sample = sqrt(n_values / (n_values - 1))  # a bootstrap of n values understates a standard error
    for system in range(n_systems):
        differences = deviations - deviations[system]
        errors = differences.std(axis=1)
        observed = scores - scores[system]
        varying = errors > slack
        significant = ~varying & (np.abs(observed) > slack) & sign_test_significant
        if varying.any():
            studentised = differences[varying] / errors[varying, np.newaxis]
            largest = np.abs(studentised, out=studentised).max(axis=0)
            critical = _t_critical(float(np.quantile(largest, confidence_level)), n_values, n_systems, confidence_level)
            significant[varying] = np.abs(observed[varying]) > critical * small_sample * errors[varying]
        signs[system] = np.sign(observed) * significant
    return signs


def _t_critical(normal: float, n_values: int, n_systems: int, confidence_level: float) -> float:
    """The critical value of a studentised difference, from the bootstrap quantile ``normal``.

    It is that of Student's t with the same tail. With fewer than 10 values, resamples repeat the same few means; there
    it is that of Student's t with Bonferroni's correction.
    """
    from scipy.special import ndtr, stdtrit

    tail = float(ndtr(-normal))
    if n_values < FEW_RESAMPLING_UNITS:
        tail = (1 - confidence_level) / 2 / (n_systems - 1)
    return float(-stdtrit(n_values - 1, tail))


def aggregate_scores(
    rows: Floats,
    units: Sequence[Floats] | None,
    resample: Resample,
    config: StatsConfig,
    *,
    bounds: Bounds = UNBOUNDED,
) -> dict[str, AggregateScores]:
    """Every aggregate of the scores (data sets, models), with resamples that all aggregates share.

    Parameters
    ----------
    rows
        Scores, one row per data set and one column per model. Higher is better.
    units
        Per-unit scores of each data set (units, models).
    resample
        ``datasets`` resamples data sets, ``units`` the units within the given data sets, ``both`` data sets and
        then the units within each of them.
    config
        Confidence level, number of resamples and seed.
    bounds
        The smallest and largest possible score.
    """
    if resample not in RESAMPLE_MODES:
        hint = did_you_mean(resample, RESAMPLE_MODES) or f"choose {', '.join(RESAMPLE_MODES)}"
        raise ParameterError(f"resample={resample!r} is not known", hint=hint)
    if resample != "datasets" and units is None:
        raise ParameterError(
            f"resample={resample!r} needs the score of every unit, and some data sets have only one score per model",
            hint="give a table with columns for model, data set, unit and score, or resample data sets",
        )
    points = {name: transform(rows) for name, transform in AGGREGATES.items()}
    rng = config.rng(23)
    if resample == "datasets" or units is None:
        columns = np.hstack(list(points.values()))
        means = bootstrap_sums(columns, config.n_resamples, rng) / len(rows)
        resamples = dict(zip(points, np.split(means, len(points), axis=1), strict=True))
    else:
        resamples = _resampled_units(units, resample, config.n_resamples, rng)
    degrees = len(rows) - 1
    if resample == "units" and units is not None:
        degrees = sum(len(values) - 1 for values in units)
    scores = {
        name: AggregateScores(totals, totals.mean(axis=0), resamples[name], degrees, config.confidence_level)
        for name, totals in points.items()
    }
    if resample == "units" and units is not None and len(units) == 1:
        intervals = mean_intervals(
            units[0],
            bounds=[bounds] * rows.shape[1],
            config=config,
            rng=config.rng(0),
        )
        scores["mean"] = replace(scores["mean"], unit_intervals=tuple(intervals))
    return scores


def _resampled_units(
    units: Sequence[Floats], resample: Resample, n_resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Every aggregate of resampled units, in the given data sets or in resampled ones."""
    n_datasets, n_models = len(units), units[0].shape[1]
    chosen = np.tile(np.arange(n_datasets), (n_resamples, 1))
    if resample == "both":
        chosen = rng.integers(0, n_datasets, size=(n_resamples, n_datasets))
    sums = {name: np.zeros((n_resamples, n_models)) for name in AGGREGATES}
    for dataset, values in enumerate(units):
        # A data set that is chosen twice in a resample has its units resampled twice, independently.
        members = np.nonzero(chosen == dataset)[0]
        means = bootstrap_sums(values, max(len(members), 1), rng)[: len(members)] / len(values)
        for name, transform in AGGREGATES.items():
            np.add.at(sums[name], members, transform(means))
    return {name: total / n_datasets for name, total in sums.items()}


@dataclass(frozen=True, slots=True)
class AdjacentPair:
    """Two models at adjacent ranks: the difference of their points, p and adjusted p."""

    better: int
    worse: int
    difference: float
    p: float
    p_adjusted: float


def adjacent_pairs(
    scores: AggregateScores, units: Sequence[Floats] | None, resample: Resample, config: StatsConfig
) -> tuple[AdjacentPair, ...]:
    """The paired test of every two models at adjacent ranks, corrected for their number.

    The test compares the points on each data set. With ``resample="units"`` the data sets are fixed and it
    compares units, which are weighted so that every data set counts equally.
    """
    pairs = list(pairwise(scores.order.tolist()))
    if not pairs:
        return ()
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    rows, weights = scores.by_dataset, None
    if resample == "units" and units is not None:
        rows = np.vstack(list(units))
        weights = np.concatenate([np.full(len(values), 1.0 / len(values)) for values in units])
    p = run_test(
        config.test,
        rows[:, first] - rows[:, second],
        weights=weights,
        n_permutations=config.n_permutations,
        rng=config.rng(24),
    )
    adjusted = adjust(p, config.correction)
    differences = scores.points[first] - scores.points[second]
    return tuple(
        AdjacentPair(better, worse, float(difference), float(p_value), float(adjusted_p))
        for (better, worse), difference, p_value, adjusted_p in zip(pairs, differences, p, adjusted, strict=True)
    )


@dataclass(frozen=True, slots=True)
class OrderChange:
    """Another order of the models: Kendall's tau with the order of the leaderboard, and the first model.

    ``moved`` is the model whose rank changes most, from ``rank`` to ``new_rank``.
    """

    tau: float
    first: int
    moved: int
    rank: int
    new_rank: int


def order_change(points: Floats, other: Floats) -> OrderChange:
    """How the order by ``other`` differs from the order by ``points``."""
    ranks, new_ranks = _ranks(points), _ranks(other)
    moved = int(np.argmax(np.abs(ranks - new_ranks)))
    first = int(order_by_score(other, Direction.UP)[0])
    return OrderChange(kendall_tau(points, other), first, moved, int(ranks[moved]), int(new_ranks[moved]))


def leave_one_out(scores: AggregateScores, rows: Floats, aggregate: str) -> tuple[OrderChange, ...]:
    """The order without each data set; empty if there is only one."""
    if len(rows) < 2:
        return ()
    points = AGGREGATES[aggregate](rows)
    return tuple(
        order_change(scores.points, np.delete(points, dataset, axis=0).mean(axis=0)) for dataset in range(len(rows))
    )


def kendall_tau(a: Floats, b: Floats) -> float:
    """Kendall's tau-b of two sets of scores; NaN if one of them is constant.

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).__round__(3)
    0.333
    """
    signs_a, signs_b = (np.sign(np.subtract.outer(side, side)) for side in (a, b))
    scale = float(np.abs(signs_a).sum()) * float(np.abs(signs_b).sum())
    return float((signs_a * signs_b).sum() / sqrt(scale)) if scale else float("nan")


def median_ranks(rows: Floats) -> Floats:
    """The median over data sets of the rank of each model; tied models share the mean of their ranks."""
    return np.asarray(np.median(rows.shape[1] - borda_points(rows), axis=0))


def first_places(rows: Floats) -> Ints:
    """On how many data sets each model has the best score; tied models all count."""
    return np.asarray((rows == rows.max(axis=1, keepdims=True)).sum(axis=0), dtype=np.int64)


def _ranks(points: Floats) -> Ints:
    """The position of each model in the order from best to worst."""
    order = order_by_score(points, Direction.UP)
    ranks = np.empty(len(points), dtype=np.int64)
    ranks[order] = np.arange(1, len(points) + 1)
    return ranks
