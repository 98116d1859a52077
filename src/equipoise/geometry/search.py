"""Exact nearest neighbours by blocked matrix products: no index, no approximation, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import ParameterError, ShapeError
from equipoise.geometry.base import Geometry, PointArray, PreparedCorpus, as_vectors, row_blocks
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.geometry.topk import ThresholdTopK, bytes_per_query, top_columns

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints

# Duplicate rows of a corpus, which must get equal scores.


@dataclass(frozen=True, slots=True)
class DuplicateRows:
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

    def expand(self, indices: Ints, scores: PointArray, k: int) -> tuple[Ints, PointArray]:
        """The best k of all rows from the best of the distinct ones, by score, then by lower index.

        Every distinct row among the best is followed by its copies; no row beyond them can be needed.
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


def find_duplicate_rows(points: PointArray) -> DuplicateRows:
    """Find the equal rows of a matrix; 0.0 and -0.0 are equal."""
    keys = _keys(points)
    if keys is None:
        return DuplicateRows(np.arange(len(points)))
    _, first_row, group = np.unique(keys, return_index=True, return_inverse=True)
    first = np.asarray(first_row[group], dtype=np.int64)
    suspects = np.flatnonzero(first != np.arange(len(first)))
    # Equal keys almost always mean equal rows; the rows are compared to be sure.
    unequal = suspects[~_equal(points, suspects, first[suspects])]
    first[unequal] = unequal
    return DuplicateRows(first)


def _keys(points: PointArray) -> NDArray[np.uint64] | None:
    """A 64-bit key per row, equal for equal rows; None if the first columns show that no two rows are equal."""
    keys = _hash_rows(points[:, :_KEY_COLUMNS])
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(repeated):
        return None
    shared = np.flatnonzero(np.isin(keys, repeated))
    for rows in row_blocks(len(shared)):
        keys[shared[rows]] = _hash_rows(points[shared[rows]])
    return keys


def _hash_rows(points: PointArray) -> NDArray[np.uint64]:
    """The words of the bits of each row, weighted by fixed odd numbers, modulo 2^64."""
    words = points.shape[1] * points.dtype.itemsize // 4
    weights = np.random.default_rng(20110918).integers(1 << 63, size=words, dtype=np.uint64) * 2 + 1
    keys = np.empty(len(points), dtype=np.uint64)
    for rows in row_blocks(len(points)):
        bits = np.ascontiguousarray(points[rows] + points.dtype.type(0.0)).view(np.uint32)
        # 32-bit words in 64-bit products: round numbers end in zero bits, and would share short keys.
        keys[rows] = np.einsum("ij,j->i", bits.astype(np.uint64), weights)
    return keys


def _equal(points: PointArray, left: Ints, right: Ints) -> Bools:
    equal = np.empty(len(left), dtype=np.bool_)
    for rows in row_blocks(len(left)):
        equal[rows] = (points[left[rows]] == points[right[rows]]).all(axis=1)
    return equal


_KEY_COLUMNS = 16
"""Columns in which almost all rows of dense embeddings differ."""

_TILE = 1024
"""Corpus points in a tile: with a thousand queries or two the tile remains in the cache between its passes."""

_TIGHTEN_AFTER = frozenset(4**power for power in range(16))
"""Tiles after which the threshold is raised: it gains less each time, so the intervals grow."""

_FEW = 32
"""Queries below which copying the corpus tile by tile costs more than selecting from full rows."""

