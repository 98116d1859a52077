"""Rank counts of baselines: an order of places shared by many units, and personal counts on top of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.io.arrays import segment_indices

if TYPE_CHECKING:
    from equipoise.domains.places.history import ContextCounts
    from equipoise.types import Bools, Ints


class BaselineRankCounts(NamedTuple):
    """For each place: places above it, tied with it, and tied ones that precede it by name."""

    above: Ints
    tied: Ints
    before: Ints


class SharedRanking:
    """Places by the counts of a row of the tally, where there is one; among equals by everybody's counts.

    Rows have few places, and all others follow in the order of all visits. So each entry of the
    tally is placed once, within its row, and everything else by what the row takes out of the common order.
    """

    def __init__(self, counts: Ints, predictable: Bools, tally: ContextCounts | None = None) -> None:
        self.counts = counts
        self.predictable = predictable
        self.tally = tally
        self.levels, self.level = np.unique(counts, return_inverse=True)

    def keys(self, rows: Ints, places: Ints) -> Ints:
        """A sort key for each place within its row."""
        place_counts = self.counts[places]
        return place_counts if self.tally is None else self.tally.seen(rows, places) * (self._most + 1) + place_counts

    def rank_counts(self, rows: Ints, places: Ints) -> BaselineRankCounts:
        """The rank counts of each place among all predictable ones."""
        common = BaselineRankCounts(*(column[places] for column in self._common))
        if self.tally is None:
            return common
        at, here = self.tally.entries(rows, places)
        removed = self._counts_in_row(rows, places)
        size = self._sizes[rows]
        rest = (size + common.above - removed.above, common.tied - removed.tied, common.before - removed.before)
        if not len(self.tally.counts):
            return BaselineRankCounts(*rest)
        inside = (column[at] for column in self._inside)
        return BaselineRankCounts(*(np.where(here, one, other) for one, other in zip(inside, rest, strict=True)))

    def firsts(self, rows: Ints) -> tuple[Ints, Bools]:
        """The first place of each row (of ties, the lowest code), and whether it is tied."""
        top = np.flatnonzero(self.predictable & (self.counts == self.counts[self.predictable].max()))
        first, tied = np.full(len(rows), top[0]), np.full(len(rows), len(top) > 1)
        if self.tally is None or not len(self.tally.counts):
            return first, tied
        lead = (self._inside.above == 0) & self.predictable[self.tally.places]
        row, at = np.unique(self.tally.row_of[lead], return_index=True)
        chosen = np.full(len(self.tally.keys) + 1, -1)
        chosen[row] = np.flatnonzero(lead)[at]
        entry = np.where(rows < 0, -1, chosen[rows])
        is_known = entry >= 0
        first[is_known], tied[is_known] = self.tally.places[entry[is_known]], self._inside.tied[entry[is_known]] > 0
        return first, tied

    @property
    def _most(self) -> int:
        return int(self.counts.max(initial=0))

    @cached_property
    def name_ranks(self) -> Ints:
        """The rank of each class by its name; an order by id puts larger names first, as trec_eval does."""
        name_rank = np.empty(len(self.counts), dtype=np.int64)
        name_rank[np.argsort(np.arange(len(self.counts)).astype(str), kind="stable")] = np.arange(len(self.counts))
        return name_rank

    @cached_property
    def _common(self) -> BaselineRankCounts:
        """Every class by everybody's counts alone."""
        places = np.flatnonzero(self.predictable)
        counts = _rank_within_rows(np.zeros(len(places), dtype=np.int64), self.level[places], self.name_ranks[places])
        full = [np.zeros(len(self.counts), dtype=np.int64) for _ in counts]
        for column, part in zip(full, counts, strict=True):
            column[places] = part
        return BaselineRankCounts(*full)

    @cached_property
    def _entries(self) -> Ints:
        """The entries of the tally whose places are predictable."""
        return np.flatnonzero(self.predictable[self.tally.places]) if self.tally else np.zeros(0, dtype=np.int64)

    @cached_property
    def _inside(self) -> BaselineRankCounts:
        """Every entry of the tally within its row."""
        tally = self.tally
        if tally is None:
            return BaselineRankCounts(*(np.zeros(0, dtype=np.int64),) * 3)
        at = self._entries
        keys = tally.counts[at] * len(self.levels) + self.level[tally.places[at]]
        counts = _rank_within_rows(tally.row_of[at], keys, self.name_ranks[tally.places[at]])
        full = [np.zeros(len(tally.counts), dtype=np.int64) for _ in counts]
        for column, part in zip(full, counts, strict=True):
            column[at] = part
        return BaselineRankCounts(*full)

    @cached_property
    def _sizes(self) -> Ints:
        """The number of predictable places of each row; the last entry is for row -1."""
        if self.tally is None:
            return np.zeros(1, dtype=np.int64)
        return np.bincount(self.tally.row_of[self._entries], minlength=len(self.tally.keys) + 1)

    @cached_property
    def _by_level(self) -> tuple[Ints, Ints]:
        """Row and level of each entry as one number, ascending; the same with the name."""
        if self.tally is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        places = self.tally.places[self._entries]
        pair = self.tally.row_of[self._entries] * len(self.levels) + self.level[places]
        return np.sort(pair), np.sort(pair * len(self.counts) + self.name_ranks[places])

    def _counts_in_row(self, rows: Ints, places: Ints) -> BaselineRankCounts:
        """How many places of the row are above, tied, and tied with a preceding name in the common order."""
        pairs, name_ranks = self._by_level
        base = np.maximum(rows, 0) * len(self.levels)
        level_keys = base + self.level[places]
        left, right = np.searchsorted(pairs, level_keys), np.searchsorted(pairs, level_keys, side="right")
        end = np.searchsorted(pairs, base + len(self.levels))
        later = np.searchsorted(name_ranks, level_keys * len(self.counts) + self.name_ranks[places], side="right")
        has_context = rows >= 0
        return BaselineRankCounts(
            *(np.where(has_context, column, 0) for column in (end - right, right - left, right - later))
        )


