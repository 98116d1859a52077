"""Blocks of a memory-mapped file: what has been read is given back, so that memory stays small."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray


class Pages:
    """The mapping beneath an array, if there is one whose pages may be dropped after use.

    Pages of a mapped file stay in the memory of the process once they are read, up to the size of the file.
    Those that only mirror the file can go: whoever needs them again gets them from the file.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.mapping = _mapping_of(array)
        self.origin = 0
        if self.mapping is not None:
            self.origin = byte_bounds(np.frombuffer(self.mapping, dtype=np.uint8))[0]

    def drop(self, block: NDArray[Any]) -> None:
        """Give back the whole pages of a block that is no longer needed."""
        if self.mapping is None or not block.size:
            return
        low, high = (end - self.origin for end in byte_bounds(block))
        low, high = low // mmap.PAGESIZE * mmap.PAGESIZE, high // mmap.PAGESIZE * mmap.PAGESIZE
        if high > low:
            self.mapping.madvise(mmap.MADV_DONTNEED, low, high - low)


def _mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The mapping that the array looks into; None for one that may hold what the file does not."""
    holder: Any = array
    while holder is not None and not isinstance(holder, mmap.mmap):
        # A private mapping (mode "c") would lose what was written into it.
        if isinstance(holder, np.ndarray) and holder.flags.writeable:
            return None
        holder = holder.obj if isinstance(holder, memoryview) else getattr(holder, "base", None)
    return holder if hasattr(mmap, "MADV_DONTNEED") else None
