"""Take the screenshot of the README: the leaderboard of the report that `eq demo` writes.

python scripts/take_picture.py equipoise-demo/report.html          rewrites docs/images/report.png
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SCREENSHOT = Path(__file__).parents[1] / "docs" / "images" / "report.png"
SECTION = "#leaderboard"
WIDTH, HEIGHT = 1280, 960
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def main() -> None:
    """Open the page, and store an image of the section, at most one screen high."""
    page_file = Path(sys.argv[1]).resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(page_file.as_uri())
        box = page.locator(SECTION).bounding_box()
        assert box is not None, f"the report has no section {SECTION}"
        SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
        clip = {"x": 0, "y": box["y"] - 8, "width": WIDTH, "height": min(box["height"] + 16, HEIGHT)}
        page.screenshot(path=SCREENSHOT, full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main()
