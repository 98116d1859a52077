"""faiss: vectors in memory, compared with all of them or through a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import UnknownNameError
from equipoise.models.stores.base import SearchResult, VectorStore, similarities
from equipoise.models.stores.memory import VectorTable
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

INDEXES = ("flat", "hnsw")


class FaissStore(VectorStore):
    """An index of faiss over vectors in memory: ``flat`` compares with all, ``hnsw`` walks a graph.

    The graph cannot delete, so it is rebuilt at the next search when a vector was replaced or removed;
    further vectors are linked in.
    """

    kind = "faiss"

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
        if index not in INDEXES:
            raise UnknownNameError.of("faiss index", index, INDEXES, more=f"known: {', '.join(INDEXES)}")
        self._engine: Any = require_extra("faiss", extra="faiss")
        self._hnsw = index == "hnsw"
        self._neighbours, self._ef_construction, self._ef_search = neighbours, ef_construction, ef_search
        self._table = VectorTable(dims)
        self._index: Any = None

    @property
    def exact(self) -> bool:
        return not self._hnsw

    def _count(self) -> int:
        return len(self._table)

    def close(self) -> None:
        super().close()
        self._table, self._index = VectorTable(self.dims), None

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        self._table.upsert(ids, vectors, texts)

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        index = self._built()
        if self._hnsw:
            index.hnsw.efSearch = max(self._ef_search, k)
        _, rows = index.search(queries, k)
        ids, scores = self._table.names(rows), self._similarities(queries, rows)
        ids[rows < 0], scores[rows < 0] = None, -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _delete(self, ids: list[str]) -> int:
        return self._table.remove(ids)

    def _texts(self, ids: list[str]) -> list[str | None]:
        return self._table.texts(ids)

    def _vectors(self, ids: list[str]) -> dict[str, Any]:
        return self._table.held(ids)

    def _built(self) -> Any:
        if self._index is None or not self._table.appended_only:
            self._index = self._empty()
            self._table.appended_only = True
        self._index.add(self._table.vectors[self._index.ntotal :])
        return self._index

    def _empty(self) -> Any:
        metric = self._engine.METRIC_L2 if self.geometry == "euclidean" else self._engine.METRIC_INNER_PRODUCT
        if not self._hnsw:
            return self._engine.IndexFlat(self.dims, metric)
        index = self._engine.IndexHNSWFlat(self.dims, self._neighbours, metric)
        index.hnsw.efConstruction = self._ef_construction
        return index

    def _similarities(self, queries: Vectors, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The scores of the hits, pair by pair: those of faiss may differ slightly for equal vectors."""
        scores = np.empty(rows.shape)
        for row, query in enumerate(queries):
            scores[row] = similarities(query, self._table.vectors[rows[row]], self.geometry)
        return scores
