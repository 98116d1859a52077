"""Exact nearest neighbours by blocked matrix products: no index, no approximation, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import ParameterError, ShapeError
from equipoise.geometry.base import Geometry, Prepared
from equipoise.geometry.names import geometry as geometry_of
from equipoise.geometry.points import Points, as_points
from equipoise.geometry.ranked import best_columns
from equipoise.geometry.shortlist import Shortlist, bytes_per_query
from equipoise.geometry.twins import Twins, twins
from equipoise.types import Bools, Ints

_TILE = 1024
"""Corpus points in a tile: with a thousand queries or two the tile stays in the cache between its passes."""

_TIGHTEN_AFTER = frozenset(4**power for power in range(16))
"""Tiles after which the threshold rises: each time it pays less, so each time it waits longer."""

_FEW = 32
"""Queries below which copying the corpus tile by tile costs more than choosing from whole rows."""

_WHOLE_ROW_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Neighbours:
    """For each query the rows of its nearest corpus points and their scores, best first.

    Equal scores stand in the order of their rows. The score is the geometry's surrogate, higher is nearer:
    the cosine, the inner product, minus the squared distance, or what the geometry's class names.
    """

    indices: Ints
    scores: Points

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Points checked and prepared once, for searches that come one after another; they must stay as they are.

    >>> corpus = Corpus.of([[0.0, 1.0], [2.0, 0.0]], "cosine")
    >>> [nearest([query], corpus, 1).indices.item() for query in ([1.0, 0.1], [0.1, 1.0])]
    [1, 0]
    """

    space: Geometry
    points: Points
    prepared: Prepared
    twins: Twins

    @classmethod
    def of(cls, points: ArrayLike, geometry: str | Geometry = "cosine") -> Corpus:
        """Check the points, refuse what has no nearness, and prepare them for the product."""
        rows, space = as_points(points, "the corpus"), geometry_of(geometry)
        space.check(rows).require_usable("the corpus")
        return cls._prepared(space.fitted(rows), rows)

    @classmethod
    def _prepared(cls, space: Geometry, rows: Points) -> Corpus:
        return cls(space, rows, space.prepare_corpus(rows), twins(rows))