_WHOLE_ROW_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Neighbors:
    """For each query the rows of its nearest corpus points and their scores, best first.

    Equal scores are in the order of their rows. The score is the geometry's surrogate, higher is nearer:
    the cosine, the inner product, minus the squared distance, or what the geometry's class names.
    """

    indices: Ints
    scores: PointArray

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class SearchCorpus:
    """Points checked and prepared once, for several searches; they must not be modified."""

    space: Geometry
    points: PointArray
    prepared: PreparedCorpus
    duplicates: DuplicateRows

    @classmethod
    def of(cls, points: ArrayLike, geometry: str | Geometry = "cosine") -> SearchCorpus:
        """Check the points, reject those without a defined similarity, and prepare them for the product."""
        rows, space = as_vectors(points, "the corpus"), geometry_of(geometry)
        space.check(rows).require_usable("the corpus")
        return cls._prepared(space.fitted(rows), rows)

    @classmethod
    def _prepared(cls, space: Geometry, rows: PointArray) -> SearchCorpus:
        return cls(space, rows, space.prepare_corpus(rows), find_duplicate_rows(rows))


def nearest_neighbors(
    queries: ArrayLike,
    corpus: ArrayLike | SearchCorpus,
    k: int,
    *,
    geometry: str | Geometry = "cosine",
    block_bytes: int = 32 << 20,
    threads: int = 1,
) -> Neighbors:
    """Find the k nearest corpus points of every query, by exact search.

    Parameters
    ----------
    queries
        One vector per row.
    corpus
        One vector per row, or a ``SearchCorpus``, which has its own geometry.
    k
        Number of neighbours per query; all points if the corpus has fewer.
    geometry
        ``cosine``, ``dot``, ``euclidean``, ``poincare`` or ``lorentz``.
    block_bytes
        Upper limit of the scores that each thread holds in memory.
    threads
        Threads that share the queries. Threads of the matrix product follow the environment of numpy.

    Returns
    -------
    Neighbors
        ``indices`` and ``scores`` with one row per query, best first.

    Examples
    --------
    >>> nearest_neighbors([[1.0, 0.1]], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], 2).indices.tolist()
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
    return Neighbors(indices, scores)


def score_blocks(
    queries: ArrayLike,
    corpus: ArrayLike,
    geometry: str | Geometry = "cosine",
    block_bytes: int = _WHOLE_ROW_BYTES,
) -> Iterator[tuple[slice, PointArray]]:
    """Surrogate scores of a few queries at a time against the full corpus, higher is nearer.

    Yields the slice of queries and their scores, as many rows as fit ``block_bytes``. Equal corpus points
    have equal scores. The buffer is reused for the next block: copy what you keep.
    """
    _require_positive(block_bytes=block_bytes)
    search = _Search.of(queries, corpus, geometry)
    return search.whole_rows(search.queries, block_bytes)


def check_vectors(
    queries: ArrayLike, corpus: ArrayLike, geometry: str | Geometry
) -> tuple[Geometry, PointArray, PointArray]:
    """The geometry, arranged for the corpus, and points of one type for which it is defined."""
    space = geometry_of(geometry)
    left, right = as_vectors(queries, "the queries"), as_vectors(corpus, "the corpus")
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
    queries: PointArray
    corpus: PreparedCorpus
    duplicates: DuplicateRows

    @classmethod
    def of(cls, queries: ArrayLike, corpus: ArrayLike | SearchCorpus, geometry: str | Geometry) -> _Search:
        """Check the points, and prepare what is not prepared yet."""
        if not isinstance(corpus, SearchCorpus):
            space, left, right = check_vectors(queries, corpus, geometry)
            corpus = SearchCorpus._prepared(space, right)
        else:
            left = as_vectors(queries, "the queries")
            _require_one_width(left, corpus.points)
            corpus.space.check(left).require_usable("the queries")
            common = np.result_type(left, corpus.points)
            left = left.astype(common, copy=False)
            if common != corpus.points.dtype:
                corpus = SearchCorpus._prepared(corpus.space, corpus.points.astype(common))
        return cls(corpus.space, corpus.space.prepare_queries(left), corpus.prepared, corpus.duplicates)

    def best(self, queries: PointArray, k: int) -> tuple[Ints, PointArray]:
        """The best k for some queries: by candidate lists where that is faster, else from full rows."""
        total = len(self.corpus)
        if total < 4 * _TILE or 8 * k > total or len(queries) < _FEW:
            return self._from_whole_rows(queries, k)
        distinct, distinct_scores, proven = self._from_candidates(queries, k)
        decided, undecided = np.flatnonzero(proven), np.flatnonzero(~proven)
        indices = np.empty((len(queries), k), dtype=np.int64)
        scores = np.empty((len(queries), k), dtype=queries.dtype)
        indices[decided], scores[decided] = self.duplicates.expand(distinct[decided], distinct_scores[decided], k)
        indices[undecided], scores[undecided] = self._from_whole_rows(queries[undecided], k)
        return indices, scores

    def whole_rows(self, queries: PointArray, block_bytes: int) -> Iterator[tuple[slice, PointArray]]:
        """Blocks of queries against the full corpus; copies of a point take the score of the first."""
        total, copies = len(self.corpus), self.duplicates.copies
        rows = _even_share(len(queries), block_bytes // max(1, total * queries.itemsize))
        buffer = np.empty((rows, total), dtype=queries.dtype)
        for start in range(0, len(queries), rows):
            block = slice(start, min(start + rows, len(queries)))
            scores = buffer[: block.stop - start]
            for column in range(0, total, 4 * _TILE):
                part = slice(column, column + 4 * _TILE)
                self.space.similarity(queries[block], self.corpus[part], out=scores[:, part])
            if len(copies):
                scores[:, copies] = scores[:, self.duplicates.first[copies]]
            yield block, scores

    def _from_whole_rows(self, queries: PointArray, k: int) -> tuple[Ints, PointArray]:
        indices = np.empty((len(queries), k), dtype=np.int64)
        best = np.empty((len(queries), k), dtype=queries.dtype)
        # The selection needs some four times the memory of the scores.
        for block, scores in self.whole_rows(queries, _WHOLE_ROW_BYTES // 4):
            indices[block], best[block] = top_columns(scores, k)
        return indices, best

    def _from_candidates(self, queries: PointArray, k: int) -> tuple[Ints, PointArray, Bools]:
        """The best k of the distinct corpus points, and for which queries they are proven.

        Tile i holds every step-th distinct point from the i-th on: an even sample in any order of the points.
        """
        distinct = self.duplicates.distinct
        step = -(-len(distinct) // _TILE)
        candidates = ThresholdTopK(len(queries), min(k, len(distinct)), queries.dtype)
        tile = np.empty((len(queries), _TILE), dtype=queries.dtype)
        folded = np.empty((_TILE, self.corpus.rows.shape[1]), dtype=queries.dtype)
        for first in range(step):
            index = distinct[first::step]
            # A slice lets the product read the corpus in place.
            part = slice(first, None, step) if len(distinct) == len(self.corpus) else index
            self.space.similarity(queries, self.corpus.folded(part, folded), out=tile[:, : len(index)])
            # Rows stay aligned and contiguous: they are padded with minus infinity, which exceeds no threshold.
            tile[:, len(index) :] = -np.inf
            if first == 0:
                candidates.start(tile, 1 / step)
            candidates.add(tile, index)
            if first + 1 in _TIGHTEN_AFTER:
                candidates.tighten((first + 1) / step)
        return candidates.best()


def _even_share(count: int, most: int) -> int:
    """A block size from 1 to ``most`` for which the last block is not much smaller."""
    blocks = -(-count // max(1, most))
    return max(1, -(-count // max(1, blocks)))


def _require_one_width(queries: PointArray, corpus: PointArray) -> None:
    if queries.shape[1] != corpus.shape[1]:
        raise ShapeError(
            f"the queries have {queries.shape[1]} coordinates and the corpus has {corpus.shape[1]}",
            hint="embed both with the same model and the same truncation",
        )


def _require_positive(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ParameterError(f"{name} is {count}; it must be 1 or more")
