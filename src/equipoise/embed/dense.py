"""A model that embeds, as a retriever: documents and queries become vectors, and a geometry compares them."""

from __future__ import annotations

from collections.abc import Sequence
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
    from equipoise.embed.model import Embedder


def dense_retriever(
    system: object, *, geometry: Any = None, cache: Any = None, threads: int = 1, **options: object
) -> DenseRetriever:
    """A retriever from whatever ``embedder`` takes; ``geometry`` may also be an option of the spec."""
    from equipoise.embed.model import Embedder, embedder

    if isinstance(system, Embedder):
        if options:
            raise ParameterError(
                f"{system.card.spec} is made already and takes no options",
                hint="give the options with a spec",
            )
        return DenseRetriever(system, geometry or "cosine", threads=threads)
    if isinstance(system, str | Spec):
        spec = parse_spec(system) if isinstance(system, str) else system
        geometry = geometry or spec.options.get("geometry")
        own = {name: value for name, value in spec.options.items() if name != "geometry"}
        system = Spec(spec.kind, spec.name, own, spec.text)
    model = embedder(system, cache=cache, threads=threads, **options)
    return DenseRetriever(model, geometry or "cosine", threads=threads)


class DenseRetriever(Retriever):
    """An embedder and a geometry; search is exact."""

    def __init__(self, embedder: Embedder, geometry: str | Geometry = "cosine", *, threads: int = 1) -> None:
        self.embedder = embedder
        self.geometry = geometry_of(geometry)
        self._threads = threads

    @property
    def card(self) -> Card:
        """The model's card; the geometry is named in the spec where it is not the cosine."""
        card = self.embedder.card
        if isinstance(self.geometry, Cosine):
            return card
        return Card(**{**card.to_dict(), "spec": f"{card.spec},geometry={self.geometry.name}"})

    @property
    def fingerprint(self) -> str:
        """The model's own with the geometry."""
        return fingerprint_of("dense 1", self.embedder.fingerprint, repr(self.geometry))

    @property
    def scale(self) -> Scale:
        """Cosines can be added to others; other surrogates only order."""
        return Scale.COSINE if isinstance(self.geometry, Cosine) else Scale.ORDER

    def fit(self, documents: Sequence[str]) -> FittedDense:
        """Embed the documents."""
        require_texts(documents, "documents")
        vectors = self.embedder.embed(documents, role=Role.DOCUMENT)
        return FittedDense(self.embedder, vectors, self.geometry, self._threads)


class FittedDense(Fitted):
    """The vectors of the documents."""

    def __init__(self, embedder: Embedder, vectors: Vectors, geometry: Geometry, threads: int) -> None:
        self.documents = len(vectors)
        self.vectors = vectors
        self._embedder, self._geometry, self._threads = embedder, geometry, threads

    def search(self, queries: Sequence[str], k: int) -> Neighbours:
        """By tiles of the matrix product, so that no row of all scores need exist."""
        self.require(queries, k)
        vectors = self._embedder.embed(queries, role=Role.QUERY)
        return nearest(vectors, self.vectors, k, geometry=self._geometry, threads=self._threads)

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """All scores, from the geometry's own blocks."""
        vectors = self._embedder.embed(queries, role=Role.QUERY)
        row_bytes = self.documents * np.result_type(vectors, self.vectors).itemsize
        return score_blocks(vectors, self.vectors, self._geometry, block_bytes=rows * row_bytes)
