"""Shards as files: written whole, opened without being read, and refused where they do not fit together."""

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
ALL = np.arange(25)


def test_blocks_of_any_size_become_shards_of_one_size(tmp_path: Path) -> None:
    made = write_shards(tmp_path / "new" / "folder", [ROWS[:3], ROWS[3:19], ROWS[19:]], rows=10)
    assert [len(shard) for shard in made.parts] == [10, 10, 5]
    assert np.array_equal(made.take(ALL), ROWS)
    assert all(isinstance(shard.rows, MappedRows) for shard in made.parts)


def test_int8_shards_keep_a_step_a_vector(tmp_path: Path) -> None:
    write_shards(tmp_path, [ROWS], rows=10, kind="int8")
    found = open_shards(tmp_path)
    assert len(found) == 25
    assert np.array_equal(found.take(ALL), int8_roundtrip(ROWS))
    assert np.abs(found.take(ALL) - ROWS).max() <= np.abs(ROWS).max() / 254


def test_a_vector_of_zeros_has_an_int8_form() -> None:
    whole, steps = quantize_int8(np.zeros((1, 3)))
    assert (whole.tolist(), np.isfinite(steps).all()) == ([[0, 0, 0]], True)


def test_a_smaller_corpus_leaves_nothing_of_a_larger_one(tmp_path: Path) -> None:
    write_shards(tmp_path, [ROWS], rows=5, kind="int8")
    write_shards(tmp_path, [ROWS[:7]], rows=5)
    (tmp_path / "00000.steps.npy").unlink()
    assert np.array_equal(open_shards(tmp_path).take(ALL[:7]), ROWS[:7])


def test_a_single_file_and_several_files_are_opened_too(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ROWS[:9])
    np.savez(tmp_path / "b.npz", vectors=ROWS[9:])
    found = open_shards([tmp_path / "a.npy", tmp_path / "b.npz"])
    assert np.array_equal(found.take(ALL), ROWS)
    assert len(open_shards(tmp_path / "a.npy")) == 9


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
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
    with pytest.raises(FormatError, match="int8 vectors"):
        open_shards(tmp_path / "names.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        open_shards(tmp_path / "empty")
    with pytest.raises(ParameterError, match="'int4'"):
        write_shards(tmp_path / "e", [ROWS], kind="int4")


LIMITED = """
import resource, sys
import numpy as np
from equipoise.geometry.shards import write_shards
from equipoise.errors import PartialError

def blocks():
    yield np.ones((20, 4), dtype=np.float32)
    # From here on a file can hold less than a shard, as when the disk fills.
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
def test_a_disk_that_fills_leaves_the_shards_that_are_whole(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "shards")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3, ended.stderr
    assert "cannot take shard 1: File too large" in ended.stdout
    assert "hint: the 1 shards before it are complete" in ended.stdout
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == ["00000.npy"]
    assert len(open_shards(tmp_path / "shards")) == 20
