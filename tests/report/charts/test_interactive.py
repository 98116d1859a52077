"""Charts inside a report: safe markup, marks that speak, and one style sheet for both grounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

from equipoise.report.charts import report_charts
from equipoise.report.charts.chart import DARK, LIGHT
from equipoise.report.html.charts import chart_script, chart_style, embed_chart
from equipoise.report.view import RunsView
from equipoise.stats.comparison import Comparison

Compared = tuple[RunsView, Comparison]
Maker = Callable[..., tuple[RunsView, Comparison | None]]


def roots(report: RunsView) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(embed_chart(chart)["svg"]) for chart in report_charts(report)]


def test_a_chart_is_one_image_with_its_description(compared: Compared) -> None:
    for chart, root in zip(report_charts(compared[0]), roots(compared[0]), strict=True):
        assert root.get("role") == "img"
        assert root.get("aria-label") == f"{chart.title}. {chart.description}"
        assert root.get("data-chart") == chart.name
        assert [element for element in root.iter() if element.get("role")] == [root]


def test_marks_say_what_the_specification_says(compared: Compared) -> None:
    report, comparison = compared
    said = [element.get("data-tooltip", "") for element in roots(report)[0].iter() if element.get("data-tooltip")]
    assert len(said) == len(comparison.systems)
    for system, words in zip(comparison.order, said, strict=True):
        assert words.startswith(f"{system}: MRR ")
        assert f"tie band {' '.join(comparison.bands[system])}" in words


def test_every_chart_has_marks_that_speak(compared: Compared) -> None:
    for root in roots(compared[0]):
        assert any(element.get("data-tooltip") for element in root.iter()), root.get("data-chart")


def test_no_markup_asks_for_more_than_a_strict_policy_allows(compared: Compared) -> None:
    for root in roots(compared[0]):
        keys = {key for element in root.iter() for key, _ in element.items()}
        assert not keys & {"style", "href", "{http://www.w3.org/1999/xlink}href"}
        assert not any(key.startswith("on") for key in keys)


def test_names_that_no_document_can_hold_do_not_break_the_markup(page_maker: Maker) -> None:
    report, _ = page_maker(["a\x00b\x1f\ud800", "</svg><script>alert(1)</script>"])
    for root in roots(report):
        assert "\x00" not in root.get("aria-label", "\x00")
        assert {element.tag.partition("}")[2] for element in root.iter()} <= {
            "svg",
            "g",
            "path",
            "line",
            "text",
        }


def test_ids_of_several_charts_do_not_meet(compared: Compared) -> None:
    ids = [element.get("id") for root in roots(compared[0]) for element in root.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)


def test_only_maps_can_be_looked_at_closer(compared: Compared) -> None:
    closer = [root.get("data-chart") for root in roots(compared[0]) if root.get("data-zoom") is not None]
    assert closer == ["projection-a-tree", "projection-a-tree-2"]


def test_the_style_sheet_knows_every_colour_on_both_grounds() -> None:
    sheet = chart_style()
    for name, colour in LIGHT.items():
        assert f'[fill="{colour}"]' in sheet
        assert f'[stroke="{colour}"]' in sheet
        assert sheet.count(f"--chart-{name.replace('_', '-')}:{DARK[name]}") == 2
    assert sheet.count("{") == sheet.count("}")


def test_the_script_makes_no_code_and_no_markup_from_texts() -> None:
    text = chart_script()
    assert not re.search(r"\beval\b|\bFunction\b|innerHTML|outerHTML|insertAdjacent|document\.write|</", text)


def test_the_drawings_of_a_page_are_a_small_part_of_it(compared: Compared) -> None:
    drawings = sum(len(embed_chart(chart)["svg"]) for chart in report_charts(compared[0]))
    assert drawings + len(chart_script()) + len(chart_style()) < 200_000
