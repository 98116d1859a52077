"""Top-k from a stream of score tiles: an estimated threshold, a list of candidates, and a proof at the end.

After a share f of the corpus has been scored, about k*f of the final best k are among it, so the score at a
rank safely beyond k*f is below the final k-th score. Lower scores are dropped with one comparison. The result does
not depend on the estimate: if at least k scores exceed the threshold at the end, they contain the best k, ties
included. A row with fewer is reported as unproven, and the caller ranks it in full.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.geometry.base import PointArray
    from equipoise.types import Bools, Floats, Ints


def bytes_per_query(k: int, itemsize: int) -> int:
    """Bytes of the candidate list of a query."""
    return _capacity(k) * (itemsize + 8)


class ThresholdTopK:
    """The scores above a rising threshold, for a block of queries."""

    def __init__(self, queries: int, k: int, dtype: np.dtype[np.floating]) -> None:
        self.k = k
        self.capacity = _capacity(k)
        self.scores = np.full((queries, self.capacity), -np.inf, dtype=dtype)
        self.indices = np.zeros((queries, self.capacity), dtype=np.int64)
        self.counts = np.zeros(queries, dtype=np.int64)
        self.threshold = np.full((queries, 1), -np.inf, dtype=dtype)
        self.overflown = np.zeros(queries, dtype=np.bool_)
        self._beats = np.empty((0, 0), dtype=np.bool_)

    def start(self, tile: PointArray, fraction: float) -> None:
        """Set the first threshold from a tile that holds a share ``fraction`` of the corpus, before it is added.

        The r-th largest of the maxima of interleaved groups is at most the r-th largest score: a maximum
        pass and a short partition instead of a long one.
        """
        rank = self._safe_rank(fraction)
        groups = 1 << (4 * rank - 1).bit_length()
        depth = tile.shape[1] // groups
        if depth >= 1:
            maxima = tile[:, : depth * groups].reshape(len(tile), depth, groups).max(axis=1)
            self.threshold = np.partition(maxima, groups - rank, axis=1)[:, groups - rank, None]

    def add(self, tile: PointArray, index: Ints) -> None:
        """Keep the scores above the threshold; column c of the tile is corpus row ``index[c]``."""
        if self._beats.shape != tile.shape:
            self._beats = np.empty(tile.shape, dtype=np.bool_)
        np.greater(tile, self.threshold, out=self._beats)
        flat = np.flatnonzero(self._beats)
        borders = np.searchsorted(flat, np.arange(1, len(tile)) * tile.shape[1])
        counts = np.diff(borders, prepend=0, append=len(flat))
        columns = flat - np.repeat(np.arange(len(tile)) * tile.shape[1], counts)
        self._append(counts, index[columns], tile.ravel()[flat])

    def tighten(self, fraction: float) -> None:
        """Raise the threshold to the score at the safe rank for this share of the corpus, and drop entries below it."""
        rank, width = self._safe_rank(fraction), int(self.counts.max(initial=0))
        if width < rank:
            return
        buffered = self.scores[:, :width]
        bound = np.partition(buffered, width - rank, axis=1)[:, width - rank, None]
        np.maximum(self.threshold, bound, out=self.threshold)
        keep = buffered > self.threshold
        scores, indices = buffered[keep], self.indices[:, :width][keep]
        buffered[...] = -np.inf
        self.counts[:] = 0
        self._append(keep.sum(axis=1), indices, scores)

    def best(self) -> tuple[Ints, PointArray, Bools]:
        """The best k of each query, sorted by score, then by lower index; and which queries are proven."""
        proven = (self.counts >= self.k) & ~self.overflown
        width = max(int(self.counts.max(initial=0)), self.k)
        indices, scores = _sort_rows(self.indices[:, :width], self.scores[:, :width], self.k)
        return indices, scores, proven

    def _append(self, counts: Ints, indices: Ints, scores: PointArray) -> None:
        """Append entries to those of each query; the first ``arrived[0]`` are of query 0."""
        full = self.counts + counts > self.capacity
        if full.any():
            self.overflown |= full
            self.threshold[full] = np.inf
            is_kept = np.repeat(~full, counts)
            counts, indices, scores = np.where(full, 0, counts), indices[is_kept], scores[is_kept]
        start = np.arange(len(counts)) * self.capacity + self.counts - (np.cumsum(counts) - counts)
        columns = np.arange(len(scores)) + np.repeat(start, counts)
        self.scores.ravel()[columns] = scores
        self.indices.ravel()[columns] = indices
        self.counts += counts

    def _safe_rank(self, fraction: float) -> int:
        """A rank within the scored share whose score is almost certainly below the final k-th score.

        The number of the final best k in the scored share is hypergeometric: four deviations and a margin leave
        about one row in a hundred thousand to the fallback. Beyond rank k + 1 nothing is gained: k scores
        above it are the proof.
        """
        expected = self.k * fraction
        return min(self.k + 1, math.ceil(expected + 4.0 * math.sqrt(expected * (1.0 - fraction)) + 4.0))


def _sort_rows(indices: Ints, scores: PointArray, k: int) -> tuple[Ints, PointArray]:
    """The first k entries of each row by descending score, then by lower index.

    A float32 and an index are one 64-bit integer, which sorts in a third of the time of ``argsort``: the bits of a
    positive float are ordered as the float is, those of a negative one in reverse.
    """
    if scores.dtype != np.float32:
        order = np.lexsort((indices, -scores), axis=1)[:, :k]
        return np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1)
    # 0.0 and -0.0 are equal scores; the sum makes both 0.0.
    keys = -_flip_negative((scores + np.float32(0.0)).view(np.int32)).astype(np.int64) << 32 | indices
    keys.sort(axis=1)
    best = _flip_negative((-(keys[:, :k] >> 32)).astype(np.int32))
    return keys[:, :k] & 0xFFFFFFFF, best.view(np.float32)


def _flip_negative(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)


def _capacity(k: int) -> int:
    """Capacity of the list of a query, which holds about 1.5 k between two rises of the threshold."""
    return 3 * k + 64


# The running top k of each query.

_MIN_BUFFERED = 1 << 13


class RunningTopK:
    """Exact scores and corpus rows, k per query; equal scores are in the order of their rows.

    New entries are buffered until there are enough to sort at once, so ``last`` may be too low: then a few
    more entries than necessary are offered, and none is missed.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self.rows = np.full((queries, k), -1, dtype=np.int64)
        self.scores = np.full((queries, k), -np.inf)
        self._buffer: list[tuple[Ints, Ints, Floats]] = []
        self._count = 0

    @property
    def last(self) -> Floats:
        """The k-th score of each query; minus infinity for one that has fewer."""
        return self.scores[:, -1]

    def offer(self, queries: Ints, rows: Ints, scores: Floats) -> None:
        """Entries that may be among the best."""
        self._buffer.append((queries, rows, scores))
        self._count += len(queries)
        if self._count >= max(self.rows.size // 4, _MIN_BUFFERED):
            self.flush()

    def flush(self) -> None:
        """Merge the buffered entries."""
        if not self._count:
            return
        query, column = np.nonzero(self.rows >= 0)
        parts = [(query, self.rows[query, column], self.scores[query, column]), *self._buffer]
        queries, rows, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.lexsort((rows, -scores, queries))
        queries = queries[order]
        position = np.arange(len(queries)) - np.searchsorted(queries, queries)
        best = order[position < self.k]
        queries, position = queries[position < self.k], position[position < self.k]
        self.rows[queries, position], self.scores[queries, position] = rows[best], scores[best]
        self._buffer, self._count = [], 0


# The top k columns of each row of a score matrix; in wide rows, a bound from group maxima leaves few scores to sort.

_GROUPS = 8
"""Groups per requested column: enough that few of the best fall into one group."""


def top_columns(scores: PointArray, k: int) -> tuple[Ints, PointArray]:
    """Columns and scores of the k largest of each row, best first; equal scores by lower column."""
    rows, width = scores.shape
    groups = _GROUPS * k
    if width < 4 * groups or not k:
        return _top_of_narrow_rows(scores, k)
    depth = width // groups
    maxima = scores[:, : depth * groups].reshape(rows, depth, groups).max(axis=1)
    # k groups have a maximum of at least the k-th largest maximum, so k scores reach it.
    bounds = np.partition(maxima, groups - k, axis=1)[:, groups - k]
    indices, best = np.empty((rows, k), dtype=np.int64), np.empty((rows, k), dtype=scores.dtype)
    for index, (row, bound) in enumerate(zip(scores, bounds, strict=True)):
        columns = np.flatnonzero(row > bound)
        if len(columns) < k:
            columns = np.concatenate([columns, _first_equal(row, bound, k - len(columns))])
        values = row[columns]
        # Equal scores are in ascending columns, and a stable sort keeps that order.
        order = np.argsort(-values, kind="stable")[:k]
        indices[index], best[index] = columns[order], values[order]
    return indices, best


def _top_of_narrow_rows(scores: PointArray, k: int) -> tuple[Ints, PointArray]:
    rows, width = scores.shape
    if k == 0:
        return np.empty((rows, 0), dtype=np.int64), scores[:, :0].copy()
    least = np.partition(scores, width - k, axis=1)[:, width - k, None]
    chosen = scores > least
    last = scores == least
    vacant = k - chosen.sum(axis=1)
    overfull = np.flatnonzero(last.sum(axis=1) > vacant)
    last[overfull] &= np.cumsum(last[overfull], axis=1) <= vacant[overfull, None]
    chosen |= last
    columns = np.nonzero(chosen)[1].reshape(rows, k)
    values = np.take_along_axis(scores, columns, axis=1)
    # The columns ascend, and a stable sort keeps that order for equal scores.
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def _first_equal(row: PointArray, value: np.floating, count: int) -> Ints:
    """The first ``count`` columns with this value, from growing prefixes: usually the value is 0 and frequent."""
    size = 64 * count
    while True:
        columns = np.flatnonzero(row[:size] == value)
        if len(columns) >= count or size >= len(row):
            return columns[:count]
        size *= 8
