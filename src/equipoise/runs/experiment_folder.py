"""The output folder of an experiment, the same for every evaluation.

results.json       all scores of all systems, and the comparison
view.json          the tables, charts and notes of the experiment, as eq report shows them
runs/SYSTEM/       run directories, as eq compare, eq report and eq view read them
artifacts/JOB.npz  stored outputs of jobs, from which a repeated command resumes
visualizations/    the charts as PNG and SVG, if they can be rendered
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from equipoise.errors import EquipoiseError, StoreError
from equipoise.io.atomic import write_bytes, write_error
from equipoise.runs.unit_table import json_text

RUNS, ARTIFACTS, RESULTS, VIEW, VISUALIZATIONS = "runs", "artifacts", "results.json", "view.json", "visualizations"

_WORD = r"[\w.+,=@:/-]+"
_PLAIN_NAME = re.compile(rf"{_WORD}( \(\w+\)( > {_WORD})?)?")
"""A model, or a model with a mode and an optional reranker: different without the other characters."""
_MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder that ``-o FOLDER`` names."""

    path: Path

    @classmethod
    def of(cls, output: str | Path | None) -> ExperimentFolder | None:
        """The folder, if there is an output; it is checked, so that an error comes before any work."""
        if output is None:
            return None
        folder = cls(Path(output))
        folder.check_writable()
        return folder

    def check_writable(self) -> None:
        """Raise ``StoreError`` if the folder cannot be written. Nothing is created."""
        check_writable(self.path)

    @property
    def artifacts(self) -> Path:
        """The folder of stored job outputs."""
        return self.path / ARTIFACTS

    def run_paths(self, systems: Iterable[str]) -> dict[str, Path]:
        """The run directory of each system."""
        return {system: self.path / RUNS / name for system, name in folder_names(systems).items()}

    def unrelated_runs(self, systems: Iterable[str]) -> list[Path]:
        """Folders of other systems among the runs: earlier calls may have written them for other data."""
        related = set(folder_names(systems).values())
        runs = self.path / RUNS
        present = sorted(runs.iterdir()) if runs.is_dir() else []
        return [path for path in present if path.name not in related and not path.name.startswith(".")]

    def write_results(self, content: Any) -> Path:
        """Write results.json."""
        return write_json(self.path / RESULTS, content)


def is_json_file(output: str | Path) -> bool:
    """Whether the output is a JSON file rather than a folder."""
    return Path(output).suffix.casefold() == ".json"


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


def folder_name(name: str) -> str:
    """A file name that is as close to a name as file systems allow.

    A name that is long, or has other characters than those of models and modes, gets a digest, so that two
    systems do not have the same folder.

    >>> folder_name("sum:use+tfidf: (label_synonyms_max)"), folder_name("use (label - 0.1*definition)")
    ('sum-use+tfidf-label_synonyms_max', 'use-label-0.1-definition-49d18f')
    """
    words = re.sub(r"[^\w.+,=@]+", "-", name).strip("-.")
    if _PLAIN_NAME.fullmatch(name) and words and len(words) <= _MAX_NAME_LENGTH:
        return words
    short = words[:_MAX_NAME_LENGTH].rstrip("-.") or "system"
    return f"{short}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def folder_names(names: Iterable[str]) -> dict[str, str]:
    """The folder name of each name; equal ones are numbered.

    >>> folder_names(["st:BAAI/bge-base-en-v1.5", "bm25", "bm25:"])
    {'st:BAAI/bge-base-en-v1.5': 'st-BAAI-bge-base-en-v1.5', 'bm25': 'bm25', 'bm25:': 'bm25-2'}
    """
    folders: dict[str, str] = {}
    for name in names:
        plain = folder_name(name)
        folder, number = plain, 1
        while folder in folders.values():
            number += 1
            folder = f"{plain}-{number}"
        folders[name] = folder
    return folders


def write_json(file: Path, content: Any) -> Path:
    """Write a JSON file in one step; its folder is created if needed."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, f"{json_text(content, indent=2)}\n".encode())
    except OSError as error:
        raise write_error(file, error, hint="choose another folder") from error
    return file


def failures_to_dict(failures: Mapping[str, EquipoiseError]) -> dict[str, dict[str, str]]:
    """The failures of jobs as plain values."""
    return {
        name: {"code": error.code, "message": error.message, "hint": error.hint} for name, error in failures.items()
    }


def exit_code(failures: Mapping[str, EquipoiseError]) -> int:
    """0 if no job failed; 4 if every failure is a missing extra or key; else 3."""
    codes = {error.exit_code for error in failures.values()}
    return 0 if not codes else 4 if codes == {4} else 3
