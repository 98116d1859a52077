"""Files are replaced whole or not at all."""

import gzip

import pytest

from equipoise.data.atomic import write_bytes, write_text
from equipoise.errors import EquipoiseError, PartialError, StoreError


def test_what_is_written_is_what_stands_there_and_nothing_beside_it(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    write_text(tmp_path / "a.txt", "new ä\n")
    assert (tmp_path / "a.txt").read_bytes() == "new ä\n".encode()
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


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
    with pytest.raises(PartialError, match="the disk is full") as caught:
        write_text(path, "new")
    assert "the same command goes on" in caught.value.hint
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupt_leaves_the_old_file_and_no_parts(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_targets_that_cannot_be_written_are_explained(tmp_path):
    with pytest.raises(StoreError, match="it is a folder"):
        write_bytes(tmp_path, b"x")
    with pytest.raises(StoreError) as caught:
        write_bytes(tmp_path / "none" / "a.txt", b"x")
    assert caught.value.hint.startswith("make the folder first: mkdir -p")
    with pytest.raises(StoreError):
        write_bytes("a\0b", b"x")
    with pytest.raises(EquipoiseError, match="surrogate"):
        write_text(tmp_path / "a.txt", "\ud800")
