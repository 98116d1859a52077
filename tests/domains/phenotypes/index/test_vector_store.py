"""A vector store gives candidate terms; their scores are exact over all components."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.phenotypes import query as vector_store
from equipoise.domains.phenotypes.index.aggregation import STRATEGIES
from equipoise.domains.phenotypes.index.build import build_index
from equipoise.domains.phenotypes.index.files import TermIndex
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.domains.phenotypes.query import fill_store, search_with_store
from equipoise.errors import ParameterError, StoreError
from equipoise.models.dense import StoreIndex, dense_retriever

QUERIES = ["seizure with fever", "small body height", "coughing"]


def open_collection(index: TermIndex, store: str) -> StoreIndex:
    geometry = dense_retriever("hash").geometry
    return StoreIndex.open(store, index.components.texts, dims=index.meta.dims, geometry=geometry, model=index.model)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_with_all_terms_as_candidates_the_result_is_exact(ontology: Ontology, tmp_path: Path, strategy: str) -> None:
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, strategy=strategy, index=index)
    with fill_store(index, dense_retriever("hash"), "memory").store as store:
        store_index = vector_store.StoreIndex(store, len(index))
        hits = search_with_store(system, store_index, QUERIES, 4)
    expected = system.search(QUERIES, 4)
    np.testing.assert_allclose(hits.scores, expected.scores, atol=1e-6)
    assert hits.terms.tolist() == expected.terms.tolist()
    assert hits.component.tolist() == expected.component.tolist()


def test_a_single_candidate_is_scored_over_all_components(
    ontology: Ontology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "N_STORE_CANDIDATES", 1)
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, strategy="all_min", index=index)
    store_index = fill_store(index, dense_retriever("hash"), "memory")
    hits = search_with_store(system, store_index, QUERIES, 1)
    for query, term in enumerate(hits.terms[:, 0]):
        ((_, scores),) = system.score_blocks([QUERIES[query]])
        assert hits.scores[query, 0] == pytest.approx(scores[0, term], abs=1e-6)


def test_the_store_is_queried_again_until_there_are_enough_terms(
    ontology: Ontology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "N_STORE_CANDIDATES", 1)
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, index=index)
    store_index = fill_store(index, dense_retriever("hash"), "memory")
    hits = search_with_store(system, store_index, QUERIES, len(ontology))
    assert all(sorted(row) == list(range(len(ontology))) for row in hits.terms.tolist())


@pytest.mark.engines("chromadb")
def test_a_folder_store_keeps_the_vectors(ontology: Ontology, tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, index=index)
    spec = f"chroma:{tmp_path / 'chroma'}"
    fill_store(index, dense_retriever("hash"), spec).store.close()
    store_index = open_collection(index, spec)
    hits = search_with_store(system, store_index, QUERIES, 2)
    store_index.store.close()
    assert hits.terms.tolist() == system.search(QUERIES, 2).terms.tolist()


def test_an_empty_store_and_systems_without_vectors_are_errors(ontology: Ontology, tmp_path: Path) -> None:
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    store_index = open_collection(index, "memory")
    with pytest.raises(StoreError, match="0 vectors"):
        search_with_store(TermRetriever("hash", ontology, index=index), store_index, QUERIES, 1)
    with pytest.raises(ParameterError):
        search_with_store(TermRetriever("tfidf:", ontology), store_index, QUERIES, 1)
