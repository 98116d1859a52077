"""Charts inside a report: safe markup, tooltips, and one style sheet for light and dark mode."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

from equipoise.report.charts import report_charts
from equipoise.report.charts.chart import DARK, LIGHT
from equipoise.report.html.charts import chart_script, chart_style, embed_chart
from equipoise.report.view import RunsView
from equipoise.stats.comparison import Comparison

ReportAndComparison = tuple[RunsView, Comparison]
ReportMaker = Callable[..., tuple[RunsView, Comparison | None]]


def roots(report: RunsView) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(embed_chart(chart)["svg"]) for chart in report_charts(report)]


def test_a_chart_is_one_image_with_its_description(comparison_report: ReportAndComparison) -> None:
    for chart, root in zip(report_charts(comparison_report[0]), roots(comparison_report[0]), strict=True):
        assert root.get("role") == "img"
        assert root.get("aria-label") == f"{chart.title}. {chart.description}"
        assert root.get("data-chart") == chart.name
        assert [element for element in root.iter() if element.get("role")] == [root]


def test_tooltips_of_marks_are_those_of_the_specification(comparison_report: ReportAndComparison) -> None:
    report, comparison = comparison_report
    tooltips = [element.get("data-tooltip", "") for element in roots(report)[0].iter() if element.get("data-tooltip")]
    assert len(tooltips) == len(comparison.systems)
    for system, tooltip in zip(comparison.order, tooltips, strict=True):
        assert tooltip.startswith(f"{system}: MRR ")
        assert f"tie band {' '.join(comparison.bands[system])}" in tooltip


def test_every_chart_has_tooltips(comparison_report: ReportAndComparison) -> None:
    for root in roots(comparison_report[0]):
        assert any(element.get("data-tooltip") for element in root.iter()), root.get("data-chart")


def test_the_markup_is_valid_under_a_strict_content_security_policy(comparison_report: ReportAndComparison) -> None:
    for root in roots(comparison_report[0]):
        keys = {key for element in root.iter() for key, _ in element.items()}
        assert not keys & {"style", "href", "{http://www.w3.org/1999/xlink}href"}
        assert not any(key.startswith("on") for key in keys)


def test_invalid_characters_in_names_do_not_break_the_markup(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["a\x00b\x1f\ud800", "</svg><script>alert(1)</script>"])
    for root in roots(report):
        assert "\x00" not in root.get("aria-label", "\x00")
        assert {element.tag.partition("}")[2] for element in root.iter()} <= {
            "svg",
            "g",
            "path",
            "line",
            "text",
        }


def test_ids_are_unique_across_charts(comparison_report: ReportAndComparison) -> None:
    ids = [element.get("id") for root in roots(comparison_report[0]) for element in root.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)


def test_only_maps_are_zoomable(comparison_report: ReportAndComparison) -> None:
    zoomable = [root.get("data-chart") for root in roots(comparison_report[0]) if root.get("data-zoom") is not None]
    assert zoomable == ["projection-a-tree", "projection-a-tree-2"]


def test_the_style_sheet_has_every_colour_of_both_palettes() -> None:
    sheet = chart_style()
    for name, colour in LIGHT.items():
        assert f'[fill="{colour}"]' in sheet
        assert f'[stroke="{colour}"]' in sheet
        assert sheet.count(f"--chart-{name.replace('_', '-')}:{DARK[name]}") == 2
    assert sheet.count("{") == sheet.count("}")


def test_the_script_creates_no_code_or_markup_from_text() -> None:
    text = chart_script()
    assert not re.search(r"\beval\b|\bFunction\b|innerHTML|outerHTML|insertAdjacent|document\.write|</", text)


def test_the_charts_of_a_page_are_below_200_kilobytes(comparison_report: ReportAndComparison) -> None:
    drawings = sum(len(embed_chart(chart)["svg"]) for chart in report_charts(comparison_report[0]))
    assert drawings + len(chart_script()) + len(chart_style()) < 200_000
