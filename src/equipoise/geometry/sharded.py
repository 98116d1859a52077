"""Exact nearest neighbours in a corpus of shards: the best of each shard, merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import ParameterError
from equipoise.geometry.base import Geometry
from equipoise.geometry.leaders import Leaders
from equipoise.geometry.points import Points
from equipoise.geometry.search import Neighbours
from equipoise.geometry.shards import Shard, Shards
from equipoise.geometry.tiles import TILE, Asked, Tile
from equipoise.types import Floats

T = TypeVar("T")
R = TypeVar("R")
Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a pure function to every item and gives the answers in order, as ``map`` does; an engine is one."""

QUERIES_AT_ONCE = 1024


def nearest_in_shards(
    queries: ArrayLike,
    corpus: Any,
    k: int,
    *,
    geometry: str | Geometry = "cosine",
    threads: int = 1,
    over: Mapper | None = None,
    progress: Callable[[int], None] | None = None,
) -> Neighbours:
    """The k nearest corpus vectors of every query, exactly, from a corpus that need not fit into memory.

    ``corpus`` is a ``Shards``, or what ``Shards.of`` takes. Scores are float64 and belong to the pair alone,
    so the answer has the same bytes however the corpus is cut. ``threads`` share the shards; ``over`` maps
    them in another way, such as over machines. ``progress`` is told how many vectors were compared.

    >>> nearest_in_shards([[1.0, 0.1]], [[[0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]], 2).indices.tolist()
    [[1, 2]]
    """
    shards = corpus if isinstance(corpus, Shards) else Shards.of(corpus)
    if k < 1 or threads < 1:
        name, count = ("k", k) if k < 1 else ("threads", threads)
        raise ParameterError(f"{name} is {count}; it must be 1 or more")
    asked = Asked.of(queries, geometry, shards.dims, shards.dtype)
    width = min(k, len(shards))
    best = Leaders(len(asked), width)
    work = partial(search_shard, asked, k=width)
    done = 0
    for shard, found in in_turn(work, shards.split().parts, threads, over):
        at, column = np.nonzero(found.indices >= 0)
        best.offer(at, found.indices[at, column], found.scores[at, column].astype(np.float64))
        done += len(shard)
        if progress is not None:
            progress(done)
    best.settle()
    return Neighbours(best.rows, best.scores)


def search_shard(asked: Asked, shard: Shard, *, k: int) -> Neighbours:
    """The best k of one shard for every query, rows numbered as in the corpus; -1 where it has fewer."""
    best = [Leaders(len(asked.left[part]), k) for part in _blocks(len(asked))]
    room = asked.room(QUERIES_AT_ONCE)
    for first, tile in tiles(asked, shard):
        for part, leaders in zip(_blocks(len(asked)), best, strict=True):
            block = asked.block(part)
            _look(block, tile, first, leaders, block.product(tile, room))
    for leaders in best:
        leaders.settle()
    return Neighbours(
        np.concatenate([leaders.rows for leaders in best] or [np.empty((0, k), dtype=np.int64)]),
        np.concatenate([leaders.scores for leaders in best] or [np.empty((0, k))]),
    )


def tiles(asked: Asked, shard: Shard) -> Iterator[tuple[int, Tile]]:
    """The vectors of a shard, ready for the queries, each tile with the corpus number of its first."""
    for first, rows in shard.windows():
        for start in range(0, len(rows), TILE):
            yield first + start, asked.tile(rows[start : start + TILE], shard.name, first + start)


def in_turn(
    work: Callable[[T], R], items: Iterable[T], threads: int, over: Mapper | None
) -> Iterator[tuple[T, R]]:
    """Every item with its answer, in order; no more answers wait than there are threads."""
    if over is not None:
        yield from zip(items, over(work, items), strict=True)
        return
    if threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    left = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [(item, pool.submit(work, item)) for item in islice(left, threads)]
        while waiting:
            item, answer = waiting.pop(0)
            found = answer.result()
            waiting += [(more, pool.submit(work, more)) for more in islice(left, 1)]
            yield item, found


def _look(block: Asked, tile: Tile, first: int, leaders: Leaders, near: Points) -> None:
    """Offer what may be among the best: few scores come near the k-th once some tiles have been seen."""
    slack = block.slack(tile)
    limit = leaders.last + block.shift - slack
    fresh = np.flatnonzero(np.isneginf(limit))
    if len(fresh) and leaders.k < len(tile):
        place = len(tile) - leaders.k
        limit[fresh] = np.partition(near[fresh], place, axis=1)[:, place] - 2.0 * slack[fresh]
    flat = np.flatnonzero(near >= rounded_down(limit, near.dtype)[:, None])
    if not len(flat):
        return
    queries, columns = np.divmod(flat, len(tile))
    scores = block.scores(tile, queries, columns)
    better = scores > leaders.last[queries]
    leaders.offer(queries[better], first + columns[better], scores[better])


def rounded_down(limits: Floats, dtype: np.dtype[Any]) -> Points:
    """Limits in another type, no higher than they were: comparing in the type of the scores is faster."""
    return np.nextafter(limits.astype(dtype), np.asarray(-np.inf, dtype=dtype))


def _blocks(queries: int) -> list[slice]:
    return [
        slice(start, min(start + QUERIES_AT_ONCE, queries)) for start in range(0, queries, QUERIES_AT_ONCE)
    ]
