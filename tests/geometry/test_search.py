"""Exact search, compared with a full stable sort on random and on adversarial data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError, UnknownNameError
from equipoise.geometry import distances as functions
from equipoise.geometry.search import SearchCorpus, find_duplicate_rows, nearest_neighbors, score_blocks
from equipoise.geometry.topk import ThresholdTopK

NAMES = ["cosine", "dot", "euclidean", "poincare", "lorentz"]


def sample_points(name: str, rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    rows = rng.standard_normal((count, dim))
    if name in ("poincare", "lorentz"):
        rows *= 0.9 * rng.random((count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return functions.ball_to_hyperboloid(rows) if name == "lorentz" else rows


def integer_points(rng: np.random.Generator, count: int, dim: int, levels: int = 3) -> np.ndarray:
    """Small integers: inner products are exact in any order of summation, and many tie."""
    return rng.integers(0, levels, (count, dim)).astype(np.float32)


def full_sort(queries: np.ndarray, corpus: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    scores = queries.astype(np.float64) @ corpus.astype(np.float64).T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [300, 9000])
def test_neighbours_agree_with_sorted_distances(name: str, count: int) -> None:
    rng = np.random.default_rng(0)
    queries, corpus = sample_points(name, rng, 7, 6), sample_points(name, rng, count, 6)
    distances = getattr(functions, name)(queries[:, None, :], corpus[None, :, :])
    neighbours = nearest_neighbors(queries, corpus, 20, geometry=name)
    np.testing.assert_array_equal(neighbours.indices, np.argsort(distances, axis=1, kind="stable")[:, :20])
    assert (np.diff(neighbours.scores, axis=1) <= 0).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_queries=st.integers(0, 9),
    count=st.integers(1, 60),
    dim=st.integers(1, 4),
    k=st.integers(1, 80),
    block_bytes=st.sampled_from([1, 10_000, 1 << 20]),
)
def test_small_searches_equal_a_full_stable_sort(
    seed: int, n_queries: int, count: int, dim: int, k: int, block_bytes: int
) -> None:
    rng = np.random.default_rng(seed)
    query_points, corpus_points = integer_points(rng, n_queries, dim), integer_points(rng, count, dim)
    neighbours = nearest_neighbors(query_points, corpus_points, k, geometry="dot", block_bytes=block_bytes)
    indices, scores = full_sort(query_points, corpus_points, min(k, count))
    np.testing.assert_array_equal(neighbours.indices, indices)
    np.testing.assert_array_equal(neighbours.scores, scores)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(4096, 9000),
    dim=st.integers(1, 12),
    k=st.sampled_from([1, 2, 10, 100, 400]),
    levels=st.sampled_from([2, 3, 50]),
)
def test_large_searches_with_ties_equal_a_full_stable_sort(
    seed: int, count: int, dim: int, k: int, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    query_points, corpus_points = integer_points(rng, 5, dim, levels), integer_points(rng, count, dim, levels)
    neighbours = nearest_neighbors(query_points, corpus_points, k, geometry="dot")
    indices, scores = full_sort(query_points, corpus_points, k)
    np.testing.assert_array_equal(neighbours.indices, indices)
    np.testing.assert_array_equal(neighbours.scores, scores)


def adversarial_corpus(kind: str, rng: np.random.Generator, count: int) -> np.ndarray:
    values = np.sort(rng.permutation(count)).astype(np.float64)[:, None]
    match kind:
        case "ascending":
            return values
        case "descending":
            return values[::-1]
        case "all equal":
            return np.ones((count, 1))
        case "two values":
            return (values % 2 == 0).astype(np.float64)
        case "best in every tenth row":
            return np.where(values % 10 == 0, values + count, values)
        case "best in the first tile":
            return np.where(values % 10 == 0, values + count, -values)
        case "one good row":
            return (values == 77).astype(np.float64)
        case "negative":
            return -values - 1.0
    raise NotImplementedError(kind)


@pytest.mark.parametrize("k", [1, 100, 1000, 9999, 10_000])
@pytest.mark.parametrize(
    "kind",
    [
        "ascending",
        "descending",
        "all equal",
        "two values",
        "best in every tenth row",
        "best in the first tile",
        "one good row",
        "negative",
    ],
)
def test_adversarial_corpora_equal_a_full_stable_sort(kind: str, k: int) -> None:
    corpus = adversarial_corpus(kind, np.random.default_rng(0), 10_000)
    queries = np.array([[1.0], [2.0], [-1.0], [0.0]])
    neighbours = nearest_neighbors(queries, corpus, k, geometry="dot")
    indices, scores = full_sort(queries, corpus, k)
    np.testing.assert_array_equal(neighbours.indices, indices)
    np.testing.assert_array_equal(neighbours.scores, scores)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_of_a_point_tie_exactly(name: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    for count, dim in ((17, 50), (1001, 63), (5003, 16)):
        originals = sample_points(name, rng, 40, dim).astype(dtype)
        if name == "lorentz":
            originals[:, 0] = np.sqrt(1.0 + (originals[:, 1:].astype(np.float64) ** 2).sum(axis=1))
        original_rows = rng.integers(0, 40, count)
        corpus = originals[original_rows]
        for queries in (originals[:1], originals[:13]):
            for block, scores in score_blocks(queries, corpus, name):
                for row in scores:
                    assert len(set(row.tolist())) <= 40, (block, count, dim)
            neighbours = nearest_neighbors(queries, corpus, count // 3, geometry=name)
            for scores, indices in zip(neighbours.scores, neighbours.indices, strict=True):
                tied = np.diff(scores) == 0
                assert (np.diff(indices)[tied] > 0).all()
                last_group = int(np.searchsorted(-scores, -scores[-1]))
                for first, end in zip(
                    np.flatnonzero(np.r_[True, ~tied]),
                    np.r_[np.flatnonzero(~tied) + 1, len(scores)],
                    strict=True,
                ):
                    group = set(original_rows[indices[first:end]])
                    expected = np.flatnonzero(np.isin(original_rows, list(group)))
                    np.testing.assert_array_equal(indices[first:end], expected[: end - first])
                    assert first == last_group or end - first == len(expected)


def test_blocks_and_threads_do_not_change_the_neighbours() -> None:
    rng = np.random.default_rng(2)
    queries, corpus = integer_points(rng, 50, 8, 40), integer_points(rng, 5000, 8, 40)
    expected = nearest_neighbors(queries, corpus, 30, geometry="euclidean")
    for block_bytes, threads in ((1, 1), (40_000, 1), (40_000, 3)):
        neighbours = nearest_neighbors(
            queries, corpus, 30, geometry="euclidean", block_bytes=block_bytes, threads=threads
        )
        np.testing.assert_array_equal(neighbours.indices, expected.indices)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kinds", ["f4f4", "f8f4", "f4f8"])
def test_prepared_corpora_give_the_neighbours_of_their_points(name: str, kinds: str) -> None:
    rng = np.random.default_rng(0)
    queries, corpus = (
        sample_points(name, rng, 9, 4).astype(kinds[:2]),
        sample_points(name, rng, 300, 4).astype(kinds[2:]),
    )
    prepared = SearchCorpus.of(corpus, name)
    for query_points in (queries[:1], queries):
        neighbours, expected = (
            nearest_neighbors(query_points, prepared, 5),
            nearest_neighbors(query_points, corpus, 5, geometry=name),
        )
        assert neighbours.indices.tolist() == expected.indices.tolist()
        assert neighbours.scores.tobytes() == expected.scores.tobytes()
    with pytest.raises(ShapeError, match="coordinates"):
        nearest_neighbors(queries[:, :2], prepared, 5)


def test_lists_integers_and_half_precision_are_accepted() -> None:
    assert nearest_neighbors([[1, 0]], [[0, 1], [1, 0]], 1).indices.tolist() == [[1]]
    half = np.array([[1.0, 0.0]], dtype=np.float16)
    assert nearest_neighbors(half, half, 1).scores.dtype == np.float32
    assert nearest_neighbors(half, half.astype(np.float64), 1).scores.dtype == np.float64


def test_more_neighbours_than_points_gives_all_points() -> None:
    neighbours = nearest_neighbors(np.eye(3), np.eye(3), 10)
    assert neighbours.indices.tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    assert nearest_neighbors(np.eye(3), np.empty((0, 3)), 10).indices.shape == (3, 0)
    assert len(nearest_neighbors(np.empty((0, 3)), np.eye(3), 2)) == 0


def test_zero_vectors_have_a_cosine_score_of_zero() -> None:
    neighbours = nearest_neighbors([[1.0, 0.0]], [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], 3)
    assert neighbours.indices.tolist() == [[2, 1, 0]]
    assert neighbours.scores.tolist() == [[1.0, 0.0, -1.0]]


def test_bad_input_raises_errors_with_the_rows() -> None:
    valid, invalid = np.ones((4, 2)), np.ones((4, 2))
    invalid[2, 1] = np.nan
    with pytest.raises(NotFiniteError, match=r"1.*4 points.*NaN.*2\)"):
        nearest_neighbors(invalid, valid, 1)
    with pytest.raises(NotFiniteError):
        score_blocks(valid, invalid)
    with pytest.raises(InputError):
        nearest_neighbors(valid / 10, valid, 1, geometry="poincare")
    with pytest.raises(ShapeError, match=r"2 coordinates.*3"):
        nearest_neighbors(valid, np.ones((4, 3)), 1)
    with pytest.raises(UnknownNameError):
        nearest_neighbors(valid, valid, 1, geometry="cosin")
    for options in ({"k": 0}, {"k": 1, "threads": 0}, {"k": 1, "block_bytes": 0}):
        with pytest.raises(ParameterError):
            nearest_neighbors(valid, valid, **options)


@pytest.mark.parametrize("name", NAMES)
def test_score_blocks_cover_all_queries_within_the_block_size(name: str) -> None:
    rng = np.random.default_rng(3)
    queries, corpus = sample_points(name, rng, 23, 5), sample_points(name, rng, 600, 5)
    all_scores = next(scores.copy() for _, scores in score_blocks(queries, corpus, name))
    assert all_scores.shape == (23, 600)
    covered_rows: list[int] = []
    for block, scores in score_blocks(queries, corpus, name, block_bytes=7 * 600 * 8):
        assert scores.nbytes <= 7 * 600 * 8
        np.testing.assert_allclose(scores, all_scores[block], rtol=1e-12, atol=1e-12)
        covered_rows += range(23)[block]
    assert covered_rows == list(range(23))


def test_duplicate_rows_agree_with_a_dictionary_of_rows() -> None:
    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        rows = rng.integers(0, 2, (3000, 9)).astype(dtype)
        rows[rows == 0] *= rng.choice([-1.0, 1.0], (rows == 0).sum())
        first_rows: dict[tuple[float, ...], int] = {}
        expected = [first_rows.setdefault(tuple(row), index) for index, row in enumerate((rows + 0.0).tolist())]
        duplicates = find_duplicate_rows(rows)
        assert duplicates.first.tolist() == expected
        assert sorted([*duplicates.copies, *duplicates.distinct]) == list(range(3000))


def test_top_k_beyond_the_capacity_is_not_proven() -> None:
    top_k = ThresholdTopK(2, 1, np.dtype(np.float64))
    tile = np.stack([np.arange(1024.0), np.where(np.arange(1024) == 5, 1.0, -np.inf)])
    top_k.add(tile, np.arange(1024))
    indices, scores, proven = top_k.best()
    assert proven.tolist() == [False, True]
    assert indices[1].tolist() == [5]
    assert scores[1].tolist() == [1.0]


@pytest.mark.parametrize("k", [1, 10, 100])
def test_top_k_of_random_scores_is_proven(k: int) -> None:
    scores = np.random.default_rng(5).standard_normal((200, 8 * 1024))
    top_k = ThresholdTopK(200, k, scores.dtype)
    for offset in range(8):
        tile = np.ascontiguousarray(scores[:, offset::8])
        if offset == 0:
            top_k.start(tile, 1 / 8)
        top_k.add(tile, np.arange(offset, 8 * 1024, 8))
        if offset < 7:
            top_k.tighten((offset + 1) / 8)
    indices, best, proven = top_k.best()
    assert proven.all()
    expected = np.argsort(-scores, axis=1)[:, :k]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(scores, expected, axis=1))


def test_duplicates_are_found_among_rows_with_equal_first_columns() -> None:
    rows = np.zeros((5, 64), dtype=np.float32)
    rows[[1, 3], 40] = 1.0
    rows[4, 0] = 2.0
    assert find_duplicate_rows(rows).first.tolist() == [0, 1, 0, 1, 4]
