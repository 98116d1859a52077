"""Precision, recall and F1 of the terms found in documents, strict or with credit for near misses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.sets import Credit, Sets, TermSets
from equipoise.metrics.base import Measurement, UnitMetric
from equipoise.types import Bools, Floats, Ints

OverDocuments = Literal["micro", "macro", "weighted"]
Mode = Literal["strict", "present", "id"]


class Overlap(NamedTuple):
    """For each document: hits (parts of hits, where credit is given), gold entries, predicted entries."""

    hits: Floats
    gold: Ints
    predicted: Ints


def overlap(sets: Sets, mode: Mode, *, soft: bool = False) -> Overlap:
    """What gold and predicted sets have in common, after ``mode`` has said what an entry is.

    ``strict``: a term with its assertion. ``present``: affirmed terms only, on both sides.
    ``id``: a term, whatever was asserted of it. What was counted once is kept with the sets: matching one
    to one is slow, and a bootstrap asks for the same documents again and again.
    """
    if (mode, soft) in sets.counted:
        return Overlap(*sets.counted[mode, soft])
    found = _overlap(sets, mode, soft)
    sets.counted[mode, soft] = tuple(found)
    return found


def _overlap(sets: Sets, mode: Mode, soft: bool) -> Overlap:
    gold, predicted = _viewed(sets.gold, mode), _viewed(sets.predicted, mode)
    hits = _soft_hits(gold, predicted, sets) if soft else _exact_hits(gold, predicted, sets)
    return Overlap(hits, gold.sizes, predicted.sizes)


def _viewed(side: TermSets, mode: Mode) -> TermSets:
    """The entries that count in this mode; assertions that do not matter become 0."""
    if mode == "strict":
        return side
    if mode == "present":
        return side.where(side.assertions == 0)
    # Entries are sorted by term within a document, so repeated terms stand side by side.
    repeated = np.zeros(len(side.terms), dtype=bool)
    documents = side.documents
    repeated[1:] = (side.terms[1:] == side.terms[:-1]) & (documents[1:] == documents[:-1])
    return side.where(~repeated)._replace(assertions=np.zeros(int((~repeated).sum()), dtype=np.int64))


def _exact_hits(gold: TermSets, predicted: TermSets, sets: Sets) -> Floats:
    """How many predicted entries of each document are gold."""
    terms, assertions = max(1, len(sets.terms)), len(sets.assertions)
    wanted, given = (
        (side.documents * terms + side.terms) * assertions + side.assertions for side in (gold, predicted)
    )
    found: Bools = np.isin(given, wanted)
    return np.bincount(predicted.documents[found], minlength=len(sets)).astype(np.float64)


def _soft_hits(gold: TermSets, predicted: TermSets, sets: Sets) -> Floats:
    """The largest total credit of any one-to-one matching in each document.

    Exact matches are not fixed first: two near misses may together earn more than one hit.
    """
    from scipy.optimize import linear_sum_assignment

    if sets.credit is None:
        raise UndefinedError(
            "soft scores need to know what a near miss earns, and these sets carry no credit",
            hint="sets.with_credit(similarity) adds it; without soft only exact terms count",
        )
    hits = np.zeros(len(sets))
    for document in np.flatnonzero((gold.sizes > 0) & (predicted.sizes > 0)):
        matrix = _credit_matrix(gold, predicted, int(document), sets.credit, len(sets.terms))
        hits[document] = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    return hits


def _credit_matrix(gold: TermSets, predicted: TermSets, document: int, credit: Credit, terms: int) -> Floats:
    """Gold by predicted entries of one document; nothing is earned across assertions."""
    rows, columns = (slice(*side.offsets[document : document + 2]) for side in (gold, predicted))
    matrix = credit.between(gold.terms[rows], predicted.terms[columns], terms)
    return np.where(gold.assertions[rows, None] == predicted.assertions[columns], matrix, 0.0)


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

    def measure(self, evidence: Sets) -> Measurement:
        """The average. Micro has no per-document parts: how much a document counts there depends on the
        system as well, so that two systems could not be paired by document."""
        if self.average != "micro":
            return super().measure(evidence)
        counts = overlap(evidence, self.mode, soft=self.soft)
        return Measurement(float(self.ratio(Overlap(*(np.array([side.sum()]) for side in counts)))[0]))


def _shares(part: Floats, whole: Ints) -> Floats:
    """``part / whole``, and NaN for 0/0."""
    shares: Floats = np.full(len(whole), np.nan)
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
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def ratio(self, counts: Overlap) -> Floats:
        """Hits against both sides together."""
        return _shares(2 * counts.hits, counts.gold + counts.predicted)


METRICS = (SetF1, SetPrecision, SetRecall)
