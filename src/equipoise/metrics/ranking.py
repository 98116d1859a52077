"""The ranking metrics: declarations with parameters, bounds, chance levels and references."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.errors import ParameterError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics import ranking_functions
from equipoise.metrics.base import DOWN, Metric, MetricValue, UnitMetric

if TYPE_CHECKING:
    from equipoise.types import Floats

_INF = float("inf")


class RankingMetric(UnitMetric[Ranking]):
    """A mean over units of a function of the ranks of the relevant items."""

    evidence = Ranking
    cite = "McSherry and Najork 2008 (ties)"

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """Exact: the expected value if every candidate has the same score."""
        return self.measure(evidence.uninformed()).value


class BinaryRankingMetric(RankingMetric):
    """A ranking metric of binary relevance. ``rel`` is the smallest gain of a relevant item.

    The default 1 takes every gain above 0 as relevant. A unit without an item of that gain is undefined.
    """

    rel: int = 1

    def per_unit(self, evidence: Ranking) -> Floats:
        """The values of ``unit_values`` for the items that are relevant."""
        return self.unit_values(evidence.at_least(self.rel) if self.rel > 1 else evidence)

    @abstractmethod
    def unit_values(self, evidence: Ranking) -> Floats:
        """One number per unit; NaN if undefined."""


@dataclass(frozen=True)
class ReciprocalRank(BinaryRankingMetric):
    """One over the rank of the best relevant item; 0 below the cutoff, if there is one.

    >>> ranking = Ranking.from_ranks([2, 1, 5], candidates=10)
    >>> round(ReciprocalRank().measure(ranking).value, 3)
    0.567
    """

    k: int | None = None
    rel: int = 1

    symbol = "MRR"
    title = "mean reciprocal rank"
    aliases = ("RR", "mean_reciprocal_rank", "recip_rank")
    formula = "1 / rank of the best relevant item"
    cite = "Voorhees 1999; McSherry and Najork 2008 (ties)"

    def unit_values(self, evidence: Ranking) -> Floats:
        """One over the best rank."""
        return ranking_functions.reciprocal_rank(evidence, self.k)


@dataclass(frozen=True)
class HitRate(BinaryRankingMetric):
    """1 if any relevant item ranks within k, else 0.

    >>> HitRate(3).per_unit(Ranking.from_ranks([1, 4], candidates=10))
    array([1., 0.])
    """

    k: int | None = None
    rel: int = 1

    symbol = "HR"
    title = "hit rate"
    aliases = ("Acc", "Accuracy", "Success", "Hit", "Hits", "hit_rate", "top_k_accuracy")
    needs_cutoff = True
    formula = "1 if the best relevant rank <= k, else 0"

    def unit_values(self, evidence: Ranking) -> Floats:
        """Whether the top k hold an answer."""
        return ranking_functions.hit_rate(evidence, self.k or 1)


@dataclass(frozen=True)
class Precision(BinaryRankingMetric):
    """Relevant items within k, over k, even when fewer than k were returned.

    >>> Precision(5).per_unit(Ranking.from_lists([[1, 2, 3, 4, 5]], [[1, 4, 5]]))
    array([0.6])
    """

    k: int | None = None
    rel: int = 1

    symbol = "P"
    title = "precision"
    aliases = ("Precision",)
    needs_cutoff = True
    formula = "relevant within k / k"

    def unit_values(self, evidence: Ranking) -> Floats:
        """The share of the top k that is relevant."""
        return ranking_functions.n_relevant_within(evidence, self.k or 1) / (self.k or 1)


@dataclass(frozen=True)
class Recall(BinaryRankingMetric):
    """Relevant items within k, over all R relevant items, or over min(R, k) when capped.

    >>> ranking = Ranking.from_lists([[1, 2, 3]], [[1, 8, 9]])
    >>> float(Recall(1).per_unit(ranking)[0]), float(Recall(1, capped=True).per_unit(ranking)[0])
    (0.3333333333333333, 1.0)
    """

    k: int | None = None
    capped: bool = False
    rel: int = 1

    symbol = "R"
    title = "recall"
    aliases = ("Recall",)
    needs_cutoff = True
    formula = "relevant within k / R; capped: / min(R, k)"

    def unit_values(self, evidence: Ranking) -> Floats:
        """The share of the relevant items that the top k hold."""
        k = self.k or 1
        most = np.minimum(evidence.counts, k) if self.capped else evidence.counts
        return ranking_functions.n_relevant_within(evidence, k) / np.maximum(most, 1)


@dataclass(frozen=True)
class AveragePrecision(BinaryRankingMetric):
    """The precisions at the ranks of the relevant items within k, summed, over min(k, R).

    With ``norm=R`` the sum is over R whatever the cutoff, as trec_eval's map_cut has it.

    >>> ranking = Ranking.from_lists([[1, 2, 3, 4, 5]], [[1, 4, 5]])
    >>> AveragePrecision(5).per_unit(ranking).round(9)
    array([0.7])
    """

    k: int | None = None
    norm: Literal["min", "R"] = "min"
    rel: int = 1

    symbol = "MAP"
    title = "mean average precision"
    aliases = ("AP", "mean_average_precision")
    formula = "sum of P@rank over relevant ranks <= k, / min(k, R); norm=R: / R"
    cite = "Buckley and Voorhees 2000; McSherry and Najork 2008 (ties)"

    def unit_values(self, evidence: Ranking) -> Floats:
        """Average precision."""
        return ranking_functions.average_precision(evidence, self.k, capped=self.norm == "min")


@dataclass(frozen=True)
class NDCG(RankingMetric):
    """Gain over log2(rank + 1), summed within k, over the same sum for the ideal order of all relevant items.

    >>> ranking = Ranking.from_ranks([1, 3, 7, 15], candidates=20)
    >>> round(NDCG(10).measure(ranking).value, 3)
    0.458
    """

    k: int | None = None
    gain: Literal["linear", "exp"] = "linear"

    symbol = "nDCG"
    title = "normalised discounted cumulative gain"
    aliases = ("NDCG",)
    formula = "sum of gain / log2(rank + 1) within k, / the ideal; gain=exp: 2^gain - 1"
    cite = "Jarvelin and Kekalainen 2002; McSherry and Najork 2008 (ties)"

    def per_unit(self, evidence: Ranking) -> Floats:
        """Normalised discounted gain."""
        return ranking_functions.ndcg(evidence, self.k, exponential=self.gain == "exp")


def _rank_bounds(evidence: Ranking) -> tuple[float, float]:
    """From the first rank to the largest number of candidates of a unit, where that number is known."""
    most = float(evidence.candidates.max(initial=1)) if evidence.pool_known else _INF
    return 1.0, max(most, 1.0)


@dataclass(frozen=True)
class MeanRank(RankingMetric):
    """The mean rank of the relevant items: over all items, or first within each unit and then over units.

    >>> ranking = Ranking.from_lists([[1, 2, 3, 4]] * 2, [[1, 2], [4]])
    >>> MeanRank().measure(ranking).value, MeanRank(over="units").measure(ranking).value
    (2.3333333333333335, 2.75)
    """

    over: Literal["items", "units"] = "items"
    filtered: bool = False

    symbol = "MR"
    title = "mean rank"
    aliases = ("mean_rank", "MeanRank")
    bounds = (1.0, _INF)
    better = DOWN
    unit = "rank"
    formula = "mean of the ranks of the relevant items; filtered: other relevant items are not counted"
    cite = "Bordes et al. 2013; Nickel and Kiela 2018"

    def bounds_on(self, evidence: Ranking) -> tuple[float, float]:
        """No rank is below the last candidate."""
        return _rank_bounds(evidence)

    def per_unit(self, evidence: Ranking) -> Floats:
        """The mean rank of each unit's relevant items."""
        return ranking_functions.mean_rank(evidence, filtered=self.filtered)

    def weights(self, evidence: Ranking) -> Floats | None:
        """Over items, a unit counts as often as it has relevant items."""
        return evidence.counts.astype(np.float64) if self.over == "items" else None

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """Exact: (candidates + 1) / 2 per rank; undefined for truncated lists, like the rank itself."""
        return self.measure(_full_depth(evidence).uninformed()).value


