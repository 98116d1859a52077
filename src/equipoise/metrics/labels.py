"""Classification metrics of ``Labels``: accuracy, precision, recall and F1."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from equipoise.evidence.labels import Labels
from equipoise.metrics.base import CorpusMetric, UnitMetric
from equipoise.metrics.clustering import AdjustedRand, Completeness, Homogeneity, MutualInformation, VMeasure

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

ClassAverage = Literal["weighted", "macro", "micro"]


@dataclass(frozen=True)
class Accuracy(UnitMetric[Labels]):
    """1 for a unit whose predicted class is the true one, else 0.

    From 0 to 1. Chance is the share of agreement between the two columns when one is shuffled.

    >>> Accuracy().measure(Labels.of(["a", "b", "b", "b"], ["a", "b", "b", "a"])).value
    0.75
    """

    symbol = "Acc"
    title = "accuracy"
    evidence = Labels
    aliases = ("accuracy", "accuracy_score")
    formula = r"\frac{1}{n} \sum_i [\hat y_i = y_i]"
    undefined = "no units"

    def per_unit(self, evidence: Labels) -> Floats:
        """1 or 0 for each unit."""
        right: Bools = evidence.true == evidence.predicted
        return right.astype(np.float64)

    def chance(self, evidence: Labels, rng: np.random.Generator) -> float:
        """The mean over all permutations: the probability that two independent samples agree."""
        counts = class_counts(evidence)
        return float(counts.support @ counts.predicted) / len(evidence) ** 2 if len(evidence) else nan


class ClassCounts(NamedTuple):
    """For each class: units of it, units called it, and units rightly called it."""

    support: Ints
    predicted: Ints
    right: Ints


def class_counts(labels: Labels) -> ClassCounts:
    """The margins and the diagonal of the confusion matrix, without the matrix."""
    size = len(labels.classes)
    agreed = labels.true[labels.true == labels.predicted]
    return ClassCounts(*(np.bincount(codes, minlength=size) for codes in (labels.true, labels.predicted, agreed)))


def _shares(part: Ints, total: Ints) -> Floats:
    """``part / total``, and 0 for 0/0."""
    return np.divide(part, total, out=np.zeros(len(total)), where=total > 0)


@dataclass(frozen=True)
class ClassAverageMetric(CorpusMetric[Labels]):
    """A score of each class, averaged over the classes that are true or predicted somewhere.

    ``weighted`` counts a class by its true units, ``macro`` weights all classes equally, ``micro`` pools units first.
    """

    average: ClassAverage = "weighted"

    evidence = Labels
    undefined = "no units; a class of 0/0 counts as 0"

    @abstractmethod
    def by_class(self, counts: ClassCounts) -> Floats:
        """The score of each class; 0 for 0/0."""

    def value(self, evidence: Labels) -> float:
        """The average; NaN if there are no units."""
        if not len(evidence):
            return nan
        counts = class_counts(evidence)
        if self.average == "micro":
            return float(self.by_class(ClassCounts(*(np.array([side.sum()]) for side in counts)))[0])
        occurs = (counts.support > 0) | (counts.predicted > 0)
        weights = counts.support[occurs] if self.average == "weighted" else None
        return float(np.average(self.by_class(counts)[occurs], weights=weights))


@dataclass(frozen=True)
class ClassF1(ClassAverageMetric):
    """For a class, twice its correctly predicted units over its true plus its predicted units; then averaged.

    From 0 to 1; 0 where 0/0. Weighted F1 lets frequent classes dominate, macro does not; micro is accuracy.

    >>> labels = Labels.of(["a", "a", "b", "b"], ["a", "a", "a", "b"])
    >>> round(ClassF1().measure(labels).value, 4), ClassF1(average="micro").measure(labels).value
    (0.7333, 0.75)
    """

    symbol = "F1"
    title = "F1 over classes"
    aliases = ("f1", "f1_score", "F1-score")
    formula = r"\sum_c w_c \frac{2\,TP_c}{2\,TP_c + FP_c + FN_c}"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def by_class(self, counts: ClassCounts) -> Floats:
        """Dice overlap of true and predicted units."""
        return _shares(2 * counts.right, counts.support + counts.predicted)


@dataclass(frozen=True)
class ClassPrecision(ClassAverageMetric):
    """For a class, its correctly predicted units over all units predicted as it; then averaged.

    From 0 to 1; 0 for a class that is never predicted.

    >>> ClassPrecision(average="macro").measure(Labels.of(["a", "a", "b", "b"], ["a", "a", "b", "a"])).value
    0.8333333333333333
    """

    symbol = "P"
    title = "precision over classes"
    aliases = ("Precision", "precision", "precision_score")
    formula = r"\sum_c w_c \frac{TP_c}{TP_c + FP_c}"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def by_class(self, counts: ClassCounts) -> Floats:
        """Right among predicted."""
        return _shares(counts.right, counts.predicted)


@dataclass(frozen=True)
class ClassRecall(ClassAverageMetric):
    """For a class, its correctly predicted units over all its units; then averaged.

    From 0 to 1; weighted recall is accuracy, macro recall gives a rare class the weight of a frequent one.

    >>> ClassRecall(average="macro").measure(Labels.of(["a", "a", "b", "b"], ["a", "a", "b", "a"])).value
    0.75
    """

    symbol = "R"
    title = "recall over classes"
    aliases = ("Recall", "recall", "recall_score")
    formula = r"\sum_c w_c \frac{TP_c}{TP_c + FN_c}"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def by_class(self, counts: ClassCounts) -> Floats:
        """Right among true."""
        return _shares(counts.right, counts.support)


METRICS = (
    Accuracy,
    ClassF1,
    ClassPrecision,
    ClassRecall,
    AdjustedRand,
    MutualInformation,
    VMeasure,
    Homogeneity,
    Completeness,
)
