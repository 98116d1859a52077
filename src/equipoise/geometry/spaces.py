"""The five geometries: distance, validity of points, and a surrogate score for ranking.

The surrogate orders points exactly as the distance does, nearer is higher, and is one matrix product and at
most one scaling: no arcosh and no square root. Its value is named in each class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import ParameterError, ShapeError, UnknownNameError
from equipoise.geometry import distances
from equipoise.geometry.base import (
    Geometry,
    InvalidRows,
    PointArray,
    PreparedCorpus,
    faults,
    row_blocks,
    test_rows_in_blocks,
)

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats


@dataclass(frozen=True, slots=True)
class Cosine(Geometry):
    """Similarity by angle; the surrogate is the cosine. A zero vector has no angle: its similarity is 0."""

    name: ClassVar[str] = "cosine"
    nearest: ClassVar[float] = 1.0

    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.cosine(x, y)

    def standard(self, points: PointArray) -> tuple[Cosine, Floats]:
        rows = points.astype(np.float64, copy=False)
        return self, rows * _inverse_lengths(rows)[:, None]

    def prepare_queries(self, points: PointArray) -> PointArray:
        return points * _inverse_lengths(points)[:, None]

    def prepare_corpus(self, points: PointArray) -> PreparedCorpus:
        scale = _inverse_lengths(points)
        # Unit rows, as most embedders give them, deviate only by rounding; dividing would not help.
        already_unit = np.abs(scale - 1.0).max(initial=0.0) <= 4.0 * np.finfo(points.dtype).eps
        return PreparedCorpus(points, None if already_unit else scale)

    def _faults(self, points: PointArray, finite: Bools) -> tuple[InvalidRows, ...]:
        zero = finite & (_inverse_lengths(points) == 0.0)
        if not zero.any():
            return ()
        predicate = "are zero vectors, which have no angle and get similarity 0"
        singular = "is a zero vector, which has no angle and gets similarity 0"
        return (InvalidRows(np.flatnonzero(zero), predicate, "look for empty texts", fatal=False, singular=singular),)


@dataclass(frozen=True, slots=True)
class Dot(Geometry):
    """Similarity by inner product, which is also the surrogate; longer vectors are nearer to everything."""

    name: ClassVar[str] = "dot"

    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.dot(x, y)

    def standard(self, points: PointArray) -> tuple[Dot, Floats]:
        return self, _normalize_scale(points, float(np.abs(points).max(initial=0.0)))


@dataclass(frozen=True, slots=True)
class Euclidean(Geometry):
    """Similarity by Euclidean distance; the surrogate is minus its square.

    The square is expanded into a matrix product, which loses digits far from zero; ``fitted`` moves the
    origin into the corpus, which does not change distances.
    """

    name: ClassVar[str] = "euclidean"
    origin: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.euclidean(x, y)

    def excess(self, x: ArrayLike, y: ArrayLike) -> Floats:
        difference = np.subtract(x, y, dtype=np.float64)
        return distances.inner(difference, difference)

    def standard(self, points: PointArray) -> tuple[Euclidean, Floats]:
        spread = np.ptp(points.astype(np.float64, copy=False), axis=0) if len(points) else np.zeros(1)
        rows = _normalize_scale(points, float(spread.max()))
        return self.fitted(rows), rows

    def fitted(self, corpus: PointArray) -> Euclidean:
        return Euclidean(_round_middle(corpus)) if len(corpus) else self

    def prepare_queries(self, points: PointArray) -> PointArray:
        return _left_of_square(points, self.origin)

    def prepare_corpus(self, points: PointArray) -> PreparedCorpus:
        return PreparedCorpus(_right_of_square(points, self.origin))


@dataclass(frozen=True, slots=True)
class Poincare(Geometry):
    """Hyperbolic similarity in a ball of radius ``1/sqrt(curvature)``; the surrogate is ``1 - cosh(distance)``.

    ``norm`` is the euclidean length in the ball, which is what the hyperbolic-embedding papers correlate with
    depth; ``hyperbolic_norm`` is the distance from the origin, which has the same order. The surrogate is
    computed in float64 and resolves ``cosh(distance)`` to about ``1e-16 / (1 - |x|)^2``.
    """

    name: ClassVar[str] = "poincare"
    curvature: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self.curvature)

    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.poincare(x, y, self.curvature)

    def excess(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.poincare_cosh_minus_one(
            *(_scale_to_unit_curvature(points, self.curvature) for points in (x, y))
        )

    def standard(self, points: PointArray) -> tuple[Poincare, Floats]:
        return Poincare(), _scale_to_unit_curvature(points, self.curvature)

    def hyperbolic_norm(self, points: ArrayLike) -> Floats:
        """The hyperbolic distance from the origin."""
        return distances.poincare_norm(points, self.curvature)

    def prepare_queries(self, points: PointArray) -> PointArray:
        scaled = self._scaled(points)
        return _left_of_square(scaled) * (2.0 / _gaps(scaled))[:, None]

    def prepare_corpus(self, points: PointArray) -> PreparedCorpus:
        scaled = self._scaled(points)
        return PreparedCorpus(_right_of_square(scaled) / _gaps(scaled)[:, None])

    def _scaled(self, points: PointArray) -> Floats:
        return _scale_to_unit_curvature(points, self.curvature)

    def _faults(self, points: PointArray, finite: Bools) -> tuple[InvalidRows, ...]:
        outside = finite & test_rows_in_blocks(points, lambda block: distances.norm(self._scaled(block)) >= 1.0)
        predicate = f"are on or outside the ball of radius {self.curvature**-0.5:g}"
        hint = "points of the hyperboloid need geometry=lorentz; float32 rounds the last points onto the rim"
        return faults((outside, predicate, hint))


@dataclass(frozen=True, slots=True)
class Lorentz(Geometry):
    """Hyperbolic similarity on the hyperboloid, time coordinate first; the surrogate is ``<x, y>_L``.

    A point of dimension d has d + 1 coordinates, and ``norm`` is its distance from the origin. The surrogate
    is ``-cosh(distance)`` for curvature 1 and is computed in float64.
    """

    name: ClassVar[str] = "lorentz"
    nearest: ClassVar[float] = -1.0
    curvature: float = 1.0
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        _require_positive(self.curvature)

    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.lorentz(x, y, self.curvature)

    def excess(self, x: ArrayLike, y: ArrayLike) -> Floats:
        return distances.lorentz_cosh_minus_one(
            *(_scale_to_unit_curvature(points, self.curvature) for points in (x, y))
        )

    def standard(self, points: PointArray) -> tuple[Lorentz, Floats]:
        rows = np.array(_scale_to_unit_curvature(points, self.curvature))
        # The space part determines the point; a time that was rounded with it would move it off the hyperboloid.
        rows[:, 0] = np.hypot(1.0, distances.norm(rows[:, 1:]))
        return Lorentz(), rows

    def norm(self, points: ArrayLike) -> Floats:
        return distances.lorentz_norm(points, self.curvature)

    def prepare_queries(self, points: PointArray) -> PointArray:
        rows = points.astype(np.float64)
        rows[:, 0] *= -1.0
        return rows

    def prepare_corpus(self, points: PointArray) -> PreparedCorpus:
        return PreparedCorpus(points.astype(np.float64, copy=False))

    def _faults(self, points: PointArray, finite: Bools) -> tuple[InvalidRows, ...]:
        if points.shape[1] < 2:
            raise ShapeError(
                "a lorentz point needs two coordinates or more, and these have one",
                hint="the time coordinate comes first, then as many as the space has dimensions",
            )
        off = finite & test_rows_in_blocks(points, self._off)
        predicate = f"are not on the hyperboloid <x, x> = {-1.0 / self.curvature:g} with time first and positive"
        hint = "points of the ball need geometry=poincare; check the curvature and the position of the time coordinate"
        return faults((off, predicate, hint))

    def _off(self, points: PointArray) -> Bools:
        rows = points.astype(np.float64)
        square = self.curvature * distances.lorentz_inner(rows, rows)
        # The two parts of the square are large and cancel, so the error to expect grows with the time.
        allowed = self.tolerance * (1.0 + self.curvature * rows[:, 0] ** 2)
        return (np.abs(square + 1.0) > allowed) | (rows[:, 0] <= 0.0)


def _normalize_scale(points: PointArray, size: float) -> Floats:
    """The points in float64, scaled so that ``size`` becomes about 1.

    Scaling by a power of two is exact, and prevents overflow and underflow of the squares.
    """
    rows = points.astype(np.float64, copy=False)
    return np.ldexp(rows, -np.frexp(size)[1]) if size > 0.0 else rows


def _scale_to_unit_curvature(points: ArrayLike, curvature: float) -> Floats:
    """The corresponding points in the space of curvature 1."""
    rows = np.asarray(points, dtype=np.float64)
    return rows if curvature == 1.0 else rows * math.sqrt(curvature)


def _inverse_lengths(points: PointArray) -> PointArray:
    """One over the length of each row, 0 for rows too short to have a direction in their dtype."""
    inverse = np.zeros(len(points), dtype=points.dtype)
    for rows in row_blocks(len(points)):
        length = distances.norm(points[rows])
        inverse[rows] = np.divide(1.0, length, out=np.zeros_like(length), where=length >= np.finfo(points.dtype).tiny)
    return inverse


def _round_middle(points: PointArray) -> tuple[float, ...]:
    """A point near the centre of the data, rounded so that subtracting it keeps integers exact.

    Subtracting the mean would round every coordinate and break ties between equidistant points.
    """
    low, high = points.min(axis=0).astype(np.float64), points.max(axis=0).astype(np.float64)
    spread = high - low
    unit = np.exp2(np.ceil(np.log2(np.where(spread > 0.0, spread, 1.0))) - 2.0)
    middle = np.round((low + 0.5 * spread) / unit) * unit
    return tuple(np.where(spread > 0.0, middle, low).tolist())


def _left_of_square(points: PointArray, origin: tuple[float, ...] = ()) -> PointArray:
    """``[2x, -1, -|x|^2]``: its product with the right of y is ``-|x - y|^2``."""
    rows = _right_of_square(points, origin)
    dim = points.shape[1]
    rows[:, dim + 1] = -rows[:, dim]
    rows[:, dim] = -1.0
    rows[:, :dim] *= 2.0
    return rows


def _right_of_square(points: PointArray, origin: tuple[float, ...] = ()) -> PointArray:
    """``[y, |y|^2, 1]`` of the points relative to the origin; computed in float64, stored in their dtype."""
    count, dim = points.shape
    rows = np.ones((count, dim + 2), dtype=points.dtype)
    centre = np.asarray(origin or (0.0,) * dim)
    for part in row_blocks(count):
        rows[part, :dim] = points[part] - centre
        # The squares are those of the rounded rows, so that a point keeps distance 0 from itself.
        rows[part, dim] = distances.inner(rows[part, :dim], rows[part, :dim])
    return rows


def _gaps(points: Floats) -> Floats:
    """``1 - |x|^2`` of each row."""
    length = distances.norm(points)
    return (1.0 - length) * (1.0 + length)


def _require_positive(curvature: float) -> None:
    if not (math.isfinite(curvature) and curvature > 0.0):
        raise ParameterError(
            f"a curvature of {curvature} makes no hyperbolic space",
            hint="give the magnitude: curvature=1.0 is the space of sectional curvature -1",
        )


# Geometries by name, with aliases.

GEOMETRIES: dict[str, type[Geometry]] = {space.name: space for space in (Cosine, Dot, Euclidean, Poincare, Lorentz)}

ALIASES: dict[str, str] = {
    "cos": "cosine",
    "cosine_similarity": "cosine",
    "angular": "cosine",
    "dot_product": "dot",
    "inner_product": "dot",
    "inner": "dot",
    "ip": "dot",
    "mips": "dot",
    "l2": "euclidean",
    "euclid": "euclidean",
    "flat": "euclidean",
    "poincare_ball": "poincare",
    "hyperbolic_poincare": "poincare",
    "poincaré": "poincare",
    "hyperboloid": "lorentz",
    "hyperbolic_lorentz": "lorentz",
    "lorentzian": "lorentz",
}


def geometry(name: str | Geometry) -> Geometry:
    """The geometry of a name or an alias, with curvature 1; a geometry is returned as it is.

    Case, hyphens and spaces do not matter.
    """
    if isinstance(name, Geometry):
        return name
    folded = str(name).strip().casefold().replace("-", "_").replace(" ", "_")
    space = GEOMETRIES.get(ALIASES.get(folded, folded))
    if space is None:
        raise UnknownNameError.of(
            "geometry", str(name), [*GEOMETRIES, *ALIASES], more=f"known: {', '.join(GEOMETRIES)}"
        )
    return space()
