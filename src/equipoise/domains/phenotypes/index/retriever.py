"""Term retrieval: a retriever over the texts of all terms, with stored vectors where an index has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.disk_cache import fit_or_load
from equipoise.domains.phenotypes.index.aggregation import (
    DEFAULT_STRATEGY,
    Weights,
    aggregate_scores,
    n_columns_read,
    parse_strategy,
)
from equipoise.domains.phenotypes.index.files import TEXTS_VERSION, ComponentKind, TermIndex, TermTexts, term_texts
from equipoise.domains.phenotypes.index.lexicon import QueryTranslator, average_with_translation, make_translator
from equipoise.domains.phenotypes.index.stored_vectors import (
    MAX_STRATEGIES,
    QUERY_BLOCK,
    SingleQuerySearch,
    StoredVectorScorer,
    TopTerms,
    make_prefilter,
    single_query_search,
)
from equipoise.errors import ParameterError, StoreError
from equipoise.geometry.base import PointArray
from equipoise.geometry.topk import top_columns
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.dense import DenseRetriever
from equipoise.models.encoder import Role
from equipoise.models.fusion import FittedFusion, ReciprocalRankFusion, SumFusion
from equipoise.models.registry import spec_kind, spec_parts
from equipoise.models.retriever import LEXICAL, FittedRetriever, Retriever, content_fingerprint, retriever
from equipoise.progress import portion
from equipoise.types import Ints

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.lexicon import Translations
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.models.embedder import Embedder
    from equipoise.models.encode_texts import Progress
    from equipoise.models.encoder import ModelCard


def fit_on_terms(
    system: Retriever,
    components: TermTexts,
    indexes: Sequence[TermIndex] = (),
    progress: Progress | None = None,
    *,
    key: str = "",
) -> FittedRetriever:
    """The system, fitted on the components; dense models take their vectors from a matching index.

    ``key`` identifies the components; with a key a lexical system may be read from the cache folder.
    """
    models = [model.fingerprint for model in dense_models(system)]
    for index in indexes:
        if index.model not in models:
            raise StoreError(
                f"the index {index.folder} holds vectors of {index.meta.model_spec}, not of {system.card.spec}",
                hint="build an index for this model",
            )
    fitted = [_fit_part(part, components, indexes, progress, key) for part in fusion_parts(system)]
    return FittedFusion(system, fitted) if isinstance(system, SumFusion | ReciprocalRankFusion) else fitted[0]


def dense_model_specs(spec: str) -> list[str]:
    """The specs of the dense models in a spec: itself, the dense parts of a fusion, or none.

    >>> dense_model_specs("sum:use+tfidf:"), dense_model_specs("bm25:"), dense_model_specs("minilm")
    (['use'], [], ['minilm'])
    """
    return [part for part in spec_parts(spec) if spec_kind(part) not in LEXICAL]


def dense_models(system: Retriever) -> list[Embedder]:
    """The dense models of a system: its own, those of a fusion's parts, or none."""
    return [part.embedder for part in fusion_parts(system) if isinstance(part, DenseRetriever)]


def fusion_parts(system: Retriever) -> tuple[Retriever, ...]:
    """The parts of a fusion, or the system itself."""
    return system.parts if isinstance(system, SumFusion | ReciprocalRankFusion) else (system,)


def _fit_part(
    system: Retriever, components: TermTexts, indexes: Sequence[TermIndex], progress: Progress | None, key: str
) -> FittedRetriever:
    if not isinstance(system, DenseRetriever):
        return fit_or_load(system, components.texts, key) if key else system.fit(components.texts)
    model = system.embedder
    for index in indexes:
        if index.model == model.fingerprint:
            return StoredVectorScorer(system, index.vectors, index.first, texts=components.texts)
    embedded = model.embed_report(components.texts, Role.DOCUMENT, progress=progress)
    return StoredVectorScorer(system, embedded.vectors, texts=components.texts)


TermBlocks = Iterator[tuple[slice, PointArray]]

