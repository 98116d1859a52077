"""The best k columns of each row of a whole score matrix: the plain way, for any scores and any k."""

from __future__ import annotations

import numpy as np

from equipoise.geometry.points import Points
from equipoise.types import Ints


def best_columns(scores: Points, k: int) -> tuple[Ints, Points]:
    """Columns and scores of the k largest of each row, best first; equal scores by lower column.

    >>> best_columns(np.array([[0.1, 0.9, 0.9, 0.5]]), 3)[0].tolist()
    [[1, 2, 3]]
    """
    rows, width = scores.shape
    if k == 0:
        return np.empty((rows, 0), dtype=np.int64), scores[:, :0].copy()
    least = np.partition(scores, width - k, axis=1)[:, width - k, None]
    chosen = scores > least
    last = scores == least
    vacant = k - chosen.sum(axis=1)
    crowded = np.flatnonzero(last.sum(axis=1) > vacant)
    last[crowded] &= np.cumsum(last[crowded], axis=1) <= vacant[crowded, None]
    chosen |= last
    columns = np.nonzero(chosen)[1].reshape(rows, k)
    values = np.take_along_axis(scores, columns, axis=1)
    # The columns ascend, so a stable sort leaves equal scores in their order.
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
