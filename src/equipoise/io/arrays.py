"""Arrays from .npy, .npz, .safetensors and .pt files, memory-mapped where possible; offsets of segments of arrays."""

from __future__ import annotations

import json
import mmap
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, FormatError, InputError, ShapeError, UnknownNameError
from equipoise.io.text import ARRAYS_FLOOR, PathLike, check_archive, display_path, read_error
from equipoise.types import Ints, require_extra

# A memory-mapped view of one array inside a larger file.

_LOCAL_HEADER_BYTES = 30
_LENGTH_BYTES = 8
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
"""The kinds of a .safetensors file that numpy supports."""


def memmap_safetensor(path: Path, name: str, *, least: int = 0) -> NDArray[Any] | None:
    """The tensor of a .safetensors file; None if it is smaller than ``least`` bytes or numpy lacks its kind.

    The format is a length, a JSON header with dtype, shape and offset of each tensor, and raw numbers.
    """
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        entry = json.loads(stream.read(length))[name]
    begin, end = entry["data_offsets"]
    if entry["dtype"] not in _DTYPES or end - begin < max(least, 1):
        return None
    dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
    if prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(f"{name} has a size that does not match its shape")
    return np.memmap(path, dtype, mode="r", offset=_LENGTH_BYTES + length + begin, shape=shape)


def memmap_npz_member(path: Path, name: str, *, least: int = 0) -> NDArray[Any] | None:
    """The array of an .npz file; None if it is compressed, smaller than ``least`` bytes or not plain numbers.

    ``numpy.savez`` stores an array as it is, which is an .npy file within the archive.
    """
    with open(path, "rb") as stream, zipfile.ZipFile(stream) as archive:
        member = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
        if member.compress_type != zipfile.ZIP_STORED or member.file_size < least:
            return None
        stream.seek(member.header_offset)
        header = stream.read(_LOCAL_HEADER_BYTES)
        stream.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
        version = np.lib.format.read_magic(stream)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            return None
        shape, by_columns, dtype = read_header(stream)
        if dtype.hasobject or not prod(shape):
            return None
        offset = stream.tell()
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape, order="F" if by_columns else "C")


Array = NDArray[Any]
T = TypeVar("T")

_MEMBER = re.compile(r"(?P<path>.+\.(?:npz|safetensors|pt|pth)):(?P<member>.+)", re.IGNORECASE | re.DOTALL)
_SIGNATURES = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}
_PICKLE_SIGNATURE = b"\x80"
_TORCH_SUFFIXES = (".pt", ".pth")
_LARGE = 64 << 20
"""Size in bytes from which an archive member is memory-mapped; smaller ones are read, with their checksum."""

VECTORS = "vectors"
"""The array of vectors in an .npz file that also holds their ids or texts."""

_NO_PICKLES = "pickles can run code; save the array with numpy.save(..., allow_pickle=False)"


def read_array(path: PathLike, *, ndim: int | None = None) -> Array:
    """One array of a .npy, .npz, .safetensors or .pt file, of ``ndim`` dimensions where that is given.

    One of several arrays is selected by name: ``vectors.npz:train``. If a matrix is needed, the array ``vectors`` of an
    .npz file is the default. A .npy file is memory-mapped and read-only, and so is a large array of the other formats,
    unless it is compressed.
    A .pt file (``torch.save``) holds a tensor, a list of batches, which are concatenated, or a dict of these. Only
    tensors are loaded from it, no other objects.
    """
    file, member = split_member(path)
    suffix = Path(file).suffix.casefold()
    if suffix not in ARRAY_FORMATS:
        raise FormatError(
            f"{display_path(file)} does not have the file extension of an array format",
            hint=f"use one of {', '.join(ARRAY_FORMATS)}",
        )
    _check_signature(file, suffix)
    if member is None and ndim == 2 and suffix == ".npz" and VECTORS in array_names(file):
        member = VECTORS
    array = _read_guarded(ARRAY_FORMATS[suffix][0], file, member)
    if ndim is not None and array.ndim != ndim:
        raise ShapeError(
            f"{display_path(path)} has shape {array.shape}; {ndim} dimension{'s are' if ndim > 1 else ' is'} needed",
            hint="give one value per row" if ndim == 1 else "give one row per unit" if ndim == 2 else "",
        )
    return array


