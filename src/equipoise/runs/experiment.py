"""The output folder of an experiment: check that it can be written, folder names, results file, exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from equipoise.errors import EquipoiseError, StoreError
from equipoise.io.atomic import write_bytes
from equipoise.runs.unit_table import json_text

RUNS, RESULTS = "runs", "results.json"
"""The folder of the run directories, and the file of all results."""


def is_json_file(output: Path) -> bool:
    """Whether the output is a JSON file rather than a folder."""
    return output.suffix.casefold() == ".json"


def check_writable(output: str | Path, *, example: str | None = None) -> None:
    """Raise ``StoreError`` before any work if the output cannot be written. Nothing is created.

    The output is a folder, which may not exist yet. With ``example``, a file name for the hint, it is a file in
    an existing folder.
    """
    target = Path(output)
    if example is not None and target.is_dir():
        raise StoreError(f"{target} is a folder, not a file", hint=f"name a file in it: {target / example}")
    if example is not None and not target.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {target.parent}", hint=f"create it first: mkdir -p {target.parent}")
    if example is None and target.exists() and not target.is_dir():
        raise StoreError(f"{target} is a file, not a folder", hint="name another folder with -o")
    inside = target.absolute() if example is None else target.absolute().parent
    existing = next(folder for folder in (inside, *inside.parents) if folder.exists())
    try:
        TemporaryFile(dir=existing).close()
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {existing}: {error.strerror or error}", hint="choose another folder"
        ) from error


def folder_names(models: Iterable[str]) -> dict[str, str]:
    """A folder for every model, named like it as far as file systems allow.

    >>> folder_names(["sum:minilm+bm25:", "st:BAAI/bge-base-en-v1.5", "bm25", "bm25:"])
    {'sum:minilm+bm25:': 'sum-minilm+bm25', 'st:BAAI/bge-base-en-v1.5': 'st-BAAI-bge-base-en-v1.5', \
'bm25': 'bm25', 'bm25:': 'bm25-2'}
    """
    names: dict[str, str] = {}
    for model in models:
        plain = re.sub(r"[^\w.+,=@-]+", "-", model).strip("-.")[:120] or "model"
        name, number = plain, 1
        while name in names.values():
            number += 1
            name = f"{plain}-{number}"
        names[model] = name
    return names


def write_results(output: Path, content: Any) -> Path:
    """The JSON file of all models; into the folder, or as the file itself."""
    file = output if is_json_file(output) else output / RESULTS
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, f"{json_text(content, indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}", hint="choose another folder") from error
    return file


def exit_code(failures: Mapping[str, EquipoiseError]) -> int:
    """0 when all models were finished; 4 when all that failed lack an extra or a key; else 3."""
    codes = {error.exit_code for error in failures.values()}
    return 0 if not codes else 4 if codes == {4} else 3
