"""The output folder of an experiment, the same for every evaluation.

results.json       all scores of all systems, and the comparison
view.json          the tables, charts and notes of the experiment, as eq report shows them
runs/SYSTEM/       run directories, as eq compare, eq report and eq view read them
artifacts/JOB.npz  stored outputs of jobs, from which a repeated command resumes
visualizations/    the charts as PNG and SVG, if they can be rendered
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

import numpy as np

from equipoise import __version__
from equipoise.errors import EquipoiseError, StoreError
from equipoise.evidence.base import Arrays, pack_npz, unpack_npz_bytes
from equipoise.io.atomic import write_bytes, write_error
from equipoise.runs.manifest import MANIFEST, Manifest, read_manifest
from equipoise.runs.runner import Job, StoredOutput
from equipoise.runs.unit_table import json_text

RUNS, ARTIFACTS, RESULTS, VISUALIZATIONS = "runs", "artifacts", "results.json", "visualizations"

OPTIONS = "options"
"""The name in ``Manifest.inputs`` of a digest of the options that determine the scores of all systems."""

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

    def check_same_data(
        self, datasets: Mapping[str, str | None], is_further: Callable[[Manifest], bool] = lambda manifest: False
    ) -> None:
        """Raise ``StoreError`` if the folder has runs on other data: one report cannot have both.

        ``datasets`` are the fingerprints by name. Runs with ``is_further`` are on other data sets of the same suite.
        """
        known = set(datasets.values())
        for file in sorted((*(self.path / RUNS).glob(f"*/{MANIFEST}"), *(self.path / RUNS).glob(f"*/*/{MANIFEST}"))):
            try:
                manifest = read_manifest(file.parent)
            except (EquipoiseError, OSError):
                continue  # a damaged run is replaced
            if not known.issuperset(manifest.datasets.values()) and not is_further(manifest):
                raise StoreError(
                    f"{self.path} has an experiment on other data: {', '.join(manifest.datasets)}",
                    hint="choose another folder with -o, or remove this one",
                )

    def check_same_options(self, paths: Iterable[Path], options: str) -> None:
        """Raise ``StoreError`` if a finished run would be replaced by one with other options.

        ``options`` is the digest under ``OPTIONS``. Runs of other versions of the package are replaced.
        """
        for path in paths:
            try:
                manifest = read_manifest(path)
            except (EquipoiseError, OSError):
                continue  # there is none, or a damaged one, which is replaced
            is_current = manifest.complete and manifest.versions.get("equipoise") == __version__
            if is_current and manifest.inputs.get(OPTIONS, options) != options:
                command = f": {shlex.join(manifest.command)}" if manifest.command else ""
                raise StoreError(
                    f"{self.path} has results that were computed with other options{command}",
                    hint="choose another folder with -o, or remove this one",
                )

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


FILE_SUFFIXES = (".csv", ".html", ".json", ".jsonl", ".md", ".pdf", ".png", ".svg", ".tex", ".txt", ".xlsx")


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
    if example is None and not target.exists() and target.suffix in FILE_SUFFIXES:
        raise StoreError(
            f"the output is a folder, and {target} looks like a file",
            hint=f"write -o {target.stem}; eq report FOLDER writes HTML, and --to csv, md or latex prints tables",
        )
    inside = target.absolute() if example is None else target.absolute().parent
    existing = next(folder for folder in (inside, *inside.parents) if folder.exists())
    try:
        TemporaryFile(dir=existing).close()
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {existing}: {error.strerror or error}", hint="choose another folder"
        ) from error


def check_no_experiment(output: str | Path) -> None:
    """Raise ``StoreError`` if the folder has the results of an experiment: other runs do not belong to it."""
    folder = Path(output)
    if (folder / RESULTS).is_file() and (folder / RUNS).is_dir():
        raise StoreError(
            f"{folder} has the results of an experiment", hint="choose another folder with -o, or remove this one"
        )


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
    prefix = words[:_MAX_NAME_LENGTH].rstrip("-.") or "system"
    return f"{prefix}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


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


# Job outputs as files: dataclasses, containers and arrays in an npz archive, without pickle. The archive has the
# arrays, and a JSON text that describes how they are nested. Reading it creates only dataclasses, named tuples and
# enumerations of this package, so a changed file cannot run code.

Output = TypeVar("Output")

_PACKAGE = "equipoise."
_FORMAT = f"1 {__version__}"
"""Outputs of other versions are computed again."""


class ArtifactStore(Generic[Output]):
    """One file per job in a folder; implements ``runs.runner.JobStore``.

    ``on_save`` is called with the value before it is stored, for example to write run directories. A value without a
    key would never be loaded, so it is not stored; neither is a value with objects of the user.
    """

    def __init__(self, folder: Path, on_save: Callable[[Output], object] | None = None) -> None:
        self.folder = folder
        self._on_save = on_save

    def check_writable(self) -> None:
        """Raise ``StoreError`` if the folder cannot be written."""
        check_writable(self.folder)

    def load(self, job: Job[Any]) -> StoredOutput[Output] | None:
        """The stored output; None if there is none that can be read."""
        file = self._file(job)
        try:
            key, value = unpack(file.read_bytes(), str(file))
        except (EquipoiseError, OSError, ValueError, TypeError, LookupError, AttributeError, ImportError):
            return None
        return StoredOutput(key, value)

    def save(self, job: Job[Any], value: Output, *, key: str, seconds: float) -> None:
        """Store an output in one step."""
        if self._on_save is not None:
            self._on_save(value)
        if not key:
            return
        file = self._file(job)
        try:
            data = pack((key, value))
        except TypeError:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(file, error, hint="choose another folder") from error
        write_bytes(file, data)

    def _file(self, job: Job[Any]) -> Path:
        return self.folder / f"{folder_name(job.name)}.npz"


def pack(value: Any) -> bytes:
    """A value as bytes.

    >>> unpack(pack({"a": [1, (2.5, None)], 3: np.arange(2)}))
    {'a': [1, (2.5, None)], 3: array([0, 1])}
    """
    arrays: Arrays = {}
    content = {"format": _FORMAT, "value": _encode(value, arrays)}
    text = json.dumps(content, ensure_ascii=True).encode()
    return pack_npz({"content": np.frombuffer(text, dtype=np.uint8), **arrays})


def unpack(data: bytes, name: str = "the stored output") -> Any:
    """The value that ``pack`` was given."""
    arrays = unpack_npz_bytes(data, name)
    content = json.loads(arrays.pop("content").tobytes())
    if content["format"] != _FORMAT:
        raise StoreError(f"{name} was written by another version of equipoise", hint="it is computed again")
    return _decode(content["value"], arrays)


def _encode(value: Any, arrays: Arrays) -> Any:
    """Plain values as they are; all others as a list of a tag and its arguments."""
    if isinstance(value, Enum):
        return ["enum", _path(value), value.value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            return ["objects", [_encode(entry, arrays) for entry in value.tolist()]]
        name = f"a{len(arrays)}"
        arrays[name] = np.asarray(value)
        return ["array" if isinstance(value, np.ndarray) else "scalar", name]
    if is_dataclass(value) and not isinstance(value, type):
        content = {field.name: _encode(getattr(value, field.name), arrays) for field in fields(value)}
        return ["dataclass", _path(value), content]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ["namedtuple", _path(value), [_encode(entry, arrays) for entry in value]]
    if isinstance(value, list | tuple | set | frozenset):
        return [_name_of(value, (list, tuple, set, frozenset)), [_encode(entry, arrays) for entry in value]]
    if isinstance(value, Mapping):
        return ["dict", [[_encode(name, arrays), _encode(entry, arrays)] for name, entry in value.items()]]
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def _decode(content: Any, arrays: Arrays) -> Any:
    if not isinstance(content, list):
        return content
    tag, *values = content
    if tag == "array":
        return arrays[values[0]]
    if tag == "bytes":
        return bytes.fromhex(values[0])
    if tag == "scalar":
        return arrays[values[0]][()]
    if tag == "enum":
        return _class(values[0], lambda kind: issubclass(kind, Enum))(values[1])
    if tag == "dict":
        return {_decode(name, arrays): _decode(entry, arrays) for name, entry in values[0]}
    if tag == "dataclass":
        kind = _class(values[0], is_dataclass)
        value = object.__new__(kind)
        for field in fields(kind):
            object.__setattr__(value, field.name, _decode(values[1][field.name], arrays))
        return value
    entries = [_decode(entry, arrays) for entry in values[-1]]
    if tag == "objects":
        array = np.empty(len(entries), dtype=object)
        array[:] = entries
        return array
    if tag == "namedtuple":
        return _class(values[0], lambda kind: hasattr(kind, "_fields"))(*entries)
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[tag](entries)


def _name_of(value: Any, kinds: tuple[type, ...]) -> str:
    return next(kind.__name__ for kind in kinds if isinstance(value, kind))


def _path(value: Any) -> str:
    """The module and the name of a class of this package."""
    kind = type(value)
    if not kind.__module__.startswith(_PACKAGE):
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored")
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(path: str, is_allowed: Callable[[Any], bool]) -> Any:
    """The class of a path; only classes of this package that hold data are allowed."""
    module, _, name = path.partition(":")
    if not module.startswith(_PACKAGE) or module.endswith("__main__"):
        raise StoreError(f"{path} is not a class of equipoise", hint="the file was changed")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and kind.__module__ == module and is_allowed(kind)):
        raise StoreError(f"{path} is not a class that can be stored", hint="the file was changed")
    return kind
