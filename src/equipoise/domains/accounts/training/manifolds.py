"""Manifolds that training runs on, and initial points on them.

Hyperbolic training runs on the hyperboloid, time coordinate first, for both the Lorentz and the Poincare model:
the models are isometric, and the exponential map is exact and cheap there (Nickel and Kiela 2018).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from equipoise.types import Floats

MAX_STEP = 0.5
"""Upper limit of the length of one step, for any learning rate."""


class Manifold(Protocol):
    """The operations that training needs. Points are rows of an array."""

    is_hyperbolic: ClassVar[bool]
    max_norm: float
    """Largest norm of the coordinates (on the hyperboloid: without time)."""

    def distance_and_gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Distances d(x, y), and their gradients by x: unit tangent vectors at x that point away from y."""
        ...

    def exp_map(self, x: Floats, tangent: Floats) -> Floats:
        """Exponential map at x of these tangent vectors; steps are limited to ``MAX_STEP``, norms to ``max_norm``."""
        ...


class EuclideanManifold:
    """Euclidean space; ``radius`` is a bound far outside the range of useful points."""

    is_hyperbolic: ClassVar[bool] = False

    def __init__(self, radius: float = 1e6) -> None:
        self.max_norm = radius

    def distance_and_gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Euclidean distances; the gradient of two equal points is 0."""
        difference = x - y
        length = np.sqrt(np.einsum("...i,...i->...", difference, difference))
        return length, difference / np.maximum(length, 1e-12)[..., None]

    def exp_map(self, x: Floats, tangent: Floats) -> Floats:
        """Vector addition."""
        moved_points = x + _limit_steps(tangent, _norms(tangent))
        return _clip_norms(moved_points, self.max_norm)


class Hyperboloid:
    """Hyperbolic space of curvature -1; ``radius`` limits the distance from the origin.

    At radius 17 the time coordinate is 1e7, and the inner product of two points still has seven digits.
    """

    is_hyperbolic: ClassVar[bool] = True

    def __init__(self, radius: float = 17.0) -> None:
        self.max_norm = math.sinh(radius)

    @staticmethod
    def radius_in(dim: int) -> float:
        """The default radius: larger in two dimensions, where leaves need more room.

        The layout of a tree of 5,000 nodes and 14 levels has MAP 0.997 at radius 19 and 0.95 at 17; at 22 rounding of
        Lorentz coordinates lowers it to 0.96.
        """
        return 19.0 if dim == 2 else 17.0

    def distance_and_gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """arcosh of the negative Lorentz product; distances below 1e-6 are set to 1e-6."""
        product = x[..., 0] * y[..., 0] - np.einsum("...i,...i->...", x[..., 1:], y[..., 1:])
        product = np.maximum(product, 1.0 + 1e-12)
        sinh = np.sqrt(product * product - 1.0)
        return np.log(product + sinh), (product[..., None] * x - y) / sinh[..., None]

    def exp_map(self, x: Floats, tangent: Floats) -> Floats:
        """Move along the geodesic; the time coordinate is recomputed, so that errors do not accumulate."""
        square = np.einsum("...i,...i->...", tangent[..., 1:], tangent[..., 1:]) - tangent[..., 0] ** 2
        length = np.sqrt(np.maximum(square, 0.0))
        step = _limit_steps(tangent, length)
        length = np.minimum(length, MAX_STEP)
        ratio = np.where(length > 1e-8, np.sinh(length) / np.maximum(length, 1e-8), 1.0)
        return on_hyperboloid((np.cosh(length)[:, None] * x + ratio[:, None] * step)[:, 1:], self.max_norm)


def on_hyperboloid(coordinates: Floats, max_norm: float) -> Floats:
    """Points with these space coordinates, (n, dim) -> (n, dim + 1); norms are clipped to ``max_norm``."""
    coordinates = _clip_norms(coordinates, max_norm)
    time = np.sqrt(1.0 + np.einsum("...i,...i->...", coordinates, coordinates))
    return np.concatenate([time[:, None], coordinates], axis=1)


def _clip_norms(rows: Floats, max_norm: float) -> Floats:
    return rows * (max_norm / np.maximum(_norms(rows), max_norm))[:, None]


def _norms(rows: Floats) -> Floats:
    return np.sqrt(np.einsum("...i,...i->...", rows, rows))


def _limit_steps(tangent: Floats, length: Floats) -> Floats:
    return tangent * (MAX_STEP / np.maximum(length, MAX_STEP))[..., None]
