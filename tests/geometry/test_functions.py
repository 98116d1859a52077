"""Distances against textbook formulas written slowly, against scipy, and against the laws of a metric."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from equipoise.geometry import distances

METRICS = {
    "euclidean": distances.euclidean,
    "poincare": distances.poincare,
    "poincare, curvature 0.25": partial(distances.poincare, curvature=0.25),
    "lorentz": distances.lorentz,
    "lorentz, curvature 4": partial(distances.lorentz, curvature=4.0),
}


def ball(rng: np.random.Generator, count: int, dim: int, radius: float = 0.95) -> np.ndarray:
    directions = rng.standard_normal((count, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * radius * rng.random((count, 1))


def points_for(name: str, rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    curvature = {"poincare, curvature 0.25": 0.25, "lorentz, curvature 4": 4.0}.get(name, 1.0)
    if name.startswith("poincare"):
        return ball(rng, count, dim) / math.sqrt(curvature)
    if name.startswith("lorentz"):
        return distances.ball_to_hyperboloid(ball(rng, count, dim) / math.sqrt(curvature), curvature)
    return rng.standard_normal((count, dim))


def slow_poincare(x: np.ndarray, y: np.ndarray) -> float:
    gap_x, gap_y = 1 - sum(a * a for a in x), 1 - sum(b * b for b in y)
    return math.acosh(1 + 2 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (gap_x * gap_y))


def slow_lorentz(x: np.ndarray, y: np.ndarray) -> float:
    return math.acosh(max(1.0, x[0] * y[0] - sum(a * b for a, b in zip(x[1:], y[1:], strict=True))))


@pytest.mark.parametrize("name", ["cosine", "euclidean"])
def test_flat_distances_equal_those_of_scipy(name: str) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((7, 5)), rng.standard_normal((9, 5))
    ours = distances.pairwise(getattr(distances, name), x, y)
    np.testing.assert_allclose(ours, cdist(x, y, name), rtol=1e-12, atol=1e-14)


def test_dot_distance_is_the_negative_inner_product() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((5, 4))
    np.testing.assert_allclose(distances.pairwise(distances.dot, x, y), -(x @ y.T), atol=1e-14)


@pytest.mark.parametrize(("name", "slow"), [("poincare", slow_poincare), ("lorentz", slow_lorentz)])
def test_hyperbolic_distances_equal_the_textbook_formula(name: str, slow: object) -> None:
    rng = np.random.default_rng(3)
    points = points_for(name, rng, 12, 3)
    expected = [[slow(x, y) for y in points] for x in points]  # type: ignore[operator]
    ours = distances.pairwise(getattr(distances, name), points, points)
    # The textbook form loses half of the digits of a distance near zero.
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6))
def test_distances_obey_the_laws_of_a_metric(name: str, seed: int, dim: int) -> None:
    points = points_for(name, np.random.default_rng(seed), 6, dim)
    matrix = distances.pairwise(METRICS[name], points, points)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.diag(matrix), 0, atol=1e-9)
    detours = matrix[:, :, None] + matrix[None, :, :]
    assert (matrix[:, None, :] <= detours + 1e-7).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6), curvature=st.sampled_from([0.1, 1.0, 7.0]))
def test_ball_and_hyperboloid_are_isometric(seed: int, dim: int, curvature: float) -> None:
    points = ball(np.random.default_rng(seed), 6, dim) / math.sqrt(curvature)
    lifted = distances.ball_to_hyperboloid(points, curvature)
    np.testing.assert_allclose(distances.lorentz_inner(lifted, lifted), -1 / curvature, rtol=1e-9)
    np.testing.assert_allclose(distances.hyperboloid_to_ball(lifted, curvature), points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        distances.pairwise(partial(distances.lorentz, curvature=curvature), lifted, lifted),
        distances.pairwise(partial(distances.poincare, curvature=curvature), points, points),
        rtol=1e-7,
        atol=1e-7,
    )


def test_curvature_only_changes_the_unit_of_length() -> None:
    rng = np.random.default_rng(4)
    x, y = ball(rng, 5, 3), ball(rng, 5, 3)
    np.testing.assert_allclose(distances.poincare(x / 2, y / 2, 4.0), distances.poincare(x, y) / 2, rtol=1e-12)


@pytest.mark.parametrize("step", [1e-6, 1e-9, 1e-12])
def test_small_distances_keep_their_digits(step: float) -> None:
    angle = math.pi / 3
    turned = [math.cos(angle + step), math.sin(angle + step)]
    # The turned vector is itself rounded, by 1e-16 in each coordinate.
    wanted = pytest.approx(step**2 / 2, rel=1e-3 if step > 1e-11 else 1e-2)
    assert float(distances.cosine([math.cos(angle), math.sin(angle)], turned)) == wanted
    assert float(distances.poincare([0.5], [0.5 + step])) == pytest.approx(2 * step / 0.75, rel=1e-3)
    lifted = distances.ball_to_hyperboloid([[0.5, 0.0], [0.5, step]])
    assert float(distances.lorentz(lifted[0], lifted[1])) == pytest.approx(2 * step / 0.75, rel=1e-6)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-14])
def test_points_near_the_rim_are_far_from_the_origin_by_the_logarithm_of_the_gap(gap: float) -> None:
    edge = 1.0 - gap
    expected = math.log1p(edge) - math.log(1.0 - edge)
    assert float(distances.poincare([0.0, 0.0], [edge, 0.0])) == pytest.approx(expected, rel=1e-12)
    assert float(distances.poincare_norm([edge, 0.0])) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("curvature", [0.5, 1.0, 3.0])
def test_hyperbolic_norms_are_distances_from_the_origin(curvature: float) -> None:
    points = ball(np.random.default_rng(5), 20, 4) / math.sqrt(curvature)
    lifted = distances.ball_to_hyperboloid(points, curvature)
    origin = distances.ball_to_hyperboloid(np.zeros(4), curvature)
    from_origin = distances.lorentz(origin, lifted, curvature)
    np.testing.assert_allclose(distances.lorentz_norm(lifted, curvature), from_origin, rtol=1e-9)
    np.testing.assert_allclose(distances.poincare_norm(points, curvature), from_origin, rtol=1e-9)


def test_norm_survives_squares_outside_the_range_of_float64() -> None:
    rows = np.array([[3.0, 4.0], [3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0]])
    np.testing.assert_allclose(distances.norm(rows), [5.0, 5e200, 5e-200, 0.0], rtol=1e-15)


def test_a_zero_vector_is_at_cosine_distance_one_from_everything() -> None:
    zero, other = np.zeros(3), np.ones(3)
    assert distances.cosine(zero, [other, zero]).tolist() == [1.0, 1.0]
    assert distances.cosine([other, zero], zero).tolist() == [1.0, 1.0]


def exact_lorentz(x: np.ndarray, y: np.ndarray) -> float:
    """The distance of the points with these space coordinates, in decimal arithmetic of 60 digits."""
    with localcontext() as context:
        context.prec = 60
        a, b = ([Decimal(float(value)) for value in point[1:]] for point in (x, y))
        times = [(1 + sum(value * value for value in point)).sqrt() for point in (a, b)]
        cosh = times[0] * times[1] - sum(first * second for first, second in zip(a, b, strict=True))
        return float((cosh + (cosh * cosh - 1).sqrt()).ln())


@pytest.mark.parametrize(("radius", "tolerance"), [(1.0, 1e-14), (12.0, 1e-10), (19.0, 1e-7), (28.0, 1e-3)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_lorentz_distances_far_from_the_origin_keep_their_digits(radius: float, tolerance: float, scale: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        radii = radius - min(scale, 0.3 * radius) * rng.random(2)
        angles = rng.random() + np.array([0.0, scale * math.exp(-radius) * rng.exponential()])
        space = np.sinh(radii)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        first, second = np.column_stack([np.hypot(1.0, np.linalg.norm(space, axis=1)), space])
        assert float(distances.lorentz(first, second)) == pytest.approx(exact_lorentz(first, second), rel=tolerance)
