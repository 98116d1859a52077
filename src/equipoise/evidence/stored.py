"""Reading evidence back: arrays whose type, shape or values do not fit together are an error.

A file may have been written by another program. Each array is checked here before a metric computes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import StoreError
from equipoise.evidence.base import restored_ids
from equipoise.types import Bools, Floats, Ids, Ints


class StoredArrays:
    """The arrays of an evidence file, by name."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def get(self, name: str, kinds: str, *shape: int | None) -> NDArray[Any]:
        """The array of this name; ``kinds`` are its possible dtype kinds, None a free length."""
        if name not in self._arrays:
            raise _fault(f"there is no array {name}")
        array = self._arrays[name]
        fits = array.ndim == len(shape) and all(
            length in (None, found) for length, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype.kind not in kinds or not fits:
            wanted = " x ".join("n" if length is None else str(length) for length in shape) or "one value"
            raise _fault(f"{name} is an array of {array.dtype} with shape {array.shape}, not {wanted}")
        return array

    def ids(self, name: str, length: int | None = None) -> Ids:
        """Names: strings or integers."""
        return restored_ids(self.get(name, "Uiu", length))

    def numbers(self, name: str, *shape: int | None) -> Floats:
        """Real numbers; NaN is allowed."""
        return self.get(name, "fiu", *shape)

    def counts(self, name: str, length: int | None) -> Ints:
        """Integers that are not negative."""
        array = self.get(name, "iu", length)
        if array.size and array.min() < 0:
            raise _fault(f"{name} holds {array.min()}, where a count is needed")
        return array

    def codes(self, name: str, limit: int, *shape: int | None) -> Ints:
        """Positions in something of ``limit`` items."""
        array = self.get(name, "iu", *shape)
        if array.size and not (array.min() >= 0 and array.max() < limit):
            raise _fault(f"{name} holds a position outside 0 to {limit - 1}")
        return array

    def offsets(self, name: str, groups: int, items: int) -> Ints:
        """Where each group of items starts, and the end of the last one."""
        array = self.get(name, "i", groups + 1)
        if array[0] != 0 or array[-1] != items or (np.diff(array) < 0).any():
            raise _fault(f"{name} does not divide {items} items into {groups} groups")
        return array

    def flags(self, name: str, length: int) -> Bools:
        """Truth values."""
        return self.get(name, "b", length)

    def flag(self, name: str) -> bool:
        """One truth value."""
        return bool(self.get(name, "b"))

    def text(self, name: str) -> str:
        """One string."""
        return str(self.get(name, "U"))

    def texts(self, name: str) -> tuple[str, ...]:
        """Strings."""
        return tuple(map(str, self.get(name, "U", None).tolist()))

    def below(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays whose names start with this, without it."""
        return {
            name.removeprefix(prefix): array
            for name, array in self._arrays.items()
            if name.startswith(prefix)
        }


def _fault(fact: str) -> StoreError:
    return StoreError(fact, hint="the file was changed after it was written: run the command again")
