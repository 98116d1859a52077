"""Dense retrieval: an embedder with a geometry, searched exactly or through a vector store, with an in-memory cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from equipoise.errors import ParameterError
from equipoise.evidence.ranking_from_vectors import ranking_from_shards
from equipoise.geometry.search import Neighbors, nearest_neighbors, score_blocks
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import Shards, open_shards
from equipoise.geometry.spaces import Cosine
from equipoise.geometry.spaces import geometry as geometry_of
from equipoise.io.atomic import write_array
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.embedder import DeferredEncoder, Embedder, EmbedResult, EmbedStats
from equipoise.models.encode_texts import Progress, TruncationCounter, check_texts, unique_texts
from equipoise.models.encoder import ModelCard, Role, Vectors
from equipoise.models.registry import ModelSpec, parse_spec
from equipoise.models.retriever import Blocks, FittedRetriever, Retriever, ScoreScale, content_fingerprint
from equipoise.models.stores import open_store
from equipoise.models.stores.base import Block, VectorStore, ingest, without_secrets
from equipoise.models.stores.recall import IndexRecall, index_recall
from equipoise.models.worker_pool import embed_parts
from equipoise.types import Ints

if TYPE_CHECKING:
    from equipoise.evidence.ranking import Ranking
    from equipoise.geometry.base import Geometry
    from equipoise.models.worker_pool import ExecutorMap


def dense_retriever(
    system: object,
    *,
    geometry: Any = None,
    store: str | VectorStore | None = None,
    cache: Any = None,
    threads: int = 1,
    **options: object,
) -> DenseRetriever:
    """A retriever from any argument of ``embedder``; ``geometry`` and ``store`` may be options of the spec."""
    from equipoise.models.embedder import embedder

    if isinstance(system, Embedder):
        if options:
            raise ParameterError(
                f"{system.card.spec} exists already and takes no options",
                hint="give the options with a spec",
            )
        return DenseRetriever(system, geometry or "cosine", store=store, threads=threads)
    if isinstance(system, str | ModelSpec):
        spec = parse_spec(system) if isinstance(system, str) else system
        geometry = geometry or spec.options.get("geometry")
        store = store if store is not None else spec.options.get("store")
        model_options = {name: value for name, value in spec.options.items() if name not in ("geometry", "store")}
        # What was typed may hold the password of a store.
        system = ModelSpec(spec.kind, spec.name, model_options, "" if "store" in spec.options else spec.text)
    model = embedder(system, cache=cache, threads=threads, **options)
    return DenseRetriever(model, geometry or "cosine", store=store, threads=threads)


class DenseRetriever(Retriever):
    """An embedder and a geometry; search is exact, unless a store is named whose index is not."""

    def __init__(
        self,
        embedder: Embedder,
        geometry: str | Geometry = "cosine",
        *,
        store: str | VectorStore | None = None,
        threads: int = 1,
    ) -> None:
        self.embedder = embedder
        self.geometry = geometry_of(geometry)
        # Cosines can be added to others; other surrogates only order.
        self.scale = ScoreScale.COSINE if isinstance(self.geometry, Cosine) else ScoreScale.ORDER
        self.store = store
        self._threads = threads
        self.map_function: ExecutorMap | None = None
        """Embeds documents on an executor, such as a cluster."""
        self.shard_folder: Path | None = None
        """Where the vectors of a large corpus are kept; a temporary folder by default."""

    @property
    def card(self) -> ModelCard:
        """The model's card; the spec names the geometry where it is not the cosine, and the store."""
        card = self.embedder.card
        further = "" if isinstance(self.geometry, Cosine) else f",geometry={self.geometry.name}"
        if self.store is not None:
            further += f",store={self._store_name()}"
        return replace(card, spec=f"{card.spec}{further}")

    @property
    def fingerprint(self) -> str:
        """The model's own with the geometry, and with the store, whose index may miss documents."""
        store = () if self.store is None else (f"store {self._store_name()}",)
        return content_fingerprint("dense 1", self.embedder.fingerprint, repr(self.geometry), *store)

    def fit(self, documents: Iterable[str]) -> FittedDenseRetriever | FittedShards:
        """Embed the documents, and add them to the store if there is one."""
        texts = check_nonempty_texts(documents, "documents")
        if self.store is None and len(texts) >= SHARDED_TEXTS:
            return self._fit_shards(texts)
        indexed = None if self.store is None else self._opened(self.store, texts)
        vectors = self.embedder.embed_report(texts, Role.DOCUMENT, map_function=self.map_function).vectors
        if indexed is not None:
            indexed.fill(vectors, texts)
        return FittedDenseRetriever(self.embedder, vectors, self.geometry, self._threads, indexed)

    def _fit_shards(self, texts: Sequence[str]) -> FittedShards:
        parent = self.shard_folder or Path(mkdtemp(prefix="equipoise-shards-"))
        folder = parent / _collection(self.embedder.fingerprint, None, texts)
        shards = embed_shards(self.embedder, texts, folder, self.map_function)
        fitted = FittedShards(self.embedder, shards, self.geometry, self._threads)
        if self.shard_folder is None:
            finalize(fitted, rmtree, parent, ignore_errors=True)
        return fitted

    def _opened(self, store: str | VectorStore, texts: Sequence[str]) -> StoreIndex:
        model = self.embedder
        return StoreIndex.open(store, texts, dims=model.dims, geometry=self.geometry, model=model.fingerprint)

    def _store_name(self) -> str:
        return "" if self.store is None else store_label(self.store)


