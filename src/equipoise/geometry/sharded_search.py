"""Exact nearest neighbours in a corpus of shards: matrix products with an error bound, then exact pair scores.

The rounding error of a pair in a matrix product depends on its position in the blocks. The product therefore
only separates pairs that are certainly above a limit from those certainly below. The few in between are
scored individually in float64. The result depends only on the vectors, not on tiles, shards, threads or the BLAS
library, and equal vectors have equal scores in any position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.geometry import distances
from equipoise.geometry.base import Geometry, PointArray, as_vectors
from equipoise.geometry.search import Neighbors
from equipoise.geometry.shards import Shard, Shards
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.geometry.topk import RunningTopK

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

PLAIN = ("cosine", "dot", "euclidean")
"""The geometries that are searched in shards; hyperbolic points are few and are ranked among themselves."""

TILE = 1024
"""Vectors in a tile: its scores for a block of queries remain in the cache between two passes."""

_PIECE = 192
"""Coordinates that are multiplied at once: partial sums have a smaller rounding error than one long sum."""

_PAIRS_AT_ONCE = 1 << 13
_LARGEST = {4: 1e36, 8: 1e300}
_SMALLEST = {4: 1e-38, 8: 1e-300}


@dataclass(frozen=True, slots=True)
class CorpusTile:
    """A few vectors of a corpus: the right factor of the product, and what their exact scores need."""

    rows: PointArray
    lengths: Floats
    right: PointArray
    squares: PointArray | None
    max_norm: float

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class PreparedQueries:
    """Queries prepared for the product and for the scores of single pairs.

    ``product`` is the score plus ``shift`` of the query, up to ``slack``.
    """

    name: str
    left: PointArray
    points: Floats
    lengths: Floats
    shift: Floats
    origin: Floats

    @classmethod
    def of(
        cls, queries: ArrayLike, geometry: str | Geometry, dims: int, dtype: np.dtype[np.floating]
    ) -> PreparedQueries:
        """Checked queries for a corpus with this number of dimensions and this type."""
        space = geometry_of(geometry)
        if space.name not in PLAIN:
            raise ParameterError(
                f"shards are searched by {', '.join(PLAIN)}, not by {space.name}",
                hint="geometry.nearest takes every geometry, for vectors in memory",
            )
        rows = as_vectors(queries, "the queries")
        if rows.shape[1] != dims:
            raise ShapeError(
                f"the queries have {rows.shape[1]} coordinates and the corpus has {dims}",
                hint="embed both with the same model and the same truncation",
            )
        space.check(rows).require_usable("the queries")
        points = rows.astype(np.float64)
        origin = np.zeros(dims)
        if space.name == "cosine":
            lengths = distances.norm(points)
            points = np.divide(points, lengths[:, None], out=np.zeros_like(points), where=lengths[:, None] > 0.0)
        if space.name == "euclidean":
            origin = points.mean(axis=0) if len(points) else origin
        centered = points - origin
        lengths = distances.norm(centered)
        shift = lengths * lengths if space.name == "euclidean" else np.zeros(len(points))
        with np.errstate(over="ignore"):  # overflow is an error at the first tile
            left = (2.0 * centered if space.name == "euclidean" else centered).astype(dtype)
        return cls(space.name, left, points, lengths, shift, origin)

    def __len__(self) -> int:
        return len(self.left)

    def block(self, part: slice) -> PreparedQueries:
        """Some of the queries."""
        return PreparedQueries(
            self.name, self.left[part], self.points[part], self.lengths[part], self.shift[part], self.origin
        )

    def tile(self, rows: PointArray, name: str, first: int) -> CorpusTile:
        """Prepared vectors; a vector with NaN is an error that names its shard and row."""
        lengths = distances.norm(rows)
        if not np.isfinite(lengths).all():
            bad = int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise NotFiniteError(
                f"{name} holds NaN or infinity in vector {first + bad:,} of the corpus",
                hint="find where the embedder returned it; empty texts are a usual cause",
            )
        kind = self.left.dtype
        squares = None
        if self.name == "cosine":
            inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
            with np.errstate(over="ignore", under="ignore"):
                scale = inverse.astype(kind)
            # Vectors whose length leaves the range of their type still have a direction.
            ordinary = bool(((scale > 0.0) & np.isfinite(scale) | (lengths == 0.0)).all())
            right, max_norm = rows * (scale if ordinary else inverse)[:, None], 1.0
        elif self.name == "euclidean":
            centered = rows - self.origin
            square = distances.inner(centered, centered)
            right, squares, max_norm = centered, square.astype(kind), float(np.sqrt(square.max(initial=0.0)))
        else:
            right, max_norm = rows, float(lengths.max(initial=0.0))
        self._require_range(max_norm, kind.itemsize, name)
        return CorpusTile(rows, lengths, right.astype(kind, copy=False), squares, max_norm)

    def product(self, tile: CorpusTile, buffers: PointArray) -> PointArray:
        """Approximate scores of all queries with the tile, plus the shift; ``buffers`` holds two such matrices."""
        near, product = (buffer[: len(self), : len(tile)] for buffer in buffers)
        for start in range(0, self.left.shape[1], _PIECE):
            part = slice(start, start + _PIECE)
            np.matmul(self.left[:, part], tile.right[:, part].T, out=product if start else near)
            if start:
                near += product
        if tile.squares is not None:
            near -= tile.squares
        return near

    def buffers(self, most: int) -> PointArray:
        """Memory for the products of at most ``most`` queries."""
        return np.empty((2, min(len(self), most), TILE), dtype=self.left.dtype)

    def slack(self, tile: CorpusTile) -> Floats:
        """For each query, an upper bound of the error of the product; the error of pair scores is much smaller."""
        kind, dims = self.left.dtype, self.left.shape[1]
        # Rounding of the partial sums and their total, of both factors and of the squares, half a unit each, and of
        # the exact score of the pair. All are multiples of the lengths.
        steps = min(dims, _PIECE) + dims // _PIECE + 16
        units = steps * float(np.finfo(kind).eps) / 2.0 + (dims + 16) * float(np.finfo(np.float64).eps)
        size = self.lengths * tile.max_norm
        if self.name == "euclidean":
            size = (self.lengths + tile.max_norm) ** 2
        return units * size + dims * _SMALLEST[kind.itemsize]

    def scores(self, tile: CorpusTile, queries: Ints, columns: Ints) -> Floats:
        """The score of each pair, without a matrix product: cosine, inner product, or minus the squared distance."""
        return self.pairs(queries, tile.rows, tile.lengths, columns)

    def pairs(self, queries: Ints, rows: PointArray, lengths: Floats, columns: Ints) -> Floats:
        """The same for rows outside a tile."""
        result = np.empty(len(queries))
        for start in range(0, len(queries), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            left = self.points.take(queries[part], axis=0)
            right = rows.take(columns[part], axis=0).astype(np.float64, copy=False)
            if self.name == "euclidean":
                difference = left - right
                result[part] = -distances.inner(difference, difference)
            else:
                result[part] = distances.inner(left, right)
        if self.name == "cosine":
            size = lengths.take(columns)
            np.divide(result, size, out=result, where=size > 0.0)
        return result

    def _require_range(self, max_norm: float, itemsize: int, name: str) -> None:
        most = (float(self.lengths.max(initial=0.0)) + max_norm) ** 2
        if not most < _LARGEST[itemsize]:
            raise UndefinedError(
                f"{name} holds vectors so long that their products leave the range of float{8 * itemsize}",
                hint="scale the vectors down, or compare them by cosine",
            )


# The top k of each shard, merged.

T = TypeVar("T")
R = TypeVar("R")
MapFunction = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a pure function to every item and yields the results in order, as ``map`` does."""

