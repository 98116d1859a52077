"""Vectors in memory by id: the default store with exact search, and faiss with all vectors or a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from equipoise.errors import UnknownNameError
from equipoise.geometry.search import SearchCorpus, nearest_neighbors
from equipoise.models.stores.base import SearchResult, VectorStore, similarities
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.types import Ids, Ints


class TableStore(VectorStore):
    """Rows of one matrix that grows by doubling, the id and the text of each; subclasses search it."""

    _index_grows: ClassVar[bool] = False
    """Whether the index takes further vectors."""

    def __init__(self, collection: str, dims: int, geometry: str) -> None:
        super().__init__(collection, dims, geometry)
        self._clear()

    def _clear(self) -> None:
        self._matrix: Vectors = np.empty((0, self.dims), dtype=np.float32)
        self._names: list[str] = []
        self._text_of: dict[str, str] = {}
        self._row_of: dict[str, int] = {}
        self._index: Any = None
        """The vectors prepared for search; None after a change that it cannot take."""

    @property
    def _used(self) -> Vectors:
        """The rows in use; a view that the next change may invalidate."""
        return self._matrix[: len(self._names)]

    def _names_of(self, rows: Ints) -> Ids:
        """The ids of some rows, in an array of the same shape."""
        names = np.empty(rows.size, dtype=object)
        names[:] = [self._names[row] for row in rows.ravel().tolist()]
        return names.reshape(rows.shape)

    def _count(self) -> int:
        return len(self._names)

    def close(self) -> None:
        super().close()
        self._clear()

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        fresh = [name for name in ids if name not in self._row_of]
        if len(fresh) < len(ids) or not self._index_grows:
            self._index = None
        before, total = len(self._names), len(self._names) + len(fresh)
        if total > len(self._matrix):
            larger = np.empty((max(total, 2 * len(self._matrix)), self.dims), dtype=np.float32)
            larger[:before] = self._used
            self._matrix = larger
        self._row_of.update(zip(fresh, range(before, total), strict=True))
        self._names += fresh
        self._matrix[[self._row_of[name] for name in ids]] = vectors
        for name, text in zip(ids, texts, strict=True):
            if text is not None:
                self._text_of[name] = text
            else:
                self._text_of.pop(name, None)

    def _delete(self, ids: list[str]) -> int:
        before = len(self._names)
        for name in ids:
            row = self._row_of.pop(name, None)
            if row is None:
                continue
            self._text_of.pop(name, None)
            last = self._names.pop()
            if last != name:
                self._names[row], self._row_of[last] = last, row
                self._matrix[row] = self._matrix[len(self._names)]
        self._index = self._index if len(self._names) == before else None
        return before - len(self._names)

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        if name == "text":
            return {item: self._text_of[item] for item in ids if item in self._text_of}
        return {item: self._matrix[self._row_of[item]] for item in ids if item in self._row_of}


class MemoryStore(TableStore):
    """Exact search by blocked matrix products over vectors in memory.

    >>> store = MemoryStore("demo", 2, "cosine")
    >>> store.add(["east", "north"], [[1.0, 0.0], [0.0, 1.0]])
    >>> store.search([[0.9, 0.1]], k=1).ids.tolist()
    [['east']]
    """

    kind = "memory"

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        if self._index is None:
            self._index = SearchCorpus.of(self._used, self.geometry)
        neighbors = nearest_neighbors(queries, self._index, k)
        return self._names_of(neighbors.indices), neighbors.scores.astype(np.float64)


INDEXES = ("flat", "hnsw")


class FaissStore(TableStore):
    """An index of faiss over vectors in memory: ``flat`` compares with all, ``hnsw`` searches a graph.

    The graph cannot delete, so it is rebuilt at the next search when a vector was replaced or removed;
    further vectors are linked in.
    """

    kind = "faiss"
    _index_grows = True

    def __init__(
        self,
        collection: str,
        dims: int,
        geometry: str,
        *,
        index: str = "flat",
        neighbours: int = 32,
        ef_construction: int = 100,
        ef_search: int = 64,
    ) -> None:
        super().__init__(collection, dims, geometry)
        self.exact = index != "hnsw"
        if index not in INDEXES:
            raise UnknownNameError.of("faiss index", index, INDEXES, more=f"known: {', '.join(INDEXES)}")
        self._engine: Any = require_extra("faiss", extra="faiss")
        self._neighbours, self._ef_construction, self._ef_search = neighbours, ef_construction, ef_search

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        index = self._built()
        if not self.exact:
            index.hnsw.efSearch = max(self._ef_search, k)
        _, rows = index.search(queries, k)
        ids, scores = self._names_of(rows), self._similarities(queries, rows)
        ids[rows < 0], scores[rows < 0] = None, -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _built(self) -> Any:
        if self._index is None:
            self._index = self._empty()
        self._index.add(self._used[self._index.ntotal :])
        return self._index

    def _empty(self) -> Any:
        metric = self._engine.METRIC_L2 if self.geometry == "euclidean" else self._engine.METRIC_INNER_PRODUCT
        if self.exact:
            return self._engine.IndexFlat(self.dims, metric)
        index = self._engine.IndexHNSWFlat(self.dims, self._neighbours, metric)
        index.hnsw.efConstruction = self._ef_construction
        return index

    def _similarities(self, queries: Vectors, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The scores of the hits, pair by pair: those of faiss may differ slightly for equal vectors."""
        scores = np.empty(rows.shape)
        for row, query in enumerate(queries):
            scores[row] = similarities(query, self._used[rows[row]], self.geometry)
        return scores
