"""Terms by way of a vector store: the store proposes, and every proposal is scored over all its components.

A store returns the nearest components, and its list ends somewhere. What a term scores is not read off that
list: all components of every term in it are scored exactly. Only a term none of whose components is in the
list can be missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from equipoise.embed.dense import DenseRetriever
from equipoise.embed.indexed import Indexed
from equipoise.embed.lexical.leading import leading_columns
from equipoise.embed.lexical.words import require_texts
from equipoise.embed.stores import Store
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.geometry import Points
from equipoise.ontology.index.aggregate import aggregate, columns_needed
from equipoise.ontology.index.components import Components
from equipoise.ontology.index.held import HeldVectors
from equipoise.ontology.index.search import Found, TermSystem
from equipoise.ontology.index.store import TermIndex
from equipoise.types import Ints

PROPOSED = 200
"""Components that a store is asked for, at least, and ten for each term that is wanted."""


def put_into_store(
    index: TermIndex,
    system: DenseRetriever,
    store: str | Store,
    watch: Callable[[int], None] | None = None,
) -> Indexed:
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


def refuse_absent_store(components: Components, system: DenseRetriever, store: str) -> None:
    """Open the collection of an index that is yet to be built: a wrong address costs no embedding then."""
    model = system.embedder
    Indexed.open(
        store, components.texts, dims=model.dims, geometry=system.geometry, model=model.fingerprint
    ).store.close()


def open_store(index: TermIndex, system: DenseRetriever, store: str | Store) -> Indexed:
    """The collection of an index in a store, named after the model and the texts."""
    return Indexed.open(
        store,
        index.components.texts,
        dims=index.meta.dims,
        geometry=system.geometry,
        model=index.model,
    )


def search_by_store(system: TermSystem, held: Indexed, queries: Iterable[str], k: int) -> Found:
    """The best k terms of every query among those that the store proposes, scored exactly.

    Where the store proposes fewer than k terms it is asked for more.
    """
    fitted = system.fitted
    if not isinstance(fitted, HeldVectors):
        raise ParameterError(
            f"{system.card.spec} has no vectors that a store could search",
            hint="name one model that embeds, or leave the store out",
        )
    texts = require_texts(queries, "queries")
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
    return Found(terms, best, component)


def _proposed(system: TermSystem, held: Indexed, vector: Points, k: int) -> Ints:
    """At least k distinct terms, ascending."""
    depth = min(max(PROPOSED, 10 * k), len(system.components))
    while True:
        near = held.search(vector[None], depth).indices[0]
        terms = np.unique(system.components.term[near])
        if len(terms) >= k or depth == len(system.components):
            return terms
        depth = min(4 * depth, len(system.components))


def _rescored(
    system: TermSystem, fitted: HeldVectors, vector: Points, candidates: Ints, k: int
) -> tuple[Ints, Points, Ints]:
    some, columns = system.components.only(candidates)
    columns = columns[: columns_needed(some, system.expression)]
    scores = fitted.of_columns(vector, columns)
    found, best = leading_columns(aggregate(scores, some, system.expression), k)
    everywhere = np.full((1, len(system.components)), -np.inf, dtype=scores.dtype)
    everywhere[:, columns] = scores
    terms = candidates[found]
    return terms[0], best[0], system.agreeing(everywhere, terms)[0]
