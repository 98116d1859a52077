"""A vector store proposes terms; their scores are exact over all components."""

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
def test_with_all_terms_proposed_the_answer_is_the_exact_one(ontology: Ontology, tmp_path: Path, strategy: str) -> None:
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, strategy=strategy, index=index)
    with fill_store(index, dense_retriever("hash"), "memory").store as store:
        held = vector_store.StoreIndex(store, len(index))
        found = search_with_store(system, held, QUERIES, 4)
    exact = system.search(QUERIES, 4)
    np.testing.assert_allclose(found.scores, exact.scores, atol=1e-6)
    assert found.terms.tolist() == exact.terms.tolist()
    assert found.component.tolist() == exact.component.tolist()


def test_a_short_list_still_scores_over_all_components(
    ontology: Ontology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "N_STORE_CANDIDATES", 1)
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, strategy="all_min", index=index)
    held = fill_store(index, dense_retriever("hash"), "memory")
    found = search_with_store(system, held, QUERIES, 1)
    for query, term in enumerate(found.terms[:, 0]):
        ((_, scores),) = system.score_blocks([QUERIES[query]])
        assert found.scores[query, 0] == pytest.approx(scores[0, term], abs=1e-6)


def test_the_store_is_asked_again_until_it_proposes_enough_terms(
    ontology: Ontology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "N_STORE_CANDIDATES", 1)
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, index=index)
    held = fill_store(index, dense_retriever("hash"), "memory")
    found = search_with_store(system, held, QUERIES, len(ontology))
    assert all(sorted(row) == list(range(len(ontology))) for row in found.terms.tolist())


@pytest.mark.engines("chromadb")
def test_a_folder_store_keeps_the_vectors(ontology: Ontology, tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    system = TermRetriever("hash", ontology, index=index)
    spec = f"chroma:{tmp_path / 'chroma'}"
    fill_store(index, dense_retriever("hash"), spec).store.close()
    held = open_collection(index, spec)
    found = search_with_store(system, held, QUERIES, 2)
    held.store.close()
    assert found.terms.tolist() == system.search(QUERIES, 2).terms.tolist()


def test_an_empty_store_and_systems_without_vectors_are_refused(ontology: Ontology, tmp_path: Path) -> None:
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    held = open_collection(index, "memory")
    with pytest.raises(StoreError, match="holds 0 vectors"):
        search_with_store(TermRetriever("hash", ontology, index=index), held, QUERIES, 1)
    with pytest.raises(ParameterError):
        search_with_store(TermRetriever("tfidf:", ontology), held, QUERIES, 1)
