"""The ranking metrics: each a class with its properties, and a function of a ``Ranking`` with one number per unit.

The functions have two paths. Without ties a rank is an integer and the textbook definition is applied; with
ties the result is the expectation over all orders of equal scores, in closed form. Further metrics are in
``ranking_trec_eval.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import multiplicities, relevant_tie_groups, segment_sums
from equipoise.metrics.base import DOWN, Metric, MetricValue, UnitMetric

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints


class RankingMetric(UnitMetric[Ranking]):
    """A mean over units of a function of the ranks of the relevant items."""

    evidence = Ranking
    cite = "McSherry and Najork 2008 (ties)"

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """Exact: the expected value if every candidate has the same score."""
        return self.measure(evidence.with_constant_scores()).value


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
    """One over the rank of the best relevant item; with a cutoff, 0 if that rank is beyond it.

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
        return reciprocal_rank(evidence, self.k)


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
        """Whether the top k contain a relevant item."""
        return hit_rate(evidence, self.k or 1)


@dataclass(frozen=True)
class NDCG(RankingMetric):
    """The sum of gain / log2(rank + 1) within k, divided by that sum for the ideal ranking of all relevant items.

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
        return ndcg(evidence, self.k, exponential=self.gain == "exp")


@dataclass(frozen=True)
class AveragePrecision(BinaryRankingMetric):
    """The sum of the precisions at the ranks of the relevant items within k, over min(k, R) for R relevant items.

    With ``norm=R`` the sum is divided by R at every cutoff, as in map_cut of trec_eval.

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
        return average_precision(evidence, self.k, capped=self.norm == "min")


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
        return n_relevant_within(evidence, self.k or 1) / (self.k or 1)


@dataclass(frozen=True)
class Recall(BinaryRankingMetric):
    """Relevant items within k, over all R relevant items, or over min(R, k) if capped.

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
        return n_relevant_within(evidence, k) / np.maximum(most, 1)


def _rank_bounds(evidence: Ranking) -> tuple[float, float]:
    """From the first rank to the largest number of candidates of a unit, where that number is known."""
    most = float(evidence.candidates.max(initial=1)) if evidence.pool_known else inf
    return 1.0, max(most, 1.0)


@dataclass(frozen=True)
class MeanRank(RankingMetric):
    """The mean rank of all relevant items, or with ``over=units`` the mean over units of each unit's mean rank.

    >>> ranking = Ranking.from_lists([[1, 2, 3, 4]] * 2, [[1, 2], [4]])
    >>> MeanRank().measure(ranking).value, MeanRank(over="units").measure(ranking).value
    (2.3333333333333335, 2.75)
    """

    over: Literal["items", "units"] = "items"
    filtered: bool = False

    symbol = "MR"
    title = "mean rank"
    aliases = ("mean_rank", "MeanRank")
    bounds = (1.0, inf)
    better = DOWN
    unit = "rank"
    formula = "mean of the ranks of the relevant items; filtered: other relevant items are not counted"
    cite = "Bordes et al. 2013; Nickel and Kiela 2018"

    def bounds_on(self, evidence: Ranking) -> tuple[float, float]:
        """No rank is below the last candidate."""
        return _rank_bounds(evidence)

    def per_unit(self, evidence: Ranking) -> Floats:
        """The mean rank of a unit's relevant items."""
        ranks = complete_ranks(evidence, filtered=self.filtered)
        return segment_sums(ranks, evidence.starts) / np.maximum(evidence.counts, 1)

    def weights(self, evidence: Ranking) -> Floats | None:
        """Over items, a unit counts as often as it has relevant items."""
        return evidence.counts.astype(np.float64) if self.over == "items" else None

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """Exact: (candidates + 1) / 2 per rank; undefined for truncated lists, like the rank itself."""
        return self.measure(replace(evidence, depth=evidence.candidates).with_constant_scores()).value


