"""Compressed files that expand beyond a limit raise an error with the variable that raises the limit."""

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

EXPANDED_BYTES = 3_000_000
"""Expanded size of the files of these tests: three times the limit."""


@pytest.fixture
def limit_of_one_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of one megabyte."""
    monkeypatch.setenv(VARIABLE, "0.001")


def gzipped(path: Path) -> Path:
    path.write_bytes(gzip.compress(b"q1 Q0 d1 1 0.5 tag\n" * (EXPANDED_BYTES // 19)))
    return path


def docx(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * EXPANDED_BYTES)
    return path


def npz(path: Path) -> Path:
    np.savez_compressed(path, vectors=np.zeros(EXPANDED_BYTES // 8))
    return path


def parquet(path: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"query_id": pa.array(np.zeros(EXPANDED_BYTES, dtype=np.int8))})
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


COMPRESSED_FILES: dict[str, tuple[Callable[[Path], Path], str, Callable[[Path], object]]] = {
    "run": (gzipped, "a.trec.gz", read_run),
    "texts": (gzipped, "a.txt.gz", lambda path: read_texts(str(path))),
    "document": (docx, "a.docx", read_document),
    "array": (npz, "a.npz", read_array),
    "evidence": (npz, "a.npz", load_evidence),
    "parquet": (parquet, "a.parquet", read_table),
}


@pytest.mark.usefixtures("limit_of_one_megabyte")
@pytest.mark.parametrize("kind", COMPRESSED_FILES)
def test_files_that_expand_beyond_the_limit_raise_expansion_error(tmp_path: Path, kind: str) -> None:
    write, name, read = COMPRESSED_FILES[kind]
    path = write(tmp_path / name)
    assert path.stat().st_size < EXPANDED_BYTES / 3
    with pytest.raises(ExpansionError) as error:
        read(path)
    assert (error.value.code, error.value.exit_code) == ("E209", 2)
    assert name in error.value.message
    assert VARIABLE in error.value.hint


@pytest.mark.parametrize("kind", ["run", "texts", "document", "array", "evidence"])
def test_a_higher_limit_accepts_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    write, name, read = COMPRESSED_FILES[kind]
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
def test_invalid_limits_raise_parameter_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ParameterError):
        expansion_limit(1)


def _content(data: bytes) -> bytes:
    stream = open_compressed("a", io.BytesIO(data), len(data), data[:PREFIX_BYTES])
    assert stream is not None
    return stream.read()


@pytest.mark.parametrize("members", [[b""], [b"abc"], [b"a\n", b"b\n"], [bytes(range(256)) * 9000]])
def test_content_within_the_limit_equals_gzip(members: list[bytes]) -> None:
    data = b"".join(map(gzip.compress, members))
    assert _content(data) == gzip.GzipFile(fileobj=io.BytesIO(data)).read() == b"".join(members)
