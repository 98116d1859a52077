"""The ranking metrics as pure functions of a ``Ranking``: one number per unit, NaN if undefined.

Each has two paths. Without ties a rank is an integer and the textbook definition is applied; with
ties the result is the expectation over all orders of equal scores, in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.segments import multiplicities, relevant_tie_groups, segment_sums

if TYPE_CHECKING:
    from equipoise.evidence.ranking import Ranking
    from equipoise.types import Floats, Ints

# Expectations over random orders of equal scores, in closed form (McSherry and Najork, ECIR 2008).

_BLOCK = 1 << 20
_TABLE = 65_536


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
        stay = np.maximum(size - relevant - position, 0) / np.maximum(size - position, 1)
        none_before = np.ones((len(chosen), longest))
        np.cumprod(stay[:, :-1], axis=1, out=none_before[:, 1:])
        chance = none_before * (1.0 - stay)
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
            # And where few numbers are possible, a table of those that occur needs no sorting.
            occurs = np.zeros(possible, dtype=np.bool_)
            occurs[key] = True
            combinations = np.stack(np.unravel_index(np.flatnonzero(occurs), width), axis=1) + low
            return combinations, (np.cumsum(occurs) - 1)[key]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return np.stack([column[first] for column in columns], axis=1), inverse.reshape(-1)
    rows = np.stack(columns, axis=1)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)


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
    """How many relevant items rank within ``k``, one number or one per unit."""
    check_not_filtered(ranking)
    if isinstance(k, np.ndarray):
        k = np.repeat(k, ranking.counts)
    if not ranking.has_ties:
        return segment_sums((ranking.above < k).astype(np.float64), ranking.starts)
    above, size, limit = _groups(ranking, k)
    return segment_sums(np.clip((limit - above) / size, 0.0, 1.0), ranking.starts)


def average_precision(ranking: Ranking, k: int | None = None, *, capped: bool = True) -> Floats:
    """Precision at each relevant rank within ``k``, summed, over min(k, R) or, not ``capped``, over R."""
    check_not_filtered(ranking)
    if ranking.has_ties:
        above, size, limit = _groups(ranking, k)
        before, relevant = relevant_tie_groups(ranking)
        precision = precision_at_member(above, size, before, relevant, limit)
    else:
        precision = (ranking.slot + 1) / ranking.ranks
        if k is not None:
            precision *= ranking.above < k
    most = ranking.counts if k is None or not capped else np.minimum(ranking.counts, k)
    return segment_sums(precision, ranking.starts) / np.maximum(most, 1)


def ndcg(ranking: Ranking, k: int | None = None, *, exponential: bool = False) -> Floats:
    """Gain over log2(rank + 1), summed within ``k``, over the same sum of the ideal order."""
    check_not_filtered(ranking)
    gain = _gain(ranking.gain, exponential)
    if k is not None:  # beyond every list and every truth a cutoff changes nothing
        k = min(k, max(int(ranking.depth.max(initial=1)), int(ranking.counts.max(initial=1)), 1))
    if ranking.has_ties:
        above, size, limit = _groups(ranking, k)
        table = np.concatenate([[0.0], np.cumsum(_discounts(int(limit.max(initial=0))))])
        discount = expected_table_value(table, above, size, limit)
    elif k is None:
        discount = 1.0 / np.log2(ranking.ranks + 1.0)
    else:
        discount = _cut_discounts(k)[np.minimum(ranking.above, k)]
    return segment_sums(gain * discount, ranking.starts) / _ideal(ranking, k, exponential)


def rank_biased_precision(ranking: Ranking, k: int | None, p: float) -> Floats:
    """(1 - p) times the sum of p^(rank - 1) over the relevant ranks within ``k``."""
    check_not_filtered(ranking)
    above, size, limit = _groups(ranking, k)
    # The sum of the weights of the ranks 1 .. r is 1 - p^r, so a tie group needs no table.
    low, high = np.minimum(above, limit), np.minimum(above + size, limit)
    return segment_sums((p ** low.astype(np.float64) - p ** high.astype(np.float64)) / size, ranking.starts)


def expected_reciprocal_rank(ranking: Ranking, k: int | None, max_gain: int) -> Floats:
    """The sum over ranks of 1 / rank times the probability that a reader stops there."""
    check_not_filtered(ranking)
    if ranking.gain.max(initial=0) > max_gain:
        raise UndefinedError(
            f"a gain of {ranking.gain.max():g} is above max_gain={max_gain}, so its stopping probability exceeds 1",
            hint=f"write ERR(max_gain={int(np.ceil(ranking.gain.max()))})",
        )
    stop = (np.exp2(ranking.gain) - 1.0) / 2.0**max_gain
    above, size, limit = _groups(ranking, k)
    values = np.where(ranking.counts > 0, 0.0, np.nan)
    for unit in np.flatnonzero(ranking.counts).tolist():
        first, last = ranking.starts[unit], ranking.starts[unit + 1]
        going_on, item = 1.0, first
        while item < last and above[item] < limit[item]:
            end = item
            while end < last and above[end] == above[item]:
                end += 1
            n_ranks = min(int(size[item]), int(limit[item] - above[item]))
            goes_on = _going_on_after(tuple((1.0 - stop[item:end]).tolist()), int(size[item]), n_ranks)
            ranks = above[item] + np.arange(1, n_ranks + 1)
            values[unit] += going_on * float(((goes_on[:-1] - goes_on[1:]) / ranks).sum())
            going_on *= goes_on[-1]
            item = end
    return values


@lru_cache(maxsize=1024)
def _going_on_after(going_on: tuple[float, ...], size: int, n_ranks: int) -> Floats:
    """The probabilities that a reader goes on after 0 .. ``n_ranks`` of ``size`` equal scores in random order.

    ``going_on`` are the probabilities of the relevant members. After j members the expectation is the sum over t of
    P(t relevant among j) times the mean product over all subsets of t relevant members.
    """
    if size == 1:
        return np.array([1.0, *going_on])
    n_relevant = len(going_on)
    t = np.arange(n_relevant + 1)
    mean_product = np.zeros(n_relevant + 1)
    mean_product[0] = 1.0
    for count, value in enumerate(going_on, 1):  # elementary symmetric polynomials, divided by their number of terms
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
    reach = int(max(other.above[listed].max(initial=0), ranking.above[retrieved].max(initial=0))) + 1
    keys = np.sort(other.unit_of[listed] * reach + other.above[listed])
    begin = ranking.unit_of * reach
    group = begin + np.where(retrieved, ranking.above, 0)
    above = np.searchsorted(keys, group) - np.searchsorted(keys, begin)
    tied = np.searchsorted(keys, group, side="right") - np.searchsorted(keys, group)
    return above, tied, np.bincount(other.unit_of[counts], minlength=len(ranking)).astype(np.int64)


def binary_preference(ranking: Ranking) -> Floats:
    """The mean over relevant items of 1 - min(n, R) / min(N, R), n of the N assessed non-relevant items being above."""
    check_not_filtered(ranking)
    above, tied, total = _assessed_above(ranking)
    relevant = np.repeat(ranking.counts, ranking.counts)
    # With ties, n is uniform on above .. above + tied; ``below`` of these values are smaller than R.
    below = np.clip(relevant - above, 0, tied + 1)
    mean = (below * above + below * (below - 1) / 2 + (tied + 1 - below) * relevant) / (tied + 1)
    most = np.minimum(np.repeat(total, ranking.counts), relevant)
    value = np.where(ranking.retrieved, 1.0 - mean / np.maximum(most, 1), 0.0)
    return segment_sums(value, ranking.starts) / np.maximum(ranking.counts, 1)


_SMOOTHING = 1e-5
"""The constant of trec_eval's infAP, which keeps the estimate defined without assessed items above."""


