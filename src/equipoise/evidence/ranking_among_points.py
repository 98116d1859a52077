"""Rankings of points among themselves: the rank of each target of a point among all other points.

A matrix product computes distances fast, with rounding errors. It therefore only prefilters: one extra column
raises every score by more than the rounding error, and another subtracts the required score. A result below 0
is certainly farther than the limit; the few remaining pairs are compared by a formula that is exact near the
boundary of hyperbolic space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import UndefinedError
from equipoise.evidence.base import unique_ids
from equipoise.evidence.kernels.point_counts import GroupedCounts, certain_counts, count_points, should_use_numba
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import segment_indices, segment_offsets

if TYPE_CHECKING:
    from equipoise.geometry.base import Geometry, PointArray
    from equipoise.types import Bools, Floats, Ids, Ints

PAIRS_AT_ONCE = 1 << 15
"""Pairs that are compared together: their coordinates fit in the cache."""

LARGEST_SINGLE, LARGEST = 1e36, 1e300
"""Scores beyond this may overflow in float32, in float64."""


@dataclass(frozen=True, slots=True)
class PairPrefilter:
    """Points among themselves: ``left @ right.T`` is the surrogate, plus the slack, plus a column to be set.

    The slack of a pair, which is ``slack`` of its left row times the length of its right row (at most
    ``max_right_length``), is more than rounding can take off the score.
    """

    space: Geometry
    points: Floats
    left: PointArray
    right: PointArray
    slack: PointArray
    max_right_length: float

    @classmethod
    def of(cls, points: PointArray, geometry: Geometry) -> PairPrefilter:
        """Both factors of the product for points that the geometry accepts."""
        space, rows = geometry.standard(points)
        prepared = space.prepare_corpus(rows)
        scale = 1.0 if prepared.scale is None else prepared.scale[:, None]
        left, right = space.prepare_queries(rows), prepared.rows * scale
        lengths, right_lengths = (np.sqrt(np.einsum("ij,ij->i", side, side)) for side in (left, right))
        max_right_length = float(right_lengths.max(initial=0.0))
        if not max_right_length * lengths.max(initial=0.0) < LARGEST:
            raise UndefinedError(
                "the points are so far from the origin that float64 cannot distinguish their distances",
                hint="scale them down, or bound the radius when they are trained",
            )
        # Rounding of the product, of the entries of both factors and of the excess: each is bounded by the
        # lengths of the two rows and some multiple of the columns.
        slack = (2 * left.shape[1] + 12) * np.finfo(np.float64).eps * lengths
        ones = np.ones(len(rows))
        wider = np.column_stack([left, slack, ones]), np.column_stack([right, right_lengths, ones])
        return cls(space, rows, *wider, slack, max_right_length)

    def single(self) -> PairPrefilter | None:
        """The same prefilter in float32, coarser and twice as fast; None where the scores would overflow."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.left, self.left))
        if not self.max_right_length * lengths.max(initial=0.0) < LARGEST_SINGLE:
            return None
        left, right = self.left.astype(np.float32), self.right.astype(np.float32)
        # The errors of float64 are negligible compared with this.
        slack = ((left.shape[1] + 8) / 2 * np.finfo(np.float32).eps * lengths).astype(np.float32)
        left[:, -2] = slack
        return replace(self, left=left, right=right, slack=slack)

    def excess(self, rows: Ints, columns: Ints) -> Floats:
        """What orders the pairs as their distance does, each pair by itself."""
        excess = np.empty(len(rows))
        for start in range(0, len(rows), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            excess[part] = self.space.excess(
                self.points.take(rows[part], axis=0), self.points.take(columns[part], axis=0)
            )
        return excess

    def query_rows(self, rows: Ints, limits: Floats) -> PointArray:
        """Left rows whose product with ``right`` is 0 or more wherever the excess may be within the limit."""
        left = self.left.take(rows, axis=0)
        left[:, -1] = self.raised(limits) - self.space.nearest
        return left

    def raised(self, limits: Floats) -> Floats:
        """Limits with a margin for their rounding error in the product."""
        return limits + np.abs(limits) * (2 * float(np.finfo(self.left.dtype).eps) * self.left.shape[1])


# All pairs of points within a limit per point, prefiltered by matrix products in tiles.

ROWS, COLUMNS = 512, 256
"""A tile of scores: 1 MB, which the second-level cache holds between the product and the comparison."""

PAIRS = 1 << 20
"""Pairs that are buffered before they are yielded; bounds the memory for any limits."""


def candidate_pairs(prefilter: PairPrefilter, rows: Ints, limits: Floats) -> Iterator[tuple[Ints, Ints]]:
    """Chunks of pairs (index in ``rows``, column) that include all pairs whose excess is within the limit.

    Pairs a little beyond the limit may be among them, and every point is near itself.
    """
    left = prefilter.query_rows(rows, limits)
    right = _pad_rows(prefilter.right)
    scores = np.empty(ROWS * COLUMNS, dtype=left.dtype)
    near = np.empty(ROWS * COLUMNS, dtype=np.bool_)
    zero = np.zeros((), dtype=left.dtype)
    batches: list[tuple[Ints, Ints]] = []
    n_pending = 0
    for top in range(0, len(left), ROWS):
        block = left[top : top + ROWS]
        size = len(block) * COLUMNS
        tile, flat, flags = scores[:size].reshape(len(block), COLUMNS), scores[:size], near[:size]
        for first in range(0, len(right), COLUMNS):
            np.matmul(block, right[first : first + COLUMNS].T, out=tile)
            hits = np.flatnonzero(np.greater_equal(flat, zero, out=flags))
            if len(hits):
                batches.append((hits // COLUMNS + top, hits % COLUMNS + first))
                n_pending += len(hits)
        if n_pending > PAIRS:
            yield _concatenate_batches(batches)
            batches, n_pending = [], 0
    if batches:
        yield _concatenate_batches(batches)


def _pad_rows(right: PointArray) -> PointArray:
    """The right factor padded with rows that are near nothing, so that all tiles are full."""
    missing = -len(right) % COLUMNS
    return np.concatenate([right, np.full((missing, right.shape[1]), np.nan, dtype=right.dtype)])


def _concatenate_batches(batches: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    return np.concatenate([rows for rows, _ in batches]), np.concatenate([columns for _, columns in batches])


# The ranks of the targets.

_SAMPLE_SIZE = 512
_ROWS_PER_SAMPLE_PRODUCT = 4096


@dataclass(frozen=True)
class PointTargets:
    """The targets of all points, grouped by point, nearest first, and their rank counts.

    ``excess`` is a monotone function of the distance of the target, ascending within a point. ``tied`` includes the
    target itself until ``ranking`` subtracts it.
    """

    prefilter: PairPrefilter
    counts: Ints
    starts: Ints
    target_rows: Ints
    excess: Floats
    above: Ints
    tied: Ints
    before: Ints
    ids: Ids

    @classmethod
    def of(cls, points: PointArray, pairs: Ints, geometry: Geometry, ids: Ids) -> PointTargets:
        """From (point, target) index pairs in any order."""
        prefilter = PairPrefilter.of(points, geometry)
        excess = prefilter.excess(pairs[:, 0], pairs[:, 1])
        order = _nearest_first(pairs, excess)
        counts = np.bincount(pairs[:, 0], minlength=len(points))
        above, tied, before = (np.zeros(len(pairs), dtype=np.int64) for _ in range(3))
        target_rows = pairs[order, 1]
        return cls(prefilter, counts, segment_offsets(counts), target_rows, excess[order], above, tied, before, ids)

    @cached_property
    def query_rows(self) -> Ints:
        """The points that have targets."""
        return np.flatnonzero(self.counts)

    @cached_property
    def limits(self) -> Floats:
        """The excess of the farthest target of each point that has one."""
        return self.excess[self.starts[1:][self.query_rows] - 1]

    @cached_property
    def id_order(self) -> Ints:
        """The sort position of each id."""
        position = np.empty(len(self.ids), dtype=np.int64)
        position[np.argsort(self.ids.astype(str), kind="stable")] = np.arange(len(self.ids))
        return position

    def left_by(self, prefilter: PairPrefilter, which: Bools | slice = slice(None)) -> Ints:
        """Estimate the number of candidates within the limit of each point with targets, from an even sample."""
        queries, limits = self.query_rows[which], self.limits[which]
        step = -(-len(self.counts) // _SAMPLE_SIZE)
        sample = prefilter.right[::step].T
        left = np.empty(len(queries), dtype=np.int64)
        for start in range(0, len(left), _ROWS_PER_SAMPLE_PRODUCT):
            part = slice(start, start + _ROWS_PER_SAMPLE_PRODUCT)
            scores = prefilter.query_rows(queries[part], limits[part]) @ sample
            left[part] = np.count_nonzero(scores >= 0.0, axis=1) * step
        return left

    def items_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """The item indices of the targets of these points, and the index in ``rows`` of their point."""
        counts = self.counts[rows]
        return segment_indices(self.starts[:-1][rows], counts), np.repeat(np.arange(len(rows)), counts)

    def order_equals(self, tally: GroupedCounts, columns: Ints, owners: Ints, items: Ints) -> None:
        """Count the points tied with a target that precede it by id.

        ``tally`` contains the excess of ``columns``, in the groups of ``owners``.
        """
        keys, _ = tally.keys_of(owners, self.excess[items])
        groups, members = np.unique(keys, return_inverse=True)
        row_targets = tally.original_keys
        index = np.minimum(np.searchsorted(groups, row_targets), len(groups) - 1)
        equal: Bools = groups[index] == row_targets
        by_id = GroupedCounts.of(index[equal], -self.id_order[columns[equal]])
        self.before[items] += by_id.below(members, -self.id_order[self.target_rows[items]])[0]

    def ranking(self) -> Ranking:
        """The counts as a ``Ranking``; the tie of a target with itself is subtracted."""
        pool = np.full(len(self.counts), len(self.counts) - 1, dtype=np.int64)
        return Ranking.of_items(
            self.ids,
            self.counts,
            gain=np.ones(len(self.target_rows)),
            above=self.above,
            tied=self.tied - 1,
            before=self.before,
            depth=pool,
            candidates=pool,
        )


def _nearest_first(pairs: Ints, excess: Floats) -> Ints:
    """The order by point, then excess, then target."""
    order = np.argsort(excess)
    # Two halves of 16 bits: numpy sorts 16-bit integers by radix sort.
    for shift in (0, 16):
        half = (pairs[:, 0] >> shift).astype(np.uint16)
        if shift == 0 or half.any():
            order = order[np.argsort(half[order], kind="stable")]
    ordered, distances = pairs[order, 0], excess[order]
    if ((ordered[1:] == ordered[:-1]) & (distances[1:] == distances[:-1])).any():
        return np.lexsort((pairs[:, 1], excess, pairs[:, 0]))
    return order


WIDE = 2048
"""Points with more candidates than this are counted by buckets; comparing fewer is faster."""

_ROWS_PER_BLOCK = 4096
_FULL_ROWS_PER_BLOCK = 16


def ranking_among_points(
    points: PointArray,
    pairs: Ints,
    geometry: Geometry,
    *,
    unit_ids: Any = None,
    wide: int = WIDE,
    compiled: bool | None = None,
) -> Ranking:
    """The exact rank of each point's targets among all other points, by distance, at full depth.

    ``pairs`` are unique (point, target) index pairs. A point is not a candidate for itself. ``wide`` and
    ``compiled`` choose the algorithm and do not change the result; by default numba counts many points if it is
    installed.
    """
    targets = PointTargets.of(points, pairs, geometry, unique_ids(unit_ids, len(points)))
    if should_use_numba(len(points), compiled):
        count_points(targets, wide)
    else:
        _count_with_numpy(targets, wide)
    return targets.ranking()


def _count_with_numpy(targets: PointTargets, wide: int) -> None:
    """Fill in the counts with numpy only."""
    fine, coarse = targets.prefilter, targets.prefilter.single()
    left = targets.left_by(fine)
    use_full_row = left > wide
    enough = np.zeros_like(use_full_row) if coarse is None else (targets.left_by(coarse) <= left) & ~use_full_row
    for prefilter, rows in ((coarse, enough), (fine, ~enough & ~use_full_row)):
        for part in _blocks(targets.query_rows[rows], _ROWS_PER_BLOCK):
            _count_candidates(targets, part, prefilter or fine)
    for part in _blocks(targets.query_rows[use_full_row], _FULL_ROWS_PER_BLOCK):
        _count_by_buckets(targets, part)


def _blocks(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _count_candidates(targets: PointTargets, rows: Ints, prefilter: PairPrefilter) -> None:
    """Count the points that the prefilter keeps."""
    limits = targets.limits[np.searchsorted(targets.query_rows, rows)]
    for positions, columns in candidate_pairs(prefilter, rows, limits):
        _add_exact_counts(targets, rows, positions, columns)


def _count_by_buckets(targets: PointTargets, rows: Ints) -> None:
    """Count most points by a histogram of their scores, and the uncertain rest exactly."""
    prefilter = targets.prefilter
    scores = prefilter.query_rows(rows, np.zeros(len(rows))) @ prefilter.right.T
    np.negative(scores, out=scores)
    positions, columns = [], []
    for position, row in enumerate(rows.tolist()):
        scores[position, row] = scores[position].max()
        items = slice(targets.starts[row], targets.starts[row + 1])
        slack = 2.0 * float(prefilter.slack[row]) * prefilter.max_right_length
        limits = prefilter.raised(targets.excess[items])
        certain, unsure = certain_counts(
            scores[position], limits, slack + float((limits - targets.excess[items]).max())
        )
        targets.above[items] += certain
        positions.append(np.full(len(unsure), position))
        columns.append(unsure)
    _add_exact_counts(targets, rows, np.concatenate(positions), np.concatenate(columns))


def _add_exact_counts(targets: PointTargets, rows: Ints, positions: Ints, columns: Ints) -> None:
    """Add points to the counts by their exact distances; each point may be added only once."""
    others = rows[positions] != columns
    positions, columns = positions[others], columns[others]
    tally = GroupedCounts.of(positions, targets.prefilter.excess(rows[positions], columns))
    items, owners = targets.items_of(rows)
    below, equal = tally.below(owners, targets.excess[items])
    targets.above[items] += below
    targets.tied[items] += equal
    shared = equal > 1
    if shared.any():
        targets.order_equals(tally, columns, owners[shared], items[shared])
