"""Chroma: vectors in a folder, searched through a graph."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise.models.stores import base
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors


class ChromaStore(base.VectorStore):
    """A collection of a Chroma database on disk; its search is approximate, see ``recall.index_recall``.

    ``ef_search`` is the size of the candidate list of the graph search, set when the collection is created.
    """

    kind = "chroma"
    name_rule = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,46}[A-Za-z0-9]")
    name_words = "3 to 48 letters, digits, dots, hyphens or underscores, with a letter or digit at both ends"

    def __init__(self, collection: str, shape: base.CollectionSchema, client: Any, location: str) -> None:
        super().__init__(collection, shape.dims, shape.geometry, client, location, exact=False)
        self.batch = int(client.get_max_batch_size())
        self._entries = client.get_collection(collection, embedding_function=None)

    @classmethod
    def open(cls, path: str, collection: str, dims: int | None, geometry: str, *, ef_search: int = 100) -> Self:
        """Open a folder, and a collection in it, or create them."""
        location = str(Path(path).expanduser())
        chromadb = require_extra("chromadb", extra="chroma")
        settings = require_extra("chromadb.config", extra="chroma").Settings(anonymized_telemetry=False)
        with cls._translate_errors(location):
            client = chromadb.PersistentClient(path=location, settings=settings)
            schemas = {
                entry.name: base.CollectionSchema.of_metadata(entry.metadata) for entry in client.list_collections()
            }
            shape, is_new = base.resolve_schema(collection, schemas, dims, geometry, location)
            if is_new:
                client.create_collection(
                    collection,
                    embedding_function=None,
                    metadata={"dims": shape.dims, "geometry": shape.geometry},
                    configuration={
                        "hnsw": {
                            "space": "l2" if shape.geometry == "euclidean" else "ip",
                            "ef_search": ef_search,
                        }
                    },
                )
            return cls(collection, shape, client, location)

    def _count(self) -> int:
        return int(self._entries.count())

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        self._entries.upsert(
            ids=ids,
            embeddings=vectors,
            # Without a document the old one would be kept, so a missing text is an empty one and a flag.
            documents=[text or "" for text in texts],
            metadatas=[{"has_text": text is not None} for text in texts],
        )

    def _search(self, queries: Vectors, k: int) -> base.SearchResult:
        answer = self._entries.query(query_embeddings=queries, n_results=k, include=["distances"])
        lists = zip(answer["ids"], answer["distances"], strict=True)
        return base.pad_hits(
            [
                [(name, self._similarity(distance)) for name, distance in zip(names, distances, strict=True)]
                for names, distances in lists
            ],
            k,
        )

    def _delete(self, ids: list[str]) -> int:
        before = self._count()
        self._entries.delete(ids=ids)
        return before - self._count()

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        if name == "vector":
            answer = self._entries.get(ids=ids, include=["embeddings"])
            return dict(zip(answer["ids"], answer["embeddings"], strict=True))
        answer = self._entries.get(ids=ids, include=["documents", "metadatas"])
        rows = zip(answer["ids"], answer["documents"], answer["metadatas"], strict=True)
        return {item: text for item, text, marks in rows if marks["has_text"]}

    def _similarity(self, distance: float) -> float:
        """The similarity from the squared distance, or from one minus the inner product."""
        return -distance if self.geometry == "euclidean" else 1.0 - distance

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        errors = (require_extra("chromadb.errors", extra="chroma").ChromaError, OSError, ValueError, RuntimeError)
        hint = "check that the folder can be written and was not removed or changed by another version"
        return base.translate_errors(f"the Chroma database at {location}", errors, hint)
