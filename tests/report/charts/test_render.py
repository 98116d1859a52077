"""Charts as files: they decode, they say what they are, and the same chart gives the same bytes."""

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

Compared = tuple[RunsView, Comparison]
Maker = Callable[..., tuple[RunsView, Comparison | None]]
NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>\"'",
    "]]></svg><img src=x onerror=alert(1)>",
    "a\x00b\x1f\x7f\nc\ud800",
    "&lt;b&gt;",
]


def paints(text: str) -> set[str]:
    """All colours of a drawing."""
    elements = list(ElementTree.fromstring(text).iter())
    return {element.get(paint, "none") for element in elements for paint in ("fill", "stroke")}


@pytest.fixture(scope="module")
def league(compared: Compared) -> Chart:
    return report_charts(compared[0])[0]


def test_an_svg_carries_its_title_and_its_description(compared: Compared) -> None:
    for chart in report_charts(compared[0]):
        root = ElementTree.fromstring(render_svg(chart))
        assert root.tag == f"{NAMESPACE}svg"
        assert [root[0].tag, root[1].tag] == [f"{NAMESPACE}title", f"{NAMESPACE}desc"]
        assert (root[0].text, root[1].text) == (chart.title, chart.description)
        assert root.get("aria-labelledby") == f"{root[0].get('id')} {root[1].get('id')}"


def test_an_svg_asks_for_no_font_by_name(compared: Compared) -> None:
    for chart in report_charts(compared[0]):
        elements = list(ElementTree.fromstring(render_svg(chart)).iter())
        fonts = {element.get("font-family") for element in elements if element.tag == f"{NAMESPACE}text"}
        assert fonts == {"sans-serif"}, chart.name


def test_a_png_has_the_size_of_the_svg_times_the_scale(league: Chart) -> None:
    root = ElementTree.fromstring(render_svg(league))
    drawn = tuple(float(root.get(side, "0")) for side in ("width", "height"))
    for scale in (1, 2):
        image = render_png(league, scale=scale)
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", image[16:24]) == pytest.approx([scale * side for side in drawn], abs=1)


def test_the_same_chart_gives_the_same_bytes(league: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render_svg(league), render_png(league)
    monkeypatch.setattr(chart_module, "_converted", chart_module._converted.__wrapped__)
    assert (render_svg(league), render_png(league)) == first


def test_dark_ground_has_no_light_colour_left(compared: Compared) -> None:
    for chart in report_charts(compared[0]):
        assert not paints(render_svg(chart, dark=True)) & (set(LIGHT.values()) - set(DARK.values())), chart.name


def test_drawings_have_only_colours_of_the_palette(compared: Compared) -> None:
    for chart in report_charts(compared[0]):
        assert paints(render_svg(chart)) <= {*LIGHT.values(), "none"}, chart.name


def test_hostile_names_are_text_in_every_chart(page_maker: Maker) -> None:
    report, _ = page_maker(HOSTILE, tuned=True)
    for chart in report_charts(report):
        root = ElementTree.fromstring(render_svg(chart))
        tags = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "rect", "g", "path", "line", "text", "tspan"}, chart.name
        assert not any(key.startswith("on") for element in root.iter() for key, _ in element.items())
    words = " ".join(ElementTree.fromstring(render_svg(report_charts(report)[0])).itertext())
    assert HOSTILE[0] in words
    assert HOSTILE[3] in words


def test_names_of_charts_are_file_names(page_maker: Maker) -> None:
    report, _ = page_maker(["../../etc/passwd", "a/b", "a b", "ä" * 300], tuned=True)
    names = [chart.name for chart in report_charts(report)]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and name.isascii() and len(name) < 80 for name in names)


def test_a_name_that_is_a_colour_keeps_its_text_on_dark_ground(page_maker: Maker) -> None:
    report, _ = page_maker([LIGHT["ink"], "other"])
    assert LIGHT["ink"] in "".join(ElementTree.fromstring(render_svg(report_charts(report)[0], dark=True)).itertext())


def test_all_charts_are_written_as_png_and_svg(page_maker: Maker, tmp_path: Path) -> None:
    report, _ = page_maker(["one", "two"])
    files = write_charts(report_charts(report), tmp_path / "results" / "visualizations")
    assert {file.name for file in files} == {
        f"{chart.name}.{suffix}" for chart in report_charts(report) for suffix in ("png", "svg")
    }
    assert all(file.stat().st_size > 1000 for file in files)


def test_a_folder_that_is_a_file_is_refused(page_maker: Maker, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("here")
    report, _ = page_maker(["one", "two"])
    with pytest.raises(StoreError, match="the charts cannot be written"):
        write_charts(report_charts(report), tmp_path / "taken")
