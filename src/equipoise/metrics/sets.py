"""Precision, recall and F1 of the terms found in documents, strict or with credit for near misses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.sets import Sets, TermSets
from equipoise.metrics.base import MetricValue, UnitMetric

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

# Counts of the intersection of gold and predicted sets per document.

Mode = Literal["strict", "present", "id"]


class SetOverlap(NamedTuple):
    """For each document: hits (parts of hits, where credit is given), gold entries, predicted entries."""

    hits: Floats
    gold: Ints | Floats
    predicted: Ints | Floats


def overlap(sets: Sets, mode: Mode, *, soft: bool = False) -> SetOverlap:
    """The overlap of gold and predicted sets; ``mode`` defines what an entry is.

    ``strict``: a term with its assertion. ``present``: affirmed terms only, on both sides.
    ``id``: a term with any assertion. Counts are cached with the sets: matching one
    to one is slow, and a bootstrap needs the same documents many times.
    """
    if (mode, soft) not in sets.counted:
        gold, predicted = select_mode(sets.gold, mode), select_mode(sets.predicted, mode)
        hits = soft_hits(gold, predicted, sets) if soft else exact_hits(gold, predicted, sets)
        sets.counted[mode, soft] = (hits, gold.sizes, predicted.sizes)
    return SetOverlap(*sets.counted[mode, soft])


def select_mode(side: TermSets, mode: Mode) -> TermSets:
    """The entries that count in this mode; assertions that do not matter become 0."""
    if mode == "strict":
        return side
    if mode == "present":
        return side.where(side.assertions == 0)
    # Entries are sorted by term within a document, so repeated terms are adjacent.
    repeated = np.zeros(len(side.terms), dtype=bool)
    documents = side.documents
    repeated[1:] = (side.terms[1:] == side.terms[:-1]) & (documents[1:] == documents[:-1])
    return side.where(~repeated)._replace(assertions=np.zeros(int((~repeated).sum()), dtype=np.int64))


def exact_hits(gold: TermSets, predicted: TermSets, sets: Sets) -> Floats:
    """The number of predicted entries of each document that are gold."""
    terms, assertions = max(1, len(sets.terms)), len(sets.assertions)
    gold_codes, predicted_codes = (
        (side.documents * terms + side.terms) * assertions + side.assertions for side in (gold, predicted)
    )
    hits: Bools = np.isin(predicted_codes, gold_codes)
    return np.bincount(predicted.documents[hits], minlength=len(sets)).astype(np.float64)


def soft_hits(gold: TermSets, predicted: TermSets, sets: Sets) -> Floats:
    """The largest total credit of any one-to-one matching in each document."""
    documents = np.arange(len(sets))
    return pair_credits(gold, predicted, documents, documents, sets)


def pair_credits(
    gold: TermSets, predicted: TermSets, gold_documents: Ints, predicted_documents: Ints, sets: Sets
) -> Floats:
    """``soft_hits`` for pairs of documents: gold of ``gold_documents`` against predictions of ``predicted_documents``.

    Exact matches are not fixed first: two near misses may together earn more than one hit.
    """
    from scipy.optimize import linear_sum_assignment

    if sets.credit is None:
        raise UndefinedError(
            "soft scores need the credit of near misses, and these sets have none",
            hint="sets.with_credit(similarity) adds it; without soft only exact terms count",
        )
    hits = np.zeros(len(gold_documents))
    for pair in np.flatnonzero((gold.sizes[gold_documents] > 0) & (predicted.sizes[predicted_documents] > 0)):
        rows = slice(*gold.offsets[gold_documents[pair] : gold_documents[pair] + 2])
        columns = slice(*predicted.offsets[predicted_documents[pair] : predicted_documents[pair] + 2])
        matrix = sets.credit.between(gold.terms[rows], predicted.terms[columns], len(sets.terms))
        # No credit between different assertions.
        matrix = np.where(gold.assertions[rows, None] == predicted.assertions[columns], matrix, 0.0)
        if matrix.any():
            hits[pair] = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    return hits


# The chance level: predicted sets assigned to the documents at random.

MIN_PERMUTATIONS = 20
N_PERMUTATIONS = 200
"""The minimum number of random assignments if there are few documents."""
PAIRS = 20_000
"""The number of pairs of a gold and a predicted set that are matched; fewer are all matched."""


def random_assignments(documents: int, rng: np.random.Generator) -> Ints:
    """Random assignments, one per row: the document whose predictions each document gets.

    A round is a random order and its rotations, in which every document gets every set once; so if a full
    round is affordable, sums over documents have no sampling error.

    >>> random_assignments(3, np.random.default_rng(0)).shape
    (201, 3)
    """
    exhaustive = documents**2 <= PAIRS
    n_shifts = documents if exhaustive else max(MIN_PERMUTATIONS, PAIRS // documents)
    rounds = -(-N_PERMUTATIONS // documents) if exhaustive else 1
    index = np.arange(documents)
    parts = []
    for _ in range(rounds):
        order = rng.permutation(documents)
        shifts = np.arange(documents) if exhaustive else rng.choice(documents, size=n_shifts, replace=False)
        parts.append(order[(index + shifts[:, None]) % documents])
    return np.concatenate(parts)


def permuted_overlap(sets: Sets, mode: Mode, orders: Ints, *, soft: bool = False) -> SetOverlap:
    """Hits, gold and predicted entries by assignment and document; cached with the sets, since matching is slow."""
    key = (mode, soft, orders.tobytes())
    if key not in sets.permutation_cache:
        gold, predicted = select_mode(sets.gold, mode), select_mode(sets.predicted, mode)
        hits = (
            _soft(gold, predicted, orders, sets)
            if soft
            else np.array([exact_hits(gold, predicted.take(order), sets) for order in orders])
        )
        sets.permutation_cache[key] = SetOverlap(hits, np.tile(gold.sizes, (len(orders), 1)), predicted.sizes[orders])
    permuted: SetOverlap = sets.permutation_cache[key]
    return permuted


def expected_hits(sets: Sets, mode: Mode) -> float:
    """The mean number of exact hits over all assignments of predicted sets to documents."""
    entries = max(1, len(sets.terms)) * len(sets.assertions)
    gold_codes, predicted_codes = (
        np.bincount(side.terms * len(sets.assertions) + side.assertions, minlength=entries)
        for side in (select_mode(sets.gold, mode), select_mode(sets.predicted, mode))
    )
    return float(gold_codes @ predicted_codes / len(sets))


def _soft(gold: TermSets, predicted: TermSets, orders: Ints, sets: Sets) -> Floats:
    """Every pair of any assignment is matched once."""
    documents = len(sets)
    pairs, inverse = np.unique(np.arange(documents) * documents + orders, return_inverse=True)
    pair_credit = pair_credits(gold, predicted, pairs // documents, pairs % documents, sets)
    return np.asarray(pair_credit[inverse].reshape(orders.shape))


OverDocuments = Literal["micro", "macro", "weighted"]
AVERAGES: tuple[OverDocuments, ...] = get_args(OverDocuments)
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class SetAverageMetric(UnitMetric[Sets]):
    """A ratio of hits in each document, averaged over documents.

    ``micro`` pools the entries of all documents first; ``macro`` is the mean over documents; ``weighted``
    is the mean by number of gold entries. 0/0 is undefined and left out.
    """

    average: OverDocuments = "micro"
    mode: Mode = "strict"
    soft: bool = False

    evidence = Sets

    @abstractmethod
    def ratio(self, counts: SetOverlap) -> Floats:
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
        """The contribution of each document to the sums of the micro average: one row per document."""
        counts = overlap(evidence, self.mode, soft=self.soft)
        return np.column_stack([np.asarray(side, dtype=np.float64) for side in counts])

    def of_sums(self, sums: Floats) -> Floats:
        """The micro average of each row of sums; NaN for 0/0."""
        return self.ratio(SetOverlap(*sums.T))

    @property
    def chance_stream(self) -> str:
        """One stream for all scores of sets: the same assignments, so that their chance levels are consistent."""
        return "sets"

    def chance(self, evidence: Sets, rng: np.random.Generator) -> float:
        """The expected score if the same predicted sets are assigned to the documents at random.

        Exact micro scores have a closed form; soft ones add the sampled credit of near misses.
        """
        if not len(evidence):
            return float("nan")
        assignments = random_assignments(len(evidence), rng)
        counts = permuted_overlap(evidence, self.mode, assignments, soft=self.soft)
        if self.average != "micro":
            values = self.ratio(counts)
            shares = counts.gold if self.average == "weighted" else np.ones_like(counts.gold)
            return _mean_of_means(values, np.where(np.isnan(values), 0, shares))
        hits = expected_hits(evidence, self.mode)
        if self.soft:
            exact = permuted_overlap(evidence, self.mode, assignments, soft=False)
            hits += float((counts.hits - exact.hits).sum(axis=1).mean())
        return float(self.of_sums(np.array([[hits, counts.gold[0].sum(), counts.predicted[0].sum()]]))[0])

    def measure(self, evidence: Sets) -> MetricValue:
        """The average. Micro has no per-document parts: how much a document counts there depends on the
        system as well, so that two systems could not be paired by document."""
        if self.average != "micro":
            return super().measure(evidence)
        return MetricValue(float(self.of_sums(self.addends(evidence).sum(axis=0, keepdims=True))[0]))


def _mean_of_means(values: Floats, weights: Floats) -> float:
    """The mean over rows of each row's weighted mean; rows without weight are left out."""
    totals = weights.sum(axis=1)
    means = (np.nan_to_num(values) * weights).sum(axis=1)[totals > 0] / totals[totals > 0]
    return float(means.mean()) if len(means) else float("nan")


