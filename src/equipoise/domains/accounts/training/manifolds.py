"""The spaces that training walks in: distances, the direction away from another point, and a step along it.

Hyperbolic training walks on the hyperboloid, time coordinate first, whatever model the points are handed over
in: the models are isometric, and the exponential map is exact and cheap there (Nickel and Kiela 2018).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from equipoise.types import Floats

MAX_STEP = 0.5
"""No point moves farther than this in one step, whatever the rate."""


class Manifold(Protocol):
    """What training needs of a space. Points are rows; ``away`` gives tangent vectors of length one at x."""

    curved: ClassVar[bool]
    reach: float
    """The longest space part that a point may have."""

    def apart(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The distances, and the unit tangents at x that lead straight away from y."""
        ...

    def moved(self, x: Floats, tangent: Floats) -> Floats:
        """The points reached from x along these tangents, inside the radius."""
        ...


class EuclideanManifold:
    """Euclidean space, bounded by a radius far outside where anything useful lies."""

    curved: ClassVar[bool] = False

    def __init__(self, radius: float = 1e6) -> None:
        self.reach = radius

    def apart(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Straight distances; two points that coincide push each other nowhere."""
        difference = x - y
        length = np.sqrt(np.einsum("...i,...i->...", difference, difference))
        return length, difference / np.maximum(length, 1e-12)[..., None]

    def moved(self, x: Floats, tangent: Floats) -> Floats:
        """A straight step."""
        reached = x + _shortened(tangent, _lengths(tangent))
        return _within(reached, self.reach)


class Hyperboloid:
    """Hyperbolic space of curvature -1; no point goes farther from the origin than ``radius``.

    At 17 the time coordinate is 1e7, and the inner product of two points still has seven digits.
    """

    curved: ClassVar[bool] = True

    def __init__(self, radius: float = 17.0) -> None:
        self.reach = math.sinh(radius)

    def apart(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """arcosh of the inner product; points nearer than 1e-6 count as that near."""
        product = x[..., 0] * y[..., 0] - np.einsum("...i,...i->...", x[..., 1:], y[..., 1:])
        product = np.maximum(product, 1.0 + 1e-12)
        sine = np.sqrt(product * product - 1.0)
        return np.log(product + sine), (product[..., None] * x - y) / sine[..., None]

    def moved(self, x: Floats, tangent: Floats) -> Floats:
        """Along the geodesic; the time coordinate is then computed anew, so that no error piles up."""
        square = np.einsum("...i,...i->...", tangent[..., 1:], tangent[..., 1:]) - tangent[..., 0] ** 2
        length = np.sqrt(np.maximum(square, 0.0))
        step = _shortened(tangent, length)
        length = np.minimum(length, MAX_STEP)
        ratio = np.where(length > 1e-8, np.sinh(length) / np.maximum(length, 1e-8), 1.0)
        return on_hyperboloid((np.cosh(length)[:, None] * x + ratio[:, None] * step)[:, 1:], self.reach)


def on_hyperboloid(space: Floats, reach: float) -> Floats:
    """The points with these space coordinates; those longer than the reach are cut to it."""
    space = _within(space, reach)
    time = np.sqrt(1.0 + np.einsum("...i,...i->...", space, space))
    return np.concatenate([time[:, None], space], axis=1)


def _within(rows: Floats, reach: float) -> Floats:
    return rows * (reach / np.maximum(_lengths(rows), reach))[:, None]


def _lengths(rows: Floats) -> Floats:
    return np.sqrt(np.einsum("...i,...i->...", rows, rows))


def _shortened(tangent: Floats, length: Floats) -> Floats:
    return tangent * (MAX_STEP / np.maximum(length, MAX_STEP))[..., None]
