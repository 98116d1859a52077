"""Shortened names are unique, labels do not overlap, and links are geodesics of the disk."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.geometry.distances import poincare
from equipoise.report.charts.chart import Chart, shorten_labels, slug, unique_names
from equipoise.report.charts.marks import LINE_HEIGHT, log_scale, spread_labels
from equipoise.report.charts.projection import poincare_geodesic, projection_chart
from equipoise.report.view_model import Point, Projection


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=60), max_size=8))
def test_shortened_names_are_unique(names: list[str]) -> None:
    shortened = shorten_labels(names)
    assert len(shortened) == len(names)
    assert len(set(shortened)) == len(names)


def test_the_common_prefix_is_removed_before_distinct_parts() -> None:
    names = [f"organisation/models/embedding-{index}-of-a-family-with-a-long-name" for index in range(3)]
    assert shorten_labels(names, 30) == [name for name in shorten_labels(names, 30) if "…" in name]
    assert [name[1] for name in shorten_labels(names, 30)] == ["0", "1", "2"]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_chart_names_are_unique(texts: list[str]) -> None:
    charts = unique_names([Chart(slug(text), "", "", {}) for text in texts])
    assert len({chart.name for chart in charts}) == len(texts)


@given(st.lists(st.floats(0, 300), max_size=12))
def test_spread_labels_keep_their_order_and_distance(positions: list[float]) -> None:
    positions = sorted(positions)
    spread = spread_labels(positions)
    assert all(after - before >= LINE_HEIGHT - 1e-6 for before, after in pairwise(spread))
    assert abs(sum(spread) - sum(positions)) < 1e-6 * max(1, len(positions))


@given(st.floats(1e-3, 1e6), st.floats(1, 1e6))
def test_a_logarithmic_axis_covers_the_range(low: float, factor: float) -> None:
    scale = log_scale(low, low * factor)
    assert scale.low <= low
    assert scale.high >= low * factor
    assert [tick for tick, _ in scale.ticks] == sorted({tick for tick, _ in scale.ticks})


disk_points = st.tuples(st.floats(0, 0.999), st.floats(0, 2 * np.pi)).map(
    lambda polar: [polar[0] * np.cos(polar[1]), polar[0] * np.sin(polar[1])]
)


@given(disk_points, disk_points)
def test_links_are_geodesics_of_the_disk(start: list[float], end: list[float]) -> None:
    path = poincare_geodesic(start, end)
    np.testing.assert_allclose(path[[0, -1]], [start, end], atol=1e-6)
    distance = float(poincare(np.array(start), np.array(end)))
    path_length = sum(float(poincare(first, second)) for first, second in pairwise(path))
    assert abs(path_length - distance) < 1e-3 * max(1.0, distance)


def test_points_on_the_rim_are_linked_by_a_straight_line() -> None:
    np.testing.assert_array_equal(poincare_geodesic([1.0, 0.0], [0.0, 0.5]), [[1.0, 0.0], [0.0, 0.5]])


def test_a_map_of_many_points_shows_the_first_ones_with_a_note() -> None:
    points = tuple(Point(float(index), 0.0, f"p{index}") for index in range(1000))
    chart = projection_chart(Projection("line", "plane", points, ((0, 1), (0, 999))))
    assert chart.spec["title"]["subtitle"] == "The first 600 of 1,000 points."
    assert "1,000 points" in chart.description
