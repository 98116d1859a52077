"""Vectors in memory by id, and the default store on them: exact search without extra packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.geometry.search import SearchCorpus, nearest_neighbors
from equipoise.models.stores.base import SearchResult, VectorStore

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.types import Ids, Ints


class VectorTable:
    """Rows of one matrix that grows by doubling, the id and the text of each."""

    def __init__(self, dims: int) -> None:
        self._matrix: Vectors = np.empty((0, dims), dtype=np.float32)
        self._names: list[str] = []
        self._texts: dict[str, str] = {}
        self._row_of: dict[str, int] = {}
        self.appended_only = True
        """Whether no row has moved since it was added; a caller that relies on it resets it."""

    def __len__(self) -> int:
        return len(self._names)

    @property
    def vectors(self) -> Vectors:
        """The rows in use; a view that the next change may invalidate."""
        return self._matrix[: len(self)]

    def names(self, rows: Ints) -> Ids:
        """The ids of some rows, in an array of the same shape."""
        names = np.empty(rows.size, dtype=object)
        names[:] = [self._names[row] for row in rows.ravel().tolist()]
        return names.reshape(rows.shape)

    def upsert(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        """Append rows, or replace those whose id is there."""
        fresh = [name for name in ids if name not in self._row_of]
        self.appended_only &= len(fresh) == len(ids)
        self._reserve(len(self) + len(fresh))
        self._row_of.update(zip(fresh, range(len(self), len(self) + len(fresh)), strict=True))
        self._names += fresh
        self._matrix[[self._row_of[name] for name in ids]] = vectors
        for name, text in zip(ids, texts, strict=True):
            if text is not None:
                self._texts[name] = text
            else:
                self._texts.pop(name, None)

    def remove(self, ids: list[str]) -> int:
        """Remove rows by id; the number of those that were there."""
        before = len(self)
        for name in ids:
            row = self._row_of.pop(name, None)
            if row is None:
                continue
            self._texts.pop(name, None)
            last = self._names.pop()
            if last != name:
                self._names[row], self._row_of[last] = last, row
                self._matrix[row] = self._matrix[len(self)]
        self.appended_only &= len(self) == before
        return before - len(self)

    def texts(self, ids: list[str]) -> list[str | None]:
        """The text of each id, None where there is none."""
        return [self._texts.get(name) for name in ids]

    def held(self, ids: list[str]) -> dict[str, Vectors]:
        """The rows of those ids that are there."""
        return {name: self._matrix[self._row_of[name]] for name in ids if name in self._row_of}

    def _reserve(self, rows: int) -> None:
        if rows > len(self._matrix):
            larger = np.empty((max(rows, 2 * len(self._matrix)), self._matrix.shape[1]), dtype=np.float32)
            larger[: len(self)] = self.vectors
            self._matrix = larger


class MemoryStore(VectorStore):
    """Exact search by blocked matrix products over vectors in memory.

    >>> store = MemoryStore("demo", 2, "cosine")
    >>> store.add(["east", "north"], [[1.0, 0.0], [0.0, 1.0]])
    >>> store.search([[0.9, 0.1]], k=1).ids.tolist()
    [['east']]
    """

    kind = "memory"

    def __init__(self, collection: str, dims: int, geometry: str) -> None:
        super().__init__(collection, dims, geometry)
        self._table = VectorTable(dims)
        self._ready: SearchCorpus | None = None
        """The vectors prepared for search, until they change."""

    def _count(self) -> int:
        return len(self._table)

    def close(self) -> None:
        super().close()
        self._table, self._ready = VectorTable(self.dims), None

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        self._ready = None
        self._table.upsert(ids, vectors, texts)

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        if self._ready is None:
            self._ready = SearchCorpus.of(self._table.vectors, self.geometry)
        neighbors = nearest_neighbors(queries, self._ready, k)
        return self._table.names(neighbors.indices), neighbors.scores.astype(np.float64)

    def _delete(self, ids: list[str]) -> int:
        self._ready = None
        return self._table.remove(ids)

    def _texts(self, ids: list[str]) -> list[str | None]:
        return self._table.texts(ids)

    def _vectors(self, ids: list[str]) -> dict[str, Any]:
        return self._table.held(ids)
