"""Keyboard navigation: every control can be reached, used and left without a mouse."""

from __future__ import annotations

from typing import Any

import pytest

FOCUSED = "document.activeElement"


@pytest.fixture
def page(opened, report) -> Any:
    """The page of six tuned models."""
    return opened(report("fair"))


def focused_text(page: Any) -> str:
    """The label or text of the focused element."""
    label: str = page.evaluate(
        f"(({FOCUSED}.getAttribute('aria-label') ?? {FOCUSED}.textContent) || {FOCUSED}.tagName).trim()"
    )
    return label


def test_the_first_tab_stop_is_the_skip_link(page) -> None:
    page.keyboard.press("Tab")
    assert focused_text(page) == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate(f"{FOCUSED}.id") == "main"


def test_the_tab_order_is_the_document_order(page) -> None:
    positions = []
    for _ in range(80):
        page.keyboard.press("Tab")
        positions.append(page.evaluate(f"[...document.querySelectorAll('*')].indexOf({FOCUSED})"))
    assert positions == sorted(set(positions))
    assert page.evaluate(f"{FOCUSED}.closest('section')?.id") not in (None, "verdict", "leaderboard")


def test_the_focused_element_has_an_outline(page) -> None:
    for selector in ("nav a", "#leaderboard th button", "#units input", "#explorer tbody a", "svg[data-chart]"):
        element = page.locator(selector).first
        element.evaluate("element => element.closest('details')?.setAttribute('open', '')")
        element.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert element.evaluate("element => getComputedStyle(element).outlineStyle") == "solid", selector


def test_enter_sorts_a_table(page) -> None:
    page.locator("#leaderboard").get_by_role("button", name="Model").focus()
    page.keyboard.press("Enter")
    assert page.locator("#leaderboard th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert focused_text(page).startswith("Model")


def test_slash_focuses_the_search_and_arrows_move_between_units(page) -> None:
    page.keyboard.press("/")
    assert page.evaluate(f"{FOCUSED}.type") == "search"
    page.keyboard.type("what")
    names = page.locator("#explorer tbody th").all_inner_texts()
    page.locator("#explorer tbody a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert focused_text(page) == names[1]
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="One question")
    assert panel.locator("h3").inner_text() == names[1]
    assert focused_text(page) == "One question"
    page.keyboard.press("ArrowRight")
    assert panel.locator("h3").inner_text() == names[2]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    assert focused_text(page) == names[1]
    assert "unit=" not in page.url


def test_enter_opens_a_fold(page) -> None:
    fold = page.locator("#tuning details.fold").first
    fold.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert fold.locator("table.grid").is_visible()


def test_arrow_keys_show_the_tooltips_of_a_chart(page) -> None:
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