_BLOCK_BYTES = 64 << 20
_PROGRESS_BATCH = 128
"""The number of queries between two reports of progress."""
_FEW_QUERIES = 4
"""Up to this number, queries are searched one by one with a projection."""
_MIN_PROJECTED = 10_000
"""Below this number of components the full product is fast enough."""
_SEARCHES_BEFORE_PROJECTION = 2


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

    Parameters
    ----------
    spec
        A model spec, or any other argument of ``equipoise.retriever``.
    ontology
        The ontology.
    multi_vector
        Whether every label, synonym and definition has its own vector, or every term one.
    strategy
        How the scores of several vectors are aggregated to the score of a term, as in ``run_benchmark``.
    weights
        Weights of labels, synonyms and definitions, as in ``run_benchmark``.
    index
        Stored vectors of dense models. Without them the texts are embedded at first use.
    progress
        Called with the progress of embedding.
    threads
        Threads per model.
    translate
        Whether a query with German words is also translated into English and searched again.
    translations
        Translated labels; see ``read_translations``.
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
        self._translate, self.translations = translate, translations
        self.multi_vector = multi_vector
        self.system = retriever(spec, threads=threads)
        self.indexes = (index,) if isinstance(index, TermIndex) else tuple(index or ())
        self.strategy = strategy
        self.expression = parse_strategy(strategy, weights)
        self._progress = progress
        self._n_searches = 0
        self._projected: SingleQuerySearch | None = None
        for term_index in self.indexes:
            term_index.check_compatible(ontology, multi_vector)

    def __repr__(self) -> str:
        method = f"multi-vector, {self.strategy}" if self.multi_vector else "single-vector"
        return f"<TermRetriever {self.card.spec} over {self.ontology.title}: {method}>"

    @property
    def card(self) -> ModelCard:
        """The card of the model or the lexical system."""
        return self.system.card

    @property
    def fingerprint(self) -> str:
        """Equal only if the scores are equal for every query."""
        method = f"multi {self.expression!r}" if self.multi_vector else "single"
        translator = "" if self.translator is None else self.translator.fingerprint
        return content_fingerprint("terms 3", self.system.fingerprint, self.ontology.fingerprint, method, translator)

    @cached_property
    def translator(self) -> QueryTranslator | None:
        """Translates queries into the words of labels and synonyms; None if queries are not translated."""
        return make_translator(self.ontology, self.translations) if self._translate else None

    def translation(self, query: str) -> str | None:
        """The translation in which the query is also searched; None if there is none."""
        return None if self.translator is None else self.translator(query)

    @cached_property
    def components(self) -> TermTexts:
        """The texts that are scored for a query."""
        return self.indexes[0].components if self.indexes else term_texts(self.ontology, self.multi_vector)

    @cached_property
    def fitted(self) -> FittedRetriever:
        """The system, fitted on the components or with the vectors of the index."""
        key = f"{TEXTS_VERSION} {self.ontology.fingerprint} {self.multi_vector}"
        return fit_on_terms(self.system, self.components, self.indexes, self._progress, key=key)

    def with_strategy(self, strategy: str, weights: Weights | None = None) -> TermRetriever:
        """The same retriever with another aggregation; nothing is embedded or fitted again."""
        assert self.fitted is not None
        other = copy(self)
        other.strategy, other.expression = strategy, parse_strategy(strategy, weights)
        other.__dict__.pop("_columns_of", None)
        other._projected = None
        return other

    def component_blocks(self, queries: Iterable[str]) -> TermBlocks:
        """The scores of all components for a few queries at a time, from which any strategy can aggregate.

        The next block may reuse the array.
        """
        return self._blocks(check_nonempty_texts(queries, "queries"), _BLOCK_BYTES, len(self.components))

    def score_blocks(self, queries: Iterable[str], block_bytes: int = _BLOCK_BYTES) -> TermBlocks:
        """The scores of all terms for a few queries at a time: a slice of queries and (queries, terms)."""
        needed = n_columns_read(self.components, self.expression)
        for rows, scores in self._blocks(check_nonempty_texts(queries, "queries"), block_bytes, needed):
            yield rows, aggregate_scores(scores, self.components, self.expression)

    def search(self, queries: Iterable[str], k: int, progress: Progress | None = None) -> TermHits:
        """The best k terms of every query; ``progress`` is called after each batch of queries."""
        texts = check_nonempty_texts(queries, "queries")
        self.check_depth(k)
        shape = (len(texts), k)
        terms, component = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        best: PointArray = np.empty(shape)
        size = _PROGRESS_BATCH if progress is not None else max(1, len(texts))
        for start in range(0, len(texts), size):
            batch = slice(start, min(start + size, len(texts)))
            with portion(batch.start / len(texts), batch.stop / len(texts)):
                for rows, top_terms in self._top_k_blocks(texts[batch], k):
                    terms[batch][rows], best[batch][rows], component[batch][rows] = top_terms
            if progress is not None:
                progress(batch.stop, len(texts))
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
        """The best k terms of a few queries at a time; uses a prefilter if it is faster."""
        if len(texts) <= _FEW_QUERIES and (single := self._single_queries) is not None:
            for row, text in enumerate(texts):
                top_terms = single.top_k(text, self.translation(text), k)
                yield slice(row, row + 1), top_terms or self._full_top_k(text, k)
            return
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
            top = prefilter.top_k(part, k)
            if top is None:
                ((_, scores),) = prefilter.fitted.vector_blocks(part, len(part), needed)
                top = self._top_k(scores, k)
            yield slice(start, start + len(part)), top

    @property
    def _single_queries(self) -> SingleQuerySearch | None:
        """The search of single queries; it is prepared for the second search, since it costs a dozen searches."""
        self._n_searches += 1
        width = n_columns_read(self.components, self.expression)
        if self._n_searches < _SEARCHES_BEFORE_PROJECTION or width < _MIN_PROJECTED:
            return None
        if self._projected is None and not (self.multi_vector and self.expression not in MAX_STRATEGIES):
            self._projected = single_query_search(self.fitted, self.components, width)
        return self._projected

    def _full_top_k(self, text: str, k: int) -> TopTerms:
        needed = n_columns_read(self.components, self.expression)
        ((_, scores),) = self._blocks([text], _BLOCK_BYTES, needed)
        return self._top_k(scores, k)

    def _top_k(self, scores: PointArray, k: int) -> TopTerms:
        terms, best = top_columns(aggregate_scores(scores, self.components, self.expression), k)
        return terms, best, self.best_component(scores, terms)

    def _blocks(self, queries: list[str], block_bytes: int, columns: int) -> TermBlocks:
        """The scores of the first ``columns`` components; queries and their translations are scored together."""
        rows = max(1, block_bytes // (2 * self.fitted.bytes_per_score * len(self.components)))
        for start in range(0, len(queries), rows):
            part = queries[start : start + rows]
            translated = {row: english for row, query in enumerate(part) if (english := self.translation(query))}
            ((_, scores),) = self._text_blocks([*part, *translated.values()], columns)
            if translated:
                translated_rows = list(translated)
                scores[translated_rows] = average_with_translation(scores[translated_rows], scores[len(part) :])
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
        is_empty = np.bincount(self.components.term[read], minlength=self.components.terms) == 0
        read |= is_empty[self.components.term] & (self.components.kind == ComponentKind.LABEL)
        columns = np.flatnonzero(read)
        term = self.components.term[columns]
        starts = np.concatenate([[0], np.cumsum(np.bincount(term, minlength=self.components.terms))])
        return columns[np.argsort(term, kind="stable")], starts.astype(np.int64)


_KIND_BY_COMPONENT = {
    "label": ComponentKind.LABEL,
    "synonyms": ComponentKind.SYNONYM,
    "definition": ComponentKind.DEFINITION,
}
