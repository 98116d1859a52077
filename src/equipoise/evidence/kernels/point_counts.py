"""Rank counts among points: how many points are nearer to a point than each of its targets.

For points ``x`` of shape (n, d), a target ``t`` of point ``i``, and the distance ``d``::

    above = #{j : d(x[i], x[j]) < d(x[i], x[t])}      tied = #{j != t : d(x[i], x[j]) == d(x[i], x[t])}

Distances are compared through scores that a matrix product gives (``PairPrefilter``): a score has a known
error bound, so most comparisons are certain. The few uncertain pairs are decided by the exact excess of the pair.
Points whose farthest target leaves few candidates are compared in square tiles right of the diagonal, since a
distance belongs to both points. The other points are compared with all points, a few rows at a time. float32
products are used where their error bound suffices.

Measured on WordNet's nouns, 82,115 nodes in 10 dimensions (benchmarks/README.md): 3.93 s for all ranks with the
compiled kernels, 13.2 s without numba.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Bools, Floats, Ints, install_command, require_extra

if TYPE_CHECKING:
    from equipoise.evidence.ranking_among_points import PairPrefilter, PointTargets
    from equipoise.geometry.base import PointArray

Numbers = NDArray[Any]

_LOGGER = logging.getLogger("equipoise")


@dataclass(frozen=True, slots=True)
class GroupedCounts:
    """Numbers in groups, sorted so that counts below a limit within a group are binary searches.

    ``ordered`` are all numbers in ascending order, ``order`` their original indices. The key of a number is
    ``group * (n + 1)`` plus the sorted index of the first equal number. ``in_order`` are the keys of ``ordered``,
    ``keys`` the sorted keys.
    """

    order: Ints
    ordered: Numbers
    in_order: Ints
    keys: Ints

    @classmethod
    def of(cls, groups: Ints, numbers: Numbers) -> GroupedCounts:
        """Sort all numbers, then all keys; no loop over groups."""
        order = np.argsort(numbers)
        ordered = numbers[order]
        opens = np.ones(len(ordered), dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=opens[1:])
        first = np.maximum.accumulate(np.where(opens, np.arange(len(ordered)), 0))
        in_order = groups[order] * (len(ordered) + 1) + first
        return cls(order, ordered, in_order, np.sort(in_order))

    @property
    def original_keys(self) -> Ints:
        """The key of each number, in the original order."""
        keys = np.empty_like(self.in_order)
        keys[self.order] = self.in_order
        return keys

    def below(self, groups: Ints, limits: Numbers) -> tuple[Ints, Ints]:
        """For each limit: how many numbers of its group are below it, and how many equal it."""
        keys, is_known = self.keys_of(groups, limits)
        start = np.searchsorted(self.keys, groups * (len(self.ordered) + 1))
        left = np.searchsorted(self.keys, keys)
        equal = np.where(is_known, np.searchsorted(self.keys, keys, side="right") - left, 0)
        return left - start, equal

    def keys_of(self, groups: Ints, limits: Numbers) -> tuple[Ints, NDArray[np.bool_]]:
        """The key that each number would have in its group, and whether the number occurs at all."""
        index = np.searchsorted(self.ordered, limits)
        is_known = np.zeros(len(limits), dtype=np.bool_)
        inside = index < len(self.ordered)
        is_known[inside] = self.ordered[index[inside]] == limits[inside]
        return groups * (len(self.ordered) + 1) + index, is_known


TILE = 256
"""Rows and columns of a tile: 256 KB of float32, small enough for products that do not repack their factors."""

TILES_PER_PRODUCT = 4
"""Tiles computed by one matrix product."""

MIN_PAIRS_TO_COMPILE = 1 << 31
"""Number of pairs from which loading numba, and the first time compiling (some seconds), is repaid."""

CANDIDATE_CAPACITY = 1 << 21
"""Capacity of the buffer of uncertain pairs."""

_UNDERFLOW_BOUND = 2.0**-130
"""Upper bound of the float32 error of subnormal numbers."""

_ROWS_BYTES = 1 << 22
_SMALL_DOUBT, _LARGE_DOUBT = 1 / 256, 1 / 16
"""Error bound of float32 relative to the limit: below the first it suffices, above the second it does not."""


def should_use_numba(points: int, requested: bool | None = None) -> bool:
    """Whether to use the compiled kernels: they were requested, or numba is installed and there are enough pairs.

    If there are enough pairs and numba, which the extra ``fast`` installs, is missing, this is logged once.
    """
    if requested:
        require_extra("numba", extra="fast")
        return True
    if requested is False or points**2 < MIN_PAIRS_TO_COMPILE:
        return False
    if find_spec("numba") is None:
        _report_missing_numba()
        return False
    return True


@cache
def _report_missing_numba() -> None:
    _LOGGER.warning("Ranks among many points are counted three times faster with %s.", install_command("fast"))


def count_points(targets: PointTargets, wide: int) -> None:
    """Fill in the counts; a point with more than ``wide`` candidates is compared row by row."""
    counting = _PairCounter(targets, max(CANDIDATE_CAPACITY, len(targets.counts), 2 * TILES_PER_PRODUCT * TILE**2))
    fine, coarse = targets.prefilter, targets.prefilter.single()
    enough = np.zeros(len(targets.query_rows), dtype=np.bool_)
    if coarse is not None:
        left = targets.left_by(coarse)
        enough = _float32_suffices(targets, coarse, left)
        narrow = enough & (left <= wide)
        counting.count_tiles(coarse, targets.query_rows[narrow])
        counting.count_rows(coarse, targets.query_rows[enough & ~narrow])
    counting.count_rows(fine, targets.query_rows[~enough])
    counting.finish()


def _float32_suffices(targets: PointTargets, coarse: PairPrefilter, left: Ints) -> Bools:
    """The points for which float32 leaves about as few uncertain pairs as float64."""
    doubt, limits = 2.0 * coarse.slack[targets.query_rows] * coarse.max_right_length, np.abs(targets.limits)
    enough: Bools = doubt <= _SMALL_DOUBT * limits
    open_to_doubt = ~enough & (doubt <= _LARGE_DOUBT * limits)
    least = targets.left_by(targets.prefilter, open_to_doubt)
    enough[open_to_doubt] = left[open_to_doubt] <= least + least // 16
    return enough


@dataclass
class _PairCounter:
    """State of the kernels: counts per target, and a buffer of uncertain pairs.

    ``n_reached[k]`` counts the pairs whose first reached target is ``k``; ``equal_differences`` are differences of
    the tie counts, so that a run of equal targets takes two additions. Both are summed in ``finish``.
    """

    targets: PointTargets
    capacity: int
    n_candidates: int = 0

    def __post_init__(self) -> None:
        items = len(self.targets.excess)
        self.n_reached = np.zeros(items, dtype=np.int64)
        self.equal_differences = np.zeros(items + 1, dtype=np.int64)
        self.candidates: NDArray[np.int32] = np.empty((2, self.capacity), dtype=np.int32)

    @cached_property
    def threshold_error(self) -> Floats:
        """For each point, an upper bound of the rounding error of its thresholds."""
        targets = self.targets
        largest = np.full(len(targets.counts), abs(targets.prefilter.space.nearest))
        ends = targets.starts[:-1][targets.query_rows], targets.starts[1:][targets.query_rows] - 1
        largest[targets.query_rows] += np.maximum(*(np.abs(targets.excess[end]) for end in ends))
        return 8.0 * float(np.finfo(np.float64).eps) * largest + _UNDERFLOW_BOUND * (
            1.0 + targets.prefilter.max_right_length
        )

    @cached_property
    def thresholds(self) -> Floats:
        """For each target, the score below which no point is as near; descending within a point."""
        targets = self.targets
        return targets.prefilter.space.nearest - targets.excess - np.repeat(self.threshold_error, targets.counts)

    def count_tiles(self, prefilter: PairPrefilter, rows: Ints) -> None:
        """Count for all these points together; each pair is computed once."""
        if not len(rows):
            return
        from equipoise.evidence.kernels import point_counts_numba

        others = np.ones(len(self.targets.counts), dtype=np.bool_)
        others[rows] = False
        order = np.concatenate([rows, np.flatnonzero(others)])
        right, lengths = _column_tiles(prefilter, order)
        starts = self.targets.starts
        floor = np.full(len(right) * TILE, np.inf, dtype=right.dtype)
        floor[: len(rows)] = _round_down(self.thresholds[starts[rows + 1] - 1], right.dtype)
        left = prefilter.left.take(rows, axis=0)[:, :-1]
        slack = 2.0 * prefilter.slack[rows].astype(np.float64)
        spans = starts[:-1][rows], starts[1:][rows]
        room = 2.0 * self.threshold_error[rows]
        scores = np.empty((TILES_PER_PRODUCT, TILE, TILE), dtype=right.dtype)
        for top in range(0, len(rows), TILE):
            block = left[top : top + TILE]
            for first in range(top // TILE, len(right), TILES_PER_PRODUCT):
                part = right[first : first + TILES_PER_PRODUCT]
                tiles = np.matmul(block, part, out=scores[: len(part), : len(block)])
                if self.n_candidates + 2 * tiles.size > self.capacity:
                    self.flush(order)
                self.n_candidates = point_counts_numba.count_tile_pairs(
                    tiles,
                    top,
                    first * TILE,
                    floor,
                    *spans,
                    self.thresholds,
                    slack,
                    lengths,
                    room,
                    self.n_reached,
                    self.candidates,
                    self.n_candidates,
                )
        self.flush(order)

    def count_rows(self, prefilter: PairPrefilter, rows: Ints) -> None:
        """Count for each of these points separately, against all points."""
        if not len(rows):
            return
        from equipoise.evidence.kernels import point_counts_numba

        starts, right = self.targets.starts, np.ascontiguousarray(prefilter.right[:, :-1].T)
        size = max(_ROWS_BYTES // (right.shape[1] * right.itemsize), 1)
        space = np.empty((size, right.shape[1]), dtype=right.dtype)
        for top in range(0, len(rows), size):
            part = rows[top : top + size]
            scores = np.matmul(prefilter.left.take(part, axis=0)[:, :-1], right, out=space[: len(part)])
            items, positions = self.targets.items_of(part)
            gap = 2.0 * (
                prefilter.slack[part].astype(np.float64) * prefilter.max_right_length + self.threshold_error[part]
            )
            low = _round_down(self.thresholds[items], right.dtype)
            high = _round_up(self.thresholds[items] + gap[positions], right.dtype)
            begins = np.cumsum(self.targets.counts[part]) - self.targets.counts[part]
            row = 0
            while row < len(part):
                row, self.n_candidates = point_counts_numba.count_rows(
                    scores,
                    part,
                    row,
                    starts,
                    int(begins[row]),
                    low,
                    high,
                    self.n_reached,
                    self.candidates,
                    self.n_candidates,
                )
                if row < len(part):
                    self.flush()
        self.flush()

    def flush(self, order: Ints | None = None) -> None:
        """Decide the uncertain pairs by their exact excess; ``order`` maps buffered indices to points."""
        from equipoise.evidence.kernels import point_counts_numba

        pending = self.candidates[:, : self.n_candidates]
        rows, columns = pending.astype(np.int64) if order is None else order[pending]
        targets = self.targets
        excess = targets.prefilter.excess(rows, columns)
        shared: Bools = np.empty(len(rows), dtype=np.bool_)
        if point_counts_numba.add_exact_counts(
            rows,
            columns,
            excess,
            targets.starts,
            targets.target_rows,
            targets.excess,
            self.n_reached,
            self.equal_differences,
            shared,
        ):
            query_rows, positions = np.unique(rows[shared], return_inverse=True)
            tally = GroupedCounts.of(positions, excess[shared])
            items, owners = targets.items_of(query_rows)
            _, equal = tally.below(owners, targets.excess[items])
            targets.order_equals(tally, columns[shared], owners[equal > 0], items[equal > 0])
        self.n_candidates = 0

    def finish(self) -> None:
        """Sum the counts: a point that is nearer than one target is nearer than all farther targets."""
        targets = self.targets
        total = np.concatenate([[0], np.cumsum(self.n_reached)])
        targets.above[:] = total[1:] - np.repeat(total[targets.starts[:-1]], targets.counts)
        targets.tied[:] = np.cumsum(self.equal_differences)[:-1]


def _column_tiles(prefilter: PairPrefilter, order: Ints) -> tuple[PointArray, Floats]:
    """The right factor of the product as (tiles, dims, TILE), and the norm of each column.

    The last tile is padded with NaN.
    """
    rows = prefilter.right.take(order, axis=0)[:, :-1]
    missing = -len(rows) % TILE
    padded = np.concatenate([rows, np.full((missing, rows.shape[1]), np.nan, dtype=rows.dtype)])
    tiles = np.ascontiguousarray(padded.reshape(-1, TILE, rows.shape[1]).transpose(0, 2, 1))
    return tiles, padded[:, -1].astype(np.float64)


def _round_down(numbers: Floats, kind: np.dtype[np.floating]) -> PointArray:
    """The numbers in the new dtype, rounded down."""
    return np.nextafter(numbers.astype(kind), kind.type(-np.inf))


def _round_up(numbers: Floats, kind: np.dtype[np.floating]) -> PointArray:
    """The numbers in the new dtype, rounded up."""
    return np.nextafter(numbers.astype(kind), kind.type(np.inf))


_BITS = 9
_DOUBLINGS = 40
_SHIFT = 52 - _BITS
_N_BUCKETS = _DOUBLINGS << _BITS


def certain_counts(numbers: Floats, limits: Floats, slack: float) -> tuple[Ints, Ints]:
    """How many numbers are certainly below each limit, and the indices of the uncertain numbers.

    A histogram over the leading bits of the numbers gives the counts. ``numbers`` may be too small by up to
    ``slack``, never too large. Every number whose index is not returned is counted correctly for every limit.
    """
    least, most = numbers.min(), numbers.max()
    base = int(_bits(np.array([most - least]))[0]) - _N_BUCKETS
    bucket = _bucket(numbers - least, base)
    first, last = _bucket(limits - slack - least, base), _bucket(limits - least, base)
    edges = np.zeros(_N_BUCKETS + 3, dtype=np.int64)
    np.add.at(edges, first, 1)
    np.add.at(edges, last + 1, -1)
    touched = np.cumsum(edges[:-1]) > 0
    counts = np.bincount(bucket, minlength=_N_BUCKETS + 2)
    counts[touched] = 0
    return (np.cumsum(counts) - counts)[first], np.flatnonzero(touched[bucket])


def _bucket(heights: Floats, base: int) -> Ints:
    """The bucket of each number relative to the smallest; the last bucket is for numbers beyond the largest."""
    bucket = _bits(np.maximum(heights, 0.0))
    bucket -= base
    return np.clip(bucket, 0, _N_BUCKETS + 1, out=bucket)


def _bits(heights: Floats) -> Ints:
    """The leading bits of non-negative numbers, which sort like the numbers."""
    return heights.view(np.int64) >> _SHIFT
