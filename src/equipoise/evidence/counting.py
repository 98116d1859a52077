"""The rank kernel: how many scores of a row beat a threshold, and how many equal it.

A rank is a count, so nothing is sorted. The comparisons leave one byte a score, and bytes are added
many at a time, which makes counting about as cheap as reading.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Ints

_LANES = 8
_LONGEST_SUM = 255
"""How many bytes can be added before an 8-bit lane could overflow."""

_ROW_BLOCK_BYTES = 1 << 20
"""Rows compared at a time: they stay in the second-level cache between the two comparisons."""

_WIDE = 8192
"""Rows at least this wide are compared one by one."""

_COLUMN_BLOCK_ROWS = 512
"""Rows transposed at a time: long enough for the comparisons to run at full width."""


class NotANumberError(Exception):
    """A score is no number; ``row`` is the first row that holds one."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def above_and_tied(
    scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints, *, refuse_nan: bool = False
) -> tuple[Ints, Ints]:
    """For each threshold: how many scores of its row are strictly above it, and how many others equal it.

    ``scores`` is (rows, width); the ``counts[r]`` thresholds of row ``r`` stand one after another, and each
    is one of the row's own scores, or NaN for what the row does not hold. A NaN among the scores
    counts as neither above nor equal, which lets it mark what is no candidate; ``refuse_nan`` raises
    ``NotANumberError`` instead.

    >>> above_and_tied(np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([2.0, np.nan]), np.array([2]))
    (array([1, 0]), array([1, 0]))
    """
    if scores.shape[1] < _WIDE and len(thresholds) == len(counts) and (counts == 1).all():
        return _one_each(scores, thresholds, refuse_nan)
    if refuse_nan:
        _look_for_nan(scores)
    return (_wide if scores.shape[1] >= _WIDE else _several_each)(scores, thresholds, counts)


def above(scores: NDArray[Any], limits: NDArray[Any]) -> Ints:
    """How many scores of each row are strictly above the limit of the row, which need not be among them.

    >>> above(np.array([[3.0, 1.0, 2.0]]), np.array([1.5]))
    array([2])
    """
    rows, width = scores.shape
    counts = np.empty(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    flags = np.zeros((min(step, rows), -(-width // _LANES) * _LANES), dtype=bool)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        some = flags[: part.stop - start]
        np.greater(scores[part], limits[part, None], out=some[:, :width])
        counts[part] = _count_rows(some)
    return counts


def _look_for_nan(scores: NDArray[Any]) -> None:
    if scores.size and np.isnan(scores.max()):
        raise NotANumberError(int(np.flatnonzero(np.isnan(scores).any(axis=1))[0]))


def _wide(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """One row and threshold at a time: the row is long enough to pay for the calls."""
    above, tied = np.empty(len(thresholds), dtype=np.int64), np.empty(len(thresholds), dtype=np.int64)
    flags = np.empty(scores.shape[1], dtype=bool)
    for item, row in enumerate(np.repeat(np.arange(len(scores)), counts).tolist()):
        above[item] = np.count_nonzero(np.greater(scores[row], thresholds[item], out=flags))
        tied[item] = np.count_nonzero(np.equal(scores[row], thresholds[item], out=flags)) - 1
    return above, np.maximum(tied, 0)


def _one_each(scores: NDArray[Any], thresholds: NDArray[Any], refuse_nan: bool) -> tuple[Ints, Ints]:
    """Row by row, as the scores lie: nothing is moved for a single look at them."""
    rows, width = scores.shape
    above, tied = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    mask = np.empty((min(step, rows), -(-width // _LANES) * _LANES), dtype=bool)
    mask[:, width:] = False
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        block, limit = scores[part], thresholds[part, None]
        flags = mask[: len(block)]
        if refuse_nan and np.isnan(block.max()):
            raise NotANumberError(start + int(np.flatnonzero(np.isnan(block).any(axis=1))[0]))
        np.greater(block, limit, out=flags[:, :width])
        above[part] = _count_rows(flags)
        np.equal(block, limit, out=flags[:, :width])
        if _any_ties(flags, limit):
            tied[part] = np.maximum(_count_rows(flags) - 1, 0)
    return above, tied


def _any_ties(equal: NDArray[np.bool_], thresholds: NDArray[Any]) -> bool:
    """Whether any score but the thresholds themselves is equal: one sum, as ties are rare."""
    return np.count_nonzero(equal) != thresholds.size - np.count_nonzero(thresholds != thresholds)


def _count_rows(flags: NDArray[np.bool_]) -> Ints:
    """How many entries of each row are true; eight bytes are added at a time as one word."""
    words = flags.view(np.uint64)
    total = np.zeros(len(flags), dtype=np.int64)
    for start in range(0, words.shape[1], _LONGEST_SUM):
        lanes = np.add.reduce(words[:, start : start + _LONGEST_SUM], axis=1)
        total += lanes.view(np.uint8).reshape(-1, _LANES).sum(axis=1, dtype=np.int64)
    return total


def _several_each(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """Column by column of the transposed scores: one threshold of many rows at a time.

    Comparing in 32 bits takes half the time and is exact wherever nothing but the thresholds
    themselves is equal, since rounding never swaps two numbers; the rest is compared in full.
    """
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    first = np.cumsum(counts) - counts
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    for start in range(0, len(scores), _COLUMN_BLOCK_ROWS):
        part = slice(start, start + _COLUMN_BLOCK_ROWS)
        block, lead, own = scores[part], first[part], counts[part]
        most = int(own.max(initial=0))
        if own.min(initial=most) < most:
            # Rows with many thresholds first: those that still have one are then always a prefix.
            order = np.argsort(-own, kind="stable")
            block, lead, own = block[order], lead[order], own[order]
        with np.errstate(over="ignore"):
            columns = block.T.astype(np.float32, order="C")
        mask = np.empty(columns.shape, dtype=bool)
        for item in range(most):
            size = int(np.searchsorted(-own, -item, side="left"))
            index = lead[:size] + item
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
    """How many entries of each column are true."""
    total = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(flags), _LONGEST_SUM):
        total += np.add.reduce(flags[start : start + _LONGEST_SUM].view(np.uint8), axis=0, dtype=np.uint8)
    return total
