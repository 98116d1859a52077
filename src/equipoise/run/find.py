"""Finding run directories: a path names one itself, or a folder that holds some below it."""

from __future__ import annotations

import os
from pathlib import Path

from equipoise.data.text import PathLike
from equipoise.errors import StoreError
from equipoise.run.folder import MANIFEST, RESULT, read_manifest


def find_runs(*paths: PathLike) -> list[Path]:
    """The run directories at these paths and below them, each once, in the order of paths and of names.

    What is hidden is passed over (a run that is being written is), and so are links, which may lead
    round in circles; nothing is looked for inside a run.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for run in _runs_at(path):
            found.setdefault(run.resolve(), run)
    return list(found.values())


def _runs_at(path: Path) -> list[Path]:
    if not path.is_dir() or (path / MANIFEST).is_file():
        read_manifest(path)  # says why, where it is no run directory
        return [path]
    runs = _runs_below(path)
    if not runs:
        raise StoreError(
            f"neither {path} nor a folder below it is a run directory", hint="eq score -o FOLDER writes one"
        )
    return runs


def _runs_below(folder: Path) -> list[Path]:
    runs = []
    for at, folders, files in os.walk(folder):
        # Another program's manifest.json makes no run; a result beside it does.
        if {MANIFEST, RESULT} <= set(files):
            runs.append(Path(at))
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return runs
