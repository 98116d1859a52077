"""Term retrieval: a retriever over the texts of all terms, with stored vectors where an index has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.index.aggregation import (
    DEFAULT_STRATEGY,
    Weights,
    aggregate_scores,
    n_columns_read,
    parse_strategy,
)
from equipoise.domains.phenotypes.index.files import TermIndex
from equipoise.domains.phenotypes.index.int8_prefilter import (
    QUERY_BLOCK,
    Int8Rows,
    TopTerms,
    make_prefilter,
)
from equipoise.domains.phenotypes.index.term_texts import ComponentKind, TermTexts, term_texts
from equipoise.domains.phenotypes.index.translate import QueryTranslator, average_with_translation
from equipoise.errors import ParameterError, StoreError
from equipoise.geometry.base import PointArray, PreparedCorpus
from equipoise.geometry.search import DuplicateRows, find_duplicate_rows
from equipoise.geometry.topk import top_columns
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.dense import DenseRetriever
from equipoise.models.fusion import FittedFusion, ReciprocalRankFusion, SumFusion, parse_fusion
from equipoise.models.retriever import (
    LEXICAL,
    Blocks,
    FittedRetriever,
    Retriever,
    content_fingerprint,
    is_fusion,
    retriever,
    spec_kind,
)
from equipoise.types import Ints, Role

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.lexicon import Translations
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.models.embedder import Embedder
    from equipoise.models.encode_texts import Progress
    from equipoise.models.encoder import ModelCard, Vectors


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


def fit_on_terms(
    system: Retriever,
    components: TermTexts,
    indexes: Sequence[TermIndex] = (),
    progress: Progress | None = None,
) -> FittedRetriever:
    """The system, fitted on the components; dense models take their vectors from a matching index."""
    models = [model.fingerprint for model in dense_models(system)]
    for index in indexes:
        if index.model not in models:
            raise StoreError(
                f"the index {index.folder} holds vectors of {index.meta.model_spec}, not of {system.card.spec}",
                hint="build an index for this model",
            )
    fitted = [_fit_part(part, components, indexes, progress) for part in fusion_parts(system)]
    return FittedFusion(system, fitted) if isinstance(system, SumFusion | ReciprocalRankFusion) else fitted[0]


def dense_model_specs(spec: str) -> list[str]:
    """The specs of the dense models in a spec: itself, the dense parts of a fusion, or none.

    >>> dense_model_specs("sum:use+tfidf:"), dense_model_specs("bm25:"), dense_model_specs("minilm")
    (['use'], [], ['minilm'])
    """
    parts = parse_fusion(spec)[2] if is_fusion(spec) else [spec]
    return [part for part in parts if spec_kind(part) not in LEXICAL]


def dense_models(system: Retriever) -> list[Embedder]:
    """The dense models of a system: its own, those of a fusion's parts, or none."""
    return [part.embedder for part in fusion_parts(system) if isinstance(part, DenseRetriever)]


def fusion_parts(system: Retriever) -> tuple[Retriever, ...]:
    """The parts of a fusion, or the system itself."""
    return system.parts if isinstance(system, SumFusion | ReciprocalRankFusion) else (system,)


def _fit_part(
    system: Retriever, components: TermTexts, indexes: Sequence[TermIndex], progress: Progress | None
) -> FittedRetriever:
    if not isinstance(system, DenseRetriever):
        return system.fit(components.texts)
    model = system.embedder
    for index in indexes:
        if index.model == model.fingerprint:
            return StoredVectorScorer(system, index.vectors, index.first, texts=components.texts)
    embedded = model.embed_report(components.texts, Role.DOCUMENT, progress=progress)
    return StoredVectorScorer(system, embedded.vectors, texts=components.texts)


TermBlocks = Iterator[tuple[slice, PointArray]]

_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class TermHits:
    """For each query the best terms, their scores, and the component of each term with the largest score.

    Best first; equal scores in the order of the ontology. ``component`` is an index of ``TermTexts.texts``,
    among the components that the strategy reads.
    """

    terms: Ints
    scores: PointArray
    component: Ints

    def __len__(self) -> int:
        return len(self.terms)


