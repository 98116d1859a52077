"""Quality of a vector index: recall against exact search, latency percentiles and throughput.

The store is filled, queried one by one for the latency, then in batches for the throughput, and compared with exact
search over the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf, nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import InputError, ParameterError, StoreError
from equipoise.geometry.base import PointArray, as_vectors
from equipoise.geometry.search import Neighbors
from equipoise.geometry.sharded_search import MapFunction, PreparedQueries, nearest_in_shards
from equipoise.geometry.shards import Shards
from equipoise.geometry.topk import RunningTopK
from equipoise.models.stores.base import Block, Hits, VectorStore, check_same_vectors
from equipoise.models.stores.base import ingest as fill_store
from equipoise.models.stores.recall import exact_scores, recall_per_query
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import Interval, quantile, quantile_interval
from equipoise.stats.result import Estimate, Result
from equipoise.stats.verdict import UNIT_NOUN
from equipoise.types import Direction, Floats

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class IndexMeasurement:
    """Recall and seconds per query, and the seconds of the other steps.

    ``stopped`` is the reason if not all queries were answered; ``batch_seconds`` is then NaN.
    """

    k: int
    vectors: int
    recall: Floats
    seconds: Floats
    fill_seconds: float
    build_seconds: float
    batch_seconds: float
    exact_seconds: float
    stopped: str = ""

    @property
    def throughput(self) -> float:
        """Queries per second in batches."""
        return len(self.seconds) / self.batch_seconds if self.batch_seconds else nan

    def result(self, system: str, *, config: StatsConfig = DEFAULT_STATS) -> Result:
        """The scores with their intervals; a unit is a query."""
        confidence_level = config.confidence_level
        units = [str(number) for number in range(len(self.recall))]
        name, waited = f"IndexRecall@{self.k}", 1000.0 * self.seconds
        chance = min(self.k, self.vectors) / self.vectors
        result = result_from_values(system, units, {name: self.recall}, chance={name: chance}, config=config)
        slow = result_from_values(
            system,
            units,
            {"Latency": waited},
            bounds=(0.0, inf),
            better=Direction.DOWN,
            unit="ms",
            config=config,
        )
        return Result(
            system=system,
            unit_ids=result.unit_ids,
            estimates={
                **result.estimates,
                **slow.estimates,
                **_tail(waited, confidence_level),
                **self._rate(confidence_level),
            },
            per_unit={**result.per_unit, **slow.per_unit},
            settings={**result.settings, UNIT_NOUN: "query", "k": self.k, "vectors": self.vectors},
        )

    def _rate(self, confidence_level: float) -> dict[str, Estimate]:
        interval = Interval.unknown(self.stopped or "one pass over the queries", confidence_level=confidence_level)
        estimate = Estimate(
            "Throughput", self.throughput, interval, len(self.seconds), 0, nan, Direction.UP, "queries a second"
        )
        return {estimate.metric: estimate}


def _tail(milliseconds: Floats, confidence_level: float) -> dict[str, Estimate]:
    """The percentiles of the latency."""
    estimates = {}
    for percentile in PERCENTILES:
        name, share = f"Latency(p{percentile})", percentile / 100
        estimates[name] = Estimate(
            name,
            quantile(milliseconds, share),
            quantile_interval(milliseconds, share, confidence_level),
            len(milliseconds),
            0,
            nan,
            Direction.DOWN,
            "ms",
        )
    return estimates


BATCH = 256
"""Queries of a request when throughput is measured."""

COLLECTION_HINT = "use another collection: --collection NAME, or none for one that is named after the vectors"
"""The hint for a store with other vectors."""

Watch = Callable[[str, int, int], None]
"""Called with the name of the step, the finished items and all items."""


def measure_index(
    store: VectorStore,
    corpus: Any,
    queries: ArrayLike,
    k: int = 10,
    *,
    threads: int = 1,
    device: str | None = None,
    map_function: MapFunction | None = None,
    watch: Watch | None = None,
) -> IndexMeasurement:
    """Fill the store with the corpus and measure it; ids are the numbers of the rows.

    ``corpus`` is a ``Shards`` or what ``Shards.of`` takes, so it need not fit into memory. Vectors
    that an interrupted call has stored are not sent again; a store with other vectors is an error. A hit that ties
    with the last exact neighbour counts. If the store fails between two queries, the answered ones are measured.
    ``map_function`` maps the shards of the exact search, such as over machines; with a ``device``, the exact search
    runs there.

    >>> from equipoise.models.stores import open_store
    >>> with open_store("memory", dims=2) as store:
    ...     measure_index(store, np.eye(2), [[1.0, 0.5]], k=1).recall.tolist()
    [1.0]
    """
    shards = corpus if isinstance(corpus, Shards) else Shards.of(corpus)
    points = as_vectors(queries, "the queries")
    _check(store, shards, points, k)
    report_progress = watch or _ignore_progress
    width = min(k, len(shards))
    filled = load_corpus(store, shards, report_progress)
    start = perf_counter()
    store.search_once(points[:1], width)  # some stores build their index on the first query
    built = perf_counter() - start
    timed = _TimedQueries(store, points, width)
    timed.one_by_one(report_progress)
    timed.in_batches()
    report_progress("exact search", 0, len(shards))
    start = perf_counter()
    answered = points[: len(timed.hits)]

    def searched(done: int) -> None:
        report_progress("exact search", done, len(shards))

    if device is not None:
        exact = nearest_on_device(answered, shards, width, store.geometry, device, searched)
    else:
        exact = nearest_in_shards(
            answered,
            shards,
            width,
            geometry=store.geometry,
            threads=threads,
            map_function=map_function,
            progress=searched,
        )
    return IndexMeasurement(
        k=k,
        vectors=len(shards),
        recall=recall_per_query(timed.all_hits(), exact, width, truth=exact_scores(shards, points, store.geometry)),
        seconds=np.array(timed.seconds),
        fill_seconds=filled,
        build_seconds=built,
        batch_seconds=timed.batch_seconds,
        exact_seconds=perf_counter() - start,
        stopped=timed.stopped,
    )


ROUNDING_MARGIN = 32
"""Additional candidates from the device, whose scores are rounded; the exact scores order them."""


def nearest_on_device(
    queries: PointArray, shards: Shards, k: int, geometry: str, device: str, progress: Callable[[int], None]
) -> Neighbors:
    """The k nearest vectors of every query: candidates from the device, ordered by the exact scores of the host."""
    from equipoise.geometry.gpu_search import nearest_neighbors_gpu

    candidates = RunningTopK(len(queries), min(k + ROUNDING_MARGIN, len(shards)))
    for shard in shards.split().parts:
        for first, rows in shard.windows():
            near = nearest_neighbors_gpu(queries, rows, candidates.k, geometry=geometry, device=device)
            at = np.repeat(np.arange(len(queries)), near.indices.shape[1])
            candidates.offer(at, first + near.indices.ravel(), near.scores.ravel().astype(np.float64))
            progress(first + len(rows))
    candidates.flush()
    score = exact_scores(shards, queries, geometry)
    best = RunningTopK(len(queries), k)
    for query, row in enumerate(candidates.rows):
        known = row[row >= 0]
        best.offer(np.full(len(known), query), known, score(query, known))
    best.flush()
    return Neighbors(best.rows, best.scores)


def load_corpus(store: VectorStore, shards: Shards, watch: Watch) -> float:
    """Add the vectors that the store does not have yet; returns the seconds that this took."""
    start = perf_counter()
    check_same_vectors(store, len(shards), shards.take, hint=COLLECTION_HINT)
    fill_store(
        store,
        len(shards),
        partial(_blocks, shards),
        lambda done: watch("filling the store", done, len(shards)),
        hint=COLLECTION_HINT,
    )
    return perf_counter() - start


@dataclass(slots=True)
class _TimedQueries:
    """Queries, and the hits and times of those that were sent."""

    store: VectorStore
    queries: PointArray
    k: int
    hits: list[Hits] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    batch_seconds: float = nan
    stopped: str = ""

    def one_by_one(self, watch: Watch) -> None:
        """One request per query; after a failure the earlier hits are kept."""
        for number in range(len(self.queries)):
            watch("querying the store", number, len(self.queries))
            start = perf_counter()
            try:
                hits = self.store.search_once(self.queries[number : number + 1], self.k)
            except StoreError as error:
                if not self.hits:
                    raise
                self.stopped = error.message
                return
            self.seconds.append(perf_counter() - start)
            self.hits.append(hits)

    def in_batches(self) -> None:
        """All queries again, ``BATCH`` per request."""
        if self.stopped:
            return
        start = perf_counter()
        try:
            for first in range(0, len(self.queries), BATCH):
                self.store.search_once(self.queries[first : first + BATCH], self.k)
        except StoreError as error:
            self.stopped = error.message
            return
        self.batch_seconds = perf_counter() - start

    def all_hits(self) -> Hits:
        """The hits of all queries."""
        return Hits(
            np.concatenate([hit.ids for hit in self.hits]),
            np.concatenate([hit.scores for hit in self.hits]),
        )


def _blocks(shards: Shards, first: int, size: int) -> Iterator[Block]:
    """Blocks of at most ``size`` vectors, from row ``first`` on."""
    for shard in shards.parts:
        for part in shard.parts(size):
            if part.first + len(part) > first:
                for start, vectors in part.windows():
                    yield start, [str(start + row) for row in range(len(vectors))], vectors, None


def _check(store: VectorStore, shards: Shards, queries: PointArray, k: int) -> None:
    if k < 1:
        raise ParameterError(f"k is {k}; it must be 1 or more")
    if not len(queries):
        raise InputError("there are no queries", hint="give at least one query vector")
    PreparedQueries.of(queries, store.geometry, shards.dims, shards.dtype)
    if store.dims != shards.dims:
        raise ParameterError(
            f"{store.named} cannot take vectors of {shards.dims} dimensions",
            hint=f"open it with dims={shards.dims}",
        )


def _ignore_progress(what: str, done: int, total: int, /) -> None:
    """No progress is reported."""
