"""A store of several collections in memory, with the calls that users of embedding-eval know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.embed.stores.base import checked_settings
from equipoise.embed.stores.memory import Memory
from equipoise.errors import DuplicateError, UnknownNameError


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One vector that was found."""

    id: str
    score: float
    text: str | None = None


class InMemoryVectorStore:
    """Collections of vectors by name, searched exactly; no server and no further package.

    >>> store = InMemoryVectorStore()
    >>> store.connect()
    >>> store.create_collection("test", dimensions=2)
    >>> store.upsert("test", ["a", "b"], [[1.0, 0.0], [0.0, 1.0]], texts=["east", "north"])
    >>> store.search("test", [0.1, 0.9], top_k=1)[0].text
    'north'
    """

    def __init__(self) -> None:
        self._collections: dict[str, Memory] = {}

    def connect(self) -> None:
        """Nothing: there is no server. It stands here for code that changes between stores."""

    def create_collection(self, name: str, dimensions: int, geometry: str = "cosine") -> None:
        """An empty collection under a new name."""
        dims, space = checked_settings(Memory, name, dimensions, geometry)
        if name in self._collections:
            raise DuplicateError(
                f"there is a collection {name!r} already", hint="choose another name, or upsert into this one"
            )
        self._collections[name] = Memory(name, int(dims or 0), space)

    def upsert(
        self, name: str, ids: Sequence[str], embeddings: ArrayLike, texts: Sequence[str] | None = None
    ) -> None:
        """Put vectors under ids; those that are there already are replaced."""
        self._collection(name).add(ids, embeddings, texts)

    def search(self, name: str, query_embedding: ArrayLike, top_k: int = 10) -> list[SearchResult]:
        """The nearest vectors of one query, best first, with their texts."""
        collection = self._collection(name)
        found = collection.search(np.asarray(query_embedding)[None, ...], top_k).pairs(0)
        texts = collection.texts([name for name, _ in found])
        return [SearchResult(name, score, text) for (name, score), text in zip(found, texts, strict=True)]

    def delete(self, name: str, ids: Sequence[str]) -> int:
        """Remove vectors by id; the number of those that were there."""
        return self._collection(name).delete(ids)

    def count(self, name: str) -> int:
        """The number of vectors of a collection."""
        return self._collection(name).count()

    def close(self) -> None:
        """Forget everything."""
        self._collections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _collection(self, name: str) -> Memory:
        if name not in self._collections:
            raise UnknownNameError.of(
                "collection",
                name,
                self._collections,
                more="create_collection(name, dimensions=...) makes one",
            )
        return self._collections[name]
