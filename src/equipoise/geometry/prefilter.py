"""A prefilter for pairs within a distance: a matrix product with an error bound, then the exact distance.

A matrix product computes distances fast, with rounding errors. It therefore only prefilters: one extra column
raises every score by more than the rounding error, and another subtracts the required score. A result below 0
is certainly farther than the limit; the few remaining pairs are compared by a formula that is exact near the
boundary of hyperbolic space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import UndefinedError

if TYPE_CHECKING:
    from equipoise.geometry.base import Geometry, PointArray
    from equipoise.types import Floats, Ints

PAIRS_AT_ONCE = 1 << 15
"""Pairs that are compared together: their coordinates fit in the cache."""

LARGEST_SINGLE, LARGEST = 1e36, 1e300
"""Scores beyond this may overflow in float32, in float64."""


@dataclass(frozen=True, slots=True)
class PairPrefilter:
    """Points among themselves: ``left @ right.T`` is the surrogate, plus the slack, plus a column to be set.

    The slack of a pair, which is ``slack`` of its left row times the length of its right row (at most
    ``reach``), is more than rounding can take off the score.
    """

    space: Geometry
    points: Floats
    left: PointArray
    right: PointArray
    slack: PointArray
    reach: float

    @classmethod
    def of(cls, points: PointArray, geometry: Geometry) -> PairPrefilter:
        """Both factors of the product for points that the geometry accepts."""
        space, rows = geometry.standard(points)
        prepared = space.prepare_corpus(rows)
        scale = 1.0 if prepared.scale is None else prepared.scale[:, None]
        left, right = space.prepare_queries(rows), prepared.rows * scale
        lengths, reaches = (np.sqrt(np.einsum("ij,ij->i", side, side)) for side in (left, right))
        reach = float(reaches.max(initial=0.0))
        if not reach * lengths.max(initial=0.0) < LARGEST:
            raise UndefinedError(
                "the points are so far from the origin that float64 cannot distinguish their distances",
                hint="scale them down, or bound the radius when they are trained",
            )
        # Rounding of the product, of the entries of both factors and of the excess: each is bounded by the
        # lengths of the two rows and some multiple of the columns.
        slack = (2 * left.shape[1] + 12) * np.finfo(np.float64).eps * lengths
        ones = np.ones(len(rows))
        wider = np.column_stack([left, slack, ones]), np.column_stack([right, reaches, ones])
        return cls(space, rows, *wider, slack, reach)

    def single(self) -> PairPrefilter | None:
        """The same screen in float32, coarser and twice as fast; None where the scores would overflow."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.left, self.left))
        if not self.reach * lengths.max(initial=0.0) < LARGEST_SINGLE:
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

    def asking(self, rows: Ints, limits: Floats) -> PointArray:
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


def candidate_pairs(screen: PairPrefilter, rows: Ints, limits: Floats) -> Iterator[tuple[Ints, Ints]]:
    """Chunks of pairs (index in ``rows``, column) that include all pairs whose excess is within the limit.

    Pairs a little beyond the limit may be among them, and every point is near itself.
    """
    left = screen.asking(rows, limits)
    right = _pad_rows(screen.right)
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
