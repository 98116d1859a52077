"""The viewer: filtering, sorting, selection, comparison, live updates, and no injected scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from equipoise.runs.progress_file import report_progress
from hostile import FLAG, HOSTILE


def home(served: Any) -> str:
    """The list of runs. Without the query, runs on the same data are compared at once."""
    return f"http://127.0.0.1:{served.port}/?list"


def systems(page: Any) -> list[str]:
    """The visible systems, from top to bottom."""
    names: list[str] = page.locator("#runs tbody tr:visible th a").all_inner_texts()
    return names


def wait_until(page: Any, condition: Callable[[], bool]) -> None:
    """Advance the clock of the page until a condition holds; the page polls the folder every two seconds."""
    for _ in range(100):
        if condition():
            return
        page.clock.run_for(2000)
        page.wait_for_timeout(100)
    raise AssertionError("the condition did not hold in time")


def test_runs_are_filtered_sorted_selected_and_compared(tmp_path: Path, serve, store, opened) -> None:
    store(tmp_path / "minilm", day=1)
    store(tmp_path / "bm25", worse=3, day=2)
    store(tmp_path / "use", f"use{HOSTILE[0]}", worse=1, day=3)
    page = opened(home(serve(tmp_path)))
    assert systems(page) == [f"use{HOSTILE[0]}", "bm25", "minilm"]
    page.get_by_role("button", name="Value").click()
    assert systems(page) == ["minilm", f"use{HOSTILE[0]}", "bm25"]
    page.get_by_role("button", name="System").click()
    assert systems(page)[0] == "bm25"
    page.get_by_label("Filter").fill("MRR bm2")
    assert systems(page) == ["bm25"]
    assert page.locator("#count").inner_text() == "1 of 3 runs"
    page.get_by_label("Filter").fill("")
    page.get_by_role("checkbox", name="Select all runs on truth.qrels").check()
    page.get_by_role("button", name="Compare 3 runs").click()
    assert page.locator("h1").inner_text() == "3 systems by MRR on 30 queries"
    page.get_by_text("Systems, order and download").click()
    page.get_by_role("link", name="HR@1", exact=True).click()
    assert page.title() == "3 systems by HR@1 on 30 queries"
    page.get_by_role("link", name="All runs").click()
    assert len(systems(page)) == 3
    assert page.evaluate(f"window.{FLAG} === undefined")


def test_a_file_is_downloaded_from_the_page(tmp_path: Path, serve, store, opened) -> None:
    store(tmp_path / "minilm")
    page = opened(home(serve(tmp_path)).replace("?list", "report?run=minilm"))
    page.locator(".viewer summary").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="LaTeX table").click()
    assert download.value.suggested_filename == "table.tex"
    assert "\\begin{" in Path(download.value.path()).read_text()


def test_changes_of_the_folder_are_shown_and_the_selection_is_preserved(tmp_path: Path, serve, store, opened) -> None:
    address = home(serve(tmp_path))
    page = opened(address)
    page.clock.install()
    page.goto(address)
    page.get_by_text("There are no runs here yet").wait_for()
    first = page.get_by_role("checkbox", name="Select first")
    second = page.get_by_role("checkbox", name="Select second")
    with report_progress(tmp_path, f"fair{HOSTILE[0]}", 4) as step:
        step("one")
        step("two")
        wait_until(page, page.get_by_text(f"fair{HOSTILE[0]} is running: 1 of 4 steps finished").is_visible)
        store(tmp_path / "first", day=1)
        wait_until(page, first.is_visible)
        first.check()
        store(tmp_path / "second", day=2)
        wait_until(page, second.is_visible)
    assert first.is_checked()
    assert not second.is_checked()
    wait_until(page, page.get_by_text("is running").is_hidden)
    assert page.title() == "2 runs – equipoise"
    assert page.evaluate(f"window.{FLAG} === undefined")


def test_the_list_fits_a_phone_without_horizontal_scrolling(tmp_path: Path, serve, store, opened) -> None:
    store(tmp_path / "a-run-with-quite-a-long-name-for-a-small-screen")
    page = opened(home(serve(tmp_path)), viewport={"width": 375, "height": 812})
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    box = page.get_by_role("checkbox")
    box.focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Show the selected run").focus()
    page.keyboard.press("Enter")
    page.locator(".verdict").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_runs_on_the_same_data_open_as_a_comparison(tmp_path: Path, serve, store, opened) -> None:
    for name, worse in (("minilm", 0), ("bm25", 3), ("use", 1)):
        store(tmp_path / name, worse=worse)
    page = opened(home(serve(tmp_path)).removesuffix("?list"))
    page.locator(".verdict").wait_for()
    assert page.locator("h1").inner_text() == "3 systems by MRR on 30 queries"
    page.get_by_role("link", name="All runs").click()
    compare_button = page.get_by_role("button", name="Compare 3 runs")
    compare_button.wait_for()
    assert len(systems(page)) == 3
    page.reload()
    compare_button.wait_for()
    assert page.locator("input[name=run]:checked").count() == 3


def test_runs_on_different_units_open_as_a_list(tmp_path: Path, serve, store, opened) -> None:
    store(tmp_path / "minilm")
    store(tmp_path / "bm25", units=["other"])
    page = opened(home(serve(tmp_path)).removesuffix("?list"))
    page.get_by_text("2 runs", exact=True).wait_for()
    assert len(systems(page)) == 2


def test_systems_are_hidden_and_shown_in_a_comparison(tmp_path: Path, serve, store, opened) -> None:
    for name, worse in (("minilm", 0), ("bm25", 3), ("use", 1)):
        store(tmp_path / name, worse=worse)
    page = opened(home(serve(tmp_path)).replace("?list", "report?run=minilm&run=bm25&run=use"))
    page.locator(".viewer summary").click()
    page.get_by_role("link", name="Hide bm25").click()
    assert page.locator("h1").inner_text().startswith("2 systems by MRR")
    page.locator(".viewer summary").click()
    page.get_by_role("link", name="Show bm25").click()
    assert page.locator("h1").inner_text() == "3 systems by MRR on 30 queries"


def test_the_metric_and_the_systems_in_the_tables_are_in_the_address(tmp_path: Path, serve, store, opened) -> None:
    for name, worse in (("minilm", 0), (f"bm25{HOSTILE[0]}", 3), ("use", 1)):
        store(tmp_path / name.split("<")[0], name, worse=worse)
    page = opened(home(serve(tmp_path)).removesuffix("?list"))
    page.locator("#shown input").nth(2).uncheck()
    page.locator("#shown select").select_option(index=1)
    other = opened(page.evaluate("location.href"))
    other.locator(".board:visible").wait_for()
    assert other.locator("#shown option:checked").inner_text() == page.locator("#shown option").nth(1).inner_text()
    assert not other.locator("#shown input").nth(2).is_checked()
    assert other.locator(".board:visible tbody tr:visible").count() == 2
    other.locator("#shown input").nth(2).check()
    assert other.locator(".board:visible tbody tr:visible").count() == 3
    assert "hidden=" not in other.evaluate("location.search")


def test_filter_order_and_selection_are_in_the_address(tmp_path: Path, serve, store, opened) -> None:
    for name, worse in (("small-a", 0), ("small-b", 3), ("large", 1)):
        store(tmp_path / name, worse=worse)
    page = opened(home(serve(tmp_path)))
    page.get_by_role("button", name="Value").click()
    page.get_by_role("checkbox", name="Select small-b").check()
    page.get_by_label("Filter").fill("small")
    other = opened(page.evaluate("location.href"))
    other.get_by_text("2 of 3 runs").wait_for()
    assert systems(other) == systems(page) == ["small-a", "small-b"]
    assert other.get_by_label("Filter").input_value() == "small"
    assert other.get_by_role("checkbox", name="Select small-b").is_checked()
    assert other.get_by_role("button", name="Show the selected run").is_enabled()


def test_all_shown_runs_are_selected_at_once(tmp_path: Path, serve, store, opened) -> None:
    for name in ("small-a", "small-b", "large"):
        store(tmp_path / name)
    page = opened(home(serve(tmp_path)))
    page.get_by_label("Filter").fill("small")
    all_runs = page.get_by_role("checkbox", name="Select all runs", exact=True)
    all_runs.check()
    assert page.locator("input[name=run]:checked").count() == 2
    page.get_by_role("checkbox", name="Select small-b").uncheck()
    assert all_runs.evaluate("(box) => box.indeterminate")
    page.get_by_role("button", name="Show the selected run").wait_for()
