"""Counts of the scores above thresholds, with numpy: scores (rows, width) and any number of thresholds per row.

For threshold ``t`` of row ``i``::

    above = #{j : s[i, j] > t}        tied = #{j : s[i, j] == t} - 1   (the threshold is one of the scores)

Comparison results are bytes and are added eight at a time as one 64-bit word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.types import Ints

BYTES_PER_WORD = 8
MAX_WORDS_PER_SUM = 255
"""Words that can be added before one of their bytes can overflow."""

_ROW_BLOCK_BYTES = 1 << 20
"""Bytes of scores per block: they stay in the L2 cache between the two comparisons."""

_WIDE_ROW = 8192
"""Width from which rows are compared one by one."""

_COLUMN_BLOCK_ROWS = 512
"""Rows per transposed block: enough for the comparisons to use full vector width."""


class InvalidScoreError(Exception):
    """A score of ``row``, the first such row of the block, is NaN; or ``infinite``, and a softmax was requested."""

    def __init__(self, row: int, *, infinite: bool = False) -> None:
        super().__init__(row)
        self.row, self.infinite = row, infinite


def count_above_and_tied(
    scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints, *, check_nan: bool = False
) -> tuple[Ints, Ints]:
    """For each threshold: how many scores of its row are strictly above it, and how many others are equal to it.

    ``scores`` is (rows, width). ``thresholds`` holds the ``counts[r]`` thresholds of row ``r``, row after row. Each
    is one of the scores of the row, or NaN for an item that is not in the row. A NaN score counts as neither
    above nor equal and can mark a column that is not a candidate; ``check_nan`` raises ``InvalidScoreError`` instead.
    """
    if scores.shape[1] < _WIDE_ROW and len(thresholds) == len(counts) and (counts == 1).all():
        return _count_one_threshold_per_row(scores, thresholds, check_nan)
    if check_nan:
        _check_no_nan_scores(scores)
    return (_count_row_by_row if scores.shape[1] >= _WIDE_ROW else _count_many_thresholds_per_row)(
        scores, thresholds, counts
    )


def count_in_sorted_rows(matrix: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """``count_above_and_tied`` for many thresholds per row, by binary search: assessed pools hold hundreds."""
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    ends = np.cumsum(counts)
    for row in np.flatnonzero(counts).tolist():
        part = slice(ends[row] - counts[row], ends[row])
        ascending = np.sort(matrix[row])
        ascending = ascending[: len(ascending) - np.count_nonzero(np.isnan(ascending))]
        last = np.searchsorted(ascending, thresholds[part], side="right")
        above[part] = len(ascending) - last
        tied[part] = np.maximum(last - np.searchsorted(ascending, thresholds[part]) - 1, 0)
    return above, tied


def count_above(scores: NDArray[Any], limits: NDArray[Any]) -> Ints:
    """How many scores of each row are strictly above the limit of the row, which need not be one of them.

    >>> count_above(np.array([[3.0, 1.0, 2.0]]), np.array([1.5]))
    array([2])
    """
    rows, width = scores.shape
    counts = np.empty(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    flags = np.zeros((min(step, rows), -(-width // BYTES_PER_WORD) * BYTES_PER_WORD), dtype=bool)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        buffer = flags[: part.stop - start]
        np.greater(scores[part], limits[part, None], out=buffer[:, :width])
        counts[part] = _count_rows(buffer)
    return counts


def _check_no_nan_scores(scores: NDArray[Any]) -> None:
    if scores.size and np.isnan(scores.max()):
        raise InvalidScoreError(int(np.flatnonzero(np.isnan(scores).any(axis=1))[0]))


def _count_row_by_row(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """One row and threshold at a time: a wide row outweighs the cost of the calls."""
    above, tied = np.empty(len(thresholds), dtype=np.int64), np.empty(len(thresholds), dtype=np.int64)
    flags = np.empty(scores.shape[1], dtype=bool)
    for item, row in enumerate(np.repeat(np.arange(len(scores)), counts).tolist()):
        above[item] = np.count_nonzero(np.greater(scores[row], thresholds[item], out=flags))
        tied[item] = np.count_nonzero(np.equal(scores[row], thresholds[item], out=flags)) - 1
    return above, np.maximum(tied, 0)


def _count_one_threshold_per_row(scores: NDArray[Any], thresholds: NDArray[Any], check_nan: bool) -> tuple[Ints, Ints]:
    """Compare blocks of rows in place: a transposed copy would cost more than one comparison."""
    rows, width = scores.shape
    above, tied = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    mask = np.empty((min(step, rows), -(-width // BYTES_PER_WORD) * BYTES_PER_WORD), dtype=bool)
    mask[:, width:] = False
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        block, limit = scores[part], thresholds[part, None]
        flags = mask[: len(block)]
        if check_nan and np.isnan(block.max()):
            raise InvalidScoreError(start + int(np.flatnonzero(np.isnan(block).any(axis=1))[0]))
        np.greater(block, limit, out=flags[:, :width])
        above[part] = _count_rows(flags)
        np.equal(block, limit, out=flags[:, :width])
        if _any_ties(flags, limit):
            tied[part] = np.maximum(_count_rows(flags) - 1, 0)
    return above, tied


def _any_ties(equal: NDArray[np.bool_], thresholds: NDArray[Any]) -> bool:
    """Whether any score other than the thresholds is equal: one sum over the block, since ties are rare."""
    return np.count_nonzero(equal) != thresholds.size - np.count_nonzero(thresholds != thresholds)


def _count_rows(flags: NDArray[np.bool_]) -> Ints:
    """The number of true entries of each row; eight bytes are added at a time as one word."""
    words = flags.view(np.uint64)
    total = np.zeros(len(flags), dtype=np.int64)
    for start in range(0, words.shape[1], MAX_WORDS_PER_SUM):
        lanes = np.add.reduce(words[:, start : start + MAX_WORDS_PER_SUM], axis=1)
        total += lanes.view(np.uint8).reshape(-1, BYTES_PER_WORD).sum(axis=1, dtype=np.int64)
    return total


def _count_many_thresholds_per_row(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """Compare the transposed scores with one threshold of many rows at a time.

    Comparing float32 takes half the time. Rounding is monotone, so the result is exact if only the thresholds
    themselves are equal; otherwise the original numbers are compared.
    """
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    first = np.cumsum(counts) - counts
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    for start in range(0, len(scores), _COLUMN_BLOCK_ROWS):
        part = slice(start, start + _COLUMN_BLOCK_ROWS)
        block, offsets, sizes = scores[part], first[part], counts[part]
        most = int(sizes.max(initial=0))
        if sizes.min(initial=most) < most:
            # Rows with many thresholds first: the rows that have another threshold are always a prefix.
            order = np.argsort(-sizes, kind="stable")
            block, offsets, sizes = block[order], offsets[order], sizes[order]
        with np.errstate(over="ignore"):
            columns = block.T.astype(np.float32, order="C")
        mask = np.empty(columns.shape, dtype=bool)
        for item in range(most):
            size = int(np.searchsorted(-sizes, -item, side="left"))
            index = offsets[:size] + item
            limit, flags = rounded[index], mask[:, :size]
            np.equal(columns[:, :size], limit, out=flags)
            if not _any_ties(flags, limit):
                above[index] = _count_columns(np.greater(columns[:, :size], limit, out=flags))
                continue
            limit, full = thresholds[index], block[:size].T
            above[index] = _count_columns(np.greater(full, limit, out=flags))
            tied[index] = np.maximum(_count_columns(np.equal(full, limit, out=flags)) - 1, 0)
    return above, tied


def _count_columns(flags: NDArray[np.bool_]) -> Ints:
    """The number of true entries of each column."""
    total = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(flags), MAX_WORDS_PER_SUM):
        total += np.add.reduce(flags[start : start + MAX_WORDS_PER_SUM].view(np.uint8), axis=0, dtype=np.uint8)
    return total
