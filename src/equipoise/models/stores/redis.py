"""Redis 8 or newer: vectors in a vector set of a server. A password may be in REDIS_PASSWORD; it is never printed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from equipoise.errors import ParameterError, StoreError
from equipoise.models.stores.base import (
    CollectionSchema,
    SearchResult,
    VectorStore,
    batches,
    first_line,
    pad_hits,
    resolve_schema,
    without_secrets,
)
from equipoise.redaction import note_secret
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

REGISTRY = "equipoise:collections"
"""The hash with the dimensions and the geometry of every collection: Redis removes a vector set that becomes empty."""
PREFIX = "equipoise:vectors:"
BATCH = 500
"""Commands per request."""


class RedisStore(VectorStore):
    """A vector set in float32; ``approximate=True`` searches its graph instead of every vector.

    A vector set compares by the cosine only.
    """

    kind = "redis"
    geometries = ("cosine",)

    def __init__(
        self,
        collection: str,
        shape: CollectionSchema,
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
                f"{without_secrets(url)!r} is not the address of a Redis server", hint="write redis://localhost:6379"
            )
        engine = require_extra("redis", extra="redis")
        location = without_secrets(url)
        password = os.environ.get("REDIS_PASSWORD")
        note_secret(password)
        with _translate_errors(location):
            client = engine.Redis.from_url(url, socket_timeout=timeout, **({"password": password} if password else {}))
            client.execute_command("VCARD", PREFIX + collection)  # fails where the server has no vector sets
            schemas = {
                name.decode(): CollectionSchema(**json.loads(shape)) for name, shape in client.hgetall(REGISTRY).items()
            }
            shape, is_new = resolve_schema(collection, schemas, dims, geometry, location)
            if is_new:
                client.hset(REGISTRY, collection, json.dumps({"dims": shape.dims, "geometry": shape.geometry}))
        return cls(collection, shape, client, location, approximate=approximate, ef_search=ef_search)

    def _count(self) -> int:
        with _translate_errors(self._place):
            return int(self._client.execute_command("VCARD", self._key))

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        rows = vectors.astype("<f4")
        self._send(
            [
                ("VADD", self._key, "FP32", row.tobytes(), name, "NOQUANT", "SETATTR", json.dumps({"text": text}))
                for name, row, text in zip(ids, rows, texts, strict=True)
            ]
        )

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        depth = ("EF", max(self._ef_search, k)) if not self.exact else ("TRUTH",)
        replies = self._send(
            [
                ("VSIM", self._key, "FP32", row.tobytes(), "WITHSCORES", "COUNT", k, *depth)
                for row in queries.astype("<f4")
            ]
        )
        # Redis returns the cosine mapped to [0, 1].
        return pad_hits([[(name.decode(), 2.0 * score - 1.0) for name, score in reply.items()] for reply in replies], k)

    def _delete(self, ids: list[str]) -> int:
        return sum(map(int, self._send([("VREM", self._key, name) for name in ids])))

    def _texts(self, ids: list[str]) -> list[str | None]:
        replies = self._send([("VGETATTR", self._key, name) for name in ids])
        return [None if reply is None else json.loads(reply)["text"] for reply in replies]

    def _vectors(self, ids: list[str]) -> dict[str, Any]:
        replies = self._send([("VEMB", self._key, name) for name in ids])
        return {name: np.array(reply) for name, reply in zip(ids, replies, strict=True) if reply is not None}

    def _send(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """The replies to commands, in batches; each batch is executed as a whole."""
        replies: list[Any] = []
        with _translate_errors(self._place):
            for part in batches(len(commands), BATCH):
                pipeline = self._client.pipeline(transaction=True)
                for command in commands[part]:
                    pipeline.execute_command(*command)
                replies += pipeline.execute()
        return replies


@contextmanager
def _translate_errors(location: str) -> Iterator[None]:
    """Raise errors of the client as ``StoreError``."""
    errors = require_extra("redis.exceptions", extra="redis")
    try:
        yield
    except (errors.ConnectionError, errors.TimeoutError) as error:
        raise StoreError(
            f"the Redis server at {location} does not answer: {first_line(error)}",
            hint="check that it runs, and its address",
        ) from None
    except errors.RedisError as error:
        message = first_line(error)
        is_old = "unknown command" in message.lower()
        raise StoreError(
            f"the Redis server at {location} returned an error: {message}",
            hint="vector sets need Redis 8 or newer" if is_old else "check the password in REDIS_PASSWORD",
        ) from None
