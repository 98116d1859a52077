"""Shards on an engine: the bytes of a search in this process, and nothing that was finished is lost."""

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


class Backwards(LocalExecutor):
    """A real engine that finishes the last cell first, as a cluster may, and counts them."""

    def __init__(self) -> None:
        self.cells = 0

    def map(self, function: Any, cells: Any, shared: Any, **options: Any) -> Iterator[Completed[Any]]:
        self.cells += len(cells)
        for place in reversed(range(len(cells))):
            (finished,) = super().map(function, [cells[place]], shared, **options)
            yield Completed(place, finished.outcome)


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    return write_shards(tmp_path / "shards", [ROWS], rows=70, kind="int8")


def test_an_engine_gives_the_bytes_of_this_process(shards: Shards) -> None:
    over = resumable_map(Backwards())
    here, there = nearest_in_shards(QUERIES, shards, 5), nearest_in_shards(QUERIES, shards, 5, map_function=over)
    assert here.indices.tobytes() == there.indices.tobytes()
    assert here.scores.tobytes() == there.scores.tobytes()
    relevant = here.indices[:, 2]
    ranked = [ranking_from_shards(QUERIES, shards, relevant, map_function=how) for how in (None, over)]
    assert ranked[0].above.tobytes() == ranked[1].above.tobytes()
    assert ranked[0].ranks.tolist() == [3.0] * 9


def test_a_finished_shard_is_not_searched_again(shards: Shards, tmp_path: Path) -> None:
    first, second = Backwards(), Backwards()
    found = [
        nearest_in_shards(QUERIES, shards, 5, map_function=resumable_map(engine, tmp_path / "kept"))
        for engine in (first, second)
    ]
    assert (first.cells, second.cells) == (5, 0)
    assert found[0].scores.tobytes() == found[1].scores.tobytes()


@pytest.mark.parametrize("change", ["k", "queries", "geometry", "file", "damage"])
def test_what_was_kept_serves_nothing_else(shards: Shards, tmp_path: Path, change: str) -> None:
    kept = tmp_path / "kept"
    nearest_in_shards(QUERIES, shards, 5, map_function=resumable_map(Backwards(), kept))
    queries = -QUERIES if change == "queries" else QUERIES
    geometry = "dot" if change == "geometry" else "cosine"
    changed = 5
    if change == "file":
        np.save(tmp_path / "shards" / "00001.npy", np.zeros((70, 12), dtype=np.int8))
        changed = 1
    if change == "damage":
        next(kept.iterdir()).write_bytes(b"cut off")
        changed = 1
    engine, depth = Backwards(), 6 if change == "k" else 5
    found = nearest_in_shards(queries, shards, depth, geometry=geometry, map_function=resumable_map(engine, kept))
    assert engine.cells == changed
    plain = nearest_in_shards(queries, shards, depth, geometry=geometry)
    assert found.indices.tobytes() == plain.indices.tobytes()


def test_a_shard_that_fails_leaves_the_others(tmp_path: Path) -> None:
    broken = ROWS.copy()
    broken[100, 3] = np.nan
    shards = write_shards(tmp_path / "shards", [broken], rows=70)
    with pytest.raises(NotFiniteError, match=r"00001.npy holds NaN or infinity in vector 100"):
        nearest_in_shards(QUERIES, shards, 5, map_function=resumable_map(Backwards(), tmp_path / "kept"))
    assert len(list((tmp_path / "kept").iterdir())) == 4
