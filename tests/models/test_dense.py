"""Embedding models as retrievers: search by a geometry over the vectors of an embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.domains.bench.retrieval_data import retrieve
from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.geometry.spaces import geometry
from equipoise.io.dataset import Dataset
from equipoise.models import dense
from equipoise.models.embedder import embedder
from equipoise.models.lexical import BM25Retriever
from equipoise.models.retriever import retriever

DOCUMENTS = ["a red fox", "the blue whale sea", "red sea and fox", "a grey stone", "fox fox fox"]
QUERIES = ["red fox", "blue sea", "stone"]


class LengthModel:
    """Two-dimensional vectors: the length and the number of words of a text."""

    def encode(self, texts, **_):
        return np.array([[len(text), text.count(" ") + 1] for text in texts], dtype=np.float32)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean"])
def test_scores_and_hits_agree_with_the_geometry(name):
    fitted = retriever("hash:,dims=32", geometry=name).fit(DOCUMENTS)
    model = embedder("hash:,dims=32")
    distances = geometry(name).distances(model.embed(QUERIES, role="query"), model.embed(DOCUMENTS))
    table = np.concatenate([scores.copy() for _, scores in fitted.score_blocks(QUERIES, block_bytes=1)])
    rounded = np.round(distances, 5)
    assert np.array_equal(
        np.sign(rounded[:, :, None] - rounded[:, None, :]),
        np.sign(np.round(-table, 5)[:, :, None] - np.round(-table, 5)[:, None, :]),
    )
    assert fitted.search(QUERIES, 2).scores == pytest.approx(-np.sort(-table, axis=1)[:, :2], abs=1e-6)


def test_the_geometry_is_part_of_the_spec_and_the_fingerprint():
    system = retriever("hash:,geometry=euclidean")
    assert system.fingerprint == retriever("hash:", geometry="euclidean").fingerprint
    assert system.fingerprint != retriever("hash:").fingerprint
    assert retriever(system.card.spec).fingerprint == system.fingerprint


def test_objects_and_embedders_are_wrapped():
    by_object = retriever(LengthModel(), geometry="euclidean").fit(DOCUMENTS)
    by_embedder = retriever(embedder(LengthModel()), geometry="euclidean").fit(DOCUMENTS)
    expected = [DOCUMENTS.index("a red fox")]
    assert by_object.search(["one two 3"], 1).indices[0].tolist() == expected
    assert by_embedder.search(["one two 3"], 1).indices[0].tolist() == expected


def test_retriever_objects_are_returned_unchanged_and_take_no_options():
    retriever_object = BM25Retriever()
    assert retriever(retriever_object) is retriever_object
    with pytest.raises(ParameterError):
        retriever(retriever_object, k1=2)
    with pytest.raises(ParameterError):
        retriever(embedder("hash:"), dim=2)


@pytest.mark.parametrize("spec", ["hash:", "bm25:", "tfidf:", "sum:hash+bm25:"])
def test_documents_and_queries_may_come_from_a_generator(spec):
    fitted_on_list = retriever(spec).fit(DOCUMENTS)
    fitted = retriever(spec).fit(text for text in DOCUMENTS)
    assert len(fitted) == len(DOCUMENTS)
    expected = fitted_on_list.search(QUERIES, 2).indices
    assert np.array_equal(fitted.search(iter(QUERIES), 2).indices, expected)
    assert sum(len(scores) for _, scores in fitted.score_blocks(iter(QUERIES))) == len(QUERIES)
    with pytest.raises(InputError, match="NoneType"):
        retriever(spec).fit(None)


def test_invalid_input_raises_errors():
    with pytest.raises(UnknownNameError, match="euclidian") as error:
        retriever("hash:", geometry="euclidian")
    assert "euclidean" in error.value.hint
    with pytest.raises(ParameterError, match="bm25"):
        retriever("bm25:", geometry="dot")
    fitted = retriever("hash:").fit(DOCUMENTS)
    with pytest.raises(ParameterError, match=r"6.*5 documents"):
        fitted.search(QUERIES, 6)
    with pytest.raises(InputError):
        fitted.search([], 1)
    with pytest.raises(InputError):
        retriever("hash:").fit([])


TOPICS = ("fox", "whale", "stone", "rye", "train", "sea")
MANY_DOCUMENTS = [f"{TOPICS[number % 6]} number {number} of {TOPICS[number % 5]}" for number in range(60)]


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "SHARDED_TEXTS", 20)
    monkeypatch.setattr(dense, "SHARD_TEXTS", 16)


@pytest.mark.usefixtures("small_shards")
def test_a_corpus_in_shards_has_the_same_scores_hits_and_ranks(tmp_path: Path) -> None:
    data = Dataset(
        "d", dict(zip(map(str, range(60)), MANY_DOCUMENTS, strict=True)), {"q": "fox 12", "r": "sea"}, {"q": {"12": 1}}
    )
    system = retriever("hash:,dims=32", cache=False)
    fitted = system.fit(MANY_DOCUMENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "SHARDED_TEXTS", 1000)
        in_memory = system.fit(MANY_DOCUMENTS)
        retrieved_from_memory: dict[str, Any] = {}
        ranks = retrieve(system, data, top=3, retrieved=retrieved_from_memory).ranks
    assert isinstance(fitted, dense.FittedShards)
    assert len(fitted.shards.parts) == 4
    sharded_scores, scores = (
        np.concatenate([block.copy() for _, block in fitted_system.score_blocks(QUERIES)])
        for fitted_system in (fitted, in_memory)
    )
    np.testing.assert_allclose(sharded_scores, scores, atol=1e-6)
    assert np.array_equal(fitted.search(QUERIES, 5).indices, in_memory.search(QUERIES, 5).indices)
    retrieved: dict[str, Any] = {}
    assert np.array_equal(retrieve(system, data, top=3, retrieved=retrieved).ranks, ranks)
    assert {unit: [item for item, _ in hits] for unit, hits in retrieved.items()} == {
        unit: [item for item, _ in hits] for unit, hits in retrieved_from_memory.items()
    }


@pytest.mark.usefixtures("small_shards")
def test_documents_without_text_rank_last_in_shards_as_in_memory() -> None:
    items = {str(number): "" if number in (3, 12, 40) else text for number, text in enumerate(MANY_DOCUMENTS)}
    units = {"q": "fox 12", "r": "sea", "s": "rye"}
    qrels = {"q": {"12": 1, "13": 2, "40": 0}, "r": {"3": 1}, "s": {"15": 1}}
    data = Dataset("d", items, units, qrels)
    # Enough dimensions that no products cancel: in memory, rounding decides whether their sum is 0.
    system = retriever("hash:,dims=512", cache=False)
    retrieved: dict[str, Any] = {}
    from_shards = retrieve(system, data, top=60, retrieved=retrieved)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "SHARDED_TEXTS", 1000)
        from_memory = retrieve(system, data)
    for name in ("starts", "gain", "above", "tied", "candidates", "depth"):
        assert np.array_equal(getattr(from_shards, name), getattr(from_memory, name)), name
    assert from_shards.above.max() == 57
    assert all(len(hits) == 57 and not {"3", "12", "40"} & dict(hits).keys() for hits in retrieved.values())


@pytest.mark.usefixtures("small_shards")
def test_interrupted_embedding_resumes_at_the_shard(tmp_path: Path) -> None:
    def interrupted_after_two(work: Any, shards: Any) -> Iterator[tuple[int, Any]]:
        for index, shard in enumerate(shards):
            if index == 2:
                raise KeyboardInterrupt
            yield index, work(shard)

    sizes = []

    def counting_map(work: Any, shards: Any) -> Iterator[tuple[int, Any]]:
        for index, shard in enumerate(shards):
            sizes.append(len(shard))
            yield index, work(shard)

    system = retriever("hash:,dims=32")
    assert isinstance(system, dense.DenseRetriever)
    system.shard_folder, system.map_function = tmp_path, interrupted_after_two
    with pytest.raises(KeyboardInterrupt):
        system.fit(MANY_DOCUMENTS)
    system.map_function = counting_map
    fitted = system.fit(MANY_DOCUMENTS)
    assert sizes == [16, 12]
    assert np.array_equal(
        fitted.search(QUERIES, 5).indices, retriever("hash:,dims=32").fit(MANY_DOCUMENTS).search(QUERIES, 5).indices
    )
