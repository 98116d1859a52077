"""The report page opened from disk: sorting, filters, single units and restoring the state from the address."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_plus

import pytest


@pytest.fixture
def page(opened, report) -> Any:
    """The page of six tuned models."""
    return opened(report("fair"))


def column_texts(page: Any, table: str, column_index: int) -> list[str]:
    """The texts of one column, from top to bottom."""
    texts: list[str] = page.locator(f"{table} tbody tr").evaluate_all(
        "(rows, index) => rows.map((row) => row.cells[index].textContent.trim())", column_index
    )
    return texts


def unit_data(page: Any) -> dict[str, dict[str, Any]]:
    """The data of every unit in the page: its text, and the value of each system."""
    data = json.loads(page.locator("#units-data").text_content())
    names = [system["name"] for system in data["systems"]]
    return {
        unit: {
            "text": data["texts"][data["details"][index][0]],
            **{name: data["columns"][0]["values"][system_index][index] for system_index, name in enumerate(names)},
        }
        for index, unit in enumerate(data["units"])
    }


def listed_units(page: Any) -> list[str]:
    """The units in the explorer, over all its pages."""
    names: list[str] = []
    next_button = page.locator("#explorer .pager button", has_text="Next →").first
    while True:
        names += page.locator("#explorer tbody th").all_inner_texts()
        if not next_button.is_visible() or next_button.is_disabled():
            return names
        next_button.click()


def test_the_page_starts_with_the_verdict_and_has_every_section(page) -> None:
    assert page.title() == "6 models by held-out accuracy on 40 questions"
    headings = page.locator("h2").all_inner_texts()
    assert [heading.lower() for heading in headings[:3]] == ["verdict", "findings", "leaderboard"]
    section_links = page.locator("main > section").evaluate_all("all => all.map((element) => `#${element.id}`)")
    assert (
        page.locator("nav a").evaluate_all("all => all.map((element) => element.getAttribute('href'))") == section_links
    )
    top = page.locator(".verdict").bounding_box()["y"]
    assert top < page.locator("#leaderboard").bounding_box()["y"]


def test_clicks_on_a_column_sort_the_leaderboard_in_both_directions(page) -> None:
    headings = page.locator("#leaderboard thead").first.locator("th").all_inner_texts()
    value = next(index for index, heading in enumerate(headings) if heading.startswith("Held-out accuracy (%)"))
    values = column_texts(page, "#leaderboard", value)
    assert values == sorted(values, key=float, reverse=True)
    button = page.locator("#leaderboard").get_by_role("button", name="Held-out accuracy (%)")
    button.click()
    assert page.locator("#leaderboard th[aria-sort]").get_attribute("aria-sort") == "descending"
    button.click()
    assert page.locator("#leaderboard th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert column_texts(page, "#leaderboard", value) == sorted(values, key=float)
    page.locator("#leaderboard").get_by_role("button", name="Model").click()
    names = [name.split()[-1] for name in column_texts(page, "#leaderboard", 0)]
    assert names == sorted(names)


def test_deselected_systems_are_hidden_in_every_table(page) -> None:
    boxes = page.locator("#shown input")
    rows = page.locator("#leaderboard tbody tr:visible")
    assert boxes.count() == rows.count() == 6
    boxes.nth(2).uncheck()
    assert rows.count() == 5
    assert page.locator("[data-systems~='2']:visible").count() == 0
    boxes.nth(2).check()
    assert rows.count() == 6


def test_the_leaderboard_is_that_of_the_selected_metric(opened, report) -> None:
    page = opened(report("partial"))
    metrics = page.locator("#shown option").all_inner_texts()
    assert len(metrics) > 1
    page.locator("#shown select").select_option(label=metrics[1])
    visible = page.locator("#leaderboard .board:visible")
    assert visible.count() == 1
    assert visible.get_by_role("button", name=metrics[1]).is_visible()
    for section in ("#pairwise", "#distributions"):
        parts = page.locator(f"{section} [data-metric]:visible")
        assert set(parts.evaluate_all("all => all.map((part) => part.dataset.metric)")) == {metrics[1]}


def test_a_page_of_one_system_has_a_choice_of_the_metric(opened, report) -> None:
    page = opened(report("single"))
    metrics = page.locator("#shown option").all_inner_texts()
    assert len(metrics) > 1
    assert page.locator("#shown input").count() == 0
    page.locator("#shown select").select_option(label=metrics[1])
    assert page.locator("#leaderboard .board:visible").get_by_role("button", name=metrics[1]).is_visible()


def test_a_table_that_is_wider_than_its_card_says_so(opened, report) -> None:
    page = opened(report("fair"), viewport={"width": 500, "height": 900})
    matrix = page.locator("#pairwise .wide:has(.matrix)")
    hint = page.locator("#pairwise .sideways:has(+ .wide .matrix)")
    assert matrix.evaluate("element => element.scrollWidth > element.clientWidth")
    hint.wait_for(state="visible")
    page.set_viewport_size({"width": 1900, "height": 900})
    hint.wait_for(state="hidden")


def test_sorting_the_slices_keeps_the_groups(page) -> None:
    n_groups = page.locator("#slices tbody").count()
    assert n_groups == 2
    page.locator("#slices thead").get_by_role("button").nth(1).click()
    for index in range(n_groups):
        body = page.locator("#slices tbody").nth(index)
        assert body.locator("tr").first.get_attribute("class") == "group"
        sizes = [int(n.split()[0]) for n in body.locator("tr:not(.group) td:nth-child(2)").all_inner_texts()]
        assert sizes == sorted(sizes, reverse=True)


def test_search_finds_units_by_words_of_their_text(page) -> None:
    units_by_id = unit_data(page)
    word = next(iter(units_by_id.values()))["text"].split()[2]
    page.get_by_label("Search").fill(word.upper())
    expected = {unit for unit, data in units_by_id.items() if word.lower() in data["text"].lower()}
    matches = listed_units(page)
    assert set(matches) == expected
    assert page.locator("#explorer [role=status]").inner_text().startswith(f"{len(expected)} of 40 questions")
    page.get_by_role("button", name="Clear").click()
    assert len(listed_units(page)) == 40


def test_units_are_filtered_by_winner_and_loser(page) -> None:
    units_by_id = unit_data(page)
    best, worst = filter_won_and_lost(page)
    expected = {unit for unit, values in units_by_id.items() if values[best] > values[worst]}
    assert expected
    assert set(listed_units(page)) == expected


def filter_won_and_lost(page: Any) -> tuple[str, str]:
    """Filter by units won by the first system and lost by the last; return both names."""
    names: list[str] = page.locator(".tie-groups .name").all_inner_texts()
    page.get_by_label("Won by").select_option(label=f"A {names[0]}")
    page.get_by_label("Lost by").select_option(label=f"F {names[-1]}")
    return names[0], names[-1]


def test_a_unit_shows_the_retrieved_items_and_marks_relevant_ones(page) -> None:
    unit = listed_units(page)[0]
    page.get_by_role("button", name="← Previous", exact=True).click()
    page.get_by_role("link", name=unit, exact=True).click()
    panel = page.get_by_role("region", name="One question")
    assert panel.locator("h3").inner_text() == unit
    assert panel.locator(".question").inner_text() == unit_data(page)[unit]["text"]
    sides = panel.locator(".side")
    assert sides.count() == 6
    answer = panel.locator("ul li").first.inner_text()
    for index in range(6):
        side = sides.nth(index)
        assert side.locator("ol > li").count() > 0
        for relevant_item in side.locator("li.right").all():
            assert answer.lower() in relevant_item.inner_text().lower()
            assert "✓ relevant" in relevant_item.inner_text()
    panel.get_by_role("button", name="Next question →").click()
    assert panel.locator("h3").inner_text() != unit


def test_the_address_restores_the_unit_and_the_filters(page, opened) -> None:
    best, _ = filter_won_and_lost(page)
    page.get_by_label("Search").fill("what")
    unit = page.locator("#explorer tbody th").first.inner_text()
    page.get_by_role("link", name=unit, exact=True).click()
    address = page.url
    assert f"unit={unit}" in address
    assert f"won={best}" in unquote_plus(address)
    visible = listed_units(page)
    for tab in (opened(address), page):
        if tab is page:
            page.reload()
        assert tab.get_by_label("Search").input_value() == "what"
        assert tab.get_by_role("region", name="One question").locator("h3").inner_text() == unit
        assert listed_units(tab) == visible


def test_navigation_links_scroll_to_their_section(page) -> None:
    page.get_by_role("navigation").get_by_role("link", name="Findings").click()
    page.wait_for_function("document.querySelector('nav a[aria-current]')?.hash === '#findings'")
    assert page.url.endswith("#findings")
    assert page.locator("#findings").bounding_box()["y"] < 720


def test_search_and_paging_work_with_ten_thousand_units(opened, report) -> None:
    page = opened(report("large"))
    page.get_by_label("Search").fill("q12")
    assert page.locator("#explorer [role=status]").inner_text().startswith("111 of 10,000 units")
    page.get_by_role("button", name="Next →", exact=True).click()
    assert "21 to 40 of 111" in page.locator("#explorer .pager").first.inner_text()
    page.get_by_label("Won by").select_option(index=1)
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#explorer [role=status]").inner_text().startswith("10,000 of 10,000 units")


def test_pages_of_a_single_run_and_of_partial_runs_open(opened, report) -> None:
    single = opened(report("single"))
    assert single.locator("#leaderboard h2").inner_text() == "Scores"
    assert single.get_by_label("Won by").count() == 0
    partial = opened(report("partial"))
    assert partial.locator(".caution").first.is_visible()
    assert "Undefined" in partial.locator("#leaderboard thead").first.inner_text()
    partial.locator("#explorer tbody a").first.click()
    assert "are not in this report" in partial.get_by_role("region", name="One unit").inner_text()
