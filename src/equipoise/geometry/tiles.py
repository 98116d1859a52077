"""Scores of queries against a tile of vectors: a product that tells them nearly, and pairs that tell exactly.

A product of matrices rounds, and how it rounds a pair depends on where the pair stands in its blocks. So the
product only sorts out what is surely above a limit and what is surely below. The few in between are
scored pair by pair in float64. An answer then depends on the vectors alone: not on the tiles, the shards, the
threads or the library that multiplies; and equal vectors score equal wherever they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UndefinedError
from equipoise.geometry import functions
from equipoise.geometry.base import Geometry
from equipoise.geometry.names import geometry as geometry_of
from equipoise.geometry.points import Points, as_points
from equipoise.types import Floats, Ints

PLAIN = ("cosine", "dot", "euclidean")
"""The geometries that are searched in shards; hyperbolic points are few and are ranked among themselves."""

TILE = 1024
"""Vectors in a tile: its scores for a block of queries stay in the cache between two looks."""

_PIECE = 192
"""Coordinates that are multiplied at once: a sum of pieces rounds less than one long sum does."""

_PAIRS_AT_ONCE = 1 << 13
_LARGEST = {4: 1e36, 8: 1e300}
_SMALLEST = {4: 1e-38, 8: 1e-300}


@dataclass(frozen=True, slots=True)
class Tile:
    """A few vectors of a corpus: the right factor of the product, and what else their scores need."""

    rows: Points
    lengths: Floats
    right: Points
    squares: Points | None
    reach: float

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries as the product takes them, and as a pair is scored.

    ``product`` is the score plus ``shift`` of the query, up to ``slack``.
    """

    name: str
    left: Points
    points: Floats
    lengths: Floats
    shift: Floats
    origin: Floats

    @classmethod
    def of(
        cls, queries: ArrayLike, geometry: str | Geometry, dims: int, dtype: np.dtype[np.floating]
    ) -> Asked:
        """Checked queries for a corpus of so many dimensions, whose vectors are of this type."""
        space = geometry_of(geometry)
        if space.name not in PLAIN:
            raise ParameterError(
                f"shards are searched by {', '.join(PLAIN)}, not by {space.name}",
                hint="geometry.nearest takes every geometry, for vectors in memory",
            )
        rows = as_points(queries, "the queries")
        if rows.shape[1] != dims:
            raise ShapeError(
                f"the queries have {rows.shape[1]} coordinates and the corpus has {dims}",
                hint="embed both with the same model and the same truncation",
            )
        space.check(rows).require_usable("the queries")
        points = rows.astype(np.float64)
        origin = np.zeros(dims)
        if space.name == "cosine":
            lengths = functions.norm(points)
            points = np.divide(
                points, lengths[:, None], out=np.zeros_like(points), where=lengths[:, None] > 0.0
            )
        if space.name == "euclidean":
            origin = points.mean(axis=0) if len(points) else origin
        seen = points - origin
        lengths = functions.norm(seen)
        shift = lengths * lengths if space.name == "euclidean" else np.zeros(len(points))
        with np.errstate(over="ignore"):  # what overflows is refused with the first tile
            left = (2.0 * seen if space.name == "euclidean" else seen).astype(dtype)
        return cls(space.name, left, points, lengths, shift, origin)

    def __len__(self) -> int:
        return len(self.left)

    def block(self, part: slice) -> Asked:
        """Some of the queries."""
        return Asked(
            self.name, self.left[part], self.points[part], self.lengths[part], self.shift[part], self.origin
        )

    def tile(self, rows: Points, name: str, first: int) -> Tile:
        """Vectors made ready; one that holds no number is refused by the name of its shard and its row."""
        lengths = functions.norm(rows)
        if not np.isfinite(lengths).all():
            bad = int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise NotFiniteError(
                f"{name} holds NaN or infinity in vector {first + bad:,} of the corpus",
                hint="find where the embedder returned it; empty texts are a usual cause",
            )
        kind = self.left.dtype
        squares = None
        if self.name == "cosine":
            inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
            with np.errstate(over="ignore", under="ignore"):
                scale = inverse.astype(kind)
            # Vectors whose length leaves the range of their type still have a direction.
            ordinary = bool(((scale > 0.0) & np.isfinite(scale) | (lengths == 0.0)).all())
            right, reach = rows * (scale if ordinary else inverse)[:, None], 1.0
        elif self.name == "euclidean":
            seen = rows - self.origin
            square = functions.inner(seen, seen)
            right, squares, reach = seen, square.astype(kind), float(np.sqrt(square.max(initial=0.0)))
        else:
            right, reach = rows, float(lengths.max(initial=0.0))
        self._require_range(reach, kind.itemsize, name)
        return Tile(rows, lengths, right.astype(kind, copy=False), squares, reach)

    def product(self, tile: Tile, room: Points) -> Points:
        """Scores plus shift of all queries against the tile, nearly; ``room`` holds two such matrices."""
        near, piece = (each[: len(self), : len(tile)] for each in room)
        for start in range(0, self.left.shape[1], _PIECE):
            part = slice(start, start + _PIECE)
            np.matmul(self.left[:, part], tile.right[:, part].T, out=piece if start else near)
            if start:
                near += piece
        if tile.squares is not None:
            near -= tile.squares
        return near

    def room(self, most: int) -> Points:
        """Memory for the products of at most so many queries."""
        return np.empty((2, min(len(self), most), TILE), dtype=self.left.dtype)

    def slack(self, tile: Tile) -> Floats:
        """For each query, more than the product can be off; the scores of pairs round too, but far less."""
        kind, dims = self.left.dtype, self.left.shape[1]
        # Rounding of the pieces and their sum, of both factors and of the squares, half a unit each; and that
        # of the pair's own score. All are multiples of the lengths.
        steps = min(dims, _PIECE) + dims // _PIECE + 16
        units = steps * float(np.finfo(kind).eps) / 2.0 + (dims + 16) * float(np.finfo(np.float64).eps)
        size = self.lengths * tile.reach
        if self.name == "euclidean":
            size = (self.lengths + tile.reach) ** 2
        return units * size + dims * _SMALLEST[kind.itemsize]

    def scores(self, tile: Tile, queries: Ints, columns: Ints) -> Floats:
        """The score of each pair by itself: the cosine, the inner product, or minus the squared distance."""
        return self.pairs(queries, tile.rows, tile.lengths, columns)

    def pairs(self, queries: Ints, rows: Points, lengths: Floats, columns: Ints) -> Floats:
        """The same for rows that stand in no tile."""
        found = np.empty(len(queries))
        for start in range(0, len(queries), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            left = self.points.take(queries[part], axis=0)
            right = rows.take(columns[part], axis=0).astype(np.float64, copy=False)
            if self.name == "euclidean":
                difference = left - right
                found[part] = -functions.inner(difference, difference)
            else:
                found[part] = functions.inner(left, right)
        if self.name == "cosine":
            size = lengths.take(columns)
            np.divide(found, size, out=found, where=size > 0.0)
        return found

    def _require_range(self, reach: float, itemsize: int, name: str) -> None:
        most = (float(self.lengths.max(initial=0.0)) + reach) ** 2
        if not most < _LARGEST[itemsize]:
            raise UndefinedError(
                f"{name} holds vectors so long that their products leave the range of float{8 * itemsize}",
                hint="scale the vectors down, or compare them by cosine",
            )
