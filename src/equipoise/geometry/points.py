"""Points at the edge: whatever came in becomes a two-dimensional array of floats, or a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from equipoise.errors import InputError, ShapeError

Points = NDArray[np.floating[Any]]
"""One point a row, float32 or float64."""


def as_points(values: ArrayLike, subject: str = "the points", dtype: DTypeLike | None = None) -> Points:
    """One point a row, as float32 or float64; no copy where there is nothing to convert.

    Half precision widens to float32; integers, booleans and longer floats become float64.

    >>> as_points([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ShapeError(
            f"{subject} are rows of unequal length", hint="give each point as many numbers"
        ) from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{subject} are of type {array.dtype}, not numbers", hint="give an array of floats")
    if array.ndim != 2:
        raise ShapeError(
            f"{subject} have shape {array.shape}; a point a row makes two dimensions",
            hint="a single vector v becomes v[None, :]" if array.ndim == 1 else "",
        )
    if array.shape[1] == 0:
        raise ShapeError(
            f"{subject} have no coordinates: their shape is {array.shape}",
            hint="give one column a dimension, and one at least",
        )
    return array.astype(dtype or _float_type(array.dtype), copy=False)


def _float_type(dtype: np.dtype[Any]) -> DTypeLike:
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64
