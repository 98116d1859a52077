"""Atomic replacement of directories and files: a crash leaves the old content or the new, never a part.

A directory is written next to its target as ``.NAME.WRITER.part`` and then renamed. An existing target is
first renamed to ``.NAME.WRITER.old``; a crash between the two renames is repaired by the next writer, and
until then readers use the old directory. WRITER names host and process, so that the files of a killed writer
can be distinguished from those of a running one.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, InputError, PartialError, StoreError
from equipoise.io.text import PathLike, display_path

PART, OLD = ".part", ".old"
_WRITER = re.compile(r"(?P<host>[0-9a-f]{8})-(?P<process>\d+)-[0-9a-f]{8}")
_PART_FILE = re.compile(rf"\..+\.{_WRITER.pattern}{re.escape(PART)}", re.DOTALL)


@contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """A directory to write into, which replaces ``target`` when the block ends without an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target)
    name = writer()
    part, old = (target.with_name(f".{target.name}.{name}{ending}") for ending in (PART, OLD))
    part.mkdir()
    try:
        yield part
        sync_directory(part)
        _put(part, target, old)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    sync_directory(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def current_path(target: Path) -> Path:
    """The path of the content of ``target``: itself, or the backup while it is being replaced."""
    if not target.exists():
        old_paths = _writer_folders(target, OLD)
        if old_paths:
            return max(old_paths, key=lambda path: path.stat().st_mtime_ns)
    return target


def pending_directories(target: Path) -> list[Path]:
    """Directories that were being written for ``target`` and have not replaced it."""
    return _writer_folders(target, PART)


def remove_leftovers(target: Path) -> None:
    """Clean up after killed writers: restore the old directory, or remove their files."""
    old_paths = [path for path in _writer_folders(target, OLD) if is_abandoned(path, target)]
    for path in sorted(old_paths, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        if target.exists():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.rename(target)
    for path in pending_directories(target):
        if is_abandoned(path, target):
            shutil.rmtree(path, ignore_errors=True)


def remove_abandoned_files(folder: Path) -> None:
    """Remove the partial files in a folder whose writers were killed, of all targets.

    A file may have been named after its writer, so that the next writer has another name for it.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(PART)]
        for name in names:
            match = _PART_FILE.fullmatch(name)
            if match is not None and _is_gone(match) and not (folder / name).is_dir():
                (folder / name).unlink(missing_ok=True)


def sync_directory(folder: Path) -> None:
    """Make renames in a directory durable, if the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put(part: Path, target: Path, old: Path) -> None:
    try:
        if target.exists():
            target.rename(old)
        part.rename(target)
    except BaseException:
        # The new directory is not there, so the old one is restored; ``clean_up`` repairs a crash in between.
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def _writer_folders(target: Path, ending: str) -> list[Path]:
    """The directories of writers of ``target``, and of no other target with the same prefix."""
    with suppress(OSError):
        return [
            entry
            for entry in target.parent.iterdir()
            if entry.suffix == ending and _writer(entry, target) is not None and entry.is_dir()
        ]
    return []


def _writer(path: Path, target: Path) -> re.Match[str] | None:
    """The host and the process id in a file name."""
    start = f".{target.name}."
    return _WRITER.fullmatch(path.stem.removeprefix(start)) if path.name.startswith(start) else None


def is_abandoned(path: Path, target: Path) -> bool:
    """Whether the writer ran on this host and has ended."""
    match = _writer(path, target)
    return match is not None and _is_gone(match)


def _is_gone(writer: re.Match[str]) -> bool:
    """Whether a writer may be running: true on another host, or if the process id is in use."""
    return writer["host"] == host_id() and not _is_alive(int(writer["process"]))


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # on other systems signal 0 is sent and not only checked
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def writer() -> str:
    """A name for a partial file of this process; every call gives another one."""
    return f"{host_id()}-{os.getpid()}-{os.urandom(4).hex()}"


def host_id() -> str:
    """This machine, as named in temporary files."""
    return f"{crc32(socket.gethostname().encode()):08x}"


# Atomic writes of files.

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
}
_ROOM = "free disk space: finished results are kept, and the same command resumes"


def write_text(path: PathLike, text: str) -> None:
    """Replace a file by this text in one step; a name that ends in .gz is compressed.

    A reader of the path gets the old content or the new, never a part, and equal texts
    give equal bytes.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{display_path(path)} cannot be written: the text holds half of a surrogate pair",
            hint="the input was decoded with the wrong encoding",
        ) from error
    write_bytes(path, _compress(data) if Path(path).suffix == ".gz" else data)


def write_bytes(path: PathLike, data: bytes) -> None:
    """Replace a file by these bytes in one step."""
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with atomic_file(target) as stream:
            stream.write(data)
    except (OSError, ValueError) as error:
        folder_exists = target.parent.is_dir()
        hint = "choose another folder" if folder_exists else f"make the folder first: mkdir -p {target.parent}"
        raise write_error(path, error, hint=hint) from error


def write_array(file: Path, array: NDArray[Any]) -> None:
    """Replace a ``.npy`` file by this array in one step; an ``OSError`` is raised unchanged.

    numpy's writer bypasses the stream, and reports a full disk only as a number of items.
    """
    matrix = np.ascontiguousarray(array)
    with atomic_file(file) as stream:
        np.lib.format.write_array_header_2_0(stream, np.lib.format.header_data_from_array_1_0(matrix))
        stream.write(matrix.data)


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """A file to write into, which replaces ``target`` when the block ends without an error.

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


def write_error(path: PathLike, error: BaseException | None, *, hint: str = "") -> EquipoiseError:
    """The error of a file or a folder that cannot be written; a full disk is a ``PartialError``.

    >>> write_error("results", OSError(errno.ENOSPC, "No space left on device")).exit_code
    3
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return PartialError(f"{display_path(path)} cannot be written: {_FULL[error.errno]}", hint=_ROOM)
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return StoreError(f"{display_path(path)} cannot be written: {reason}", hint=hint)


def _compress(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data, mtime=0)
