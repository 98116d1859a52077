"""Queries: the terms of one text or of many, as plain records, and the search with a vector store.

``query`` is the one-line call. A vector store returns the nearest components up to some depth. Every term with a
component in that list is rescored exactly over all its components; only a term without any component in it can be
missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from equipoise.domains.phenotypes.defaults import DEFAULT_MODEL
from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY, Weights, aggregate_scores, n_columns_read
from equipoise.domains.phenotypes.index.build import BuildProgress, open_or_build_indexes, resolve_index_dir
from equipoise.domains.phenotypes.index.files import ComponentKind
from equipoise.domains.phenotypes.index.lexicon import average_with_translation, read_translations
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever, dense_models
from equipoise.domains.phenotypes.index.stored_vectors import StoredVectorScorer
from equipoise.domains.phenotypes.ontology import HPO, Ontology, load_ontology
from equipoise.errors import EquipoiseError, FormatError, InputError, ParameterError, StoreError
from equipoise.geometry.topk import top_columns
from equipoise.io.tables import read_table, table_format
from equipoise.io.text import PathLike, display_path, read_text
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.dense import DenseRetriever, StoreIndex
from equipoise.models.retriever import Retriever, retriever

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.files import TermIndex, TermTexts
    from equipoise.geometry.base import PointArray
    from equipoise.models.encoder import Vectors
    from equipoise.models.stores.base import VectorStore
    from equipoise.types import Ints


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A retrieved term: rank, id, label and score, and the component with the largest score."""

    rank: int
    id: str
    label: str
    score: float
    component: str
    """``label``, ``synonym``, ``definition``, or ``whole`` for one vector per term."""
    text: str
    """The text of that component."""


@overload
def query(texts: str, model: str = ..., ontology: Ontology | str = ..., **options: Any) -> list[TermMatch]: ...


@overload
def query(
    texts: Iterable[str], model: str = ..., ontology: Ontology | str = ..., **options: Any
) -> list[list[TermMatch]]: ...


def query(
    texts: str | Iterable[str],
    model: str = DEFAULT_MODEL,
    ontology: Ontology | str = HPO,
    *,
    k: int = 10,
    **options: Any,
) -> list[TermMatch] | list[list[TermMatch]]:
    """Retrieve the terms of a text, or of each of several texts.

    The first call loads the ontology and the model, and builds the index of the model if there is none. Later calls
    with the same model, ontology and options reuse them.

    Parameters
    ----------
    texts
        One text, or several.
    model
        A model spec, such as ``use``, ``tfidf:`` or ``sum:use+tfidf``.
    ontology
        The ontology, its path, or ``hpo``.
    k
        Number of terms per text.
    **options
        Options of ``open_term_retriever``: ``multi_vector``, ``strategy``, ``weights``, ``translate``,
        ``translations``, ``index_dir`` and ``threads``.

    Returns
    -------
    list of TermMatch
        The best terms, best first; for several texts one such list per text. Of a lexical system only terms with a
        score above 0.

    Examples
    --------
    >>> query("Krampfanfälle", k=1)[0].label  # doctest: +SKIP
    'Seizure'
    """
    hashable = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    system = _opened_once(model, ontology, **hashable)
    listed = [texts] if isinstance(texts, str) else list(texts)
    matches = term_matches(system, system.search(listed, min(k, len(system.ontology))))
    return matches[0] if isinstance(texts, str) else matches


def open_term_retriever(
    model: str | Retriever = DEFAULT_MODEL,
    ontology: Ontology | str = HPO,
    *,
    multi_vector: bool = True,
    strategy: str = DEFAULT_STRATEGY,
    weights: Weights | None = None,
    translate: bool = True,
    translations: Sequence[PathLike] = (),
    index_dir: PathLike | None = None,
    threads: int = 1,
    progress: BuildProgress | None = None,
) -> TermRetriever:
    """A retriever over the terms of an ontology, with stored vectors; a missing index is built.

    Parameters
    ----------
    model
        A model spec, or a loaded model.
    ontology
        The ontology, its path, or ``hpo``.
    multi_vector
        Whether every label, synonym and definition has its own vector, or every term one.
    strategy
        How the scores of several vectors are aggregated to the score of a term.
    weights
        Weights of label, synonyms and definition for ``all_weighted``.
    translate
        Whether texts with German words are also translated into English and searched again.
    translations
        Files of translated labels; see ``read_translations``.
    index_dir
        The folder of indexes. Default: ``~/.local/share/equipoise/indexes``.
    threads
        Threads per model.
    progress
        The context in which an index is built: it is called with the model and the number of texts, and gives the
        function that is called with the progress.

    Returns
    -------
    TermRetriever
        ``search(texts, k)`` returns the best terms.

    Examples
    --------
    >>> open_term_retriever("tfidf:").search(["seizures"], 3).terms  # doctest: +SKIP
    """
    terms = ontology if isinstance(ontology, Ontology) else load_ontology(ontology)
    translated_labels = read_translations(translations, terms) if translations else None
    system = retriever(model, threads=threads)
    return TermRetriever(
        system,
        terms,
        multi_vector=multi_vector,
        strategy=strategy,
        weights=weights,
        index=open_or_build_indexes(resolve_index_dir(index_dir), terms, system, multi_vector, progress),
        translate=translate,
        translations=translated_labels,
    )


