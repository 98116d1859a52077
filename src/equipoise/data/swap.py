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
_PART_FILE = re.compile(rf"\..+\.{_WRITER.pattern}{re.escape(PART)}", re.DOTALL)


@contextmanager
def replaced_directory(target: Path) -> Iterator[Path]:
    """A directory to write into, which takes the place of ``target`` when the block ends well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    clean_up(target)
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


def remove_abandoned_files(folder: Path) -> None:
    """Remove the parts of files in a folder whose writers were killed, whatever the files were to be called.

    A file may have been named after its writer, so that the next writer has another name for it.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(PART)]
        for name in names:
            match = _PART_FILE.fullmatch(name)
            if match is not None and _is_gone(match) and not (folder / name).is_dir():
                (folder / name).unlink(missing_ok=True)


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


def _writer(path: Path, target: Path) -> re.Match[str] | None:
    """The host and the process that a name tells of."""
    start = f".{target.name}."
    return _WRITER.fullmatch(path.stem.removeprefix(start)) if path.name.startswith(start) else None


def is_abandoned(path: Path, target: Path) -> bool:
    """Whether the writer ran on this host and is gone."""
    match = _writer(path, target)
    return match is not None and _is_gone(match)


def _is_gone(writer: re.Match[str]) -> bool:
    """A writer on another host may be alive, and so may one whose number another process has now."""
    return writer["host"] == host() and not _is_alive(int(writer["process"]))


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


def writer() -> str:
    """This process, as it names what it is writing; no two calls give the same."""
    return f"{host()}-{os.getpid()}-{os.urandom(4).hex()}"


def host() -> str:
    """This machine, as writers name it in what they leave behind."""
    return f"{crc32(socket.gethostname().encode()):08x}"