def _shares(part: Floats, total: Ints | Floats) -> Floats:
    """``part / total``, and NaN for 0/0."""
    shares: Floats = np.full(total.shape, np.nan)
    return np.divide(part, total, out=shares, where=total > 0)


@dataclass(frozen=True)
class SetPrecision(SetAverageMetric):
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
    undefined_hint = "lower the threshold if every document needs a prediction, or report recall too"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def ratio(self, counts: SetOverlap) -> Floats:
        """Hits among predictions."""
        return _shares(counts.hits, counts.predicted)


@dataclass(frozen=True)
class SetRecall(SetAverageMetric):
    """Gold entries that are predicted, over gold entries.

    From 0 to 1; undefined for a document without gold terms. The weighted average equals the micro one.

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

    def ratio(self, counts: SetOverlap) -> Floats:
        """Hits among gold."""
        return _shares(counts.hits, counts.gold)


@dataclass(frozen=True)
class SetF1(SetAverageMetric):
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
    undefined = "a document with neither gold nor predicted terms"
    undefined_hint = "nothing was there and nothing was found: leave them out, or annotate them"
    cite = "van Rijsbergen, Information Retrieval, 1979"

    def ratio(self, counts: SetOverlap) -> Floats:
        """Hits against both sides together."""
        return _shares(2 * counts.hits, counts.gold + counts.predicted)


METRICS = (SetF1, SetPrecision, SetRecall)
