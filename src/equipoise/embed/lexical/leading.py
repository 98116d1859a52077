"""The best k columns of wide rows: a bound from group maxima leaves few scores to sort."""

from __future__ import annotations

import numpy as np

from equipoise.geometry.points import Points
from equipoise.geometry.ranked import best_columns
from equipoise.types import Ints

_GROUPS = 8
"""Groups for every wanted column: so many that few of the best fall into one group."""


def leading_columns(scores: Points, k: int) -> tuple[Ints, Points]:
    """Columns and scores of the k largest of each row, best first; equal scores by lower column.

    >>> leading_columns(np.array([[0.1, 0.9, 0.9, 0.5]]), 3)[0].tolist()
    [[1, 2, 3]]
    """
    rows, width = scores.shape
    groups = _GROUPS * k
    if width < 4 * groups:
        return best_columns(scores, k)
    depth = width // groups
    maxima = scores[:, : depth * groups].reshape(rows, depth, groups).max(axis=1)
    # k groups have a maximum of at least the k-th largest maximum, so k scores reach it.
    bounds = np.partition(maxima, groups - k, axis=1)[:, groups - k]
    indices, best = np.empty((rows, k), dtype=np.int64), np.empty((rows, k), dtype=scores.dtype)
    for index, (row, bound) in enumerate(zip(scores, bounds, strict=True)):
        found = np.flatnonzero(row > bound)
        if len(found) < k:
            found = np.concatenate([found, _first_equal(row, bound, k - len(found))])
        values = row[found]
        # The columns ascend among equals, so a stable sort leaves them in their order.
        order = np.argsort(-values, kind="stable")[:k]
        indices[index], best[index] = found[order], values[order]
    return indices, best


def _first_equal(row: Points, value: np.floating, count: int) -> Ints:
    """The first columns that hold a value, by growing prefixes: mostly it is zero and everywhere."""
    size = 64 * count
    while True:
        found = np.flatnonzero(row[:size] == value)
        if len(found) >= count or size >= len(row):
            return found[:count]
        size *= 8
