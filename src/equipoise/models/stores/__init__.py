"""Vector stores by spec: ``memory``, ``faiss:hnsw``, ``chroma:path``, ``pgvector:postgresql://...``, ``redis://...``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from equipoise.errors import ParameterError, UnknownNameError, check_options
from equipoise.models.stores.base import DEFAULT_COLLECTION, VectorStore, check_collection

_CLASSES: dict[str, tuple[str, str]] = {
    "memory": ("memory", "MemoryStore"),
    "faiss": ("memory", "FaissStore"),
    "chroma": ("chroma", "ChromaStore"),
    "pgvector": ("pgvector", "PgVectorStore"),
    "qdrant": ("qdrant", "QdrantStore"),
    "lancedb": ("lancedb", "LanceDBStore"),
    "duckdb": ("duckdb", "DuckDBStore"),
    "milvus": ("milvus", "MilvusStore"),
    "redis": ("redis", "RedisStore"),
}
_SHORT = {"postgresql": "pgvector", "postgres": "pgvector", "redis": "redis", "rediss": "redis"}

STORE_KINDS = tuple(_CLASSES)

STORE_EXAMPLES = {
    "chroma": "chroma:folder",
    "pgvector": "pgvector:postgresql://user@host/database",
    "qdrant": "qdrant:http://localhost:6333",
    "lancedb": "lancedb:folder",
    "duckdb": "duckdb:vectors.duckdb",
    "milvus": "milvus:vectors.db",
    "redis": "redis://localhost:6379",
}
"""An address for every kind of store that outlives the process."""


def open_store(
    spec: str = "memory",
    *,
    collection: str = DEFAULT_COLLECTION,
    dims: int | None = None,
    geometry: str = "cosine",
    **options: Any,
) -> VectorStore:
    """Open the store that a spec names; without ``dims`` the collection must exist.

    >>> with open_store("memory", dims=2, geometry="dot") as store:
    ...     store.add(["a", "b"], [[1, 0], [0, 2]], texts=["first", "second"])
    ...     store.search([[1, 1]], k=1).pairs(0)
    [('b', 2.0)]
    """
    kind, _, rest = str(spec).strip().partition(":")
    if kind in _SHORT and rest.startswith("//"):
        kind, rest = _SHORT[kind], spec.strip()
    if kind not in _CLASSES:
        raise UnknownNameError.of("store", kind, STORE_KINDS, more=f"known: {', '.join(STORE_KINDS)}")
    module, name = _CLASSES[kind]
    cls: type[VectorStore] = getattr(import_module(f"equipoise.models.stores.{module}"), name)
    dims, geometry = check_collection(cls, collection, dims, geometry)
    opens: Callable[..., VectorStore] | None = getattr(cls, "open", None)
    if opens is not None:
        _check_options(kind, opens, options)
        if not rest:
            raise ParameterError(f"the {kind} store needs to know where it is", hint=f"write {STORE_EXAMPLES[kind]}")
        return opens(rest, collection, dims, geometry, **options)
    if rest and kind == "memory":
        raise ParameterError(f"the memory store takes nothing after the colon, not {rest!r}", hint="write memory")
    if rest:
        options = {"index": rest, **options}
    _check_options(kind, cls, options)
    if dims is None:
        raise ParameterError(
            f"a {kind} store starts empty and needs its dimensions",
            hint="give dims=, as in dims=model.dims",
        )
    return cls(collection, dims, geometry, **options)


def _check_options(kind: str, opens: Callable[..., VectorStore], options: dict[str, Any]) -> None:
    accepted = [
        name
        for name, parameter in inspect.signature(opens).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    check_options(f"the {kind} store", options, accepted)
    for option, value in options.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise ParameterError(f"{option} is {value}; it must be 1 or more")
