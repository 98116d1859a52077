"""The share of nearest neighbours that the projection to the plane preserves."""

import numpy as np
import pytest

from equipoise.domains.concepts.charts import project_to_plane
from equipoise.evidence.space import Space


def neighbour_overlap(vectors: np.ndarray, points: np.ndarray, neighbours: int) -> float:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = []
    for row in range(len(units)):
        others = [other for other in range(len(units)) if other != row]
        nearest = sorted(others, key=lambda other: -float(units[row] @ units[other]))[:neighbours]
        nearest_in_plane = sorted(others, key=lambda other: float(np.linalg.norm(points[row] - points[other])))
        shares.append(len(set(nearest) & set(nearest_in_plane[:neighbours])) / neighbours)
    return float(np.mean(shares))


def test_the_overlap_equals_a_plain_count() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 12))
    plane = project_to_plane(Space.of(vectors))
    assert plane.kept == pytest.approx(neighbour_overlap(vectors, plane.points, 5))
    assert plane.chance_overlap == pytest.approx(5 / 29)


def test_directions_on_a_circle_keep_all_neighbours() -> None:
    angles = np.sort(np.random.default_rng(1).uniform(0, 2 * np.pi, 20))
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    rotated = circle @ np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0][:2]
    plane = project_to_plane(Space.of(rotated))
    assert plane.kept == 1.0
    assert plane.variance == pytest.approx(1.0)


def test_a_zero_vector_is_left_out_and_the_caption_has_the_overlap() -> None:
    vectors = np.vstack([np.eye(6), np.zeros(6)])
    plane = project_to_plane(Space.of(vectors))
    assert plane.rows.tolist() == list(range(6))
    assert "nearest neighbours (at random: 100 %)" in plane.caption
