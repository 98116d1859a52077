"""axe-core finds no violations in light and dark mode, with all folds open."""

from __future__ import annotations

import pytest

from equipoise.runs.progress_file import report_progress
from sample_pages import KINDS

UNFOLD = """document.querySelectorAll("details:not(#tuning > details.fold ~ details.fold, .also-table)")
    .forEach((element) => { element.open = true })"""
"""Open all folds except further tunings and the tables of charts, which other tests cover."""
COLOURS = ("color-contrast", "link-in-text-block")
"""The only rules that can fail in dark mode alone."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_page_has_no_violation(opened, report, violations, kind: str) -> None:
    page = opened(report(kind))
    if kind != "large":  # its folds have the same elements as those of the other pages, only more of them
        page.evaluate(UNFOLD)
    page.locator("#explorer tbody a").nth(3).click()
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, *COLOURS) == []


def test_the_viewer_has_no_violation(tmp_path, serve, store, opened, violations) -> None:
    store(tmp_path / "minilm", day=1, details=True)
    store(tmp_path / "bm25", worse=3, day=2)
    (store(tmp_path / "bad") / "manifest.json").write_text("{")
    served = serve(tmp_path)
    home = f"http://127.0.0.1:{served.port}/"
    with report_progress(tmp_path, "fair", 4) as step:
        step("one")
        step("two")
        page = opened(home)
        page.get_by_text("is running").wait_for()
        for path in ("", "report?run=minilm&run=bm25"):
            if path:
                page.goto(home + path)
            page.evaluate(UNFOLD)
            assert violations(page) == [], path
            page.emulate_media(color_scheme="dark")
            assert violations(page, *COLOURS) == [], path
            page.emulate_media(color_scheme="light")
