"""The page of a leaderboard in a browser: accessible, with tooltips on the chart."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from equipoise.config import StatsConfig
from equipoise.domains.bench.leaderboard import leaderboard

MTEB = Path(str(files("equipoise.io") / "samples" / "mteb_2022.csv"))


def test_the_page_of_a_leaderboard_has_no_violation_and_fits(tmp_path, opened, violations) -> None:
    file = tmp_path / "page.html"
    leaderboard(MTEB, missing="models", config=StatsConfig(n_resamples=200)).report(file)
    page = opened(file.as_uri())
    assert violations(page) == []
    assert page.locator("svg[data-chart=ranks]").count() == 1
    page.set_viewport_size({"width": 480, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
