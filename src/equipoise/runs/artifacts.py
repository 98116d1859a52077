"""Job outputs as files: dataclasses, containers and arrays in an npz archive, without pickle.

The archive has the arrays, and a JSON text that describes how they are nested. Reading it creates only
dataclasses, named tuples and enumerations of this package, so a changed file cannot run code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from equipoise import __version__
from equipoise.errors import EquipoiseError, StoreError
from equipoise.evidence.base import Arrays, pack_npz, unpack_npz_bytes
from equipoise.io.atomic import write_bytes, write_error
from equipoise.runs.experiment_folder import check_writable, folder_name
from equipoise.runs.runner import Job, StoredOutput

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
    tag, *rest = content
    if tag == "array":
        return arrays[rest[0]]
    if tag == "bytes":
        return bytes.fromhex(rest[0])
    if tag == "scalar":
        return arrays[rest[0]][()]
    if tag == "enum":
        return _class(rest[0], lambda kind: issubclass(kind, Enum))(rest[1])
    if tag == "dict":
        return {_decode(name, arrays): _decode(entry, arrays) for name, entry in rest[0]}
    if tag == "dataclass":
        kind = _class(rest[0], is_dataclass)
        value = object.__new__(kind)
        for field in fields(kind):
            object.__setattr__(value, field.name, _decode(rest[1][field.name], arrays))
        return value
    entries = [_decode(entry, arrays) for entry in rest[-1]]
    if tag == "objects":
        array = np.empty(len(entries), dtype=object)
        array[:] = entries
        return array
    if tag == "namedtuple":
        return _class(rest[0], lambda kind: hasattr(kind, "_fields"))(*entries)
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
