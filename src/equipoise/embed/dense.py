"""A model that embeds, as a retriever: documents and queries become vectors, and a geometry compares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.encoder import Vectors
from equipoise.embed.lexical.words import require_texts
from equipoise.embed.retriever import Blocks, Fitted, Retriever, Scale, fingerprint_of
from equipoise.embed.spec import Spec, parse_spec
from equipoise.errors import ParameterError
from equipoise.geometry import Cosine, Geometry, Neighbours, nearest, score_blocks
from equipoise.geometry import geometry as geometry_of
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.embed.indexed import Indexed
    from equipoise.embed.model import Embedder
    from equipoise.embed.stores import Store


def dense_retriever(
    system: object,
    *,
    geometry: Any = None,
    store: str | Store | None = None,
    cache: Any = None,
    threads: int = 1,
    **options: object,
) -> DenseRetriever:
    """A retriever from whatever ``embedder`` takes; ``geometry`` and ``store`` may be options of the spec."""
    from equipoise.embed.model import Embedder, embedder

    if isinstance(system, Embedder):
        if options:
            raise ParameterError(
                f"{system.card.spec} is made already and takes no options",
                hint="give the options with a spec",
            )
        return DenseRetriever(system, geometry or "cosine", store=store, threads=threads)
    if isinstance(system, str | Spec):
        spec = parse_spec(system) if isinstance(system, str) else system
        geometry = geometry or spec.options.get("geometry")
        store = store if store is not None else spec.options.get("store")
        own = {name: value for name, value in spec.options.items() if name not in ("geometry", "store")}
        # What was typed may hold the password of a store.
        system = Spec(spec.kind, spec.name, own, "" if "store" in spec.options else spec.text)
    model = embedder(system, cache=cache, threads=threads, **options)
    return DenseRetriever(model, geometry or "cosine", store=store, threads=threads)


class DenseRetriever(Retriever):
    """An embedder and a geometry; search is exact, unless a store is named whose index is not."""

    def __init__(
        self,
        embedder: Embedder,
        geometry: str | Geometry = "cosine",
        *,
        store: str | Store | None = None,
        threads: int = 1,
    ) -> None:
        self.embedder = embedder
        self.geometry = geometry_of(geometry)
        self.store = store
        self._threads = threads

    @property
    def card(self) -> Card:
        """The model's card; the spec names the geometry where it is not the cosine, and the store."""
        card = self.embedder.card
        further = "" if isinstance(self.geometry, Cosine) else f",geometry={self.geometry.name}"
        if self.store is not None:
            further += f",store={self._store_name()}"
        return Card(**{**card.to_dict(), "spec": f"{card.spec}{further}"}) if further else card

    @property
    def fingerprint(self) -> str:
        """The model's own with the geometry, and with the store, whose index may miss documents."""
        store = () if self.store is None else (f"store {self._store_name()}",)
        return fingerprint_of("dense 1", self.embedder.fingerprint, repr(self.geometry), *store)

    @property
    def scale(self) -> Scale:
        """Cosines can be added to others; other surrogates only order."""
        return Scale.COSINE if isinstance(self.geometry, Cosine) else Scale.ORDER

    def fit(self, documents: Iterable[str]) -> FittedDense:
        """Embed the documents, and put them into the store where there is one."""
        texts = require_texts(documents, "documents")
        indexed = None if self.store is None else self._opened(self.store, texts)
        vectors = self.embedder.embed(texts, role=Role.DOCUMENT)
        if indexed is not None:
            indexed.fill(vectors, texts)
        return FittedDense(self.embedder, vectors, self.geometry, self._threads, indexed)

    def _opened(self, store: str | Store, texts: Sequence[str]) -> Indexed:
        from equipoise.embed.indexed import Indexed

        model = self.embedder
        return Indexed.open(store, texts, dims=model.dims, geometry=self.geometry, model=model.fingerprint)

    def _store_name(self) -> str:
        from equipoise.embed.indexed import described

        return "" if self.store is None else described(self.store)


class FittedDense(Fitted):
    """The vectors of the documents.

    ``indexed`` is the store that answers ``search``, where one was asked for. ``score_blocks``, and with it
    every full-depth rank, stays exact: an index gives no ranks beyond what it returns. ``index_recall`` is
    what an approximate index found of the exact answer, measured at the first search on up to 200 of its
    queries; None before that, and where search is exact.
    """

    def __init__(
        self,
        embedder: Embedder,
        vectors: Vectors,
        geometry: Geometry,
        threads: int,
        indexed: Indexed | None = None,
    ) -> None:
        self.indexed = indexed
        self.documents = len(vectors)
        self.vectors = vectors
        self._embedder, self._geometry, self._threads = embedder, geometry, threads

    def search(self, queries: Iterable[str], k: int) -> Neighbours:
        """By tiles of the matrix product, so that no row of all scores need exist; or by the store."""
        vectors = self._embedder.embed(self.require(queries, k), role=Role.QUERY)
        if self.indexed is not None:
            if self.index_recall is None:
                self.index_recall = self.indexed.recall(
                    vectors, self.vectors, k, self._geometry, self._threads
                )
            return self.indexed.search(vectors, k)
        return nearest(vectors, self.vectors, k, geometry=self._geometry, threads=self._threads)

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """All scores, from the geometry's own blocks: exact, whatever store answers ``search``."""
        vectors = self._embedder.embed(queries, role=Role.QUERY)
        row_bytes = self.documents * np.result_type(vectors, self.vectors).itemsize
        return score_blocks(vectors, self.vectors, self._geometry, block_bytes=rows * row_bytes)

    def close(self) -> None:
        """Let go of the store; what lies on a disk or a server stays there."""
        if self.indexed is not None:
            self.indexed.store.close()
