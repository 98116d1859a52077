"""Without a mouse: everything can be reached, used and left by keys."""

from __future__ import annotations

from typing import Any

import pytest

FOCUSED = "document.activeElement"


@pytest.fixture
def page(opened, report) -> Any:
    """The page of six tuned models."""
    return opened(report("fair"))


def focused(page: Any) -> str:
    """What has the focus, in words."""
    said: str = page.evaluate(
        f"(({FOCUSED}.getAttribute('aria-label') ?? {FOCUSED}.textContent) || {FOCUSED}.tagName).trim()"
    )
    return said


def test_the_first_key_offers_to_skip_to_the_report(page) -> None:
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate(f"{FOCUSED}.id") == "main"


def test_tab_walks_through_the_page_in_the_order_in_which_it_is_read(page) -> None:
    places = []
    for _ in range(80):
        page.keyboard.press("Tab")
        places.append(page.evaluate(f"[...document.querySelectorAll('*')].indexOf({FOCUSED})"))
    assert places == sorted(set(places))
    assert page.evaluate(f"{FOCUSED}.closest('section')?.id") not in (None, "verdict", "leaderboard")


def test_what_has_the_focus_can_be_seen(page) -> None:
    for selector in ("nav a", "#leaderboard th button", "#units input", "#explorer tbody a", "svg[data-chart]"):
        element = page.locator(selector).first
        element.evaluate("each => each.closest('details')?.setAttribute('open', '')")
        element.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert element.evaluate("each => getComputedStyle(each).outlineStyle") == "solid", selector


def test_a_table_is_sorted_by_enter(page) -> None:
    page.locator("#leaderboard").get_by_role("button", name="System").focus()
    page.keyboard.press("Enter")
    assert page.locator("#leaderboard th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert focused(page).startswith("System")


def test_a_slash_searches_and_arrows_walk_through_the_units(page) -> None:
    page.keyboard.press("/")
    assert page.evaluate(f"{FOCUSED}.type") == "search"
    page.keyboard.type("what")
    names = page.locator("#explorer tbody th").all_inner_texts()
    page.locator("#explorer tbody a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert focused(page) == names[1]
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="One question")
    assert panel.locator("h3").inner_text() == names[1]
    assert focused(page) == "One question"
    page.keyboard.press("ArrowRight")
    assert panel.locator("h3").inner_text() == names[2]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    assert focused(page) == names[1]
    assert "unit=" not in page.url


def test_a_fold_is_opened_by_a_key(page) -> None:
    fold = page.locator("#tuning details.fold").first
    fold.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert fold.locator("table.grid").is_visible()


def test_a_chart_says_its_marks_to_the_arrow_keys(page) -> None:
    chart = page.locator("#distributions svg[data-chart]").first
    chart.focus()
    tip = page.locator(".chart-tip")
    assert not tip.is_visible()
    page.keyboard.press("ArrowRight")
    first = tip.inner_text()
    assert first == chart.locator("[data-tooltip]").first.get_attribute("data-tooltip")
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert tip.inner_text() == first
    page.keyboard.press("Escape")
    assert not tip.is_visible()
