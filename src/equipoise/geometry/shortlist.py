"""Top-k from a stream of score tiles: a threshold that is guessed, a short list, and a proof at the end.

When a share f of the corpus has been seen, about k*f of the final best k are among it, so the score at a
rank safely beyond k*f lies below the final k-th score. What does not beat this threshold is dropped with one
comparison. The guess needs no trust: if, at the end, at least k scores beat the threshold, then they hold the
best k, ties included; a row where fewer do is reported as unproven, and the caller ranks it in full.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.geometry.points import Points
from equipoise.types import Bools, Ints


def bytes_per_query(k: int, itemsize: int) -> int:
    """The memory that a short list of scores and rows takes for each query."""
    return _room(k) * (itemsize + 8)


class Shortlist:
    """The scores that beat a rising threshold, for a block of queries."""

    def __init__(self, queries: int, k: int, dtype: np.dtype[np.floating]) -> None:
        self.k = k
        self.room = _room(k)
        self.scores = np.full((queries, self.room), -np.inf, dtype=dtype)
        self.indices = np.zeros((queries, self.room), dtype=np.int64)
        self.counts = np.zeros(queries, dtype=np.int64)
        self.threshold = np.full((queries, 1), -np.inf, dtype=dtype)
        self.overflown = np.zeros(queries, dtype=np.bool_)
        self._beats = np.empty((0, 0), dtype=np.bool_)

    def start(self, tile: Points, seen: float) -> None:
        """Set the first threshold from a tile that holds a share ``seen`` of the corpus, before it is added.

        The r-th largest of the maxima of interleaved groups is at most the r-th largest score: a maximum
        pass and a short partition instead of a long one.
        """
        rank = self._safe_rank(seen)
        groups = 1 << (4 * rank - 1).bit_length()
        depth = tile.shape[1] // groups
        if depth >= 1:
            maxima = tile[:, : depth * groups].reshape(len(tile), depth, groups).max(axis=1)
            self.threshold = np.partition(maxima, groups - rank, axis=1)[:, groups - rank, None]

    def add(self, tile: Points, index: Ints) -> None:
        """Keep what beats the threshold; column c of the tile is corpus row ``index[c]``."""
        if self._beats.shape != tile.shape:
            self._beats = np.empty(tile.shape, dtype=np.bool_)
        np.greater(tile, self.threshold, out=self._beats)
        flat = np.flatnonzero(self._beats)
        borders = np.searchsorted(flat, np.arange(1, len(tile)) * tile.shape[1])
        arrived = np.diff(borders, prepend=0, append=len(flat))
        columns = flat - np.repeat(np.arange(len(tile)) * tile.shape[1], arrived)
        self._append(arrived, index[columns], tile.ravel()[flat])

    def tighten(self, seen: float) -> None:
        """Raise the threshold to the score at the safe rank for the share seen, and drop what is below."""
        rank, width = self._safe_rank(seen), int(self.counts.max(initial=0))
        if width < rank:
            return
        held = self.scores[:, :width]
        safe = np.partition(held, width - rank, axis=1)[:, width - rank, None]
        np.maximum(self.threshold, safe, out=self.threshold)
        keep = held > self.threshold
        scores, indices = held[keep], self.indices[:, :width][keep]
        held[...] = -np.inf
        self.counts[:] = 0
        self._append(keep.sum(axis=1), indices, scores)

    def best(self) -> tuple[Ints, Points, Bools]:
        """The best k of each query, sorted by score, then by lower index; and which queries are proven."""
        proven = (self.counts >= self.k) & ~self.overflown
        width = max(int(self.counts.max(initial=0)), self.k)
        scores, indices = self.scores[:, :width], self.indices[:, :width]
        order = np.argsort(-scores, axis=1)
        ranked = np.take_along_axis(scores, order, axis=1)
        # Only ties that reach into the best k matter; beyond them the padding ties with itself.
        tied = np.flatnonzero((ranked[:, 1 : self.k + 1] == ranked[:, : self.k][:, : width - 1]).any(axis=1))
        order[tied] = np.lexsort((indices[tied], -scores[tied]), axis=1)
        order = order[:, : self.k]
        return np.take_along_axis(indices, order, axis=1), ranked[:, : self.k], proven

    def _append(self, arrived: Ints, indices: Ints, scores: Points) -> None:
        """Put entries behind those that each query already has; the first ``arrived[0]`` are of query 0."""
        full = self.counts + arrived > self.room
        if full.any():
            self.overflown |= full
            self.threshold[full] = np.inf
            admitted = np.repeat(~full, arrived)
            arrived, indices, scores = np.where(full, 0, arrived), indices[admitted], scores[admitted]
        start = np.arange(len(arrived)) * self.room + self.counts - (np.cumsum(arrived) - arrived)
        places = np.arange(len(scores)) + np.repeat(start, arrived)
        self.scores.ravel()[places] = scores
        self.indices.ravel()[places] = indices
        self.counts += arrived

    def _safe_rank(self, seen: float) -> int:
        """A rank within the seen share that the final k-th score is all but surely above.

        The number of the final best k among the seen is hypergeometric: four deviations and a margin leave
        about one row in a hundred thousand to the fallback. Beyond rank k + 1 nothing is gained: k scores
        above it are the proof.
        """
        expected = self.k * seen
        return min(self.k + 1, math.ceil(expected + 4.0 * math.sqrt(expected * (1.0 - seen)) + 4.0))


def _room(k: int) -> int:
    """Places for a query: the list holds some 1.5 k between two risings of the threshold."""
    return 3 * k + 64