@dataclass(frozen=True)
class MedianRank(Metric[Ranking]):
    """The median of the ranks of the relevant items: over all items, or over units of each one's median.

    With ties each item enters with its expected rank.

    >>> MedianRank().measure(Ranking.from_ranks([1, 2, 9], candidates=10)).value
    2.0
    """

    over: Literal["items", "units"] = "items"
    filtered: bool = False

    symbol = "MedianRank"
    title = "median rank"
    aliases = ("median_rank", "MedR")
    evidence = Ranking
    bounds = (1.0, _INF)
    better = DOWN
    unit = "rank"
    formula = "median of the ranks of the relevant items"

    def bounds_on(self, evidence: Ranking) -> tuple[float, float]:
        """No rank is below the last candidate."""
        return _rank_bounds(evidence)

    def measure(self, evidence: Ranking) -> MetricValue:
        """The median over items or over units."""
        if self.over == "units":
            ranks = ranking_functions.median_rank(evidence, filtered=self.filtered)
            ranks = ranks[~np.isnan(ranks)]
        else:
            ranks = ranking_functions.complete_ranks(evidence, filtered=self.filtered)
        median = float(np.median(ranks)) if len(ranks) else float("nan")
        return MetricValue(median, undefined=int(np.count_nonzero(evidence.counts == 0)))


