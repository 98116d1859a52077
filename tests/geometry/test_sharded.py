"""Exact search in shards: the same bytes however the corpus is cut, and the answers of a slow search."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.geometry.search import nearest_neighbors
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import Shard, Shards
from equipoise.geometry.topk import RunningTopK

GEOMETRIES = ("cosine", "dot", "euclidean")


def slow(queries: Any, corpus: Any, k: int, geometry: str) -> tuple[Any, Any]:
    """Every pair in float64, sorted by score and then by row."""
    q, c = np.asarray(queries, dtype=np.float64), np.asarray(corpus, dtype=np.float64)
    scores = -((q[:, None] - c[None]) ** 2).sum(axis=2) if geometry == "euclidean" else q @ c.T
    if geometry == "cosine":
        sizes = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(c, axis=1)
        scores = np.divide(scores, sizes, out=np.zeros_like(scores), where=sizes > 0)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def cut(corpus: Any, pieces: int) -> list[Any]:
    return [part for part in np.array_split(corpus, pieces) if len(part)]


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shards_find_what_a_slow_search_finds(geometry: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    corpus = rng.normal(size=(5000, 150)).astype(dtype)
    queries = rng.normal(size=(30, 150)).astype(dtype)
    rows, scores = slow(queries, corpus, 20, geometry)
    found = nearest_in_shards(queries, cut(corpus, 3), 20, geometry=geometry)
    assert np.array_equal(found.indices, rows)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_the_bytes_do_not_depend_on_how_the_corpus_is_cut(geometry: str) -> None:
    rng = np.random.default_rng(1)
    corpus = rng.normal(size=(4000, 70)).astype(np.float32)
    corpus[2000:2300] = corpus[:300]
    queries = corpus[::97] + rng.normal(size=(42, 70)).astype(np.float32) * 1e-6
    whole = nearest_in_shards(queries, corpus, 15, geometry=geometry)
    for pieces, threads in ((2, 1), (7, 2), (40, 3)):
        found = nearest_in_shards(queries, cut(corpus, pieces), 15, geometry=geometry, threads=threads)
        assert found.indices.tobytes() == whole.indices.tobytes()
        assert found.scores.tobytes() == whole.scores.tobytes()
    single = np.concatenate([nearest_in_shards(row[None], corpus, 15, geometry=geometry).scores for row in queries])
    assert single.tobytes() == whole.scores.tobytes()


whole_numbers = st.integers(-3, 3)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    geometry=st.sampled_from(("dot", "euclidean")),
    dims=st.integers(1, 4),
    rows=st.integers(1, 40),
    k=st.integers(1, 45),
    pieces=st.integers(1, 6),
)
def test_whole_numbers_tie_exactly_as_in_memory(
    data: st.DataObject, geometry: str, dims: int, rows: int, k: int, pieces: int
) -> None:
    draw = lambda count: np.array(  # noqa: E731
        data.draw(st.lists(st.lists(whole_numbers, min_size=dims, max_size=dims), min_size=count, max_size=count)),
        dtype=np.float32,
    )
    corpus, queries = draw(rows), draw(3)
    in_memory = nearest_neighbors(queries, corpus, k, geometry=geometry)
    found = nearest_in_shards(queries, cut(corpus, pieces), k, geometry=geometry)
    assert np.array_equal(found.indices, in_memory.indices)
    assert np.array_equal(found.scores, in_memory.scores)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_vectors_that_float32_products_confuse_are_told_apart(geometry: str) -> None:
    rng = np.random.default_rng(2)
    middle = rng.normal(size=384)
    corpus = (middle + 1e-5 * rng.normal(size=(6000, 384))).astype(np.float32)
    queries = np.stack([middle, -3.0 * middle, rng.normal(size=384)])
    found = nearest_in_shards(queries, cut(corpus, 4), 50, geometry=geometry)
    rows, _ = slow(queries, corpus, 50, geometry)
    assert np.array_equal(found.indices, rows)
    assert not np.array_equal(
        nearest_neighbors(queries.astype(np.float32), corpus, 50, geometry=geometry).indices, rows
    )


def test_multiples_of_a_vector_have_the_same_cosine() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 0.0], [4.0, 8.0, 12.0]], dtype=np.float32)
    found = nearest_in_shards([[0.3, 0.1, 0.7]], rows, 4)
    assert found.indices.tolist() == [[0, 1, 3, 2]]
    assert found.scores[0, 0] == found.scores[0, 2]
    assert found.scores[0, 3] == 0.0


def test_very_long_and_very_short_vectors_have_a_cosine() -> None:
    corpus = np.array([[1e-40, 0.0], [1e30, 1e30], [0.0, 1e-30]], dtype=np.float32)
    found = nearest_in_shards([[1.0, 0.1]], corpus, 3)
    assert found.indices.tolist() == [[0, 1, 2]]


def test_int8_shards_are_searched_as_the_vectors_they_stand_for() -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(-127, 128, size=(900, 33)).astype(np.int8)
    steps = rng.uniform(0.001, 0.01, size=(900, 1)).astype(np.float32)
    queries = rng.normal(size=(10, 33)).astype(np.float32)
    shards = Shards.of([Shard(whole[:400], steps=steps[:400]), Shard(whole[400:], steps=steps[400:])])
    for geometry in GEOMETRIES:
        found = nearest_in_shards(queries, shards, 12, geometry=geometry)
        plain = nearest_in_shards(queries, whole * steps, 12, geometry=geometry)
        assert found.indices.tobytes() == plain.indices.tobytes()
        assert found.scores.tobytes() == plain.scores.tobytes()


def test_the_work_can_travel_to_other_processes_and_progress_is_told() -> None:
    corpus, queries = np.eye(6), np.eye(6)[:2]
    seen: list[int] = []

    def sent(work: Any, shards: Any) -> Any:
        return map(*pickle.loads(pickle.dumps((work, shards))))

    found = nearest_in_shards(queries, cut(corpus, 3), 2, map_function=sent, progress=seen.append)
    assert found.indices.tolist() == [[0, 1], [1, 0]]
    assert seen == [2, 4, 6]


def test_no_queries_find_nothing() -> None:
    assert nearest_in_shards(np.empty((0, 3)), np.eye(3), 2).indices.shape == (0, 2)


def test_leaders_keep_the_lower_row_of_equals() -> None:
    best = RunningTopK(1, 2)
    zeros = np.zeros(3, dtype=np.int64)
    best.offer(zeros, np.array([9, 4, 7]), np.array([1.0, 1.0, 0.5]))
    best.offer(zeros[:1], np.array([2]), np.array([1.0]))
    best.settle()
    assert best.rows.tolist() == [[2, 4]]


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: nearest_in_shards(np.eye(3), np.eye(3), 0), ParameterError, "k is 0"),
        (lambda: nearest_in_shards(np.eye(3), np.eye(3), 1, threads=0), ParameterError, "threads is 0"),
        (
            lambda: nearest_in_shards(np.eye(2), np.eye(3), 1),
            ShapeError,
            "have 2 coordinates and the corpus has 3",
        ),
        (
            lambda: nearest_in_shards(np.eye(3), [np.eye(3), [[0.0, np.nan, 1.0]]], 1),
            NotFiniteError,
            "shard 1 holds NaN or infinity in vector 3",
        ),
        (
            lambda: nearest_in_shards(np.eye(3), np.eye(3), 1, geometry="lorentz"),
            ParameterError,
            "not by lorentz",
        ),
        (
            lambda: nearest_in_shards(np.eye(3), np.eye(3, dtype=np.float32) * 1e20, 1, geometry="dot"),
            UndefinedError,
            "leave the range",
        ),
    ],
)
def test_bad_input_is_a_sentence(call: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()
