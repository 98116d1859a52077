"""Redis 8 or newer: vectors in a vector set of a server. A password may be in REDIS_PASSWORD; it is never printed."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from equipoise.errors import ParameterError
from equipoise.models.stores import base
from equipoise.redaction import note_secret
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

REGISTRY = "equipoise:collections"
"""The hash with the dimensions and the geometry of every collection: Redis removes a vector set that becomes empty."""
PREFIX = "equipoise:vectors:"


class RedisStore(base.VectorStore):
    """A vector set in float32; ``approximate=True`` searches its graph instead of every vector.

    A vector set compares by the cosine only.
    """

    kind = "redis"
    geometries = ("cosine",)
    batch = 500

    def __init__(
        self,
        collection: str,
        shape: base.CollectionSchema,
        client: Any,
        location: str,
        *,
        approximate: bool = False,
        ef_search: int = 100,
    ) -> None:
        super().__init__(collection, shape.dims, shape.geometry, client, location, exact=not approximate)
        self._ef_search = ef_search
        self._key = PREFIX + collection

    @classmethod
    def open(
        cls,
        url: str,
        collection: str,
        dims: int | None,
        geometry: str,
        *,
        approximate: bool = False,
        ef_search: int = 100,
        timeout: int = 60,
    ) -> Self:
        """Connect, and open a collection or create it."""
        if not url.startswith(("redis://", "rediss://", "unix://")):
            raise ParameterError(
                f"{base.without_secrets(url)!r} is not the address of a Redis server",
                hint="write redis://localhost:6379",
            )
        engine = require_extra("redis", extra="redis")
        location = base.without_secrets(url)
        password = os.environ.get("REDIS_PASSWORD")
        note_secret(password)
        with cls._translate_errors(location):
            client = engine.Redis.from_url(url, socket_timeout=timeout, **({"password": password} if password else {}))
            client.execute_command("VCARD", PREFIX + collection)  # fails where the server has no vector sets
            schemas = {
                name.decode(): base.CollectionSchema(**json.loads(shape))
                for name, shape in client.hgetall(REGISTRY).items()
            }
            shape, is_new = base.resolve_schema(collection, schemas, dims, geometry, location)
            if is_new:
                client.hset(REGISTRY, collection, json.dumps({"dims": shape.dims, "geometry": shape.geometry}))
        return cls(collection, shape, client, location, approximate=approximate, ef_search=ef_search)

    def _count(self) -> int:
        return int(self._client.execute_command("VCARD", self._key))

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        rows = vectors.astype("<f4")
        self._send(
            [
                ("VADD", self._key, "FP32", row.tobytes(), name, "NOQUANT", "SETATTR", json.dumps({"text": text}))
                for name, row, text in zip(ids, rows, texts, strict=True)
            ]
        )

    def _search(self, queries: Vectors, k: int) -> base.SearchResult:
        depth = ("EF", max(self._ef_search, k)) if not self.exact else ("TRUTH",)
        replies = self._send(
            [
                ("VSIM", self._key, "FP32", row.tobytes(), "WITHSCORES", "COUNT", k, *depth)
                for row in queries.astype("<f4")
            ]
        )
        # Redis returns the cosine mapped to [0, 1].
        return base.pad_hits(
            [[(name.decode(), 2.0 * score - 1.0) for name, score in reply.items()] for reply in replies], k
        )

    def _delete(self, ids: list[str]) -> int:
        return sum(map(int, self._send([("VREM", self._key, name) for name in ids])))

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        replies = self._send([("VGETATTR" if name == "text" else "VEMB", self._key, item) for item in ids])
        stored = {item: reply for item, reply in zip(ids, replies, strict=True) if reply is not None}
        if name == "vector":
            return stored
        return {item: json.loads(reply)["text"] for item, reply in stored.items()}

    def _send(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """The replies to commands, which are executed as a whole."""
        pipeline = self._client.pipeline(transaction=True)
        for command in commands:
            pipeline.execute_command(*command)
        replies: list[Any] = pipeline.execute()
        return replies

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        errors = require_extra("redis.exceptions", extra="redis")
        return base.translate_server_errors(
            f"the Redis server at {location}",
            (errors.ConnectionError, errors.TimeoutError),
            (errors.RedisError,),
            hint="check the password in REDIS_PASSWORD",
            hints={"unknown command": "vector sets need Redis 8 or newer"},
        )