def inferred_average_precision(ranking: Ranking) -> Floats:
    """The mean over relevant items of the expected precision at their rank, given the assessed sample above them."""
    check_not_filtered(ranking)
    ranking = ranking.ordered("by_id")
    nonrelevant, _, _ = _assessed_above(ranking)
    unjudged, _, _ = _assessed_above(ranking, pooled_only=True)
    higher = np.where(ranking.retrieved, ranking.above, 0).astype(np.float64)
    assessed = ranking.slot + nonrelevant
    share = (ranking.slot + _SMOOTHING) / (assessed + 2 * _SMOOTHING)
    value = (1.0 + (assessed + unjudged) * share) / (higher + 1.0)
    value = np.where(higher == 0, 1.0, value) * ranking.retrieved
    return segment_sums(value, ranking.starts) / np.maximum(ranking.counts, 1)


def assessed_share(ranking: Ranking, k: int) -> Floats:
    """The share of the first ``k`` retrieved items that were assessed; NaN if nothing was retrieved."""
    assessed = np.nan_to_num(n_relevant_within(ranking, k))
    if ranking.nonrelevant is not None:
        assessed += np.nan_to_num(n_relevant_within(ranking.nonrelevant, k))
    shown = np.minimum(ranking.depth, k)
    return np.divide(assessed, shown, out=np.full(len(ranking), np.nan), where=shown > 0)


def mean_rank(ranking: Ranking, *, filtered: bool = False) -> Floats:
    """The mean rank of a unit's relevant items."""
    ranks = complete_ranks(ranking, filtered=filtered)
    return segment_sums(ranks, ranking.starts) / np.maximum(ranking.counts, 1)


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
        lost = int((~ranking.retrieved).sum())
        raise UndefinedError(
            f"a mean or median rank needs every relevant item ranked; {lost} of {len(ranking.above)} were not"
            " retrieved",
            hint="rank the full corpus, or use MRR, nDCG or R, which count such items as 0",
        )
    return (ranking.without_rivals() if filtered and not ranking.filtered else ranking).ranks


