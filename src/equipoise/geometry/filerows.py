"""Rows of a matrix that lies in a file, mapped a window at a time: what was looked at is let go of again.

One mapping of a whole file would stay resident, page by page, until the machine is short of memory. It also
cannot travel to another process, where a path can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError
from equipoise.types import Ints


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows ``start`` to ``stop`` of a matrix whose numbers begin at ``offset`` of a file, row after row."""

    path: str
    kind: str
    dims: int
    offset: int
    start: int
    stop: int

    @classmethod
    def of(cls, mapped: np.memmap[Any, Any]) -> FileRows | None:
        """The rows behind a mapped matrix; None where they do not lie one after another in a file."""
        if mapped.ndim != 2 or mapped.filename is None or not mapped.flags.c_contiguous:
            return None
        return cls(
            str(mapped.filename), mapped.dtype.str, mapped.shape[1], int(mapped.offset), 0, mapped.shape[0]
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers in the file."""
        return np.dtype(self.kind)

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, part: slice) -> FileRows:
        """Some of the rows; nothing is read."""
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise InputError("rows of a file are taken one after another", hint="leave the step out")
        return replace(self, start=self.start + start, stop=self.start + max(start, stop))

    def read(self) -> NDArray[Any]:
        """All of these rows, in memory."""
        return np.array(self._mapped())

    def take(self, rows: Ints) -> NDArray[Any]:
        """Some rows by number, in memory."""
        return np.asarray(self._mapped()[rows])

    def _mapped(self) -> NDArray[Any]:
        if not len(self):
            return np.empty((0, self.dims), dtype=self.dtype)
        place = self.offset + self.start * self.dims * self.dtype.itemsize
        try:
            return np.memmap(self.path, self.dtype, "r", offset=place, shape=(len(self), self.dims))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it has become shorter"
            raise InputError(
                f"{self.path} can no longer be read: {reason}", hint="keep the shards while they are searched"
            ) from error
