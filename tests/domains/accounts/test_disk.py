"""Points of any dimension as points of a picture."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.accounts.charts import MAX_DRAWN_RADIUS, project_to_disk
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.errors import ParameterError
from equipoise.geometry.distances import ball_to_hyperboloid, lorentz_norm
from equipoise.types import Floats


def in_ball(points: Floats) -> NodeVectors:
    names = tuple(map(str, range(len(points))))
    return NodeVectors(names, names, points, "poincare")


def test_two_dimensions_within_reach_are_drawn_as_they_are() -> None:
    points = np.random.default_rng(0).uniform(-0.6, 0.6, (20, 2))
    flat = project_to_disk(in_ball(points))
    assert flat.kind == "disk"
    assert not flat.caption
    assert np.allclose(flat.points, points)


def test_ball_and_hyperboloid_are_one_picture() -> None:
    points = np.random.default_rng(1).uniform(-0.4, 0.4, (20, 4))
    names = tuple(map(str, range(20)))
    lorentz = NodeVectors(names, names, ball_to_hyperboloid(points), "lorentz")
    assert np.allclose(project_to_disk(in_ball(points)).points, project_to_disk(lorentz).points)


def test_more_dimensions_keep_the_distance_from_the_middle() -> None:
    points = np.random.default_rng(2).uniform(-0.4, 0.4, (20, 5))
    flat = project_to_disk(in_ball(points))
    assert "two principal directions" in flat.caption
    assert np.allclose(np.linalg.norm(flat.points, axis=1), np.linalg.norm(points, axis=1))


def test_points_on_the_rim_are_drawn_nearer_and_it_is_said() -> None:
    points = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1 - 1e-9]])
    flat = project_to_disk(in_ball(points))
    far = lorentz_norm(ball_to_hyperboloid(flat.points))
    assert far.max() == pytest.approx(MAX_DRAWN_RADIUS)
    assert "shortened by a factor" in flat.caption
    true = lorentz_norm(ball_to_hyperboloid(points))
    assert far[1] / far[2] == pytest.approx(true[1] / true[2])


def test_flat_points_lie_in_the_plane() -> None:
    names = ("a", "b", "c")
    points = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    flat = project_to_disk(NodeVectors(names, names, points, "euclidean"))
    assert flat.kind == "plane"
    assert np.array_equal(flat.points, points)


def test_one_dimension_is_no_picture() -> None:
    with pytest.raises(ParameterError):
        project_to_disk(in_ball(np.zeros((3, 1))))