def array_names(path: PathLike) -> list[str]:
    """The names of the arrays in a file, sorted; an .npy file and a single tensor have none."""
    file, _ = split_member(path)
    suffix = file.suffix.casefold()
    if suffix not in ARRAY_FORMATS:
        return []
    _check_signature(file, suffix)
    return sorted(_read_guarded(ARRAY_FORMATS[suffix][1], file, None))


def read_matrix(path: PathLike) -> Array:
    """A matrix of real numbers, such as one embedding per row; at least one row and one column."""
    matrix = read_array(path, ndim=2)
    if matrix.dtype.kind not in "biuf":
        raise FormatError(f"{display_path(path)} holds {matrix.dtype} values, where real numbers are needed")
    if not matrix.size:
        raise ShapeError(f"{display_path(path)} has shape {matrix.shape}: there is nothing in it")
    return matrix


def split_member(path: PathLike) -> tuple[Path, str | None]:
    """A path and the name of an array in it, if one is given after a colon.

    >>> split_member("vectors.npz:train")[1]
    'train'
    """
    text = os.fspath(path)
    match = _MEMBER.fullmatch(text)
    # A file with a colon in its name takes precedence.
    if match is None or os.path.exists(text):
        return Path(text), None
    return Path(match["path"]), match["member"]


