"""Retrieval of terms: exact over all components, for every kind of system."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.phenotypes.index.aggregation import STRATEGIES, aggregate_scores
from equipoise.domains.phenotypes.index.build import build_index, open_indexes
from equipoise.domains.phenotypes.index.files import ComponentKind, term_texts
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.errors import InputError, ParameterError, StoreError
from equipoise.models.retriever import retriever
from toy_ontology import TERMS, obo

QUERIES = ["seizure with fever", "small body height", "coughing", "fits"]
SPECS = ["hash", "tfidf:", "bm25:", "sum:hash+tfidf:", "rrf:hash+bm25:", "hash,geometry=euclidean"]


def all_scores(system: TermRetriever, queries: list[str]) -> np.ndarray:
    all_rows = np.full((len(queries), len(system.ontology)), np.nan)
    for rows, scores in system.score_blocks(queries):
        all_rows[rows] = scores
    return all_rows


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scores_are_the_aggregated_scores_of_the_plain_retriever(ontology: Ontology, spec: str, strategy: str) -> None:
    texts = term_texts(ontology)
    ((_, plain),) = retriever(spec).fit(texts.texts).score_blocks(QUERIES)
    scores = all_scores(TermRetriever(spec, ontology, strategy=strategy), QUERIES)
    np.testing.assert_allclose(scores, aggregate_scores(plain, texts, strategy), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("multi_vector", [True, False])
@pytest.mark.parametrize("spec", ["hash", "sum:hash+tfidf:", "sum:hash+hash,dim=16"])
def test_a_stored_index_does_not_change_scores(
    ontology: Ontology, tmp_path: Path, spec: str, multi_vector: bool
) -> None:
    for part in ("hash", "hash,dim=16"):
        build_index(ontology, part, tmp_path, multi_vector=multi_vector)
    stored = TermRetriever(
        spec, ontology, multi_vector=multi_vector, index=open_indexes(tmp_path, ontology, spec, multi_vector)
    )
    fresh = TermRetriever(spec, ontology, multi_vector=multi_vector)
    assert np.array_equal(all_scores(stored, QUERIES), all_scores(fresh, QUERIES))
    assert stored.fingerprint == fresh.fingerprint


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("multi_vector", [True, False])
def test_search_returns_the_best_of_all_scores(ontology: Ontology, spec: str, multi_vector: bool) -> None:
    system = TermRetriever(spec, ontology, multi_vector=multi_vector)
    scores = all_scores(system, QUERIES)
    hits = system.search(QUERIES, 4)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    assert hits.terms.tolist() == expected.tolist()
    assert np.array_equal(hits.scores, np.take_along_axis(scores, expected, axis=1))


@pytest.mark.parametrize("strategy", [*STRATEGIES, "definition", "max(synonyms)"])
def test_the_component_of_a_hit_is_the_best_that_the_strategy_reads(ontology: Ontology, strategy: str) -> None:
    system = TermRetriever("tfidf:", ontology, strategy=strategy)
    texts = system.components
    ((_, scores),) = system.component_blocks(QUERIES)
    kinds = {
        "label": ComponentKind.LABEL,
        "synonyms": ComponentKind.SYNONYM,
        "definition": ComponentKind.DEFINITION,
    }
    read = [kinds[part] for part in system.expression.parts]
    hits = system.search(QUERIES, len(ontology))
    for query, terms in enumerate(hits.terms):
        for position, term in enumerate(terms):
            columns = np.flatnonzero((texts.term == term) & np.isin(texts.kind, read))
            if not len(columns):
                columns = np.flatnonzero((texts.term == term) & (texts.kind == ComponentKind.LABEL))
            column = hits.component[query, position]
            assert column in columns
            assert scores[query, column] == scores[query, columns].max()


def test_a_synonym_retrieves_its_term(ontology: Ontology) -> None:
    system = TermRetriever("tfidf:", ontology)
    hits = system.search(["Convulsions"], 1)
    assert ontology.labels[hits.terms[0, 0]] == "Seizure"
    assert system.components.texts[hits.component[0, 0]] == "Convulsions"
    single_vector = TermRetriever("tfidf:", ontology, multi_vector=False).search(["Convulsions"], 1)
    assert single_vector.terms.tolist() == hits.terms.tolist()
    assert single_vector.scores[0, 0] < hits.scores[0, 0]


def test_terms_with_the_same_text_tie_in_the_order_of_the_ontology(tmp_path: Path) -> None:
    equal_terms = "".join(f"\n[Term]\nid: T:{number}\nname: Twin\nis_a: T:1\n" for number in range(20, 50))
    ontology = load_ontology(obo(tmp_path / "twins.obo", TERMS + equal_terms))
    hits = TermRetriever("hash", ontology).search(["Twin"], 30)
    assert len(set(hits.scores[0])) == 1
    assert hits.terms[0].tolist() == list(range(6, 36))


def test_block_size_does_not_change_scores(ontology: Ontology) -> None:
    system = TermRetriever("sum:hash+tfidf:", ontology)
    blocks = [scores.copy() for _, scores in system.score_blocks(QUERIES, block_bytes=1)]
    assert len(blocks) == len(QUERIES)
    np.testing.assert_allclose(np.concatenate(blocks), all_scores(system, QUERIES), rtol=1e-6)


def test_another_strategy_shares_the_fitted_system(ontology: Ontology) -> None:
    system = TermRetriever("tfidf:", ontology)
    system.search(["fits"], 1)
    other = system.with_strategy("definition")
    assert other.fitted is system.fitted
    assert other.fingerprint != system.fingerprint
    fresh = TermRetriever("tfidf:", ontology, strategy="definition")
    hits, expected = other.search(QUERIES, 3), fresh.search(QUERIES, 3)
    assert hits.terms.tolist() == expected.terms.tolist()
    assert hits.component.tolist() == expected.component.tolist()
    assert "label_synonyms_max" in repr(system)
    assert "definition" in repr(other)


def test_an_index_of_another_release_kind_or_model_is_an_error(
    ontology: Ontology, next_release: Ontology, tmp_path: Path
) -> None:
    index = build_index(ontology, "hash", tmp_path, multi_vector=True)
    with pytest.raises(StoreError, match="2025-01-01"):
        TermRetriever("hash", next_release, index=index)
    with pytest.raises(StoreError):
        TermRetriever("hash", ontology, multi_vector=False, index=index)
    with pytest.raises(StoreError, match="hash,dim=16"):
        TermRetriever("hash,dim=16", ontology, index=index).search(["fits"], 1)


def test_empty_queries_and_invalid_depths_are_errors(ontology: Ontology) -> None:
    system = TermRetriever("tfidf:", ontology)
    with pytest.raises(InputError, match="empty"):
        system.search(["fits", " "], 1)
    with pytest.raises(InputError):
        system.search([], 1)
    for k in (0, 7):
        with pytest.raises(ParameterError, match=rf"{k}.*6 terms"):
            system.search(["fits"], k)


def test_every_label_retrieves_its_term_first(ontology: Ontology) -> None:
    hits = TermRetriever("tfidf:", ontology).search(ontology.labels, 1)
    assert hits.terms[:, 0].tolist() == list(range(len(ontology)))
