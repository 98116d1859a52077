"""A page in which every text is an injection: all are shown as text, none becomes an element or is executed."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.redaction import inert
from hostile import FLAG, HOSTILE, SYSTEMS

FOREIGN = "img, iframe, object, embed, b, video, audio, form:not(.filters), [onload], [onerror], [onmouseover]"


@pytest.fixture
def page(opened, report) -> Any:
    """The page, with all folds open."""
    tab = opened(report("hostile"))
    tab.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true })")
    return tab


def is_harmless(page: Any) -> bool:
    """Whether nothing was executed, and no text has become an element or an address."""
    links: list[str] = page.locator("a").evaluate_all("all => all.map((element) => element.protocol)")
    return (
        page.evaluate(f"window.{FLAG} === undefined")
        and page.locator(FOREIGN).count() == 0
        and page.locator("script").count() == 2
        and set(links) == {"file:"}
    )


def test_names_are_shown_unchanged(page) -> None:
    names = page.locator("#leaderboard tbody th .name").evaluate_all("all => all.map((element) => element.title)")
    assert sorted(names) == sorted(map(inert, SYSTEMS))
    assert is_harmless(page)


def test_units_texts_and_slices_are_shown_unchanged(page) -> None:
    for index in range(len(HOSTILE)):
        page.locator("#explorer tbody a").nth(index).click()
        panel = page.get_by_role("region", name="One unit")
        unit = page.locator("#explorer tr[aria-current] a").evaluate("element => element.textContent")
        assert panel.locator("h3").evaluate("element => element.textContent") == unit
        question = panel.locator(".question").evaluate("element => element.textContent")
        assert any(text.startswith(question.removesuffix("…")) for text in HOSTILE)
        hits = (
            panel.locator(".side")
            .first.locator(".hit")
            .evaluate_all("all => all.map((element) => element.textContent)")
        )
        assert hits == list(HOSTILE[:4])
    assert is_harmless(page)


def test_filters_and_search_treat_hostile_texts_as_text(page) -> None:
    page.get_by_label("Won by").select_option(index=1)
    page.get_by_label("Lost by").select_option(index=2)
    page.get_by_label("Won by").select_option(index=0)
    page.get_by_label("Lost by").select_option(index=0)
    page.get_by_label("Search").fill(HOSTILE[0])
    assert page.locator("#explorer tbody tr").count() > 0
    assert is_harmless(page)


def test_hostile_texts_in_the_address_are_not_executed(page) -> None:
    page.locator("#explorer tbody a").nth(1).click()
    name = page.get_by_role("region", name="One unit").locator("h3").evaluate("element => element.textContent")
    page.reload()
    reloaded_name = page.get_by_role("region", name="One unit").locator("h3").evaluate("element => element.textContent")
    assert reloaded_name == name
    page.evaluate("text => { location.hash = `#units?q=${text}&unit=${text}&won=${text}` }", HOSTILE[2])
    assert is_harmless(page)


def test_chart_tooltips_show_hostile_texts_as_text(page) -> None:
    chart = page.locator("#distributions svg[data-chart]").first
    chart.focus()
    tip = page.locator(".chart-tip")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        assert tip.evaluate("element => element.childElementCount") == 0
    assert is_harmless(page)


def test_findings_and_copied_texts_are_complete(page) -> None:
    evidence = (
        page.locator("#findings .evidence")
        .first.locator("li")
        .evaluate_all("all => all.map((element) => element.textContent)")
    )
    assert evidence == [inert(text) for text in HOSTILE[2:]]  # the message of the finding contains the first two
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy Markdown table").click()
    page.get_by_text("Copied.").wait_for()
    assert is_harmless(page)