_opened_once = lru_cache(maxsize=4)(open_term_retriever)


def term_matches(system: TermRetriever, hits: TermHits) -> list[list[TermMatch]]:
    """The retrieved terms of every query; of a lexical system only those with a score above 0."""
    lexical = not dense_models(system.system)
    texts, kinds, ontology = system.components.texts, system.components.kind, system.ontology
    rows = zip(hits.terms.tolist(), hits.scores.tolist(), hits.component.tolist(), strict=True)
    return [
        [
            TermMatch(
                rank=rank,
                id=ontology.ids[term],
                label=ontology.labels[term],
                score=score,
                component=ComponentKind(int(kinds[component])).name.lower(),
                text=texts[component],
            )
            for rank, (term, score, component) in enumerate(zip(*columns, strict=True), start=1)
            if score or not lexical
        ]
        for columns in rows
    ]


def read_queries(path: PathLike) -> list[str]:
    """The texts of a file: the column ``text`` of a table (JSON, JSONL, CSV, TSV, parquet), else one per line.

    Blank lines are left out. A dash reads standard input.
    """
    if table_format(path) is not None:
        table = read_table(path).require("text")
        texts = [str(row["text"]) for row in table.rows]
        for index, text in enumerate(texts):
            if not text.strip():
                raise table.error(FormatError, [index], "has an empty text", hint="leave empty texts out")
    else:
        texts = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not texts:
        raise InputError(f"{display_path(path)} has no texts", hint="write one text per line")
    return texts


N_STORE_CANDIDATES = 200
"""Minimum number of components requested from a store; at least ten per requested term."""


def fill_store(
    index: TermIndex,
    system: DenseRetriever,
    store: str | VectorStore,
    watch: Callable[[int], None] | None = None,
) -> StoreIndex:
    """Write the vectors of an index to its collection in a store; vectors that it already has are not sent again.

    The collection is named after the model and the texts. ``watch`` is called with the number of stored vectors.
    """

    store_index = StoreIndex.open(
        store, index.components.texts, dims=index.meta.dims, geometry=system.geometry, model=index.model
    )
    try:
        store_index.fill(index.vectors, index.components.texts, watch)
    except EquipoiseError:
        store_index.store.close()
        raise
    return store_index


def check_store(components: TermTexts, system: DenseRetriever, store: str) -> None:
    """Open the collection of an index before it is built, so that a wrong address fails before any embedding."""
    model = system.embedder
    StoreIndex.open(
        store, components.texts, dims=model.dims, geometry=system.geometry, model=model.fingerprint
    ).store.close()


def search_with_store(
    system: TermRetriever,
    store_index: StoreIndex,
    queries: Iterable[str],
    k: int,
    watch: Callable[[int], None] | None = None,
) -> TermHits:
    """The best k terms of every query among the candidates of the store, scored exactly.

    If the store returns fewer than k terms, more components are requested. ``watch`` is called with the number of
    finished queries.
    """
    fitted = system.fitted
    if not isinstance(fitted, StoredVectorScorer):
        raise ParameterError(
            f"{system.card.spec} has no vectors to search in a store",
            hint="name one dense model, or omit the store",
        )
    texts = check_nonempty_texts(queries, "queries")
    if (count := store_index.store.count()) != len(system.components):
        raise StoreError(
            f"{store_index.store.named} holds {count:,} vectors, and the index has {len(system.components):,}",
            hint="build the index with this store first",
        )
    system.check_depth(k)
    terms = np.empty((len(texts), k), dtype=np.int64)
    component, best = np.empty_like(terms), np.empty(terms.shape)
    for row, text in enumerate(texts):
        vectors = fitted.query_vectors([text, *filter(None, [system.translation(text)])])
        nearest = [_candidate_terms(system, store_index, vector, k) for vector in vectors]
        terms[row], best[row], component[row] = _rescore(system, fitted, vectors, np.unique(np.concatenate(nearest)), k)
        if watch is not None:
            watch(row + 1)
    return TermHits(terms, best, component)


def _candidate_terms(system: TermRetriever, store_index: StoreIndex, vector: PointArray, k: int) -> Ints:
    """At least k distinct candidate terms, ascending."""
    depth = min(max(N_STORE_CANDIDATES, 10 * k), len(system.components))
    while True:
        near = store_index.search(vector[None], depth).indices[0]
        terms = np.unique(system.components.term[near])
        if len(terms) >= k or depth == len(system.components):
            return terms
        depth = min(4 * depth, len(system.components))


def _rescore(
    system: TermRetriever, fitted: StoredVectorScorer, vectors: Vectors, candidates: Ints, k: int
) -> tuple[Ints, PointArray, Ints]:
    """The best k candidates of a query; ``vectors`` are those of the query and of its translation, if any."""
    components, columns = system.components.subset(candidates)
    columns = columns[: n_columns_read(components, system.expression)]
    scores = fitted.of_columns(vectors[0], columns)
    if len(vectors) > 1:
        scores = average_with_translation(scores, fitted.of_columns(vectors[1], columns))
    leading, best = top_columns(aggregate_scores(scores, components, system.expression), k)
    all_scores = np.full((1, len(system.components)), -np.inf, dtype=scores.dtype)
    all_scores[:, columns] = scores
    terms = candidates[leading]
    return terms[0], best[0], system.best_component(all_scores, terms)[0]
