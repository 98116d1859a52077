"""Arrays from .npy, .npz and .safetensors files, memory-mapped where the format allows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.data.expand import ARRAYS_FLOOR, check_archive
from equipoise.data.mapped import mapped_member, mapped_safetensor
from equipoise.data.text import PathLike, explain_unreadable, shown
from equipoise.errors import EquipoiseError, FormatError, InputError, ShapeError, UnknownNameError
from equipoise.types import need

Array = NDArray[Any]
T = TypeVar("T")

_MEMBER = re.compile(r"(?P<path>.+\.(?:npz|safetensors)):(?P<member>.+)", re.IGNORECASE | re.DOTALL)
_SIGNATURES = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}
_PICKLE_SIGNATURE = b"\x80"
_LARGE = 64 << 20
"""Bytes from which an array of an archive is mapped; smaller ones are read whole and checked by it."""

_NO_PICKLES = "pickles can run code; save the array with numpy.save(..., allow_pickle=False)"


def read_array(path: PathLike, *, ndim: int | None = None) -> Array:
    """One array of a .npy, .npz or .safetensors file, of ``ndim`` dimensions where that is given.

    A file with several arrays is asked for one by name: ``vectors.npz:train``. A .npy file is
    memory-mapped and read-only, and so is a large array of the other formats, unless it is compressed.
    """
    file, member = split_member(path)
    suffix = Path(file).suffix.casefold()
    readers: dict[str, Callable[[Path, str | None], Array]] = {
        ".npy": _npy,
        ".npz": _npz,
        ".safetensors": _safetensors,
    }
    if suffix not in readers:
        raise FormatError(
            f"{shown(file)} has a suffix that names no array format", hint=f"use one of {', '.join(readers)}"
        )
    _check_signature(file, suffix)
    array = _guarded(readers[suffix], file, member)
    if ndim is not None and array.ndim != ndim:
        raise ShapeError(
            f"{shown(path)} has shape {array.shape}; {ndim} dimension{'s are' if ndim > 1 else ' is'} needed"
        )
    return array


def array_names(path: PathLike) -> list[str]:
    """The names of the arrays in an .npz or .safetensors file, sorted; the one of a .npy file has none."""
    file, _ = split_member(path)
    suffix = file.suffix.casefold()
    if suffix not in (".npz", ".safetensors"):
        return []
    _check_signature(file, suffix)
    return sorted(_guarded(_npz_names if suffix == ".npz" else _safetensors_names, file, None))


def read_matrix(path: PathLike) -> Array:
    """A matrix of real numbers, such as one embedding a row; at least one row and one column."""
    matrix = read_array(path, ndim=2)
    if matrix.dtype.kind not in "biuf":
        raise FormatError(f"{shown(path)} holds {matrix.dtype} values, where real numbers are needed")
    if not matrix.size:
        raise ShapeError(f"{shown(path)} has shape {matrix.shape}: there is nothing in it")
    return matrix


def split_member(path: PathLike) -> tuple[Path, str | None]:
    """A path and the name of an array in it, if one is given after a colon.

    >>> split_member("vectors.npz:train")[1]
    'train'
    """
    text = os.fspath(path)
    match = _MEMBER.fullmatch(text)
    # A file may really bear such a name; then it is meant.
    if match is None or os.path.exists(text):
        return Path(text), None
    return Path(match["path"]), match["member"]


def _check_signature(path: Path, suffix: str) -> None:
    """Refuse a file that is not what its suffix says, before numpy takes it for a pickle."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(8)
    except (OSError, ValueError) as error:
        raise explain_unreadable(path, error) from error
    if not head:
        raise InputError(f"{shown(path)} is empty", hint="check that the step that writes it has finished")
    expected: tuple[bytes, ...] = _SIGNATURES.get(suffix, (b"",))
    if head.startswith(expected):
        return
    if head.startswith(_PICKLE_SIGNATURE):
        raise FormatError(f"{shown(path)} is a pickle, which is never opened", hint=_NO_PICKLES)
    other = next((each for each, mark in _SIGNATURES.items() if head.startswith(mark)), None)
    raise FormatError(
        f"{shown(path)} is not a {suffix} file: it does not begin like one",
        hint=f"it begins like a {other} file; rename it" if other else "",
    )


def _guarded(reader: Callable[[Path, str | None], T], path: Path, member: str | None) -> T:
    try:
        return reader(path, member)
    except EquipoiseError:
        raise
    except Exception as error:  # zip, npy and safetensors parsers raise a dozen kinds for damaged bytes
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        if "Object arrays" in reason or "Python objects" in reason:
            raise FormatError(f"{shown(path)} holds Python objects, not numbers", hint=_NO_PICKLES) from error
        raise FormatError(
            f"{shown(path)} is not a readable {path.suffix} file: {reason}",
            hint="was it cut off? compare its size with the original",
        ) from error


def _npy(path: Path, member: str | None) -> Array:
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _npz(path: Path, member: str | None) -> Array:
    # numpy leaves a file that it opened itself open when the archive is damaged.
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        name = _chosen(path, archive.files, member)
        mapped = mapped_member(path, name, least=_LARGE)
        if mapped is None:
            check_archive(shown(path), archive.zip, path.stat().st_size, ARRAYS_FLOOR)
        array = archive[name] if mapped is None else mapped
    if not isinstance(array, np.ndarray):
        raise FormatError(f"{shown(path)} holds {name}, which is no array")
    return array


def _npz_names(path: Path, member: str | None) -> list[str]:
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return list(archive.files)


def _safetensors_names(path: Path, member: str | None) -> list[str]:
    with need("safetensors", extra="torch").safe_open(path, framework="numpy") as archive:
        return list(archive.keys())


def _safetensors(path: Path, member: str | None) -> Array:
    engine = need("safetensors", extra="torch")
    with engine.safe_open(path, framework="numpy") as archive:
        name = _chosen(path, list(archive.keys()), member)
        mapped = mapped_safetensor(path, name, least=_LARGE)
        array: Array = archive.get_tensor(name) if mapped is None else mapped
    return array


def _chosen(path: Path, names: Sequence[str], member: str | None) -> str:
    known = sorted(names)
    if member is None:
        if len(known) == 1:
            return known[0]
        if not known:
            raise InputError(f"{shown(path)} holds no arrays")
        listed = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
        raise InputError(
            f"{shown(path)} holds {len(known)} arrays: {listed}",
            hint=f"name one: {shown(path)}:{known[0]}",
        )
    if member not in known:
        raise UnknownNameError.of(
            f"array in {shown(path)}", member, known, more=f"there are: {', '.join(known[:5])}"
        )
    return member