def _check_signature(path: Path, suffix: str) -> None:
    """Reject a file whose content does not match its suffix, before numpy reads it as a pickle."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(8)
    except (OSError, ValueError) as error:
        raise read_error(path, error) from error
    if not head:
        raise InputError(f"{display_path(path)} is empty", hint="check that the step that writes it has finished")
    expected: tuple[bytes, ...] = _SIGNATURES.get(suffix, (b"",))
    if head.startswith(expected) or suffix in _TORCH_SUFFIXES:  # torch reads both its formats, zip and pickle, safely
        return
    if head.startswith(_PICKLE_SIGNATURE):
        raise FormatError(f"{display_path(path)} is a pickle, which is never opened", hint=_NO_PICKLES)
    other = next((format_name for format_name, mark in _SIGNATURES.items() if head.startswith(mark)), None)
    raise FormatError(
        f"{display_path(path)} is not a {suffix} file: it does not begin like one",
        hint=f"it begins like a {other} file; rename it" if other else "",
    )


def _read_guarded(reader: Callable[[Path, str | None], T], path: Path, member: str | None) -> T:
    try:
        return reader(path, member)
    except EquipoiseError:
        raise
    except Exception as error:  # zip, npy and safetensors parsers raise many exception types for damaged bytes
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        if "Object arrays" in reason or "Python objects" in reason:
            raise FormatError(
                f"{display_path(path)} holds Python objects, not numbers or text",
                hint="convert the array before it is saved: numpy.asarray(values, dtype=float), or dtype=str for names",
            ) from error
        raise FormatError(
            f"{display_path(path)} is not a readable {path.suffix} file: {reason}",
            hint="was it truncated? compare its size with the original",
        ) from error


def _npy(path: Path, member: str | None) -> Array:
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _npy_names(path: Path, member: str | None) -> list[str]:
    return []


def _npz(path: Path, member: str | None) -> Array:
    # numpy leaves a file that it opened itself open when the archive is damaged.
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        name = _chosen(path, archive.files, member)
        mapped = memmap_npz_member(path, name, least=_LARGE)
        if mapped is None:
            check_archive(display_path(path), archive.zip, path.stat().st_size, ARRAYS_FLOOR)
        array = archive[name] if mapped is None else mapped
    if not isinstance(array, np.ndarray):
        raise FormatError(f"{display_path(path)} holds {name}, which is not an array")
    return array


def _npz_names(path: Path, member: str | None) -> list[str]:
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return list(archive.files)


def _safetensors_names(path: Path, member: str | None) -> list[str]:
    with require_extra("safetensors", extra="torch").safe_open(path, framework="numpy") as archive:
        return list(archive.keys())


def _safetensors(path: Path, member: str | None) -> Array:
    engine = require_extra("safetensors", extra="torch")
    with engine.safe_open(path, framework="numpy") as archive:
        name = _chosen(path, list(archive.keys()), member)
        mapped = memmap_safetensor(path, name, least=_LARGE)
        array: Array = archive.get_tensor(name) if mapped is None else mapped
    return array


def _torch_content(path: Path) -> Any:
    """The tensors of a file; ``weights_only`` does not run code."""
    torch = require_extra("torch", extra="torch")
    with open(path, "rb") as stream:
        is_zip = stream.read(2) == b"PK"
    return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)


def _torch_names(path: Path, member: str | None) -> list[str]:
    content = _torch_content(path)
    return [str(name) for name in content] if isinstance(content, dict) else []


def _torch(path: Path, member: str | None) -> Array:
    content = _torch_content(path)
    if isinstance(content, dict):
        named = {str(name): value for name, value in content.items()}
        content = named[_chosen(path, list(named), member)]
    return _tensor_array(content, path)


def _tensor_array(content: Any, path: Path) -> Array:
    torch = require_extra("torch", extra="torch")
    if isinstance(content, list | tuple) and content and all(isinstance(batch, torch.Tensor) for batch in content):
        content = torch.cat([batch if batch.ndim else batch.reshape(1) for batch in content])
    if not isinstance(content, torch.Tensor):
        raise FormatError(
            f"{display_path(path)} holds a {type(content).__name__} where a tensor is needed",
            hint="save a tensor, a list of tensors, or a dict of tensors by name",
        )
    tensor = content.detach()
    array: Array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()  # numpy has no bfloat16
    return array


ARRAY_FORMATS: dict[str, tuple[Callable[[Path, str | None], Array], Callable[[Path, str | None], list[str]]]] = {
    ".npy": (_npy, _npy_names),
    ".npz": (_npz, _npz_names),
    ".safetensors": (_safetensors, _safetensors_names),
    ".pt": (_torch, _torch_names),
    ".pth": (_torch, _torch_names),
}
"""By file extension: the functions that read an array and list the names of the arrays."""


def _chosen(path: Path, names: Sequence[str], member: str | None) -> str:
    available = sorted(names)
    if member is None:
        if len(available) == 1:
            return available[0]
        if not available:
            raise InputError(f"{display_path(path)} holds no arrays")
        listed = ", ".join(available[:5]) + (", ..." if len(available) > 5 else "")
        raise InputError(
            f"{display_path(path)} holds {len(available)} arrays: {listed}",
            hint=f"name one: {display_path(path)}:{available[0]}",
        )
    if member not in available:
        raise UnknownNameError.of(
            f"array in {display_path(path)}", member, available, more=f"there are: {', '.join(available[:5])}"
        )
    return member


# Blocks of a memory-mapped file: pages are released after use, so that resident memory is bounded.


class MappedPages:
    """The memory map of an array, if its pages may be dropped after use.

    Pages of a mapped file remain in the memory of the process once they are read, up to the size of the file.
    Clean pages can be dropped: they are read from the file again if needed.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.mapping = _find_mapping(array)
        self.origin = 0
        if self.mapping is not None:
            self.origin = byte_bounds(np.frombuffer(self.mapping, dtype=np.uint8))[0]

    def drop(self, block: NDArray[Any]) -> None:
        """Release the complete pages of a block that is no longer needed."""
        if self.mapping is None or not block.size:
            return
        low, high = (end - self.origin for end in byte_bounds(block))
        low, high = low // mmap.PAGESIZE * mmap.PAGESIZE, high // mmap.PAGESIZE * mmap.PAGESIZE
        if high > low:
            self.mapping.madvise(mmap.MADV_DONTNEED, low, high - low)


def _find_mapping(array: NDArray[Any]) -> mmap.mmap | None:
    """The memory map that an array is a view of; None if it may have been changed."""
    holder: Any = array
    while holder is not None and not isinstance(holder, mmap.mmap):
        # A private mapping (mode "c") would lose changes.
        if isinstance(holder, np.ndarray) and holder.flags.writeable:
            return None
        holder = holder.obj if isinstance(holder, memoryview) else getattr(holder, "base", None)
    return holder if hasattr(mmap, "MADV_DONTNEED") else None


def segment_indices(first: Ints, lengths: Ints) -> Ints:
    """The indices ``first[i] .. first[i] + lengths[i] - 1`` of all spans, one after another.

    >>> segment_indices(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    return np.repeat(first - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def segment_offsets(counts: Ints) -> Ints:
    """The start of each segment in their concatenation, and the end of the last one."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts
