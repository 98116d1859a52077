"""Exports of a report page: copied and saved texts, charts as SVG and PNG, and tooltips of marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest


@pytest.fixture
def page(opened, report) -> Any:
    """The page of six tuned models."""
    return opened(report("fair"))


def download_with(page: Any, button: Any) -> tuple[str, bytes]:
    """The name and the content of the file that a button downloads."""
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_copying_gives_the_shown_text(page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy LaTeX table").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#text-latex").text_content()


def test_the_text_is_selected_if_the_clipboard_is_blocked(page) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    page.get_by_role("button", name="Copy CSV").click()
    page.locator("#text-csv").wait_for()
    selected = page.evaluate("getSelection().toString()")
    assert selected.strip() == page.locator("#text-csv").text_content().strip()


@pytest.mark.parametrize(
    ("format_name", "name"), [("latex", "table.tex"), ("csv", "scores.csv"), ("json", "report.json")]
)
def test_saved_files_have_the_shown_text(page, format_name: str, name: str) -> None:
    text = page.locator(f"#text-{format_name}").text_content()
    assert download_with(page, page.get_by_role("button", name=f"Save {name}")) == (name, text.encode())


def test_a_chart_is_saved_as_svg_with_a_light_background(page) -> None:
    button = page.locator("#chart-frontier").get_by_role("button", name="Save as SVG")
    name, content = download_with(page, button)
    root = ElementTree.fromstring(content)
    assert name == "frontier.svg"
    assert root[0].attrib["fill"] == "#ffffff"
    texts = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
    assert "bm25" in texts
    assert page.locator("#chart-frontier figcaption strong").inner_text() in texts
    assert "data-chart" not in root.attrib


def test_a_chart_is_saved_as_png(page) -> None:
    svg = page.locator("#chart-frontier svg")
    size = svg.evaluate("element => [element.viewBox.baseVal.width, element.viewBox.baseVal.height]")
    button = page.locator("#chart-frontier").get_by_role("button", name="Save as PNG")
    name, content = download_with(page, button)
    assert name == "frontier.png"
    assert content.startswith(b"\x89PNG")
    wide, high = (int.from_bytes(content[offset : offset + 4], "big") for offset in (16, 20))
    assert wide == pytest.approx(2 * size[0], abs=1)
    assert high > 2 * size[1]  # the title is above the chart


def test_hovering_over_a_mark_shows_its_tooltip(page) -> None:
    tip = page.locator(".chart-tip")
    mark = page.locator("#chart-frontier [data-tooltip]").last
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    assert tip.inner_text() == page.locator("#chart-frontier .chart-on").get_attribute("data-tooltip")
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1280
    page.mouse.move(2, 2)
    assert not tip.is_visible()
