"""Relatives counted by compiled kernels: float32 products where these suffice, each for both of its points.

Points whose limit leaves few others are compared in square tiles right of the diagonal, as a distance is
that of both points. The other points are compared with everybody, a few rows at a time. What the scores leave
in doubt, little more than the relatives themselves, is decided by the excess of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.relatives import Relatives
from equipoise.evidence.tally import Tally
from equipoise.geometry.points import Points
from equipoise.geometry.screen import Screen
from equipoise.types import Bools, Floats, Ints, need

TILE = 256
"""Rows and columns of a tile: 256 KB, and small enough for products that need not rearrange their factors."""

TOGETHER = 4
"""Tiles that are made before they are looked at."""

WORTH = 1 << 31
"""Pairs from which on it pays by itself: to load numba, and the first time to compile, takes some seconds."""

KEPT = 1 << 21
"""Pairs that may wait to be looked at."""

_SMALLEST = 2.0**-130
"""More than float32 can lose where numbers are too small for all of its digits."""

_ROWS_BYTES = 1 << 22
_FINE, _COARSEST = 1 / 256, 1 / 16
"""What float32 may be off, as a share of the limit: below the one it surely suffices, above the other not."""


def use_compiled(points: int, wanted: bool | None = None) -> bool:
    """Whether the compiled kernels are to count: they were asked for, or are there and pay by themselves.

    >>> use_compiled(100), use_compiled(1_000_000, False)
    (False, False)
    """
    if wanted:
        need("numba", extra="fast")
    return bool(wanted) or (wanted is None and points**2 >= WORTH and find_spec("numba") is not None)


def count_compiled(relatives: Relatives, wide: int) -> None:
    """Fill in the counts; a point whose limit leaves more than ``wide`` others gets rows of its own."""
    counting = _Counting(relatives, max(KEPT, len(relatives.counts), 2 * TOGETHER * TILE**2))
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


def _enough(relatives: Relatives, coarse: Screen, left: Ints) -> Bools:
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

    relatives: Relatives
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

    def look_both_ways(self, screen: Screen, rows: Ints) -> None:
        """Count for all these points at once, every pair of them once."""
        if not len(rows):
            return
        from equipoise.evidence import counts_compiled

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
                self.held = counts_compiled.look_both_ways(
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

    def look_along(self, screen: Screen, rows: Ints) -> None:
        """Count for each of these points by itself."""
        if not len(rows):
            return
        from equipoise.evidence import counts_compiled

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
                row, self.held = counts_compiled.look_along(
                    scores, part, row, starts, int(begins[row]), low, high, self.reached, self.kept, self.held
                )
                if row < len(part):
                    self.settle()
        self.settle()

    def settle(self, order: Ints | None = None) -> None:
        """Decide the pairs that wait, by their excess; ``order`` tells which points their numbers mean."""
        from equipoise.evidence import counts_compiled

        waiting = self.kept[:, : self.held]
        rows, columns = waiting.astype(np.int64) if order is None else order[waiting]
        known = self.relatives
        excess = known.screen.excess(rows, columns)
        shared: Bools = np.empty(len(rows), dtype=np.bool_)
        if counts_compiled.place_exactly(
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
            tally = Tally.of(places, excess[shared])
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


def _in_tiles(screen: Screen, order: Ints) -> tuple[Points, Floats]:
    """The right factor of the product, one tile's columns after another, and the length of each column.

    The last tile is filled up with NaN.
    """
    rows = screen.right.take(order, axis=0)[:, :-1]
    missing = -len(rows) % TILE
    padded = np.concatenate([rows, np.full((missing, rows.shape[1]), np.nan, dtype=rows.dtype)])
    tiles = np.ascontiguousarray(padded.reshape(-1, TILE, rows.shape[1]).transpose(0, 2, 1))
    return tiles, padded[:, -1].astype(np.float64)


def _below(numbers: Floats, kind: np.dtype[np.floating]) -> Points:
    """The numbers in their new type, rounded down."""
    return np.nextafter(numbers.astype(kind), kind.type(-np.inf))


def _above(numbers: Floats, kind: np.dtype[np.floating]) -> Points:
    """The numbers in their new type, rounded up."""
    return np.nextafter(numbers.astype(kind), kind.type(np.inf))
