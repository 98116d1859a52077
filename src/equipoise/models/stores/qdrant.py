"""Qdrant: vectors on a server, by URL. The API key is read from QDRANT_API_KEY and never printed."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID, uuid5

from equipoise.errors import ParameterError
from equipoise.models.stores import base
from equipoise.redaction import note_secret
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

IN_MEMORY = ":memory:"
"""The client's local mode: for experiments only, much slower than a server."""

_NAMES = UUID("6d7b1a1e-52f0-4c6e-9a8f-0d7c2f6f5b11")


class QdrantStore(base.VectorStore):
    """A collection of a Qdrant server; ``approximate=True`` searches its graph instead of every vector.

    The server accepts only integers and UUIDs as ids, so each id is stored with a UUID derived from it.
    """

    kind = "qdrant"
    name_rule = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,47}")
    name_words = "1 to 48 letters, digits, dots, hyphens or underscores"
    batch = 256

    def __init__(
        self, collection: str, shape: base.CollectionSchema, client: Any, location: str, *, approximate: bool = False
    ) -> None:
        super().__init__(collection, shape.dims, shape.geometry, client, location, exact=not approximate)
        self._models: Any = require_extra("qdrant_client.models", extra="qdrant")

    @classmethod
    def open(
        cls,
        url: str,
        collection: str,
        dims: int | None,
        geometry: str,
        *,
        approximate: bool = False,
        timeout: int = 60,
    ) -> Self:
        """Connect, and open a collection or create it."""
        if url != IN_MEMORY and not url.startswith(("http://", "https://")):
            raise ParameterError(
                f"{url!r} is not the address of a Qdrant server", hint="write qdrant:http://localhost:6333"
            )
        engine = require_extra("qdrant_client", extra="qdrant")
        key = os.environ.get("QDRANT_API_KEY") or None
        note_secret(key)
        with cls._translate_errors(url):
            client = (
                engine.QdrantClient(IN_MEMORY)
                if url == IN_MEMORY
                else engine.QdrantClient(url=url, api_key=key, timeout=timeout, check_compatibility=False)
            )
            shape = _schema(client, collection, dims, geometry, url)
        return cls(collection, shape, client, url, approximate=approximate)

    def _count(self) -> int:
        return int(self._client.count(self.collection, exact=True).count)

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        points = self._models.Batch(
            ids=[_uuid(name) for name in ids],
            vectors=vectors.tolist(),
            payloads=[{"id": name, "text": text} for name, text in zip(ids, texts, strict=True)],
        )
        self._client.upsert(self.collection, points=points, wait=True)

    def _search(self, queries: Vectors, k: int) -> base.SearchResult:
        # The local mode always compares with every vector, and warns if an exact search is requested.
        depth = None if self._place == IN_MEMORY else self._models.SearchParams(exact=self.exact)
        requests = [
            self._models.QueryRequest(query=row, limit=k, params=depth, with_payload=["id"]) for row in queries.tolist()
        ]
        answers = self._client.query_batch_points(self.collection, requests=requests)
        return base.pad_hits(
            [[(hit.payload["id"], self._similarity(hit.score)) for hit in answer.points] for answer in answers], k
        )

    def _delete(self, ids: list[str]) -> int:
        points = sorted({_uuid(name) for name in ids})
        existing = self._client.retrieve(self.collection, ids=points, with_payload=False)
        self._client.delete(self.collection, points_selector=self._models.PointIdsList(points=points), wait=True)
        return len(existing)

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        points = self._client.retrieve(
            self.collection, ids=[_uuid(item) for item in ids], with_payload=True, with_vectors=name == "vector"
        )
        return {point.payload["id"]: point.vector if name == "vector" else point.payload["text"] for point in points}

    def _similarity(self, score: float) -> float:
        """The similarity from the distance, or from the inner product."""
        return -score * score if self.geometry == "euclidean" else score

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        errors = require_extra("qdrant_client.http.exceptions", extra="qdrant")
        return base.translate_server_errors(
            f"the Qdrant server at {location}",
            (errors.ResponseHandlingException,),
            (errors.UnexpectedResponse, ValueError),
            hint="check the key in QDRANT_API_KEY",
        )


def _schema(client: Any, collection: str, dims: int | None, geometry: str, location: str) -> base.CollectionSchema:
    models = require_extra("qdrant_client.models", extra="qdrant")
    schemas = {entry.name: base.CollectionSchema.of_metadata({}) for entry in client.get_collections().collections}
    if collection in schemas:
        metadata = client.get_collection(collection).config.metadata
        schemas[collection] = base.CollectionSchema.of_metadata(metadata)
    shape, is_new = base.resolve_schema(collection, schemas, dims, geometry, location)
    if is_new:
        distance = models.Distance.EUCLID if shape.geometry == "euclidean" else models.Distance.DOT
        client.create_collection(
            collection,
            vectors_config=models.VectorParams(size=shape.dims, distance=distance),
            metadata={"dims": shape.dims, "geometry": shape.geometry},
        )
    return shape


def _uuid(name: str) -> str:
    return str(uuid5(_NAMES, name))
