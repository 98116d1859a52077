"""The order of all places that many units share: by the moves from the place before, then by all visits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.io.dag import segment_indices

if TYPE_CHECKING:
    from equipoise.domains.places.history import ContextCounts
    from equipoise.types import Bools, Ints


class BaselineRankCounts(NamedTuple):
    """Places above each one, beside it, and of those the ones that come first by their names."""

    above: Ints
    tied: Ints
    before: Ints


class SharedRanking:
    """Places by the counts of a row of the tally, where there is one; among equals by everybody's counts.

    Rows touch few places, and all others follow in the order of everybody's counts. So each entry of the
    tally is placed once, within its row, and everything else by what the row takes out of the common order.
    """

    def __init__(self, counts: Ints, kept: Bools, tally: ContextCounts | None = None) -> None:
        self.counts = counts
        self.kept = kept
        self.tally = tally
        self.levels, self.level = np.unique(counts, return_inverse=True)

    def keys(self, rows: Ints, places: Ints) -> Ints:
        """A number for each place that grows with the order, within one row."""
        own = self.counts[places]
        return own if self.tally is None else self.tally.seen(rows, places) * (self._most + 1) + own

    def standing(self, rows: Ints, places: Ints) -> BaselineRankCounts:
        """Where each place stands among all that are kept."""
        common = BaselineRankCounts(*(column[places] for column in self._common))
        if self.tally is None:
            return common
        at, here = self.tally.entries(rows, places)
        taken = self._taken_out(rows, places)
        size = self._sizes[rows]
        rest = (size + common.above - taken.above, common.tied - taken.tied, common.before - taken.before)
        if not len(self.tally.counts):
            return BaselineRankCounts(*rest)
        inside = (column[at] for column in self._inside)
        return BaselineRankCounts(*(np.where(here, one, other) for one, other in zip(inside, rest, strict=True)))

    def firsts(self, rows: Ints) -> tuple[Ints, Bools]:
        """The first place of each row, the lowest code where several are, and whether several are."""
        top = np.flatnonzero(self.kept & (self.counts == self.counts[self.kept].max()))
        first, tied = np.full(len(rows), top[0]), np.full(len(rows), len(top) > 1)
        if self.tally is None or not len(self.tally.counts):
            return first, tied
        lead = (self._inside.above == 0) & self.kept[self.tally.places]
        row, at = np.unique(self.tally.row_of[lead], return_index=True)
        chosen = np.full(len(self.tally.keys) + 1, -1)
        chosen[row] = np.flatnonzero(lead)[at]
        entry = np.where(rows < 0, -1, chosen[rows])
        known = entry >= 0
        first[known], tied[known] = self.tally.places[entry[known]], self._inside.tied[entry[known]] > 0
        return first, tied

    @property
    def _most(self) -> int:
        return int(self.counts.max(initial=0))

    @cached_property
    def named(self) -> Ints:
        """The place of each class by its name; an order by id puts larger names first, as trec_eval does."""
        named = np.empty(len(self.counts), dtype=np.int64)
        named[np.argsort(np.arange(len(self.counts)).astype(str), kind="stable")] = np.arange(len(self.counts))
        return named

    @cached_property
    def _common(self) -> BaselineRankCounts:
        """Every class by everybody's counts alone."""
        places = np.flatnonzero(self.kept)
        found = _placed(np.zeros(len(places), dtype=np.int64), self.level[places], self.named[places])
        whole = [np.zeros(len(self.counts), dtype=np.int64) for _ in found]
        for column, part in zip(whole, found, strict=True):
            column[places] = part
        return BaselineRankCounts(*whole)

    @cached_property
    def _entries(self) -> Ints:
        """The entries of the tally whose places are kept."""
        return np.flatnonzero(self.kept[self.tally.places]) if self.tally else np.zeros(0, dtype=np.int64)

    @cached_property
    def _inside(self) -> BaselineRankCounts:
        """Every entry of the tally within its row."""
        tally = self.tally
        if tally is None:
            return BaselineRankCounts(*(np.zeros(0, dtype=np.int64),) * 3)
        at = self._entries
        keys = tally.counts[at] * len(self.levels) + self.level[tally.places[at]]
        found = _placed(tally.row_of[at], keys, self.named[tally.places[at]])
        whole = [np.zeros(len(tally.counts), dtype=np.int64) for _ in found]
        for column, part in zip(whole, found, strict=True):
            column[at] = part
        return BaselineRankCounts(*whole)

    @cached_property
    def _sizes(self) -> Ints:
        """How many kept places each row has; the last one is for no row."""
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
        return np.sort(pair), np.sort(pair * len(self.counts) + self.named[places])

    def _taken_out(self, rows: Ints, places: Ints) -> BaselineRankCounts:
        """How many of the row's places stand above, beside and first among equals in the common order."""
        pairs, named = self._by_level
        base = np.maximum(rows, 0) * len(self.levels)
        own = base + self.level[places]
        left, right = np.searchsorted(pairs, own), np.searchsorted(pairs, own, side="right")
        end = np.searchsorted(pairs, base + len(self.levels))
        later = np.searchsorted(named, own * len(self.counts) + self.named[places], side="right")
        there = rows >= 0
        return BaselineRankCounts(*(np.where(there, each, 0) for each in (end - right, right - left, right - later)))


