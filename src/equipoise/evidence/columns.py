"""Guards at the edge: plain columns of numbers and ids, checked once and explained."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import as_ids
from equipoise.types import Floats, Ids


def column(values: Any, what: str, *, nan: bool = False) -> Floats:
    """One float64 number a unit, all finite; ``nan=True`` lets NaN stand for "undefined"."""
    try:
        numbers = np.asarray(host(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are not numbers: {error}") from error
    if numbers.ndim != 1:
        raise ShapeError(f"{what} have shape {numbers.shape}", hint="give one number a unit")
    bad = np.isinf(numbers) if nan else ~np.isfinite(numbers)
    if bad.any():
        first = int(np.argmax(bad))
        raise NotFiniteError(
            f"{what} hold {numbers[first]} at position {first} ({int(bad.sum())} such in all)",
            hint="drop these units or repair what produced them",
        )
    return numbers


def same_length(one: NDArray[Any], other: NDArray[Any], one_name: str, other_name: str) -> None:
    """Refuse columns of unequal length, naming both."""
    if len(one) != len(other):
        raise ShapeError(
            f"there are {len(one)} {one_name} and {len(other)} {other_name}", hint="give one of each a unit"
        )


def unique_ids(ids: Any, count: int, *, of: str = "unit") -> Ids:
    """One id for each unit or class, none of them twice; 0, 1, 2, ... where none are given."""
    names = as_ids(None if ids is None else host(ids), count)
    if len(names) != count:
        raise ShapeError(f"there are {len(names)} {of} ids for {count}", hint=f"give one id for each {of}")
    if ids is not None and len(set(names.tolist())) != count:
        distinct, times = np.unique(names, return_counts=True)
        twice = distinct[np.argmax(times)]
        raise DuplicateError(
            f"the {of} id {twice!s} appears {int(times.max())} times", hint="ids must be unique"
        )
    return names


def repeated(value: np.generic, count: int) -> NDArray[Any]:
    """A column that says the same of every unit; it takes no memory and cannot be written to.

    >>> repeated(np.int64(7), 3)
    array([7, 7, 7])
    """
    return np.ndarray(count, value.dtype, buffer=value.tobytes(), strides=(0,))


def host(values: Any) -> NDArray[Any]:
    """An array-like as a numpy array, fetched from the device where it lives on one."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return np.asarray(values)
    if hasattr(values, "detach"):  # torch refuses to export a tensor that still tracks gradients
        values = values.detach()
    if hasattr(values, "cpu"):
        values = values.cpu()
    return np.asarray(values)
