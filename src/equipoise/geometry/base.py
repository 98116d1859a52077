"""What every geometry can do, and the form in which a corpus waits for its queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise.geometry import functions
from equipoise.geometry.points import Points, as_points
from equipoise.geometry.validity import Fault, Validity
from equipoise.types import Bools, Floats, Ints

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Prepared:
    """A corpus ready for ``Geometry.similarity``: the right factor of the product, and a factor per point.

    The scale stands apart from the rows so that a large corpus need not be copied to be normalised.
    """

    rows: Points
    scale: Points | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> Prepared:
        return Prepared(self.rows[part], None if self.scale is None else self.scale[part])

    def folded(self, part: slice | Ints, out: Points) -> Prepared:
        """Some of the points with their scale multiplied into the rows, which takes the place of ``out``."""
        rows = self.rows[part]
        if self.scale is None:
            return Prepared(rows)
        return Prepared(np.multiply(rows, self.scale[part, None], out=out[: len(rows)]))


class Geometry(ABC):
    """A notion of nearness between points that are rows of numbers."""

    __slots__ = ()
    name: ClassVar[str]
    nearest: ClassVar[float] = 0.0
    """The surrogate of points that coincide, in standard arrangement; inner products have none and take 0."""

    @abstractmethod
    def distance(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """Distances over the last axis, broadcasting over the others; float64."""

    def distances(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The whole matrix of distances, for small inputs; ``search.nearest`` serves large ones."""
        return functions.pairwise(self.distance, as_points(x), as_points(y))

    def excess(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """What orders pairs as their distance does, to the last digit and without an arcosh.

        For points in standard arrangement it is ``nearest`` less the surrogate.
        """
        return self.distance(x, y)

    def standard(self, points: Points) -> tuple[Geometry, Floats]:
        """Points with the same order of distances, in float64, and the geometry to see them in.

        They are arranged so that ``excess`` and ``nearest`` less the surrogate agree to rounding.
        """
        return self, points.astype(np.float64, copy=False)

    def norm(self, points: ArrayLike) -> Floats:
        """How far out each point lies: the euclidean length, unless the class says otherwise."""
        return functions.norm(points)

    def check(self, points: ArrayLike) -> Validity:
        """Which points are invalid here, and why; an opinion, nothing is changed."""
        rows = as_points(points)
        finite = by_blocks(rows, _all_finite)
        found = () if finite.all() else (_not_finite(~finite),)
        return Validity(self.name, len(rows), found + self._faults(rows, finite))

    def fitted(self, corpus: Points) -> Geometry:
        """The same geometry, arranged to keep the most digits around this corpus."""
        return self

    def prepare_queries(self, points: Points) -> Points:
        """The left factor of the surrogate's matrix product."""
        return points

    def prepare_corpus(self, points: Points) -> Prepared:
        """The right factor of the surrogate's matrix product, with its scale."""
        return Prepared(points)

    def similarity(self, queries: Points, corpus: Prepared, out: Points | None = None) -> Points:
        """A block of surrogate scores, queries by corpus; higher is nearer."""
        scores: Points = np.matmul(queries, corpus.rows.T, out=out)
        if corpus.scale is not None:
            scores *= corpus.scale
        return scores

    def _faults(self, points: Points, finite: Bools) -> tuple[Fault, ...]:
        """What else can be wrong with the finite points."""
        return ()


def by_blocks(points: Points, test: Callable[[Points], Bools]) -> Bools:
    """A test of each row, a few rows at a time: temporaries stay small however large the corpus is."""
    verdict = np.empty(len(points), dtype=np.bool_)
    for rows in row_blocks(len(points)):
        verdict[rows] = test(points[rows])
    return verdict


def row_blocks(count: int) -> list[slice]:
    """Slices that cover ``count`` rows, a cache-friendly number at a time."""
    return [slice(start, min(start + _ROWS_AT_ONCE, count)) for start in range(0, count, _ROWS_AT_ONCE)]


def _all_finite(points: Points) -> Bools:
    return np.asarray(np.isfinite(points).all(axis=1))


def _not_finite(mask: Bools) -> Fault:
    remedy = "find where the embedder returned NaN or infinity; empty texts are a usual cause"
    return Fault(np.flatnonzero(mask), "hold NaN or infinity", remedy, finite=False)