def max_similarity(ranking: Ranking, k: int) -> Floats:
    """1 if a relevant item ranks within ``k``, else the largest similarity of a near item that does."""
    if ranking.near is None:
        raise UndefinedError(
            "MaxOntSim needs the similarity of the other retrieved items, and this evidence has none",
            hint="give Ranking.near, or build the ranking with an ontology",
        )
    check_not_filtered(ranking)
    near = ranking.near
    depth = int(near.depth.max(initial=0))
    if k > depth and int(ranking.depth.max(initial=0)) > depth:
        raise UndefinedError(
            f"MaxOntSim@{k} needs the similarity of the first {k} items; that of the first {depth} is known",
            hint=f"choose a cutoff of at most {depth}, or measure again with this one",
        )
    value = np.concatenate([np.ones(len(ranking.above)), near.gain])
    unit = np.concatenate([ranking.unit_of, near.unit_of])
    if not (ranking.has_ties or near.has_ties):
        within = np.concatenate([ranking.above, near.above]) < k
        best = np.zeros(len(ranking))
        np.maximum.at(best, unit[within], value[within])
    else:
        best = _expected_largest(ranking, near, k, value, unit)
    best[ranking.counts == 0] = np.nan
    return best


def _expected_largest(ranking: Ranking, near: Ranking, k: int, value: Floats, unit: Ints) -> Floats:
    """The sum over the levels of similarity of the chance that one at least so large is in the top.

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
    lead = np.flatnonzero(opens)
    lead = np.repeat(lead, np.diff(np.append(lead, len(unit))))
    inside = np.cumsum(np.where(above == first, copies, 0))
    members = inside - inside[lead] + copies[lead]
    chance = first_hit_within(first, size[lead], members, np.minimum(k, ranking.depth[unit]))
    gained = chance.copy()
    gained[1:] -= np.where(unit[1:] == unit[:-1], chance[:-1], 0.0)
    best: Floats = np.bincount(unit, weights=value * gained, minlength=len(ranking)).astype(np.float64)
    return best


def check_not_filtered(ranking: Ranking) -> None:
    """Metrics that look at several relevant items together have no meaning on filtered ranks."""
    if ranking.filtered:
        raise UndefinedError(
            "filtered ranks drop the other relevant items, so only MR and MedianRank are defined on them",
            hint="use the evidence as it was before without_rivals()",
        )


def _first_group_value(ranking: Ranking, k: int | None, expected: Callable[[Ints, Ints, Ints, Ints], Floats]) -> Floats:
    """A value of each unit's best tie group; the formula covers groups of one."""
    above, size, limit = _groups(ranking, k)
    _, relevant = relevant_tie_groups(ranking)
    filled = ranking.counts > 0
    lead = ranking.starts[:-1][filled]
    values = np.full(len(ranking), np.nan)
    values[filled] = expected(above[lead], size[lead], relevant[lead], limit[lead])
    return values


def _groups(ranking: Ranking, k: int | Ints | None) -> tuple[Ints, Ints, Ints]:
    """Above, size and rank limit of each item's tie group; a lost item begins at the limit."""
    depth = np.repeat(ranking.depth, ranking.counts)
    limit = depth if k is None else np.minimum(depth, k)
    above = ranking.above if ranking.complete else np.where(ranking.retrieved, ranking.above, depth)
    return above, ranking.tied + 1, limit


def _gain(gain: Floats, exponential: bool) -> Floats:
    return np.exp2(gain) - 1.0 if exponential else gain


def _ideal(ranking: Ranking, k: int | None, exponential: bool) -> Floats:
    """What a perfect order would earn."""
    counts = ranking.counts
    longest = int(counts.max(initial=0))
    table = _discounts(longest) if k is None else _cut_discounts(k)
    gains = _gain(ranking.ideal_gains, exponential)
    if len(gains) and gains.min() == gains.max():
        sums = np.concatenate([[0.0], np.cumsum(table)])
        return gains[0] * sums[np.minimum(counts, len(sums) - 1)] + (counts == 0)
    discount = table[np.minimum(ranking.slot, len(table) - 1)]
    return segment_sums(gains * discount, ranking.starts)


def _discounts(last: int) -> Floats:
    """1 / log2(rank + 1) for the ranks 1 .. last."""
    return 1.0 / np.log2(np.arange(2, last + 2))


@lru_cache(maxsize=64)
def _cut_discounts(k: int) -> Floats:
    """The discounts of the ranks 1 .. k, and 0 for all lower ranks."""
    return np.append(_discounts(k), 0.0)
