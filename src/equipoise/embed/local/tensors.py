"""The tensors of a .safetensors file as views of its bytes: nothing is copied until it is used.

The library copies the whole file, which takes longer than all the rest of loading MiniLM, and cannot give
bfloat16 to numpy. The format is a length, a JSON header and raw numbers.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import FormatError

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
_LENGTH_BYTES = 8


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of the file, read-only; bfloat16 becomes float32."""
    try:
        with open(path, "rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
        header = json.loads(data[_LENGTH_BYTES:start])
        return {name: _view(data, start, entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{path} cannot be read as .safetensors: {error}", hint="was it cut off? compare its size"
        ) from error


def _view(data: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    count = int(np.prod(shape, dtype=np.int64))
    if end - begin != count * dtype.itemsize:
        raise ValueError("a tensor has another size than its shape says")
    flat: NDArray[Any] = np.frombuffer(data, dtype, count, start + begin) if count else np.empty(0, dtype)
    if entry["dtype"] == "BF16":
        # The upper half of a float32.
        flat = (flat.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return flat.reshape(shape)
