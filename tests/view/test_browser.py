"""The list in a real browser: filter, sort, choose, compare, live, and nothing that should not happen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from equipoise.run.progress import reported

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
HOSTILE = "<script>document.title='broken'</script>"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    with playwright.sync_playwright() as engine:
        found = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser) -> Iterator[Any]:
    """A tab that fails the test when a script fails, or a request leaves this machine."""
    with browser.new_context() as context:
        tab = context.new_page()
        faults: list[str] = []
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        tab.on("request", lambda sent: faults.append(sent.url) if not _local(sent.url) else None)
        yield tab
        assert faults == []


def _local(address: str) -> bool:
    return address.startswith(("http://127.0.0.1:", "data:"))


def systems(page: Any) -> list[str]:
    """The systems that can be seen, from top to bottom."""
    seen: list[str] = page.locator("#runs tbody tr:visible th a").all_inner_texts()
    return seen


def test_runs_are_filtered_sorted_chosen_and_compared(tmp_path: Path, serve, store, page) -> None:
    store(tmp_path / "minilm", day=1)
    store(tmp_path / "bm25", worse=3, day=2)
    store(tmp_path / "use", f"use{HOSTILE}", worse=1, day=3)
    served = serve(tmp_path)
    page.goto(f"http://127.0.0.1:{served.port}/")
    assert systems(page) == [f"use{HOSTILE}", "bm25", "minilm"]
    page.get_by_role("button", name="Value").click()
    assert systems(page) == ["minilm", f"use{HOSTILE}", "bm25"]
    page.get_by_role("button", name="System").click()
    assert systems(page)[0] == "bm25"
    page.get_by_label("Filter").fill("MRR bm2")
    assert systems(page) == ["bm25"]
    assert page.locator("#count").inner_text() == "1 of 3 runs"
    page.get_by_label("Filter").fill("")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare 3 runs").click()
    assert "3 systems by MRR on 30 units" in page.locator("h1").inner_text()
    assert page.title() == "3 systems by MRR on 30 units"
    page.get_by_role("link", name="All runs").click()
    assert len(systems(page)) == 3


def test_what_happens_in_the_folder_is_drawn_and_what_was_ticked_stays(
    tmp_path: Path, serve, store, page
) -> None:
    served = serve(tmp_path)
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.get_by_text("There is no run here yet").wait_for()
    with reported(tmp_path, f"fair{HOSTILE}", 4) as step:
        step("one")
        step("two")
        page.get_by_text(f"fair{HOSTILE} is running: step 1 of 4 done").wait_for()
        store(tmp_path / "first", day=1)
        page.get_by_role("checkbox", name="Choose first").check()
        store(tmp_path / "second", day=2)
        page.get_by_role("checkbox", name="Choose second").wait_for()
    assert page.get_by_role("checkbox", name="Choose first").is_checked()
    assert not page.get_by_role("checkbox", name="Choose second").is_checked()
    page.get_by_text("is running").wait_for(state="detached")
    assert page.title() == "2 runs – equipoise"
