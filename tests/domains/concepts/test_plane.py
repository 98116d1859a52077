"""How much of a neighbourhood the plane keeps."""

import numpy as np
import pytest

from equipoise.domains.concepts.charts import project_to_plane
from equipoise.evidence.space import Space


def kept_slowly(vectors: np.ndarray, points: np.ndarray, neighbours: int) -> float:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = []
    for at in range(len(units)):
        others = [other for other in range(len(units)) if other != at]
        near = sorted(others, key=lambda other: -float(units[at] @ units[other]))[:neighbours]
        flat = sorted(others, key=lambda other: float(np.linalg.norm(points[at] - points[other])))
        shares.append(len(set(near) & set(flat[:neighbours])) / neighbours)
    return float(np.mean(shares))


def test_the_share_is_that_of_a_slow_count() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 12))
    plane = project_to_plane(Space.of(vectors))
    assert plane.kept == pytest.approx(kept_slowly(vectors, plane.points, 5))
    assert plane.chance_overlap == pytest.approx(5 / 29)


def test_directions_that_lie_on_a_circle_lose_nothing() -> None:
    angles = np.sort(np.random.default_rng(1).uniform(0, 2 * np.pi, 20))
    flat = np.column_stack([np.cos(angles), np.sin(angles)])
    turned = flat @ np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0][:2]
    plane = project_to_plane(Space.of(turned))
    assert plane.kept == 1.0
    assert plane.variance == pytest.approx(1.0)


def test_a_zero_vector_is_left_out_and_the_caption_prints_the_share() -> None:
    vectors = np.vstack([np.eye(6), np.zeros(6)])
    plane = project_to_plane(Space.of(vectors))
    assert plane.rows.tolist() == list(range(6))
    assert "nearest neighbours (at random: 100 %)" in plane.caption
