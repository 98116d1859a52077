"""The base class of geometries, validation of points, and the prepared form of a corpus."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import InputError, NotFiniteError, ShapeError
from equipoise.geometry import distances

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

# Conversion of input to a two-dimensional array of floats.

PointArray = NDArray[np.floating[Any]]
"""One point per row, float32 or float64."""


def as_vectors(values: ArrayLike, subject: str = "the points") -> PointArray:
    """One point per row, as float32 or float64; not copied unless converted.

    Half precision widens to float32; integers, booleans and longer floats become float64.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ShapeError(f"{subject} are rows of unequal length", hint="give all points equal length") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{subject} are of type {array.dtype}, not numbers", hint="give an array of floats")
    if array.ndim != 2:
        raise ShapeError(
            f"{subject} have shape {array.shape}; a matrix with one row per point is needed",
            hint="a single vector v becomes v[None, :]" if array.ndim == 1 else "",
        )
    if array.shape[1] == 0:
        raise ShapeError(
            f"{subject} have no coordinates: their shape is {array.shape}",
            hint="give one column per dimension, and one at least",
        )
    is_single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if is_single else np.float64, copy=False)


# Validity: which points are invalid, why, and whether they can be used.

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class InvalidRows:
    """One way in which points are invalid: the rows, and a phrase that follows their number.

    ``singular`` is the phrase for one row; by default "are" becomes "is".
    """

    rows: Ints
    predicate: str
    hint: str
    fatal: bool = True
    finite: bool = True
    singular: str = ""

    def __str__(self) -> str:
        singular = self.singular or self.predicate.replace("are ", "is ", 1)
        predicate = singular if len(self.rows) == 1 else self.predicate
        first = ", ".join(str(row) for row in self.rows[:_SHOWN])
        more = ", ..." if len(self.rows) > _SHOWN else ""
        return f"{predicate} (row{'s' if len(self.rows) > 1 else ''} {first}{more})"


@dataclass(frozen=True, slots=True)
class Validity:
    """The result of ``Geometry.check``: it lists all faults; no point is changed or dropped."""

    geometry: str
    points: int
    faults: tuple[InvalidRows, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    @property
    def usable(self) -> bool:
        """Whether similarity is defined for every point; zero vectors under cosine are unusual, but usable."""
        return not any(fault.fatal for fault in self.faults)

    @property
    def rows(self) -> Ints:
        """The rows with any fault, ascending."""
        rows = [fault.rows for fault in self.faults]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)

    def __str__(self) -> str:
        if self.ok:
            return f"all {self.points} points are valid {self.geometry} points"
        return "; ".join(map(self._sentence, self.faults))

    def _sentence(self, fault: InvalidRows) -> str:
        return f"{len(fault.rows)} of {self.points} point{'' if self.points == 1 else 's'} {fault}"

    def require_usable(self, subject: str) -> None:
        """Raise if similarity is undefined for some points; the message has their number and the first rows."""
        for fault in self.faults:
            if fault.fatal:
                kind = InputError if fault.finite else NotFiniteError
                raise kind(f"{subject}: {self._sentence(fault)}", hint=fault.hint)


def faults(*problems: tuple[Bools, str, str]) -> tuple[InvalidRows, ...]:
    """Fatal faults from masks over the rows; an empty mask is not a fault."""
    return tuple(InvalidRows(np.flatnonzero(mask), predicate, hint) for mask, predicate, hint in problems if mask.any())


_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class PreparedCorpus:
    """A corpus ready for ``Geometry.similarity``: the right factor of the product, and a factor per point.

    The scale is separate from the rows, so that a large corpus is not copied for normalisation.
    """

    rows: PointArray
    scale: PointArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> PreparedCorpus:
        return PreparedCorpus(self.rows[part], None if self.scale is None else self.scale[part])

    def folded(self, part: slice | Ints, out: PointArray) -> PreparedCorpus:
        """Some of the points with their scale multiplied into the rows, written to ``out``."""
        rows = self.rows[part]
        if self.scale is None:
            return PreparedCorpus(rows)
        return PreparedCorpus(np.multiply(rows, self.scale[part, None], out=out[: len(rows)]))


class Geometry(ABC):
    """A distance or similarity between points (rows of numbers)."""

    __slots__ = ()
    name: ClassVar[str]
    nearest: ClassVar[float] = 0.0
    """The surrogate of points that coincide, in standard arrangement; inner products have none and take 0."""

    @abstractmethod
    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """Distances over the last axis, broadcasting over the others; float64."""

    def distances(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The full matrix of distances, for small inputs; use ``search.nearest`` for large ones."""
        return distances.pairwise(self.distance, as_vectors(x), as_vectors(y))

    def excess(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """What orders pairs as their distance does, to the last digit and without an arcosh.

        For points in standard arrangement it is ``nearest`` less the surrogate.
        """
        return self.distance(x, y)

    def standard(self, points: PointArray) -> tuple[Geometry, Floats]:
        """Points with the same order of distances, in float64, and the geometry that they are in.

        They are arranged so that ``excess`` and ``nearest`` less the surrogate agree to rounding.
        """
        return self, points.astype(np.float64, copy=False)

    def norm(self, points: ArrayLike) -> Floats:
        """The norm of each point: the euclidean norm, unless the class overrides it."""
        return distances.norm(points)

    def check(self, points: ArrayLike) -> Validity:
        """Which points are invalid here, and why; no point is changed."""
        rows = as_vectors(points)
        finite = test_rows_in_blocks(rows, _all_finite)
        faults = () if finite.all() else (_not_finite(~finite),)
        return Validity(self.name, len(rows), faults + self._faults(rows, finite))

    def fitted(self, corpus: PointArray) -> Geometry:
        """The same geometry, arranged to keep the most digits around this corpus."""
        return self

    def prepare_queries(self, points: PointArray) -> PointArray:
        """The left factor of the surrogate's matrix product."""
        return points

    def prepare_corpus(self, points: PointArray) -> PreparedCorpus:
        """The right factor of the surrogate's matrix product, with its scale."""
        return PreparedCorpus(points)

    def similarity(self, queries: PointArray, corpus: PreparedCorpus, out: PointArray | None = None) -> PointArray:
        """A block of surrogate scores, queries by corpus; higher is nearer."""
        scores: PointArray = np.matmul(queries, corpus.rows.T, out=out)
        if corpus.scale is not None:
            scores *= corpus.scale
        return scores

    def _faults(self, points: PointArray, finite: Bools) -> tuple[InvalidRows, ...]:
        """The faults of finite points."""
        return ()


def test_rows_in_blocks(points: PointArray, test: Callable[[PointArray], Bools]) -> Bools:
    """Test each row, a few rows at a time, so that temporary arrays are small for any corpus."""
    verdict = np.empty(len(points), dtype=np.bool_)
    for rows in row_blocks(len(points)):
        verdict[rows] = test(points[rows])
    return verdict


def row_blocks(count: int) -> list[slice]:
    """Slices that cover ``count`` rows, a cache-friendly number at a time."""
    return [slice(start, min(start + _ROWS_AT_ONCE, count)) for start in range(0, count, _ROWS_AT_ONCE)]


def _all_finite(points: PointArray) -> Bools:
    return np.asarray(np.isfinite(points).all(axis=1))


def _not_finite(mask: Bools) -> InvalidRows:
    hint = "find where the embedder returned NaN or infinity; empty texts are a usual cause"
    return InvalidRows(
        np.flatnonzero(mask), "hold NaN or infinity", hint, finite=False, singular="holds NaN or infinity"
    )
