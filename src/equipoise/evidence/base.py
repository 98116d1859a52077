"""The base class of evidence, npz storage, and validation of columns of numbers and ids."""

from __future__ import annotations

import io
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, EquipoiseError, InputError, NotFiniteError, ShapeError, StoreError
from equipoise.io.text import ARRAYS_FLOOR, check_archive

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ids, Ints

Arrays = dict[str, NDArray[Any]]


class Evidence(ABC):
    """Observations per unit, sufficient to compute every metric of its kind.

    ``take`` is used by the bootstrap, cross-validation folds and slices. ``shuffled`` defines the chance level: it
    randomises what the system predicted and keeps everything else.
    """

    kind: ClassVar[str]
    unit_ids: Ids

    def __len__(self) -> int:
        return len(self.unit_ids)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} units>"

    @abstractmethod
    def take(self, index: Ints) -> Self:
        """The units at ``index``, in that order; an index may repeat."""

    @abstractmethod
    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same units with random predictions."""

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """All content as plain arrays without Python objects."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""

    def save(self, path: str | Path) -> None:
        """Write one npz file; equal evidence gives equal bytes."""
        from equipoise.io.atomic import write_bytes

        write_bytes(path, pack_npz({"kind": np.array(self.kind), **self.to_arrays()}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read evidence of this kind from an npz file written by ``save``."""
        arrays = unpack_npz(path)
        kind = str(arrays.pop("kind", ""))
        if kind != cls.kind:
            raise StoreError(
                f"{path} contains {kind or 'no'} evidence, not {cls.kind}",
                hint="equipoise.load_evidence reads any kind",
            )
        return cls.from_arrays(arrays)


def pack_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An npz archive without time stamps, so that equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
            # With a ZipInfo, the level of the archive is not used.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=1)
    return buffer.getvalue()


def unpack_npz(path: str | Path, data: bytes | None = None) -> Arrays:
    """All arrays of an npz file; ``data`` are its bytes, if they were read already."""
    try:
        content = Path(path).read_bytes() if data is None else data
    except FileNotFoundError as error:
        raise StoreError(f"there is no evidence file {path}", hint="check the path") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is not an evidence file: {error}") from error
    return unpack_npz_bytes(content, str(path))


def unpack_npz_bytes(data: bytes, name: str) -> Arrays:
    """All arrays of the bytes of an npz file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_archive(name, archive, len(data), ARRAYS_FLOOR)
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except EquipoiseError:
        raise
    except Exception as error:  # zip and npy parsers raise many exception types for damaged bytes
        reason = str(error) or type(error).__name__
        raise StoreError(f"{name} is not an evidence file: {reason}", hint="run the command again") from error
    invalid = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
    if invalid:
        raise StoreError(f"{name} contains {invalid[0]}, which is not an array", hint="run the command again")
    return arrays


def ids_to_array(ids: Ids) -> NDArray[Any]:
    """Ids as an array without Python objects, for storage."""
    return ids.astype(str) if ids.dtype == object else ids


def as_ids(ids: Any, count: int) -> Ids:
    """Ids as an array: integers or strings; 0, 1, 2, ... if ``ids`` is None."""
    if ids is None:
        return np.arange(count)
    array = np.asarray(ids)
    return array if array.dtype.kind in "iu" else np.asarray([str(name) for name in ids], dtype=object)


def float_column(values: Any, name: str, *, nan: bool = False) -> Floats:
    """One float64 number per unit, all finite; ``nan=True`` allows NaN for undefined values."""
    try:
        numbers = np.asarray(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not numbers: {error}") from error
    if numbers.ndim != 1:
        raise ShapeError(f"{name} have shape {numbers.shape}", hint="give one number per unit")
    bad = np.isinf(numbers) if nan else ~np.isfinite(numbers)
    if bad.any():
        first = int(np.argmax(bad))
        raise NotFiniteError(
            f"{name} contain {numbers[first]} at position {first} ({int(bad.sum())} non-finite values in total)",
            hint="remove these units, or fix the code that produced the values",
        )
    return numbers


def check_same_length(one: NDArray[Any], other: NDArray[Any], one_name: str, other_name: str) -> None:
    """Raise ``ShapeError`` for columns of unequal length."""
    if len(one) != len(other):
        raise ShapeError(
            f"there are {len(one)} {one_name} and {len(other)} {other_name}", hint="give one of each per unit"
        )


def unique_ids(ids: Any, count: int, *, noun: str = "unit") -> Ids:
    """One unique id per unit or class; 0, 1, 2, ... if ``ids`` is None."""
    names = as_ids(None if ids is None else to_numpy(ids), count)
    if len(names) != count:
        raise ShapeError(f"there are {len(names)} {noun} ids for {count}", hint=f"give one id for each {noun}")
    if ids is not None and len(set(names.tolist())) != count:
        distinct, times = np.unique(names, return_counts=True)
        repeated = distinct[np.argmax(times)]
        raise DuplicateError(f"the {noun} id {repeated!s} appears {int(times.max())} times", hint="ids must be unique")
    return names


def constant_column(value: np.generic, count: int) -> NDArray[Any]:
    """A read-only column with the same value for every unit; it takes no memory."""
    return np.ndarray(count, value.dtype, buffer=value.tobytes(), strides=(0,))


def to_numpy(values: Any) -> NDArray[Any]:
    """An array-like as a numpy array, copied from its device if necessary."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return np.asarray(values)
    if hasattr(values, "detach"):  # torch does not export a tensor that tracks gradients
        values = values.detach()
    if hasattr(values, "cpu"):
        values = values.cpu()
    return np.asarray(values)


def as_host_array(array: Any) -> Any:
    """A numpy view of an array in host memory; an array on another device unchanged."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        array = array.detach()
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, TypeError, ValueError, RuntimeError):
            return array  # another device, or a dtype that numpy does not support
    return np.asarray(array)


class StoredArrays:
    """The arrays of an evidence file, by name; each method checks type, shape and values."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def get(self, name: str, kinds: str, *shape: int | None) -> NDArray[Any]:
        """The array of this name; ``kinds`` are the allowed dtype kinds, None in ``shape`` is any length."""
        if name not in self._arrays:
            raise _changed_file_error(f"there is no array {name}")
        array = self._arrays[name]
        fits = array.ndim == len(shape) and all(
            length in (None, actual) for length, actual in zip(shape, array.shape, strict=True)
        )
        if array.dtype.kind not in kinds or not fits:
            expected = " x ".join("n" if length is None else str(length) for length in shape) or "one value"
            raise _changed_file_error(f"{name} is an array of {array.dtype} with shape {array.shape}, not {expected}")
        return array

    def ids(self, name: str) -> Ids:
        """Ids: integers, or strings as Python strings."""
        ids = self.get(name, "Uiu", None)
        return ids.astype(object) if ids.dtype.kind == "U" else ids

    def numbers(self, name: str, *shape: int | None) -> Floats:
        """Real numbers; NaN is allowed."""
        return self.get(name, "fiu", *shape)

    def counts(self, name: str, length: int | None) -> Ints:
        """Non-negative integers."""
        array = self.get(name, "iu", length)
        if array.size and array.min() < 0:
            raise _changed_file_error(f"{name} contains {array.min()}; a count is expected")
        return array

    def codes(self, name: str, limit: int, *shape: int | None) -> Ints:
        """Indices below ``limit``."""
        array = self.get(name, "iu", *shape)
        if array.size and not (array.min() >= 0 and array.max() < limit):
            raise _changed_file_error(f"{name} contains an index outside 0 to {limit - 1}")
        return array

    def offsets(self, name: str, groups: int, items: int) -> Ints:
        """The start of each group of items, and the end of the last one."""
        array = self.get(name, "i", groups + 1)
        if array[0] != 0 or array[-1] != items or (np.diff(array) < 0).any():
            raise _changed_file_error(f"{name} does not divide {items} items into {groups} groups")
        return array

    def flags(self, name: str, length: int) -> Bools:
        """Booleans."""
        return self.get(name, "b", length)

    def flag(self, name: str) -> bool:
        """One boolean."""
        return bool(self.get(name, "b"))

    def text(self, name: str) -> str:
        """One string."""
        return str(self.get(name, "U"))

    def texts(self, name: str) -> tuple[str, ...]:
        """Strings."""
        return tuple(map(str, self.get(name, "U", None).tolist()))

    def below(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays whose names start with the prefix, without the prefix."""
        return {name.removeprefix(prefix): array for name, array in self._arrays.items() if name.startswith(prefix)}


FILE_CHANGED = "the file was changed after it was written: run the command again"
"""The hint for a stored file that cannot be read."""


def _changed_file_error(message: str) -> StoreError:
    return StoreError(message, hint=FILE_CHANGED)
