"""Systems that search a vector store: hits and recall of the index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models.dense import RECALL_QUERIES, store_label
from equipoise.models.encoder import ModelCard
from equipoise.models.rerank import RerankedRetriever, Reranker
from equipoise.models.retriever import retriever
from equipoise.models.stores import open_store
from equipoise.models.stores.base import VectorStore, pad_hits
from equipoise.models.stores.memory import MemoryStore

RNG = np.random.default_rng(7)
WORDS = [f"w{number}" for number in range(40)]
DOCUMENTS = [" ".join(RNG.choice(WORDS, 6)) for _ in range(60)]
QUERIES = [" ".join(RNG.choice(WORDS, 3)) for _ in range(25)]


class HalfIndexedStore(MemoryStore):
    """An index of every second document; it returns too few hits for a large k."""

    kind = "half-indexed"

    def __init__(self, collection: str, dims: int, geometry: str) -> None:
        super().__init__(collection, dims, geometry)
        self.exact = False

    def _search(self, queries, k):
        ids, scores = super()._search(queries, self._count())
        rows = zip(ids.tolist(), scores.tolist(), strict=True)
        hits_of_rows = [
            [(name, score) for name, score in zip(names, values, strict=True) if int(name) % 2][:k]
            for names, values in rows
        ]
        return pad_hits(hits_of_rows, k)


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("spec", ["memory", "faiss:flat"])
def test_exact_stores_agree_with_search_without_a_store(spec: str, geometry: str) -> None:
    if spec.startswith("faiss"):
        pytest.importorskip("faiss")
    expected = retriever("hash:,dims=48", geometry=geometry).fit(DOCUMENTS).search(QUERIES, 7)
    fitted = retriever("hash:,dims=48", geometry=geometry, store=spec).fit(DOCUMENTS)
    hits = fitted.search(QUERIES, 7)
    np.testing.assert_allclose(hits.scores, expected.scores, atol=1e-5)
    assert fitted.index_recall is None
    assert fitted.indexed is not None
    assert fitted.indexed.store.kind == spec.partition(":")[0]


def test_equal_documents_are_in_their_order() -> None:
    hits = retriever("hash:", store="memory").fit(["same words"] * 12 + ["another"]).search(["same"], 12)
    assert hits.indices[0].tolist() == list(range(12))


def test_recall_of_approximate_indexes_is_measured_at_the_first_search() -> None:
    pytest.importorskip("faiss")
    fitted = retriever("hash:,dims=48,store=faiss:hnsw").fit(DOCUMENTS)
    assert fitted.index_recall is None
    fitted.search(QUERIES, 5)
    report = fitted.index_recall
    assert report is not None
    assert (report.k, len(report.per_query)) == (5, len(QUERIES))
    fitted.search(QUERIES[:1], 2)
    assert fitted.index_recall is report


def test_recall_is_the_share_of_exact_hits() -> None:
    exact = retriever("hash:,dims=256").fit(DOCUMENTS).search(QUERIES, 10)
    fitted = retriever("hash:,dims=256", store=HalfIndexedStore("f", 256, "cosine")).fit(DOCUMENTS)
    hits = fitted.search(QUERIES, 10)
    assert fitted.index_recall is not None
    last_exact_score = exact.scores[:, -1:]
    n_exact = (hits.scores >= last_exact_score - 1e-6).sum(axis=1)
    np.testing.assert_allclose(fitted.index_recall.per_query, n_exact / 10)
    assert 0 < fitted.index_recall.recall < 1
    assert (hits.indices % 2 == 1).all()


def test_recall_is_measured_on_a_limited_number_of_queries() -> None:
    queries = [f"w{number % 40} w{number // 40}" for number in range(3 * RECALL_QUERIES)]
    fitted = retriever("hash:,dims=32", store=HalfIndexedStore("f", 32, "cosine")).fit(DOCUMENTS)
    fitted.search(queries, 3)
    assert fitted.index_recall is not None
    assert len(fitted.index_recall.per_query) == RECALL_QUERIES


def test_missing_hits_are_filled_with_the_other_documents() -> None:
    fitted = retriever("hash:,dims=32", store=HalfIndexedStore("f", 32, "cosine")).fit(DOCUMENTS)
    hits = fitted.search(QUERIES, 50)
    assert all(len(set(row)) == 50 for row in hits.indices.tolist())
    assert (hits.indices[:, :30] % 2 == 1).all()
    assert hits.indices[0, 30:].tolist() == list(range(0, 40, 2))
    assert (hits.scores[:, 30:] == -np.inf).all()


class LengthReranker(Reranker):
    """Scores documents by their length."""

    card = ModelCard("length", "length")
    fingerprint = "length"

    def score(self, query, documents):
        return np.array([float(len(text)) for text in documents])


def test_reranked_systems_have_the_recall_of_their_base() -> None:
    base = retriever("hash:,dims=32", store=HalfIndexedStore("f", 32, "cosine"))
    fitted = RerankedRetriever(base, LengthReranker(), depth=40).fit(iter(DOCUMENTS))
    hits = fitted.search(QUERIES, 50)
    assert all(len(set(row)) == 50 for row in hits.indices.tolist())
    assert fitted.index_recall is not None
    assert fitted.index_recall.recall < 1


def test_score_blocks_are_exact_with_a_store() -> None:
    without_store = retriever("hash:,dims=32").fit(DOCUMENTS)
    fitted = retriever("hash:,dims=32", store=HalfIndexedStore("f", 32, "cosine")).fit(DOCUMENTS)
    for (_, scores), (_, expected) in zip(
        fitted.score_blocks(QUERIES), without_store.score_blocks(QUERIES), strict=True
    ):
        np.testing.assert_array_equal(scores, expected)


def test_the_store_is_part_of_the_spec_and_the_fingerprint() -> None:
    system = retriever("hash:", store="memory")
    assert system.card.spec == "hash,store=memory"
    assert retriever(system.card.spec).fingerprint == system.fingerprint
    assert system.fingerprint != retriever("hash:").fingerprint


def test_names_hide_passwords() -> None:
    for spec in ("pgvector:postgresql://me:pass@word@host:1/db?password=pass", "qdrant:http://a:pass@host:1"):
        assert "pass" not in store_label(spec)
    system = retriever("hash:,store=pgvector:postgresql://me:secret@host/db")
    assert "secret" not in system.card.spec + repr(system.embedder.spec)


@pytest.mark.engines("chromadb")
def test_persistent_stores_are_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("chromadb")
    spec = f"chroma:{tmp_path / 'base'}"
    first = retriever("hash:,dims=16", store=spec).fit(DOCUMENTS)
    expected = first.search(QUERIES, 3)
    first.close()
    sent_sizes: list[int] = []
    add = VectorStore.add
    monkeypatch.setattr(
        VectorStore, "add", lambda self, ids, *rest: sent_sizes.append(len(ids)) or add(self, ids, *rest)
    )
    reopened = retriever("hash:,dims=16", store=spec).fit(DOCUMENTS)
    np.testing.assert_array_equal(reopened.search(QUERIES, 3).scores, expected.scores)
    other = retriever("hash:,dims=16", store=spec).fit(DOCUMENTS[:10])
    assert other.search(QUERIES, 10).indices.max() == 9
    assert sent_sizes == [10]
    reopened.close()
    other.close()


def test_mismatched_stores_raise_errors_before_embedding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled = open_store("memory", dims=32)
    filled.add(["x"], [[1.0] * 32])
    for store, fragment in (
        (filled, "holds 1 vectors already"),
        (open_store("memory", dims=32, geometry="dot"), "compares by dot, and the system by cosine"),
        (open_store("memory", dims=3), "which have 32"),
    ):
        system = retriever("hash:,dims=32", store=store)
        monkeypatch.setattr(system.embedder, "embed", None)
        with pytest.raises(ParameterError, match=fragment):
            system.fit(DOCUMENTS)
    system = retriever("hash:", store="fais")
    monkeypatch.setattr(system.embedder, "embed", None)
    with pytest.raises(UnknownNameError, match="'fais'"):
        system.fit(DOCUMENTS)


@pytest.mark.parametrize("spec", ["bm25", "tfidf", "sum:hash+bm25"])
def test_stores_of_systems_without_vectors_raise_parameter_error(spec: str) -> None:
    with pytest.raises(ParameterError):
        retriever(spec, store="memory")
