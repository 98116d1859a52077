"""Metrics of ``Labels``: accuracy, precision, recall and F1 of classes, and agreement of clusters with classes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from equipoise.errors import ParameterError
from equipoise.evidence.labels import Labels
from equipoise.metrics.base import CorpusMetric, UnitMetric

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

ClassAverage = Literal["weighted", "macro", "micro"]


@dataclass(frozen=True)
class Accuracy(UnitMetric[Labels]):
    """1 for a unit whose predicted class is the true one, else 0.

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
    """For each class, twice its correctly predicted units over its true plus its predicted units; then averaged.

    From 0 to 1. Frequent classes dominate weighted F1. Macro F1 weights all classes equally; micro F1 is accuracy.

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
    """For each class, its correctly predicted units over all units predicted as this class; then averaged.

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
    """For each class, its correctly predicted units over all its units; then averaged.

    From 0 to 1. Weighted recall is accuracy; macro recall weights all classes equally.

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


# Agreement of clusters with classes, independent of the names of the clusters.

FEWEST_PAIRS = 5
"""With fewer pairs of units that share class and cluster, the adjusted Rand index has no interval."""
MAX_CLASSES = 64
"""Up to this many classes and clusters, every cell of the contingency table is counted."""

Normaliser = Literal["arithmetic", "geometric", "min", "max"]


class Contingency(NamedTuple):
    """The number of units in each occupied cell of class by cluster, in each class, in each cluster."""

    cells: Ints
    classes: Ints
    clusters: Ints


def contingency(labels: Labels) -> Contingency:
    """The occupied part of the contingency table, and its non-zero margins."""
    size = len(labels.classes)
    codes = labels.true * size + labels.predicted
    # 120 units and 11 classes: 7 microseconds, and 58 with np.unique, which sorts the codes.
    cells = np.bincount(codes) if size <= MAX_CLASSES else np.unique(codes, return_counts=True)[1]
    cells = cells[cells > 0]
    margins = (np.bincount(codes, minlength=size) for codes in (labels.true, labels.predicted))
    return Contingency(cells, *(side[side > 0] for side in margins))


def entropy(counts: Ints) -> float:
    """The entropy of a partition in nats; exactly 0 for a single part."""
    if len(counts) < 2:
        return 0.0
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


class Entropies(NamedTuple):
    """Mutual information of two partitions, and their entropies."""

    shared: float
    classes: float
    clusters: float

    @classmethod
    def of(cls, labels: Labels) -> Entropies:
        """From the contingency table; H(C) + H(K) - H(C, K), never below 0."""
        table = contingency(labels)
        classes, clusters = entropy(table.classes), entropy(table.clusters)
        return cls(max(0.0, classes + clusters - entropy(table.cells)), classes, clusters)


def _ratio(part: float, total: float) -> float:
    """``part / total`` within 0 and 1; NaN for 0/0."""
    return min(1.0, part / total) if total > 0 else nan


class AgreementMetric(CorpusMetric[Labels]):
    """Agreement of clusters with classes. A unit that is resampled twice always agrees with itself."""

    evidence = Labels
    needs_distinct_units = True


@dataclass(frozen=True)
class AdjustedRand(AgreementMetric):
    """The number of pairs of units that are together in both partitions, adjusted for chance: (number - expected) /
    (maximum - expected).

    At most 1; the chance level is exactly 0, and lower values are possible. Names of clusters do not matter.

    >>> AdjustedRand().measure(Labels.of([0, 0, 1, 1], [5, 5, 7, 7])).value
    1.0
    """

    symbol = "ARI"
    title = "adjusted Rand index"
    aliases = ("ari", "adjusted_rand_score", "adjusted_rand_index")
    zero_by_chance = True
    bounds = (-0.5, 1.0)
    unit = "index"
    formula = r"\frac{\sum_{ij} \binom{n_{ij}}{2} - E}{\frac{1}{2}(A + B) - E}, E = AB / \binom{n}{2}"
    undefined = "fewer than two units, or both partitions trivial (one cluster, or one cluster per unit): 0/0"
    cite = "Hubert and Arabie, Journal of Classification 2, 1985"

    def value(self, evidence: Labels) -> float:
        """The index; NaN if every partition gives the value expected by chance."""
        table = contingency(evidence)
        in_both, classes, clusters = (int((counts * (counts - 1)).sum()) / 2 for counts in table)
        pairs = len(evidence) * (len(evidence) - 1) / 2
        expected = classes * clusters / pairs if pairs else 0.0
        most = (classes + clusters) / 2
        return (in_both - expected) / (most - expected) if most != expected else nan

    def why_no_interval(self, evidence: Labels) -> str:
        """The reason if few pairs share class and cluster: resamples then show no spread."""
        cells = contingency(evidence).cells
        few = (cells * (cells - 1)).sum() / 2 < FEWEST_PAIRS
        return f"fewer than {FEWEST_PAIRS} pairs of units share class and cluster" if few else ""


@dataclass(frozen=True)
class MutualInformation(AgreementMetric):
    """Mutual information of classes and clusters, over the mean of their entropies.

    From 0 to 1. ``normaliser`` names the mean; with the arithmetic one it equals V-measure. Not adjusted for
    chance: many small clusters score above 0 by chance alone.

    >>> round(MutualInformation().measure(Labels.of([0, 0, 1, 1], [0, 0, 1, 2])).value, 4)
    0.8
    """

    normaliser: Normaliser = "arithmetic"

    symbol = "NMI"
    title = "normalised mutual information"
    aliases = ("nmi", "normalized_mutual_info_score", "normalised_mutual_information")
    unit = "index"
    formula = r"\frac{I(C; K)}{\mathrm{mean}(H(C), H(K))}"
    undefined = "a mean entropy of 0"
    cite = "Strehl and Ghosh, Journal of Machine Learning Research 3, 2002"

    def value(self, evidence: Labels) -> float:
        """The share of the mean entropy that both have in common."""
        shared, classes, clusters = Entropies.of(evidence)
        means = {
            "arithmetic": (classes + clusters) / 2,
            "geometric": float(np.sqrt(classes * clusters)),
            "min": min(classes, clusters),
            "max": max(classes, clusters),
        }
        return _ratio(shared, means[self.normaliser])


@dataclass(frozen=True)
class Homogeneity(AgreementMetric):
    """The share of the classes' entropy that the clusters explain: 1 when each cluster holds one class only.

    From 0 to 1. One cluster per unit is perfectly homogeneous, so report it together with completeness.

    >>> round(Homogeneity().measure(Labels.of([0, 0, 1, 1], [0, 0, 1, 2])).value, 4)
    1.0
    """

    symbol = "Homogeneity"
    title = "homogeneity of clusters"
    aliases = ("homogeneity", "homogeneity_score")
    unit = "index"
    formula = r"I(C; K) / H(C)"
    undefined = "a single true class"
    cite = "Rosenberg and Hirschberg, EMNLP-CoNLL 2007"

    def value(self, evidence: Labels) -> float:
        """Mutual information over the entropy of the classes."""
        information = Entropies.of(evidence)
        return _ratio(information.shared, information.classes)


@dataclass(frozen=True)
class Completeness(AgreementMetric):
    """The share of the clusters' entropy that the classes explain: 1 when each class is in one cluster only.

    From 0 to 1. Report it together with homogeneity.

    >>> round(Completeness().measure(Labels.of([0, 0, 1, 1], [0, 0, 1, 2])).value, 4)
    0.6667
    """

    symbol = "Completeness"
    title = "completeness of clusters"
    aliases = ("completeness", "completeness_score")
    unit = "index"
    formula = r"I(C; K) / H(K)"
    undefined = "a single cluster"
    cite = "Rosenberg and Hirschberg, EMNLP-CoNLL 2007"

    def value(self, evidence: Labels) -> float:
        """Mutual information over the entropy of the clusters."""
        information = Entropies.of(evidence)
        return _ratio(information.shared, information.clusters)


@dataclass(frozen=True)
class VMeasure(AgreementMetric):
    """Weighted harmonic mean of homogeneity and completeness, (1 + beta) h c / (beta h + c).

    From 0 to 1. ``beta`` above 1 favours completeness. A single cluster over several classes scores 0. Not adjusted
    for chance.

    >>> round(VMeasure().measure(Labels.of([0, 0, 1, 1], [0, 0, 1, 2])).value, 4)
    0.8
    """

    beta: float = 1.0

    symbol = "V"
    title = "V-measure"
    aliases = ("V-measure", "VMeasure", "v_measure", "v_measure_score")
    unit = "index"
    formula = r"\frac{(1 + \beta)\, I(C; K)}{\beta\, H(K) + H(C)}"
    undefined = "a single true class in a single cluster"
    cite = "Rosenberg and Hirschberg, EMNLP-CoNLL 2007"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.beta > 0:
            raise ParameterError(f"beta is {self.beta} in V", hint="beta must be above 0")

    def value(self, evidence: Labels) -> float:
        """The harmonic mean, written with entropies."""
        shared, classes, clusters = Entropies.of(evidence)
        return _ratio((1 + self.beta) * shared, self.beta * clusters + classes)


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
