"""Geometries: similarities order as distances, checks report rows, names have aliases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError, UnknownNameError
from equipoise.geometry import distances as functions
from equipoise.geometry.base import Geometry
from equipoise.geometry.spaces import GEOMETRIES, Cosine, Dot, Euclidean, Lorentz, Poincare, geometry

SPACES = [Cosine(), Dot(), Euclidean(), Poincare(), Poincare(0.3), Lorentz(), Lorentz(2.5)]


def sample_points(space: Geometry, rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    points = rng.standard_normal((count, dim))
    if not isinstance(space, Poincare | Lorentz):
        return points
    points *= 0.95 * rng.random((count, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    points /= np.sqrt(space.curvature)
    is_ball = isinstance(space, Poincare)
    return points if is_ball else functions.ball_to_hyperboloid(points, space.curvature)


@pytest.mark.parametrize("space", SPACES, ids=repr)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 8))
def test_similarity_decreases_with_distance(space: Geometry, seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    queries, corpus = sample_points(space, rng, 4, dim), sample_points(space, rng, 12, dim)
    space = space.fitted(corpus)
    scores = space.similarity(space.prepare_queries(queries), space.prepare_corpus(corpus))
    distances = space.distances(queries, corpus)
    farther = distances[:, :, None] > distances[:, None, :] + 1e-6
    assert farther.any() or dim == 1
    assert (scores[:, :, None] < scores[:, None, :])[farther].all()


def expected_similarity(space: Geometry, distances: np.ndarray) -> np.ndarray:
    """The similarity of each geometry as a function of the distance."""
    match space:
        case Cosine():
            return 1.0 - distances
        case Dot():
            return -distances
        case Euclidean():
            return -(distances**2)
        case Poincare():
            return 1.0 - np.cosh(np.sqrt(space.curvature) * distances)
        case Lorentz():
            return -np.cosh(np.sqrt(space.curvature) * distances) / space.curvature
    raise NotImplementedError(space)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_similarity_is_the_documented_function_of_the_distance(space: Geometry) -> None:
    rng = np.random.default_rng(0)
    queries, corpus = sample_points(space, rng, 5, 4), sample_points(space, rng, 6, 4)
    scores = space.similarity(space.prepare_queries(queries), space.prepare_corpus(corpus))
    np.testing.assert_allclose(
        scores, expected_similarity(space, space.distances(queries, corpus)), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("space", "keeps_float32"),
    [(Cosine(), True), (Dot(), True), (Euclidean(), True), (Poincare(), False), (Lorentz(), False)],
)
def test_float32_stays_float32_except_in_hyperbolic_space(space: Geometry, keeps_float32: bool) -> None:
    points = sample_points(space, np.random.default_rng(0), 5, 3).astype(np.float32)
    space = space.fitted(points)
    scores = space.similarity(space.prepare_queries(points), space.prepare_corpus(points))
    assert scores.dtype == (np.float32 if keeps_float32 else np.float64)


def test_euclidean_order_is_exact_far_from_the_origin_in_float32() -> None:
    corpus = (4096.0 + np.arange(64)[:, None] / 16.0).astype(np.float32) * np.ones((1, 2), np.float32)
    space = Euclidean().fitted(corpus)
    scores = space.similarity(space.prepare_queries(corpus[:1]), space.prepare_corpus(corpus))
    assert np.argsort(-scores[0]).tolist() == list(range(64))


def test_preparing_unit_rows_for_cosine_makes_no_copy() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 20))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    prepared = Cosine().prepare_corpus(rows)
    assert prepared.rows is rows
    assert prepared.scale is None


def test_zero_vectors_have_similarity_zero_and_are_reported() -> None:
    points = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    space = Cosine()
    scores = space.similarity(space.prepare_queries(points), space.prepare_corpus(points))
    assert scores[1].tolist() == [0.0, 0.0, 0.0]
    result = space.check(points)
    assert not result.ok
    assert result.usable
    assert result.rows.tolist() == [1]
    assert "1 of 3 points is a zero vector, which has no angle and gets similarity 0 (row 1)" in str(result)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_valid_points_pass(space: Geometry) -> None:
    result = space.check(sample_points(space, np.random.default_rng(0), 30, 3))
    assert result.ok
    assert result.rows.tolist() == []
    assert str(result) == f"all 30 points are valid {space.name} points"


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_nan_and_infinity_raise_not_finite_error_with_rows(space: Geometry) -> None:
    points = sample_points(space, np.random.default_rng(0), 9, 3)
    points[4, 1], points[7, 0] = np.nan, np.inf
    result = space.check(points)
    assert result.rows.tolist() == [4, 7]
    with pytest.raises(NotFiniteError, match=r"2.*9 points.*NaN.*4, 7\)"):
        result.require_usable("the corpus")


def test_points_on_or_outside_the_ball_are_reported_by_row() -> None:
    points = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    result = Poincare().check(points)
    assert result.rows.tolist() == [1, 3]
    with pytest.raises(InputError, match=r"2.*4 points.*1.*1, 3\)"):
        result.require_usable("the queries")
    assert Poincare(0.01).check(points).ok


def test_points_off_the_hyperboloid_are_reported_by_row() -> None:
    points = functions.ball_to_hyperboloid(np.random.default_rng(0).uniform(-0.5, 0.5, (6, 3)))
    points[2, 0] += 0.01
    points[5] *= -1.0
    result = Lorentz().check(points)
    assert result.rows.tolist() == [2, 5]
    with pytest.raises(InputError, match=r"2.*6 points"):
        result.require_usable("the corpus")


def test_float32_points_far_from_the_origin_of_the_hyperboloid_are_valid() -> None:
    radius = np.linspace(0.0, 12.0, 50)
    points = np.stack([np.cosh(radius), np.sinh(radius)], axis=1).astype(np.float32)
    assert Lorentz().check(points).ok


def test_check_does_not_modify_its_argument() -> None:
    points = np.array([[2.0, 0.0], [np.nan, 0.1]])
    before = points.copy()
    Poincare().check(points)
    np.testing.assert_array_equal(points, before)


def test_many_bad_rows_are_counted_and_the_first_are_shown() -> None:
    result = Poincare().check(np.full((1000, 2), 2.0))
    assert "1000 of 1000 points" in str(result)
    assert "(rows 0, 1, 2, 3, 4, ...)" in str(result)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cosine", Cosine),
        ("IP", Dot),
        ("inner product", Dot),
        ("inner_product", Dot),
        ("L2", Euclidean),
        ("hyperbolic_poincare", Poincare),
        ("hyperbolic-lorentz", Lorentz),
        ("Lorentz", Lorentz),
    ],
)
def test_names_and_aliases_are_parsed(name: str, kind: type[Geometry]) -> None:
    assert isinstance(geometry(name), kind)


def test_every_geometry_is_parsed_from_its_name() -> None:
    assert {name: geometry(name).name for name in GEOMETRIES} == {name: name for name in GEOMETRIES}


def test_geometry_objects_are_returned_unchanged() -> None:
    space = Poincare(0.5)
    assert geometry(space) is space


def test_misspelled_names_raise_errors_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        geometry("poincarre")
    assert "did you mean poincare" in error.value.hint
    with pytest.raises(UnknownNameError) as error:
        geometry("xyzzy")
    assert "cosine, dot, euclidean, poincare, lorentz" in error.value.hint


@pytest.mark.parametrize("kind", [Poincare, Lorentz])
@pytest.mark.parametrize("curvature", [0.0, -1.0, float("nan"), float("inf")])
def test_non_positive_curvatures_raise_parameter_error(kind: type, curvature: float) -> None:
    with pytest.raises(ParameterError):
        kind(curvature)


def test_poincare_norms_are_euclidean_and_hyperbolic_norms_equal_lorentz_norms() -> None:
    points = np.array([[0.5, 0.0], [0.0, 0.25]])
    assert Poincare().norm(points).tolist() == [0.5, 0.25]
    np.testing.assert_allclose(
        Poincare().hyperbolic_norm(points), Lorentz().norm(functions.ball_to_hyperboloid(points))
    )


def test_invalid_shapes_raise_shape_error() -> None:
    with pytest.raises(ShapeError) as error:
        Cosine().check(np.ones(3))
    assert "v[None, :]" in error.value.hint
    with pytest.raises(ShapeError):
        Cosine().check(np.ones((3, 0)))
    with pytest.raises(ShapeError):
        Cosine().check([[1.0, 2.0], [1.0]])
    with pytest.raises(ShapeError):
        Lorentz().check(np.ones((3, 1)))
    with pytest.raises(InputError):
        Cosine().check(np.array([["a", "b"]]))