@dataclass(frozen=True)
class MedianRank(Metric[Ranking]):
    """The median rank of all relevant items, or with ``over=units`` the median of the units' median ranks.

    A tied item has its expected rank.

    >>> MedianRank().measure(Ranking.from_ranks([1, 2, 9], candidates=10)).value
    2.0
    """

    over: Literal["items", "units"] = "items"
    filtered: bool = False

    symbol = "MedianRank"
    title = "median rank"
    aliases = ("median_rank", "MedR")
    evidence = Ranking
    bounds = (1.0, inf)
    better = DOWN
    unit = "rank"
    formula = "median of the ranks of the relevant items"

    def bounds_on(self, evidence: Ranking) -> tuple[float, float]:
        """No rank is below the last candidate."""
        return _rank_bounds(evidence)

    def measure(self, evidence: Ranking) -> MetricValue:
        """The median over items or over units."""
        if self.over == "units":
            ranks = median_rank(evidence, filtered=self.filtered)
            ranks = ranks[~np.isnan(ranks)]
        else:
            ranks = complete_ranks(evidence, filtered=self.filtered)
        median = float(np.median(ranks)) if len(ranks) else float("nan")
        return MetricValue(median, undefined=int(np.count_nonzero(evidence.counts == 0)))


@dataclass(frozen=True)
class MaxSimilarity(RankingMetric):
    """1 if a relevant term is in the top k, else the largest similarity of an expected and a retrieved term.

    It needs the similarities of the other retrieved items (``Ranking.near``).
    """

    k: int | None = None

    symbol = "MaxOntSim"
    title = "maximum ontology similarity"
    aliases = ("max_ont_sim", "MaxOntologySimilarity")
    needs_cutoff = True
    formula = "max over expected e and retrieved r within k of sim(e, r); 1 for a relevant one"

    def per_unit(self, evidence: Ranking) -> Floats:
        """1 if a relevant item ranks within ``k``, else the largest similarity of a near item that does."""
        if evidence.near is None:
            raise UndefinedError(
                "MaxOntSim needs the similarity of the other retrieved items, and this evidence has none",
                hint="give Ranking.near, or build the ranking with an ontology",
            )
        check_not_filtered(evidence)
        near, k = evidence.near, self.k or 1
        depth = int(near.depth.max(initial=0))
        if k > depth and int(evidence.depth.max(initial=0)) > depth:
            raise UndefinedError(
                f"MaxOntSim@{k} needs the similarity of the first {k} items; that of the first {depth} is known",
                hint=f"choose a cutoff of at most {depth}, or measure again with this one",
            )
        value = np.concatenate([np.ones(len(evidence.above)), near.gain])
        unit = np.concatenate([evidence.unit_of, near.unit_of])
        if not (evidence.has_ties or near.has_ties):
            within = np.concatenate([evidence.above, near.above]) < k
            best = np.zeros(len(evidence))
            np.maximum.at(best, unit[within], value[within])
        else:
            best = _expected_largest(evidence, near, k, value, unit)
        best[evidence.counts == 0] = np.nan
        return best

    def chance(self, evidence: Ranking, rng: np.random.Generator) -> float:
        """The mean similarity of random candidates if the evidence has it. Otherwise the mean with the relevant
        items at random ranks, where candidates that were not retrieved have the similarity 0.
        """
        near, k = evidence.random_near, self.k or 1
        if near is not None and k <= near.shape[1] and np.isfinite(near[:, k - 1]).any():
            return float(np.nanmean(near[:, k - 1]))
        return Metric.chance(self, evidence, rng)


METRICS = (ReciprocalRank, HitRate, NDCG, AveragePrecision, Precision, Recall, MeanRank, MedianRank, MaxSimilarity)


# The metrics as functions of a ranking: one number per unit, NaN if undefined.


def reciprocal_rank(ranking: Ranking, k: int | None = None) -> Floats:
    """One over the rank of the best relevant item, 0 below the cutoff."""
    check_not_filtered(ranking)
    if ranking.has_ties:
        return _first_group_value(ranking, k, reciprocal_of_first)
    values = 1.0 / ranking.best_ranks
    if k is not None:
        values[ranking.best_ranks > k] = 0.0
    return values


def hit_rate(ranking: Ranking, k: int) -> Floats:
    """1 if any relevant item ranks within ``k``."""
    check_not_filtered(ranking)
    if ranking.has_ties:
        return _first_group_value(ranking, k, first_hit_within)
    best = ranking.best_ranks
    values = (best <= k).astype(np.float64)
    values[np.isnan(best)] = np.nan
    return values


