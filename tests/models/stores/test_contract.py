"""One contract, every store: the same calls mean the same, whatever engine is behind them."""

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


def assert_nearest(hits: Hits, held: dict[str, np.ndarray[Any, Any]], queries: Any, k: int, geometry: str) -> None:
    """The hits are the best k of what is held, best first, with the scores of the definition."""
    names = list(held)
    rows = np.array([held[name] for name in names])
    assert hits.ids.shape == hits.scores.shape == (len(queries), min(k, len(names)))
    for at, query in enumerate(np.asarray(queries)):
        expected = similarity(geometry, query, rows)
        found = hits.ids[at].tolist()
        assert len(set(found)) == len(found)
        own = np.array([expected[names.index(name)] for name in found])
        np.testing.assert_allclose(hits.scores[at], own, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(hits.scores[at], np.sort(expected)[::-1][: len(found)], rtol=1e-5, atol=1e-5)
        assert (np.diff(hits.scores[at]) <= 0).all()


def assert_mostly_found(hits: Hits, held: dict[str, np.ndarray[Any, Any]], queries: Any) -> None:
    """An approximate index may leave a row short, but what it finds is scored right and is nearly all."""
    found = 0
    for ids, scores, query in zip(hits.ids.tolist(), hits.scores, queries, strict=True):
        there = [name for name in ids if name is not None]
        assert ids == there + [None] * (len(ids) - len(there))
        own = similarity("dot", query, np.array([held[name] for name in there]))
        np.testing.assert_allclose(scores[: len(there)], own, rtol=1e-5, atol=1e-5)
        assert np.isneginf(scores[len(there) :]).all()
        found += len(set(there))
    assert found > 0.95 * len(held) * len(queries)


def filled(made: VectorStore, count: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Some random vectors put into a store, and what they are."""
    rows = np.random.default_rng(seed).normal(size=(count, made.dims)).astype(np.float32)
    held = {f"item {number}": row for number, row in enumerate(rows)}
    made.add(list(held), rows)
    return held


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_the_nearest_are_found_with_the_same_scores_everywhere(make: Any, geometry: str) -> None:
    made = make(8, geometry)
    held = filled(made, 60)
    queries = np.random.default_rng(1).normal(size=(25, 8))
    assert made.count() == 60
    assert_nearest(made.search(queries, 7), held, queries, 7, geometry)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_equal_scores_stand_in_the_order_of_their_ids(make: Any, geometry: str) -> None:
    made = make(2, geometry)
    names = ["delta", "Ä", "alpha", "b", "ab", "漢", "zeta", "10", "9", "gamma"]
    made.add([*names, "far"], [[2.0, 1.0]] * len(names) + [[-3.0, -1.0]])
    for k in (1, 3, 7, 11):
        hits = made.search([[2.0, 1.0]] * 30, k)
        for row in hits.ids.tolist():
            assert row == [*sorted(names), "far"][:k]


def test_a_replaced_vector_takes_the_place_of_the_old_one(make: Any) -> None:
    made = make(2, "dot")
    made.add(["a", "b"], [[1, 0], [0, 1]], texts=["first", "second"])
    assert made.search([[1, 0]], 1).pairs(0) == [("a", 1.0)]
    made.add(["a", "c"], [[0, 5], [3, 0]])
    assert made.count() == 3
    assert made.search([[1, 0]], 3).pairs(0) == [("c", 3.0), ("a", 0.0), ("b", 0.0)]
    assert made.texts(["a", "b", "c", "none"]) == [None, "second", None, None]


def test_deleted_vectors_are_gone(make: Any) -> None:
    made = make(2, "dot")
    made.add(["a", "b", "c"], [[1, 0], [2, 0], [3, 0]], texts=["x", "y", ""])
    assert made.search([[1, 0]], 1).pairs(0) == [("c", 3.0)]
    assert made.delete(["c", "nobody"]) == 1
    assert made.count() == 2
    assert made.search([[1, 0]], 9).pairs(0) == [("b", 2.0), ("a", 1.0)]
    assert made.texts(["c", "b"]) == [None, "y"]
    assert made.delete(["c"]) == 0
    assert made.delete([]) == 0


def test_a_sequence_of_changes_leaves_what_a_dict_would_hold(make: Any) -> None:
    rng = np.random.default_rng(7)
    made = make(4, "euclidean")
    held: dict[str, np.ndarray[Any, Any]] = {}
    for _ in range(12):
        names = [f"n{number}" for number in rng.choice(15, size=rng.integers(1, 6), replace=False)]
        if rng.random() < 0.65:
            rows = rng.integers(-3, 4, size=(len(names), 4)).astype(np.float32)
            made.add(names, rows)
            held.update(zip(names, rows, strict=True))
        else:
            assert made.delete(names) == sum(held.pop(name, None) is not None for name in names)
        assert made.count() == len(held)
        queries = rng.normal(size=(3, 4))
        if held:
            assert_nearest(made.search(queries, 5), held, queries, 5, "euclidean")


def test_texts_come_back_as_they_were(make: Any) -> None:
    texts = ["plain", "", "Ünïcode 漢字 👩\u200d👧", "two\nlines\t'quoted' \"twice\" %s $1 \\"]
    made = make(2)
    names = ["a", "it's; DROP TABLE x --", 'say "hi"', "%s"]
    made.add(names, np.eye(2)[[0, 1, 0, 1]], texts=texts)
    assert made.texts(names) == texts
    assert set(made.search([[1, 1]], 4).ids[0]) == set(names)


def test_an_empty_store_finds_nothing(make: Any) -> None:
    made = make(3)
    assert made.count() == 0
    assert made.search([[1, 2, 3], [0, 0, 1]], 5).ids.shape == (2, 0)
    made.add([], [])
    assert made.search(np.empty((0, 3)), 5).ids.shape == (0, 0)


def test_zero_vectors_have_similarity_zero(make: Any) -> None:
    made = make(2, "cosine")
    made.add(["away", "zero", "near"], [[-1, 0], [0, 0], [5, 0]])
    assert made.search([[1, 0]], 3).pairs(0) == [("near", 1.0), ("zero", 0.0), ("away", -1.0)]
    assert made.search([[0, 0]], 2).pairs(0) == [("away", 0.0), ("near", 0.0)]


def test_bad_calls_are_refused_and_change_nothing(make: Any) -> None:
    made = make(2)
    made.add(["a"], [[1, 0]], texts=["kept"])
    with pytest.raises(ShapeError, match=r"3 dimensions.*2"):
        made.add(["a"], [[1, 2, 3]])
    with pytest.raises(ShapeError, match="3 dimensions"):
        made.search([[1, 2, 3]], 1)
    with pytest.raises(ShapeError, match=r"1 ids.*2 vectors"):
        made.add(["b"], [[1, 2], [3, 4]])
    with pytest.raises(ShapeError, match=r"2 ids.*1 texts"):
        made.add(["b", "c"], [[1, 2], [3, 4]], texts=["one"])
    with pytest.raises(NotFiniteError, match="row 1"):
        made.add(["b", "c"], [[1, 2], [3, float("nan")]])
    with pytest.raises(NotFiniteError, match="row 0"):
        made.search([[1e300, 0.0]], 1)
    with pytest.raises(DuplicateError, match="'b'"):
        made.add(["b", "c", "b"], [[1, 2], [3, 4], [5, 6]])
    with pytest.raises(ParameterError, match="k is 0"):
        made.search([[1, 0]], 0)
    for ids in ("b", [3], [""], ["a\0b"]):
        with pytest.raises(InputError):
            made.add(ids, [[1, 2]])
    with pytest.raises(InputError):
        made.add(["a\ud800"], [[1, 2]])
    with pytest.raises(InputError, match="'a'"):
        made.add(["a"], [[1, 2]], texts=["\udfff"])
    assert made.count() == 1
    assert made.texts(["a"]) == ["kept"]


def test_a_closed_store_says_so(make: Any) -> None:
    with make(2) as made:
        made.add(["a"], [[1, 0]])
    made.close()
    for call in (made.count, lambda: made.search([[1, 0]], 1), lambda: made.add(["b"], [[0, 1]])):
        with pytest.raises(StoreError):
            call()


def test_many_queries_and_a_large_k_are_answered(make: Any) -> None:
    made = make(4, "dot")
    held = filled(made, 300, seed=3)
    queries = np.random.default_rng(4).normal(size=(40, 4))
    hits = made.search(queries, 300)
    if made.exact:
        assert_nearest(hits, held, queries, 300, "dot")
    else:
        assert_mostly_found(hits, held, queries)


def test_what_was_stored_is_there_again(make_persistent: Any) -> None:
    made = make_persistent(3, "dot")
    made.add(["a", "b"], [[1, 0, 0], [0, 1, 0]], texts=["one", "two"])
    made.close()
    again = make_persistent.again(made.collection)
    assert (again.dims, again.geometry, again.count()) == (3, "dot", 2)
    assert again.search([[0, 2, 0]], 1).pairs(0) == [("b", 2.0)]
    assert again.texts(["a"]) == ["one"]


def test_a_collection_is_opened_as_it_was_made(make_persistent: Any) -> None:
    made = make_persistent(3, "dot")
    with pytest.raises(ParameterError, match=r"3 dimensions.*4"):
        make_persistent.again(made.collection, dims=4, geometry="dot")
    with pytest.raises(ParameterError):
        make_persistent.again(made.collection, dims=3)


def test_an_unknown_collection_gets_a_suggestion(make_persistent: Any) -> None:
    made = make_persistent(3)
    with pytest.raises(UnknownNameError) as unknown:
        make_persistent.again(made.collection[:-1] + "x")
    assert made.collection in unknown.value.hint
    with pytest.raises(UnknownNameError) as far:
        make_persistent.again("something-else-entirely")
    assert "dims=" in far.value.hint


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_vectors_are_found_again_by_their_ids(make: Any, geometry: str) -> None:
    rows = np.array([[3.0, 4.0], [0.5, -0.25], [1.0, 0.0]], dtype=np.float32)
    made = make(2, geometry=geometry)
    made.add(["a", "b", "c"], rows)
    made.delete(["c"])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) if geometry == "cosine" else np.ones((3, 1))
    found = made.vectors(["b", "c", "a"])
    np.testing.assert_allclose(found[[0, 2]], (rows / lengths)[[1, 0]], rtol=1e-6)
    assert np.isnan(found[1]).all()
    assert made.vectors([]).shape == (0, 2)
