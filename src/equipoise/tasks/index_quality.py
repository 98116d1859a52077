"""The quality of an index: how much of the exact answer it finds, how soon, and how many it answers a second.

The store is filled, asked one query at a time for its latency, then all in batches for its throughput,
and held against exact search over the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.embed.stores import Store
from equipoise.embed.stores.base import Hits
from equipoise.embed.stores.fill import Block
from equipoise.embed.stores.fill import fill as fill_store
from equipoise.embed.stores.recall import recalls, scores_in
from equipoise.embed.stores.same import refuse_other_vectors
from equipoise.errors import InputError, ParameterError, StoreError
from equipoise.geometry import Points, as_points
from equipoise.geometry.sharded import Mapper, nearest_in_shards
from equipoise.geometry.shards import Shards
from equipoise.geometry.tiles import Asked
from equipoise.tasks.index_figures import IndexQuality

BATCH = 256
"""Queries of a request when throughput is measured."""

REMEDY = "give these vectors a collection of their own: --collection NAME, or none for one made from them"
"""What helps where a store holds something else."""

Watch = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and how much there is."""


def index_quality(
    store: Store,
    corpus: Any,
    queries: ArrayLike,
    k: int = 10,
    *,
    threads: int = 1,
    over: Mapper | None = None,
    watch: Watch | None = None,
) -> IndexQuality:
    """Fill the store with the corpus and measure it; ids are the numbers of the rows.

    ``corpus`` is a ``Shards`` or what ``Shards.of`` takes, so it need not fit into memory. What the store
    holds already, from a call that was interrupted, is not sent again; other vectors in it are refused. A hit
    beyond the exact answer counts where its row of the corpus ties with the last one. A store that fails
    between two queries leaves those that were answered. ``over`` maps the shards of the exact search, such
    as over machines.

    >>> from equipoise.embed.stores import store
    >>> with store("memory", dims=2) as held:
    ...     index_quality(held, np.eye(2), [[1.0, 0.5]], k=1).recall.tolist()
    [1.0]
    """
    shards = corpus if isinstance(corpus, Shards) else Shards.of(corpus)
    points = as_points(queries, "the queries")
    _check(store, shards, points, k)
    told = watch or _nobody
    width = min(k, len(shards))
    filled = fill(store, shards, told)
    start = perf_counter()
    store.ask(points[:1], width)  # some build their index only when they are asked
    built = perf_counter() - start
    asked = _Asking(store, points, width)
    asked.one_by_one(told)
    asked.in_batches()
    told("searching exactly", 0, len(shards))
    start = perf_counter()
    exact = nearest_in_shards(
        points[: len(asked.hits)],
        shards,
        width,
        geometry=store.geometry,
        threads=threads,
        over=over,
        progress=lambda done: told("searching exactly", done, len(shards)),
    )
    return IndexQuality(
        k=k,
        vectors=len(shards),
        recall=recalls(asked.found(), exact, width, truth=scores_in(shards, points, store.geometry)),
        seconds=np.array(asked.seconds),
        fill_seconds=filled,
        build_seconds=built,
        batch_seconds=asked.batch_seconds,
        exact_seconds=perf_counter() - start,
        stopped=asked.stopped,
    )


def fill(store: Store, shards: Shards, watch: Watch) -> float:
    """Put the corpus into the store, going on behind what it holds of it; the seconds that this took."""
    start = perf_counter()
    refuse_other_vectors(store, len(shards), shards.take, remedy=REMEDY)
    fill_store(
        store,
        len(shards),
        partial(_blocks, shards),
        lambda done: watch("filling the store", done, len(shards)),
        remedy=REMEDY,
    )
    return perf_counter() - start


@dataclass(slots=True)
class _Asking:
    """The queries as they are sent, and what came back so far."""

    store: Store
    queries: Points
    k: int
    hits: list[Hits] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    batch_seconds: float = nan
    stopped: str = ""

    def one_by_one(self, watch: Watch) -> None:
        """A request a query; what was answered before a failure stays."""
        for number in range(len(self.queries)):
            watch("asking the store", number, len(self.queries))
            start = perf_counter()
            try:
                found = self.store.ask(self.queries[number : number + 1], self.k)
            except StoreError as error:
                if not self.hits:
                    raise
                self.stopped = error.sentence
                return
            self.seconds.append(perf_counter() - start)
            self.hits.append(found)

    def in_batches(self) -> None:
        """All queries once more, many a request."""
        if self.stopped:
            return
        start = perf_counter()
        try:
            for first in range(0, len(self.queries), BATCH):
                self.store.ask(self.queries[first : first + BATCH], self.k)
        except StoreError as error:
            self.stopped = error.sentence
            return
        self.batch_seconds = perf_counter() - start

    def found(self) -> Hits:
        """All answers together."""
        return Hits(
            np.concatenate([each.ids for each in self.hits]),
            np.concatenate([each.scores for each in self.hits]),
        )


def _blocks(shards: Shards, first: int, size: int) -> Iterator[Block]:
    """Vectors from a row on, so many at a time."""
    for shard in shards.parts:
        for part in shard.parts(size):
            if part.first + len(part) > first:
                for start, vectors in part.windows():
                    yield start, [str(start + row) for row in range(len(vectors))], vectors, None


def _check(store: Store, shards: Shards, queries: Points, k: int) -> None:
    if k < 1:
        raise ParameterError(f"k is {k}; it must be 1 or more")
    if not len(queries):
        raise InputError("there are no queries", hint="give at least one query vector")
    Asked.of(queries, store.geometry, shards.dims, shards.dtype)
    if store.dims != shards.dims:
        raise ParameterError(
            f"{store.named} cannot take vectors of {shards.dims} dimensions",
            hint=f"open it with dims={shards.dims}",
        )


def _nobody(what: str, done: int, total: int, /) -> None:
    """Nobody watches."""