def n_relevant_within(ranking: Ranking, k: int | Ints) -> Floats:
    """The number of relevant items within rank ``k``, one number or one per unit."""
    check_not_filtered(ranking)
    if isinstance(k, np.ndarray):
        k = np.repeat(k, ranking.counts)
    if not ranking.has_ties:
        return segment_sums((ranking.above < k).astype(np.float64), ranking.starts)
    above, size, limit = tie_groups_of(ranking, k)
    return segment_sums(np.clip((limit - above) / size, 0.0, 1.0), ranking.starts)


def average_precision(ranking: Ranking, k: int | None = None, *, capped: bool = True) -> Floats:
    """Precision at each relevant rank within ``k``, summed, over min(k, R) or, not ``capped``, over R."""
    check_not_filtered(ranking)
    if ranking.has_ties:
        above, size, limit = tie_groups_of(ranking, k)
        before, relevant = relevant_tie_groups(ranking)
        precision = precision_at_member(above, size, before, relevant, limit)
    else:
        precision = (ranking.slot + 1) / ranking.ranks
        if k is not None:
            precision *= ranking.above < k
    most = ranking.counts if k is None or not capped else np.minimum(ranking.counts, k)
    return segment_sums(precision, ranking.starts) / np.maximum(most, 1)


def ndcg(ranking: Ranking, k: int | None = None, *, exponential: bool = False) -> Floats:
    """Gain over log2(rank + 1), summed within ``k``, over the same sum of the ideal ranking."""
    check_not_filtered(ranking)
    gain = _gain(ranking.gain, exponential)
    if k is not None:  # a cutoff beyond the longest list and the largest number of relevant items changes nothing
        k = min(k, max(int(ranking.depth.max(initial=1)), int(ranking.counts.max(initial=1)), 1))
    if ranking.has_ties:
        above, size, limit = tie_groups_of(ranking, k)
        table = np.concatenate([[0.0], np.cumsum(_discounts(int(limit.max(initial=0))))])
        discount = expected_table_value(table, above, size, limit)
    elif k is None:
        discount = 1.0 / np.log2(ranking.ranks + 1.0)
    else:
        discount = _cut_discounts(k)[np.minimum(ranking.above, k)]
    return segment_sums(gain * discount, ranking.starts) / _ideal(ranking, k, exponential)


def _ideal(ranking: Ranking, k: int | None, exponential: bool) -> Floats:
    """The value of a perfect order."""
    counts = ranking.counts
    longest = int(counts.max(initial=0))
    table = _discounts(longest) if k is None else _cut_discounts(k)
    gains = _gain(ranking.ideal_gains, exponential)
    if len(gains) and gains.min() == gains.max():
        sums = np.concatenate([[0.0], np.cumsum(table)])
        return gains[0] * sums[np.minimum(counts, len(sums) - 1)] + (counts == 0)
    discount = table[np.minimum(ranking.slot, len(table) - 1)]
    return segment_sums(gains * discount, ranking.starts)


def _gain(gain: Floats, exponential: bool) -> Floats:
    return np.exp2(gain) - 1.0 if exponential else gain


def _discounts(last: int) -> Floats:
    """1 / log2(rank + 1) for the ranks 1 .. last."""
    return 1.0 / np.log2(np.arange(2, last + 2))


@lru_cache(maxsize=64)
def _cut_discounts(k: int) -> Floats:
    """The discounts of the ranks 1 .. k, and 0 for all lower ranks."""
    return np.append(_discounts(k), 0.0)


