"""Equal rows of a corpus, and equal scores for them.

A matrix product may round equal rows differently in the last bit, according to where they stand in its
blocks. Two copies of one text would then be ordered by chance. So equal rows are found once, by their bits,
and the copies take the score of the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.geometry.base import row_blocks
from equipoise.geometry.points import Points
from equipoise.types import Bools, Ints


@dataclass(frozen=True, slots=True)
class Twins:
    """For each row, the first row that equals it; most rows are their own first."""

    first: Ints

    @property
    def copies(self) -> Ints:
        """The rows that repeat an earlier one, ascending."""
        return np.flatnonzero(self.first != np.arange(len(self.first)))

    @property
    def distinct(self) -> Ints:
        """The rows that repeat no earlier one, ascending."""
        return np.flatnonzero(self.first == np.arange(len(self.first)))

    def expand(self, indices: Ints, scores: Points, k: int) -> tuple[Ints, Points]:
        """The best k of all rows from the best of the distinct ones, by score, then by lower index.

        Every distinct row among the best brings its copies; no row beyond them can be needed.
        """
        size = np.bincount(self.first, minlength=len(self.first))
        with_copies = (size[indices] > 1).any(axis=1)
        width = indices.shape[1]
        if width == k and not with_copies.any():
            return indices, scores
        order = np.argsort(self.first, kind="stable")
        start = np.searchsorted(self.first[order], np.arange(len(self.first)))
        all_indices = np.empty((len(indices), k), dtype=np.int64)
        all_scores = np.empty((len(scores), k), dtype=scores.dtype)
        all_indices[~with_copies, :width] = indices[~with_copies]
        all_scores[~with_copies, :width] = scores[~with_copies]
        for row in np.flatnonzero(with_copies):
            count = np.minimum(size[indices[row]], k)
            offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            members = order[np.repeat(start[indices[row]], count) + offset]
            member_scores = np.repeat(scores[row], count)
            best = np.lexsort((members, -member_scores))[:k]
            all_indices[row], all_scores[row] = members[best], member_scores[best]
        return all_indices, all_scores


def twins(points: Points) -> Twins:
    """Find the equal rows of a matrix; 0.0 and -0.0 are equal.

    >>> twins(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]])).first.tolist()
    [0, 1, 0]
    """
    keys = _keys(points)
    _, where, group = np.unique(keys, return_index=True, return_inverse=True)
    first = np.asarray(where[group], dtype=np.int64)
    suspects = np.flatnonzero(first != np.arange(len(first)))
    # Equal keys are all but proof; the rows themselves decide.
    impostors = suspects[~_equal(points, suspects, first[suspects])]
    first[impostors] = impostors
    return Twins(first)


def _keys(points: Points) -> NDArray[np.uint64]:
    """A 64-bit key per row: the words of its bits, weighted by fixed odd numbers, modulo 2^64."""
    words = points.shape[1] * points.dtype.itemsize // 4
    weights = np.random.default_rng(20110918).integers(1 << 63, size=words, dtype=np.uint64) * 2 + 1
    keys = np.empty(len(points), dtype=np.uint64)
    for rows in row_blocks(len(points)):
        bits = np.ascontiguousarray(points[rows] + points.dtype.type(0.0)).view(np.uint32)
        # 32-bit words in 64-bit products: round numbers end in zero bits, and would share short keys.
        keys[rows] = np.einsum("ij,j->i", bits.astype(np.uint64), weights)
    return keys


def _equal(points: Points, left: Ints, right: Ints) -> Bools:
    equal = np.empty(len(left), dtype=np.bool_)
    for rows in row_blocks(len(left)):
        equal[rows] = (points[left[rows]] == points[right[rows]]).all(axis=1)
    return equal
