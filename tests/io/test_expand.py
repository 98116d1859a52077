"""Compressed files expand up to a limit that says how to raise it."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import EquipoiseError, ExpansionError, ParameterError
from equipoise.io.arrays import read_array
from equipoise.io.documents import read_document
from equipoise.io.run_files import read_run
from equipoise.io.tables import read_table
from equipoise.io.text import CEILING, FLOOR, PREFIX_BYTES, RATIO, VARIABLE, expansion_limit, open_compressed
from equipoise.io.texts_to_embed import read_texts
from equipoise.runs.run_folder import load_evidence

SIZE = 3_000_000
"""Bytes that the files of these tests expand to: three times the limit that is set here."""


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of one megabyte."""
    monkeypatch.setenv(VARIABLE, "0.001")


def gzipped(path: Path) -> Path:
    path.write_bytes(gzip.compress(b"q1 Q0 d1 1 0.5 tag\n" * (SIZE // 19)))
    return path


def docx(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * SIZE)
    return path


def npz(path: Path) -> Path:
    np.savez_compressed(path, vectors=np.zeros(SIZE // 8))
    return path


def parquet(path: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"query_id": pa.array(np.zeros(SIZE, dtype=np.int8))})
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


BOMBS: dict[str, tuple[Callable[[Path], Path], str, Callable[[Path], object]]] = {
    "run": (gzipped, "a.trec.gz", read_run),
    "texts": (gzipped, "a.txt.gz", lambda path: read_texts(str(path))),
    "document": (docx, "a.docx", read_document),
    "array": (npz, "a.npz", read_array),
    "evidence": (npz, "a.npz", load_evidence),
    "parquet": (parquet, "a.parquet", read_table),
}


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_that_expands_beyond_the_limit_is_an_error(tmp_path: Path, kind: str) -> None:
    write, name, read = BOMBS[kind]
    path = write(tmp_path / name)
    assert path.stat().st_size < SIZE / 3
    with pytest.raises(ExpansionError) as caught:
        read(path)
    assert (caught.value.code, caught.value.exit_code) == ("E209", 2)
    assert name in caught.value.message
    assert VARIABLE in caught.value.hint


@pytest.mark.parametrize("kind", ["run", "texts", "document", "array", "evidence"])
def test_a_higher_limit_lets_it_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    write, name, read = BOMBS[kind]
    try:
        read(write(tmp_path / name))
        code = ""
    except EquipoiseError as error:
        code = error.code
    assert code != "E209"


def test_the_limit_grows_with_the_file_between_a_floor_and_a_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert expansion_limit(1) == FLOOR
    assert expansion_limit(FLOOR) == RATIO * FLOOR
    assert expansion_limit(CEILING) == CEILING


@pytest.mark.parametrize("value", ["x", "-1", "0", "nan", "inf"])
def test_a_limit_that_is_no_number_is_an_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ParameterError):
        expansion_limit(1)


def _content(data: bytes) -> bytes:
    stream = open_compressed("a", io.BytesIO(data), len(data), data[:PREFIX_BYTES])
    assert stream is not None
    return stream.read()


@pytest.mark.parametrize("parts", [[b""], [b"abc"], [b"a\n", b"b\n"], [bytes(range(256)) * 9000]])
def test_what_fits_is_what_gzip_gives(parts: list[bytes]) -> None:
    data = b"".join(map(gzip.compress, parts))
    assert _content(data) == gzip.GzipFile(fileobj=io.BytesIO(data)).read() == b"".join(parts)