class FittedDenseRetriever(FittedRetriever):
    """The vectors of the documents.

    ``indexed`` is the store that ``search`` uses, if one was named. ``score_blocks`` and full-depth ranks are always
    exact. ``index_recall`` is the recall of an approximate index, measured at the first search on up to 200 of its
    queries; None before that, and for exact search.
    """

    def __init__(
        self,
        embedder: Embedder,
        vectors: Vectors,
        geometry: Geometry,
        threads: int,
        indexed: StoreIndex | None = None,
    ) -> None:
        self.indexed = indexed
        self.documents = len(vectors)
        self.vectors = vectors
        self._embedder, self._geometry, self._threads = embedder, geometry, threads

    def search(self, queries: Iterable[str], k: int) -> Neighbors:
        """By tiles of the matrix product, without a full row of scores; or by the store."""
        vectors = self._embedder.embed(self.require(queries, k), role=Role.QUERY)
        if self.indexed is not None:
            if self.index_recall is None:
                self.index_recall = self.indexed.recall(vectors, self.vectors, k, self._geometry, self._threads)
            return self.indexed.search(vectors, k)
        return nearest_neighbors(vectors, self.vectors, k, geometry=self._geometry, threads=self._threads)

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """All scores, from the geometry's own blocks: exact with any store."""
        vectors = self._embedder.embed(queries, role=Role.QUERY)
        row_bytes = self.documents * np.result_type(vectors, self.vectors).itemsize
        return score_blocks(vectors, self.vectors, self._geometry, block_bytes=rows * row_bytes)

    def close(self) -> None:
        """Close the store; data on a disk or a server stays."""
        if self.indexed is not None:
            self.indexed.store.close()


# A large corpus: embedded one shard of texts at a time, here or on an executor; the vectors are files.

SHARDED_TEXTS = 200_000
"""From this number of documents on, a corpus is kept in files, not in memory."""

SHARD_TEXTS = 8192
"""Texts of a shard: what one job embeds, and what a killed run has to repeat."""


