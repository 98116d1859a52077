"""Ranks counted shard by shard: equal to those of the whole corpus for any split into shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.evidence.kernels.threshold_counts import count_above
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_vectors import ranking_from_shards
from equipoise.geometry.shards import Shard, Shards


def arrays_equal(left: Ranking, right: Ranking) -> bool:
    """Whether all arrays of two rankings have the same bytes."""
    one, other = left.to_arrays(), right.to_arrays()
    return all(
        np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in one.keys() | other.keys()
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    geometry=st.sampled_from(("dot", "euclidean")),
    rows=st.integers(2, 60),
    n_shards=st.integers(1, 5),
)
def test_integer_vectors_rank_as_in_memory(seed: int, geometry: str, rows: int, n_shards: int) -> None:
    rng = np.random.default_rng(seed)
    corpus = rng.integers(-2, 3, size=(rows, 3)).astype(np.float32)
    queries = rng.integers(-2, 3, size=(6, 3)).astype(np.float32)
    relevant = [rng.permutation(rows)[: rng.integers(0, min(4, rows))].tolist() for _ in queries]
    excluded = np.array([rng.integers(-1, rows) for _ in queries])
    excluded[[row in rows_of_query for row, rows_of_query in zip(excluded, relevant, strict=True)]] = -1
    options: dict[str, Any] = {"geometry": geometry, "exclude": excluded}
    in_memory = Ranking.from_embeddings(queries, corpus, relevant, **options)
    shards = [shard for shard in np.array_split(corpus, n_shards) if len(shard)]
    assert arrays_equal(ranking_from_shards(queries, shards, relevant, **options), in_memory)


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
def test_ranks_are_those_of_float64(geometry: str) -> None:
    rng = np.random.default_rng(0)
    corpus = rng.normal(size=(3000, 200)).astype(np.float32)
    queries = rng.normal(size=(40, 200)).astype(np.float32)
    relevant = rng.integers(0, 3000, size=(40, 1))
    ranking = ranking_from_shards(queries, np.array_split(corpus, 3), relevant, geometry=geometry)
    exact = Ranking.from_embeddings(queries.astype(np.float64), corpus.astype(np.float64), relevant, geometry=geometry)
    assert arrays_equal(ranking, exact)


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
def test_the_split_into_shards_does_not_change_the_bytes(geometry: str) -> None:
    rng = np.random.default_rng(1)
    corpus = rng.normal(size=(2600, 40)).astype(np.float32)
    corpus[1300:1500] = corpus[:200]
    queries = rng.normal(size=(600, 40)).astype(np.float32)
    relevant = [rng.permutation(1500)[: rng.integers(0, 5)].tolist() for _ in queries]
    whole = ranking_from_shards(queries, corpus, relevant, geometry=geometry)
    assert whole.has_ties
    for n_shards, threads in ((2, 1), (9, 2)):
        ranking = ranking_from_shards(
            queries, np.array_split(corpus, n_shards), relevant, geometry=geometry, threads=threads
        )
        assert arrays_equal(ranking, whole)


def test_a_copy_in_another_shard_ties() -> None:
    rng = np.random.default_rng(2)
    corpus = rng.normal(size=(5000, 384)).astype(np.float32)
    corpus[4321] = corpus[7]
    ranking = ranking_from_shards(rng.normal(size=(3, 384)).astype(np.float32), np.array_split(corpus, 4), [7, 7, 7])
    assert ranking.tied.tolist() == [1, 1, 1]


def test_int8_shards_rank_as_their_dequantised_vectors() -> None:
    rng = np.random.default_rng(3)
    quantised = rng.integers(-127, 128, size=(500, 20)).astype(np.int8)
    steps = rng.uniform(0.001, 0.01, size=(500, 1)).astype(np.float32)
    queries, relevant = rng.normal(size=(8, 20)), rng.integers(0, 500, size=(8, 2))
    shards = Shards.of([Shard(quantised, steps=steps)])
    assert arrays_equal(
        ranking_from_shards(queries, shards, relevant), ranking_from_shards(queries, quantised * steps, relevant)
    )


def test_zero_vectors_are_reported_as_in_memory() -> None:
    corpus = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    queries = np.array([[0.0, 0.0], [1.0, 1.0]])
    ranking = ranking_from_shards(queries, [corpus[:2], corpus[2:]], [0, 2])
    assert ranking.invalid_points == Ranking.from_embeddings(queries, corpus, [0, 2]).invalid_points
    assert "2 of 4 points are zero vectors" in ranking.invalid_points
    assert ranking_from_shards(queries, corpus, [0, 2], geometry="dot").invalid_points == ""


@given(st.lists(st.lists(st.integers(0, 4), min_size=9, max_size=9), min_size=1, max_size=5), st.integers(-1, 5))
def test_count_above_equals_a_loop(scores: list[list[int]], limit: int) -> None:
    counts = count_above(np.array(scores, dtype=np.float32), np.full(len(scores), limit, dtype=np.float32))
    assert counts.tolist() == [sum(score > limit for score in row) for row in scores]


def test_rows_outside_the_corpus_raise_input_error() -> None:
    with pytest.raises(InputError, match="row 9"):
        ranking_from_shards(np.eye(2), np.eye(2), [0, 9])
