"""Charts of embedded trees."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from equipoise.domains.accounts.charts import MAX_DOTS, NodeLabel, norm_position_chart, tree_chart
from equipoise.report.charts.chart import Chart, render_svg
from equipoise.report.charts.curves import CurvePoint, metric_by_dimension_chart
from equipoise.report.publish import charts_html

HOSTILE = '<script>alert("1")</script> & Söhne'
CURVES = {
    "lorentz": [CurvePoint(2, 9.0, 4.0, 20.0), CurvePoint(10, 1.5, 1.2, 2.0)],
    HOSTILE: [CurvePoint(2, 60.0), CurvePoint(10, float("nan"))],
}


def rows(chart: Chart, field: str) -> list[dict[str, Any]]:
    """The rows of all layers that contain a field."""
    all_rows = [row for layer in chart.spec["layer"] for row in layer.get("data", {}).get("values", [])]
    return [row for row in all_rows if field in row]


def small_tree(branch: str = "Assets") -> Chart:
    nodes = [NodeLabel("cash", branch), NodeLabel("Assets", branch), NodeLabel(HOSTILE, branch)]
    points = np.array([[0.5, 0.1], [0.0, 0.0], [-0.5, 0.1]])
    edges = np.array([[0, 1], [2, 1]])
    return tree_chart(nodes, points, edges, np.array([1.0, 0.0, 1.0]), title="disk", caption="a caption")


def test_tooltips_of_nodes_have_name_and_branch() -> None:
    tooltips = {row["tooltip"] for row in rows(small_tree(), "tooltip")}
    assert tooltips == {"cash (Assets)", "Assets (Assets)", f"{HOSTILE} (Assets)"}


def test_edges_connect_the_nodes_of_the_tree() -> None:
    links = rows(small_tree(), "link")
    starts = {row["link"]: (row["x"], row["y"]) for row in links if row["step"] == 0}
    assert starts[0] == pytest.approx((0.5, 0.1))
    assert starts[1] == pytest.approx((-0.5, 0.1))


def test_the_caption_is_the_subtitle() -> None:
    assert small_tree().spec["title"]["subtitle"] == ["a caption"]


def test_nodes_without_a_rank_are_omitted_and_many_nodes_are_sampled() -> None:
    count = MAX_DOTS * 2
    ranks = np.linspace(0, 1, count)
    ranks[0] = np.nan
    nodes = [NodeLabel(str(index)) for index in range(count)]
    chart = norm_position_chart(nodes, np.ones(count), ranks, system="lorentz")
    assert MAX_DOTS / 2 <= len(rows(chart, "norm")) <= MAX_DOTS
    assert f"of {count - 1:,} nodes are drawn" in chart.spec["title"]["subtitle"]


def test_wide_ranges_of_ranks_have_a_logarithmic_axis_and_fractions_a_unit_axis() -> None:
    for metric in ("MR(filtered)", "MedianRank"):
        ranks = metric_by_dimension_chart(metric, CURVES, better="down", chance=500.0)
        assert "logarithmic" in str(ranks.spec["layer"][0]["encoding"]["y"]["axis"]["title"])
    for metric in ("MAP", "MRR"):
        curves = {"a": [CurvePoint(2, 0.01), CurvePoint(5, 0.6)]}
        shares = metric_by_dimension_chart(metric, curves, better="up", chance=0.01)
        assert shares.spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0.0, 1.0]


def test_the_subtitle_has_the_confidence_level() -> None:
    chart = metric_by_dimension_chart("MR", CURVES, better="down", confidence_level=0.9)
    assert chart.spec["title"]["subtitle"] == "Vertical lines: 90 % intervals."
    assert "90 % intervals. Dashed: chance level." in str(
        metric_by_dimension_chart("MR", CURVES, better="down", chance=50.0, confidence_level=0.9).spec["title"][
            "subtitle"
        ]
    )


def test_undefined_values_are_not_drawn() -> None:
    chart = metric_by_dimension_chart("MR", CURVES, better="down")
    tooltips = {row["tooltip"] for row in rows(chart, "tooltip") if HOSTILE in row["tooltip"]}
    assert tooltips == {f"{HOSTILE}, 2 dimensions: MR 60.000"}


def test_hostile_names_are_text_in_charts_and_on_the_page() -> None:
    pytest.importorskip("vl_convert")
    charts = [small_tree(HOSTILE), metric_by_dimension_chart("MR", CURVES, better="down", chance=50.0)]
    for chart in charts:
        ElementTree.fromstring(render_svg(chart))
    page = charts_html(HOSTILE, HOSTILE, charts)
    assert "<script>alert" not in page
    assert page == charts_html(HOSTILE, HOSTILE, charts)
