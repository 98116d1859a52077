"""What every kind of evidence can do: name its units, be taken apart, be shuffled, be stored."""

from __future__ import annotations

import io
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.data.atomic import write_bytes
from equipoise.data.expand import ARRAYS_FLOOR, check_archive
from equipoise.errors import EquipoiseError, StoreError
from equipoise.types import Ids, Ints

Arrays = dict[str, NDArray[Any]]


class Evidence(ABC):
    """What was observed, enough for every metric of its kind.

    ``take`` serves the bootstrap, the folds and the slices; ``shuffled`` defines the chance level:
    it keeps everything that the system did not decide and randomises what it did.
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
        """The same units, scored by a system that knows nothing."""

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """Plain arrays that hold all of it; no Python objects inside."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""

    def save(self, path: str | Path) -> None:
        """Write one npz file; equal evidence gives equal bytes."""
        write_bytes(path, pack({"kind": np.array(self.kind), **self.to_arrays()}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read evidence of this kind from an npz file written by ``save``."""
        arrays = unpack(path)
        kind = str(arrays.pop("kind", ""))
        if kind != cls.kind:
            raise StoreError(
                f"{path} holds {kind or 'no'} evidence, not {cls.kind}",
                hint="equipoise.load_evidence reads any kind",
            )
        return cls.from_arrays(arrays)


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An npz archive without time stamps, so that equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpack(path: str | Path, data: bytes | None = None) -> Arrays:
    """All arrays of an npz file; ``data`` are its bytes, where they were read already."""
    try:
        content = Path(path).read_bytes() if data is None else data
    except FileNotFoundError as error:
        raise StoreError(f"there is no evidence file {path}", hint="check the path") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is not an evidence file: {error}") from error
    return unpacked(content, str(path))


def unpacked(data: bytes, name: str) -> Arrays:
    """All arrays of the bytes of an npz file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_archive(name, archive, len(data), ARRAYS_FLOOR)
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except EquipoiseError:
        raise
    except Exception as error:  # zip and npy parsers raise a dozen kinds for damaged bytes
        reason = str(error) or type(error).__name__
        raise StoreError(f"{name} is not an evidence file: {reason}", hint="run the command again") from error
    strange = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange:
        raise StoreError(f"{name} holds {strange[0]}, which is no array", hint="run the command again")
    return arrays


def plain_ids(ids: Ids) -> NDArray[Any]:
    """Ids as an array without Python objects, ready to be stored."""
    return ids.astype(str) if ids.dtype == object else ids


def restored_ids(ids: NDArray[Any]) -> Ids:
    """The inverse of ``plain_ids``: strings come back as Python strings."""
    return ids.astype(object) if ids.dtype.kind == "U" else ids


def as_ids(ids: Any, count: int) -> Ids:
    """Ids as given, or 0, 1, 2, ... where none were given."""
    if ids is None:
        return np.arange(count)
    array = np.asarray(ids)
    return array if array.dtype.kind in "iu" else np.asarray([str(each) for each in ids], dtype=object)
