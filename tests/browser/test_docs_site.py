"""The documentation is built with the settings of mkdocs.yml, and can be opened and searched from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marked import marked

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "# Start\n\nWelcome.\n\n::: equipoise.stats.intervals.wilson_interval\n",
    "bands.md": "# Tie bands\n\nSystems that are not significantly different share a letter.\n",
}


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("mkdocs", "material", "mkdocstrings"), pytest.mark.slow)
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small site with the theme, plugins and assets of the documentation, without the hooks that run examples."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("docs")
    (folder / "assets").symlink_to(ROOT / "docs" / "assets")
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    target = tmp_path_factory.mktemp("site")
    settings = {"docs_dir": str(folder), "site_dir": str(target), "hooks": [], "nav": [*PAGES]}
    config = load_config(str(ROOT / "mkdocs.yml"), **settings)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return target


def test_the_docstring_of_a_public_function_is_shown(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "wilson_interval" in page
    assert "Number of successes" in page


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'src="http' not in page
    assert '<link href="http' not in page


@pytest.mark.slow
def test_search_works_in_a_page_that_is_opened_from_disk(site: Path, browser: Any) -> None:
    requests: list[str] = []
    tab = browser.new_page()
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto((site / "index.html").as_uri())
    tab.locator("[data-md-component=search-query]").click()
    tab.locator("[data-md-component=search-query]").press_sequentially("letter")
    hit = tab.locator(".md-search-result__item").first
    hit.wait_for()
    assert "Tie bands" in hit.inner_text()
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    tab.close()
