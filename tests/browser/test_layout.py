"""Layout in light mode, dark mode, print and on a small screen: nothing is cut off or duplicated."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.report.charts.chart import LIGHT
from sample_pages import KINDS

PHONE = {"width": 375, "height": 812}
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def brightness(colour: str) -> float:
    """Mean of the channels of a colour such as rgb(1, 2, 3), from 0 to 255."""
    parts = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(map(float, parts)) / 3


@pytest.mark.parametrize("kind", KINDS)
def test_pages_fit_a_phone_without_horizontal_scrolling(opened, report, kind: str) -> None:
    page = opened(report(kind), viewport=PHONE)
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true })")
    page.locator("#explorer tbody a").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert page.evaluate("document.body.scrollWidth") == PHONE["width"]


@pytest.mark.parametrize("width", [1440, 1920])
@pytest.mark.parametrize("kind", ["fair", "single"])
def test_the_leaderboard_and_the_costs_fit_a_desktop_screen(opened, report, kind: str, width: int) -> None:
    page = opened(report(kind), viewport={"width": width, "height": 900})
    for table in page.locator("#leaderboard .wide, #costs .wide, #pairwise > .wide").all():
        assert table.evaluate("element => element.scrollWidth <= element.clientWidth")


def test_there_is_a_chart_for_every_cost_recorded_by_two_systems(opened, report) -> None:
    page = opened(report("fair"))
    names = page.locator("#costs figure").evaluate_all("all => all.map((element) => element.id)")
    assert "chart-cost-documents-per-second" in names
    assert "chart-cost-seconds" not in names  # total seconds say less
    assert all(page.locator(f"#{name} svg").is_visible() for name in names)


@pytest.mark.parametrize("width", [1440, 1920])
def test_charts_fill_the_card_or_half_of_it(opened, report, width: int) -> None:
    page = opened(report("fair"), viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true })")
    for charts in page.locator(".charts").all():
        card = charts.bounding_box()["width"]
        chart_widths = charts.locator(".paper svg").evaluate_all(
            "all => all.map((element) => element.getBoundingClientRect().width)"
        )
        assert max(chart_widths) <= card + 1
    fluid = page.locator("#costs svg, #chart-leaderboard svg, #chart-differences svg, #distributions svg").evaluate_all(
        "all => all.map((element) => element.getBoundingClientRect().width)"
    )
    assert min(fluid) > 0.45 * card


def test_texts_of_all_charts_have_one_size_and_are_not_cut_off(opened, report) -> None:
    page = opened(report("fair"), viewport={"width": 1440, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true })")
    charts = page.locator("svg[data-chart]").evaluate_all(
        """all => all.map((svg) => {
            const box = svg.getBoundingClientRect();
            const texts = [...svg.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
            const inside = texts.every((text) => text.left >= box.left - 1 && text.right <= box.right + 1);
            return { name: svg.dataset.chart, scale: box.width / svg.viewBox.baseVal.width, inside };
        })"""
    )
    assert {round(chart["scale"], 2) for chart in charts} == {1.2}
    assert [chart["name"] for chart in charts if not chart["inside"]] == []


def test_captions_of_wide_tables_fit_the_screen(opened, report) -> None:
    page = opened(report("fair"), viewport=PHONE)
    for caption in page.locator("caption:visible:not(.visually-hidden)").all():
        assert caption.bounding_box()["width"] <= PHONE["width"]


def test_the_colour_scheme_follows_the_system(opened, report) -> None:
    brightness_by_scheme = {
        scheme: brightness(opened(report("single"), color_scheme=scheme).evaluate(BACKGROUND))
        for scheme in ("light", "dark")
    }
    assert brightness_by_scheme["light"] > 200
    assert brightness_by_scheme["dark"] < 50


def test_buttons_switch_between_light_and_dark(opened, report) -> None:
    page = opened(report("single"), color_scheme="dark")
    page.get_by_role("button", name="Light", exact=True).click()
    assert brightness(page.evaluate(BACKGROUND)) > 200
    page.get_by_role("button", name="Dark", exact=True).click()
    assert brightness(page.evaluate(BACKGROUND)) < 50


def test_charts_follow_the_colour_scheme(opened, report) -> None:
    page = opened(report("fair"))
    name = page.locator(f'#distributions svg[data-chart] text[fill="{LIGHT["ink"]}"]').first
    inks = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        inks.append(brightness(name.evaluate("element => getComputedStyle(element).fill")))
    assert inks[0] < 100
    assert inks[1] > 180


def test_print_is_light_with_every_table_and_no_buttons(opened, report) -> None:
    page = opened(report("fair"), color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    assert brightness(page.evaluate(BACKGROUND)) == 255
    assert brightness(page.evaluate("getComputedStyle(document.body).color")) < 100
    for selector in ("nav", ".theme", ".filters", ".buttons", "ul.downloads"):
        assert page.locator(f"{selector}:visible").count() == 0, selector
    assert page.locator("table.grid:visible").count() == 6
    overflowing = "element => getComputedStyle(element).overflowX"
    assert page.locator(".wide").first.evaluate(overflowing) == "visible"
    printed = page.pdf()
    assert printed.startswith(b"%PDF")


def test_without_javascript_only_single_units_are_missing(opened, report) -> None:
    page = opened(report("fair"), java_script_enabled=False)
    assert page.locator("#leaderboard tbody tr").count() == 6
    assert page.locator("noscript").inner_text().startswith("This section needs JavaScript")
    assert page.get_by_role("button").count() == 0


def test_texts_in_charts_do_not_overlap(opened, report) -> None:
    page = opened(report("fair"))
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true })")
    assert page.locator("svg[data-chart]").evaluate_all(OVERLAPS) == []


OVERLAPS: Any = """(charts) => charts.flatMap((chart) => {
  const upright = (element) => element.textContent.trim() && !/rotate/.test(element.getAttribute("transform"));
  const boxes = [...chart.querySelectorAll("text")].filter(upright)
    .map((element) => [element.textContent, element.getBoundingClientRect()]);
  const overlaps = [];
  boxes.forEach(([text, a], index) => {
    for (const [other, b] of boxes.slice(index + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 4) overlaps.push([chart.dataset.chart, text, other]);
    }
  });
  return overlaps;
})"""
