"""Charts as files: valid SVG and PNG with title and description, and deterministic bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from equipoise.errors import StoreError
from equipoise.report.charts import chart as chart_module
from equipoise.report.charts import report_charts
from equipoise.report.charts.chart import DARK, LIGHT, Chart, render_png, render_svg, write_charts
from equipoise.report.view import RunsView
from equipoise.stats.comparison import Comparison

ReportAndComparison = tuple[RunsView, Comparison]
ReportMaker = Callable[..., tuple[RunsView, Comparison | None]]
NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>\"'",
    "]]></svg><img src=x onerror=alert(1)>",
    "a\x00b\x1f\x7f\nc\ud800",
    "&lt;b&gt;",
]


def colours_of(text: str) -> set[str]:
    """All colours of an SVG."""
    elements = list(ElementTree.fromstring(text).iter())
    return {element.get(attribute, "none") for element in elements for attribute in ("fill", "stroke")}


@pytest.fixture(scope="module")
def leaderboard_chart(comparison_report: ReportAndComparison) -> Chart:
    return report_charts(comparison_report[0])[0]


def test_an_svg_has_title_and_description(comparison_report: ReportAndComparison) -> None:
    for chart in report_charts(comparison_report[0]):
        root = ElementTree.fromstring(render_svg(chart))
        assert root.tag == f"{NAMESPACE}svg"
        assert [root[0].tag, root[1].tag] == [f"{NAMESPACE}title", f"{NAMESPACE}desc"]
        assert (root[0].text, root[1].text) == (chart.title, chart.description)
        assert root.get("aria-labelledby") == f"{root[0].get('id')} {root[1].get('id')}"


def test_an_svg_uses_generic_fonts(comparison_report: ReportAndComparison) -> None:
    for chart in report_charts(comparison_report[0]):
        elements = list(ElementTree.fromstring(render_svg(chart)).iter())
        fonts = {element.get("font-family") for element in elements if element.tag == f"{NAMESPACE}text"}
        assert fonts == {"sans-serif"}, chart.name


def test_a_png_has_the_size_of_the_svg_times_the_scale(leaderboard_chart: Chart) -> None:
    root = ElementTree.fromstring(render_svg(leaderboard_chart))
    size = tuple(float(root.get(side, "0")) for side in ("width", "height"))
    for scale in (1, 2):
        image = render_png(leaderboard_chart, scale=scale)
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", image[16:24]) == pytest.approx([scale * side for side in size], abs=1)


def test_the_same_chart_gives_the_same_bytes(leaderboard_chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render_svg(leaderboard_chart), render_png(leaderboard_chart)
    monkeypatch.setattr(chart_module, "_converted", chart_module._converted.__wrapped__)
    assert (render_svg(leaderboard_chart), render_png(leaderboard_chart)) == first


def test_dark_charts_have_no_light_colours(comparison_report: ReportAndComparison) -> None:
    for chart in report_charts(comparison_report[0]):
        assert not colours_of(render_svg(chart, dark=True)) & (set(LIGHT.values()) - set(DARK.values())), chart.name


def test_charts_use_colours_of_the_palette_only(comparison_report: ReportAndComparison) -> None:
    for chart in report_charts(comparison_report[0]):
        assert colours_of(render_svg(chart)) <= {*LIGHT.values(), "none"}, chart.name


def test_hostile_names_are_text_in_every_chart(report_maker: ReportMaker) -> None:
    report, _ = report_maker(HOSTILE, tuned=True)
    for chart in report_charts(report):
        root = ElementTree.fromstring(render_svg(chart))
        tags = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "rect", "g", "path", "line", "text", "tspan"}, chart.name
        assert not any(key.startswith("on") for element in root.iter() for key, _ in element.items())
    text = " ".join(ElementTree.fromstring(render_svg(report_charts(report)[0])).itertext())
    assert HOSTILE[0] in text
    assert HOSTILE[3] in text


def test_names_of_charts_are_file_names(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["../../etc/passwd", "a/b", "a b", "ä" * 300], tuned=True)
    names = [chart.name for chart in report_charts(report)]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and name.isascii() and len(name) < 80 for name in names)


def test_a_name_that_is_a_colour_is_unchanged_in_dark_mode(report_maker: ReportMaker) -> None:
    report, _ = report_maker([LIGHT["ink"], "other"])
    assert LIGHT["ink"] in "".join(ElementTree.fromstring(render_svg(report_charts(report)[0], dark=True)).itertext())


def test_all_charts_are_written_as_png_and_svg(report_maker: ReportMaker, tmp_path: Path) -> None:
    report, _ = report_maker(["one", "two"])
    files = write_charts(report_charts(report), tmp_path / "results" / "visualizations")
    assert {file.name for file in files} == {
        f"{chart.name}.{suffix}" for chart in report_charts(report) for suffix in ("png", "svg")
    }
    assert all(file.stat().st_size > 1000 for file in files)


def test_a_file_as_output_folder_is_an_error(report_maker: ReportMaker, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("here")
    report, _ = report_maker(["one", "two"])
    with pytest.raises(StoreError) as error:
        write_charts(report_charts(report), tmp_path / "taken")
    assert error.value.code == "E500"
