"""Files are replaced atomically."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise
from equipoise.errors import EquipoiseError, PartialError, StoreError
from equipoise.io.atomic import write_bytes, write_text


def test_writing_replaces_the_file_and_leaves_no_other_files(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    write_text(tmp_path / "a.txt", "new ä\n")
    assert (tmp_path / "a.txt").read_bytes() == "new ä\n".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_gz_names_are_compressed_to_equal_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_text(tmp_path / name, "text")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_failures_leave_the_old_file_and_no_temporary_files(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def raise_disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", raise_disk_full)
    with pytest.raises(PartialError) as error:
        write_text(path, "new")
    assert error.value.hint
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_interrupts_leave_the_old_file_and_no_temporary_files(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def raise_interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_unwritable_targets_raise_errors(tmp_path):
    with pytest.raises(StoreError):
        write_bytes(tmp_path, b"x")
    with pytest.raises(StoreError) as error:
        write_bytes(tmp_path / "none" / "a.txt", b"x")
    assert error.value.hint.startswith("make the folder first: mkdir -p")
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
    print("started", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def start_writer(path, behaviour):
    environment = {**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), behaviour],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdout.readline() == "started\n"
    return process


@pytest.mark.skipif(os.name != "posix", reason="running processes are detected by signal 0")
@pytest.mark.slow
def test_temporary_files_of_killed_processes_are_removed(tmp_path):
    with start_writer(tmp_path / "alive.json", "waits") as process:
        with start_writer(tmp_path / "killed.json", "killed"):
            pass
        names = sorted(file.name for file in tmp_path.iterdir())
        assert [name.split(".")[1] for name in names] == ["alive", "killed"]
        write_text(tmp_path / "other.txt", "done")
        assert sorted(file.name for file in tmp_path.iterdir()) == [names[0], "other.txt"]
        process.communicate("")
    assert process.returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["alive.json", "other.txt"]


def test_only_temporary_files_of_this_program_and_host_are_removed(tmp_path):
    finished_process = subprocess.Popen([sys.executable, "-c", ""])
    finished_process.wait()
    other_names = [
        f".a.json.00000000-{finished_process.pid}-01234567.part",  # of another host
        ".vectors.npz.part",  # of an interrupted eq embed, which resumes from it
        "download.part",
        f"a.{finished_process.pid}.part",
    ]
    for name in other_names:
        (tmp_path / name).write_bytes(b"x")
    write_text(tmp_path / "b.txt", "done")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*other_names, "b.txt"])
