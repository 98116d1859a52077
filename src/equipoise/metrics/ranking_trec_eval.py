"""Further ranking metrics of trec_eval and ir_measures: F1, Rprec, RBP, ERR, bpref, infAP, Judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import segment_sums
from equipoise.metrics.base import Metric
from equipoise.metrics.ranking import (
    BinaryRankingMetric,
    RankingMetric,
    check_not_filtered,
    n_relevant_within,
    tie_groups_of,
)

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints


@dataclass(frozen=True)
class F1AtK(BinaryRankingMetric):
    """The harmonic mean of precision and recall within k: 2 times the relevant items within k, over k + R.

    >>> F1AtK(2).per_unit(Ranking.from_lists([[1, 2, 3]], [[1, 3]]))
    array([0.5])
    """

    k: int | None = None
    rel: int = 1

    symbol = "F1"
    title = "F1 of the first k"
    needs_cutoff = True
    formula = "2 * relevant within k / (k + R)"
    cite = "van Rijsbergen 1979"

    def unit_values(self, evidence: Ranking) -> Floats:
        """F1 within k."""
        k = self.k or 1
        return 2 * n_relevant_within(evidence, k) / (k + evidence.counts)


@dataclass(frozen=True)
class RPrecision(BinaryRankingMetric):
    """The precision within the first R, where R is the number of relevant items of the unit.

    >>> RPrecision().per_unit(Ranking.from_lists([[1, 2, 3]], [[1, 3]]))
    array([0.5])
    """

    rel: int = 1

    symbol = "Rprec"
    title = "R-precision"
    aliases = ("R-precision", "R_precision", "RPrec")
    formula = "relevant within R / R"
    cite = "Buckley and Voorhees 2005"

    def unit_values(self, evidence: Ranking) -> Floats:
        """Precision at R."""
        return n_relevant_within(evidence, evidence.counts) / np.maximum(evidence.counts, 1)


@dataclass(frozen=True)
class RankBiasedPrecision(BinaryRankingMetric):
    """The expected rate at which a reader finds relevant items, if the next rank is read with probability p.

    >>> RankBiasedPrecision(p=0.5).per_unit(Ranking.from_lists([[1, 2, 3]], [[1, 3]]))
    array([0.625])
    """

    k: int | None = None
    p: float = 0.8
    rel: int = 1

    symbol = "RBP"
    title = "rank-biased precision"
    aliases = ("rank_biased_precision",)
    formula = "(1 - p) * sum of p^(rank - 1) over the relevant ranks"
    cite = "Moffat and Zobel 2008"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.p < 1:
            raise ParameterError(f"RBP(p={self.p:g}) is not a probability between 0 and 1", hint="write RBP(p=0.8)")

    def unit_values(self, evidence: Ranking) -> Floats:
        """(1 - p) times the sum of p^(rank - 1) over the relevant ranks within ``k``."""
        check_not_filtered(evidence)
        above, size, limit = tie_groups_of(evidence, self.k)
        # The sum of the weights of the ranks 1 .. r is 1 - p^r, so a tie group needs no table.
        low, high = np.minimum(above, limit), np.minimum(above + size, limit)
        weight = self.p ** low.astype(np.float64) - self.p ** high.astype(np.float64)
        return segment_sums(weight / size, evidence.starts)


@dataclass(frozen=True)
class ExpectedReciprocalRank(RankingMetric):
    """The expected 1 / rank at which reading stops; an item of gain g stops it with probability (2^g - 1) / 2^max_gain.

    >>> ExpectedReciprocalRank(max_gain=1).per_unit(Ranking.from_ranks([2], candidates=5))
    array([0.25])
    """

    k: int | None = None
    max_gain: int = 4

    symbol = "ERR"
    title = "expected reciprocal rank"
    aliases = ("expected_reciprocal_rank",)
    formula = "sum over ranks r of 1/r * P(stop at r); P(stop | gain g) = (2^g - 1) / 2^max_gain"
    cite = "Chapelle et al. 2009; gdeval (max_gain=4)"

    def per_unit(self, evidence: Ranking) -> Floats:
        """The sum over ranks of 1 / rank times the probability that a reader stops there."""
        check_not_filtered(evidence)
        if evidence.gain.max(initial=0) > self.max_gain:
            raise UndefinedError(
                f"a gain of {evidence.gain.max():g} is above max_gain={self.max_gain}, so its stopping probability "
                "exceeds 1",
                hint=f"write ERR(max_gain={int(np.ceil(evidence.gain.max()))})",
            )
        stop = (np.exp2(evidence.gain) - 1.0) / 2.0**self.max_gain
        above, size, limit = tie_groups_of(evidence, self.k)
        values = np.where(evidence.counts > 0, 0.0, np.nan)
        for unit in np.flatnonzero(evidence.counts).tolist():
            first, last = evidence.starts[unit], evidence.starts[unit + 1]
            continuation, item = 1.0, first
            while item < last and above[item] < limit[item]:
                end = item
                while end < last and above[end] == above[item]:
                    end += 1
                n_ranks = min(int(size[item]), int(limit[item] - above[item]))
                goes_on = _continuation_after(tuple((1.0 - stop[item:end]).tolist()), int(size[item]), n_ranks)
                ranks = above[item] + np.arange(1, n_ranks + 1)
                values[unit] += continuation * float(((goes_on[:-1] - goes_on[1:]) / ranks).sum())
                continuation *= goes_on[-1]
                item = end
        return values


@dataclass(frozen=True)
class BinaryPreference(BinaryRankingMetric):
    """How rarely items assessed as non-relevant rank above relevant ones; items that were not assessed do not count.

    >>> run = {"q": {"x": 3.0, "bad": 2.0, "good": 1.0}}
    >>> BinaryPreference().per_unit(Ranking.from_runs({"q": {"good": 1, "other": 1, "bad": 0}}, run))
    array([0.])
    """

    rel: int = 1

    symbol = "bpref"
    title = "binary preference"
    aliases = ("binary_preference",)
    formula = (
        "mean over R of 1 - min(assessed non-relevant above, R) / min(assessed non-relevant, R); 0 if not retrieved"
    )
    cite = "Buckley and Voorhees 2004; Soboroff 2006 (trec_eval)"

    def unit_values(self, evidence: Ranking) -> Floats:
        """The mean over relevant items of 1 - min(n, R) / min(N, R), n of N assessed non-relevant items being above."""
        check_not_filtered(evidence)
        above, tied, total = _assessed_above(evidence)
        relevant = np.repeat(evidence.counts, evidence.counts)
        # With ties, n is uniform on above .. above + tied; ``below`` of these values are smaller than R.
        below = np.clip(relevant - above, 0, tied + 1)
        mean = (below * above + below * (below - 1) / 2 + (tied + 1 - below) * relevant) / (tied + 1)
        most = np.minimum(np.repeat(total, evidence.counts), relevant)
        value = np.where(evidence.retrieved, 1.0 - mean / np.maximum(most, 1), 0.0)
        return segment_sums(value, evidence.starts) / np.maximum(evidence.counts, 1)


@dataclass(frozen=True)
class InferredAveragePrecision(BinaryRankingMetric):
    """Average precision estimated from sampled judgements: a gain of -1 marks an item that was pooled but not assessed.

    Tied scores are always ordered by id, descending, as in trec_eval.

    >>> InferredAveragePrecision().per_unit(Ranking.from_runs({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}))
    array([1.])
    """

    rel: int = 1

    symbol = "infAP"
    title = "inferred average precision"
    aliases = ("inferred_average_precision",)
    formula = "mean over R of 1/r + (r-1)/r * (pooled above / (r-1)) * (relevant above / assessed above)"
    cite = "Yilmaz and Aslam 2006; trec_eval"

    def unit_values(self, evidence: Ranking) -> Floats:
        """The mean over relevant items of the expected precision at their rank, given the assessed ones above."""
        check_not_filtered(evidence)
        evidence = evidence.ordered("by_id")
        nonrelevant, _, _ = _assessed_above(evidence)
        unjudged, _, _ = _assessed_above(evidence, pooled_only=True)
        higher = np.where(evidence.retrieved, evidence.above, 0).astype(np.float64)
        assessed = evidence.slot + nonrelevant
        share = (evidence.slot + _SMOOTHING) / (assessed + 2 * _SMOOTHING)
        value = (1.0 + (assessed + unjudged) * share) / (higher + 1.0)
        value = np.where(higher == 0, 1.0, value) * evidence.retrieved
        return segment_sums(value, evidence.starts) / np.maximum(evidence.counts, 1)

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """The mean value with the relevant items at random ranks."""
        return Metric.chance(self, evidence, rng)


@dataclass(frozen=True)
class AssessedShare(RankingMetric):
    """The share of the first k items that were assessed; if it is low, every other metric is uncertain.

    >>> AssessedShare(2).per_unit(Ranking.from_runs({"q": {"a": 1, "b": 0}}, {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}))
    array([0.5])
    """

    k: int | None = None

    symbol = "Judged"
    title = "share of assessed items"
    aliases = ("judged_at_k",)
    needs_cutoff = True
    formula = "assessed within k / min(k, retrieved)"
    undefined = "a unit without retrieved items"

    def per_unit(self, evidence: Ranking) -> Floats:
        """The share of the first ``k`` retrieved items that were assessed; NaN if nothing was retrieved."""
        assessed = np.nan_to_num(n_relevant_within(evidence, self.k or 1))
        if evidence.nonrelevant is not None:
            assessed += np.nan_to_num(n_relevant_within(evidence.nonrelevant, self.k or 1))
        shown = np.minimum(evidence.depth, self.k or 1)
        return np.divide(assessed, shown, out=np.full(len(evidence), np.nan), where=shown > 0)


METRICS = (
    F1AtK,
    RPrecision,
    RankBiasedPrecision,
    ExpectedReciprocalRank,
    BinaryPreference,
    InferredAveragePrecision,
    AssessedShare,
)


@lru_cache(maxsize=1024)
def _continuation_after(continuation: tuple[float, ...], size: int, n_ranks: int) -> Floats:
    """The probabilities of reading on after 0 .. ``n_ranks`` of ``size`` equal scores in random order.

    ``continuation`` are the probabilities of the relevant members. After j members the expectation is the sum over t of
    P(t relevant among j) times the mean product over all subsets of t relevant members.
    """
    if size == 1:
        return np.array([1.0, *continuation])
    n_relevant = len(continuation)
    t = np.arange(n_relevant + 1)
    mean_product = np.zeros(n_relevant + 1)
    mean_product[0] = 1.0
    # Elementary symmetric polynomials, divided by their number of terms.
    for count, value in enumerate(continuation, 1):
        share = t[1:] / count
        mean_product[1:] += share * (value * mean_product[:-1].copy() - mean_product[1:])
    n_drawn = np.zeros(n_relevant + 1)  # the distribution of the relevant members among the first j
    n_drawn[0] = 1.0
    expected = [1.0]
    for j in range(n_ranks):
        relevant_next = n_drawn * (n_relevant - t) / (size - j)
        n_drawn = n_drawn - relevant_next
        n_drawn[1:] += relevant_next[:-1]
        expected.append(float(n_drawn @ mean_product))
    return np.array(expected)


# Metrics of assessed items that are not relevant.

_SMOOTHING = 1e-5
"""The constant of trec_eval's infAP, which keeps the estimate defined without assessed items above."""


def _assessed_above(ranking: Ranking, *, pooled_only: bool = False) -> tuple[Ints, Ints, Ints]:
    """For each relevant item: assessed non-relevant items above it and tied with it; and their number per unit.

    With ``pooled_only``, items that were pooled but not assessed (gain below 0) instead.
    """
    other = ranking.nonrelevant
    if other is None:
        zeros = np.zeros_like(ranking.above)
        return zeros, zeros, np.zeros_like(ranking.counts)
    counts = (other.gain < 0) == pooled_only
    retrieved = ranking.retrieved
    listed = counts & other.retrieved
    stride = int(max(other.above[listed].max(initial=0), ranking.above[retrieved].max(initial=0))) + 1
    keys = np.sort(other.unit_of[listed] * stride + other.above[listed])
    begin = ranking.unit_of * stride
    group = begin + np.where(retrieved, ranking.above, 0)
    above = np.searchsorted(keys, group) - np.searchsorted(keys, begin)
    tied = np.searchsorted(keys, group, side="right") - np.searchsorted(keys, group)
    return above, tied, np.bincount(other.unit_of[counts], minlength=len(ranking)).astype(np.int64)
