"""Files are replaced whole or not at all."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise
from equipoise.errors import EquipoiseError, PartialError, StoreError
from equipoise.io.atomic import write_bytes, write_text


def test_what_is_written_is_what_stands_there_and_nothing_beside_it(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    write_text(tmp_path / "a.txt", "new ä\n")
    assert (tmp_path / "a.txt").read_bytes() == "new ä\n".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_gz_names_are_compressed_to_equal_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_text(tmp_path / name, "text")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_failure_leaves_the_old_file_and_no_parts(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PartialError) as caught:
        write_text(path, "new")
    assert caught.value.hint
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupt_leaves_the_old_file_and_no_parts(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_targets_that_cannot_be_written_are_explained(tmp_path):
    with pytest.raises(StoreError):
        write_bytes(tmp_path, b"x")
    with pytest.raises(StoreError) as caught:
        write_bytes(tmp_path / "none" / "a.txt", b"x")
    assert caught.value.hint.startswith("make the folder first: mkdir -p")
    with pytest.raises(StoreError):
        write_bytes("a\0b", b"x")
    with pytest.raises(EquipoiseError, match="surrogate"):
        write_text(tmp_path / "a.txt", "\ud800")


WRITER = """
import os, signal, sys
from pathlib import Path
from equipoise.io.atomic import atomic_file
with atomic_file(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    print("begun", flush=True)
    if sys.argv[2] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def begin_writing(path, how):
    environment = {**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.skipif(os.name != "posix", reason="processes are told apart by signal 0")
@pytest.mark.slow
def test_the_part_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(tmp_path):
    with begin_writing(tmp_path / "alive.json", "waits") as alive:
        with begin_writing(tmp_path / "killed.json", "dies"):
            pass
        names = sorted(file.name for file in tmp_path.iterdir())
        assert [name.split(".")[1] for name in names] == ["alive", "killed"]
        write_text(tmp_path / "other.txt", "done")
        assert sorted(file.name for file in tmp_path.iterdir()) == [names[0], "other.txt"]
        alive.communicate("")
    assert alive.returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["alive.json", "other.txt"]


def test_only_parts_of_this_program_and_host_are_removed(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    others = [
        f".a.json.00000000-{gone.pid}-01234567.part",  # of another host
        ".vectors.npz.part",  # an interrupted eq embed, which goes on from it
        "download.part",
        f"a.{gone.pid}.part",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"x")
    write_text(tmp_path / "b.txt", "done")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*others, "b.txt"])
