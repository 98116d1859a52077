"""Recall of an approximate index: the share of the exact nearest neighbours that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import PairingError, ParameterError
from equipoise.geometry import distances
from equipoise.geometry.sharded_search import PreparedQueries
from equipoise.geometry.shards import Shards
from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.geometry.base import PointArray
    from equipoise.geometry.search import Neighbors
    from equipoise.models.stores.base import Hits, VectorStore

ExactNeighbors = Callable[[int, Ints], Floats]
"""The scores of a query with some rows of the corpus."""

_ROUNDING = 32 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class IndexRecall:
    """The share of the k nearest that a store returned, one value per query."""

    k: int
    per_query: Floats

    @property
    def recall(self) -> float:
        """The mean over the queries; NaN without any."""
        return float(self.per_query.mean()) if len(self.per_query) else float("nan")

    @property
    def worst(self) -> float:
        """The minimum over the queries; NaN without any."""
        return float(self.per_query.min()) if len(self.per_query) else float("nan")

    @property
    def complete(self) -> int:
        """The number of queries for which nothing was missed."""
        return int((self.per_query == 1.0).sum())

    def __str__(self) -> str:
        queries = len(self.per_query)
        return f"index recall@{self.k} {self.recall:.4f} over {queries} queries, {self.complete} complete"


def index_recall(
    store: VectorStore,
    queries: ArrayLike,
    exact: Neighbors,
    k: int,
    *,
    ids: Sequence[str] | None = None,
    corpus: PointArray | None = None,
) -> IndexRecall:
    """Recall@k of a store against exact search over the same vectors.

    ``exact`` holds the k nearest rows of the corpus or more, as ``nearest_neighbors`` returns them; ``ids`` are
    the ids of these rows in the store, the row numbers as strings when left out. Where several vectors tie
    for the last rank any of them is correct: a hit counts when it is among the exact ones or scores as high as
    the last of them, up to the rounding of float32. With ``corpus``, hits are scored by its rows; without
    it the scores of the store are used, which are right only if it holds exactly these vectors.
    """
    width = min(k, store.count())
    if len(exact) != len(np.asarray(queries)):
        raise PairingError(
            f"there are {len(np.asarray(queries))} queries and exact results for {len(exact)}",
            hint="search exactly for the same queries",
        )
    if exact.indices.shape[1] < width:
        raise ParameterError(
            f"the exact search is {exact.indices.shape[1]} deep, too little for recall@{k}",
            hint=f"search exactly with k={k} or more",
        )
    truth = None if corpus is None else exact_scores(Shards.of(corpus), queries, store.geometry)
    return IndexRecall(k, recall_per_query(store.search(queries, k), exact, width, ids=ids, truth=truth))


def recall_per_query(
    hits: Hits,
    exact: Neighbors,
    width: int,
    *,
    ids: Sequence[str] | None = None,
    truth: ExactNeighbors | None = None,
) -> Floats:
    """For each query the share of its ``width`` nearest among the hits; NaN without neighbours.

    ``ids`` and ties are those of ``index_recall``. A hit beyond the exact ones is scored by ``truth``
    for its row, and an unknown id does not count; without ``truth``, its reported score is used.
    """
    row_of = None if ids is None else {name: row for row, name in enumerate(ids)}
    values = np.full(len(exact), np.nan)
    for query in range(len(exact) if width else 0):
        rows_exact, last = exact.indices[query, :width], float(exact.scores[query, width - 1])
        right = set(rows_exact.tolist())
        slack = _ROUNDING * float(np.abs(exact.scores[query, :width]).max())
        rows = [(_row(name, row_of), score) for name, score in hits.pairs(query)]
        others = [(row, score) for row, score in rows if row not in right]
        scores = np.array([score for _, score in others])
        if truth is not None:
            stored = [row for row, _ in others if row >= 0]
            scores = truth(query, np.array(stored, dtype=np.int64)) if stored else np.empty(0)
        n_found = len(rows) - len(others) + int((scores >= last - slack).sum())
        values[query] = min(n_found, width) / width
    return values


def exact_scores(corpus: Shards, queries: ArrayLike, geometry: str) -> ExactNeighbors:
    """The exact scores of hits, independent of the scores that a store reports."""
    prepared = PreparedQueries.of(queries, geometry, corpus.dims, corpus.dtype)

    def scores(query: int, rows: Ints) -> Floats:
        in_corpus = rows[rows < len(corpus)]
        vectors = corpus.take(in_corpus)
        return prepared.pairs(
            np.full(len(in_corpus), query), vectors, distances.norm(vectors), np.arange(len(in_corpus), dtype=np.int64)
        )

    return scores


def _row(name: str, row_of: dict[str, int] | None) -> int:
    """The row of an id in the corpus; -1 if there is none."""
    if row_of is not None:
        return row_of.get(name, -1)
    return int(name) if name.isascii() and name.isdecimal() else -1
