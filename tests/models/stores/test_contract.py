"""The contract of all stores: the same calls give the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise.errors import (
    DuplicateError,
    InputError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    StoreError,
    UnknownNameError,
)
from equipoise.models.stores.base import Hits, VectorStore

GEOMETRIES = ("cosine", "dot", "euclidean")


def similarity(geometry: str, query: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The similarity by its definition, one pair at a time, in float64."""
    query, rows = query.astype(np.float64), rows.astype(np.float64)
    if geometry == "euclidean":
        return np.array([-sum((a - b) ** 2 for a, b in zip(query, row, strict=True)) for row in rows])
    products = np.array([sum(a * b for a, b in zip(query, row, strict=True)) for row in rows])
    if geometry == "dot":
        return products
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return np.divide(products, lengths, out=np.zeros(len(rows)), where=lengths > 0)


def assert_nearest(hits: Hits, stored: dict[str, np.ndarray[Any, Any]], queries: Any, k: int, geometry: str) -> None:
    """The hits are the best k stored vectors in order, with the scores of the definition."""
    names = list(stored)
    rows = np.array([stored[name] for name in names])
    assert hits.ids.shape == hits.scores.shape == (len(queries), min(k, len(names)))
    for row_index, query in enumerate(np.asarray(queries)):
        expected = similarity(geometry, query, rows)
        ids = hits.ids[row_index].tolist()
        assert len(set(ids)) == len(ids)
        expected_of_ids = np.array([expected[names.index(name)] for name in ids])
        np.testing.assert_allclose(hits.scores[row_index], expected_of_ids, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(hits.scores[row_index], np.sort(expected)[::-1][: len(ids)], rtol=1e-5, atol=1e-5)
        assert (np.diff(hits.scores[row_index]) <= 0).all()


def assert_mostly_found(hits: Hits, stored: dict[str, np.ndarray[Any, Any]], queries: Any) -> None:
    """Hits of an approximate index have exact scores and include over 95 % of the vectors."""
    n_hits = 0
    for ids, scores, query in zip(hits.ids.tolist(), hits.scores, queries, strict=True):
        found_ids = [name for name in ids if name is not None]
        assert ids == found_ids + [None] * (len(ids) - len(found_ids))
        expected = similarity("dot", query, np.array([stored[name] for name in found_ids]))
        np.testing.assert_allclose(scores[: len(found_ids)], expected, rtol=1e-5, atol=1e-5)
        assert np.isneginf(scores[len(found_ids) :]).all()
        n_hits += len(set(found_ids))
    assert n_hits > 0.95 * len(stored) * len(queries)


def fill_store(store: VectorStore, count: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Add random vectors to a store, and return them by id."""
    rows = np.random.default_rng(seed).normal(size=(count, store.dims)).astype(np.float32)
    stored = {f"item {number}": row for number, row in enumerate(rows)}
    store.add(list(stored), rows)
    return stored


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_search_agrees_with_the_definition(make: Any, geometry: str) -> None:
    store = make(8, geometry)
    stored = fill_store(store, 60)
    queries = np.random.default_rng(1).normal(size=(25, 8))
    assert store.count() == 60
    assert_nearest(store.search(queries, 7), stored, queries, 7, geometry)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_ties_are_in_the_order_of_their_ids(make: Any, geometry: str) -> None:
    store = make(2, geometry)
    names = ["delta", "Ä", "alpha", "b", "ab", "漢", "zeta", "10", "9", "gamma"]
    store.add([*names, "far"], [[2.0, 1.0]] * len(names) + [[-3.0, -1.0]])
    for k in (1, 3, 7, 11):
        hits = store.search([[2.0, 1.0]] * 30, k)
        for row in hits.ids.tolist():
            assert row == [*sorted(names), "far"][:k]


def test_add_replaces_vectors_and_texts(make: Any) -> None:
    store = make(2, "dot")
    store.add(["a", "b"], [[1, 0], [0, 1]], texts=["first", "second"])
    assert store.search([[1, 0]], 1).pairs(0) == [("a", 1.0)]
    store.add(["a", "c"], [[0, 5], [3, 0]])
    assert store.count() == 3
    assert store.search([[1, 0]], 3).pairs(0) == [("c", 3.0), ("a", 0.0), ("b", 0.0)]
    assert store.texts(["a", "b", "c", "none"]) == [None, "second", None, None]


def test_deleted_vectors_are_not_found(make: Any) -> None:
    store = make(2, "dot")
    store.add(["a", "b", "c"], [[1, 0], [2, 0], [3, 0]], texts=["x", "y", ""])
    assert store.search([[1, 0]], 1).pairs(0) == [("c", 3.0)]
    assert store.delete(["c", "absent"]) == 1
    assert store.count() == 2
    assert store.search([[1, 0]], 9).pairs(0) == [("b", 2.0), ("a", 1.0)]
    assert store.texts(["c", "b"]) == [None, "y"]
    assert store.delete(["c"]) == 0
    assert store.delete([]) == 0


def test_random_changes_agree_with_a_dict(make: Any) -> None:
    rng = np.random.default_rng(7)
    store = make(4, "euclidean")
    stored: dict[str, np.ndarray[Any, Any]] = {}
    for _ in range(12):
        names = [f"n{number}" for number in rng.choice(15, size=rng.integers(1, 6), replace=False)]
        if rng.random() < 0.65:
            rows = rng.integers(-3, 4, size=(len(names), 4)).astype(np.float32)
            store.add(names, rows)
            stored.update(zip(names, rows, strict=True))
        else:
            assert store.delete(names) == sum(stored.pop(name, None) is not None for name in names)
        assert store.count() == len(stored)
        queries = rng.normal(size=(3, 4))
        if stored:
            assert_nearest(store.search(queries, 5), stored, queries, 5, "euclidean")


def test_texts_are_returned_unchanged(make: Any) -> None:
    texts = ["plain", "", "Ünïcode 漢字 👩\u200d👧", "two\nlines\t'quoted' \"twice\" %s $1 \\"]
    store = make(2)
    names = ["a", "it's; DROP TABLE x --", 'say "hi"', "%s"]
    store.add(names, np.eye(2)[[0, 1, 0, 1]], texts=texts)
    assert store.texts(names) == texts
    assert set(store.search([[1, 1]], 4).ids[0]) == set(names)


def test_empty_stores_return_no_hits(make: Any) -> None:
    store = make(3)
    assert store.count() == 0
    assert store.search([[1, 2, 3], [0, 0, 1]], 5).ids.shape == (2, 0)
    store.add([], [])
    assert store.search(np.empty((0, 3)), 5).ids.shape == (0, 0)


def test_zero_vectors_have_similarity_zero(make: Any) -> None:
    store = make(2, "cosine")
    store.add(["away", "zero", "near"], [[-1, 0], [0, 0], [5, 0]])
    assert store.search([[1, 0]], 3).pairs(0) == [("near", 1.0), ("zero", 0.0), ("away", -1.0)]
    assert store.search([[0, 0]], 2).pairs(0) == [("away", 0.0), ("near", 0.0)]


def test_invalid_calls_raise_errors_and_change_nothing(make: Any) -> None:
    store = make(2)
    store.add(["a"], [[1, 0]], texts=["kept"])
    with pytest.raises(ShapeError, match=r"3 dimensions.*2"):
        store.add(["a"], [[1, 2, 3]])
    with pytest.raises(ShapeError, match="3 dimensions"):
        store.search([[1, 2, 3]], 1)
    with pytest.raises(ShapeError, match=r"1 ids.*2 vectors"):
        store.add(["b"], [[1, 2], [3, 4]])
    with pytest.raises(ShapeError, match=r"2 ids.*1 texts"):
        store.add(["b", "c"], [[1, 2], [3, 4]], texts=["one"])
    with pytest.raises(NotFiniteError, match="row 1"):
        store.add(["b", "c"], [[1, 2], [3, float("nan")]])
    with pytest.raises(NotFiniteError, match="row 0"):
        store.search([[1e300, 0.0]], 1)
    with pytest.raises(DuplicateError, match="'b'"):
        store.add(["b", "c", "b"], [[1, 2], [3, 4], [5, 6]])
    with pytest.raises(ParameterError, match="k is 0"):
        store.search([[1, 0]], 0)
    for ids in ("b", [3], [""], ["a\0b"]):
        with pytest.raises(InputError):
            store.add(ids, [[1, 2]])
    with pytest.raises(InputError):
        store.add(["a\ud800"], [[1, 2]])
    with pytest.raises(InputError, match="'a'"):
        store.add(["a"], [[1, 2]], texts=["\udfff"])
    assert store.count() == 1
    assert store.texts(["a"]) == ["kept"]


def test_closed_stores_raise_store_error(make: Any) -> None:
    with make(2) as store:
        store.add(["a"], [[1, 0]])
    store.close()
    for call in (store.count, lambda: store.search([[1, 0]], 1), lambda: store.add(["b"], [[0, 1]])):
        with pytest.raises(StoreError):
            call()


def test_many_queries_and_a_large_k(make: Any) -> None:
    store = make(4, "dot")
    stored = fill_store(store, 300, seed=3)
    queries = np.random.default_rng(4).normal(size=(40, 4))
    hits = store.search(queries, 300)
    if store.exact:
        assert_nearest(hits, stored, queries, 300, "dot")
    else:
        assert_mostly_found(hits, stored, queries)


def test_collections_are_persistent(make_persistent: Any) -> None:
    store = make_persistent(3, "dot")
    store.add(["a", "b"], [[1, 0, 0], [0, 1, 0]], texts=["one", "two"])
    store.close()
    reopened = make_persistent.reopen(store.collection)
    assert (reopened.dims, reopened.geometry, reopened.count()) == (3, "dot", 2)
    assert reopened.search([[0, 2, 0]], 1).pairs(0) == [("b", 2.0)]
    assert reopened.texts(["a"]) == ["one"]


def test_other_settings_of_a_collection_raise_parameter_error(make_persistent: Any) -> None:
    store = make_persistent(3, "dot")
    with pytest.raises(ParameterError, match=r"3 dimensions.*4"):
        make_persistent.reopen(store.collection, dims=4, geometry="dot")
    with pytest.raises(ParameterError):
        make_persistent.reopen(store.collection, dims=3)


def test_unknown_collections_raise_errors_with_a_suggestion(make_persistent: Any) -> None:
    store = make_persistent(3)
    with pytest.raises(UnknownNameError) as near_miss_error:
        make_persistent.reopen(store.collection[:-1] + "x")
    assert store.collection in near_miss_error.value.hint
    with pytest.raises(UnknownNameError) as other_error:
        make_persistent.reopen("something-else-entirely")
    assert "dims=" in other_error.value.hint


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_vectors_are_returned_by_id(make: Any, geometry: str) -> None:
    rows = np.array([[3.0, 4.0], [0.5, -0.25], [1.0, 0.0]], dtype=np.float32)
    store = make(2, geometry=geometry)
    store.add(["a", "b", "c"], rows)
    store.delete(["c"])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) if geometry == "cosine" else np.ones((3, 1))
    vectors = store.vectors(["b", "c", "a"])
    np.testing.assert_allclose(vectors[[0, 2]], (rows / lengths)[[1, 0]], rtol=1e-6)
    assert np.isnan(vectors[1]).all()
    assert store.vectors([]).shape == (0, 2)
