"""Putting a whole directory in the place of another, so that a crash leaves the old one or the new one.

A directory is written beside its target as ``.NAME.WRITER.part`` and then renamed. Where the target exists it
first steps aside as ``.NAME.WRITER.old``; a crash between the two renames is repaired by the
next writer, and until then readers find the old one there. WRITER names host and process, so that what a dead
writer left behind can be told from what a living one is busy with.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

PART, OLD = ".part", ".old"
_WRITER = re.compile(r"(?P<host>[0-9a-f]{8})-(?P<process>\d+)-[0-9a-f]{8}")


@contextmanager
def replaced_directory(target: Path) -> Iterator[Path]:
    """A directory to write into, which takes the place of ``target`` when the block ends well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    clean_up(target)
    writer = f"{host()}-{os.getpid()}-{os.urandom(4).hex()}"
    part, old = (target.with_name(f".{target.name}.{writer}{ending}") for ending in (PART, OLD))
    part.mkdir()
    try:
        yield part
        sync_directory(part)
        _put(part, target, old)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    sync_directory(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def standing(target: Path) -> Path:
    """Where the content of ``target`` is: there, or beside it while it is being replaced."""
    if not target.exists():
        aside = _beside(target, OLD)
        if aside:
            return max(aside, key=lambda path: path.stat().st_mtime_ns)
    return target


def unfinished(target: Path) -> list[Path]:
    """Directories that were being written for ``target`` and have not taken its place."""
    return _beside(target, PART)


def clean_up(target: Path) -> None:
    """Undo what writers left behind that are gone: bring the old directory back, or remove leftovers."""
    aside = [path for path in _beside(target, OLD) if is_abandoned(path, target)]
    for path in sorted(aside, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        if target.exists():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.rename(target)
    for path in unfinished(target):
        if is_abandoned(path, target):
            shutil.rmtree(path, ignore_errors=True)


def sync_directory(folder: Path) -> None:
    """Make renames in a directory lasting, where the system can."""
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
        # Nothing new stands there, so the old one goes back; a crash in between is for ``clean_up``.
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def _beside(target: Path, ending: str) -> list[Path]:
    """The directories of writers of ``target``, and of no other target whose name begins alike."""
    with suppress(OSError):
        return [
            entry
            for entry in target.parent.iterdir()
            if entry.suffix == ending and _writer(entry, target) is not None and entry.is_dir()
        ]
    return []


def _writer(path: Path, target: Path) -> tuple[str, int] | None:
    """The host and the process that a name tells of."""
    start = f".{target.name}."
    match = _WRITER.fullmatch(path.stem.removeprefix(start)) if path.name.startswith(start) else None
    return None if match is None else (match["host"], int(match["process"]))


def is_abandoned(path: Path, target: Path) -> bool:
    """Whether the writer ran on this host and is gone."""
    writer = _writer(path, target)
    return writer is not None and writer[0] == host() and not _is_alive(writer[1])


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere signal 0 is no question but a signal
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def host() -> str:
    """This machine, as writers name it in what they leave behind."""
    return f"{crc32(socket.gethostname().encode()):08x}"
