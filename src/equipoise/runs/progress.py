"""Work under way, told by a small file beside the results, so that another process can watch.

Whoever writes into a results folder over a longer time keeps ``.progress.WRITER.json`` there, and takes it
away at the end. WRITER names host and process as in ``swap``, so that a writer that died can be told from one
that is busy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.io.atomic import PART, is_abandoned, pending_directories, write_bytes, writer
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_directory import MANIFEST, read_manifest

if TYPE_CHECKING:
    from equipoise.io.text import PathLike

ProgressCallback = Callable[[str], None]
"""Called at the start of a step with what is being done."""

_NAME, _ENDING = "progress", ".json"
_LARGEST = 100_000
"""Nobody's progress takes more bytes than this; a longer file is something else."""


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """Work that is not finished: what it is, how far it is, and whether its process still runs.

    ``done`` steps of ``total`` are behind it; a total of 0 is unknown. ``folder`` is where its results go.
    """

    folder: Path
    what: str
    step: str = ""
    done: int = 0
    total: int = 0
    started: str = ""
    command: tuple[str, ...] = ()
    alive: bool = True


@contextmanager
def report_progress(
    folder: PathLike | None,
    what: str,
    total: int = 0,
    *,
    command: Sequence[str] = (),
    step: ProgressCallback | None = None,
) -> Iterator[ProgressCallback]:
    """Yields a function to call at the start of each step; it writes the file, then calls ``step``.

    Progress is a courtesy: where it cannot be written the work goes on. Without a folder nothing is written.
    """
    file = None if folder is None else _begin(Path(folder))
    begun = Manifest.start(what, command=command)
    done = -1

    def tell(text: str) -> None:
        nonlocal done
        done += 1
        if file is not None:
            _write(file, begun, text, done, total)
        if step is not None:
            step(text)

    try:
        if file is not None:
            _write(file, begun, "", 0, total)
        yield tell
    finally:
        if file is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)


def find_active_runs(folder: PathLike) -> list[ActiveRun]:
    """Everything at and below a folder that says it is under way, and runs that are being written.

    Links are not followed and what cannot be read is passed over: a file may vanish at any moment.
    """
    found: list[ActiveRun] = []
    for at, folders, files in os.walk(folder):
        here = Path(at)
        for name in sorted(files):
            if name.startswith(f".{_NAME}.") and name.endswith(_ENDING):
                found += _read(here / name)
        for name in sorted(folders):
            if name.startswith(".") and name.endswith(PART):
                found += _writing(here / name)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return found


def _begin(folder: Path) -> Path:
    """Where to tell the progress; what dead writers left there is removed."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob(f".{_NAME}.*{_ENDING}"):
            if is_abandoned(file, folder / _NAME):
                file.unlink(missing_ok=True)
    return folder / f".{_NAME}.{writer()}{_ENDING}"


def _write(file: Path, begun: Manifest, step: str, done: int, total: int) -> None:
    content = {
        "what": begun.system,
        "step": step,
        "done": done,
        "total": total,
        "started": begun.started,
        "command": list(begun.command),
    }
    with suppress(EquipoiseError):
        write_bytes(file, json.dumps(content).encode())


def _read(file: Path) -> list[ActiveRun]:
    """The progress that a file tells; nothing where it is a link, or says something else."""
    try:
        if file.is_symlink() or file.stat().st_size > _LARGEST:
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
            alive=not is_abandoned(file, file.with_name(_NAME)),
        )
    ]


def _writing(part: Path) -> list[ActiveRun]:
    """A run directory that has not yet taken its place."""
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
