"""Metrics of pairs with binary labels: average precision, and F1 at a threshold that is chosen on other pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from equipoise.evidence.pairs import Pairs
from equipoise.metrics.base import CorpusMetric

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats

FOLDS = 5


def average_precision(scores: Floats, positive: Bools) -> float:
    """Precision at each distinct threshold, weighted by the recall that the threshold adds; NaN without positives.

    Equal scores have one threshold, as in ``sklearn.metrics.average_precision_score``.

    >>> average_precision(np.array([0.9, 0.8, 0.1]), np.array([True, False, True])).__round__(4)
    0.8333
    """
    if not positive.any():
        return nan
    order = np.argsort(-scores, kind="stable")
    values, hits = scores[order], np.cumsum(positive[order])
    last = np.append(values[1:] != values[:-1], True)
    found, retrieved = hits[last], np.flatnonzero(last) + 1
    return float((np.diff(found, prepend=0) * (found / retrieved)).sum() / found[-1])


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
    """Average precision of the pairs ordered by predicted similarity; a pair is positive if more than 0 is expected.

    From 0 to 1; undefined without positive pairs. The chance level is about the share of positive pairs.

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
    """F1 of the positive pairs, where the threshold of each fold has the largest F1 on the other folds.

    From 0 to 1; undefined without positive pairs. The fold of a pair follows from its id, so that copies of a pair in
    a bootstrap resample are never on both sides.

    >>> pairs = Pairs.of(np.arange(40) / 40, np.arange(40) >= 20)
    >>> ThresholdF1().measure(pairs).value > 0.9
    True
    """

    symbol = "F1"
    title = "F1 of pairs, threshold chosen on other folds"
    evidence = Pairs
    aliases = ("f1", "f1_score")
    formula = r"\frac{2\,TP}{2\,TP + FP + FN}"
    undefined = "no positive pair, or fewer pairs than folds"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def value(self, evidence: Pairs) -> float:
        """F1 over the pooled predictions of all folds."""
        positive = evidence.expected > 0
        folds = np.array([crc32(str(unit).encode()) % FOLDS for unit in evidence.unit_ids.tolist()])
        if not positive.any() or len(np.unique(folds)) < 2:
            return nan
        predicted = np.zeros(len(evidence), dtype=bool)
        for fold in np.unique(folds):
            test = folds == fold
            threshold = best_f1_threshold(evidence.predicted[~test], positive[~test])
            predicted[test] = evidence.predicted[test] > threshold
        hits = int((predicted & positive).sum())
        return 2 * hits / (int(predicted.sum()) + int(positive.sum()))


METRICS = (PairAveragePrecision, ThresholdF1)
