"""Exact search in shards: the same bytes for any split, and the neighbours of a full sort."""

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


def reference_search(queries: Any, corpus: Any, k: int, geometry: str) -> tuple[Any, Any]:
    """Every pair in float64, sorted by score and then by row."""
    q, c = np.asarray(queries, dtype=np.float64), np.asarray(corpus, dtype=np.float64)
    scores = -((q[:, None] - c[None]) ** 2).sum(axis=2) if geometry == "euclidean" else q @ c.T
    if geometry == "cosine":
        norms = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(c, axis=1)
        scores = np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def split_corpus(corpus: Any, n_shards: int) -> list[Any]:
    return [shard for shard in np.array_split(corpus, n_shards) if len(shard)]


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shards_find_the_neighbours_of_a_full_sort(geometry: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    corpus = rng.normal(size=(5000, 150)).astype(dtype)
    queries = rng.normal(size=(30, 150)).astype(dtype)
    rows, scores = reference_search(queries, corpus, 20, geometry)
    neighbours = nearest_in_shards(queries, split_corpus(corpus, 3), 20, geometry=geometry)
    assert np.array_equal(neighbours.indices, rows)
    np.testing.assert_allclose(neighbours.scores, scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_the_split_into_shards_does_not_change_the_bytes(geometry: str) -> None:
    rng = np.random.default_rng(1)
    corpus = rng.normal(size=(4000, 70)).astype(np.float32)
    corpus[2000:2300] = corpus[:300]
    queries = corpus[::97] + rng.normal(size=(42, 70)).astype(np.float32) * 1e-6
    expected = nearest_in_shards(queries, corpus, 15, geometry=geometry)
    for n_shards, threads in ((2, 1), (7, 2), (40, 3)):
        neighbours = nearest_in_shards(queries, split_corpus(corpus, n_shards), 15, geometry=geometry, threads=threads)
        assert neighbours.indices.tobytes() == expected.indices.tobytes()
        assert neighbours.scores.tobytes() == expected.scores.tobytes()
    scores_of_single_queries = np.concatenate(
        [nearest_in_shards(row[None], corpus, 15, geometry=geometry).scores for row in queries]
    )
    assert scores_of_single_queries.tobytes() == expected.scores.tobytes()


integers = st.integers(-3, 3)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    geometry=st.sampled_from(("dot", "euclidean")),
    dims=st.integers(1, 4),
    rows=st.integers(1, 40),
    k=st.integers(1, 45),
    n_shards=st.integers(1, 6),
)
def test_integer_vectors_tie_as_in_memory(
    data: st.DataObject, geometry: str, dims: int, rows: int, k: int, n_shards: int
) -> None:
    draw_rows = lambda count: np.array(  # noqa: E731
        data.draw(st.lists(st.lists(integers, min_size=dims, max_size=dims), min_size=count, max_size=count)),
        dtype=np.float32,
    )
    corpus, queries = draw_rows(rows), draw_rows(3)
    in_memory = nearest_neighbors(queries, corpus, k, geometry=geometry)
    neighbours = nearest_in_shards(queries, split_corpus(corpus, n_shards), k, geometry=geometry)
    assert np.array_equal(neighbours.indices, in_memory.indices)
    assert np.array_equal(neighbours.scores, in_memory.scores)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_vectors_tied_in_float32_are_ordered_correctly(geometry: str) -> None:
    rng = np.random.default_rng(2)
    centre = rng.normal(size=384)
    corpus = (centre + 1e-5 * rng.normal(size=(6000, 384))).astype(np.float32)
    queries = np.stack([centre, -3.0 * centre, rng.normal(size=384)])
    neighbours = nearest_in_shards(queries, split_corpus(corpus, 4), 50, geometry=geometry)
    rows, _ = reference_search(queries, corpus, 50, geometry)
    assert np.array_equal(neighbours.indices, rows)
    assert not np.array_equal(
        nearest_neighbors(queries.astype(np.float32), corpus, 50, geometry=geometry).indices, rows
    )


def test_multiples_of_a_vector_have_the_same_cosine() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 0.0], [4.0, 8.0, 12.0]], dtype=np.float32)
    neighbours = nearest_in_shards([[0.3, 0.1, 0.7]], rows, 4)
    assert neighbours.indices.tolist() == [[0, 1, 3, 2]]
    assert neighbours.scores[0, 0] == neighbours.scores[0, 2]
    assert neighbours.scores[0, 3] == 0.0


def test_very_large_and_very_small_vectors_have_a_cosine() -> None:
    corpus = np.array([[1e-40, 0.0], [1e30, 1e30], [0.0, 1e-30]], dtype=np.float32)
    neighbours = nearest_in_shards([[1.0, 0.1]], corpus, 3)
    assert neighbours.indices.tolist() == [[0, 1, 2]]


def test_int8_shards_are_searched_as_their_dequantised_vectors() -> None:
    rng = np.random.default_rng(3)
    quantised = rng.integers(-127, 128, size=(900, 33)).astype(np.int8)
    steps = rng.uniform(0.001, 0.01, size=(900, 1)).astype(np.float32)
    queries = rng.normal(size=(10, 33)).astype(np.float32)
    shards = Shards.of([Shard(quantised[:400], steps=steps[:400]), Shard(quantised[400:], steps=steps[400:])])
    for geometry in GEOMETRIES:
        neighbours = nearest_in_shards(queries, shards, 12, geometry=geometry)
        expected = nearest_in_shards(queries, quantised * steps, 12, geometry=geometry)
        assert neighbours.indices.tobytes() == expected.indices.tobytes()
        assert neighbours.scores.tobytes() == expected.scores.tobytes()


def test_map_functions_receive_picklable_work_and_progress_is_reported() -> None:
    corpus, queries = np.eye(6), np.eye(6)[:2]
    progress_values: list[int] = []

    def map_pickled(work: Any, shards: Any) -> Any:
        return map(*pickle.loads(pickle.dumps((work, shards))))

    neighbours = nearest_in_shards(
        queries, split_corpus(corpus, 3), 2, map_function=map_pickled, progress=progress_values.append
    )
    assert neighbours.indices.tolist() == [[0, 1], [1, 0]]
    assert progress_values == [2, 4, 6]


def test_no_queries_give_no_neighbours() -> None:
    assert nearest_in_shards(np.empty((0, 3)), np.eye(3), 2).indices.shape == (0, 2)


def test_running_top_k_keeps_the_lower_rows_of_ties() -> None:
    best = RunningTopK(1, 2)
    zeros = np.zeros(3, dtype=np.int64)
    best.offer(zeros, np.array([9, 4, 7]), np.array([1.0, 1.0, 0.5]))
    best.offer(zeros[:1], np.array([2]), np.array([1.0]))
    best.flush()
    assert best.rows.tolist() == [[2, 4]]


@pytest.mark.parametrize(
    ("call", "error", "fragment"),
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
def test_bad_input_raises_errors(call: Any, error: type[Exception], fragment: str) -> None:
    with pytest.raises(error, match=fragment):
        call()
