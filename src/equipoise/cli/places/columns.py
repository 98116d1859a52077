"""Columns named on the command line: an array file, or a column of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.cli.sources import ARRAYS
from equipoise.data.arrays import read_array, split_member
from equipoise.data.tables import read_table
from equipoise.errors import InputError, ParameterError


def read_column(word: str, option: str) -> NDArray[Any]:
    """One value a row: ``user.npy``, ``all.npz:user`` or ``units.csv:user``."""
    if split_member(word)[0].suffix.casefold() in ARRAYS:
        return read_array(word, ndim=1)
    path, colon, column = word.rpartition(":")
    if not colon or not path or not column:
        raise ParameterError(
            f"{option} {word} names neither an array file nor a column of a table",
            hint=f"write {option} user.npy or {option} units.csv:user",
        )
    values = [row[column] for row in read_table(path).require(column).rows]
    return np.array(values, dtype=object)


def read_codes(word: str, option: str) -> NDArray[Any]:
    """The same, where class codes are needed."""
    column = read_column(word, option)
    try:
        codes = column.astype(np.int64) if column.dtype == object else column
    except (TypeError, ValueError) as error:
        raise InputError(f"{word} holds a value that is no class code: {error}") from error
    if codes.dtype.kind not in "iu":
        raise InputError(
            f"{word} holds {codes.dtype} values, where class codes are needed", hint="save whole numbers"
        )
    return codes


def named_column(word: str, option: str) -> tuple[str, NDArray[Any]]:
    """``hour=hour.npy``: a name and a column."""
    name, equals, path = word.partition("=")
    if not equals or not name or not path:
        raise ParameterError(f"{option} {word} has no name", hint=f"write {option} hour=hour.npy")
    return name, read_column(path, option)
