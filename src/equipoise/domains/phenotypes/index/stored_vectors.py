"""Stored vectors of an index as a fitted retriever: scores of queries against the vectors of all components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.index.int8_prefilter import Int8Rows
from equipoise.geometry.base import PointArray, PreparedCorpus
from equipoise.geometry.search import DuplicateRows, find_duplicate_rows
from equipoise.models.retriever import Blocks, FittedRetriever
from equipoise.types import Ints, Role

if TYPE_CHECKING:
    from equipoise.models.dense import DenseRetriever
    from equipoise.models.encoder import Vectors


class CaseMatcher:
    """Gives a query the upper and lower case of the ontology's texts.

    >>> casing = CaseMatcher(["Glaucoma", "Abnormal EEG"])
    >>> [casing(query) for query in ("glaucoma", "ABNORMAL eeg", "eye pain")]
    ['Glaucoma', 'Abnormal EEG', 'Eye pain']
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._known: dict[str, str] = {}
        for text in texts:
            self._known.setdefault(text.casefold(), text)
        starts = [text[0] for text in texts if text and text[0].lower() != text[0].upper()]
        self._capital = 2 * sum(start.isupper() for start in starts) > len(starts)

    def __call__(self, query: str) -> str:
        case = self._known.get(query.strip().casefold())
        if case is not None:
            return case
        return query[:1].upper() + query[1:] if self._capital else query

    def all(self, queries: Iterable[str]) -> list[str]:
        """The queries in the case of the ontology."""
        return [self(query) for query in queries]


class StoredVectorScorer(FittedRetriever):
    """Scores queries against the vectors of all components, which are prepared once; equal vectors score equal.

    ``first`` is, for each vector, the index of the first equal vector; it is computed unless it is given.
    ``texts`` are the texts of the vectors: queries are embedded in their upper and lower case.
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
        self._duplicate_rows = find_duplicate_rows(vectors) if first is None else DuplicateRows(first)
        self._copies = self._duplicate_rows.copies

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """The scores of all documents."""
        return self.leading_blocks(queries, rows, self.documents)

    def leading_blocks(self, queries: Sequence[str], rows: int, columns: int) -> Blocks:
        """The scores of the first ``columns`` documents only."""
        return self.vector_blocks(self.query_vectors(queries), rows, columns)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """The vectors of query texts."""
        vectors = self.system.embedder.embed(self._casing.all(queries), role=Role.QUERY)
        self._space.check(vectors).require_usable("the vectors of the queries")
        return vectors

    @cached_property
    def _casing(self) -> CaseMatcher:
        return CaseMatcher(self._texts)

    @property
    def dims(self) -> int:
        """The dimension of the prepared rows, which may exceed that of the vectors."""
        return int(self._corpus.rows.shape[1])

    @cached_property
    def int8_rows(self) -> Int8Rows:
        """The documents quantised to int8; needs a quarter of the memory of float32."""
        return Int8Rows.of(self._corpus.rows, self._corpus.scale)

    def prepared(self, vectors: Vectors) -> PointArray:
        """Queries as the left factor of the product."""
        return self._space.prepare_queries(vectors)

    def of_prepared(self, query: PointArray, columns: Ints) -> PointArray:
        """The scores of some documents for one prepared query, each by itself, so equal rows score equal."""
        scores: PointArray = np.einsum("ij,j->i", self._corpus.rows[columns], query)
        return scores if self._corpus.scale is None else scores * self._corpus.scale[columns]

    def prepared_rows(self, columns: int) -> PointArray:
        """The first documents as rows whose inner product with a prepared query is the score."""
        corpus = self._corpus[:columns]
        return np.asarray(corpus.rows) if corpus.scale is None else corpus.rows * corpus.scale[:, None]

    def of_columns(self, query: Vectors, columns: Ints) -> PointArray:
        """The scores of some documents for one query vector."""
        scale = None if self._corpus.scale is None else self._corpus.scale[columns]
        subset = PreparedCorpus(self._corpus.rows[columns], scale)
        return self._space.similarity(self._space.prepare_queries(query[None]), subset)

    def vector_blocks(self, vectors: Vectors, rows: int, columns: int) -> Blocks:
        """The same for query vectors."""
        prepared = self._space.prepare_queries(vectors)
        copies = self._copies[: np.searchsorted(self._copies, columns)]
        buffer = np.empty((min(rows, len(prepared)), columns), dtype=prepared.dtype)
        for start in range(0, len(prepared), rows):
            part = slice(start, min(start + rows, len(prepared)))
            scores = buffer[: part.stop - start]
            self._space.similarity(prepared[part], self._corpus[:columns], out=scores)
            if len(copies):
                scores[:, copies] = scores[:, self._duplicate_rows.first[copies]]
            yield part, scores
