"""The ranking metrics: declarations with parameters, bounds, chance levels and references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

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


@dataclass(frozen=True)
class ReciprocalRank(RankingMetric):
    """One over the rank of the best relevant item; 0 below the cutoff, if there is one.

    >>> ranking = Ranking.from_ranks([2, 1, 5], candidates=10)
    >>> round(ReciprocalRank().measure(ranking).value, 3)
    0.567
    """

    k: int | None = None

    symbol = "MRR"
    title = "mean reciprocal rank"
    aliases = ("RR", "mean_reciprocal_rank")
    formula = "1 / rank of the best relevant item"
    cite = "Voorhees 1999; McSherry and Najork 2008 (ties)"

    def per_unit(self, evidence: Ranking) -> Floats:
        """One over the best rank."""
        return ranking_functions.reciprocal_rank(evidence, self.k)


@dataclass(frozen=True)
class HitRate(RankingMetric):
    """1 if any relevant item ranks within k, else 0.

    >>> HitRate(3).per_unit(Ranking.from_ranks([1, 4], candidates=10))
    array([1., 0.])
    """

    k: int | None = None

    symbol = "HR"
    title = "hit rate"
    aliases = ("Acc", "Accuracy", "Success", "Hit", "Hits", "hit_rate", "top_k_accuracy")
    needs_cutoff = True
    formula = "1 if the best relevant rank <= k, else 0"

    def per_unit(self, evidence: Ranking) -> Floats:
        """Whether the top k hold an answer."""
        return ranking_functions.hit_rate(evidence, self.k or 1)


@dataclass(frozen=True)
class Precision(RankingMetric):
    """Relevant items within k, over k, even when fewer than k were returned.

    >>> Precision(5).per_unit(Ranking.from_lists([[1, 2, 3, 4, 5]], [[1, 4, 5]]))
    array([0.6])
    """

    k: int | None = None

    symbol = "P"
    title = "precision"
    aliases = ("Precision",)
    needs_cutoff = True
    formula = "relevant within k / k"

    def per_unit(self, evidence: Ranking) -> Floats:
        """The share of the top k that is relevant."""
        return ranking_functions.n_relevant_within(evidence, self.k or 1) / (self.k or 1)


@dataclass(frozen=True)
class Recall(RankingMetric):
    """Relevant items within k, over all R relevant items, or over min(R, k) when capped.

    >>> ranking = Ranking.from_lists([[1, 2, 3]], [[1, 8, 9]])
    >>> float(Recall(1).per_unit(ranking)[0]), float(Recall(1, capped=True).per_unit(ranking)[0])
    (0.3333333333333333, 1.0)
    """

    k: int | None = None
    capped: bool = False

    symbol = "R"
    title = "recall"
    aliases = ("Recall",)
    needs_cutoff = True
    formula = "relevant within k / R; capped: / min(R, k)"

    def per_unit(self, evidence: Ranking) -> Floats:
        """The share of the relevant items that the top k hold."""
        k = self.k or 1
        most = np.minimum(evidence.counts, k) if self.capped else evidence.counts
        return ranking_functions.n_relevant_within(evidence, k) / np.maximum(most, 1)


@dataclass(frozen=True)
class AveragePrecision(RankingMetric):
    """The precisions at the ranks of the relevant items within k, summed, over min(k, R).

    With ``norm=R`` the sum is over R whatever the cutoff, as trec_eval's map_cut has it.

    >>> ranking = Ranking.from_lists([[1, 2, 3, 4, 5]], [[1, 4, 5]])
    >>> AveragePrecision(5).per_unit(ranking).round(9)
    array([0.7])
    """

    k: int | None = None
    norm: Literal["min", "R"] = "min"

    symbol = "MAP"
    title = "mean average precision"
    aliases = ("AP", "mean_average_precision")
    formula = "sum of P@rank over relevant ranks <= k, / min(k, R); norm=R: / R"
    cite = "Buckley and Voorhees 2000; McSherry and Najork 2008 (ties)"

    def per_unit(self, evidence: Ranking) -> Floats:
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
    """The mean of the ranks of the relevant items: over all items, or over units of each one's mean.

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
)
