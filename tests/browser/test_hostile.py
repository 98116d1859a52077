"""A page in which every text is an attack: each is shown, none becomes an element, none is run."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.redaction import inert
from hostile import FLAG, HOSTILE, SYSTEMS

FOREIGN = "img, iframe, object, embed, b, video, audio, form:not(.filters), [onload], [onerror], [onmouseover]"


@pytest.fixture
def page(opened, report) -> Any:
    """The page, with everything unfolded."""
    tab = opened(report("hostile"))
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    return tab


def is_harmless(page: Any) -> bool:
    """Nothing was run, and no text has become an element or an address."""
    links: list[str] = page.locator("a").evaluate_all("all => all.map((each) => each.protocol)")
    return (
        page.evaluate(f"window.{FLAG} === undefined")
        and page.locator(FOREIGN).count() == 0
        and page.locator("script").count() == 2
        and set(links) == {"file:"}
    )


def test_every_name_is_shown_as_it_is(page) -> None:
    names = page.locator("#leaderboard tbody th .name").evaluate_all("all => all.map((each) => each.textContent)")
    assert sorted(names) == sorted(map(inert, SYSTEMS))
    assert is_harmless(page)


def test_units_texts_and_slices_are_shown_as_they_are(page) -> None:
    for place in range(len(HOSTILE)):
        page.locator("#explorer tbody a").nth(place).click()
        panel = page.get_by_role("region", name="One unit")
        unit = page.locator("#explorer tr[aria-current] a").evaluate("each => each.textContent")
        assert panel.locator("h3").evaluate("each => each.textContent") == unit
        question = panel.locator(".question").evaluate("each => each.textContent")
        assert any(text.startswith(question.removesuffix("…")) for text in HOSTILE)
        hits = panel.locator(".side").first.locator(".hit").evaluate_all("all => all.map((each) => each.textContent)")
        assert hits == list(HOSTILE[:4])
    assert is_harmless(page)


def test_filters_and_searches_take_them_as_words(page) -> None:
    page.get_by_label("Won by").select_option(index=1)
    page.get_by_label("Lost by").select_option(index=2)
    page.get_by_label("Won by").select_option(index=0)
    page.get_by_label("Lost by").select_option(index=0)
    page.get_by_label("Search").fill(HOSTILE[0])
    assert page.locator("#explorer tbody tr").count() > 0
    assert is_harmless(page)


def test_an_address_with_one_in_it_is_only_read(page) -> None:
    page.locator("#explorer tbody a").nth(1).click()
    name = page.get_by_role("region", name="One unit").locator("h3").evaluate("each => each.textContent")
    page.reload()
    again = page.get_by_role("region", name="One unit").locator("h3").evaluate("each => each.textContent")
    assert again == name
    page.evaluate("text => { location.hash = `#units?q=${text}&unit=${text}&won=${text}` }", HOSTILE[2])
    assert is_harmless(page)


def test_charts_say_them_as_they_are(page) -> None:
    chart = page.locator("#distributions svg[data-chart]").first
    chart.focus()
    tip = page.locator(".chart-tip")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        assert tip.evaluate("each => each.childElementCount") == 0
    assert is_harmless(page)


def test_findings_and_texts_to_take_away_are_whole(page) -> None:
    told = (
        page.locator("#findings .evidence")
        .first.locator("li")
        .evaluate_all("all => all.map((each) => each.textContent)")
    )
    assert told == [inert(text) for text in HOSTILE]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy Markdown table").click()
    page.get_by_text("Copied.").wait_for()
    assert is_harmless(page)
