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
from equipoise.errors import StoreError
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


def unpack(path: str | Path) -> Arrays:
    """All arrays of an npz file, or a sentence that says why it cannot be read."""
    try:
        # Opened here: numpy leaves its own handle open when the archive is damaged.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise StoreError(f"there is no evidence file {path}", hint="check the path") from error
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise StoreError(f"{path} is not an evidence file: {error}") from error


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
