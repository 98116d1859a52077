"""Terms by way of a vector store: the store proposes, and every proposal is scored over all its components.

A store returns the nearest components, and its list ends somewhere. What a term scores is not read off that
list: all components of every term in it are scored exactly. Only a term none of whose components is in the
list can be missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.index.aggregation import aggregate_scores, n_columns_read
from equipoise.domains.phenotypes.index.retriever import StoredVectorScorer, TermHits, TermRetriever
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.geometry.topk import leading_columns_of
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.dense import DenseRetriever, StoreIndex

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.files import TermIndex
    from equipoise.domains.phenotypes.index.term_texts import TermTexts
    from equipoise.geometry.base import PointArray
    from equipoise.models.stores.base import VectorStore
    from equipoise.types import Ints

N_STORE_CANDIDATES = 200
"""Components that a store is asked for, at least, and ten for each term that is wanted."""


def fill_store(
    index: TermIndex,
    system: DenseRetriever,
    store: str | VectorStore,
    watch: Callable[[int], None] | None = None,
) -> StoreIndex:
    """Fill a store with the vectors of an index; what is there from an earlier time is not sent again.

    ``watch`` is told how many are there.
    """
    held = open_store(index, system, store)
    try:
        held.fill(index.vectors, index.components.texts, watch)
    except EquipoiseError:
        held.store.close()
        raise
    return held


def check_store(components: TermTexts, system: DenseRetriever, store: str) -> None:
    """Open the collection of an index that is yet to be built: a wrong address costs no embedding then."""
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


def search_with_store(system: TermRetriever, held: StoreIndex, queries: Iterable[str], k: int) -> TermHits:
    """The best k terms of every query among those that the store proposes, scored exactly.

    Where the store proposes fewer than k terms it is asked for more.
    """
    fitted = system.fitted
    if not isinstance(fitted, StoredVectorScorer):
        raise ParameterError(
            f"{system.card.spec} has no vectors that a store could search",
            hint="name one model that embeds, or leave the store out",
        )
    texts = check_nonempty_texts(queries, "queries")
    if (count := held.store.count()) != len(system.components):
        raise StoreError(
            f"{held.store.named} holds {count:,} vectors, and the index has {len(system.components):,}",
            hint="build the index with this store first",
        )
    system.require_depth(k)
    vectors = fitted.query_vectors(texts)
    terms = np.empty((len(texts), k), dtype=np.int64)
    component, best = np.empty_like(terms), np.empty(terms.shape)
    for row, vector in enumerate(vectors):
        candidates = _proposed(system, held, vector, k)
        terms[row], best[row], component[row] = _rescored(system, fitted, vector, candidates, k)
    return TermHits(terms, best, component)


def _proposed(system: TermRetriever, held: StoreIndex, vector: PointArray, k: int) -> Ints:
    """At least k distinct terms, ascending."""
    depth = min(max(N_STORE_CANDIDATES, 10 * k), len(system.components))
    while True:
        near = held.search(vector[None], depth).indices[0]
        terms = np.unique(system.components.term[near])
        if len(terms) >= k or depth == len(system.components):
            return terms
        depth = min(4 * depth, len(system.components))


def _rescored(
    system: TermRetriever, fitted: StoredVectorScorer, vector: PointArray, candidates: Ints, k: int
) -> tuple[Ints, PointArray, Ints]:
    some, columns = system.components.only(candidates)
    columns = columns[: n_columns_read(some, system.expression)]
    scores = fitted.of_columns(vector, columns)
    found, best = leading_columns_of(aggregate_scores(scores, some, system.expression), k)
    everywhere = np.full((1, len(system.components)), -np.inf, dtype=scores.dtype)
    everywhere[:, columns] = scores
    terms = candidates[found]
    return terms[0], best[0], system.agreeing(everywhere, terms)[0]
