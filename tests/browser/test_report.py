"""The page from the disk: it opens, sorts, filters, shows a unit, and an address brings it back."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_plus

import pytest


@pytest.fixture
def page(opened, report) -> Any:
    """The page of six tuned models."""
    return opened(report("fair"))


def column(page: Any, table: str, place: int) -> list[str]:
    """The texts of one column, from top to bottom."""
    found: list[str] = page.locator(f"{table} tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.cells[place].textContent.trim())", place
    )
    return found


def units(page: Any) -> dict[str, dict[str, Any]]:
    """What the page itself knows of every unit: its text, and whether each system answered."""
    data = json.loads(page.locator("#units-data").text_content())
    names = [system["name"] for system in data["systems"]]
    return {
        unit: {
            "text": data["texts"][data["details"][place][0]],
            **{name: data["columns"][0]["values"][at][place] for at, name in enumerate(names)},
        }
        for place, unit in enumerate(data["units"])
    }


def listed(page: Any) -> list[str]:
    """The units that the explorer shows, over all its pages."""
    found: list[str] = []
    following = page.locator("#explorer .pager button", has_text="Next →").first
    while True:
        found += page.locator("#explorer tbody th").all_inner_texts()
        if not following.is_visible() or following.is_disabled():
            return found
        following.click()


def test_it_opens_with_the_verdict_and_the_findings_and_has_every_part(page) -> None:
    assert page.title() == "6 models by held-out accuracy on 40 questions"
    heads = page.locator("h2").all_inner_texts()
    assert [head.lower() for head in heads[:3]] == ["verdict", "findings", "leaderboard"]
    parts = page.locator("main > section").evaluate_all("all => all.map((each) => `#${each.id}`)")
    assert page.locator("nav a").evaluate_all("all => all.map((each) => each.getAttribute('href'))") == parts
    top = page.locator(".verdict").bounding_box()["y"]
    assert top < page.locator("#leaderboard").bounding_box()["y"]


def test_the_league_is_sorted_by_a_click_and_the_other_way_by_another(page) -> None:
    heads = page.locator("#leaderboard thead").first.locator("th").all_inner_texts()
    value = next(at for at, head in enumerate(heads) if head.startswith("Held-out accuracy (%)"))
    before = column(page, "#leaderboard", value)
    assert before == sorted(before, key=float, reverse=True)
    button = page.locator("#leaderboard").get_by_role("button", name="Held-out accuracy (%)")
    button.click()
    assert page.locator("#leaderboard th[aria-sort]").get_attribute("aria-sort") == "descending"
    button.click()
    assert page.locator("#leaderboard th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert column(page, "#leaderboard", value) == sorted(before, key=float)
    page.locator("#leaderboard").get_by_role("button", name="System").click()
    names = [name.split()[-1] for name in column(page, "#leaderboard", 0)]
    assert names == sorted(names)


def test_a_system_that_is_not_selected_is_in_no_table(page) -> None:
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
    shown = page.locator("#leaderboard .board:visible")
    assert shown.count() == 1
    assert shown.get_by_role("button", name=metrics[1]).is_visible()


def test_slices_are_sorted_within_each_of_them(page) -> None:
    groups = page.locator("#slices tbody").count()
    assert groups == 2
    page.locator("#slices thead").get_by_role("button").nth(1).click()
    for place in range(groups):
        body = page.locator("#slices tbody").nth(place)
        assert body.locator("tr").first.get_attribute("class") == "group"
        sizes = [int(n.split()[0]) for n in body.locator("tr:not(.group) td:nth-child(2)").all_inner_texts()]
        assert sizes == sorted(sizes, reverse=True)


def test_units_are_found_by_their_words(page) -> None:
    known = units(page)
    word = next(iter(known.values()))["text"].split()[2]
    page.get_by_label("Search").fill(word.upper())
    expected = {unit for unit, each in known.items() if word.lower() in each["text"].lower()}
    found = listed(page)
    assert set(found) == expected
    assert page.locator("#explorer [role=status]").inner_text().startswith(f"{len(expected)} of 40 questions")
    page.get_by_role("button", name="Clear").click()
    assert len(listed(page)) == 40


def test_units_are_found_by_who_won_and_who_lost(page) -> None:
    known = units(page)
    best, worst = won_and_lost(page)
    expected = {unit for unit, each in known.items() if each[best] > each[worst]}
    assert expected
    assert set(listed(page)) == expected


def won_and_lost(page: Any) -> tuple[str, str]:
    """Choose what the first system won and the last lost, and say who they are."""
    names: list[str] = page.locator(".tie-groups .name").all_inner_texts()
    page.get_by_label("Won by").select_option(label=f"A {names[0]}")
    page.get_by_label("Lost by").select_option(label=f"F {names[-1]}")
    return names[0], names[-1]


def test_a_unit_shows_what_each_system_retrieved_and_marks_the_right_answers(page) -> None:
    unit = listed(page)[0]
    page.get_by_role("button", name="← Previous", exact=True).click()
    page.get_by_role("link", name=unit, exact=True).click()
    panel = page.get_by_role("region", name="One question")
    assert panel.locator("h3").inner_text() == unit
    assert panel.locator(".question").inner_text() == units(page)[unit]["text"]
    sides = panel.locator(".side")
    assert sides.count() == 6
    answer = panel.locator("ul li").first.inner_text()
    for place in range(6):
        side = sides.nth(place)
        assert side.locator("ol > li").count() > 0
        for right in side.locator("li.right").all():
            assert answer.lower() in right.inner_text().lower()
            assert "✓ relevant" in right.inner_text()
    panel.get_by_role("button", name="Next question →").click()
    assert panel.locator("h3").inner_text() != unit


def test_an_address_brings_back_the_unit_and_the_filters(page, opened) -> None:
    best, _ = won_and_lost(page)
    page.get_by_label("Search").fill("what")
    unit = page.locator("#explorer tbody th").first.inner_text()
    page.get_by_role("link", name=unit, exact=True).click()
    address = page.url
    assert f"unit={unit}" in address
    assert f"won={best}" in unquote_plus(address)
    shown = listed(page)
    for again in (opened(address), page):
        if again is page:
            page.reload()
        assert again.get_by_label("Search").input_value() == "what"
        assert again.get_by_role("region", name="One question").locator("h3").inner_text() == unit
        assert listed(again) == shown


def test_a_link_within_the_page_takes_the_reader_there(page) -> None:
    page.get_by_role("navigation").get_by_role("link", name="Findings").click()
    page.wait_for_function("document.querySelector('nav a[aria-current]')?.hash === '#findings'")
    assert page.url.endswith("#findings")
    assert page.locator("#findings").bounding_box()["y"] < 720


def test_ten_thousand_units_are_searched_and_turned_over(opened, report) -> None:
    page = opened(report("large"))
    page.get_by_label("Search").fill("q12")
    assert page.locator("#explorer [role=status]").inner_text().startswith("111 of 10,000 units")
    page.get_by_role("button", name="Next →", exact=True).click()
    assert "21 to 40 of 111" in page.locator("#explorer .pager").first.inner_text()
    page.get_by_label("Won by").select_option(index=1)
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#explorer [role=status]").inner_text().startswith("10,000 of 10,000 units")


def test_one_run_alone_and_one_cut_short_open_as_well(opened, report) -> None:
    alone = opened(report("single"))
    assert alone.locator("#leaderboard h2").inner_text() == "Scores"
    assert alone.get_by_label("Won by").count() == 0
    cut = opened(report("partial"))
    assert cut.locator(".caution").first.is_visible()
    assert "Undefined" in cut.locator("#leaderboard thead").first.inner_text()
    cut.locator("#explorer tbody a").first.click()
    assert "are not in this report" in cut.get_by_role("region", name="One unit").inner_text()
