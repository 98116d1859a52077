"""A corpus of vectors as files: found, and opened without being read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.data.arrays import read_array
from equipoise.data.text import PathLike, explain_unreadable, shown
from equipoise.errors import FormatError, InputError, ShapeError
from equipoise.geometry.filerows import FileRows
from equipoise.geometry.shards import Shard, Shards

STEPS = ".steps.npy"
"""Beside ``NAME.npy`` of int8 rows lies ``NAME.steps.npy``: the float32 step of each row."""


def open_shards(paths: PathLike | Sequence[PathLike]) -> Shards:
    """The shards of a corpus: an array file, a folder of .npy files in the order of their names, or several.

    Nothing is read but the heads of the files. int8 rows have their steps beside them, or stand for
    themselves.
    """
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [file for path in named for file in _files(path)]
    shards = [_opened(file) for file in files]
    scaled = {shard.steps is not None for shard in shards if shard.rows.dtype == np.int8}
    if len(scaled) > 1:
        bare = next(shard for shard in shards if shard.rows.dtype == np.int8 and shard.steps is None)
        raise InputError(
            f"{bare.name} holds int8 rows without steps, and other shards have them",
            hint=f"put {Path(bare.name).stem}{STEPS} beside it, or write the shards again",
        )
    return Shards.of(shards)


def _files(path: PathLike) -> list[Path]:
    place = Path(path)
    if not place.is_dir():
        return [place]
    try:
        found = sorted(
            file for file in place.iterdir() if file.suffix == ".npy" and not file.name.endswith(STEPS)
        )
    except OSError as error:
        raise explain_unreadable(place, error) from error
    if not found:
        raise InputError(f"{shown(place)} holds no .npy file", hint="name the folder that holds the shards")
    return found


def _opened(file: Path) -> Shard:
    rows = _rows(file)
    beside = file.with_name(f"{file.stem}{STEPS}")
    steps = _rows(beside) if rows.dtype == np.int8 and beside.exists() else None
    return Shard(rows, steps=steps, name=shown(file))


def _rows(file: Path) -> NDArray[Any] | FileRows:
    array = read_array(file, ndim=2)
    if array.dtype.kind not in "f" and array.dtype != np.int8:
        raise FormatError(
            f"{shown(file)} holds {array.dtype} values, where float or int8 vectors are needed",
            hint="save the vectors as float32",
        )
    if not array.shape[1]:
        raise ShapeError(f"{shown(file)} has shape {array.shape}: there is nothing in it")
    return (FileRows.of(array) if isinstance(array, np.memmap) else None) or array
