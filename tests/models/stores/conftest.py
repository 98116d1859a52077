"""A real PostgreSQL with pgvector and a real Redis, started once for all tests, and every store that is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from equipoise.models.stores import open_store
from equipoise.models.stores.base import VectorStore
from marked import marked
from postgres_server import started

NUMBERS = count(1)


@pytest.fixture(scope="session")
@marked(pytest.mark.slow)
def postgres() -> Iterator[str]:
    """The address of a temporary server."""
    with started() as address:
        yield address


@pytest.fixture(scope="session")
@marked(pytest.mark.slow, pytest.mark.engines("redis"))
def redis_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with vector sets, stopped at the end; `make redis` builds the program."""
    redis = pytest.importorskip("redis")
    search_path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("redis-server", path=search_path)
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = free_socket.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    settings = ["--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    with subprocess.Popen([program, *settings], cwd=folder, stdout=subprocess.DEVNULL) as server:
        try:
            with redis.Redis(port=port) as client:
                while not _answers(client, redis):
                    assert server.poll() is None
                    time.sleep(0.02)
                if int(client.info("server")["redis_version"].split(".")[0]) < 8:
                    pytest.skip("redis-server is older than version 8, without vector sets")
            yield f"redis://127.0.0.1:{port}"
        finally:
            server.terminate()


def _answers(client: Any, redis: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False


@dataclass
class Opener:
    """Opens collections of one kind of store, and records them in ``opened``."""

    spec: str
    options: dict[str, Any] = field(default_factory=dict)
    opened: list[VectorStore] = field(default_factory=list)

    def __call__(self, dims: int, geometry: str = "cosine", collection: str | None = None) -> VectorStore:
        name = collection or f"test-{os.getpid()}-{next(NUMBERS)}"
        if self.spec.startswith("redis:") and geometry != "cosine":
            pytest.skip("a vector set of Redis has the cosine only")
        store = open_store(self.spec, collection=name, dims=dims, geometry=geometry, **self.options)
        self.opened.append(store)
        return store

    def reopen(self, collection: str, **settings: Any) -> VectorStore:
        """Open an existing collection, as another program would."""
        store = open_store(self.spec, collection=collection, **settings)
        self.opened.append(store)
        return store


ENGINES = {
    "memory": (),
    "faiss": (),
    "faiss-hnsw": (),
    "chroma": pytest.mark.engines("chromadb"),
    "pgvector": pytest.mark.slow,
    "pgvector-hnsw": pytest.mark.slow,
    "pgvector-ivfflat": pytest.mark.slow,
    "qdrant-local": pytest.mark.engines("qdrant_client"),
    "qdrant-server": pytest.mark.engines("qdrant_client"),
    "lancedb": pytest.mark.engines("lancedb"),
    "duckdb": pytest.mark.engines("duckdb"),
    "duckdb-hnsw": pytest.mark.engines("duckdb", "duckdb_extension_vss"),
    "milvus": [pytest.mark.slow, pytest.mark.engines("pymilvus", "milvus_lite")],
    "redis": [pytest.mark.slow, pytest.mark.engines("redis")],
    "redis-approximate": [pytest.mark.slow, pytest.mark.engines("redis")],
}
"""Every kind of store, with the markers of the tests that use it."""
PERSISTENT = ("chroma", "pgvector", "qdrant-server", "lancedb", "duckdb", "milvus", "redis")


def opener(kind: str, folder: Path, fixture: Callable[[str], Any]) -> Opener:
    """How to open one of ``ENGINES``."""
    engine, _, variant = kind.partition("-")
    if engine == "pgvector":
        return Opener(f"pgvector:{fixture('postgres')}", {"index": variant} if variant else {})
    if kind == "qdrant-server":
        if not os.environ.get("EQUIPOISE_TEST_QDRANT"):
            pytest.skip("EQUIPOISE_TEST_QDRANT names no server")
        return Opener(f"qdrant:{os.environ['EQUIPOISE_TEST_QDRANT']}")
    if engine == "redis":
        return Opener(fixture("redis_address"), {"approximate": True} if variant else {})
    if engine == "duckdb":
        return Opener(f"duckdb:{folder / 'vectors.duckdb'}", {"index": variant} if variant else {})
    specs = {
        "chroma": f"chroma:{folder / 'chroma'}",
        "lancedb": f"lancedb:{folder / 'lance'}",
        "milvus": f"milvus:{folder / 'vectors.db'}",
        "qdrant-local": "qdrant::memory:",
        "faiss-hnsw": "faiss:hnsw",
    }
    return Opener(specs.get(kind, kind))


@pytest.fixture(params=[pytest.param(kind, marks=marks) for kind, marks in ENGINES.items()])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """An opener of every kind of store."""
    store_opener = opener(request.param, tmp_path, request.getfixturevalue)
    yield store_opener
    for store in store_opener.opened:
        store.close()


@pytest.fixture(params=[pytest.param(kind, marks=ENGINES[kind]) for kind in PERSISTENT])
def make_persistent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """An opener of every kind of persistent store."""
    store_opener = opener(request.param, tmp_path, request.getfixturevalue)
    yield store_opener
    for store in store_opener.opened:
        store.close()