def _placed(rows: Ints, keys: Ints, named: Ints) -> BaselineRankCounts:
    """Each entry within its row: larger keys, other equal ones, and of these those of a larger name."""
    order = np.lexsort((named, keys, rows))
    new_row, new_key = (column[order][1:] != column[order][:-1] for column in (rows, keys))
    _, row_end = _groups(new_row, len(order))
    start, end = _groups(new_row | new_key, len(order))
    found = BaselineRankCounts(*(np.empty(len(order), dtype=np.int64) for _ in range(3)))
    parts = (row_end - end, end - start - 1, end - 1 - np.arange(len(order)))
    for column, part in zip(found, parts, strict=True):
        column[order] = part
    return found


def _groups(breaks: Bools, size: int) -> tuple[Ints, Ints]:
    """Where the group of each entry begins and ends; ``breaks`` says between which entries a new one begins.

    >>> [ends.tolist() for ends in _groups(np.array([False, True]), 3)]
    [[0, 0, 2], [2, 2, 3]]
    """
    new = np.ones(size, dtype=bool)
    new[1:] = breaks
    group = np.cumsum(new) - 1
    sizes = np.bincount(group)
    ends = np.cumsum(sizes)
    return (ends - sizes)[group], ends[group]


# Where the right place stands for a person: by the person's own counts, then in the order that all share.

BLOCK = 1 << 20
"""Places of all units of a block together: bounds the memory, some 200 bytes each."""


class CountLevel(NamedTuple):
    """Counts that decide, and the context of each unit in them."""

    tally: ContextCounts
    contexts: Ints


class BaselineTargetRanks(NamedTuple):
    """For each unit: places above the target, beside it, and of those the ones that come first by id.

    ``first`` is the place at the top, that of the lowest code where ``first_tied``.
    """

    above: Ints
    tied: Ints
    before: Ints
    first: Ints
    first_tied: Bools


def rank_targets(
    own: Sequence[CountLevel], shared: CountLevel | None, counts: Ints, targets: Ints, kept: Bools
) -> BaselineTargetRanks:
    """The standing of each unit's target among the ``kept`` classes.

    ``own`` are the person's counts, the most telling first; the places of each are among those of the next.
    What they leave equal the ``shared`` counts decide, and at last those of everybody.
    """
    order = SharedRanking(counts, kept, None if shared is None else shared.tally)
    rows = [level.tally.rows(level.contexts) for level in own]
    rows.append(np.full(len(targets), -1) if shared is None else shared.tally.rows(shared.contexts))
    # Units of the same context and target stand alike.
    asked, unit = np.unique(np.stack([*rows, targets], axis=1), axis=0, return_inverse=True)
    tallies = [level.tally for level in own]
    parts = [_block(tallies, order, *_columns(asked[part])) for part in _blocks(tallies, asked)]
    return BaselineTargetRanks(*(np.concatenate(column)[unit.reshape(-1)] for column in zip(*parts, strict=True)))


