"""Distances, compared with textbook formulas, with scipy and with the axioms of a metric."""

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


def ball_points(rng: np.random.Generator, count: int, dim: int, radius: float = 0.95) -> np.ndarray:
    directions = rng.standard_normal((count, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * radius * rng.random((count, 1))


def sample_points(name: str, rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    curvature = {"poincare, curvature 0.25": 0.25, "lorentz, curvature 4": 4.0}.get(name, 1.0)
    if name.startswith("poincare"):
        return ball_points(rng, count, dim) / math.sqrt(curvature)
    if name.startswith("lorentz"):
        return distances.ball_to_hyperboloid(ball_points(rng, count, dim) / math.sqrt(curvature), curvature)
    return rng.standard_normal((count, dim))


def textbook_poincare(x: np.ndarray, y: np.ndarray) -> float:
    gap_x, gap_y = 1 - sum(a * a for a in x), 1 - sum(b * b for b in y)
    return math.acosh(1 + 2 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (gap_x * gap_y))


def textbook_lorentz(x: np.ndarray, y: np.ndarray) -> float:
    return math.acosh(max(1.0, x[0] * y[0] - sum(a * b for a, b in zip(x[1:], y[1:], strict=True))))


@pytest.mark.parametrize("name", ["cosine", "euclidean"])
def test_euclidean_and_cosine_distances_agree_with_scipy(name: str) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((7, 5)), rng.standard_normal((9, 5))
    matrix = distances.pairwise(getattr(distances, name), x, y)
    np.testing.assert_allclose(matrix, cdist(x, y, name), rtol=1e-12, atol=1e-14)


def test_dot_distance_is_the_negative_inner_product() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((5, 4))
    np.testing.assert_allclose(distances.pairwise(distances.dot, x, y), -(x @ y.T), atol=1e-14)


@pytest.mark.parametrize(
    ("name", "textbook_distance"), [("poincare", textbook_poincare), ("lorentz", textbook_lorentz)]
)
def test_hyperbolic_distances_equal_the_textbook_formula(name: str, textbook_distance: object) -> None:
    rng = np.random.default_rng(3)
    points = sample_points(name, rng, 12, 3)
    expected = [[textbook_distance(x, y) for y in points] for x in points]  # type: ignore[operator]
    matrix = distances.pairwise(getattr(distances, name), points, points)
    # The textbook form loses half of the digits of a distance near zero.
    np.testing.assert_allclose(matrix, expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6))
def test_distances_satisfy_the_axioms_of_a_metric(name: str, seed: int, dim: int) -> None:
    points = sample_points(name, np.random.default_rng(seed), 6, dim)
    matrix = distances.pairwise(METRICS[name], points, points)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.diag(matrix), 0, atol=1e-9)
    path_lengths = matrix[:, :, None] + matrix[None, :, :]
    assert (matrix[:, None, :] <= path_lengths + 1e-7).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6), curvature=st.sampled_from([0.1, 1.0, 7.0]))
def test_ball_and_hyperboloid_are_isometric(seed: int, dim: int, curvature: float) -> None:
    points = ball_points(np.random.default_rng(seed), 6, dim) / math.sqrt(curvature)
    on_hyperboloid = distances.ball_to_hyperboloid(points, curvature)
    np.testing.assert_allclose(distances.lorentz_inner(on_hyperboloid, on_hyperboloid), -1 / curvature, rtol=1e-9)
    np.testing.assert_allclose(distances.hyperboloid_to_ball(on_hyperboloid, curvature), points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        distances.pairwise(partial(distances.lorentz, curvature=curvature), on_hyperboloid, on_hyperboloid),
        distances.pairwise(partial(distances.poincare, curvature=curvature), points, points),
        rtol=1e-7,
        atol=1e-7,
    )


def test_curvature_only_scales_distances() -> None:
    rng = np.random.default_rng(4)
    x, y = ball_points(rng, 5, 3), ball_points(rng, 5, 3)
    np.testing.assert_allclose(distances.poincare(x / 2, y / 2, 4.0), distances.poincare(x, y) / 2, rtol=1e-12)