QUERIES_AT_ONCE = 1024


def nearest_in_shards(
    queries: ArrayLike,
    corpus: Shards | Sequence[object] | ArrayLike,
    k: int,
    *,
    geometry: str | Geometry = "cosine",
    threads: int = 1,
    map_function: MapFunction | None = None,
    progress: Callable[[int], None] | None = None,
) -> Neighbors:
    """Find the k nearest corpus vectors of every query by exact search in a corpus that need not fit into memory.

    Scores are float64 and depend on the two vectors only, so the result is byte-identical for any division into
    shards.

    Parameters
    ----------
    queries
        One vector per row.
    corpus
        The result of ``open_shards`` or ``write_shards``, or a sequence of arrays.
    k
        Number of neighbours per query.
    geometry
        ``cosine``, ``dot``, ``euclidean``, ``poincare`` or ``lorentz``.
    threads
        Threads that share the shards.
    map_function
        Another map function over the shards, such as that of ``resumable_map``.
    progress
        Called with the number of vectors that were compared.

    Returns
    -------
    Neighbors
        ``indices`` and ``scores`` with one row per query, best first.

    Examples
    --------
    >>> nearest_in_shards([[1.0, 0.1]], [[[0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]], 2).indices.tolist()
    [[1, 2]]
    """
    shards = corpus if isinstance(corpus, Shards) else Shards.of(corpus)
    if k < 1 or threads < 1:
        name, count = ("k", k) if k < 1 else ("threads", threads)
        raise ParameterError(f"{name} is {count}; it must be 1 or more")
    prepared = PreparedQueries.of(queries, geometry, shards.dims, shards.dtype)
    width = min(k, len(shards))
    best = RunningTopK(len(prepared), width)
    work = partial(search_shard, prepared, k=width)
    done = 0
    for shard, neighbors in map_in_order(work, shards.split().parts, threads, map_function):
        at, column = np.nonzero(neighbors.indices >= 0)
        best.offer(at, neighbors.indices[at, column], neighbors.scores[at, column].astype(np.float64))
        done += len(shard)
        if progress is not None:
            progress(done)
    best.flush()
    return Neighbors(best.rows, best.scores)


