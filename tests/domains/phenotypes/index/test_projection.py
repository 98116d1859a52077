"""Single queries with the projection give the results of the full product, for any vectors and fusions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.phenotypes.index import retriever as term_retriever
from equipoise.domains.phenotypes.index import stored_vectors
from equipoise.domains.phenotypes.index.files import component_texts
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.index.stored_vectors import ProjectionPrefilter, StoredVectorScorer
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.models.dense import DenseRetriever
from equipoise.models.retriever import retriever
from toy_ontology import obo

WORDS = ["acute", "chronic", "mild", "renal", "hepatic", "retinal", "pain", "loss", "growth", "fever", "cyst"]


@pytest.fixture(scope="module")
def many_terms(tmp_path_factory: pytest.TempPathFactory) -> Ontology:
    """Terms with names of three words and a number, some with equal synonyms."""
    rng = np.random.default_rng(0)
    blocks = [
        f"\n[Term]\nid: T:{number}\nname: {' '.join(rng.choice(WORDS, 3))} {number}\n"
        f'synonym: "{" ".join(rng.choice(WORDS, 2))}" EXACT []\n'
        for number in range(600)
    ]
    return load_ontology(obo(tmp_path_factory.mktemp("many") / "many.obo", "".join(blocks)))


@given(
    seed=st.integers(0, 10_000),
    spec=st.sampled_from(["hash,dim=6", "hash,dim=6,geometry=dot", "hash,dim=6,geometry=euclidean"]),
    spread=st.sampled_from([0.001, 0.1, 10.0]),
    n_leading=st.integers(1, 6),
    fused=st.booleans(),
)
def test_the_best_terms_equal_those_of_the_full_product(
    seed: int, spec: str, spread: float, n_leading: int, fused: bool
) -> None:
    rng = np.random.default_rng(seed)
    synonyms = [[f"s{term} {number}" for number in range(rng.integers(4))] for term in range(40)]
    texts = component_texts([f"l{term}" for term in range(40)], synonyms, [""] * 40)
    vectors = (rng.normal(size=6) + spread * rng.normal(size=(len(texts) + 1, 6))).astype(np.float32)
    vectors[rng.integers(len(texts), size=20)] = vectors[0]
    system = retriever(spec)
    assert isinstance(system, DenseRetriever)
    fitted = StoredVectorScorer(system, vectors[:-1])
    others = rng.random(len(texts)) if fused else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_vectors, "N_LEADING", n_leading)
        patch.setattr(stored_vectors, "_MAX_PROJECTED_SHARE", 1.0)
        prefilter = ProjectionPrefilter(fitted, texts, len(texts))
        top = prefilter.top_k(fitted.prepared(vectors[-1:])[0], others, 5)
    assert top is not None
    ((_, scores),) = fitted.vector_blocks(vectors[-1:], 1, len(texts))
    total = scores[0].astype(np.float64) + (0.0 if others is None else others)
    expected = np.full(40, -np.inf)
    np.maximum.at(expected, texts.term, total)
    noise = 1e-5 * max(1.0, float(np.abs(scores).max()))
    assert top[1][0] == pytest.approx(-np.sort(-expected)[:5], abs=noise)
    assert expected[top[0][0]] == pytest.approx(top[1][0], abs=noise)
    assert total[top[2][0]] == pytest.approx(top[1][0], abs=noise)
    assert np.array_equal(texts.term[top[2][0]], top[0][0])
    same = top[1][0, 1:] == top[1][0, :-1]
    assert (np.diff(top[0][0])[same] > 0).all(), "equal scores are not in the order of the ontology"


@pytest.mark.parametrize("spec", ["hash", "sum:hash+tfidf:", "sum:hash+bm25:", "sum:hash+tfidf:+bm25:"])
@pytest.mark.parametrize("strategy", ["label_only", "label_synonyms_max", "all_max"])
def test_a_search_of_one_text_gives_the_hits_of_a_batch(
    many_terms: Ontology, monkeypatch: pytest.MonkeyPatch, spec: str, strategy: str
) -> None:
    monkeypatch.setattr(term_retriever, "_MIN_PROJECTED", 0)
    monkeypatch.setattr(stored_vectors, "_MAX_PROJECTED_SHARE", 0.9)
    system = TermRetriever(spec, many_terms, strategy=strategy)
    texts = ["renal pain", "Mild growth 7", "Nierenschmerz", "acute fever", "chronische Zyste", "loss"]
    batch = system.search(texts, 5)
    single_hits = [system.search([text], 5) for text in texts]
    assert system._projected is not None
    for row, hits in enumerate(single_hits):
        assert hits.scores[0] == pytest.approx(batch.scores[row], abs=1e-6)
        separated = np.abs(np.diff(batch.scores[row])) > 1e-6
        clear = np.append(separated, False) & np.insert(separated, 0, True)
        assert np.array_equal(hits.terms[0][clear], batch.terms[row][clear])
        assert np.array_equal(hits.component[0][clear], batch.component[row][clear])


@pytest.mark.parametrize("strategy", ["label_synonyms_min", "all_weighted"])
def test_other_strategies_and_small_ontologies_are_not_projected(
    many_terms: Ontology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    small_retriever = TermRetriever("hash", many_terms)
    monkeypatch.setattr(term_retriever, "_MIN_PROJECTED", 0)
    other_retriever = TermRetriever("hash", many_terms, strategy=strategy)
    for _ in range(3):
        other_retriever.search(["renal pain"], 3)
    assert other_retriever._projected is None
    monkeypatch.undo()
    for _ in range(3):
        small_retriever.search(["renal pain"], 3)
    assert small_retriever._projected is None
