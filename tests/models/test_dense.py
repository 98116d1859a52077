"""Models that embed as retrievers: the geometry's own search over the embedder's vectors."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.geometry.spaces import geometry
from equipoise.models.embedder import embedder
from equipoise.models.lexical import BM25Retriever
from equipoise.models.retriever import retriever

DOCUMENTS = ["a red fox", "the blue whale sea", "red sea and fox", "a grey stone", "fox fox fox"]
QUERIES = ["red fox", "blue sea", "stone"]


class LengthModel:
    """Two numbers a text: enough to tell texts apart, and other ones for queries than for documents."""

    def encode(self, texts, **_):
        return np.array([[len(text), text.count(" ") + 1] for text in texts], dtype=np.float32)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean"])
def test_scores_and_hits_are_those_of_the_geometry(name):
    fitted = retriever("hash:,dims=32", geometry=name).fit(DOCUMENTS)
    model = embedder("hash:,dims=32")
    distances = geometry(name).distances(model.embed(QUERIES, role="query"), model.embed(DOCUMENTS))
    table = np.concatenate([scores.copy() for _, scores in fitted.score_blocks(QUERIES, block_bytes=1)])
    flat = np.round(distances, 5)
    assert np.array_equal(
        np.sign(flat[:, :, None] - flat[:, None, :]),
        np.sign(np.round(-table, 5)[:, :, None] - np.round(-table, 5)[:, None, :]),
    )
    assert fitted.search(QUERIES, 2).scores == pytest.approx(-np.sort(-table, axis=1)[:, :2], abs=1e-6)


def test_the_geometry_may_stand_in_the_spec_and_is_part_of_the_system():
    named = retriever("hash:,geometry=euclidean")
    assert named.fingerprint == retriever("hash:", geometry="euclidean").fingerprint
    assert named.fingerprint != retriever("hash:").fingerprint
    assert retriever(named.card.spec).fingerprint == named.fingerprint


def test_objects_and_embedders_are_wrapped():
    by_object = retriever(LengthModel(), geometry="euclidean").fit(DOCUMENTS)
    by_embedder = retriever(embedder(LengthModel()), geometry="euclidean").fit(DOCUMENTS)
    expected = [DOCUMENTS.index("a red fox")]
    assert by_object.search(["one two 3"], 1).indices[0].tolist() == expected
    assert by_embedder.search(["one two 3"], 1).indices[0].tolist() == expected


def test_a_retriever_is_returned_as_it_is_and_takes_no_options():
    made = BM25Retriever()
    assert retriever(made) is made
    with pytest.raises(ParameterError):
        retriever(made, k1=2)
    with pytest.raises(ParameterError):
        retriever(embedder("hash:"), dim=2)


@pytest.mark.parametrize("spec", ["hash:", "bm25:", "tfidf:", "sum:hash+bm25:"])
def test_documents_and_queries_may_come_from_a_generator(spec):
    listed = retriever(spec).fit(DOCUMENTS)
    fitted = retriever(spec).fit(text for text in DOCUMENTS)
    assert len(fitted) == len(DOCUMENTS)
    expected = listed.search(QUERIES, 2).indices
    assert np.array_equal(fitted.search(iter(QUERIES), 2).indices, expected)
    assert sum(len(scores) for _, scores in fitted.score_blocks(iter(QUERIES))) == len(QUERIES)
    with pytest.raises(InputError, match="NoneType"):
        retriever(spec).fit(None)


def test_wrong_input_is_refused():
    with pytest.raises(UnknownNameError, match="euclidian") as caught:
        retriever("hash:", geometry="euclidian")
    assert "euclidean" in caught.value.hint
    with pytest.raises(ParameterError, match="bm25"):
        retriever("bm25:", geometry="dot")
    fitted = retriever("hash:").fit(DOCUMENTS)
    with pytest.raises(ParameterError, match=r"6.*5 documents"):
        fitted.search(QUERIES, 6)
    with pytest.raises(InputError):
        fitted.search([], 1)
    with pytest.raises(InputError):
        retriever("hash:").fit([])
