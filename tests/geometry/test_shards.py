"""A corpus in shards: positions of rows, memory-mapped files and shape errors."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import InputError, ShapeError
from equipoise.geometry.shards import MappedRows, Shard, Shards

ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)


@pytest.fixture
def mapped(tmp_path: Path) -> MappedRows:
    np.save(tmp_path / "rows.npy", ROWS)
    rows = MappedRows.of(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    assert rows is not None
    return rows


def test_mapped_rows_equal_the_array(mapped: MappedRows) -> None:
    assert np.array_equal(mapped.read(), ROWS)
    assert np.array_equal(mapped[5:9].read(), ROWS[5:9])
    assert np.array_equal(mapped[5:9][1:].take(np.array([2, 0])), ROWS[[8, 6]])
    assert len(mapped[30:]) == 0
    assert mapped[30:].read().shape == (0, 3)


def test_mapped_rows_are_pickled_as_a_path(mapped: MappedRows) -> None:
    pickled = pickle.dumps(Shard(mapped))
    assert len(pickled) < 500
    assert np.array_equal(pickle.loads(pickled).take(np.array([3])), ROWS[[3]])


def test_truncated_and_deleted_files_raise_input_error(mapped: MappedRows) -> None:
    Path(mapped.path).write_bytes(b"gone")
    with pytest.raises(InputError):
        mapped.read()
    Path(mapped.path).unlink()
    with pytest.raises(InputError):
        mapped.read()


def test_fortran_order_is_not_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "columns.npy", np.asfortranarray(ROWS))
    assert MappedRows.of(np.load(tmp_path / "columns.npy", mmap_mode="r")) is None


def test_shards_number_their_vectors_consecutively(mapped: MappedRows) -> None:
    shards = Shards.of([Shard(mapped[:7]), ROWS[7:8], Shard(mapped[8:])]).split(shard_bytes=5 * 12)
    assert [shard.first for shard in shards.parts] == [0, 5, 7, 8, 13, 18]
    indices = np.array([19, 0, 7, 6, 7])
    assert np.array_equal(shards.take(indices), ROWS[indices])
    all_rows = np.concatenate([rows for shard in shards.parts for _, rows in shard.windows()])
    assert np.array_equal(all_rows, ROWS)


def test_int8_rows_are_integers_times_their_step() -> None:
    shard = Shard(np.array([[1, -2], [127, 0]], dtype=np.int8), steps=np.array([[0.5], [2.0]], dtype=np.float32))
    ((first, rows),) = shard.windows()
    assert (first, rows.dtype, rows.tolist()) == (0, np.float32, [[0.5, -1.0], [254.0, 0.0]])
    assert shard.take(np.array([1])).tolist() == [[254.0, 0.0]]


def test_mismatched_shards_raise_errors() -> None:
    with pytest.raises(ShapeError, match=r"1.*4 coordinates.*0.*3"):
        Shards.of([ROWS, np.zeros((2, 4))])
    with pytest.raises(ShapeError, match=r"2 vectors.*1 steps"):
        Shards.of([Shard(np.zeros((2, 3), dtype=np.int8), steps=np.ones((1, 1)))])
    with pytest.raises(InputError):
        Shards.of([np.zeros((0, 3))])