@dataclass(frozen=True)
class MaxSimilarity(RankingMetric):
    """1 if a relevant term is in the top k, else the largest similarity of an expected and a retrieved one.

    It needs evidence that carries the similarity of what else was retrieved (``Ranking.near``).
    """

    k: int | None = None

    symbol = "MaxOntSim"
    title = "maximum ontology similarity"
    aliases = ("max_ont_sim", "MaxOntologySimilarity")
    needs_cutoff = True
    formula = "max over expected e and retrieved r within k of sim(e, r); 1 for a relevant one"

    def per_unit(self, evidence: Ranking) -> Floats:
        """The nearest miss, or 1 for a hit."""
        return ranking_functions.max_similarity(evidence, self.k or 1)

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """The credit of random candidates if the evidence has it, else the mean over shuffled evidence.

        Shuffled evidence has similarities of retrieved items only, and sets those of all other
        candidates for 0.
        """
        near, k = evidence.random_near, self.k or 1
        if near is not None and k <= near.shape[1] and np.isfinite(near[:, k - 1]).any():
            return float(np.nanmean(near[:, k - 1]))
        return Metric.chance(self, evidence, rng)


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
        return 2 * ranking_functions.n_relevant_within(evidence, k) / (k + evidence.counts)


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
        return ranking_functions.n_relevant_within(evidence, evidence.counts) / np.maximum(evidence.counts, 1)


@dataclass(frozen=True)
class RankBiasedPrecision(BinaryRankingMetric):
    """The rate of relevant items that a reader sees who goes on to the next rank with probability p.

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
        """Rank-biased precision."""
        return ranking_functions.rank_biased_precision(evidence, self.k, self.p)


@dataclass(frozen=True)
class ExpectedReciprocalRank(RankingMetric):
    """The expected value of 1 / rank at which a reader stops, who is satisfied by gain g with (2^g - 1) / 2^max_gain.

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
        """Expected reciprocal rank."""
        return ranking_functions.expected_reciprocal_rank(evidence, self.k, self.max_gain)


@dataclass(frozen=True)
class BinaryPreference(BinaryRankingMetric):
    """How rarely assessed non-relevant items rank above relevant ones; items without judgement do not count.

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
        """Binary preference."""
        return ranking_functions.binary_preference(evidence)


@dataclass(frozen=True)
class InferredAveragePrecision(BinaryRankingMetric):
    """Average precision estimated from sampled judgements: a gain of -1 marks an item that was pooled but not assessed.

    Tied scores are ordered by id, as trec_eval does.

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
        """Inferred average precision."""
        return ranking_functions.inferred_average_precision(evidence)

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """The mean over shuffled evidence."""
        return Metric.chance(self, evidence, rng)


@dataclass(frozen=True)
class AssessedShare(RankingMetric):
    """The share of the first k items that were assessed; low values make every other metric uncertain.

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
        """The share of the first k that is assessed."""
        return ranking_functions.assessed_share(evidence, self.k or 1)


def _full_depth(ranking: Ranking) -> Ranking:
    from dataclasses import replace

    return replace(ranking, depth=ranking.candidates)


METRICS = (
    ReciprocalRank,
    HitRate,
    NDCG,
    AveragePrecision,
    Precision,
    Recall,
    MeanRank,
    MedianRank,
    MaxSimilarity,
    F1AtK,
    RPrecision,
    RankBiasedPrecision,
    ExpectedReciprocalRank,
    BinaryPreference,
    InferredAveragePrecision,
    AssessedShare,
)
