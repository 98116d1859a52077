"""Projections of points of any dimension to the disk."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.charts import MAX_DRAWN_RADIUS, project_to_disk
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.errors import ParameterError
from equipoise.geometry.distances import ball_to_hyperboloid, lorentz_norm
from equipoise.types import Floats


def ball_vectors(points: Floats) -> NodeVectors:
    names = tuple(map(str, range(len(points))))
    return NodeVectors(names, names, points, "poincare")


def test_two_dimensional_points_within_the_radius_are_unchanged() -> None:
    points = np.random.default_rng(0).uniform(-0.6, 0.6, (20, 2))
    projection = project_to_disk(ball_vectors(points))
    assert projection.kind == "disk"
    assert not projection.caption
    assert np.allclose(projection.points, points)


def test_ball_and_hyperboloid_have_the_same_projection() -> None:
    points = np.random.default_rng(1).uniform(-0.4, 0.4, (20, 4))
    names = tuple(map(str, range(20)))
    lorentz = NodeVectors(names, names, ball_to_hyperboloid(points), "lorentz")
    assert np.allclose(project_to_disk(ball_vectors(points)).points, project_to_disk(lorentz).points)


def test_more_dimensions_keep_the_distance_from_the_origin() -> None:
    points = np.random.default_rng(2).uniform(-0.4, 0.4, (20, 5))
    projection = project_to_disk(ball_vectors(points))
    assert "two principal components" in projection.caption
    assert np.allclose(np.linalg.norm(projection.points, axis=1), np.linalg.norm(points, axis=1))


def test_points_near_the_boundary_are_moved_inwards_with_a_caption() -> None:
    points = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1 - 1e-9]])
    projection = project_to_disk(ball_vectors(points))
    drawn_radii = lorentz_norm(ball_to_hyperboloid(projection.points))
    assert drawn_radii.max() == pytest.approx(MAX_DRAWN_RADIUS)
    assert "Distances from the origin are divided by" in projection.caption
    radii = lorentz_norm(ball_to_hyperboloid(points))
    assert drawn_radii[1] / drawn_radii[2] == pytest.approx(radii[1] / radii[2])


def test_euclidean_points_are_projected_to_the_plane() -> None:
    names = ("a", "b", "c")
    points = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    projection = project_to_disk(NodeVectors(names, names, points, "euclidean"))
    assert projection.kind == "plane"
    assert np.array_equal(projection.points, points)


def test_one_dimension_cannot_be_projected() -> None:
    with pytest.raises(ParameterError):
        project_to_disk(ball_vectors(np.zeros((3, 1))))
