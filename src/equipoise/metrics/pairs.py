"""Metrics of pairs: correlation and error of predicted and expected similarities, and binary classification."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from equipoise.errors import ParameterError
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.segments import average_ranks
from equipoise.metrics.base import DOWN, CorpusMetric, UnitMetric

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats

ROUNDING = 1e-9
"""Tolerance for binary rounding: 0.8 - 0.7 is slightly more than 0.1."""


def correlation(x: Floats, y: Floats) -> float:
    """Pearson's product-moment correlation; NaN for fewer than two points or a constant column."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return nan
    # Scaled before squaring, against underflow and overflow.
    x, y = (values / np.abs(values).max() for values in (x - x.mean(), y - y.mean()))
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _resampled_correlations(x: Floats, y: Floats, counts: Floats) -> Floats:
    """``correlation`` of each resample, which has each point ``counts`` times. All shapes are (resamples, points)."""
    n_points, is_present = counts.sum(axis=1), counts > 0
    deviations = []
    for values in (x, y):
        largest = np.max(values, axis=1, where=is_present, initial=-inf)
        is_constant = largest == np.min(values, axis=1, where=is_present, initial=inf)
        centred = np.where(is_present, values - ((counts * values).sum(axis=1) / n_points)[:, None], 0.0)
        scale = np.where(is_constant, nan, np.abs(centred).max(axis=1))
        deviations.append(centred / scale[:, None])
    x, y = deviations
    product, x_squares, y_squares = ((counts * values).sum(axis=1) for values in (x * y, x * x, y * y))
    return np.clip(product / np.sqrt(x_squares * y_squares), -1.0, 1.0)


def _resampled_ranks(x: Floats, counts: Floats) -> Floats:
    """The average rank of every point in each resample, (resamples, points); the points are sorted once."""
    order = np.argsort(x, kind="stable")
    is_first = np.concatenate([[True], np.diff(x[order]) != 0])
    times = np.add.reduceat(counts[:, order], np.flatnonzero(is_first), axis=1)
    ranks = np.cumsum(times, axis=1) - (times - 1) / 2
    group = np.empty(len(x), dtype=np.int64)
    group[order] = np.cumsum(is_first) - 1
    return np.asarray(ranks[:, group])


class CorrelationMetric(CorpusMetric[Pairs]):
    """A correlation of predicted and expected similarities.

    From -1 to 1; undefined where either side is constant. Chance is exactly 0.
    """

    evidence = Pairs
    zero_by_chance = True
    bounds = (-1.0, 1.0)
    unit = "correlation"
    undefined = "fewer than two pairs, or similarities that are all the same on one side"


@dataclass(frozen=True)
class Pearson(CorrelationMetric):
    """Covariance of predicted and expected similarities, over the product of their standard deviations.

    From -1 to 1; undefined where either side is constant. Chance is exactly 0.

    >>> Pearson().measure(Pairs.of([0.1, 0.4, 0.7], [0.0, 0.5, 1.0])).value
    1.0
    """

    symbol = "Pearson"
    title = "Pearson correlation"
    aliases = ("pearson", "pearsonr", "correlation")
    formula = r"\frac{\sum_i (p_i - \bar p)(e_i - \bar e)}{\sqrt{\sum_i (p_i - \bar p)^2 \sum_i (e_i - \bar e)^2}}"
    cite = "Pearson, Proceedings of the Royal Society 58, 1895"

    def value(self, evidence: Pairs) -> float:
        """The correlation of the two columns."""
        return correlation(evidence.predicted, evidence.expected)

    def of_counts(self, evidence: Pairs, counts: Floats) -> Floats:
        """The correlation of each resample; see ``CountMetric``."""
        x, y = (np.broadcast_to(column, counts.shape) for column in (evidence.predicted, evidence.expected))
        return _resampled_correlations(x, y, counts)


