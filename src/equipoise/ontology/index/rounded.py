"""Vectors in 8-bit whole numbers: their products are exact, four times as fast, and a known distance off.

With q and x rounded to a and b, their inner products differ by at most |q - a| |x| + |a| |x - b|.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.geometry import Points
from equipoise.geometry.base import row_blocks
from equipoise.types import Floats, Ints

Bytes = NDArray[np.int8]
Wholes = NDArray[Any]
"""32-bit whole numbers, typed so that what reads scores can read them too."""
Product = Callable[[Bytes, Bytes], Wholes]
"""The inner products of the rows of two matrices; the next call may reuse the array."""

_LARGEST = 127
_LONGEST = (1 << 31) // _LARGEST**2
"""Coordinates whose products can be summed in 32 bits."""


def product_of_bytes(dims: int) -> Product | None:
    """Torch's product of 8-bit rows of so many numbers; None where it is not at hand or would not be fast.

    Torch takes longer to import than a few thousand queries to answer, so it serves only where something
    else, such as a model that runs on it, has loaded it.
    """
    torch = sys.modules.get("torch")
    supported = getattr(getattr(torch, "cpu", None), "_is_vnni_supported", None)
    if dims > _LONGEST or supported is None or not supported() or not hasattr(torch, "_int_mm"):
        return None
    assert torch is not None
    held = torch.empty((0, 0), dtype=torch.int32)

    def product(left: Bytes, right: Bytes) -> Wholes:
        nonlocal held
        if held.shape != (len(left), len(right)):
            held = torch.empty((len(left), len(right)), dtype=torch.int32)
        torch._int_mm(torch.from_numpy(left), torch.from_numpy(right).T, out=held)
        found: Wholes = held.numpy()
        return found

    return product


@dataclass(frozen=True, slots=True)
class Rounded:
    """Rows as multiples of a unit; ``lengths`` are those of the rows, ``errors`` of what rounding took."""

    values: Bytes
    unit: Floats
    lengths: Floats
    errors: Floats

    def __getitem__(self, part: slice) -> Rounded:
        return Rounded(self.values[part], self.unit[part], self.lengths[part], self.errors[part])

    @classmethod
    def of(cls, rows: Points, scale: Points | None = None, *, unit_a_row: bool = False) -> Rounded:
        """Round rows, each multiplied by its scale, in one unit for all of them or in one for each."""
        unit = np.empty(len(rows))
        factor = np.ones(len(rows)) if scale is None else scale.astype(np.float64)
        for part in row_blocks(len(rows)):
            unit[part] = np.abs(rows[part]).max(axis=1, initial=0.0) * factor[part] / _LARGEST
        if not unit_a_row:
            unit[:] = unit.max(initial=0.0)
        unit[unit == 0.0] = 1.0
        found = cls(np.empty(rows.shape, dtype=np.int8), unit, np.empty(len(rows)), np.empty(len(rows)))
        for part in row_blocks(len(rows)):
            exact = rows[part] * factor[part, None]
            found.values[part] = np.rint(exact / unit[part, None])
            found.lengths[part] = np.linalg.norm(exact, axis=1)
            found.errors[part] = np.linalg.norm(exact - found.values[part] * unit[part, None], axis=1)
        return found


def slack(queries: Rounded, corpus: Rounded) -> Ints:
    """By how much, for each query, the order of two whole products can be wrong about the scores.

    Where one is larger than another by more than this, its score is, also as float32 would add it up.
    """
    longest, worst = corpus.lengths.max(initial=0.0), corpus.errors.max(initial=0.0)
    rounding = queries.errors * longest + (queries.lengths + queries.errors) * worst
    adding = queries.values.shape[1] * np.finfo(np.float32).eps * queries.lengths * longest
    whole: Ints = np.ceil(2.0 * (rounding + adding) / (queries.unit * corpus.unit[0])).astype(np.int64)
    return whole