def embed_shards(
    model: Embedder, texts: Sequence[str], folder: Path, map_function: ExecutorMap | None = None
) -> Shards:
    """Embed documents into ``folder``, one file per shard; existing shards are not embedded again.

    The vector cache is not used: the files are the cache, and writing it takes longer than a static model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number:06}.npy" for number in range(-(-len(texts) // SHARD_TEXTS))]
    missing = [number for number, file in enumerate(files) if not file.exists()]
    parts = [texts[number * SHARD_TEXTS : (number + 1) * SHARD_TEXTS] for number in missing]
    for index, vectors in embed_parts(model, parts, map_function):
        write_array(files[missing[index]], vectors)
    return open_shards(files)


class FittedShards(FittedRetriever):
    """The vectors of the documents in files; search and ranks read them a window at a time."""

    def __init__(self, embedder: Embedder, shards: Shards, geometry: Geometry, threads: int) -> None:
        self.shards, self.documents = shards, len(shards)
        self._embedder, self._geometry, self._threads = embedder, geometry, threads

    def search(self, queries: Iterable[str], k: int) -> Neighbors:
        """The best k of all shards; exact."""
        vectors = self._embedder.embed(self.require(queries, k), role=Role.QUERY)
        return nearest_in_shards(vectors, self.shards, k, geometry=self._geometry, threads=self._threads)

    def ranking(self, queries: Sequence[str], relevant: Any, gains: Any, unit_ids: Sequence[str]) -> Ranking:
        """The ranks of the relevant documents; every shard is read once for all queries."""
        return ranking_from_shards(
            self._embedder.embed(queries, role=Role.QUERY),
            self.shards,
            relevant,
            gains=gains,
            unit_ids=unit_ids,
            geometry=self._geometry,
            threads=self._threads,
        )

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """All scores of some queries, for fusions with other systems."""
        vectors = self._embedder.embed(queries, role=Role.QUERY)
        for start in range(0, len(vectors), rows):
            block = np.empty((len(vectors[start : start + rows]), self.documents), dtype=np.float32)
            for first, window in (window for shard in self.shards.parts for window in shard.windows()):
                for part, scores in score_blocks(vectors[start : start + rows], window, self._geometry):
                    block[part, first : first + len(window)] = scores
            yield slice(start, start + len(block)), block


# Documents in a vector store, and the recall of its index.

RECALL_QUERIES = 200
"""Number of evenly spaced queries that estimate the recall of an index to about a percent."""

_REFILL_HINT = "delete that collection: the same command creates and fills it again"


class StoreIndex:
    """The vectors of some documents in a store; row i of the vectors is document i.

    >>> from equipoise.geometry.spaces import geometry
    >>> texts, vectors = ["a", "b", "c"], np.eye(3, dtype=np.float32)
    >>> indexed = StoreIndex.open("memory", texts, dims=3, geometry=geometry("dot"), model="")
    >>> indexed.fill(vectors, texts)
    >>> indexed.search(vectors[:1], 2).indices.tolist()
    [[0, 1]]
    """

    def __init__(self, store: VectorStore, documents: int) -> None:
        self.store = store
        self.sent = 0
        """The number of documents that the last ``fill`` has sent."""
        # Stores settle ties by id: with leading zeros that is the order of the documents.
        digits = len(str(documents - 1))
        self.ids = [f"{row:0{digits}}" for row in range(documents)]

    @classmethod
    def open(
        cls, store: str | VectorStore, texts: Sequence[str], *, dims: int, geometry: Geometry, model: str
    ) -> StoreIndex:
        """An empty store as it is; for a spec, a collection named after model, geometry and documents.

        It is opened before the documents are embedded, so that a wrong name is reported at once.
        """
        if isinstance(store, VectorStore):
            _require_empty(store, dims, geometry)
            return cls(store, len(texts))
        name = _collection(model, geometry, texts)
        return cls(open_store(store, collection=name, dims=dims, geometry=geometry.name), len(texts))

    def fill(self, vectors: Vectors, texts: Sequence[str], watch: Callable[[int], None] | None = None) -> None:
        """Add the documents that the store does not have yet; ``watch`` is called with the number of stored ones."""

        def blocks(start: int, size: int) -> Iterator[Block]:
            for first in range(start, len(texts), size):
                part = slice(first, first + size)
                yield first, self.ids[part], vectors[part], texts[part]

        self.sent = ingest(self.store, len(texts), blocks, watch, hint=_REFILL_HINT)

    def search(self, queries: Vectors, k: int) -> Neighbors:
        """The hits of the store as rows of documents.

        If the index returns fewer than k, the row is filled with other documents in their order, with the score minus
        infinity.
        """
        hits = self.store.search(queries, k)
        rows = np.full(hits.ids.shape, -1, dtype=np.int64)
        is_hit = hits.ids != None  # noqa: E711  (an array of objects, compared one by one)
        rows[is_hit] = [int(name) for name in hits.ids[is_hit]]
        for row in np.flatnonzero(~is_hit.all(axis=1)):
            rows[row] = _fill_hits(rows[row], len(self.ids))
        return Neighbors(rows, hits.scores)

    def recall(
        self, queries: Vectors, vectors: Vectors, k: int, geometry: Geometry, threads: int
    ) -> IndexRecall | None:
        """Recall@k against exact search, on up to 200 of the queries; None where the store is exact."""
        if self.store.exact:
            return None
        sample = queries[np.unique(np.linspace(0, len(queries) - 1, RECALL_QUERIES).astype(np.int64))]
        exact = nearest_neighbors(sample, vectors, k, geometry=geometry, threads=threads)
        return index_recall(self.store, sample, exact, k, ids=self.ids, corpus=vectors)


def store_label(store: str | VectorStore) -> str:
    """A store as a card names it: the spec without a password, the kind of an object.

    >>> store_label("pgvector:postgresql://me:secret@host/db?sslmode=require")
    'pgvector:postgresql://me@host/db'
    """
    if isinstance(store, VectorStore):
        return store.kind
    return without_secrets(store)


def _collection(model: str, geometry: Geometry | None, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{model}\0{geometry!r}\0{len(texts)}".encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return f"equipoise-{digest.hexdigest()[:24]}"


def _require_empty(store: VectorStore, dims: int, geometry: Geometry) -> None:
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


def _fill_hits(row: Ints, documents: int) -> Ints:
    """The row with its ends taken by the first documents that are not in it."""
    hits = row[row >= 0]
    others = np.setdiff1d(np.arange(min(documents, 2 * len(row))), hits)
    return np.concatenate([hits, others])[: len(row)]


# An in-memory cache around an embedder, so that a grid search embeds every text once.


class MemoisedEmbedder(Embedder):
    """An embedder that encodes each text of a role once."""

    def __init__(self, model: Embedder) -> None:
        super().__init__(model.encoder, model.spec, cache=model.cache)
        self._rows: dict[Role, dict[str, Vectors]] = {role: {} for role in Role}
        self.cached = 0
        """The number of texts in the cache of an earlier run."""

    def embed_report(
        self,
        texts: Iterable[str],
        role: Role | str = Role.DOCUMENT,
        *,
        progress: Progress | None = None,
        map_function: ExecutorMap | None = None,
    ) -> EmbedResult:
        """The vectors, from memory if they were embedded before; the report covers this call."""
        start = perf_counter()
        text_list = check_texts(texts)
        rows = self._rows[Role(role)]
        new = [text for text in dict.fromkeys(text_list) if text not in rows]
        if new:
            new_report = super().embed_report(new, role, progress=progress, map_function=map_function)
            rows.update(zip(new, new_report.vectors, strict=True))
            self.cached += new_report.report.from_cache
        report = EmbedStats(
            texts=len(text_list),
            distinct=len(set(text_list)),
            from_cache=len(set(text_list)) - (new_report.report.embedded if new else 0),
            embedded=new_report.report.embedded if new else 0,
            truncated=None,
            tokens=new_report.report.tokens if new else 0,
            lost_tokens=None,
            seconds=perf_counter() - start,
        )
        return EmbedResult(np.array([rows[text] for text in text_list]), report)


def memoise_retriever(system: Retriever) -> Retriever:
    """A copy of the system whose models embed each text once."""
    if isinstance(system, DenseRetriever):
        dense = copy(system)
        dense.embedder = MemoisedEmbedder(system.embedder)
        return dense
    parts = getattr(system, "parts", None)
    if parts is None:
        return system
    fusion: Any = copy(system)
    fusion.parts = tuple(memoise_retriever(part) for part in parts)
    return fusion


def dense_parts(system: Retriever) -> list[DenseRetriever]:
    """The dense systems in a system: itself, those of a fusion or below a reranker, or none."""
    if isinstance(system, DenseRetriever):
        return [system]
    parts = getattr(system, "parts", None) or [part for part in [getattr(system, "base", None)] if part is not None]
    return [dense for part in parts for dense in dense_parts(part)]


def dense_models(system: Retriever) -> list[Embedder]:
    """The models that embed in a system: one, several in a fusion, or none."""
    return [dense.embedder for dense in dense_parts(system)]


def n_cached_texts(system: Retriever) -> int:
    """The number of texts that a memoised system took from the cache of an earlier run."""
    return sum(model.cached for model in dense_models(system) if isinstance(model, MemoisedEmbedder))


@dataclass(frozen=True, slots=True)
class Truncation:
    """The number of texts that a model truncates, and of the tokens that it ignores; None is unknown."""

    texts: int
    truncated: int | None
    lost_tokens: int | None

    @property
    def share(self) -> float | None:
        """The share of the texts."""
        return None if self.truncated is None else self.truncated / self.texts


def measure_truncation(model: Embedder, texts: Sequence[str]) -> Truncation:
    """The truncation of texts that are embedded as documents; cached token counts are used."""
    encoder = model.encoder
    if encoder.card.max_tokens is None:
        # All packaged models count tokens, so that they need not be loaded here.
        counts_tokens = isinstance(encoder, DeferredEncoder) or encoder.token_counts(["word"]) is not None
        return Truncation(len(texts), 0, 0) if counts_tokens else Truncation(len(texts), None, None)
    counter = TruncationCounter(encoder, model.cache, model.variant(Role.DOCUMENT), model.prompts[Role.DOCUMENT])
    unique = unique_texts(texts)
    counter.note_cached(unique.texts, np.arange(len(unique.texts)))
    truncated_tokens = counter.lost(unique)
    if truncated_tokens is None:
        return Truncation(len(texts), None, None)
    return Truncation(len(texts), int((truncated_tokens > 0).sum()), int(truncated_tokens.sum()))


def worst_truncation(system: Retriever, texts: Sequence[str]) -> Truncation | None:
    """The truncation by the model that truncates most, where unknown exceeds none; None if nothing is embedded."""
    truncations = [measure_truncation(model, texts) for model in dense_models(system)]
    return max(truncations, key=lambda item: 0.0 if item.share is None else item.share or -1.0, default=None)