@dataclass(frozen=True)
class Spearman(CorrelationMetric):
    """Pearson's correlation of the ranks of predicted and expected similarities; equal values share a rank.

    From -1 to 1; undefined where either side is constant. Chance is exactly 0.

    >>> Spearman().measure(Pairs.of([0.1, 0.2, 0.9], [0.0, 0.5, 1.0])).value
    1.0
    """

    symbol = "Spearman"
    title = "Spearman rank correlation"
    aliases = ("spearman", "spearmanr", "rho")
    formula = r"\mathrm{Pearson}(\mathrm{rank}(p), \mathrm{rank}(e))"
    cite = "Spearman, American Journal of Psychology 15, 1904"

    def value(self, evidence: Pairs) -> float:
        """The correlation of the two columns' average ranks."""
        return correlation(average_ranks(evidence.predicted), average_ranks(evidence.expected))

    def of_counts(self, evidence: Pairs, counts: Floats) -> Floats:
        """The correlation of each resample; see ``CountMetric``."""
        x, y = (_resampled_ranks(column, counts) for column in (evidence.predicted, evidence.expected))
        return _resampled_correlations(x, y, counts)


@dataclass(frozen=True)
class MeanAbsoluteError(UnitMetric[Pairs]):
    """Mean absolute difference between predicted and expected similarity.

    Unlike a correlation, it depends on the scale of the model's similarities.

    >>> MeanAbsoluteError().measure(Pairs.of([0.5, 1.0], [0.75, 1.0])).value
    0.125
    """

    symbol = "MAE"
    title = "mean absolute error"
    evidence = Pairs
    aliases = ("mae", "mean_absolute_error")
    bounds = (0.0, inf)
    better = DOWN
    unit = "similarity"
    formula = r"\frac{1}{n} \sum_i |p_i - e_i|"
    undefined = "no pairs"
    cite = "Willmott and Matsuura, Climate Research 30, 2005"

    def per_unit(self, evidence: Pairs) -> Floats:
        """The absolute error of each pair."""
        return np.abs(evidence.predicted - evidence.expected)


@dataclass(frozen=True)
class RootMeanSquaredError(CorpusMetric[Pairs]):
    """Square root of the mean squared difference between predicted and expected similarity.

    Never below the mean absolute error, and above it if the errors are unequal.

    >>> RootMeanSquaredError().measure(Pairs.of([0.5, 0.0], [0.5, 1.0])).value
    0.7071067811865476
    """

    symbol = "RMSE"
    title = "root mean squared error"
    evidence = Pairs
    aliases = ("rmse", "root_mean_squared_error")
    bounds = (0.0, inf)
    better = DOWN
    unit = "similarity"
    formula = r"\sqrt{\frac{1}{n} \sum_i (p_i - e_i)^2}"
    undefined = "no pairs"
    cite = "Willmott and Matsuura, Climate Research 30, 2005"

    def value(self, evidence: Pairs) -> float:
        """The root of the mean square; NaN if there are no pairs."""
        if not len(evidence):
            return nan
        return float(np.sqrt(np.mean((evidence.predicted - evidence.expected) ** 2)))


@dataclass(frozen=True)
class WithinTolerance(UnitMetric[Pairs]):
    """1 for a pair whose predicted similarity is at most ``tolerance`` from the expected one, else 0.

    From 0 to 1. A difference of exactly the tolerance counts as within.

    >>> WithinTolerance().measure(Pairs.of([0.8, 0.1], [0.7, 0.9])).value
    0.5
    """

    tolerance: float = 0.1

    symbol = "Within"
    title = "share of pairs within the tolerance"
    evidence = Pairs
    aliases = ("within", "similarity_accuracy")
    formula = r"\frac{1}{n} \sum_i [\,|p_i - e_i| \le t\,]"
    undefined = "no pairs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tolerance >= 0:
            raise ParameterError(f"{self.symbol} has a tolerance of {self.tolerance}", hint="it is 0 or more")

    def per_unit(self, evidence: Pairs) -> Floats:
        """1 or 0 for each pair."""
        near = np.abs(evidence.predicted - evidence.expected) <= self.tolerance + ROUNDING
        return near.astype(np.float64)


# Pairs with binary labels: average precision, and F1 at a threshold that is chosen on other pairs.

THRESHOLD_FOLDS = 5


