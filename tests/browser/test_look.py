"""Light, dark, on paper, on a small screen: nothing is cut off, and nothing is there twice."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.report.charts.chart import LIGHT
from sample_pages import KINDS

PHONE = {"width": 375, "height": 812}
GROUND = "getComputedStyle(document.body).backgroundColor"


def brightness(colour: str) -> float:
    """How bright a colour such as rgb(1, 2, 3) is, from 0 to 255."""
    parts = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(map(float, parts)) / 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_shows_every_page_without_moving_it_sideways(opened, report, kind: str) -> None:
    page = opened(report(kind), viewport=PHONE)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    page.locator("#explorer tbody a").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert page.evaluate("document.body.scrollWidth") == PHONE["width"]


@pytest.mark.parametrize("width", [1440, 1920])
@pytest.mark.parametrize("kind", ["fair", "single"])
def test_the_leaderboard_and_the_costs_fit_a_desktop_screen(opened, report, kind: str, width: int) -> None:
    page = opened(report(kind), viewport={"width": width, "height": 900})
    for table in page.locator("#leaderboard .wide, #costs .wide, #pairwise > .wide").all():
        assert table.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_quality_is_drawn_against_every_cost_that_two_systems_recorded(opened, report) -> None:
    page = opened(report("fair"))
    names = page.locator("#costs figure").evaluate_all("all => all.map((each) => each.id)")
    assert "chart-cost-seconds" in names
    assert all(page.locator(f"#{name} svg").is_visible() for name in names)


@pytest.mark.parametrize("width", [1440, 1920])
def test_a_chart_is_as_wide_as_the_card_or_half_of_it(opened, report, width: int) -> None:
    page = opened(report("fair"), viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    for charts in page.locator(".charts").all():
        card = charts.bounding_box()["width"]
        drawn = charts.locator(".paper svg").evaluate_all(
            "all => all.map((each) => each.getBoundingClientRect().width)"
        )
        assert min(drawn) > 0.45 * card
        assert max(drawn) <= card + 1


def test_captions_are_read_without_moving_a_wide_table(opened, report) -> None:
    page = opened(report("fair"), viewport=PHONE)
    for caption in page.locator("caption:visible:not(.visually-hidden)").all():
        assert caption.bounding_box()["width"] <= PHONE["width"]


def test_the_page_is_dark_where_the_reader_s_system_is(opened, report) -> None:
    grounds = {
        scheme: brightness(opened(report("single"), color_scheme=scheme).evaluate(GROUND))
        for scheme in ("light", "dark")
    }
    assert grounds["light"] > 200
    assert grounds["dark"] < 50


def test_a_button_changes_light_for_dark_and_back(opened, report) -> None:
    page = opened(report("single"), color_scheme="dark")
    page.get_by_role("button", name="Light", exact=True).click()
    assert brightness(page.evaluate(GROUND)) > 200
    page.get_by_role("button", name="Dark", exact=True).click()
    assert brightness(page.evaluate(GROUND)) < 50


def test_charts_follow_the_ground_they_are_on(opened, report) -> None:
    page = opened(report("fair"))
    name = page.locator(f'#distributions svg[data-chart] text[fill="{LIGHT["ink"]}"]').first
    inks = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        inks.append(brightness(name.evaluate("each => getComputedStyle(each).fill")))
    assert inks[0] < 100
    assert inks[1] > 180


def test_paper_is_light_has_every_table_and_no_buttons(opened, report) -> None:
    page = opened(report("fair"), color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    assert brightness(page.evaluate(GROUND)) == 255
    assert brightness(page.evaluate("getComputedStyle(document.body).color")) < 100
    for selector in ("nav", ".theme", ".filters", ".buttons", "ul.downloads"):
        assert page.locator(f"{selector}:visible").count() == 0, selector
    assert page.locator("table.grid:visible").count() == 6
    overflowing = "each => getComputedStyle(each).overflowX"
    assert page.locator(".wide").first.evaluate(overflowing) == "visible"
    printed = page.pdf()
    assert printed.startswith(b"%PDF")


def test_without_a_script_everything_but_single_units_is_there(opened, report) -> None:
    page = opened(report("fair"), java_script_enabled=False)
    assert page.locator("#leaderboard tbody tr").count() == 6
    assert page.locator("noscript").inner_text().startswith("This section needs JavaScript")
    assert page.get_by_role("button").count() == 0


def test_no_text_runs_over_another_in_a_chart(opened, report) -> None:
    page = opened(report("fair"))
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    assert page.locator("svg[data-chart]").evaluate_all(OVERLAPS) == []


OVERLAPS: Any = """(charts) => charts.flatMap((chart) => {
  const upright = (each) => each.textContent.trim() && !/rotate/.test(each.getAttribute("transform"));
  const boxes = [...chart.querySelectorAll("text")].filter(upright)
    .map((each) => [each.textContent, each.getBoundingClientRect()]);
  const found = [];
  boxes.forEach(([text, a], place) => {
    for (const [other, b] of boxes.slice(place + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 4) found.push([chart.dataset.chart, text, other]);
    }
  });
  return found;
})"""
