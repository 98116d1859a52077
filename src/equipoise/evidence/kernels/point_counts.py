"""Relatives counted by compiled kernels: float32 products where these suffice, each for both of its points.

Points whose limit leaves few others are compared in square tiles right of the diagonal, as a distance is
that of both points. The other points are compared with everybody, a few rows at a time. What the scores leave
in doubt, little more than the relatives themselves, is decided by the excess of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Bools, Floats, Ints, require_extra

if TYPE_CHECKING:
    from equipoise.evidence.ranking_among_points import PointTargets
    from equipoise.geometry.base import PointArray
    from equipoise.geometry.prefilter import PairPrefilter

# Counting within groups: how many numbers of a group lie below a limit, and how many equal it.

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class GroupedCounts:
    """Numbers that belong to groups, ready to be counted.

    ``ordered`` are all numbers in order, and ``order`` says where they stood. The key of a number is its
    group and then the place of the first one that equals it: ``in_order`` of the numbers, ``keys`` in order
    themselves.
    """

    order: Ints
    ordered: Numbers
    in_order: Ints
    keys: Ints

    @classmethod
    def of(cls, groups: Ints, numbers: Numbers) -> GroupedCounts:
        """Two sorts of the whole; no group is looked at by itself.

        >>> GroupedCounts.of(np.array([0, 1, 0]), np.array([2.0, 9.0, 3.0])).below(np.array([0]), np.array([3.0]))
        (array([1]), array([1]))
        """
        order = np.argsort(numbers)
        ordered = numbers[order]
        opens = np.ones(len(ordered), dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=opens[1:])
        first = np.maximum.accumulate(np.where(opens, np.arange(len(ordered)), 0))
        in_order = groups[order] * (len(ordered) + 1) + first
        return cls(order, ordered, in_order, np.sort(in_order))

    @property
    def own(self) -> Ints:
        """The key of each number, as they were given."""
        own = np.empty_like(self.in_order)
        own[self.order] = self.in_order
        return own

    def below(self, groups: Ints, limits: Numbers) -> tuple[Ints, Ints]:
        """For each limit: how many numbers of its group lie below it, and how many equal it."""
        keys, known = self.places(groups, limits)
        start = np.searchsorted(self.keys, groups * (len(self.ordered) + 1))
        left = np.searchsorted(self.keys, keys)
        equal = np.where(known, np.searchsorted(self.keys, keys, side="right") - left, 0)
        return left - start, equal

    def places(self, groups: Ints, limits: Numbers) -> tuple[Ints, NDArray[np.bool_]]:
        """The key that a number in this group would have, and whether the number occurs at all."""
        place = np.searchsorted(self.ordered, limits)
        known = np.zeros(len(limits), dtype=np.bool_)
        inside = place < len(self.ordered)
        known[inside] = self.ordered[place[inside]] == limits[inside]
        return groups * (len(self.ordered) + 1) + place, known


TILE = 256
"""Rows and columns of a tile: 256 KB, and small enough for products that need not rearrange their factors."""

TOGETHER = 4
"""Tiles that are made before they are looked at."""

WORTH = 1 << 31
"""Pairs from which on it pays by itself: to load numba, and the first time to compile, takes some seconds."""

CANDIDATE_CAPACITY = 1 << 21
"""Pairs that may wait to be looked at."""

_SMALLEST = 2.0**-130
"""More than float32 can lose where numbers are too small for all of its digits."""

_ROWS_BYTES = 1 << 22
_FINE, _COARSEST = 1 / 256, 1 / 16
"""What float32 may be off, as a share of the limit: below the one it surely suffices, above the other not."""


def should_use_numba(points: int, wanted: bool | None = None) -> bool:
    """Whether the compiled kernels are to count: they were asked for, or are there and pay by themselves.

    >>> should_use_numba(100), should_use_numba(1_000_000, False)
    (False, False)
    """
    if wanted:
        require_extra("numba", extra="fast")
    return bool(wanted) or (wanted is None and points**2 >= WORTH and find_spec("numba") is not None)


def count_points(relatives: PointTargets, wide: int) -> None:
    """Fill in the counts; a point whose limit leaves more than ``wide`` others gets rows of its own."""
    counting = _Counting(relatives, max(CANDIDATE_CAPACITY, len(relatives.counts), 2 * TOGETHER * TILE**2))
    fine, coarse = relatives.screen, relatives.screen.single()
    enough = np.zeros(len(relatives.asking), dtype=np.bool_)
    if coarse is not None:
        left = relatives.left_by(coarse)
        enough = _enough(relatives, coarse, left)
        narrow = enough & (left <= wide)
        counting.look_both_ways(coarse, relatives.asking[narrow])
        counting.look_along(coarse, relatives.asking[enough & ~narrow])
    counting.look_along(fine, relatives.asking[~enough])
    counting.finish()


def _enough(relatives: PointTargets, coarse: PairPrefilter, left: Ints) -> Bools:
    """For which points float32 leaves little more in doubt than float64 does."""
    doubt, limits = 2.0 * coarse.slack[relatives.asking] * coarse.reach, np.abs(relatives.limits)
    enough: Bools = doubt <= _FINE * limits
    open_to_doubt = ~enough & (doubt <= _COARSEST * limits)
    least = relatives.left_by(relatives.screen, open_to_doubt)
    enough[open_to_doubt] = left[open_to_doubt] <= least + least // 16
    return enough


@dataclass
class _Counting:
    """What the kernels share: where scores were counted, and pairs that wait to be looked at."""

    relatives: PointTargets
    capacity: int
    held: int = 0

    def __post_init__(self) -> None:
        items = len(self.relatives.excess)
        self.reached = np.zeros(items, dtype=np.int64)
        self.equal = np.zeros(items + 1, dtype=np.int64)
        self.kept: NDArray[np.int32] = np.empty((2, self.capacity), dtype=np.int32)

    @cached_property
    def room(self) -> Floats:
        """For each point, more than its thresholds can be off by their own rounding."""
        known = self.relatives
        largest = np.full(len(known.counts), abs(known.screen.space.nearest))
        ends = known.starts[:-1][known.asking], known.starts[1:][known.asking] - 1
        largest[known.asking] += np.maximum(*(np.abs(known.excess[each]) for each in ends))
        return 8.0 * float(np.finfo(np.float64).eps) * largest + _SMALLEST * (1.0 + known.screen.reach)

    @cached_property
    def thresholds(self) -> Floats:
        """For each relative, the score below which nobody is as near: falling within a point."""
        known = self.relatives
        return known.screen.space.nearest - known.excess - np.repeat(self.room, known.counts)

    def look_both_ways(self, screen: PairPrefilter, rows: Ints) -> None:
        """Count for all these points at once, every pair of them once."""
        if not len(rows):
            return
        from equipoise.evidence.kernels import point_counts_numba

        others = np.ones(len(self.relatives.counts), dtype=np.bool_)
        others[rows] = False
        order = np.concatenate([rows, np.flatnonzero(others)])
        right, lengths = _in_tiles(screen, order)
        starts = self.relatives.starts
        floor = np.full(len(right) * TILE, np.inf, dtype=right.dtype)
        floor[: len(rows)] = _below(self.thresholds[starts[rows + 1] - 1], right.dtype)
        left = screen.left.take(rows, axis=0)[:, :-1]
        slack = 2.0 * screen.slack[rows].astype(np.float64)
        spans = starts[:-1][rows], starts[1:][rows]
        room = 2.0 * self.room[rows]
        scores = np.empty((TOGETHER, TILE, TILE), dtype=right.dtype)
        for top in range(0, len(rows), TILE):
            block = left[top : top + TILE]
            for first in range(top // TILE, len(right), TOGETHER):
                part = right[first : first + TOGETHER]
                tiles = np.matmul(block, part, out=scores[: len(part), : len(block)])
                if self.held + 2 * tiles.size > self.capacity:
                    self.settle(order)
                self.held = point_counts_numba.count_tile_pairs(
                    tiles,
                    top,
                    first * TILE,
                    floor,
                    *spans,
                    self.thresholds,
                    slack,
                    lengths,
                    room,
                    self.reached,
                    self.kept,
                    self.held,
                )
        self.settle(order)

    def look_along(self, screen: PairPrefilter, rows: Ints) -> None:
        """Count for each of these points by itself."""
        if not len(rows):
            return
        from equipoise.evidence.kernels import point_counts_numba

        starts, right = self.relatives.starts, np.ascontiguousarray(screen.right[:, :-1].T)
        size = max(_ROWS_BYTES // (right.shape[1] * right.itemsize), 1)
        space = np.empty((size, right.shape[1]), dtype=right.dtype)
        for top in range(0, len(rows), size):
            part = rows[top : top + size]
            scores = np.matmul(screen.left.take(part, axis=0)[:, :-1], right, out=space[: len(part)])
            items, places = self.relatives.items_of(part)
            gap = 2.0 * (screen.slack[part].astype(np.float64) * screen.reach + self.room[part])
            low = _below(self.thresholds[items], right.dtype)
            high = _above(self.thresholds[items] + gap[places], right.dtype)
            begins = np.cumsum(self.relatives.counts[part]) - self.relatives.counts[part]
            row = 0
            while row < len(part):
                row, self.held = point_counts_numba.count_rows(
                    scores, part, row, starts, int(begins[row]), low, high, self.reached, self.kept, self.held
                )
                if row < len(part):
                    self.settle()
        self.settle()

    def settle(self, order: Ints | None = None) -> None:
        """Decide the pairs that wait, by their excess; ``order`` tells which points their numbers mean."""
        from equipoise.evidence.kernels import point_counts_numba

        waiting = self.kept[:, : self.held]
        rows, columns = waiting.astype(np.int64) if order is None else order[waiting]
        known = self.relatives
        excess = known.screen.excess(rows, columns)
        shared: Bools = np.empty(len(rows), dtype=np.bool_)
        if point_counts_numba.add_exact_counts(
            rows,
            columns,
            excess,
            known.starts,
            known.relatives,
            known.excess,
            self.reached,
            self.equal,
            shared,
        ):
            asking, places = np.unique(rows[shared], return_inverse=True)
            tally = GroupedCounts.of(places, excess[shared])
            items, owners = known.items_of(asking)
            _, equal = tally.below(owners, known.excess[items])
            known.order_equals(tally, columns[shared], owners[equal > 0], items[equal > 0])
        self.held = 0

    def finish(self) -> None:
        """A score that was counted at one relative lies before all farther ones too."""
        known = self.relatives
        total = np.concatenate([[0], np.cumsum(self.reached)])
        known.above[:] = total[1:] - np.repeat(total[known.starts[:-1]], known.counts)
        known.tied[:] = np.cumsum(self.equal)[:-1]


def _in_tiles(screen: PairPrefilter, order: Ints) -> tuple[PointArray, Floats]:
    """The right factor of the product, one tile's columns after another, and the length of each column.

    The last tile is filled up with NaN.
    """
    rows = screen.right.take(order, axis=0)[:, :-1]
    missing = -len(rows) % TILE
    padded = np.concatenate([rows, np.full((missing, rows.shape[1]), np.nan, dtype=rows.dtype)])
    tiles = np.ascontiguousarray(padded.reshape(-1, TILE, rows.shape[1]).transpose(0, 2, 1))
    return tiles, padded[:, -1].astype(np.float64)


def _below(numbers: Floats, kind: np.dtype[np.floating]) -> PointArray:
    """The numbers in their new type, rounded down."""
    return np.nextafter(numbers.astype(kind), kind.type(-np.inf))


def _above(numbers: Floats, kind: np.dtype[np.floating]) -> PointArray:
    """The numbers in their new type, rounded up."""
    return np.nextafter(numbers.astype(kind), kind.type(np.inf))


# Limits that reach far into a row: most numbers are counted by the bucket they fall into.

_BITS = 9
_DOUBLINGS = 40
_SHIFT = 52 - _BITS
_MOST = _DOUBLINGS << _BITS


def certain_counts(numbers: Floats, limits: Floats, slack: float) -> tuple[Ints, Ints]:
    """How many numbers lie below each limit without doubt, and the places of those that have to be looked at.

    ``numbers`` may be too small by up to ``slack``, never too large. A number that is not among the places
    returned lies on the same side of every limit as it was counted.

    >>> below, unsure = certain_counts(np.array([1.0, 5.0, 9.0]), np.array([5.0]), slack=0.0)
    >>> below.tolist(), unsure.tolist()
    ([1], [1])
    """
    least, most = numbers.min(), numbers.max()
    base = int(_bits(np.array([most - least]))[0]) - _MOST
    bucket = _bucket(numbers - least, base)
    first, last = _bucket(limits - slack - least, base), _bucket(limits - least, base)
    edges = np.zeros(_MOST + 3, dtype=np.int64)
    np.add.at(edges, first, 1)
    np.add.at(edges, last + 1, -1)
    touched = np.cumsum(edges[:-1]) > 0
    whole = np.bincount(bucket, minlength=_MOST + 2)
    whole[touched] = 0
    return (np.cumsum(whole) - whole)[first], np.flatnonzero(touched[bucket])


def _bucket(heights: Floats, base: int) -> Ints:
    """The bucket of each number, seen from the least of them; what lies beyond the largest has one more."""
    bucket = _bits(np.maximum(heights, 0.0))
    bucket -= base
    return np.clip(bucket, 0, _MOST + 1, out=bucket)


def _bits(heights: Floats) -> Ints:
    """The leading bits of numbers from 0 up, which have the order of the numbers."""
    return heights.view(np.int64) >> _SHIFT
