"""Rows of ids of unequal length, laid out as one matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import ShapeError
from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class IdRows:
    """Rows of unequal length in one matrix; whatever lies beyond a row's length is filler."""

    cells: NDArray[Any]
    lengths: Ints
    largest: int = -1
    """The largest whole number among the cells; -1 where they are names."""

    @property
    def inside(self) -> Bools:
        """Which cells belong to a row."""
        return np.arange(self.cells.shape[1]) < self.lengths[:, None]


def id_rows(value: Any, what: str) -> IdRows:
    """A matrix of ids, or a sequence of rows; negative integers are filler, as faiss writes it."""
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iu":
        return _without_filler(value.astype(np.int64, copy=False))
    if isinstance(value, np.ndarray) and value.ndim != 2 and value.dtype != object:
        raise ShapeError(
            f"the {what} are an array of {value.ndim} dimension(s); 2 are needed", hint="one row a unit"
        )
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ShapeError(f"the {what} are a {type(value).__name__}, not rows of ids", hint="one row a unit")
    rows = [_row(row, unit, what) for unit, row in enumerate(value)]
    whole = all(row.dtype != object or len(row) == 0 for row in rows)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(lengths.max(initial=0))
    if whole:
        cells: NDArray[Any] = np.full((len(rows), width), -1, dtype=np.int64)
    else:
        cells = np.full((len(rows), width), "", dtype=object)
    for unit, row in enumerate(rows):
        cells[unit, : len(row)] = row if whole else row.astype(str)
    return _without_filler(cells) if whole else IdRows(cells, lengths)


def _without_filler(cells: Ints) -> IdRows:
    # Read as unsigned, a negative number is larger than any other: one look finds both filler and largest.
    largest = int(cells.view(np.uint64).max(initial=0))
    if largest < 1 << 63:
        return IdRows(cells, np.full(len(cells), cells.shape[1], dtype=np.int64), largest)
    kept = cells >= 0
    lengths = kept.sum(axis=1)
    if not (kept == (np.arange(cells.shape[1]) < lengths[:, None])).all():
        cells = np.take_along_axis(cells, np.argsort(~kept, axis=1, kind="stable"), axis=1)
    return IdRows(cells, lengths, int(cells.max(initial=0)))


def _row(row: Any, unit: int, what: str) -> NDArray[Any]:
    """One row of ids; whole numbers stay numbers, anything else is a name."""
    try:
        array = np.asarray(row)
    except ValueError:
        array = np.empty(())
    if array.ndim != 1:
        raise ShapeError(f"row {unit} of the {what} is not a list of ids", hint="one row of ids a unit")
    if array.dtype.kind in "iu" and (array.size == 0 or array.max() <= np.iinfo(np.int64).max):
        return array.astype(np.int64)
    return np.array([str(each) for each in row], dtype=object)


def gains_of(gains: Any, truth: IdRows) -> Floats:
    """The gains beside the relevant ids; 1 where none were given."""
    if gains is None:
        return np.ones(truth.cells.shape)
    return numbers_beside(gains, truth, "gains", "relevant ids")


def numbers_beside(values: Any, rows: IdRows, what: str, of: str) -> Floats:
    """Numbers that belong to the cells of ``rows``, in the same layout."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        matrix = values.astype(np.float64, copy=False)
    else:
        matrix = np.zeros(rows.cells.shape)
        for unit, row in enumerate(values):
            if unit >= len(matrix) or np.shape(row) != (rows.lengths[unit],):
                raise ShapeError(f"row {unit} of the {what} does not fit the {of}", hint="one number an id")
            matrix[unit, : len(row)] = row
    if matrix.shape != rows.cells.shape:
        raise ShapeError(
            f"the {what} have shape {matrix.shape}, the {of} {rows.cells.shape}", hint="one number an id"
        )
    return matrix
