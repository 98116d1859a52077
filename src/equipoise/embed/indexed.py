"""Documents in a vector store, as a system searches them, and what the store's index loses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from equipoise.embed.encoder import Vectors
from equipoise.embed.stores import RecallReport, Store, index_recall
from equipoise.embed.stores import store as open_store
from equipoise.embed.stores.fill import Block, fill
from equipoise.embed.stores.shown import without_secrets
from equipoise.errors import ParameterError
from equipoise.geometry import Geometry, Neighbours, nearest
from equipoise.types import Ints

RECALL_QUERIES = 200
"""So many queries, evenly spread, tell the recall of an index to a percent or so."""

_REMEDY = "delete that collection: the same command makes it anew and fills it"


class Indexed:
    """The vectors of some documents in a store; row i of the vectors is document i.

    >>> from equipoise.geometry import geometry
    >>> texts, vectors = ["a", "b", "c"], np.eye(3, dtype=np.float32)
    >>> indexed = Indexed.open("memory", texts, dims=3, geometry=geometry("dot"), model="")
    >>> indexed.fill(vectors, texts)
    >>> indexed.search(vectors[:1], 2).indices.tolist()
    [[0, 1]]
    """

    def __init__(self, store: Store, documents: int) -> None:
        self.store = store
        self.sent = 0
        """How many documents the last ``fill`` has sent."""
        # Stores settle ties by id: with leading zeros that is the order of the documents.
        digits = len(str(documents - 1))
        self.ids = [f"{row:0{digits}}" for row in range(documents)]

    @classmethod
    def open(
        cls, store: str | Store, texts: Sequence[str], *, dims: int, geometry: Geometry, model: str
    ) -> Indexed:
        """An empty store as it is; for a spec, a collection named after model, geometry and documents.

        It is opened before the documents are embedded, so that a wrong name costs nothing.
        """
        if isinstance(store, Store):
            _require_empty(store, dims, geometry)
            return cls(store, len(texts))
        name = _collection(model, geometry, texts)
        return cls(open_store(store, collection=name, dims=dims, geometry=geometry.name), len(texts))

    def fill(
        self, vectors: Vectors, texts: Sequence[str], watch: Callable[[int], None] | None = None
    ) -> None:
        """Put the documents in; those that are there from an earlier run are not sent again.

        ``watch`` is told how many are there. A store that goes away meanwhile keeps what it has.
        """

        def blocks(start: int, size: int) -> Iterator[Block]:
            for first in range(start, len(texts), size):
                part = slice(first, first + size)
                yield first, self.ids[part], vectors[part], texts[part]

        self.sent = fill(self.store, len(texts), blocks, watch, remedy=_REMEDY)

    def search(self, queries: Vectors, k: int) -> Neighbours:
        """The store's answer as rows of documents.

        A row that the index left short is filled up with documents that it did not return, in their order,
        at a score of minus infinity.
        """
        hits = self.store.search(queries, k)
        rows = np.full(hits.ids.shape, -1, dtype=np.int64)
        found = hits.ids != None  # noqa: E711  (an array of objects, compared one by one)
        rows[found] = [int(name) for name in hits.ids[found]]
        for short in np.flatnonzero(~found.all(axis=1)):
            rows[short] = _filled(rows[short], len(self.ids))
        return Neighbours(rows, hits.scores)

    def recall(
        self, queries: Vectors, vectors: Vectors, k: int, geometry: Geometry, threads: int
    ) -> RecallReport | None:
        """Recall@k against exact search, on up to 200 of the queries; None where the store is exact."""
        if self.store.exact:
            return None
        sample = queries[np.unique(np.linspace(0, len(queries) - 1, RECALL_QUERIES).astype(np.int64))]
        exact = nearest(sample, vectors, k, geometry=geometry, threads=threads)
        return index_recall(self.store, sample, exact, k, ids=self.ids, corpus=vectors)


def described(store: str | Store) -> str:
    """A store as a card names it: the spec without a password, the kind of an object.

    >>> described("pgvector:postgresql://me:secret@host/db?sslmode=require")
    'pgvector:postgresql://me@host/db'
    """
    if isinstance(store, Store):
        return store.kind
    return without_secrets(store)


def _collection(model: str, geometry: Geometry, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{model}\0{geometry!r}\0{len(texts)}".encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return f"equipoise-{digest.hexdigest()[:24]}"


def _require_empty(store: Store, dims: int, geometry: Geometry) -> None:
    if store.dims != dims:
        raise ParameterError(
            f"{store.named} cannot take the model's vectors, which have {dims}",
            hint=f"open the store with dims={dims}",
        )
    if store.geometry != geometry.name:
        raise ParameterError(
            f"{store.named} compares by {store.geometry}, and the system by {geometry.name}",
            hint=f"open the store with geometry={geometry.name!r}",
        )
    if count := store.count():
        raise ParameterError(
            f"{store.named} holds {count:,} vectors already",
            hint="give an empty collection, or a spec: a system then makes one of its own",
        )


def _filled(row: Ints, documents: int) -> Ints:
    """The row with its ends taken by the first documents that are not in it."""
    held = row[row >= 0]
    others = np.setdiff1d(np.arange(min(documents, 2 * len(row))), held)
    return np.concatenate([held, others])[: len(row)]