def median_rank(ranking: Ranking, *, filtered: bool = False) -> Floats:
    """The median rank of a unit's relevant items."""
    ranks = complete_ranks(ranking, filtered=filtered)
    ranks = ranks[np.lexsort((ranks, ranking.unit_of))]
    middle = np.full(len(ranking), np.nan)
    filled = ranking.counts > 0
    start, count = ranking.starts[:-1][filled], ranking.counts[filled]
    middle[filled] = (ranks[start + (count - 1) // 2] + ranks[start + count // 2]) / 2.0
    return middle


def complete_ranks(ranking: Ranking, *, filtered: bool = False) -> Floats:
    """The (expected) rank of every relevant item, an error if one of them was not retrieved."""
    if not ranking.complete:
        n_missing = int((~ranking.retrieved).sum())
        raise UndefinedError(
            f"the mean or median rank is undefined: {n_missing} of {len(ranking.above)} relevant items were not "
            "retrieved",
            hint="rank the full corpus, or use MRR, nDCG or R, which count such items as 0",
        )
    return (ranking.with_filtered_ranks() if filtered and not ranking.filtered else ranking).ranks


def check_not_filtered(ranking: Ranking) -> None:
    """Metrics of several relevant items together are undefined on filtered ranks."""
    if ranking.filtered:
        raise UndefinedError(
            "filtered ranks drop the other relevant items, so only MR and MedianRank are defined on them",
            hint="use the evidence as it was before with_filtered_ranks()",
        )


# Expectations over random orders of equal scores, in closed form (McSherry and Najork, ECIR 2008).

_BLOCK = 1 << 20
_TABLE = 65_536


def _first_group_value(ranking: Ranking, k: int | None, expected: Callable[[Ints, Ints, Ints, Ints], Floats]) -> Floats:
    """A value of each unit's best tie group; the formula covers groups of one."""
    above, size, limit = tie_groups_of(ranking, k)
    _, relevant = relevant_tie_groups(ranking)
    filled = ranking.counts > 0
    first = ranking.starts[:-1][filled]
    values = np.full(len(filled), np.nan)
    values[filled] = expected(above[first], size[first], relevant[first], limit[first])
    return values


def tie_groups_of(ranking: Ranking, k: int | Ints | None) -> tuple[Ints, Ints, Ints]:
    """Above, size and rank limit of each item's tie group; an item that was not retrieved begins at the limit."""
    depth = np.repeat(ranking.depth, ranking.counts)
    limit = depth if k is None else np.minimum(depth, k)
    above = ranking.above if ranking.complete else np.where(ranking.retrieved, ranking.above, depth)
    return above, ranking.tied + 1, limit


def first_hit_within(above: Ints, size: Ints, relevant: Ints, limit: Ints) -> Floats:
    """The probability that at least one relevant member has a rank up to ``limit``.

    One minus C(size - visible, relevant) / C(size, relevant), the product taken over the shorter side.
    """
    rows, inverse = _distinct(above, size, relevant, limit)
    above, size, relevant, limit = rows.T
    visible = np.clip(limit - above, 0, size)
    shorter, longer = np.minimum(visible, relevant), np.maximum(visible, relevant)
    miss = np.ones(len(rows))
    for step in range(int(shorter.max(initial=0))):
        factor = np.maximum(size - longer - step, 0) / np.maximum(size - step, 1)
        miss *= np.where(step < shorter, factor, 1.0)
    return (1.0 - miss)[inverse]


def reciprocal_of_first(above: Ints, size: Ints, relevant: Ints, limit: Ints) -> Floats:
    """The expected reciprocal rank of the best relevant member, 0 beyond ``limit``.

    The chance that the first ``j`` ranks contain none falls by (size - relevant - j) / (size - j).
    """
    rows, inverse = _distinct(above, size, relevant, limit)
    expected = np.zeros(len(rows))
    # The longest sums first, in blocks: padding a block to its longest row then costs little.
    length = np.clip(np.minimum(rows[:, 3] - rows[:, 0], rows[:, 1] - rows[:, 2] + 1), 0, None)
    order = np.argsort(-length, kind="stable")
    start = 0
    while start < len(order) and length[order[start]] > 0:
        longest = int(length[order[start]])
        chosen = order[start : start + max(1, _BLOCK // longest)]
        above, size, relevant = (rows[chosen, column][:, None] for column in range(3))
        position = np.arange(longest)[None, :]
        miss = np.maximum(size - relevant - position, 0) / np.maximum(size - position, 1)
        none_before = np.ones((len(chosen), longest))
        np.cumprod(miss[:, :-1], axis=1, out=none_before[:, 1:])
        chance = none_before * (1.0 - miss)
        chance[position >= length[chosen][:, None]] = 0.0
        expected[chosen] = (chance / (above + position + 1.0)).sum(axis=1)
        start += len(chosen)
    return expected[inverse]


def expected_table_value(table: Floats, above: Ints, size: Ints, limit: Ints) -> Floats:
    """The mean over a member's possible ranks of a value tabled by rank, 0 beyond ``limit``.

    ``table[r]`` is the sum of the values of the ranks 1 .. r.
    """
    low = np.minimum(above, limit)
    high = np.minimum(above + size, limit)
    return (table[high] - table[low]) / size


def precision_at_member(above: Ints, size: Ints, before: Ints, relevant: Ints, limit: Ints) -> Floats:
    """The expected precision at the rank of a relevant member, 0 beyond ``limit``.

    At position j of the group it is (before + 1 + (j - 1)(relevant - 1)/(size - 1)) / (above + j), where
    ``before`` counts the relevant items of earlier groups; the sum over j is one of harmonic numbers.
    """
    visible = np.clip(limit - above, 0, size)
    harmonic = harmonic_numbers(int((above + visible).max(initial=0)))
    span = harmonic[above + visible] - harmonic[above]
    slope = (relevant - 1) / np.maximum(size - 1, 1)
    return ((before + 1.0) * span + slope * (visible - (above + 1.0) * span)) / size


def harmonic_numbers(last: int) -> Floats:
    """H_0 .. H_last."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, last + 1))])


def _distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """The distinct rows, and for each row which one it is: few groups differ in large data."""
    columns = np.broadcast_arrays(*columns)
    if columns[0].size == 0:
        return np.stack(columns, axis=1), np.zeros(0, dtype=np.int64)
    low = [int(column.min()) for column in columns]
    width = [int(column.max()) - least + 1 for column, least in zip(columns, low, strict=True)]
    possible = prod(width)
    if possible < 1 << 62:
        # One number per row sorts far faster than the rows themselves, and takes a quarter of the memory.
        key = columns[0] - low[0]
        for column, least, size in zip(columns[1:], low[1:], width[1:], strict=True):
            key *= size
            key += column
            key -= least
        if possible <= _TABLE + 4 * len(key):
            # If few numbers are possible, a table of those that occur needs no sorting.
            occurs = np.zeros(possible, dtype=np.bool_)
            occurs[key] = True
            combinations = np.stack(np.unravel_index(np.flatnonzero(occurs), width), axis=1) + low
            return combinations, (np.cumsum(occurs) - 1)[key]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return np.stack([column[first] for column in columns], axis=1), inverse.reshape(-1)
    rows = np.stack(columns, axis=1)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)


def _expected_largest(ranking: Ranking, near: Ranking, k: int, value: Floats, unit: Ints) -> Floats:
    """The sum over the levels of similarity of the probability that one of at least this level is in the top.

    The items of a unit are taken most similar first; after each, the probability depends on the best tie
    group so far and on how many of the items are in it.
    """
    above = np.concatenate([np.where(part.retrieved, part.above, part.depth[part.unit_of]) for part in (ranking, near)])
    size = np.concatenate([ranking.tied, near.tied]) + 1
    copies = np.concatenate([multiplicities(ranking), multiplicities(near)])
    order = np.lexsort((above, -value, unit))
    unit, value, above, size, copies = unit[order], value[order], above[order], size[order], copies[order]
    # The values of later units are below those of earlier units, so one running minimum is enough for all.
    offset = (len(ranking) - unit) * (int(above.max(initial=0)) + 1)
    first = np.minimum.accumulate(above + offset) - offset
    opens = np.ones(len(unit), dtype=bool)
    opens[1:] = (unit[1:] != unit[:-1]) | (first[1:] != first[:-1])
    group_start = np.flatnonzero(opens)
    group_start = np.repeat(group_start, np.diff(np.append(group_start, len(unit))))
    inside = np.cumsum(np.where(above == first, copies, 0))
    members = inside - inside[group_start] + copies[group_start]
    chance = first_hit_within(first, size[group_start], members, np.minimum(k, ranking.depth[unit]))
    gained = chance.copy()
    gained[1:] -= np.where(unit[1:] == unit[:-1], chance[:-1], 0.0)
    best: Floats = np.bincount(unit, weights=value * gained, minlength=len(ranking)).astype(np.float64)
    return best
