"""Rows on their way to a file: appended batch by batch, checked on resuming, renamed when all are there.

Beside the target lie, until the end, ``.NAME.part`` with the rows and ``.NAME.part.log`` with a line a batch:
how many rows, a digest of the texts that they stand for, and a checksum of the rows.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from equipoise.data.atomic import unwritten, write_text
from equipoise.embed.encoder import Vectors
from equipoise.embed.rowkeys import RowKeys
from equipoise.errors import ParameterError, StoreError

SUFFIXES = (".npy", ".npz")
_HEADER = 128
_COPIED = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BYTES_AT_ONCE = 16 << 20


class RowFile:
    """A matrix being written; ``head`` is what must be equal for an interrupted one to be continued."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        if path.suffix.casefold() not in SUFFIXES:
            raise ParameterError(
                f"{path} has a suffix that names no format", hint=f"use one of {', '.join(SUFFIXES)}"
            )
        if path.is_dir():
            raise StoreError(f"{path} cannot be written: it is a folder", hint="name a file in it")
        self.path = path
        self.rows = 0
        self.dims: int | None = None
        self._head = head
        self._part = path.with_name(f".{path.name}.part")
        self._log = path.with_name(f".{path.name}.part.log")
        with _explained(path):
            self._stream: BinaryIO = open(self._part, "r+b" if self._part.exists() else "w+b")  # noqa: SIM115
        _lock(self._stream, path)
        self._batches = self._read_log()
        self._next = 0

    def take(self, digest: str) -> dict[str, Any] | None:
        """What the log says of the next batch, if it is the batch of these texts and its rows are whole.

        After the first batch that is not, everything that follows is written anew.
        """
        if self._next >= len(self._batches):
            return None
        batch = self._batches[self._next]
        if batch.get("texts") == digest and self._rows_are_whole(batch):
            self._next += 1
            self.rows += batch["rows"]
            return batch
        self._drop_rest()
        return None

    def append(self, vectors: Vectors, digest: str, facts: dict[str, Any]) -> None:
        """Add the rows of a batch, then the line that vouches for them."""
        if self._next < len(self._batches):
            self._drop_rest()
        dims = vectors.shape[1]
        if self.dims is not None and dims != self.dims:
            raise StoreError(f"{self.path} has rows of {self.dims} dimensions and was given {dims}")
        data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        line = {"rows": len(vectors), "texts": digest, "crc": zlib.crc32(data), **facts}
        with _explained(self.path):
            if self.dims is None:
                self.dims = dims
                self._log.write_text(f"{json.dumps({**self._head, 'dims': dims})}\n", encoding="utf-8")
            self._stream.seek(self._end)
            self._stream.truncate()
            self._stream.write(data)
            self._stream.flush()
            with open(self._log, "a", encoding="utf-8") as log:
                log.write(f"{json.dumps(line)}\n")
        self.rows += len(vectors)
        self._batches.append(line)
        self._next = len(self._batches)

    def finish(self, keys: RowKeys) -> None:
        """Make the file: all rows, under its name, in one step."""
        with _explained(self.path):
            self._stream.truncate(self._end)
            self._stream.seek(0)
            self._stream.write(_npy_header("<f4", (self.rows, self.dims or 0)))
            self._stream.flush()
            os.fsync(self._stream.fileno())
            if self.path.suffix.casefold() == ".npz":
                self._zip(keys)
                self._part.unlink()
            else:
                if keys.given is not None:
                    write_text(self.path.with_suffix(".ids"), "".join(f"{each}\n" for each in keys.given))
                os.replace(self._part, self.path)
            self._log.unlink(missing_ok=True)
        self._stream.close()

    def close(self) -> None:
        """Leave what was written for another time; a file without a single row is removed."""
        if self._stream.closed:
            return
        with suppress(OSError):  # a full disk refuses what is left in the buffer once more
            self._stream.close()
        if not self.rows:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
                self._log.unlink(missing_ok=True)

    @property
    def _end(self) -> int:
        """Where the next row goes."""
        return _HEADER + self.rows * (self.dims or 0) * 4

    def _read_log(self) -> list[dict[str, Any]]:
        """The batches of an interrupted write of the same texts by the same model; a torn line ends them."""
        found: list[dict[str, Any]] = []
        try:
            lines = self._log.read_text(encoding="utf-8").splitlines()
            head = json.loads(lines[0])
            dims = head.pop("dims")
            if head != self._head or not isinstance(dims, int):
                return []
            self.dims = dims
            found.extend(json.loads(line) for line in lines[1:])
        except (OSError, ValueError, KeyError, IndexError, AttributeError, TypeError):
            pass
        return [each for each in found if isinstance(each.get("rows"), int)]

    def _rows_are_whole(self, batch: dict[str, Any]) -> bool:
        length = batch["rows"] * (self.dims or 0) * 4
        self._stream.seek(self._end)
        data = self._stream.read(length)
        return len(data) == length and zlib.crc32(data) == batch.get("crc")

    def _drop_rest(self) -> None:
        """Forget the batches that were not taken, in the log as well."""
        del self._batches[self._next :]
        if not self._batches:
            self.dims = None
            return
        lines = [{**self._head, "dims": self.dims}, *self._batches]
        with _explained(self.path):
            write_text(self._log, "".join(f"{json.dumps(line)}\n" for line in lines))

    def _zip(self, keys: RowKeys) -> None:
        """An archive of the rows and their keys, made piece by piece; equal input, equal bytes."""
        whole = self.path.with_name(f".{self.path.name}.zip.part")
        try:
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                with archive.open(zipfile.ZipInfo("vectors.npy", _EPOCH), "w", force_zip64=True) as member:
                    self._stream.seek(0)
                    shutil.copyfileobj(self._stream, member, _COPIED)
                for name, strings in keys.arrays():
                    info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                    # Every entry is as wide as the longest: mostly zeros.
                    info.compress_type = zipfile.ZIP_DEFLATED
                    with archive.open(info, "w", force_zip64=True) as member:
                        for piece in _string_bytes(strings):
                            member.write(piece)
            os.replace(whole, self.path)
        finally:
            whole.unlink(missing_ok=True)


def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of an .npy file, always of the same length, so that it can be written last."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    length = _HEADER - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + f"{text:<{length - 1}}\n".encode("latin-1")


def _string_bytes(strings: Sequence[str]) -> Iterator[bytes]:
    """An .npy file of strings, some at a time."""
    width = max(map(len, strings), default=1) or 1
    dtype = np.dtype(f"<U{width}")
    yield _npy_header(dtype.str, (len(strings),))
    step = max(1, _BYTES_AT_ONCE // dtype.itemsize)
    for start in range(0, len(strings), step):
        yield np.array(strings[start : start + step], dtype=dtype).tobytes()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What the operating system refuses, as a sentence."""
    try:
        yield
    except OSError as error:
        missing = not path.parent.is_dir()
        hint = f"make the folder first: mkdir -p {path.parent}" if missing else "choose another folder"
        raise unwritten(path, error, hint=hint) from error


def _lock(stream: BinaryIO, path: Path) -> None:
    """Keep a second process from writing the same file; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise StoreError(
            f"{path} is being written by another process", hint="wait for it, or choose another name"
        ) from error
