"""Ranks counted shard by shard: those of a slow search, and the same however the corpus is cut."""

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


def same(left: Ranking, right: Ranking) -> bool:
    """Whether all arrays of two rankings are equal, byte for byte."""
    one, other = left.to_arrays(), right.to_arrays()
    return all(
        np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in one.keys() | other.keys()
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    geometry=st.sampled_from(("dot", "euclidean")),
    rows=st.integers(2, 60),
    pieces=st.integers(1, 5),
)
def test_whole_numbers_rank_exactly_as_in_memory(seed: int, geometry: str, rows: int, pieces: int) -> None:
    rng = np.random.default_rng(seed)
    corpus = rng.integers(-2, 3, size=(rows, 3)).astype(np.float32)
    queries = rng.integers(-2, 3, size=(6, 3)).astype(np.float32)
    relevant = [rng.permutation(rows)[: rng.integers(0, min(4, rows))].tolist() for _ in queries]
    hidden = np.array([rng.integers(-1, rows) for _ in queries])
    hidden[[h in r for h, r in zip(hidden, relevant, strict=True)]] = -1
    options: dict[str, Any] = {"geometry": geometry, "exclude": hidden}
    in_memory = Ranking.from_embeddings(queries, corpus, relevant, **options)
    parts = [part for part in np.array_split(corpus, pieces) if len(part)]
    assert same(ranking_from_shards(queries, parts, relevant, **options), in_memory)


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
def test_ranks_are_those_of_float64(geometry: str) -> None:
    rng = np.random.default_rng(0)
    corpus = rng.normal(size=(3000, 200)).astype(np.float32)
    queries = rng.normal(size=(40, 200)).astype(np.float32)
    relevant = rng.integers(0, 3000, size=(40, 1))
    found = ranking_from_shards(queries, np.array_split(corpus, 3), relevant, geometry=geometry)
    exact = Ranking.from_embeddings(queries.astype(np.float64), corpus.astype(np.float64), relevant, geometry=geometry)
    assert same(found, exact)


@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
def test_the_bytes_do_not_depend_on_how_the_corpus_is_cut(geometry: str) -> None:
    rng = np.random.default_rng(1)
    corpus = rng.normal(size=(2600, 40)).astype(np.float32)
    corpus[1300:1500] = corpus[:200]
    queries = rng.normal(size=(600, 40)).astype(np.float32)
    relevant = [rng.permutation(1500)[: rng.integers(0, 5)].tolist() for _ in queries]
    whole = ranking_from_shards(queries, corpus, relevant, geometry=geometry)
    assert whole.has_ties
    for pieces, threads in ((2, 1), (9, 2)):
        found = ranking_from_shards(
            queries, np.array_split(corpus, pieces), relevant, geometry=geometry, threads=threads
        )
        assert same(found, whole)


def test_a_copy_in_another_shard_ties() -> None:
    rng = np.random.default_rng(2)
    corpus = rng.normal(size=(5000, 384)).astype(np.float32)
    corpus[4321] = corpus[7]
    found = ranking_from_shards(rng.normal(size=(3, 384)).astype(np.float32), np.array_split(corpus, 4), [7, 7, 7])
    assert found.tied.tolist() == [1, 1, 1]


def test_int8_shards_rank_as_the_vectors_they_stand_for() -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(-127, 128, size=(500, 20)).astype(np.int8)
    steps = rng.uniform(0.001, 0.01, size=(500, 1)).astype(np.float32)
    queries, relevant = rng.normal(size=(8, 20)), rng.integers(0, 500, size=(8, 2))
    shards = Shards.of([Shard(whole, steps=steps)])
    assert same(ranking_from_shards(queries, shards, relevant), ranking_from_shards(queries, whole * steps, relevant))


def test_zero_vectors_are_named_as_in_memory() -> None:
    corpus = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    queries = np.array([[0.0, 0.0], [1.0, 1.0]])
    found = ranking_from_shards(queries, [corpus[:2], corpus[2:]], [0, 2])
    assert found.invalid_points == Ranking.from_embeddings(queries, corpus, [0, 2]).invalid_points
    assert "2 of 4 points are zero vectors" in found.invalid_points
    assert ranking_from_shards(queries, corpus, [0, 2], geometry="dot").invalid_points == ""


@given(st.lists(st.lists(st.integers(0, 4), min_size=9, max_size=9), min_size=1, max_size=5), st.integers(-1, 5))
def test_counting_above_is_comparing_one_by_one(scores: list[list[int]], limit: int) -> None:
    found = count_above(np.array(scores, dtype=np.float32), np.full(len(scores), limit, dtype=np.float32))
    assert found.tolist() == [sum(score > limit for score in row) for row in scores]


def test_a_row_beyond_the_corpus_is_refused() -> None:
    with pytest.raises(InputError, match="row 9"):
        ranking_from_shards(np.eye(2), np.eye(2), [0, 9])
