"""The default store: everything in memory, every vector compared, nothing to install."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.embed.encoder import Vectors
from equipoise.embed.stores.base import Found, Store
from equipoise.embed.stores.table import Table
from equipoise.geometry import Corpus, nearest


class Memory(Store):
    """Exact search by blocked matrix products over vectors in memory.

    >>> store = Memory("demo", 2, "cosine")
    >>> store.add(["east", "north"], [[1.0, 0.0], [0.0, 1.0]])
    >>> store.search([[0.9, 0.1]], k=1).ids.tolist()
    [['east']]
    """

    kind = "memory"

    def __init__(self, collection: str, dims: int, geometry: str) -> None:
        super().__init__(collection, dims, geometry)
        self._table = Table(dims)
        self._ready: Corpus | None = None
        """The vectors prepared for search, until they change."""

    def _count(self) -> int:
        return len(self._table)

    def close(self) -> None:
        super().close()
        self._table, self._ready = Table(self.dims), None

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        self._ready = None
        self._table.upsert(ids, vectors, texts)

    def _search(self, queries: Vectors, k: int) -> Found:
        if self._ready is None:
            self._ready = Corpus.of(self._table.vectors, self.geometry)
        found = nearest(queries, self._ready, k)
        return self._table.names(found.indices), found.scores.astype(np.float64)

    def _delete(self, ids: list[str]) -> int:
        self._ready = None
        return self._table.remove(ids)

    def _texts(self, ids: list[str]) -> list[str | None]:
        return self._table.texts(ids)

    def _vectors(self, ids: list[str]) -> dict[str, Any]:
        return self._table.held(ids)