def average_precision(scores: Floats, positive: Bools) -> float:
    """Precision at each distinct threshold, weighted by the recall that the threshold adds.

    NaN if there are no positives. Equal scores have one threshold, as in ``sklearn.metrics.average_precision_score``.

    >>> average_precision(np.array([0.9, 0.8, 0.1]), np.array([True, False, True])).__round__(4)
    0.8333
    """
    if not positive.any():
        return nan
    order = np.argsort(-scores, kind="stable")
    values, hits = scores[order], np.cumsum(positive[order])
    last = np.append(values[1:] != values[:-1], True)
    n_hits, retrieved = hits[last], np.flatnonzero(last) + 1
    return float((np.diff(n_hits, prepend=0) * (n_hits / retrieved)).sum() / n_hits[-1])


def best_f1_threshold(scores: Floats, positive: Bools) -> float:
    """The threshold with the largest F1: halfway to the next smaller score, minus infinity if all are positive.

    >>> best_f1_threshold(np.array([0.9, 0.7, 0.1]), np.array([True, True, False])).__round__(4)
    0.4
    """
    order = np.argsort(-scores, kind="stable")
    values, hits = scores[order], np.cumsum(positive[order])
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    f1 = 2 * hits[last] / (last + 1 + max(int(positive.sum()), 1))
    best = int(last[np.argmax(f1)])
    return float((values[best] + values[best + 1]) / 2) if best + 1 < len(values) else -np.inf


@dataclass(frozen=True)
class PairAveragePrecision(CorpusMetric[Pairs]):
    """Average precision of the pairs in the order of predicted similarity.

    A pair is positive if its expected similarity is above 0. From 0 to 1; undefined without positive pairs. The chance
    level is about the share of positive pairs.

    >>> PairAveragePrecision().measure(Pairs.of([0.9, 0.4, 0.2], [1, 0, 1])).value.__round__(4)
    0.8333
    """

    symbol = "AP"
    title = "average precision of pairs"
    evidence = Pairs
    aliases = ("average_precision", "average_precision_score")
    formula = r"\sum_t (R_t - R_{t-1}) P_t"
    undefined = "no positive pair"
    cite = "Buckley and Voorhees 2000"

    def value(self, evidence: Pairs) -> float:
        """The area under the steps of precision over recall."""
        return average_precision(evidence.predicted, evidence.expected > 0)


@dataclass(frozen=True)
class ThresholdF1(CorpusMetric[Pairs]):
    """F1 of the positive pairs; the threshold of each fold is the one with the largest F1 on the other folds.

    From 0 to 1; undefined without positive pairs. The fold of a pair follows from its id, so that all copies of a pair
    in a bootstrap resample are in the same fold.

    >>> pairs = Pairs.of(np.arange(40) / 40, np.arange(40) >= 20)
    >>> ThresholdF1().measure(pairs).value > 0.9
    True
    """

    symbol = "F1"
    title = "F1 of pairs, threshold chosen on other folds"
    evidence = Pairs
    aliases = ("f1", "f1_score")
    formula = r"\frac{2\,TP}{2\,TP + FP + FN}"
    undefined = "no positive pair, or all pairs in one fold"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def value(self, evidence: Pairs) -> float:
        """F1 over the pooled predictions of all folds."""
        positive = evidence.expected > 0
        folds = np.array([crc32(str(unit).encode()) % THRESHOLD_FOLDS for unit in evidence.unit_ids.tolist()])
        if not positive.any() or len(np.unique(folds)) < 2:
            return nan
        predicted = np.zeros(len(evidence), dtype=bool)
        for fold in np.unique(folds):
            test = folds == fold
            threshold = best_f1_threshold(evidence.predicted[~test], positive[~test])
            predicted[test] = evidence.predicted[test] > threshold
        hits = int((predicted & positive).sum())
        return 2 * hits / (int(predicted.sum()) + int(positive.sum()))


METRICS = (
    Pearson,
    Spearman,
    MeanAbsoluteError,
    RootMeanSquaredError,
    WithinTolerance,
    PairAveragePrecision,
    ThresholdF1,
)
