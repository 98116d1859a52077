"""Precision, recall and F1 of the terms found in documents, strict or with credit for near misses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from equipoise.evidence.sets import Sets
from equipoise.metrics.base import Measurement, UnitMetric
from equipoise.metrics.deals import dealt, dealt_orders, expected_hits
from equipoise.metrics.overlap import Mode, Overlap, overlap
from equipoise.types import Floats, Ints

OverDocuments = Literal["micro", "macro", "weighted"]
AVERAGES: tuple[OverDocuments, ...] = get_args(OverDocuments)
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class SetScore(UnitMetric[Sets]):
    """A ratio of hits in each document, averaged over documents.

    ``micro`` pools the entries of all documents first; ``macro`` is the mean over documents; ``weighted``
    is the mean by number of gold entries. 0/0 is undefined and left out.
    """

    average: OverDocuments = "micro"
    mode: Mode = "strict"
    soft: bool = False

    evidence = Sets

    @abstractmethod
    def ratio(self, counts: Overlap) -> Floats:
        """The score of each document; NaN for 0/0."""

    def per_unit(self, evidence: Sets) -> Floats:
        """The score of each document; NaN for 0/0, and where ``weighted`` gives it no weight."""
        counts = overlap(evidence, self.mode, soft=self.soft)
        values = self.ratio(counts)
        return np.where(counts.gold > 0, values, np.nan) if self.average == "weighted" else values

    def weights(self, evidence: Sets) -> Floats | None:
        """Gold counts for the weighted average."""
        if self.average != "weighted":
            return None
        return overlap(evidence, self.mode, soft=self.soft).gold.astype(np.float64)

    def addends(self, evidence: Sets) -> Floats:
        """What each document adds to the sums that the micro average is a function of: a row a document."""
        counts = overlap(evidence, self.mode, soft=self.soft)
        return np.column_stack([np.asarray(side, dtype=np.float64) for side in counts])

    def of_sums(self, sums: Floats) -> Floats:
        """The micro average of each row of sums; NaN for 0/0."""
        return self.ratio(Overlap(*sums.T))

    @property
    def chance_stream(self) -> str:
        """One for all scores of sets: the same deals, so that their chance levels fit together."""
        return "sets"

    def chance(self, evidence: Sets, rng: np.random.Generator) -> float:
        """What the same predicted sets would score if they were dealt to the documents at random.

        Of exact micro scores it is computed and not drawn; the soft ones add to it what near misses earn.
        """
        if not len(evidence):
            return float("nan")
        deals = dealt_orders(len(evidence), rng)
        counts = dealt(evidence, self.mode, deals, soft=self.soft)
        if self.average != "micro":
            values = self.ratio(counts)
            shares = counts.gold if self.average == "weighted" else np.ones_like(counts.gold)
            return _mean_of_means(values, np.where(np.isnan(values), 0, shares))
        hits = expected_hits(evidence, self.mode)
        if self.soft:
            exact = dealt(evidence, self.mode, deals, soft=False)
            hits += float((counts.hits - exact.hits).sum(axis=1).mean())
        return float(self.of_sums(np.array([[hits, counts.gold[0].sum(), counts.predicted[0].sum()]]))[0])

    def measure(self, evidence: Sets) -> Measurement:
        """The average. Micro has no per-document parts: how much a document counts there depends on the
        system as well, so that two systems could not be paired by document."""
        if self.average != "micro":
            return super().measure(evidence)
        return Measurement(float(self.of_sums(self.addends(evidence).sum(axis=0, keepdims=True))[0]))


def _mean_of_means(values: Floats, weights: Floats) -> float:
    """The mean over rows of each row's weighted mean; rows without weight are left out."""
    totals = weights.sum(axis=1)
    means = (np.nan_to_num(values) * weights).sum(axis=1)[totals > 0] / totals[totals > 0]
    return float(means.mean()) if len(means) else float("nan")


def _shares(part: Floats, whole: Ints | Floats) -> Floats:
    """``part / whole``, and NaN for 0/0."""
    shares: Floats = np.full(whole.shape, np.nan)
    return np.divide(part, whole, out=shares, where=whole > 0)


@dataclass(frozen=True)
class SetPrecision(SetScore):
    """Predicted entries that are gold, over predicted entries.

    From 0 to 1; undefined for a document without predictions.

    >>> sets = Sets.of({"d1": ["a", "b"], "d2": ["c"]}, {"d1": ["a"], "d2": ["c", "x", "y"]})
    >>> SetPrecision().measure(sets).value, SetPrecision(average="macro").measure(sets).per_unit.round(3)
    (0.5, array([1.   , 0.333]))
    """

    symbol = "P"
    title = "precision over documents"
    aliases = ("Precision", "precision")
    formula = r"\frac{TP}{TP + FP}"
    undefined = "a document without predicted terms"
    undefined_remedy = (
        "lower the threshold if no document should stay without a prediction, or read recall too"
    )
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def ratio(self, counts: Overlap) -> Floats:
        """Hits among predictions."""
        return _shares(counts.hits, counts.predicted)


@dataclass(frozen=True)
class SetRecall(SetScore):
    """Gold entries that are predicted, over gold entries.

    From 0 to 1; undefined for a document without gold. The weighted average equals the micro one.

    >>> sets = Sets.of({"d1": ["a", "b"], "d2": ["c"]}, {"d1": ["a"], "d2": ["c", "x", "y"]})
    >>> round(SetRecall().measure(sets).value, 4), SetRecall(average="macro").measure(sets).value
    (0.6667, 0.75)
    """

    symbol = "R"
    title = "recall over documents"
    aliases = ("Recall", "recall")
    formula = r"\frac{TP}{TP + FN}"
    undefined = "a document without gold terms"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def ratio(self, counts: Overlap) -> Floats:
        """Hits among gold."""
        return _shares(counts.hits, counts.gold)


@dataclass(frozen=True)
class SetF1(SetScore):
    """Twice the predicted entries that are gold, over gold plus predicted entries.

    From 0 to 1; undefined for a document with neither. The macro average is the mean of the documents' F1,
    not the F1 of mean precision and mean recall.

    >>> sets = Sets.of({"d1": ["a", "b"], "d2": ["c"]}, {"d1": ["a"], "d2": ["c", "x", "y"]})
    >>> round(SetF1().measure(sets).value, 4), round(SetF1(average="macro").measure(sets).value, 4)
    (0.5714, 0.5833)
    """

    symbol = "F1"
    title = "F1 over documents"
    aliases = ("f1", "F1-score")
    formula = r"\frac{2\,TP}{2\,TP + FP + FN}"
    undefined = "a document without gold and without predicted terms"
    undefined_remedy = "nothing was there and nothing was found: leave them out, or annotate them"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def ratio(self, counts: Overlap) -> Floats:
        """Hits against both sides together."""
        return _shares(2 * counts.hits, counts.gold + counts.predicted)


METRICS = (SetF1, SetPrecision, SetRecall)