def _columns(asked: Ints) -> tuple[list[Ints], Ints, Ints]:
    """The rows of the own counts, those of the shared ones, and the targets."""
    *own, shared, targets = asked.T
    return own, shared, targets


def _blocks(tallies: Sequence[ContextCounts], asked: Ints) -> Iterator[slice]:
    """Slices of what is asked, each with a bounded number of places to look at."""
    sizes = tallies[-1].lengths(asked[:, len(tallies) - 1]) if tallies else np.zeros(len(asked), dtype=np.int64)
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // BLOCK)) + 1
    for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(asked)], strict=True):
        yield slice(start, end)


def _block(
    tallies: Sequence[ContextCounts], order: SharedRanking, own: Sequence[Ints], shared: Ints, targets: Ints
) -> BaselineTargetRanks:
    standing, (first, first_tied) = order.standing(shared, targets), order.firsts(shared)
    if not tallies:
        return BaselineTargetRanks(*standing, first, first_tied)
    unit, place = _visited(tallies[-1], own[-1], order.kept)
    personal = _personal(tallies, [rows[unit] for rows in own], place)
    common = order.keys(shared[unit], place)
    target = _personal(tallies, own, targets)
    known = SortKeys(personal, common, order.named[place])
    asked = SortKeys(target[unit], order.keys(shared, targets)[unit], order.named[targets][unit])
    among, outside = _within(known, asked, unit, len(targets)), _taken_out(known, asked, unit, standing)
    # A target that the person never visited stands below all that the person did visit.
    above, tied, before = (np.where(target > 0, one, other) for one, other in zip(among, outside, strict=True))
    return BaselineTargetRanks(above, tied, before, *_tops(unit, place, personal, common, first, first_tied))


class SortKeys(NamedTuple):
    """What decides between places: the person's counts, the order that all share, and the name."""

    personal: Ints
    common: Ints
    named: Ints


def _within(known: SortKeys, asked: SortKeys, unit: Ints, units: int) -> BaselineRankCounts:
    """Where a place that the person knows stands among those."""
    level = known.personal == asked.personal
    equal = level & (known.common == asked.common)
    higher = (known.personal > asked.personal) | (level & (known.common > asked.common))
    return BaselineRankCounts(
        _sums(higher, unit, units),
        _sums(equal, unit, units) - 1,
        _sums(equal & (known.named > asked.named), unit, units),
    )


def _taken_out(known: SortKeys, asked: SortKeys, unit: Ints, standing: BaselineRankCounts) -> BaselineRankCounts:
    """Where another place stands: below all known ones, in the order that all share without these."""
    units = len(standing.above)
    alike = known.common == asked.common
    return BaselineRankCounts(
        standing.above + np.bincount(unit, minlength=units) - _sums(known.common > asked.common, unit, units),
        standing.tied - _sums(alike, unit, units),
        standing.before - _sums(alike & (known.named > asked.named), unit, units),
    )


def _visited(tally: ContextCounts, rows: Ints, kept: Bools) -> tuple[Ints, Ints]:
    """Every place that the person of each unit was at, with the unit it is for."""
    lengths = tally.lengths(rows)
    unit = np.repeat(np.arange(len(rows)), lengths)
    place = tally.places[segment_indices(tally.starts[rows], lengths)]
    return unit[kept[place]], place[kept[place]]


def _personal(tallies: Sequence[ContextCounts], rows: Sequence[Ints], places: Ints) -> Ints:
    """One number that grows with the person's counts, the most telling first; 0 for a place never visited."""
    key = np.zeros(len(places), dtype=np.int64)
    for tally, row in zip(tallies, rows, strict=True):
        key = key * (tally.most + 1) + tally.seen(row, places)
    return key


def _sums(mask: Bools, unit: Ints, units: int) -> Ints:
    return np.bincount(unit[mask], minlength=units)


def _tops(unit: Ints, place: Ints, personal: Ints, common: Ints, first: Ints, first_tied: Bools) -> tuple[Ints, Bools]:
    """The first choice of each unit: a place that the person knows, or else the one that all share."""
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
