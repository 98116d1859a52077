"""The interface of embedding-eval is supported."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.fair.compat import InMemoryVectorStore
from equipoise.errors import DuplicateError, ParameterError, ShapeError, UnknownNameError


@pytest.fixture
def store() -> InMemoryVectorStore:
    memory_store = InMemoryVectorStore()
    memory_store.connect()
    memory_store.create_collection("test", dimensions=3)
    return memory_store


def test_search_returns_ids_texts_and_scores(store: InMemoryVectorStore) -> None:
    store.upsert("test", ["a", "b", "c"], np.eye(3), texts=["one", "two", "three"])
    results = store.search("test", [0.0, 2.0, 1.0], top_k=2)
    assert [(result.id, result.text) for result in results] == [("b", "two"), ("c", "three")]
    assert results[0].score == pytest.approx(2 / 5**0.5)


def test_texts_are_optional_and_top_k_defaults_to_ten(store: InMemoryVectorStore) -> None:
    store.upsert("test", [f"{number:02d}" for number in range(12)], [[1.0, 0.0, 0.0]] * 12)
    results = store.search("test", np.array([1.0, 0.0, 0.0]))
    assert [(result.id, result.score) for result in results] == [(f"{number:02d}", 1.0) for number in range(10)]


def test_upsert_replaces_vectors_and_texts(store: InMemoryVectorStore) -> None:
    store.upsert("test", ["a"], [[1, 0, 0]], texts=["old"])
    store.upsert("test", ["a"], [[0, 1, 0]], texts=["new"])
    (best,) = store.search("test", [0, 1, 0])
    assert (best.id, best.score, best.text) == ("a", 1.0, "new")


def test_collections_are_separate_and_unknown_names_get_a_suggestion(store: InMemoryVectorStore) -> None:
    store.create_collection("other", dimensions=2)
    store.upsert("other", ["x"], [[1, 0]])
    assert store.search("test", [1, 0, 0]) == []
    with pytest.raises(UnknownNameError) as error:
        store.search("tets", [1, 0, 0])
    assert error.value.hint == "did you mean test?"


def test_invalid_calls_raise_errors(store: InMemoryVectorStore) -> None:
    with pytest.raises(DuplicateError, match="collection 'test' already"):
        store.create_collection("test", dimensions=3)
    with pytest.raises(ShapeError, match="4 dimensions"):
        store.search("test", [1, 2, 3, 4])
    with pytest.raises(ShapeError):
        store.search("test", [[1, 2, 3]])
    with pytest.raises(ParameterError, match="k is 0"):
        store.search("test", [1, 2, 3], top_k=0)
    with pytest.raises(ParameterError, match="dims is -1"):
        store.create_collection("bad", dimensions=-1)
