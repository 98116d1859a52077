"""Runs from disk to one page on disk: read, compared, built and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import EquipoiseError
from equipoise.extras import install_command
from equipoise.io.atomic import write_text
from equipoise.report.export import export
from equipoise.report.html import charts as interactive
from equipoise.report.html.render import content_security_policy
from equipoise.report.view_model import Download
from equipoise.stats.formatting import format_count
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.report.build import RunSet
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view_model import Page

STEPS = 4


def write_report(
    runs: Sequence[tuple[str, Path]],
    output: PathLike,
    *,
    primary: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
    charts: bool = True,
    pictures: PathLike | None = None,
    step: Callable[[str], None] = lambda what: None,
) -> Page:
    """Write the page of these runs, each with the name it is to have there, and return what it shows.

    A folder for ``pictures`` gets the charts as files, PNG and SVG.
    """
    if pictures is not None:
        require_extra("vl_convert", extra="report")
    from equipoise.report.build import build_page, compare_runs, read_runs
    from equipoise.report.charts.render import write_charts
    from equipoise.report.html.render import render_html

    step(f"reading {len(runs)} runs")
    stored = read_runs(runs, primary)
    step("comparing")
    comparison = compare_runs(stored, primary=primary, config=config)
    step("building the page")
    page = build_page(stored, comparison)
    step("writing it")
    text = render_html(page, charts=charts)
    if pictures is not None:
        write_charts(page, pictures)
    write_text(output, text)
    return page


def chart_note() -> str:
    """The end of a message about a page that has no charts, because their converter is not installed."""
    return "" if find_spec("vl_convert") else f". For charts in it: {install_command('report')}"


# A few charts as one HTML file: drawings, style and script inside it, and nothing fetched.

_LOOK = """\
:root{color-scheme:light dark}
body{margin:0 auto;max-width:60rem;padding:1.5rem;font-family:sans-serif;line-height:1.45;
background:var(--chart-paper);color:var(--chart-ink)}
h1{font-size:1.3rem}figure{margin:0 0 2.5rem;overflow-x:auto}
p{color:var(--chart-soft);font-size:.9rem}
"""


def charts_html(title: str, text: str, charts: Sequence[Chart]) -> str:
    """The page as text; pointing at a mark shows what it says. The same charts give the same bytes."""
    style, script = interactive.chart_style() + _LOOK, interactive.chart_script()
    figures = "\n".join(f"<figure>{interactive.embed_chart(chart)['svg']}</figure>" for chart in charts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n{figures}\n<script>{script}</script>\n"
        "</body>\n</html>\n"
    )


# Texts to take away: the same figures for a paper, a table, a program and a model's card.

MAX_DOWNLOAD_BYTES = 150_000
"""A longer text would outweigh the page; ``eq export`` writes it."""

DOWNLOAD_FORMATS = (
    ("latex", "LaTeX table", "table.tex", "application/x-tex"),
    ("md", "Markdown table", "table.md", "text/markdown"),
    ("csv", "CSV", "figures.csv", "text/csv"),
    ("json", "JSON", "report.json", "application/json"),
    ("card", "Model card", "card.yaml", "application/yaml"),
    ("bibtex", "BibTeX of metrics and data", "references.bib", "application/x-bibtex"),
)


def export_downloads(subject: RunSet) -> tuple[tuple[Download, ...], tuple[str, ...]]:
    """Every form that these runs can take, and a sentence for every form that they cannot."""
    taken, notes = [], []
    for name, title, filename, media in DOWNLOAD_FORMATS:
        try:
            text = export(subject.runs, subject.comparison, name)
        except EquipoiseError as error:
            notes.append(f"{title}: {error.message}.")
            continue
        if len(text) > MAX_DOWNLOAD_BYTES:
            notes.append(f"{title}: {format_count(len(text))} characters; eq export --to {name} writes it.")
        elif text:
            taken.append(Download(name, title, filename, media, text))
    return tuple(taken), tuple(notes)
