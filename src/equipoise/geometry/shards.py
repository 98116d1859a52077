"""A corpus in shards, each in memory or in a memory-mapped file: for corpora larger than memory."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import FormatError, InputError, ParameterError, PartialError, ShapeError, did_you_mean
from equipoise.geometry.base import PointArray, as_vectors
from equipoise.io.arrays import read_array
from equipoise.io.atomic import write_array
from equipoise.io.text import PathLike, display_path, read_error

if TYPE_CHECKING:
    from equipoise.types import Ints

# Rows of a matrix in a file, memory-mapped one window at a time; pages are released after use.


@dataclass(frozen=True, slots=True)
class MappedRows:
    """Rows ``start`` to ``stop`` of a matrix whose numbers begin at ``offset`` of a file, row after row."""

    path: str
    kind: str
    dims: int
    offset: int
    start: int
    stop: int

    @classmethod
    def of(cls, mapped: np.memmap[Any, Any]) -> MappedRows | None:
        """The rows of a memory-mapped matrix; None if they are not contiguous in a file."""
        if mapped.ndim != 2 or mapped.filename is None or not mapped.flags.c_contiguous:
            return None
        return cls(str(mapped.filename), mapped.dtype.str, mapped.shape[1], int(mapped.offset), 0, mapped.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers in the file."""
        return np.dtype(self.kind)

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, part: slice) -> MappedRows:
        """Some of the rows; nothing is read."""
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise InputError("rows of a file are taken one after another", hint="leave the step out")
        return replace(self, start=self.start + start, stop=self.start + max(start, stop))

    def read(self) -> NDArray[Any]:
        """The rows, in memory."""
        return np.array(self._mapped())

    def take(self, rows: Ints) -> NDArray[Any]:
        """Some rows by number, in memory."""
        return np.asarray(self._mapped()[rows])

    def _mapped(self) -> NDArray[Any]:
        if not len(self):
            return np.empty((0, self.dims), dtype=self.dtype)
        start = self.offset + self.start * self.dims * self.dtype.itemsize
        try:
            return np.memmap(self.path, self.dtype, "r", offset=start, shape=(len(self), self.dims))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it has become shorter"
            raise InputError(
                f"{self.path} can no longer be read: {reason}", hint="keep the shards while they are searched"
            ) from error


WINDOW_BYTES = 32 << 20
"""Bytes of a shard that are read at a time, as float32 or float64."""