@pytest.mark.parametrize("step", [1e-6, 1e-9, 1e-12])
def test_small_distances_are_accurate(step: float) -> None:
    angle = math.pi / 3
    rotated = [math.cos(angle + step), math.sin(angle + step)]
    # The rotated vector is itself rounded, by 1e-16 in each coordinate.
    expected = pytest.approx(step**2 / 2, rel=1e-3 if step > 1e-11 else 1e-2)
    assert float(distances.cosine([math.cos(angle), math.sin(angle)], rotated)) == expected
    assert float(distances.poincare([0.5], [0.5 + step])) == pytest.approx(2 * step / 0.75, rel=1e-3)
    on_hyperboloid = distances.ball_to_hyperboloid([[0.5, 0.0], [0.5, step]])
    assert float(distances.lorentz(on_hyperboloid[0], on_hyperboloid[1])) == pytest.approx(2 * step / 0.75, rel=1e-6)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-14])
def test_distances_near_the_boundary_are_the_logarithm_of_the_gap(gap: float) -> None:
    edge = 1.0 - gap
    expected = math.log1p(edge) - math.log(1.0 - edge)
    assert float(distances.poincare([0.0, 0.0], [edge, 0.0])) == pytest.approx(expected, rel=1e-12)
    assert float(distances.poincare_norm([edge, 0.0])) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("curvature", [0.5, 1.0, 3.0])
def test_hyperbolic_norms_are_distances_from_the_origin(curvature: float) -> None:
    points = ball_points(np.random.default_rng(5), 20, 4) / math.sqrt(curvature)
    on_hyperboloid = distances.ball_to_hyperboloid(points, curvature)
    origin = distances.ball_to_hyperboloid(np.zeros(4), curvature)
    from_origin = distances.lorentz(origin, on_hyperboloid, curvature)
    np.testing.assert_allclose(distances.lorentz_norm(on_hyperboloid, curvature), from_origin, rtol=1e-9)
    np.testing.assert_allclose(distances.poincare_norm(points, curvature), from_origin, rtol=1e-9)


def test_norms_of_vectors_with_overflowing_squares() -> None:
    rows = np.array([[3.0, 4.0], [3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0]])
    np.testing.assert_allclose(distances.norm(rows), [5.0, 5e200, 5e-200, 0.0], rtol=1e-15)


def test_zero_vectors_have_cosine_distance_one() -> None:
    zero, other = np.zeros(3), np.ones(3)
    assert distances.cosine(zero, [other, zero]).tolist() == [1.0, 1.0]
    assert distances.cosine([other, zero], zero).tolist() == [1.0, 1.0]


def exact_lorentz(x: np.ndarray, y: np.ndarray) -> float:
    """The distance of the points with these space coordinates, in decimal arithmetic of 60 digits."""
    with localcontext() as context:
        context.prec = 60
        a, b = ([Decimal(float(value)) for value in point[1:]] for point in (x, y))
        time_coordinates = [(1 + sum(value * value for value in point)).sqrt() for point in (a, b)]
        cosh = time_coordinates[0] * time_coordinates[1] - sum(
            first * second for first, second in zip(a, b, strict=True)
        )
        return float((cosh + (cosh * cosh - 1).sqrt()).ln())


@pytest.mark.parametrize(("radius", "tolerance"), [(1.0, 1e-14), (12.0, 1e-10), (19.0, 1e-7), (28.0, 1e-3)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_lorentz_distances_far_from_the_origin_are_accurate(radius: float, tolerance: float, scale: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        radii = radius - min(scale, 0.3 * radius) * rng.random(2)
        angles = rng.random() + np.array([0.0, scale * math.exp(-radius) * rng.exponential()])
        space = np.sinh(radii)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        first, second = np.column_stack([np.hypot(1.0, np.linalg.norm(space, axis=1)), space])
        assert float(distances.lorentz(first, second)) == pytest.approx(exact_lorentz(first, second), rel=tolerance)
