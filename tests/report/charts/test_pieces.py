"""Names that stay apart, labels that keep their distance, links that follow the disk."""

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
def test_names_that_were_shortened_still_differ(names: list[str]) -> None:
    brief = shorten_labels(names)
    assert len(brief) == len(names)
    assert len(set(brief)) == len(names)


def test_what_all_names_begin_with_is_left_out_before_what_tells_them_apart() -> None:
    names = [f"organisation/models/embedding-{place}-of-a-family-with-a-long-name" for place in range(3)]
    assert shorten_labels(names, 30) == [shown for shown in shorten_labels(names, 30) if "…" in shown]
    assert [shown[1] for shown in shorten_labels(names, 30)] == ["0", "1", "2"]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_charts_never_share_a_file(texts: list[str]) -> None:
    charts = unique_names([Chart(slug(text), "", "", {}) for text in texts])
    assert len({chart.name for chart in charts}) == len(texts)


@given(st.lists(st.floats(0, 300), max_size=12))
def test_labels_are_apart_and_stay_in_order_around_their_places(places: list[float]) -> None:
    places = sorted(places)
    moved = spread_labels(places)
    assert all(after - before >= LINE_HEIGHT - 1e-6 for before, after in pairwise(moved))
    assert abs(sum(moved) - sum(places)) < 1e-6 * max(1, len(places))


@given(st.floats(1e-3, 1e6), st.floats(1, 1e6))
def test_a_logarithmic_axis_holds_everything(low: float, factor: float) -> None:
    scale = log_scale(low, low * factor)
    assert scale.low <= low
    assert scale.high >= low * factor
    assert [tick for tick, _ in scale.ticks] == sorted({tick for tick, _ in scale.ticks})


inside = st.tuples(st.floats(0, 0.999), st.floats(0, 2 * np.pi)).map(
    lambda polar: [polar[0] * np.cos(polar[1]), polar[0] * np.sin(polar[1])]
)


@given(inside, inside)
def test_links_follow_the_shortest_path_of_the_disk(start: list[float], end: list[float]) -> None:
    path = poincare_geodesic(start, end)
    np.testing.assert_allclose(path[[0, -1]], [start, end], atol=1e-6)
    whole = float(poincare(np.array(start), np.array(end)))
    pieces = sum(float(poincare(one, other)) for one, other in pairwise(path))
    assert abs(pieces - whole) < 1e-3 * max(1.0, whole)


def test_points_on_the_rim_are_linked_by_a_straight_line() -> None:
    np.testing.assert_array_equal(poincare_geodesic([1.0, 0.0], [0.0, 0.5]), [[1.0, 0.0], [0.0, 0.5]])


def test_a_map_of_many_points_keeps_the_first_and_says_so() -> None:
    points = tuple(Point(float(place), 0.0, f"p{place}") for place in range(1000))
    chart = projection_chart(Projection("line", "plane", points, ((0, 1), (0, 999))))
    assert chart.spec["title"]["subtitle"] == "The first 600 of 1,000 points."
    assert "1,000 points" in chart.description