SHARD_BYTES = 512 << 20
"""A larger file counts as several shards, so that threads and machines can share it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some vectors of a corpus, and the number that the first of them has in all of it.

    int8 rows are multiplied by one float32 step per row; without ``steps`` they are used unchanged.
    """

    rows: NDArray[Any] | MappedRows
    first: int = 0
    steps: NDArray[Any] | MappedRows | None = None
    name: str = "the corpus"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dims(self) -> int:
        """The number of coordinates of a vector."""
        return self.rows.dims if isinstance(self.rows, MappedRows) else int(self.rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the decoded vectors: float64 if they are stored as float64, else float32."""
        return np.dtype(np.float64 if self.rows.dtype == np.float64 else np.float32)

    def windows(self) -> Iterator[tuple[int, PointArray]]:
        """The vectors a few at a time, each window with the corpus number of its first vector."""
        size = max(1, WINDOW_BYTES // (self.dims * self.dtype.itemsize))
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            steps = None if self.steps is None else _read(self.steps[part])
            yield self.first + start, self._decoded(_read(self.rows[part]), steps)

    def take(self, rows: Ints) -> PointArray:
        """Some vectors by their number in the corpus."""
        local = rows - self.first
        steps = None if self.steps is None else _take_rows(self.steps, local)
        return self._decoded(_take_rows(self.rows, local), steps)

    def parts(self, rows: int) -> list[Shard]:
        """The same vectors in shards of at most this number."""
        return [
            Shard(
                self.rows[start : start + rows],
                self.first + start,
                None if self.steps is None else self.steps[start : start + rows],
                self.name,
            )
            for start in range(0, len(self), rows)
        ]

    def _decoded(self, rows: NDArray[Any], steps: NDArray[Any] | None) -> PointArray:
        vectors = rows.astype(self.dtype, copy=False)
        return vectors if steps is None else vectors * steps.astype(np.float32).reshape(-1, 1)


@dataclass(frozen=True, slots=True)
class Shards:
    """All shards of a corpus, in order."""

    parts: tuple[Shard, ...]

    @classmethod
    def of(cls, corpus: Any) -> Shards:
        """From one matrix, from several that follow one another, or from shards that know their vectors."""
        parts: Sequence[Any] = [corpus] if getattr(corpus, "ndim", 0) == 2 else list(corpus)
        shards, first = [], 0
        for number, part in enumerate(parts):
            shard = part if isinstance(part, Shard) else _in_memory(part, f"shard {number}")
            shards.append(Shard(shard.rows, first, shard.steps, shard.name))
            first += len(shard)
        return cls(tuple(_check_dims(shards)))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def dims(self) -> int:
        """The number of coordinates of a vector."""
        return self.parts[0].dims

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 if any shard is stored as float64, else float32."""
        return np.result_type(*(part.dtype for part in self.parts))

    def split(self, shard_bytes: int = SHARD_BYTES) -> Shards:
        """The same corpus in shards of at most this number of bytes as they are read."""
        rows = max(1, shard_bytes // (self.dims * self.dtype.itemsize))
        return Shards(tuple(part for shard in self.parts for part in shard.parts(rows)))

    def take(self, rows: Ints) -> PointArray:
        """Vectors by number, in the requested order; each shard is opened once."""
        firsts = np.array([shard.first for shard in self.parts])
        owner = np.searchsorted(firsts, rows, side="right") - 1
        vectors = np.empty((len(rows), self.dims), dtype=self.dtype)
        for number in np.unique(owner).tolist():
            positions = np.flatnonzero(owner == number)
            vectors[positions] = self.parts[number].take(rows[positions])
        return vectors


def _in_memory(rows: Any, name: str) -> Shard:
    array = np.asarray(rows)
    return Shard(array if array.dtype == np.int8 else as_vectors(array, name), name=name)


def _check_dims(shards: Iterable[Shard]) -> list[Shard]:
    shards_with_rows = [shard for shard in shards if len(shard)]
    if not shards_with_rows:
        raise InputError("the corpus has no vectors", hint="check that the shards were written")
    first = shards_with_rows[0]
    for shard in shards_with_rows:
        if shard.dims != first.dims:
            raise ShapeError(
                f"{shard.name} has {shard.dims} coordinates and {first.name} has {first.dims}",
                hint="embed all shards with the same model and the same truncation",
            )
        if shard.steps is not None and len(shard.steps) != len(shard):
            raise ShapeError(
                f"{shard.name} has {len(shard):,} vectors and {len(shard.steps):,} steps",
                hint="an int8 vector has one step; write the shard again",
            )
    return shards_with_rows


def _read(rows: NDArray[Any] | MappedRows) -> NDArray[Any]:
    return rows.read() if isinstance(rows, MappedRows) else rows


def _take_rows(rows: NDArray[Any] | MappedRows, positions: Ints) -> NDArray[Any]:
    return rows.take(positions) if isinstance(rows, MappedRows) else rows[positions]


# Discovery of the files of a corpus; they are opened without being read.

STEPS = ".steps.npy"
"""``NAME.steps.npy`` in the folder of ``NAME.npy`` (int8 rows): the float32 step of each row."""


def open_shards(paths: PathLike | Sequence[PathLike]) -> Shards:
    """Open the shards of a corpus. Only the headers of the files are read.

    Parameters
    ----------
    paths
        An array file, a folder of ``.npy`` files (in the order of their names), or several of them. The scales of int8
        rows are in a file next to them; without it the integers are used as they are.

    Returns
    -------
    Shards
        The memory-mapped corpus.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/part.npy", np.eye(3, dtype=np.float32))
    ...     len(open_shards(folder))
    3
    """
    sources = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [file for path in sources for file in _files(path)]
    shards = [_open_shard(file) for file in files]
    scaled = {shard.steps is not None for shard in shards if shard.rows.dtype == np.int8}
    if len(scaled) > 1:
        unscaled = next(shard for shard in shards if shard.rows.dtype == np.int8 and shard.steps is None)
        raise InputError(
            f"{unscaled.name} holds int8 rows without steps, and other shards have them",
            hint=f"put {Path(unscaled.name).stem}{STEPS} next to it, or write the shards again",
        )
    return Shards.of(shards)


def _files(path: PathLike) -> list[Path]:
    location = Path(path)
    if not location.is_dir():
        return [location]
    try:
        files = sorted(file for file in location.iterdir() if file.suffix == ".npy" and not file.name.endswith(STEPS))
    except OSError as error:
        raise read_error(location, error) from error
    if not files:
        raise InputError(f"{display_path(location)} holds no .npy file", hint="name the folder that holds the shards")
    return files


def _open_shard(file: Path) -> Shard:
    rows = _rows(file)
    steps_file = file.with_name(f"{file.stem}{STEPS}")
    steps = _rows(steps_file) if rows.dtype == np.int8 and steps_file.exists() else None
    return Shard(rows, steps=steps, name=display_path(file))


def _rows(file: Path) -> NDArray[Any] | MappedRows:
    array = read_array(file, ndim=2)
    if array.dtype.kind not in "f" and array.dtype != np.int8:
        raise FormatError(
            f"{display_path(file)} holds {array.dtype} values, where float or int8 vectors are needed",
            hint="save the vectors as float32",
        )
    if not array.shape[1]:
        raise ShapeError(f"{display_path(file)} has shape {array.shape}: there is nothing in it")
    return (MappedRows.of(array) if isinstance(array, np.memmap) else None) or array


# Writing the shards of a corpus; each file is written atomically.

SHARD_DTYPES = ("float32", "int8")
ROWS = 250_000
_OURS = re.compile(r"(\d{5,})(?:\.steps)?\.npy")


def write_shards(folder: PathLike, blocks: Iterable[Any], *, rows: int = ROWS, kind: str = "float32") -> Shards:
    """Write vectors, in blocks of any size, as shards of equal size, and open them.

    A shard file appears when it is complete, and replaces an older one with its number. If the disk is full, complete
    shards are kept, and the error gives their number.

    Parameters
    ----------
    folder
        Where the shards are written.
    blocks
        Arrays with one vector per row, as an embedding model yields them.
    rows
        Vectors per shard.
    kind
        ``float32``, or ``int8``: integers from -127 to 127 and one scale per vector.

    Returns
    -------
    Shards
        The memory-mapped corpus.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     corpus = write_shards(folder, [np.eye(3), np.eye(3)], rows=4)
    ...     len(corpus), len(corpus.parts)
    (6, 2)
    """
    if kind not in SHARD_DTYPES:
        raise ParameterError(
            f"shards cannot be stored as {kind!r}",
            hint=did_you_mean(kind, SHARD_DTYPES) or f"choose {' or '.join(SHARD_DTYPES)}",
        )
    if rows < 1:
        raise ParameterError(f"rows is {rows}; a shard has 1 or more")
    target = Path(folder)
    written: list[Path] = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for number, matrix in enumerate(_regroup(blocks, rows)):
            file = target / f"{number:05}.npy"
            if kind == "int8":
                quantized, steps = quantize_int8(matrix)
                write_array(target / f"{file.stem}{STEPS}", steps)
                write_array(file, quantized)
            else:
                write_array(file, matrix)
            written.append(file)
        _remove_beyond(target, len(written))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror
        raise PartialError(
            f"{display_path(target)} cannot take shard {len(written)}: {reason}",
            hint=f"the {len(written)} shards before it are complete; free disk space and write again",
        ) from error
    return open_shards(written)


def quantize_int8(vectors: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """The vectors quantised to integers from -127 to 127, and the step of each row."""
    rows = np.asarray(vectors, dtype=np.float32)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    steps = np.where(largest > 0, largest, np.float32(1)) / np.float32(127)
    return np.rint(rows / steps).astype(np.int8), steps.astype(np.float32)


def _remove_beyond(folder: Path, shards: int) -> None:
    """Remove the files of an earlier, larger corpus."""
    for file in folder.iterdir():
        match = _OURS.fullmatch(file.name)
        if match and int(match[1]) >= shards:
            file.unlink()


def _regroup(blocks: Iterable[Any], rows: int) -> Iterator[NDArray[np.float32]]:
    """The rows of all blocks, regrouped to blocks of this size."""
    pending: list[NDArray[Any]] = []
    count = 0
    for block in blocks:
        left = as_vectors(block, "the vectors")
        if pending and left.shape[1] != pending[0].shape[1]:
            raise ShapeError(
                f"a block has {left.shape[1]} coordinates and the one before it has {pending[0].shape[1]}",
                hint="embed all vectors with the same model",
            )
        while len(left):
            pending.append(left[: rows - count])
            count, left = count + len(pending[-1]), left[rows - count :]
            if count == rows:
                yield np.concatenate(pending).astype(np.float32)
                pending, count = [], 0
    if pending:
        yield np.concatenate(pending).astype(np.float32)
