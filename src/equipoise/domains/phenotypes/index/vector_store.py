"""Term search with a vector store: the store returns candidates, which are rescored exactly.

A store returns the nearest components up to some depth. Every term with a component in that list is rescored
over all its components. Only a term without any component in the list can be missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.index.aggregation import aggregate_scores, n_columns_read
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever
from equipoise.domains.phenotypes.index.stored_vectors import StoredVectorScorer
from equipoise.domains.phenotypes.index.translate import average_with_translation
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.geometry.topk import top_columns
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.dense import DenseRetriever, StoreIndex

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.files import TermIndex
    from equipoise.domains.phenotypes.index.term_texts import TermTexts
    from equipoise.geometry.base import PointArray
    from equipoise.models.encoder import Vectors
    from equipoise.models.stores.base import VectorStore
    from equipoise.types import Ints

N_STORE_CANDIDATES = 200
"""Minimum number of components requested from a store; at least ten per requested term."""


def fill_store(
    index: TermIndex,
    system: DenseRetriever,
    store: str | VectorStore,
    watch: Callable[[int], None] | None = None,
) -> StoreIndex:
    """Write the vectors of an index to a store; vectors that it already has are not sent again.

    ``watch`` is called with the number of stored vectors.
    """
    store_index = open_store(index, system, store)
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


def open_store(index: TermIndex, system: DenseRetriever, store: str | VectorStore) -> StoreIndex:
    """The collection of an index in a store, named after the model and the texts."""
    return StoreIndex.open(
        store,
        index.components.texts,
        dims=index.meta.dims,
        geometry=system.geometry,
        model=index.model,
    )


def search_with_store(system: TermRetriever, store_index: StoreIndex, queries: Iterable[str], k: int) -> TermHits:
    """The best k terms of every query among the candidates of the store, scored exactly.

    If the store returns fewer than k terms, more components are requested.
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
        found = [_candidate_terms(system, store_index, vector, k) for vector in vectors]
        terms[row], best[row], component[row] = _rescore(system, fitted, vectors, np.unique(np.concatenate(found)), k)
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
