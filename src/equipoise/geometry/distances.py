"""Distances, norms and conversions as pure functions over the last axis, in float64.

Every distance broadcasts: ``(d,)`` against ``(m, d)`` gives ``(m,)``. Hyperbolic spaces have sectional
curvature ``-curvature``: the ball has radius ``1/sqrt(curvature)``, and a point of the hyperboloid has
``<x, x>_L = -1/curvature``, time coordinate first. The formulas are arranged so that small distances keep
their digits; they assume points that the geometry's ``check`` accepts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from equipoise.types import Floats

Distance = Callable[[Floats, Floats], Floats]
_SMALL, _LARGE = 1e-280, 1e280


def cosine(x: ArrayLike, y: ArrayLike) -> Floats:
    """One minus the cosine of the angle; in [0, 2]. A zero vector has no angle: its distance is 1."""
    a, b = _unit(_floats(x)), _unit(_floats(y))
    # Half the squared chord is 1 - cos without a subtraction, in which small angles would lose their digits.
    half_chord = 0.5 * _squared_norms(a - b)
    without_angle = ~(a.any(axis=-1) & b.any(axis=-1))
    return np.where(without_angle, 1.0, half_chord)


def dot(x: ArrayLike, y: ArrayLike) -> Floats:
    """The negative inner product: an order by similarity, not a metric."""
    return -inner(x, y)


def euclidean(x: ArrayLike, y: ArrayLike) -> Floats:
    """The length of the difference."""
    return np.sqrt(_squared_norms(_floats(x) - _floats(y)))


def poincare(x: ArrayLike, y: ArrayLike, curvature: float = 1.0) -> Floats:
    """``arcosh(1 + 2|x-y|^2 / ((1-|x|^2)(1-|y|^2)))`` in the unit ball, scaled for other curvatures."""
    root = math.sqrt(curvature)
    return arcosh1p(poincare_cosh_minus_one(root * _floats(x), root * _floats(y))) / root


def lorentz(x: ArrayLike, y: ArrayLike, curvature: float = 1.0) -> Floats:
    """``arcosh(-<x, y>_L)`` on the unit hyperboloid, scaled for other curvatures; time coordinate first."""
    root = math.sqrt(curvature)
    return arcosh1p(lorentz_cosh_minus_one(root * _floats(x), root * _floats(y))) / root


def poincare_cosh_minus_one(x: ArrayLike, y: ArrayLike) -> Floats:
    """``cosh(distance) - 1`` in the unit ball: what the distance is the arcosh of, less 1."""
    a, b = _floats(x), _floats(y)
    return np.asarray(2.0 * _squared_norms(a - b) / (_gap(a) * _gap(b)))


def lorentz_cosh_minus_one(x: ArrayLike, y: ArrayLike) -> Floats:
    """``cosh(distance) - 1`` on the unit hyperboloid, never below 0."""
    # Contiguous copies: the order of summation, and so the last digit, depends on the strides.
    a, b = (np.array(side[..., 1:], order="C") for side in np.broadcast_arrays(_floats(x), _floats(y)))
    difference, total = a - b, a + b
    radius_a, radius_b = norm(a), norm(b)
    time_a, time_b = np.hypot(1.0, radius_a), np.hypot(1.0, radius_b)
    # With the distances r and s from the origin, cosh(d) - 1 = (cosh(r - s) - 1) + sinh(r) sinh(s) (1 - cos(angle)).
    # The product of the coordinates loses all digits at radius 19; both of these terms are computed without
    # cancellation. Radial: time - radius = 1 / (time + radius).
    radii, times = radius_a + radius_b, time_a + time_b
    along = inner(difference, total)
    excess = 1.0 / (time_a + radius_a) + 1.0 / (time_b + radius_b)
    radial = 0.5 * (_quotient(along, radii) / times) ** 2 * excess * (times + radii)
    # Lateral, |a| |b| - a.b: from the part of a - b that is perpendicular to a + b if the norms are similar, since it
    # keeps the digits of small distances, and otherwise from the chord of the unit vectors.
    norms, product, square = radius_a * radius_b, inner(a, b), _squared_norms(total)
    across = _squared_norms(difference - total * _quotient(along, square)[..., None])
    chord = _squared_norms(_quotient(a, radius_a[..., None]) - _quotient(b, radius_b[..., None]))
    is_similar = (radius_a < 2.0 * radius_b) & (radius_b < 2.0 * radius_a) & (product > 0.0)
    lateral = np.where(is_similar, 0.25 * across * _quotient(square, norms + product), 0.5 * norms * chord)
    return np.asarray(radial + lateral)


def _quotient(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0.0)


def pairwise(distance: Distance, x: ArrayLike, y: ArrayLike) -> Floats:
    """All distances between the rows of two small sets; one row at a time, so that no (n, m, d) array exists."""
    rows, columns = _floats(x), _floats(y)
    matrix = np.empty((len(rows), len(columns)))
    for index, row in enumerate(rows):
        matrix[index] = distance(row, columns)
    return matrix


def inner(x: ArrayLike, y: ArrayLike) -> Floats:
    """The inner product over the last axis."""
    return np.asarray(np.einsum("...i,...i->...", _floats(x), _floats(y)), dtype=np.float64)


def lorentz_inner(x: ArrayLike, y: ArrayLike) -> Floats:
    """``-x0 y0 + x1 y1 + ... + xd yd``."""
    a, b = _floats(x), _floats(y)
    return inner(a[..., 1:], b[..., 1:]) - a[..., 0] * b[..., 0]


def norm(x: ArrayLike) -> Floats:
    """The euclidean length, also of rows whose squares leave the range of float64."""
    rows = _floats(x)
    with np.errstate(over="ignore", under="ignore"):
        squares = _squared_norms(rows)
    # NaN fails both comparisons: the plain formula is used.
    extreme = (squares > _LARGE) | (squares < _SMALL)
    if not extreme.any():
        return np.sqrt(squares)
    extreme &= rows.any(axis=-1)
    # A power of two near the largest coordinate: dividing by it rounds nothing.
    power = np.frexp(np.max(np.abs(rows), axis=-1, initial=0.0))[1]
    scale = np.where(extreme, np.ldexp(1.0, np.clip(power, -1021, 1023)), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(scale * np.sqrt(_squared_norms(rows / scale[..., None])))


def poincare_norm(x: ArrayLike, curvature: float = 1.0) -> Floats:
    """The hyperbolic distance of a ball point from the origin: ``2 artanh(|x|)`` in the unit ball."""
    root = math.sqrt(curvature)
    return 2.0 * np.arctanh(root * norm(x)) / root


def lorentz_norm(x: ArrayLike, curvature: float = 1.0) -> Floats:
    """The hyperbolic distance of a hyperboloid point from the origin (1, 0, ..., 0)."""
    root = math.sqrt(curvature)
    # asinh of the space part, not arcosh of the time: near the origin the time rounds to 1.
    return np.arcsinh(root * norm(_floats(x)[..., 1:])) / root


def ball_to_hyperboloid(x: ArrayLike, curvature: float = 1.0) -> Floats:
    """The point of the hyperboloid that corresponds to a point of the ball; one coordinate more, time first."""
    root = math.sqrt(curvature)
    scaled = root * _floats(x)
    space = 2.0 * scaled / _gap(scaled)[..., None]
    time = np.sqrt(1.0 + _squared_norms(space))
    return np.concatenate([time[..., None], space], axis=-1) / root


def hyperboloid_to_ball(x: ArrayLike, curvature: float = 1.0) -> Floats:
    """The point of the ball that corresponds to a point of the hyperboloid; the inverse of the above."""
    root = math.sqrt(curvature)
    scaled = root * _floats(x)
    return scaled[..., 1:] / (1.0 + scaled[..., :1]) / root


def arcosh1p(excess: ArrayLike) -> Floats:
    """``arcosh(1 + excess)``, exact also where 1 + excess would round to 1."""
    z = _floats(excess)
    return np.log1p(z + np.sqrt(z * (z + 2.0)))


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _squared_norms(x: Floats) -> Floats:
    return inner(x, x)


def _gap(x: Floats) -> Floats:
    """``1 - |x|^2`` as a product, which keeps the digits of points near the boundary."""
    length = norm(x)
    return np.asarray((1.0 - length) * (1.0 + length))


def _unit(x: Floats) -> Floats:
    """Rows of length one; zero rows stay zero."""
    length = norm(x)[..., None]
    return np.divide(x, length, out=np.zeros_like(x), where=length != 0.0)
