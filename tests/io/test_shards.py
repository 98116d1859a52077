"""Shards as files: writing, memory mapping, quantisation and errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import FormatError, InputError, ParameterError, ShapeError
from equipoise.geometry.shards import MappedRows, open_shards, quantize_int8, write_shards
from equipoise.models.encoder import int8_roundtrip

ROWS = np.random.default_rng(0).normal(size=(25, 4)).astype(np.float32)
ALL_ROWS = np.arange(25)


def test_blocks_of_any_size_become_shards_of_equal_size(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "new" / "folder", [ROWS[:3], ROWS[3:19], ROWS[19:]], rows=10)
    assert [len(shard) for shard in shards.parts] == [10, 10, 5]
    assert np.array_equal(shards.take(ALL_ROWS), ROWS)
    assert all(isinstance(shard.rows, MappedRows) for shard in shards.parts)


def test_int8_shards_have_one_step_per_vector(tmp_path: Path) -> None:
    write_shards(tmp_path, [ROWS], rows=10, kind="int8")
    shards = open_shards(tmp_path)
    assert len(shards) == 25
    assert np.array_equal(shards.take(ALL_ROWS), int8_roundtrip(ROWS))
    assert np.abs(shards.take(ALL_ROWS) - ROWS).max() <= np.abs(ROWS).max() / 254


def test_zero_vectors_are_quantised_to_zeros() -> None:
    quantised, steps = quantize_int8(np.zeros((1, 3)))
    assert (quantised.tolist(), np.isfinite(steps).all()) == ([[0, 0, 0]], True)


def test_a_smaller_corpus_replaces_all_files_of_a_larger_one(tmp_path: Path) -> None:
    write_shards(tmp_path, [ROWS], rows=5, kind="int8")
    write_shards(tmp_path, [ROWS[:7]], rows=5)
    (tmp_path / "00000.steps.npy").unlink()
    assert np.array_equal(open_shards(tmp_path).take(ALL_ROWS[:7]), ROWS[:7])


def test_single_and_several_files_are_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ROWS[:9])
    np.savez(tmp_path / "b.npz", vectors=ROWS[9:])
    shards = open_shards([tmp_path / "a.npy", tmp_path / "b.npz"])
    assert np.array_equal(shards.take(ALL_ROWS), ROWS)
    assert len(open_shards(tmp_path / "a.npy")) == 9


def test_mismatched_files_raise_errors(tmp_path: Path) -> None:
    write_shards(tmp_path / "a", [ROWS], rows=10, kind="int8")
    (tmp_path / "a" / "00001.steps.npy").unlink()
    with pytest.raises(InputError, match=r"00001.npy.*int8 rows"):
        open_shards(tmp_path / "a")
    np.save(tmp_path / "b.npy", ROWS[:, :3])
    np.save(tmp_path / "c.npy", ROWS)
    with pytest.raises(ShapeError, match=r"c.npy.*4 coordinates.*3"):
        open_shards([tmp_path / "b.npy", tmp_path / "c.npy"])
    with pytest.raises(ShapeError, match=r"3 coordinates.*4"):
        write_shards(tmp_path / "d", [ROWS, ROWS[:, :3]])
    np.save(tmp_path / "names.npy", np.array([["a"]]))
    with pytest.raises(FormatError) as error:
        open_shards(tmp_path / "names.npy")
    assert error.value.code == "E204"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        open_shards(tmp_path / "empty")
    with pytest.raises(ParameterError, match="'int4'"):
        write_shards(tmp_path / "e", [ROWS], kind="int4")


WRITER_WITH_FULL_DISK = """
import resource, sys
import numpy as np
from equipoise.geometry.shards import write_shards
from equipoise.errors import PartialError

def blocks():
    yield np.ones((20, 4), dtype=np.float32)
    # A file size limit below the size of a shard simulates a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    yield np.ones((20, 4), dtype=np.float32)

try:
    write_shards(sys.argv[1], blocks(), rows=20)
except PartialError as error:
    print(error.render())
    sys.exit(error.exit_code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit there")
def test_a_full_disk_leaves_the_complete_shards(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", WRITER_WITH_FULL_DISK, str(tmp_path / "shards")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 3, process.stderr
    assert "cannot take shard 1: File too large" in process.stdout
    assert "hint: the 1 shards before it are complete" in process.stdout
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == ["00000.npy"]
    assert len(open_shards(tmp_path / "shards")) == 20
