"""The page of a benchmark with several data sets in a browser: leaderboards, links, and no violations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from equipoise import bench
from equipoise.config import StatsConfig
from equipoise.domains.bench.report import write_suite_page
from equipoise.report.publish import ReportOptions
from equipoise.runs.run_folder import find_runs
from marked import marked

WORDS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink")


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("playwright"), pytest.mark.browser("chromium"), pytest.mark.slow)
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two data sets."""
    folder = tmp_path_factory.mktemp("bench")
    rows = [{"query": f"{WORDS[n % 8]} {n}", "positive": f"{WORDS[n % 8]} {n} and more"} for n in range(40)]
    data = [bench.Retrieval(rows, name=name) for name in ("first", "second")]
    bench.compare(["hash"], data, output=folder / "out", config=StatsConfig(n_resamples=100), cache=False)
    write_suite_page(folder / "out", find_runs(folder / "out"), folder / "page.html", ReportOptions(title="Colours"))
    return (folder / "page.html").as_uri()


def test_the_page_has_no_violation_and_its_leaderboards_fit(
    address: str, opened: Callable[..., Any], violations: Callable[..., Any]
) -> None:
    page = opened(address)
    assert violations(page) == []
    for width in (1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        for table in page.locator(".board:visible .wide, section > .wide").all():
            assert table.evaluate("element => element.scrollWidth <= element.clientWidth")


def test_the_metric_is_chosen_for_every_data_set(address: str, opened: Callable[..., Any]) -> None:
    page = opened(address)
    metrics = page.locator("#shown option").all_inner_texts()
    page.locator("#shown select").select_option(label=metrics[-1])
    boards = page.locator(".board:visible")
    assert boards.evaluate_all("all => all.map((board) => board.dataset.metric)") == [metrics[-1]] * 2


def test_the_pages_are_titled_and_linked_in_both_directions(address: str, opened: Callable[..., Any]) -> None:
    assert opened(address).locator("h1").inner_text() == "Colours"
    page = opened(address.replace("page.html", "page-first.html"))
    assert page.locator("h1").inner_text() == "Colours: first"
    links = page.locator("header a").evaluate_all("all => all.map((link) => link.getAttribute('href'))")
    assert links == ["page.html", "page-second.html"]
