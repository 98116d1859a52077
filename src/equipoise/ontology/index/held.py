"""The vectors of components, held ready: prepared for the product once, however many queries come."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from equipoise.embed.dense import DenseRetriever
from equipoise.embed.encoder import Vectors
from equipoise.embed.retriever import Blocks, Fitted
from equipoise.geometry import Points, Prepared
from equipoise.geometry.twins import Twins, twins
from equipoise.ontology.index.casing import Casing
from equipoise.ontology.index.rounded import Rounded
from equipoise.types import Ints, Role


class HeldVectors(Fitted):
    """A model that embeds, with the vectors of its documents; equal vectors score equal.

    ``first`` is, for each vector, the place of the first that equals it; it is found here unless it is given.
    ``texts`` are those of the vectors: queries are embedded in their upper and lower case.
    """

    bytes_a_score = 4

    def __init__(
        self,
        system: DenseRetriever,
        vectors: Vectors,
        first: Ints | None = None,
        *,
        texts: Sequence[str] = (),
    ) -> None:
        self.documents = len(vectors)
        self._texts = texts
        self.vectors = vectors
        self.system = system
        if first is None:
            system.geometry.check(vectors).require_usable("the vectors of the terms")
        self._space = system.geometry.fitted(vectors)
        self._corpus = self._space.prepare_corpus(vectors)
        self._twins = twins(vectors) if first is None else Twins(first)
        self._copies = self._twins.copies

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """The scores of all documents."""
        return self.leading_blocks(queries, rows, self.documents)

    def leading_blocks(self, queries: Sequence[str], rows: int, columns: int) -> Blocks:
        """The scores of the first ``columns`` documents only, which takes so much less time."""
        return self.vector_blocks(self.query_vectors(queries), rows, columns)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """The vectors of texts that ask."""
        vectors = self.system.embedder.embed(self._casing.all(queries), role=Role.QUERY)
        self._space.check(vectors).require_usable("the vectors of the queries")
        return vectors

    @cached_property
    def _casing(self) -> Casing:
        return Casing(self._texts)

    @property
    def dims(self) -> int:
        """The numbers in a row of the product, which may be a few more than in a vector."""
        return int(self._corpus.rows.shape[1])

    @cached_property
    def rounded(self) -> Rounded:
        """The documents in 8 bits, which takes a quarter of the memory again."""
        return Rounded.of(self._corpus.rows, self._corpus.scale)

    def prepared(self, vectors: Vectors) -> Points:
        """Queries as the left factor of the product."""
        return self._space.prepare_queries(vectors)

    def of_prepared(self, query: Points, columns: Ints) -> Points:
        """The scores of some documents for one prepared query, each by itself, so equal rows score equal."""
        scores: Points = np.einsum("ij,j->i", self._corpus.rows[columns], query)
        return scores if self._corpus.scale is None else scores * self._corpus.scale[columns]

    def of_columns(self, query: Vectors, columns: Ints) -> Points:
        """The scores of some documents for one query, given as its vector."""
        scale = None if self._corpus.scale is None else self._corpus.scale[columns]
        some = Prepared(self._corpus.rows[columns], scale)
        return self._space.similarity(self._space.prepare_queries(query[None]), some)

    def vector_blocks(self, vectors: Vectors, rows: int, columns: int) -> Blocks:
        """The same for queries that are vectors already."""
        prepared = self._space.prepare_queries(vectors)
        copies = self._copies[: np.searchsorted(self._copies, columns)]
        buffer = np.empty((min(rows, len(prepared)), columns), dtype=prepared.dtype)
        for start in range(0, len(prepared), rows):
            part = slice(start, min(start + rows, len(prepared)))
            scores = buffer[: part.stop - start]
            self._space.similarity(prepared[part], self._corpus[:columns], out=scores)
            if len(copies):
                scores[:, copies] = scores[:, self._twins.first[copies]]
            yield part, scores
