"""The page of scored next-place systems in a browser: accessible, with all charts of every system."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.places.demo import PlacesDemo
from equipoise.domains.places.run_folders import write_places_page
from equipoise.domains.places.score import score_places
from equipoise.report.publish import ReportOptions
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import save_run
from marked import marked


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("playwright"), pytest.mark.browser("chromium"), pytest.mark.slow)
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two systems, the second one with noise."""
    folder = tmp_path_factory.mktemp("places")
    demo = PlacesDemo.of(users=12, days=14, places=60)
    runs: list[tuple[str, Path]] = []
    for name, noise in (("markov", 0.0), ("noisy", 2.0)):
        logits = demo.logits + np.random.default_rng(0).normal(0.0, noise, demo.logits.shape)
        scores = score_places(
            logits,
            demo.cases.targets,
            users=demo.cases.users,
            history=demo.learned,
            coordinates=demo.coordinates,
            system=name,
            config=StatsConfig(n_resamples=100),
        )
        run = save_run(folder / name, scores.all, manifest=Manifest.start(name).finish())
        scores.view(charts=True).write(run)
        runs.append(("", Path(run)))
    write_places_page(runs, folder / "page.html", ReportOptions())
    return (folder / "page.html").as_uri()


def test_the_page_has_no_violation_every_chart_and_fits(address, opened, violations) -> None:
    page = opened(address)
    assert violations(page) == []
    for chart in ("accuracy-over-k", "rank-distribution", "reliability-", "confusion-", "error-map-"):
        assert page.locator(f"svg[data-chart^={chart}]").count() >= 2, chart
    assert "2 systems by Acc@1" in page.locator("h2").all_inner_texts()
    page.set_viewport_size({"width": 480, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []


def test_a_deselected_system_is_hidden(address, opened) -> None:
    page = opened(address)
    assert page.locator("section:visible").count() == 5
    page.locator("#shown").get_by_label("noisy").uncheck()
    assert page.locator("section:visible").count() == 4
    assert page.get_by_role("cell", name="noisy", exact=True).count() == 0
