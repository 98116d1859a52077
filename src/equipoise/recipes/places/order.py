"""The order of all places that many units share: by the moves from the place before, then by all visits."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from equipoise.recipes.places.tally import Tally
from equipoise.types import Bools, Ints


class Standing(NamedTuple):
    """Places above each one, beside it, and of those the ones that come first by their names."""

    above: Ints
    tied: Ints
    before: Ints


class SharedOrder:
    """Places by the counts of a row of the tally, where there is one; among equals by everybody's counts.

    Rows touch few places, and all others follow in the order of everybody's counts. So each entry of the
    tally is placed once, within its row, and everything else by what the row takes out of the common order.
    """

    def __init__(self, counts: Ints, kept: Bools, tally: Tally | None = None) -> None:
        self.counts = counts
        self.kept = kept
        self.tally = tally
        self.levels, self.level = np.unique(counts, return_inverse=True)

    def keys(self, rows: Ints, places: Ints) -> Ints:
        """A number for each place that grows with the order, within one row."""
        own = self.counts[places]
        return own if self.tally is None else self.tally.seen(rows, places) * (self._most + 1) + own

    def standing(self, rows: Ints, places: Ints) -> Standing:
        """Where each place stands among all that are kept."""
        common = Standing(*(column[places] for column in self._common))
        if self.tally is None:
            return common
        at, here = self.tally.entries(rows, places)
        taken = self._taken_out(rows, places)
        size = self._sizes[rows]
        rest = (size + common.above - taken.above, common.tied - taken.tied, common.before - taken.before)
        if not len(self.tally.counts):
            return Standing(*rest)
        inside = (column[at] for column in self._inside)
        return Standing(*(np.where(here, one, other) for one, other in zip(inside, rest, strict=True)))

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
        named[np.argsort(np.arange(len(self.counts)).astype(str), kind="stable")] = np.arange(
            len(self.counts)
        )
        return named

    @cached_property
    def _common(self) -> Standing:
        """Every class by everybody's counts alone."""
        places = np.flatnonzero(self.kept)
        found = _placed(np.zeros(len(places), dtype=np.int64), self.level[places], self.named[places])
        whole = [np.zeros(len(self.counts), dtype=np.int64) for _ in found]
        for column, part in zip(whole, found, strict=True):
            column[places] = part
        return Standing(*whole)

    @cached_property
    def _entries(self) -> Ints:
        """The entries of the tally whose places are kept."""
        return np.flatnonzero(self.kept[self.tally.places]) if self.tally else np.zeros(0, dtype=np.int64)

    @cached_property
    def _inside(self) -> Standing:
        """Every entry of the tally within its row."""
        tally = self.tally
        if tally is None:
            return Standing(*(np.zeros(0, dtype=np.int64),) * 3)
        at = self._entries
        keys = tally.counts[at] * len(self.levels) + self.level[tally.places[at]]
        found = _placed(tally.row_of[at], keys, self.named[tally.places[at]])
        whole = [np.zeros(len(tally.counts), dtype=np.int64) for _ in found]
        for column, part in zip(whole, found, strict=True):
            column[at] = part
        return Standing(*whole)

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

    def _taken_out(self, rows: Ints, places: Ints) -> Standing:
        """How many of the row's places stand above, beside and first among equals in the common order."""
        pairs, named = self._by_level
        base = np.maximum(rows, 0) * len(self.levels)
        own = base + self.level[places]
        left, right = np.searchsorted(pairs, own), np.searchsorted(pairs, own, side="right")
        end = np.searchsorted(pairs, base + len(self.levels))
        later = np.searchsorted(named, own * len(self.counts) + self.named[places], side="right")
        there = rows >= 0
        return Standing(*(np.where(there, each, 0) for each in (end - right, right - left, right - later)))


def _placed(rows: Ints, keys: Ints, named: Ints) -> Standing:
    """Each entry within its row: larger keys, other equal ones, and of these those of a larger name."""
    order = np.lexsort((named, keys, rows))
    new_row, new_key = (column[order][1:] != column[order][:-1] for column in (rows, keys))
    _, row_end = _groups(new_row, len(order))
    start, end = _groups(new_row | new_key, len(order))
    found = Standing(*(np.empty(len(order), dtype=np.int64) for _ in range(3)))
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
