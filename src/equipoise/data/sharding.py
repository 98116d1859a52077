"""Vectors written as the shards of a corpus, each file whole or not there."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.data.atomic import write_array
from equipoise.data.shards import STEPS, open_shards
from equipoise.data.text import PathLike, shown
from equipoise.errors import ParameterError, PartialError, ShapeError, did_you_mean
from equipoise.geometry import as_points
from equipoise.geometry.shards import Shards

KINDS = ("float32", "int8")
ROWS = 250_000
_OURS = re.compile(r"(\d{5,})(?:\.steps)?\.npy")


def write_shards(
    folder: PathLike, blocks: Iterable[Any], *, rows: int = ROWS, kind: str = "float32"
) -> Shards:
    """Write vectors, which come in blocks of any size, as shards of so many rows, and open them.

    ``int8`` keeps whole numbers from -127 to 127 and each vector's own step. A shard appears when it is
    whole, and takes the place of an earlier one of its number. When the disk fills, the shards that are whole
    stay, and the error says how many they are.
    """
    if kind not in KINDS:
        raise ParameterError(
            f"shards cannot be kept as {kind!r}",
            hint=did_you_mean(kind, KINDS) or f"choose {' or '.join(KINDS)}",
        )
    if rows < 1:
        raise ParameterError(f"rows is {rows}; a shard has 1 or more")
    target = Path(folder)
    written: list[Path] = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for number, matrix in enumerate(_regrouped(blocks, rows)):
            file = target / f"{number:05}.npy"
            if kind == "int8":
                whole, steps = as_int8(matrix)
                write_array(target / f"{file.stem}{STEPS}", steps)
                write_array(file, whole)
            else:
                write_array(file, matrix)
            written.append(file)
        _remove_beyond(target, len(written))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror
        raise PartialError(
            f"{shown(target)} cannot take shard {len(written)}: {reason}",
            hint=f"shards before it ({len(written)}) are whole and stay; make room and write again",
        ) from error
    return open_shards(written)


def as_int8(vectors: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers from -127 to 127, and the step that makes a row of them a vector.

    >>> whole, steps = as_int8(np.array([[1.0, -0.5]]))
    >>> whole.tolist(), round(float(steps[0, 0]) * 127, 6)
    ([[127, -64]], 1.0)
    """
    rows = np.asarray(vectors, dtype=np.float32)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    steps = np.where(largest > 0, largest, np.float32(1)) / np.float32(127)
    return np.rint(rows / steps).astype(np.int8), steps.astype(np.float32)


def _remove_beyond(folder: Path, shards: int) -> None:
    """Remove what an earlier and larger corpus has left in the folder."""
    for file in folder.iterdir():
        ours = _OURS.fullmatch(file.name)
        if ours and int(ours[1]) >= shards:
            file.unlink()


def _regrouped(blocks: Iterable[Any], rows: int) -> Iterator[NDArray[np.float32]]:
    """The rows of all blocks, so many at a time."""
    held: list[NDArray[Any]] = []
    count = 0
    for block in blocks:
        left = as_points(block, "the vectors")
        if held and left.shape[1] != held[0].shape[1]:
            raise ShapeError(
                f"a block has {left.shape[1]} coordinates and the one before it has {held[0].shape[1]}",
                hint="embed all vectors with the same model",
            )
        while len(left):
            held.append(left[: rows - count])
            count, left = count + len(held[-1]), left[rows - count :]
            if count == rows:
                yield np.concatenate(held).astype(np.float32)
                held, count = [], 0
    if held:
        yield np.concatenate(held).astype(np.float32)
