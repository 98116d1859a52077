"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from equipoise.data.swap import PART, remove_abandoned_files, writer
from equipoise.data.text import PathLike, shown
from equipoise.errors import EquipoiseError, InputError, PartialError, StoreError

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
}
_ROOM = "make room: what was finished before stays, and the same command goes on"


def write_text(path: PathLike, text: str) -> None:
    """Replace a file by this text in one step; a name that ends in .gz is compressed.

    Whoever reads the path meanwhile sees the old content or the new, never a part, and equal texts
    give equal bytes.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{shown(path)} cannot be written: the text holds half of a surrogate pair",
            hint="the input was decoded with the wrong encoding",
        ) from error
    write_bytes(path, _compressed(data) if Path(path).suffix == ".gz" else data)


def write_bytes(path: PathLike, data: bytes) -> None:
    """Replace a file by these bytes in one step."""
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with replaced_file(target) as stream:
            stream.write(data)
    except (OSError, ValueError) as error:
        there = target.parent.is_dir()
        hint = "choose another folder" if there else f"make the folder first: mkdir -p {target.parent}"
        raise unwritten(path, error, hint=hint) from error


def write_array(file: Path, array: NDArray[Any]) -> None:
    """Replace a ``.npy`` file by this array in one step; raises the ``OSError`` of a disk as it is.

    numpy's own writer goes around the stream, and says of a full disk only how many items it has taken.
    """
    matrix = np.ascontiguousarray(array)
    with replaced_file(file) as stream:
        np.lib.format.write_array_header_2_0(stream, np.lib.format.header_data_from_array_1_0(matrix))
        stream.write(matrix.data)


@contextmanager
def replaced_file(target: Path) -> Iterator[BinaryIO]:
    """A file to write into, which takes the place of ``target`` when the block ends well.

    Parts that killed processes have left in the folder are removed.
    """
    remove_abandoned_files(target.parent)
    part = target.with_name(f".{target.name}.{writer()}{PART}")
    try:
        with open(part, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def unwritten(path: PathLike, error: BaseException | None, *, hint: str = "") -> EquipoiseError:
    """The error of a file or a folder that cannot be written; whoever meets a full disk can go on later.

    >>> unwritten("results", OSError(errno.ENOSPC, "No space left on device")).exit_code
    3
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return PartialError(f"{shown(path)} cannot be written: {_FULL[error.errno]}", hint=_ROOM)
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return StoreError(f"{shown(path)} cannot be written: {reason}", hint=hint)


def _compressed(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data, mtime=0)
