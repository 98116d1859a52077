"""Progress of running commands: a small file in the results folder, so that another process can show it.

A command that writes into a results folder has ``.progress.WRITER.json`` there, and removes it at the end. WRITER
has the host and the process as in ``io.atomic``, so that a dead writer is recognised. An interrupted command leaves
the file, until the next command in that folder starts.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.io.atomic import PART, is_abandoned, pending_directories, write_bytes, writer
from equipoise.runs.manifest import MANIFEST, Manifest, read_manifest

if TYPE_CHECKING:
    from equipoise.io.text import PathLike

ProgressCallback = Callable[[str], None]
"""Called with a short text at the start of a step."""

_NAME, _ENDING = "progress", ".json"
_MAX_BYTES = 100_000
"""A larger file is not a progress file."""


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A running command: its title, its progress, and whether its process still runs.

    ``done`` steps of ``total`` are finished; a total of 0 is unknown. ``folder`` is its results folder.
    """

    folder: Path
    what: str
    step: str = ""
    done: int = 0
    total: int = 0
    started: str = ""
    command: tuple[str, ...] = ()
    alive: bool = True

    @property
    def position(self) -> str:
        """The title and the number of finished steps."""
        return f"{self.what}, {f'step {self.done} of {self.total}' if self.total else 'its start'}"

    @property
    def advice(self) -> str:
        """What the user can do: wait, or repeat the interrupted command."""
        if self.alive:
            return f"wait for the command that is still writing to it ({self.position})"
        command = f": {shlex.join(self.command)}" if self.command else ""
        return f"the last command was interrupted ({self.position}); repeat it to resume{command}"


@contextmanager
def report_progress(
    folder: PathLike | None,
    what: str,
    total: int = 0,
    *,
    command: Sequence[str] = (),
    step: ProgressCallback | None = None,
) -> Iterator[ProgressCallback]:
    """Yield a function to call at the start of each step; it writes the file, then calls ``step``.

    ``KeyboardInterrupt`` leaves the file, marked as interrupted.

    A file that cannot be written is not an error. Without a folder nothing is written.
    """
    file = None if folder is None else _progress_file(Path(folder))
    manifest = Manifest.start(what, command=command)
    done, last = -1, ""

    def report(text: str) -> None:
        nonlocal done, last
        done, last = done + 1, text
        if file is not None:
            _write(file, manifest, text, done, total)
        if step is not None:
            step(text)

    try:
        if file is not None:
            _write(file, manifest, "", 0, total)
        yield report
    except KeyboardInterrupt as interrupt:
        if file is not None:
            _write(file, manifest, last, max(done, 0), total, interrupted=True)
            add_resume_note(interrupt)
        raise
    except BaseException:
        _remove(file)
        raise
    _remove(file)


RESUME_NOTE = "repeat the command to resume"


def add_resume_note(interrupt: KeyboardInterrupt) -> None:
    """Add the note that finished results are stored, unless the interrupt has it."""
    if RESUME_NOTE not in getattr(interrupt, "__notes__", ()):
        interrupt.add_note(RESUME_NOTE)


def find_active_runs(folder: PathLike) -> list[ActiveRun]:
    """The running commands with results at or below a folder, and runs that are being written.

    Links are not followed, and unreadable files are skipped: a file may disappear at any moment.
    """
    active: list[ActiveRun] = []
    for path, folders, files in os.walk(folder):
        current = Path(path)
        for name in sorted(files):
            if name.startswith(f".{_NAME}.") and name.endswith(_ENDING):
                active += _read(current / name)
        for name in sorted(folders):
            if name.startswith(".") and name.endswith(PART):
                active += _being_written(current / name)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return active


def _progress_file(folder: Path) -> Path:
    """The path of the progress file; files of dead writers and interrupted commands are removed."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob(f".{_NAME}.*{_ENDING}"):
            if is_abandoned(file, folder / _NAME) or any(not run.alive for run in _read(file)):
                _remove(file)
    return folder / f".{_NAME}.{writer()}{_ENDING}"


def _remove(file: Path | None) -> None:
    if file is not None:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _write(file: Path, manifest: Manifest, step: str, done: int, total: int, *, interrupted: bool = False) -> None:
    content = {
        "what": manifest.system,
        "step": step,
        "done": done,
        "total": total,
        "started": manifest.started,
        "command": list(manifest.command),
        "interrupted": interrupted,
    }
    with suppress(EquipoiseError):
        write_bytes(file, json.dumps(content).encode())


def _read(file: Path) -> list[ActiveRun]:
    """The progress in a file; nothing if it is a link or has other content."""
    try:
        if file.is_symlink() or file.stat().st_size > _MAX_BYTES:
            return []
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return []
    if not isinstance(content, dict) or not isinstance(content.get("what"), str):
        return []
    return [
        ActiveRun(
            folder=file.parent,
            what=content["what"],
            step=str(content.get("step", "")),
            done=_count(content.get("done")),
            total=_count(content.get("total")),
            started=str(content.get("started", "")),
            command=_words(content.get("command")),
            alive=not content.get("interrupted") and not is_abandoned(file, file.with_name(_NAME)),
        )
    ]


def _being_written(part: Path) -> list[ActiveRun]:
    """A run directory that is not yet at its final path."""
    name = part.name.removeprefix(".").removesuffix(PART).rpartition(".")[0]
    target = part.parent / name
    if part.is_symlink() or (part / MANIFEST).is_symlink() or part not in pending_directories(target):
        return []
    alive = not is_abandoned(part, target)
    try:
        manifest = read_manifest(part)
    except EquipoiseError:
        return [ActiveRun(target, f"writing {target.name}", alive=alive)]
    what = f"writing the run of {manifest.system}"
    return [ActiveRun(target, what, started=manifest.started, command=manifest.command, alive=alive)]


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