def _rank_within_rows(rows: Ints, keys: Ints, name_rank: Ints) -> BaselineRankCounts:
    """Each entry within its row: larger keys, other equal ones, and of these those of a larger name."""
    order = np.lexsort((name_rank, keys, rows))
    new_row, new_key = (column[order][1:] != column[order][:-1] for column in (rows, keys))
    _, row_end = _groups(new_row, len(order))
    start, end = _groups(new_row | new_key, len(order))
    counts = BaselineRankCounts(*(np.empty(len(order), dtype=np.int64) for _ in range(3)))
    parts = (row_end - end, end - start - 1, end - 1 - np.arange(len(order)))
    for column, part in zip(counts, parts, strict=True):
        column[order] = part
    return counts


def _groups(breaks: Bools, size: int) -> tuple[Ints, Ints]:
    """The start and end of the group of each entry; ``breaks`` marks where a new group begins.

    >>> [ends.tolist() for ends in _groups(np.array([False, True]), 3)]
    [[0, 0, 2], [2, 2, 3]]
    """
    new = np.ones(size, dtype=bool)
    new[1:] = breaks
    group = np.cumsum(new) - 1
    sizes = np.bincount(group)
    ends = np.cumsum(sizes)
    return (ends - sizes)[group], ends[group]


# Rank counts of the target for a user: by the user's counts, then by the shared order.

BLOCK = 1 << 20
"""Places of all units of a block together: bounds the memory, some 200 bytes each."""


class CountLevel(NamedTuple):
    """Counts that decide, and the context of each unit in them."""

    tally: ContextCounts
    contexts: Ints


class BaselineTargetRanks(NamedTuple):
    """For each unit: places above the target, tied with it, and tied ones that precede it by id.

    ``first`` is the first place, the lowest code if ``first_tied``.
    """

    above: Ints
    tied: Ints
    before: Ints
    first: Ints
    first_tied: Bools


def rank_targets(
    personal_levels: Sequence[CountLevel], shared: CountLevel | None, counts: Ints, targets: Ints, predictable: Bools
) -> BaselineTargetRanks:
    """The rank counts of each unit's target among the ``predictable`` classes.

    ``personal_levels`` are the person's counts, the most telling first; the places of each are among those of the next.
    What they leave equal the ``shared`` counts decide, and at last those of everybody.
    """
    order = SharedRanking(counts, predictable, None if shared is None else shared.tally)
    rows = [level.tally.rows(level.contexts) for level in personal_levels]
    rows.append(np.full(len(targets), -1) if shared is None else shared.tally.rows(shared.contexts))
    # Units of the same context and target have equal ranks.
    queries, unit = np.unique(np.stack([*rows, targets], axis=1), axis=0, return_inverse=True)
    tallies = [level.tally for level in personal_levels]
    parts = [_block(tallies, order, *_columns(queries[part])) for part in _blocks(tallies, queries)]
    return BaselineTargetRanks(*(np.concatenate(column)[unit.reshape(-1)] for column in zip(*parts, strict=True)))


def _columns(queries: Ints) -> tuple[list[Ints], Ints, Ints]:
    """The rows of the personal counts, those of the shared counts, and the targets."""
    *personal, shared, targets = queries.T
    return personal, shared, targets


