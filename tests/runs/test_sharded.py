"""Sharded search on an engine: the bytes of a local search, and finished shards are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.errors import NotFiniteError
from equipoise.evidence.ranking_from_vectors import ranking_from_shards
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import Shards, write_shards
from equipoise.runs.executors import Completed, LocalExecutor
from equipoise.runs.runner import resumable_map

RNG = np.random.default_rng(0)
ROWS, QUERIES = RNG.normal(size=(300, 12)).astype(np.float32), RNG.normal(size=(9, 12))


class ReversedEngine(LocalExecutor):
    """An engine that completes the last job first, as a cluster may, and counts the jobs."""

    def __init__(self) -> None:
        self.n_jobs = 0

    def map(self, function: Any, jobs: Any, shared: Any, **options: Any) -> Iterator[Completed[Any]]:
        self.n_jobs += len(jobs)
        for index in reversed(range(len(jobs))):
            (finished,) = super().map(function, [jobs[index]], shared, **options)
            yield Completed(index, finished.outcome)


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    return write_shards(tmp_path / "shards", [ROWS], rows=70, kind="int8")


def test_an_engine_gives_the_bytes_of_a_local_search(shards: Shards) -> None:
    map_function = resumable_map(ReversedEngine())
    local, remote = (
        nearest_in_shards(QUERIES, shards, 5),
        nearest_in_shards(QUERIES, shards, 5, map_function=map_function),
    )
    assert local.indices.tobytes() == remote.indices.tobytes()
    assert local.scores.tobytes() == remote.scores.tobytes()
    relevant = local.indices[:, 2]
    rankings = [
        ranking_from_shards(QUERIES, shards, relevant, map_function=function) for function in (None, map_function)
    ]
    assert rankings[0].above.tobytes() == rankings[1].above.tobytes()
    assert rankings[0].ranks.tolist() == [3.0] * 9


def test_a_finished_shard_is_not_searched_again(shards: Shards, tmp_path: Path) -> None:
    first, second = ReversedEngine(), ReversedEngine()
    matches = [
        nearest_in_shards(QUERIES, shards, 5, map_function=resumable_map(engine, tmp_path / "stored"))
        for engine in (first, second)
    ]
    assert (first.n_jobs, second.n_jobs) == (5, 0)
    assert matches[0].scores.tobytes() == matches[1].scores.tobytes()


@pytest.mark.parametrize("change", ["k", "queries", "geometry", "file", "damage"])
def test_stored_results_are_used_for_the_same_search_only(shards: Shards, tmp_path: Path, change: str) -> None:
    folder = tmp_path / "stored"
    nearest_in_shards(QUERIES, shards, 5, map_function=resumable_map(ReversedEngine(), folder))
    queries = -QUERIES if change == "queries" else QUERIES
    geometry = "dot" if change == "geometry" else "cosine"
    n_searched = 5
    if change == "file":
        np.save(tmp_path / "shards" / "00001.npy", np.zeros((70, 12), dtype=np.int8))
        n_searched = 1
    if change == "damage":
        next(folder.iterdir()).write_bytes(b"cut off")
        n_searched = 1
    engine, depth = ReversedEngine(), 6 if change == "k" else 5
    matches = nearest_in_shards(queries, shards, depth, geometry=geometry, map_function=resumable_map(engine, folder))
    assert engine.n_jobs == n_searched
    expected = nearest_in_shards(queries, shards, depth, geometry=geometry)
    assert matches.indices.tobytes() == expected.indices.tobytes()


def test_a_failing_shard_does_not_lose_the_others(tmp_path: Path) -> None:
    rows_with_nan = ROWS.copy()
    rows_with_nan[100, 3] = np.nan
    shards = write_shards(tmp_path / "shards", [rows_with_nan], rows=70)
    with pytest.raises(NotFiniteError, match=r"00001.npy holds NaN or infinity in vector 100"):
        nearest_in_shards(QUERIES, shards, 5, map_function=resumable_map(ReversedEngine(), tmp_path / "stored"))
    assert len(list((tmp_path / "stored").iterdir())) == 4
