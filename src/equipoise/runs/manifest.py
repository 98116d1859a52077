"""The manifest of a run (inputs, versions, settings, costs, completeness), and the run directory that it verifies."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from equipoise import __version__
from equipoise.errors import ChangedFileError, InputError, StoreError
from equipoise.io.atomic import current_path, pending_directories
from equipoise.io.dataset import file_sha256
from equipoise.io.json import parse_json
from equipoise.io.text import STDIN, PathLike, TextFile, open_text, text_file
from equipoise.redaction import hide_options, redact, redact_all

SCHEMA = 1
"""The layout of a run directory; increased whenever an older reader would misread the files."""

STATUS_SETTINGS = ("status", "status_reason")
"""The settings of a result that hold the status of an incomplete run and its reason."""

_SECRET = re.compile(r"(?i)(?:^|[-_])(?:api)?(?:key|token|secret|password|passwd|credentials?)$")
_LOGIN = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_HIDDEN = "***"


class Status(StrEnum):
    """Whether a run is complete."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@cache
def _installed_version(package: str) -> str:
    return metadata.version(package)


def _versions() -> dict[str, str]:
    return {
        "equipoise": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": _installed_version("scipy"),  # asked by name: importing it takes longer than most runs
    }


@dataclass(frozen=True)
class Manifest:
    """Command, versions, seed and settings of a run, and the SHA-256 of all inputs.

    ``files`` maps the name of every other file of the run directory to its SHA-256, which readers verify.
    ``datasets`` and ``inputs`` map a name or path to the fingerprint of the ground truth and of the output of
    the system (None for standard input); ``evidence`` has the kind and the fingerprint of the evidence.
    ``parameters`` describe the system (model, chunk size, geometry), ``cost`` its costs (``dims``,
    ``bytes_per_vector``, ``seconds``, ``truncated_share`` and others). The environment is never stored; values of
    options that look like secrets are hidden.

    >>> manifest = Manifest.start("bm25", command=["eq", "score", "--api-key", "abc"], seed=7)
    >>> manifest.status.value, manifest.command
    ('partial', ('eq', 'score', '--api-key', '***'))
    """

    system: str
    status: Status = Status.COMPLETE
    reason: str = ""
    units: int = 0
    started: str = field(default_factory=_now)
    finished: str = ""
    command: tuple[str, ...] = ()
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, str | None] = field(default_factory=dict)
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    evidence: Mapping[str, str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, float | None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=_versions)
    files: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    @classmethod
    def start(
        cls,
        system: str,
        *,
        command: Sequence[str] = (),
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        truth: Iterable[PathLike] = (),
        inputs: Iterable[PathLike] = (),
    ) -> Manifest:
        """The manifest of a run that starts now, with the status partial. Files are fingerprinted."""
        return cls(
            system=system,
            status=Status.PARTIAL,
            command=redact_secrets(command),
            seed=seed,
            settings=dict(settings or {}),
            datasets=file_fingerprints(truth),
            inputs=file_fingerprints(inputs),
        )

    def finish(self, status: Status | str = Status.COMPLETE, *, reason: str = "") -> Manifest:
        """The same manifest with the time of the end; ``reason`` says why the run is incomplete."""
        return replace(self, status=Status(status), finished=_now(), reason=reason)

    @property
    def complete(self) -> bool:
        """Whether the run is complete."""
        return self.status is Status.COMPLETE

    @property
    def caution(self) -> str:
        """The warning for the scores of an incomplete run; empty for a complete one.

        >>> Manifest("bm25", status=Status.PARTIAL, reason="interrupted").caution
        'the run of bm25 is partial: interrupted'
        """
        if self.complete:
            return ""
        return f"the run of {self.system} is {self.status}: {self.reason or 'no reason was recorded'}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the schema version first."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        content = {"schema": named.pop("schema")} | named | {"command": list(self.command)}
        return {name: redact_all(value) for name, value in content.items()}

    @classmethod
    def from_dict(cls, content: Any, *, source: str = "the manifest") -> Manifest:
        """The inverse of ``to_dict``; an error for content of another shape or schema."""
        if not isinstance(content, Mapping) or type(content.get("schema")) is not int:
            raise StoreError(f"{source} has no schema", hint="it was not written by equipoise")
        if content["schema"] != SCHEMA:
            raise _other_schema(source, content["schema"])
        known = {field.name for field in fields(cls)}
        content = {"parameters": {}, "cost": {}, **content}  # older runs have neither
        for name, is_valid in _VALID.items():
            if not is_valid(content.get(name)):
                raise StoreError(f"{source} has no valid {name}", hint="run the command again")
        try:
            status = Status(content["status"])
        except ValueError as error:
            raise StoreError(
                f"{source} has the status {content['status']!r}",
                hint=f"a run is {', '.join(Status)}",
            ) from error
        values = {name: value for name, value in content.items() if name in known}
        return cls(**values | {"status": status, "command": tuple(map(str, content["command"]))})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_hashes(value: Any) -> bool:
    """Names and their fingerprints; None for standard input."""
    return _is_mapping(value) and all(entry is None or _is_text(entry) for entry in value.values())


def _is_evidence(value: Any) -> bool:
    return _is_mapping(value) and all(_is_text(value.get(name)) for name in ("kind", "sha256"))


def _is_costs(value: Any) -> bool:
    return _is_mapping(value) and all(
        entry is None or entry in ("Infinity", "-Infinity") or type(entry) in (int, float) for entry in value.values()
    )


_VALID: dict[str, Callable[[Any], bool]] = {
    "system": _is_text,
    "status": _is_text,
    "reason": _is_text,
    "units": lambda value: type(value) is int and value >= 0,
    "started": _is_text,
    "finished": _is_text,
    "command": lambda value: isinstance(value, list),
    "seed": lambda value: type(value) is int,
    "settings": _is_mapping,
    "datasets": _is_hashes,
    "inputs": _is_hashes,
    "evidence": lambda value: value is None or _is_evidence(value),
    "parameters": _is_mapping,
    "cost": _is_costs,
    "versions": _is_mapping,
    "files": lambda value: _is_mapping(value) and all(map(_is_text, value.values())),
}
"""The validation of each field of a stored manifest."""


def file_fingerprints(paths: Iterable[PathLike]) -> dict[str, str | None]:
    """The SHA-256 of each file; None for standard input, which cannot be read twice."""
    return {str(path): None if str(path) == STDIN else file_sha256(path) for path in paths}


def redact_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """A command line without the values of options named like a key, token or password, and without logins.

    >>> redact_secrets(["eq", "--hub-token=abc", "--seed", "1", "postgresql://me:abc@host/db"])
    ('eq', '--hub-token=***', '--seed', '1', 'postgresql://***@host/db')
    """
    shown: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        secret = _SECRET.search(name) is not None
        if hide_next:
            shown.append(_HIDDEN)
        else:
            redacted = redact(hide_options(_LOGIN.sub(_HIDDEN, word)))
            shown.append(f"{name}={_HIDDEN}" if secret and equals else redacted)
        hide_next = secret and not equals and word.startswith("-")
    return tuple(shown)


def _other_schema(source: str, schema: int) -> StoreError:
    if schema > SCHEMA:
        return StoreError(
            f"{source} follows schema {schema}, and this version reads schema {SCHEMA}",
            hint="a newer equipoise wrote it: pip install --upgrade equipoise",
        )
    return StoreError(f"{source} follows schema {schema}, which was never released", hint="run the command again")


# An open run directory: every byte that is read from it is verified against the manifest's hashes.

MANIFEST, RESULT, CASES, EVIDENCE = "manifest.json", "result.json", "cases.jsonl", "evidence.npz"
DETAILS, TUNING, ERRORS = "details.jsonl", "tuning.json", "errors.npz"
VIEW = "view.json"
"""The tables and charts of an experiment, which ``eq report`` shows; not part of a run."""
FILES = (MANIFEST, RESULT, CASES, EVIDENCE, DETAILS, TUNING, ERRORS)
CHANGED = "the directory was changed after it was written: run the command again"


@dataclass(frozen=True)
class RunFolder:
    """The path of a run directory and its manifest; its files are read only through ``read``.

    A file that the manifest does not list is not part of the run, whatever is in the directory.
    """

    path: Path
    manifest: Manifest

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.files

    def read(self, name: str) -> bytes:
        """The bytes of a file, after its SHA-256 was compared with the manifest."""
        if name not in self:
            raise self._missing(name)
        try:
            data = (self.path / name).read_bytes()
        except OSError as error:
            raise self._missing(name) from error
        self._check(name, hashlib.sha256(data).hexdigest())
        return data

    def verify(self, *names: str) -> None:
        """Check files without keeping their content in memory."""
        for name in names:
            try:
                with open(self.path / name, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise self._missing(name) from error
            self._check(name, digest)

    def text(self, name: str) -> TextFile:
        """A text file of the run."""
        try:
            return text_file(str(self.path / name), self.read(name))
        except InputError as error:
            raise unreadable(error) from error

    def json(self, name: str) -> object:
        """The value of a JSON file of the run."""
        try:
            value: object = parse_json(self.text(name))
        except InputError as error:
            raise unreadable(error) from error
        return value

    def _check(self, name: str, digest: str) -> None:
        if digest != self.manifest.files[name]:
            raise ChangedFileError(
                f"{self.path / name} was changed after the run was written: its SHA-256 is not the one in {MANIFEST}",
                hint="restore the file, or run the command that wrote the run again",
            )

    def _missing(self, name: str) -> StoreError:
        reason = f"; {self.manifest.caution}" if self.manifest.caution else ""
        return StoreError(f"{self.path} lacks {name}{reason}", hint="run the command again")


def open_run(path: PathLike) -> RunFolder:
    """Open a run directory; raises ``StoreError`` where there is none or its manifest cannot be read."""
    folder = _run_directory(path)
    file = folder / MANIFEST
    try:
        content: object = parse_json(open_text(file))
    except InputError as error:
        raise unreadable(error) from error
    return RunFolder(folder, Manifest.from_dict(content, source=str(file)))


def read_manifest(path: PathLike) -> Manifest:
    """Only the manifest of a run directory."""
    return open_run(path).manifest


def unreadable(error: InputError) -> StoreError:
    """The same error as a ``StoreError`` of the run directory."""
    return StoreError(error.message, hint=error.hint or "run the command again", excerpt=error.excerpt)


def hint_for_file(file: Path) -> str:
    """What to do with a file where a run directory is needed: it is part of one, or it must be scored first."""
    if (file.parent / MANIFEST).is_file():
        return f"give its folder: {file.parent}"
    if file.suffix.casefold() in (".md", ".markdown", ".tex"):
        return f"of a published table, eq audit {file} checks the values, and eq leaderboard {file} the ranks"
    return f"score it first: eq score {file} --qrels FILE -o runs/"


def _run_directory(path: PathLike) -> Path:
    """The directory of the run, or an error that says why there is none."""
    folder = Path(path)
    if not folder.exists():
        folder = current_path(folder.absolute())
    if not folder.exists():
        pending = pending_directories(folder)
        hint = f"its write was interrupted: {pending[0]}" if pending else "check the path"
        raise StoreError(f"there is no run directory {path}", hint=hint)
    if not folder.is_dir():
        raise StoreError(f"{path} is a file, not a run directory", hint=hint_for_file(folder))
    if not (folder / MANIFEST).is_file():
        raise StoreError(f"{path} is not a run directory: it has no {MANIFEST}", hint="eq score -o FOLDER writes one")
    return folder
