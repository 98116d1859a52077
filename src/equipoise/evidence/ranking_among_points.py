"""Rankings of points among themselves: the rank of each target of a point among all other points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.evidence.base import unique_ids
from equipoise.evidence.kernels.point_counts import (
    GroupedCounts,
    certain_counts,
    count_points,
    should_use_numba,
)
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.prefilter import PairPrefilter, candidate_pairs
from equipoise.io.arrays import segment_indices, segment_offsets

if TYPE_CHECKING:
    from equipoise.geometry.base import Geometry, PointArray
    from equipoise.types import Bools, Floats, Ids, Ints

_SAMPLE_SIZE = 512
_ROWS_PER_SAMPLE_PRODUCT = 4096


@dataclass(frozen=True)
class PointTargets:
    """The targets of all points, grouped by point, nearest first, and their rank counts.

    ``excess`` is a monotone function of the distance of the target, ascending within a point. ``tied`` includes the
    target itself until ``ranking`` subtracts it.
    """

    screen: PairPrefilter
    counts: Ints
    starts: Ints
    relatives: Ints
    excess: Floats
    above: Ints
    tied: Ints
    before: Ints
    ids: Ids

    @classmethod
    def of(cls, points: PointArray, pairs: Ints, geometry: Geometry, ids: Ids) -> PointTargets:
        """From (point, target) index pairs in any order."""
        screen = PairPrefilter.of(points, geometry)
        excess = screen.excess(pairs[:, 0], pairs[:, 1])
        order = _nearest_first(pairs, excess)
        counts = np.bincount(pairs[:, 0], minlength=len(points))
        above, tied, before = (np.zeros(len(pairs), dtype=np.int64) for _ in range(3))
        relatives = pairs[order, 1]
        return cls(screen, counts, segment_offsets(counts), relatives, excess[order], above, tied, before, ids)

    @cached_property
    def asking(self) -> Ints:
        """The points that have targets."""
        return np.flatnonzero(self.counts)

    @cached_property
    def limits(self) -> Floats:
        """The excess of the farthest target of each point that has one."""
        return self.excess[self.starts[1:][self.asking] - 1]

    @cached_property
    def id_order(self) -> Ints:
        """The sort position of each id."""
        position = np.empty(len(self.ids), dtype=np.int64)
        position[np.argsort(self.ids.astype(str), kind="stable")] = np.arange(len(self.ids))
        return position

    def left_by(self, screen: PairPrefilter, which: Bools | slice = slice(None)) -> Ints:
        """Estimate the number of candidates within the limit of each point with targets, from an even sample."""
        asking, limits = self.asking[which], self.limits[which]
        step = -(-len(self.counts) // _SAMPLE_SIZE)
        sample = screen.right[::step].T
        left = np.empty(len(asking), dtype=np.int64)
        for start in range(0, len(left), _ROWS_PER_SAMPLE_PRODUCT):
            part = slice(start, start + _ROWS_PER_SAMPLE_PRODUCT)
            scores = screen.asking(asking[part], limits[part]) @ sample
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
        self.before[items] += by_id.below(members, -self.id_order[self.relatives[items]])[0]

    def ranking(self) -> Ranking:
        """The counts as a ``Ranking``; the tie of a target with itself is subtracted."""
        pool = np.full(len(self.counts), len(self.counts) - 1, dtype=np.int64)
        return Ranking.of_items(
            self.ids,
            self.counts,
            gain=np.ones(len(self.relatives)),
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
    ordered, far = pairs[order, 0], excess[order]
    if ((ordered[1:] == ordered[:-1]) & (far[1:] == far[:-1])).any():
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
    relatives = PointTargets.of(points, pairs, geometry, unique_ids(unit_ids, len(points)))
    if should_use_numba(len(points), compiled):
        count_points(relatives, wide)
    else:
        _count_with_numpy(relatives, wide)
    return relatives.ranking()


def _count_with_numpy(relatives: PointTargets, wide: int) -> None:
    """Fill in the counts with numpy only."""
    fine, coarse = relatives.screen, relatives.screen.single()
    left = relatives.left_by(fine)
    use_full_row = left > wide
    enough = np.zeros_like(use_full_row) if coarse is None else (relatives.left_by(coarse) <= left) & ~use_full_row
    for screen, rows in ((coarse, enough), (fine, ~enough & ~use_full_row)):
        for part in _blocks(relatives.asking[rows], _ROWS_PER_BLOCK):
            _count_candidates(relatives, part, screen or fine)
    for part in _blocks(relatives.asking[use_full_row], _FULL_ROWS_PER_BLOCK):
        _count_by_buckets(relatives, part)


def _blocks(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _count_candidates(relatives: PointTargets, rows: Ints, screen: PairPrefilter) -> None:
    """Count the points that the prefilter keeps."""
    limits = relatives.limits[np.searchsorted(relatives.asking, rows)]
    for positions, columns in candidate_pairs(screen, rows, limits):
        _add_exact_counts(relatives, rows, positions, columns)


def _count_by_buckets(relatives: PointTargets, rows: Ints) -> None:
    """Count most points by a histogram of their scores, and the uncertain rest exactly."""
    screen = relatives.screen
    scores = screen.asking(rows, np.zeros(len(rows))) @ screen.right.T
    np.negative(scores, out=scores)
    positions, columns = [], []
    for position, row in enumerate(rows.tolist()):
        scores[position, row] = scores[position].max()
        targets = slice(relatives.starts[row], relatives.starts[row + 1])
        slack = 2.0 * float(screen.slack[row]) * screen.reach
        limits = screen.raised(relatives.excess[targets])
        certain, unsure = certain_counts(
            scores[position], limits, slack + float((limits - relatives.excess[targets]).max())
        )
        relatives.above[targets] += certain
        positions.append(np.full(len(unsure), position))
        columns.append(unsure)
    _add_exact_counts(relatives, rows, np.concatenate(positions), np.concatenate(columns))


def _add_exact_counts(relatives: PointTargets, rows: Ints, positions: Ints, columns: Ints) -> None:
    """Add points to the counts by their exact distances; each point may be added only once."""
    others = rows[positions] != columns
    positions, columns = positions[others], columns[others]
    tally = GroupedCounts.of(positions, relatives.screen.excess(rows[positions], columns))
    items, owners = relatives.items_of(rows)
    below, equal = tally.below(owners, relatives.excess[items])
    relatives.above[items] += below
    relatives.tied[items] += equal
    shared = equal > 1
    if shared.any():
        relatives.order_equals(tally, columns, owners[shared], items[shared])
