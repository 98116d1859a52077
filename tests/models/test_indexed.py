"""Systems that search a vector store: its answer, and what its index loses of the exact one."""

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


class Forgetful(MemoryStore):
    """An index that knows every second document only, and so returns too few where many are asked for."""

    kind = "forgetful"

    def __init__(self, collection: str, dims: int, geometry: str) -> None:
        super().__init__(collection, dims, geometry)
        self.exact = False

    def _search(self, queries, k):
        ids, scores = super()._search(queries, self._count())
        rows = zip(ids.tolist(), scores.tolist(), strict=True)
        kept = [
            [(name, score) for name, score in zip(names, values, strict=True) if int(name) % 2][:k]
            for names, values in rows
        ]
        return pad_hits(kept, k)


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("spec", ["memory", "faiss:flat"])
def test_an_exact_store_finds_what_search_without_one_finds(spec: str, geometry: str) -> None:
    if spec.startswith("faiss"):
        pytest.importorskip("faiss")
    plain = retriever("hash:,dims=48", geometry=geometry).fit(DOCUMENTS).search(QUERIES, 7)
    fitted = retriever("hash:,dims=48", geometry=geometry, store=spec).fit(DOCUMENTS)
    found = fitted.search(QUERIES, 7)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-5)
    assert fitted.index_recall is None
    assert fitted.indexed is not None
    assert fitted.indexed.store.kind == spec.partition(":")[0]


def test_equal_documents_stand_in_their_order() -> None:
    found = retriever("hash:", store="memory").fit(["same words"] * 12 + ["another"]).search(["same"], 12)
    assert found.indices[0].tolist() == list(range(12))


def test_an_approximate_index_is_measured_at_the_first_search() -> None:
    pytest.importorskip("faiss")
    fitted = retriever("hash:,dims=48,store=faiss:hnsw").fit(DOCUMENTS)
    assert fitted.index_recall is None
    fitted.search(QUERIES, 5)
    report = fitted.index_recall
    assert report is not None
    assert (report.k, len(report.per_query)) == (5, len(QUERIES))
    fitted.search(QUERIES[:1], 2)
    assert fitted.index_recall is report


def test_recall_is_the_share_of_the_exact_answer_that_the_store_returns() -> None:
    exact = retriever("hash:,dims=256").fit(DOCUMENTS).search(QUERIES, 10)
    fitted = retriever("hash:,dims=256", store=Forgetful("f", 256, "cosine")).fit(DOCUMENTS)
    found = fitted.search(QUERIES, 10)
    assert fitted.index_recall is not None
    last = exact.scores[:, -1:]
    as_good = (found.scores >= last - 1e-6).sum(axis=1)
    np.testing.assert_allclose(fitted.index_recall.per_query, as_good / 10)
    assert 0 < fitted.index_recall.recall < 1
    assert (found.indices % 2 == 1).all()


def test_at_most_so_many_queries_are_measured() -> None:
    queries = [f"w{number % 40} w{number // 40}" for number in range(3 * RECALL_QUERIES)]
    fitted = retriever("hash:,dims=32", store=Forgetful("f", 32, "cosine")).fit(DOCUMENTS)
    fitted.search(queries, 3)
    assert fitted.index_recall is not None
    assert len(fitted.index_recall.per_query) == RECALL_QUERIES


def test_a_row_left_short_ends_in_documents_that_were_not_returned() -> None:
    fitted = retriever("hash:,dims=32", store=Forgetful("f", 32, "cosine")).fit(DOCUMENTS)
    found = fitted.search(QUERIES, 50)
    assert all(len(set(row)) == 50 for row in found.indices.tolist())
    assert (found.indices[:, :30] % 2 == 1).all()
    assert found.indices[0, 30:].tolist() == list(range(0, 40, 2))
    assert (found.scores[:, 30:] == -np.inf).all()


class ByLength(Reranker):
    """Prefers long documents."""

    card = ModelCard("length", "length")
    fingerprint = "length"

    def score(self, query, documents):
        return np.array([float(len(text)) for text in documents])


def test_a_reranked_system_tells_the_recall_of_its_base() -> None:
    base = retriever("hash:,dims=32", store=Forgetful("f", 32, "cosine"))
    fitted = RerankedRetriever(base, ByLength(), depth=40).fit(iter(DOCUMENTS))
    found = fitted.search(QUERIES, 50)
    assert all(len(set(row)) == 50 for row in found.indices.tolist())
    assert fitted.index_recall is not None
    assert fitted.index_recall.recall < 1


def test_scores_of_all_documents_stay_exact() -> None:
    plain = retriever("hash:,dims=32").fit(DOCUMENTS)
    fitted = retriever("hash:,dims=32", store=Forgetful("f", 32, "cosine")).fit(DOCUMENTS)
    for (_, ours), (_, theirs) in zip(fitted.score_blocks(QUERIES), plain.score_blocks(QUERIES), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_store_is_part_of_the_system() -> None:
    named = retriever("hash:", store="memory")
    assert named.card.spec == "hash,store=memory"
    assert retriever(named.card.spec).fingerprint == named.fingerprint
    assert named.fingerprint != retriever("hash:").fingerprint


def test_a_password_is_not_part_of_the_name() -> None:
    for spec in ("pgvector:postgresql://me:pass@word@host:1/db?password=pass", "qdrant:http://a:pass@host:1"):
        assert "pass" not in store_label(spec)
    system = retriever("hash:,store=pgvector:postgresql://me:secret@host/db")
    assert "secret" not in system.card.spec + repr(system.embedder.spec)


@pytest.mark.engines("chromadb")
def test_a_second_run_finds_its_documents_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("chromadb")
    spec = f"chroma:{tmp_path / 'base'}"
    first = retriever("hash:,dims=16", store=spec).fit(DOCUMENTS)
    expected = first.search(QUERIES, 3)
    first.close()
    sent: list[int] = []
    add = VectorStore.add
    monkeypatch.setattr(VectorStore, "add", lambda self, ids, *rest: sent.append(len(ids)) or add(self, ids, *rest))
    again = retriever("hash:,dims=16", store=spec).fit(DOCUMENTS)
    np.testing.assert_array_equal(again.search(QUERIES, 3).scores, expected.scores)
    other = retriever("hash:,dims=16", store=spec).fit(DOCUMENTS[:10])
    assert other.search(QUERIES, 10).indices.max() == 9
    assert sent == [10]
    again.close()
    other.close()


def test_a_store_that_does_not_fit_is_refused_before_anything_is_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = open_store("memory", dims=32)
    held.add(["x"], [[1.0] * 32])
    for given, said in (
        (held, "holds 1 vectors already"),
        (open_store("memory", dims=32, geometry="dot"), "compares by dot, and the system by cosine"),
        (open_store("memory", dims=3), "which have 32"),
    ):
        system = retriever("hash:,dims=32", store=given)
        monkeypatch.setattr(system.embedder, "embed", None)
        with pytest.raises(ParameterError, match=said):
            system.fit(DOCUMENTS)
    system = retriever("hash:", store="fais")
    monkeypatch.setattr(system.embedder, "embed", None)
    with pytest.raises(UnknownNameError, match="'fais'"):
        system.fit(DOCUMENTS)


@pytest.mark.parametrize("spec", ["bm25", "tfidf", "sum:hash+bm25"])
def test_systems_without_vectors_take_no_store(spec: str) -> None:
    with pytest.raises(ParameterError):
        retriever(spec, store="memory")
