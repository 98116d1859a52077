"""Array operations on the items of units: segment sums, order by rank, tie groups, average and random ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.config import Ties
from equipoise.errors import ParameterError
from equipoise.io.arrays import segment_offsets
from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.evidence.ranking import Ranking

NOT_RETRIEVED = np.iinfo(np.int64).max
"""The ``above`` of an item that was not retrieved: its rank is infinity."""


def segment_sums(values: Floats, starts: Ints) -> Floats:
    """The sum of each unit's items; NaN for a unit without any."""
    return _reduce_within_units(np.add, values, starts)


def segment_firsts(values: Floats, starts: Ints) -> Floats:
    """The first value of each unit; NaN for a unit without any."""
    firsts = np.full(len(starts) - 1, np.nan)
    filled = starts[1:] > starts[:-1]
    firsts[filled] = values[starts[:-1][filled]]
    return firsts


def _reduce_within_units(ufunc: np.ufunc, values: Floats, starts: Ints) -> Floats:
    filled = starts[1:] > starts[:-1]
    if filled.all():
        return ufunc.reduceat(values, starts[:-1]) if len(values) else np.zeros(0)
    reduced = np.full(len(filled), np.nan)
    if len(values):
        reduced[filled] = ufunc.reduceat(values, starts[:-1][filled])
    return reduced


def segment_order(above: Ints, counts: Ints) -> Ints | None:
    """The order that puts each unit's items best first; None if they already are."""
    if len(above) < 2:
        return None
    unit = np.repeat(np.arange(len(counts)), counts)
    falls = (above[1:] < above[:-1]) & (unit[1:] == unit[:-1])
    if not falls.any():
        return None
    is_missing = above == NOT_RETRIEVED
    stride = int(above[~is_missing].max(initial=0)) + 2
    key = unit * stride + np.where(is_missing, stride - 1, above)
    return np.argsort(key, kind="stable")


def relevant_tie_groups(ranking: Ranking) -> tuple[Ints, Ints]:
    """For each item: relevant items of its unit before its tie group, and those in the group.

    Items of a unit with equal scores have equal ``above`` and are adjacent.
    """
    total = len(ranking.above)
    if total == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    opens = np.ones(total, dtype=bool)
    same_unit = ranking.unit_of[1:] == ranking.unit_of[:-1]
    opens[1:] = ~(same_unit & (ranking.above[1:] == ranking.above[:-1]))
    first = np.flatnonzero(opens)
    size = np.diff(np.append(first, total))
    return np.repeat(ranking.slot[first], size), np.repeat(size, size)


def break_ties(ranking: Ranking, policy: Ties) -> Ints:
    """``above`` after equal scores were put into one order."""
    if policy is Ties.BY_ID:
        return ranking.above + ranking.before
    # Within a group the larger gain is first in the best case and last in the worst.
    offset = rank_within_tie(ranking, -ranking.gain)
    if policy is Ties.PESSIMISTIC:
        offset = ranking.tied - offset - multiplicities(ranking) + 1
    return ranking.above + np.where(ranking.tied > 0, offset, 0)


def rank_within_tie(ranking: Ranking, key: Floats | Ints) -> Ints:
    """The position of each item among the relevant items of its tie group, smallest key first."""
    first, _ = relevant_tie_groups(ranking)
    offset = np.empty_like(ranking.above)
    order = np.lexsort((key, ranking.above, ranking.unit_of))
    if ranking.copies is None:
        offset[order] = ranking.slot - first
        return offset
    copies = ranking.copies[order]
    before = np.cumsum(copies) - copies
    offset[order] = before - before[np.arange(len(order)) - (ranking.slot - first)]
    return offset


def multiplicities(ranking: Ranking) -> Ints:
    """The number of equal items that each item represents."""
    return np.ones_like(ranking.above) if ranking.copies is None else ranking.copies


def shared_groups(near: Ranking, ranking: Ranking) -> Ints:
    """For each item of ``near``, how many of the ranking's are in its tie group."""
    retrieved = ranking.retrieved
    stride = int(max(near.above.max(initial=0), ranking.above[retrieved].max(initial=0))) + 1
    keys = np.sort((ranking.unit_of * stride)[retrieved] + ranking.above[retrieved])
    group = near.unit_of * stride + near.above
    count: Ints = np.searchsorted(keys, group, side="right") - np.searchsorted(keys, group)
    return np.where(near.tied > 0, count, 0)


def random_ranks(pool: Ints, counts: Ints, rng: np.random.Generator, *, distinct: bool = True) -> Ints:
    """For each unit, ``counts`` ranks sampled without replacement from 0 .. ``pool`` - 1.

    Resampling every repeated rank of a unit is equivalent to sampling one rank after another
    without replacement; a unit that fills more than half of its pool is permuted instead.
    """
    width = np.repeat(pool, counts)
    offsets = rng.integers(0, np.maximum(width, 1))
    if not distinct:
        return offsets
    starts = segment_offsets(counts)
    is_dense = 2 * counts > pool
    for unit in np.flatnonzero(is_dense & (counts > 1)):
        offsets[starts[unit] : starts[unit + 1]] = rng.permutation(pool[unit])[: counts[unit]]
    unit_of = np.repeat(np.arange(len(counts)), counts)
    open_items = np.flatnonzero(~is_dense[unit_of])
    while True:
        order = open_items[np.lexsort((open_items, offsets[open_items], unit_of[open_items]))]
        repeats = (unit_of[order[1:]] == unit_of[order[:-1]]) & (offsets[order[1:]] == offsets[order[:-1]])
        again = order[1:][repeats]
        if len(again) == 0:
            return offsets
        offsets[again] = rng.integers(0, width[again])


def candidate_counts(corpus_size: int, depth: Ints) -> Ints:
    """The same known number of candidates for every unit, an error if a list is longer."""
    if corpus_size < depth.max(initial=0):
        raise ParameterError(
            f"a corpus of {corpus_size} items cannot give a list of {depth.max()}",
            hint="corpus_size counts all items that could have been retrieved",
        )
    return np.full(len(depth), corpus_size, dtype=np.int64)


SEARCHED_RANKS = 1000
"""Up to this many numbers, two searches in the sorted ones are faster: 6 against 76 microseconds for 66 numbers."""


def average_ranks(x: Floats) -> Floats:
    """Ranks from 1, equal numbers sharing the mean of theirs."""
    if len(x) <= SEARCHED_RANKS:
        ordered = np.sort(x)
        return np.asarray((np.searchsorted(ordered, x) + np.searchsorted(ordered, x, side="right") + 1) / 2)
    _, group, times = np.unique(x, return_inverse=True, return_counts=True)
    shared = np.cumsum(times) - (times - 1) / 2
    return np.asarray(shared[group])