def nearest(
    queries: ArrayLike,
    corpus: ArrayLike | Corpus,
    k: int,
    *,
    geometry: str | Geometry = "cosine",
    block_bytes: int = 32 << 20,
    threads: int = 1,
) -> Neighbours:
    """The k nearest corpus points of every query, exactly; all of them where the corpus has fewer than k.

    ``block_bytes`` bounds the scores that each of the ``threads`` holds; the threads share the queries, and
    the product's own threads follow the environment of numpy. A ``Corpus`` has a geometry of its own.

    >>> nearest([[1.0, 0.1]], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], 2).indices.tolist()
    [[1, 2]]
    """
    _require_positive(k=k, block_bytes=block_bytes, threads=threads)
    search = _Search.of(queries, corpus, geometry)
    k = min(k, len(search.corpus))
    itemsize = search.queries.itemsize
    rows = _even_share(len(search.queries), block_bytes // (_TILE * itemsize + bytes_per_query(k, itemsize)))
    indices = np.empty((len(search.queries), k), dtype=np.int64)
    scores = np.empty((len(search.queries), k), dtype=search.queries.dtype)

    def fill(start: int) -> None:
        block = slice(start, start + rows)
        indices[block], scores[block] = search.best(search.queries[block], k)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(fill, range(0, len(search.queries), rows)):
            pass
    return Neighbours(indices, scores)


def score_blocks(
    queries: ArrayLike,
    corpus: ArrayLike,
    geometry: str | Geometry = "cosine",
    block_bytes: int = _WHOLE_ROW_BYTES,
) -> Iterator[tuple[slice, Points]]:
    """Surrogate scores of a few queries at a time against the whole corpus, higher is nearer.

    Yields the slice of queries and their scores, as many rows as fit ``block_bytes``. Equal corpus points
    have equal scores. The buffer is used again for the next block: copy what must outlive it.

    >>> [scores.tolist() for _, scores in score_blocks([[1.0], [2.0]], [[3.0], [4.0]], "dot")]
    [[[3.0, 4.0], [6.0, 8.0]]]
    """
    _require_positive(block_bytes=block_bytes)
    search = _Search.of(queries, corpus, geometry)
    return search.whole_rows(search.queries, block_bytes)


def checked_pair(
    queries: ArrayLike, corpus: ArrayLike, geometry: str | Geometry
) -> tuple[Geometry, Points, Points]:
    """The geometry, arranged for the corpus, and points of one type in which it has nearness."""
    space = geometry_of(geometry)
    left, right = as_points(queries, "the queries"), as_points(corpus, "the corpus")
    _require_one_width(left, right)
    common = np.result_type(left, right)
    left, right = left.astype(common, copy=False), right.astype(common, copy=False)
    space.check(left).require_usable("the queries")
    space.check(right).require_usable("the corpus")
    return space.fitted(right), left, right


@dataclass(frozen=True, slots=True)
class _Search:
    """Validated and prepared points, and the two ways through them."""

    space: Geometry
    queries: Points
    corpus: Prepared
    twins: Twins

    @classmethod
    def of(cls, queries: ArrayLike, corpus: ArrayLike | Corpus, geometry: str | Geometry) -> _Search:
        """Check the points, and prepare what is not prepared yet."""
        if not isinstance(corpus, Corpus):
            space, left, right = checked_pair(queries, corpus, geometry)
            corpus = Corpus._prepared(space, right)
        else:
            left = as_points(queries, "the queries")
            _require_one_width(left, corpus.points)
            corpus.space.check(left).require_usable("the queries")
            common = np.result_type(left, corpus.points)
            left = left.astype(common, copy=False)
            if common != corpus.points.dtype:
                corpus = Corpus._prepared(corpus.space, corpus.points.astype(common))
        return cls(corpus.space, corpus.space.prepare_queries(left), corpus.prepared, corpus.twins)

    def best(self, queries: Points, k: int) -> tuple[Ints, Points]:
        """The best k for some queries: by short lists where that can pay, else from whole rows."""
        total = len(self.corpus)
        if total < 4 * _TILE or 8 * k > total or len(queries) < _FEW:
            return self._from_whole_rows(queries, k)
        distinct, distinct_scores, proven = self._from_shortlist(queries, k)
        sure, rest = np.flatnonzero(proven), np.flatnonzero(~proven)
        indices = np.empty((len(queries), k), dtype=np.int64)
        scores = np.empty((len(queries), k), dtype=queries.dtype)
        indices[sure], scores[sure] = self.twins.expand(distinct[sure], distinct_scores[sure], k)
        indices[rest], scores[rest] = self._from_whole_rows(queries[rest], k)
        return indices, scores

    def whole_rows(self, queries: Points, block_bytes: int) -> Iterator[tuple[slice, Points]]:
        """Blocks of queries against the whole corpus; copies of a point take the score of the first."""
        total, copies = len(self.corpus), self.twins.copies
        rows = _even_share(len(queries), block_bytes // max(1, total * queries.itemsize))
        buffer = np.empty((rows, total), dtype=queries.dtype)
        for start in range(0, len(queries), rows):
            block = slice(start, min(start + rows, len(queries)))
            scores = buffer[: block.stop - start]
            for column in range(0, total, 4 * _TILE):
                part = slice(column, column + 4 * _TILE)
                self.space.similarity(queries[block], self.corpus[part], out=scores[:, part])
            if len(copies):
                scores[:, copies] = scores[:, self.twins.first[copies]]
            yield block, scores

    def _from_whole_rows(self, queries: Points, k: int) -> tuple[Ints, Points]:
        indices = np.empty((len(queries), k), dtype=np.int64)
        best = np.empty((len(queries), k), dtype=queries.dtype)
        # The selection needs some four times the memory of the scores.
        for block, scores in self.whole_rows(queries, _WHOLE_ROW_BYTES // 4):
            indices[block], best[block] = best_columns(scores, k)
        return indices, best

    def _from_shortlist(self, queries: Points, k: int) -> tuple[Ints, Points, Bools]:
        """The best k of the distinct corpus points, and for which queries they are proven.

        Tile i holds every step-th distinct point from the i-th on: an even sample, whatever order they have.
        """
        distinct = self.twins.distinct
        step = -(-len(distinct) // _TILE)
        shortlist = Shortlist(len(queries), min(k, len(distinct)), queries.dtype)
        tile = np.empty((len(queries), _TILE), dtype=queries.dtype)
        folded = np.empty((_TILE, self.corpus.rows.shape[1]), dtype=queries.dtype)
        for first in range(step):
            index = distinct[first::step]
            # A slice lets the product read the corpus in place.
            part = slice(first, None, step) if len(distinct) == len(self.corpus) else index
            self.space.similarity(queries, self.corpus.folded(part, folded), out=tile[:, : len(index)])
            # Full rows stay aligned and contiguous; what beats no threshold pads them.
            tile[:, len(index) :] = -np.inf
            if first == 0:
                shortlist.start(tile, 1 / step)
            shortlist.add(tile, index)
            if first + 1 in _TIGHTEN_AFTER:
                shortlist.tighten((first + 1) / step)
        return shortlist.best()


def _even_share(count: int, most: int) -> int:
    """How many at a time, at most ``most`` and at least one, so that the last block is not a small one."""
    blocks = -(-count // max(1, most))
    return max(1, -(-count // max(1, blocks)))


def _require_one_width(queries: Points, corpus: Points) -> None:
    if queries.shape[1] != corpus.shape[1]:
        raise ShapeError(
            f"the queries have {queries.shape[1]} coordinates and the corpus has {corpus.shape[1]}",
            hint="embed both with the same model and the same truncation",
        )


def _require_positive(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ParameterError(f"{name} is {count}; it must be 1 or more")