def _blocks(tallies: Sequence[ContextCounts], queries: Ints) -> Iterator[slice]:
    """Slices of the queries with a bounded number of places each."""
    sizes = tallies[-1].lengths(queries[:, len(tallies) - 1]) if tallies else np.zeros(len(queries), dtype=np.int64)
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // BLOCK)) + 1
    for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(queries)], strict=True):
        yield slice(start, end)


def _block(
    tallies: Sequence[ContextCounts], order: SharedRanking, personal_rows: Sequence[Ints], shared: Ints, targets: Ints
) -> BaselineTargetRanks:
    shared_counts, (first, first_tied) = order.rank_counts(shared, targets), order.firsts(shared)
    if not tallies:
        return BaselineTargetRanks(*shared_counts, first, first_tied)
    unit, place = _visited_places(tallies[-1], personal_rows[-1], order.predictable)
    personal = _personal(tallies, [rows[unit] for rows in personal_rows], place)
    common = order.keys(shared[unit], place)
    target = _personal(tallies, personal_rows, targets)
    candidates = SortKeys(personal, common, order.name_ranks[place])
    target_keys = SortKeys(target[unit], order.keys(shared, targets)[unit], order.name_ranks[targets][unit])
    among, outside = (
        _within(candidates, target_keys, unit, len(targets)),
        _outside(candidates, target_keys, unit, shared_counts),
    )
    # A target that the user never visited is below all visited places.
    above, tied, before = (np.where(target > 0, one, other) for one, other in zip(among, outside, strict=True))
    return BaselineTargetRanks(above, tied, before, *_tops(unit, place, personal, common, first, first_tied))


class SortKeys(NamedTuple):
    """The sort keys of places: the user's counts, the shared order, and the name."""

    personal: Ints
    common: Ints
    name_rank: Ints


def _within(candidates: SortKeys, target_keys: SortKeys, unit: Ints, units: int) -> BaselineRankCounts:
    """The rank counts of a visited target among the visited places."""
    level = candidates.personal == target_keys.personal
    equal = level & (candidates.common == target_keys.common)
    higher = (candidates.personal > target_keys.personal) | (level & (candidates.common > target_keys.common))
    return BaselineRankCounts(
        _sums(higher, unit, units),
        _sums(equal, unit, units) - 1,
        _sums(equal & (candidates.name_rank > target_keys.name_rank), unit, units),
    )


def _outside(
    candidates: SortKeys, target_keys: SortKeys, unit: Ints, shared_counts: BaselineRankCounts
) -> BaselineRankCounts:
    """The rank counts of an unvisited target: below all visited places, in the shared order without them."""
    units = len(shared_counts.above)
    same_common = candidates.common == target_keys.common
    return BaselineRankCounts(
        shared_counts.above
        + np.bincount(unit, minlength=units)
        - _sums(candidates.common > target_keys.common, unit, units),
        shared_counts.tied - _sums(same_common, unit, units),
        shared_counts.before - _sums(same_common & (candidates.name_rank > target_keys.name_rank), unit, units),
    )


def _visited_places(tally: ContextCounts, rows: Ints, predictable: Bools) -> tuple[Ints, Ints]:
    """All places visited by the user of each unit, with the index of the unit."""
    lengths = tally.lengths(rows)
    unit = np.repeat(np.arange(len(rows)), lengths)
    place = tally.places[segment_indices(tally.starts[rows], lengths)]
    return unit[predictable[place]], place[predictable[place]]


def _personal(tallies: Sequence[ContextCounts], rows: Sequence[Ints], places: Ints) -> Ints:
    """One key that increases with the user's counts, the most specific first; 0 for a place never visited."""
    key = np.zeros(len(places), dtype=np.int64)
    for tally, row in zip(tallies, rows, strict=True):
        key = key * (tally.most + 1) + tally.seen(row, places)
    return key


def _sums(mask: Bools, unit: Ints, units: int) -> Ints:
    return np.bincount(unit[mask], minlength=units)


def _tops(unit: Ints, place: Ints, personal: Ints, common: Ints, first: Ints, first_tied: Bools) -> tuple[Ints, Bools]:
    """The first choice of each unit: a place that the user visited, or else the first of the shared order."""
    order = np.lexsort((place, -common, -personal, unit))
    lead = np.flatnonzero(np.r_[True, unit[order][1:] != unit[order][:-1]]) if len(order) else order
    best = order[lead]
    second = order[np.minimum(lead + 1, max(len(order) - 1, 0))] if len(order) else order
    shared = (
        (second != best)
        & (unit[second] == unit[best])
        & (personal[second] == personal[best])
        & (common[second] == common[best])
    )
    first, first_tied = first.copy(), first_tied.copy()
    first[unit[best]], first_tied[unit[best]] = place[best], shared
    return first, first_tied