def search_shard(queries: PreparedQueries, shard: Shard, *, k: int) -> Neighbors:
    """The best k of one shard for every query, rows numbered as in the corpus; -1 where it has fewer."""
    best = [RunningTopK(len(queries.left[part]), k) for part in _blocks(len(queries))]
    buffers = queries.buffers(QUERIES_AT_ONCE)
    for first, tile in tiles(queries, shard):
        for part, top in zip(_blocks(len(queries)), best, strict=True):
            block = queries.block(part)
            _add_candidates(block, tile, first, top, block.product(tile, buffers))
    for top in best:
        top.flush()
    return Neighbors(
        np.concatenate([top.rows for top in best] or [np.empty((0, k), dtype=np.int64)]),
        np.concatenate([top.scores for top in best] or [np.empty((0, k))]),
    )


def tiles(queries: PreparedQueries, shard: Shard) -> Iterator[tuple[int, CorpusTile]]:
    """The vectors of a shard, ready for the queries, each tile with the corpus number of its first."""
    for first, rows in shard.windows():
        for start in range(0, len(rows), TILE):
            yield first + start, queries.tile(rows[start : start + TILE], shard.name, first + start)


def map_in_order(
    work: Callable[[T], R], items: Iterable[T], threads: int, map_function: MapFunction | None
) -> Iterator[tuple[T, R]]:
    """Every item with its result, in order; at most one finished result per thread is pending."""
    if map_function is not None:
        yield from zip(items, map_function(work, items), strict=True)
        return
    if threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    left = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [(item, pool.submit(work, item)) for item in islice(left, threads)]
        while waiting:
            item, answer = waiting.pop(0)
            result = answer.result()
            waiting += [(more, pool.submit(work, more)) for more in islice(left, 1)]
            yield item, result


def _add_candidates(block: PreparedQueries, tile: CorpusTile, first: int, top: RunningTopK, near: PointArray) -> None:
    """Add scores that may be among the best: few exceed the k-th best after the first tiles."""
    slack = block.slack(tile)
    limit = top.last + block.shift - slack
    fresh = np.flatnonzero(np.isneginf(limit))
    if len(fresh) and top.k < len(tile):
        position = len(tile) - top.k
        limit[fresh] = np.partition(near[fresh], position, axis=1)[:, position] - 2.0 * slack[fresh]
    flat = np.flatnonzero(near >= round_down(limit, near.dtype)[:, None])
    if not len(flat):
        return
    queries, columns = np.divmod(flat, len(tile))
    scores = block.scores(tile, queries, columns)
    better = scores > top.last[queries]
    top.offer(queries[better], first + columns[better], scores[better])


def round_down(limits: Floats, dtype: np.dtype[Any]) -> PointArray:
    """Limits in another type, no higher than they were: comparing in the type of the scores is faster."""
    return np.nextafter(limits.astype(dtype), np.asarray(-np.inf, dtype=dtype))


def _blocks(queries: int) -> list[slice]:
    return [slice(start, min(start + QUERIES_AT_ONCE, queries)) for start in range(0, queries, QUERIES_AT_ONCE)]
