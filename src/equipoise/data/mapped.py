"""One array inside a larger file, as a view of the file: nothing is read before it is looked at."""

from __future__ import annotations

import json
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
"""The kinds of a .safetensors file that numpy knows."""


def mapped_safetensor(path: Path, name: str, *, least: int = 0) -> NDArray[Any] | None:
    """The tensor of a .safetensors file; None if it is smaller than ``least`` bytes or numpy lacks its kind.

    The format is a length, a JSON header with kind, shape and place of each tensor, and raw numbers.
    """
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        entry = json.loads(stream.read(length))[name]
    begin, end = entry["data_offsets"]
    if entry["dtype"] not in _DTYPES or end - begin < max(least, 1):
        return None
    dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
    if prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(f"{name} has another size than its shape says")
    return np.memmap(path, dtype, mode="r", offset=_LENGTH_BYTES + length + begin, shape=shape)


def mapped_member(path: Path, name: str, *, least: int = 0) -> NDArray[Any] | None:
    """The array of an .npz file; None if it is compressed, smaller than ``least`` bytes or no plain numbers.

    ``numpy.savez`` stores an array as it is, which is an .npy file within the archive.
    """
    with open(path, "rb") as stream, zipfile.ZipFile(stream) as archive:
        found = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
        if found.compress_type != zipfile.ZIP_STORED or found.file_size < least:
            return None
        stream.seek(found.header_offset)
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
