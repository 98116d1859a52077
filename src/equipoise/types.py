"""Shared types: array aliases, enumerations, findings, equality with NaN, and imports of optional packages."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import MissingExtraError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Ids = NDArray[Any]
"""Unit or item ids: a one-dimensional array of integers or of Python strings (dtype object)."""


class Direction(StrEnum):
    """Whether higher or lower values are better."""

    UP = "up"
    DOWN = "down"


class Severity(StrEnum):
    """The severity of a finding."""

    ISSUE = "issue"
    TIP = "tip"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check.

    Attributes
    ----------
    code
        The code of the check, such as ``EQ304``.
    severity
        ``note``, ``tip`` or ``issue``.
    subject
        The system or data that it is about.
    message
        What was found.
    hint
        What to do.
    evidence
        The values behind the message.
    title
        The kind of problem, as its check names it.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    hint: str
    evidence: tuple[str, ...] = ()
    title: str = ""

    def __str__(self) -> str:
        return f"{self.code} {with_label(self.subject, self.message)}"

    @property
    def details(self) -> tuple[str, ...]:
        """The evidence that the message does not already contain.

        >>> Finding("EQ104", Severity.NOTE, "a", "1 of 9 values is undefined: q4", "", ("q4", "q41")).details
        ('q41',)
        """
        return tuple(line for line in self.evidence if not re.search(rf"(?<!\w){re.escape(line)}(?!\w)", self.message))

    def _repr_html_(self) -> str:
        """A table of one row for notebooks."""
        from equipoise.report.tables import findings_html

        return findings_html([self])


def with_label(name: str, text: str) -> str:
    """A name, a colon and a text; the colon at the end of a spec is not repeated.

    >>> with_label("minilm", "27 trials"), with_label("bm25:", "1 trial")
    ('minilm: 27 trials', 'bm25: 1 trial')
    """
    return f"{name.removesuffix(':')}: {text}"


def require_extra(module: str, *, extra: str, needed_by: str = "this") -> ModuleType:
    """Import an optional package when it is needed, or raise an error with the install command.

    ``needed_by`` is the file, or what else needs the package.

    >>> require_extra("json", extra="none").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{needed_by} needs the package {package}, which is not installed",
            hint=install_command(extra),
        ) from error


T = TypeVar("T")


_NAN = object()


def nan_equal(cls: type[T]) -> type[T]:
    """Let undefined numbers (NaN) of a dataclass equal each other, so that equal results compare equal.

    Up to Python 3.12 dataclasses compared their fields as tuples, in which the same NaN object equals itself;
    from 3.13 on they compare field by field, and an object with a NaN no longer equals itself.

    >>> from dataclasses import dataclass
    >>> @nan_equal
    ... @dataclass(frozen=True)
    ... class Value:
    ...     value: float
    >>> Value(float("nan")) == Value(float("nan")), Value(float("nan")) == Value(0.0)
    (True, False)
    """
    names = [field.name for field in fields(cast(Any, cls)) if field.compare]

    def key(self: T) -> tuple[Any, ...]:
        return tuple(_without_nan(getattr(self, name)) for name in names)

    def equal(self: T, other: object) -> bool:
        return key(self) == key(other) if type(other) is type(self) else NotImplemented

    def hashed(self: T) -> int:
        return hash(key(self))

    cls.__eq__, cls.__hash__ = equal, hashed  # type: ignore[assignment]
    return cls


def _without_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_nan, value))
    return _NAN if isinstance(value, float) and value != value else value


def json_value(value: Any) -> Any:
    """The value in types of JSON: NaN and infinity are None, a dataclass is a mapping, numpy scalars are numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, StrEnum):
        return str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return json_value(value.item()) if hasattr(value, "item") else str(value)


@cache
def packaged_toml(package: str, name: str) -> dict[str, Any]:
    """The content of a TOML file that comes with a package, not to be changed: it is read once."""
    from importlib.resources import files
    from tomllib import loads

    return loads((files(package) / name).read_text(encoding="utf-8"))


def install_command(extra: str) -> str:
    """The pip command that adds an extra to this installation, from the same source."""
    return f"{pip_install()} {_requirement(extra, _direct_url())}"


def pip_install() -> str:
    """``pip install``, with the interpreter if the first pip on PATH belongs to another environment."""
    found = shutil.which("pip")
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "pip install"
    return f"{shlex.quote(sys.executable)} -m pip install"


def _direct_url() -> dict[str, Any]:
    """Where pip installed this package from, if not from an index (PEP 610)."""
    from importlib import metadata

    try:
        text = metadata.distribution("equipoise").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}


def _requirement(extra: str, origin: dict[str, Any]) -> str:
    """The requirement for pip, quoted for a shell.

    >>> print(_requirement("report", {}))
    'equipoise[report]'
    >>> print(_requirement("report", {"url": "file:///home/me/equipoise", "dir_info": {"editable": True}}))
    -e '/home/me/equipoise[report]'
    >>> git = {"url": "https://host/e.git", "vcs_info": {"vcs": "git", "commit_id": "1a2b"}}
    >>> print(_requirement("report", git))
    'equipoise[report] @ git+https://host/e.git@1a2b'
    """
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    address = urlsplit(origin.get("url", ""))
    if address.scheme == "file":
        path = Path(url2pathname(address.path))
        location = "." if path == Path.cwd() else str(path)
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return editable + shlex.quote(f"{location}[{extra}]")
    if "vcs_info" in origin:
        revision = origin["vcs_info"]
        return shlex.quote(f"equipoise[{extra}] @ {revision['vcs']}+{origin['url']}@{revision['commit_id']}")
    return shlex.quote(f"equipoise[{extra}]")


class Closable:
    """Something with ``close()``, which a ``with`` block calls at its end."""

    def close(self) -> None:
        """Release memory, files, processes and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
