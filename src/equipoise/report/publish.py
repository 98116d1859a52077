"""Runs from disk to one page on disk: read, compared, built and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.data.atomic import write_text
from equipoise.data.text import PathLike
from equipoise.extras import install_command
from equipoise.types import need

if TYPE_CHECKING:
    from equipoise.report.page.model import Page

STEPS = 4


def publish(
    runs: Sequence[tuple[str, Path]],
    output: PathLike,
    *,
    primary: str | None = None,
    test: str = "randomisation",
    correction: str = "holm",
    seed: int = 0,
    charts: bool = True,
    pictures: PathLike | None = None,
    step: Callable[[str], None] = lambda what: None,
) -> Page:
    """Write the page of these runs, each with the name it is to have there, and return what it shows.

    A folder for ``pictures`` gets the charts as files, PNG and SVG.
    """
    if pictures is not None:
        need("vl_convert", extra="report")
    from equipoise.report.charts.render import write_charts
    from equipoise.report.html.render import html_page
    from equipoise.report.page.build import build_page
    from equipoise.report.page.gather import comparison_of, read_runs

    step(f"reading {len(runs)} runs")
    stored = read_runs(runs, primary)
    step("comparing")
    comparison = comparison_of(stored, primary=primary, test=test, correction=correction, seed=seed)
    step("building the page")
    page = build_page(stored, comparison)
    step("writing it")
    text = html_page(page, charts=charts)
    if pictures is not None:
        write_charts(page, pictures)
    write_text(output, text)
    return page


def chart_note() -> str:
    """The end of a message about a page that has no charts, because their converter is not installed."""
    return "" if find_spec("vl_convert") else f". For charts in it: {install_command('report')}"
