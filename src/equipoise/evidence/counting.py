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

_ROW_BLOCK_BYTES = 512 << 10
"""Rows compared at a time: they stay in the second-level cache between the two comparisons."""

_WIDE = 8192
"""Rows at least this wide are compared one by one."""

_COLUMN_BLOCK_ROWS = 512
"""Rows transposed at a time: long enough for the comparisons to run at full width."""


def above_and_tied(
    scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints, *, own: bool = False
) -> tuple[Ints, Ints]:
    """For each threshold: how many scores of its row are strictly above it, and how many equal it.

    ``scores`` is (rows, width); the ``counts[r]`` thresholds of row ``r`` stand one after another.
    A NaN among the scores counts as neither, which lets it mark what is no candidate. ``own`` promises
    that every threshold is one of its row's scores.

    >>> above_and_tied(np.array([[3.0, 1.0, 2.0, 2.0]]), np.array([2.0, 9.0]), np.array([2]))
    (array([1, 0]), array([2, 0]))
    """
    if scores.shape[1] >= _WIDE:
        return _wide(scores, thresholds, counts)
    if len(thresholds) == len(counts) and (counts == 1).all():
        return _one_each(scores, thresholds, own)
    return _several_each(scores, thresholds, counts)


def _wide(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """One row and threshold at a time: the row is long enough to pay for the calls."""
    above, tied = np.empty(len(thresholds), dtype=np.int64), np.empty(len(thresholds), dtype=np.int64)
    flags = np.empty(scores.shape[1], dtype=bool)
    for item, row in enumerate(np.repeat(np.arange(len(scores)), counts).tolist()):
        above[item] = np.count_nonzero(np.greater(scores[row], thresholds[item], out=flags))
        tied[item] = np.count_nonzero(np.equal(scores[row], thresholds[item], out=flags))
    return above, tied


def _one_each(scores: NDArray[Any], thresholds: NDArray[Any], own: bool) -> tuple[Ints, Ints]:
    """Row by row, as the scores lie: nothing is moved for a single look at them."""
    rows, width = scores.shape
    above, tied = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    step = max(1, _ROW_BLOCK_BYTES // max(1, width * scores.itemsize))
    mask = np.zeros((min(step, rows), -(-width // _LANES) * _LANES), dtype=bool)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        block, limit = scores[part], thresholds[part, None]
        flags = mask[: len(block)]
        np.greater(block, limit, out=flags[:, :width])
        above[part] = _count_rows(flags)
        np.equal(block, limit, out=flags[:, :width])
        # Ties are rare, and one sum over all rows tells that each row equals its own target alone.
        alone = own and np.count_nonzero(flags) == len(block)
        tied[part] = 1 if alone else _count_rows(flags)
    return above, tied


def _count_rows(flags: NDArray[np.bool_]) -> Ints:
    """How many entries of each row are true; eight bytes are added at a time as one word."""
    words = flags.view(np.uint64)
    total = np.zeros(len(flags), dtype=np.int64)
    for start in range(0, words.shape[1], _LONGEST_SUM):
        lanes = np.add.reduce(words[:, start : start + _LONGEST_SUM], axis=1)
        total += lanes.view(np.uint8).reshape(-1, _LANES).sum(axis=1, dtype=np.int64)
    return total


def _several_each(scores: NDArray[Any], thresholds: NDArray[Any], counts: Ints) -> tuple[Ints, Ints]:
    """Column by column of the transposed scores: one threshold of many rows at a time."""
    above, tied = np.zeros(len(thresholds), dtype=np.int64), np.zeros(len(thresholds), dtype=np.int64)
    first = np.cumsum(counts) - counts
    for start in range(0, len(scores), _COLUMN_BLOCK_ROWS):
        part = slice(start, start + _COLUMN_BLOCK_ROWS)
        # Rows with many thresholds first: those that still have one are then always a prefix.
        order = np.argsort(-counts[part], kind="stable")
        columns = np.ascontiguousarray(scores[part][order].T)
        lead, own = first[part][order], -counts[part][order]
        mask = np.empty(columns.shape, dtype=bool)
        for item in range(-int(own.min(initial=0))):
            size = int(np.searchsorted(own, -item, side="left"))
            index = lead[:size] + item
            flags = mask[:, :size]
            np.greater(columns[:, :size], thresholds[index], out=flags)
            above[index] = _count_columns(flags)
            np.equal(columns[:, :size], thresholds[index], out=flags)
            tied[index] = _count_columns(flags)
    return above, tied


def _count_columns(flags: NDArray[np.bool_]) -> Ints:
    """How many entries of each column are true."""
    total = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(flags), _LONGEST_SUM):
        total += np.add.reduce(flags[start : start + _LONGEST_SUM].view(np.uint8), axis=0, dtype=np.uint8)
    return total