class TermRetriever:
    """Scores the terms of an ontology for texts, exactly, over all components of every term.

    ``spec`` is whatever ``models.retriever`` takes. A dense model uses the vectors of ``index`` if an index of
    that model is given; otherwise it embeds the components at first use. Lexical systems and fusions are fitted
    on the components. ``multi_vector`` and ``strategy`` say how the texts of a term become a score; a
    single-vector system has one text per term, and no strategy. With ``translate``, a query with German words is
    also scored by its English translation; ``translations`` are translated labels that help.
    """

    def __init__(
        self,
        spec: str | Retriever,
        ontology: Ontology,
        *,
        multi_vector: bool = True,
        strategy: str = DEFAULT_STRATEGY,
        weights: Weights | None = None,
        index: TermIndex | Sequence[TermIndex] | None = None,
        progress: Progress | None = None,
        threads: int = 1,
        translate: bool = True,
        translations: Translations | None = None,
    ) -> None:
        self.ontology = ontology
        self._translate, self._translations = translate, translations
        self.multi_vector = multi_vector
        self.system = retriever(spec, threads=threads)
        self.indexes = (index,) if isinstance(index, TermIndex) else tuple(index or ())
        self.strategy = strategy
        self.expression = parse_strategy(strategy, weights)
        self._progress = progress
        for term_index in self.indexes:
            term_index.check_compatible(ontology, multi_vector)

    def __repr__(self) -> str:
        how = f"multi-vector, {self.strategy}" if self.multi_vector else "single-vector"
        return f"<TermRetriever {self.card.spec} over {self.ontology.title}: {how}>"

    @property
    def card(self) -> ModelCard:
        """The card of the model or the lexical system."""
        return self.system.card

    @property
    def fingerprint(self) -> str:
        """Equal only if the scores are equal for every query."""
        how = f"multi {self.expression!r}" if self.multi_vector else "single"
        translator = "" if self.translator is None else self.translator.fingerprint
        return content_fingerprint("terms 3", self.system.fingerprint, self.ontology.fingerprint, how, translator)

    @cached_property
    def translator(self) -> QueryTranslator | None:
        """Translates queries into the words of labels and synonyms; None if queries are not translated."""
        if not self._translate:
            return None
        ontology = self.ontology
        texts = [*ontology.labels, *(synonym for synonyms in ontology.synonyms for synonym in synonyms)]
        return QueryTranslator(texts, self._translations)

    def translation(self, query: str) -> str | None:
        """The translation that the query is also scored by; None if there is none."""
        return None if self.translator is None else self.translator(query)

    @cached_property
    def components(self) -> TermTexts:
        """The texts that are scored for a query."""
        return self.indexes[0].components if self.indexes else term_texts(self.ontology, self.multi_vector)

    @cached_property
    def fitted(self) -> FittedRetriever:
        """The system, fitted on the components or with the vectors of the index."""
        return fit_on_terms(self.system, self.components, self.indexes, self._progress)

    def with_strategy(self, strategy: str, weights: Weights | None = None) -> TermRetriever:
        """The same retriever with another aggregation; nothing is embedded or fitted again."""
        assert self.fitted is not None
        other = copy(self)
        other.strategy, other.expression = strategy, parse_strategy(strategy, weights)
        other.__dict__.pop("_columns_of", None)
        return other

    def component_blocks(self, queries: Iterable[str], block_bytes: int = _BLOCK_BYTES) -> TermBlocks:
        """The scores of all components for a few queries at a time, from which any strategy can aggregate.

        The next block may reuse the array.
        """
        return self._blocks(check_nonempty_texts(queries, "queries"), block_bytes, len(self.components))

    def score_blocks(self, queries: Iterable[str], block_bytes: int = _BLOCK_BYTES) -> TermBlocks:
        """The scores of all terms for a few queries at a time: a slice of queries and (queries, terms)."""
        needed = n_columns_read(self.components, self.expression)
        for rows, scores in self._blocks(check_nonempty_texts(queries, "queries"), block_bytes, needed):
            yield rows, aggregate_scores(scores, self.components, self.expression)

    def search(self, queries: Iterable[str], k: int) -> TermHits:
        """The best k terms of every query."""
        texts = check_nonempty_texts(queries, "queries")
        self.check_depth(k)
        shape = (len(texts), k)
        terms, component = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        best: PointArray = np.empty(shape)
        for rows, top_terms in self._top_k_blocks(texts, k):
            terms[rows], best[rows], component[rows] = top_terms
        return TermHits(terms, best, component)

    def best_component(self, scores: PointArray, terms: Ints) -> Ints:
        """For each query and term, the column with the largest score among those that the strategy reads."""
        columns, starts = self._columns_of
        count = starts[terms + 1] - starts[terms]
        # A term with fewer components than the widest repeats its last one.
        step = np.minimum(np.arange(count.max(initial=1)), count[..., None] - 1)
        term_columns = columns[starts[terms][..., None] + step]
        best = scores[np.arange(len(scores))[:, None, None], term_columns].argmax(axis=-1)
        chosen: Ints = np.take_along_axis(term_columns, best[..., None], axis=-1)[..., 0]
        return chosen

    def check_depth(self, k: int) -> None:
        """Raise an error unless k is between 1 and the number of terms."""
        if not 1 <= k <= self.components.terms:
            raise ParameterError(
                f"k is {k} and there are {self.components.terms:,} terms",
                hint=f"k is 1 to {self.components.terms}",
            )

    def _top_k_blocks(self, texts: list[str], k: int) -> Iterator[tuple[slice, TopTerms]]:
        """The best k terms of a few queries at a time; uses the int8 prefilter if it is faster."""
        fitted, needed = self.fitted, n_columns_read(self.components, self.expression)
        prefilter = None
        if isinstance(fitted, StoredVectorScorer) and not any(map(self.translation, texts)):
            prefilter = make_prefilter(fitted, self.components, self.expression, len(texts))
        if prefilter is None:
            for rows, scores in self._blocks(texts, _BLOCK_BYTES, needed):
                yield rows, self._top_k(scores, k)
            return
        vectors = prefilter.fitted.query_vectors(texts)
        for start in range(0, len(texts), QUERY_BLOCK):
            part = vectors[start : start + QUERY_BLOCK]
            top_terms = prefilter.top_k(part, k)
            if top_terms is None:
                ((_, scores),) = prefilter.fitted.vector_blocks(part, len(part), needed)
                top_terms = self._top_k(scores, k)
            yield slice(start, start + len(part)), top_terms

    def _top_k(self, scores: PointArray, k: int) -> TopTerms:
        terms, best = top_columns(aggregate_scores(scores, self.components, self.expression), k)
        return terms, best, self.best_component(scores, terms)

    def _blocks(self, queries: list[str], block_bytes: int, columns: int) -> TermBlocks:
        """The scores of the first ``columns`` components; queries and their translations are scored together."""
        rows = max(1, block_bytes // (2 * self.fitted.bytes_a_score * len(self.components)))
        for start in range(0, len(queries), rows):
            part = queries[start : start + rows]
            translated = {row: english for row, query in enumerate(part) if (english := self.translation(query))}
            ((_, scores),) = self._text_blocks([*part, *translated.values()], columns)
            if translated:
                own = list(translated)
                scores[own] = average_with_translation(scores[own], scores[len(part) :])
            yield slice(start, start + len(part)), scores[: len(part)]

    def _text_blocks(self, texts: list[str], columns: int) -> TermBlocks:
        """The scores of texts without translation, in one block."""
        if isinstance(self.fitted, StoredVectorScorer):
            return self.fitted.leading_blocks(texts, len(texts), columns)
        return self.fitted.row_blocks(texts, len(texts))

    @cached_property
    def _columns_of(self) -> tuple[Ints, Ints]:
        """The columns that the strategy reads, sorted by term, and where each term's begin."""
        kinds = (
            [_KIND_BY_COMPONENT[part] for part in self.expression.parts] if self.multi_vector else [ComponentKind.WHOLE]
        )
        read = np.isin(self.components.kind, kinds)
        # As in ``aggregate_scores``, a term without any of the components is scored by its label.
        bare = np.bincount(self.components.term[read], minlength=self.components.terms) == 0
        read |= bare[self.components.term] & (self.components.kind == ComponentKind.LABEL)
        columns = np.flatnonzero(read)
        term = self.components.term[columns]
        starts = np.concatenate([[0], np.cumsum(np.bincount(term, minlength=self.components.terms))])
        return columns[np.argsort(term, kind="stable")], starts.astype(np.int64)


_KIND_BY_COMPONENT = {
    "label": ComponentKind.LABEL,
    "synonyms": ComponentKind.SYNONYM,
    "definition": ComponentKind.DEFINITION,
}
