"""The page of ``eq report`` for scored next-place systems: in percent and with the metric names of the terminal.

The page has the view of every system and, for several systems, their comparison first. Full reports of all visits and
of the answerable ones, with every pair, slice and visit, are next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.checks.base import join_names
from equipoise.domains.places.report import display_metric, systems_view
from equipoise.domains.places.seed_comparison import ANSWERABLE
from equipoise.errors import EquipoiseError
from equipoise.io.atomic import write_text
from equipoise.report.build import compare_runs, read_runs
from equipoise.report.charts.chart import unique_names, write_charts
from equipoise.report.html.render import render_views
from equipoise.report.publish import ReportOptions, write_report
from equipoise.report.view import View
from equipoise.runs.manifest import VIEW

NamedRuns = Sequence[tuple[str, Path]]
"""The runs of a report, each with its name in the report or an empty string."""


@dataclass(frozen=True)
class PlacesPage:
    """What was written: the decision, the systems, the other pages by title, and warnings about incomplete runs."""

    headline: str
    systems: tuple[str, ...]
    other_pages: dict[str, Path]
    cautions: tuple[str, ...] = ()


def has_views(runs: NamedRuns) -> bool:
    """Whether all of these are runs of ``eq places score``: each has its view, or is the answerable part of one."""
    return bool(runs) and all(
        (path / VIEW).is_file() or (path.with_name(path.name.removesuffix(ANSWERABLE)) / VIEW).is_file()
        for _, path in runs
    )


def write_places_page(
    runs: NamedRuns, output: str | Path, options: ReportOptions, progress: Callable[[str], None] = lambda message: None
) -> PlacesPage:
    """Write the page, and next to it the full reports of all visits and of the answerable ones."""
    target = Path(output)
    scored = [(name, path) for name, path in runs if (path / VIEW).is_file()]
    parts = [(name, path) for name, path in runs if not (path / VIEW).is_file()]
    views = [_named_view(name, path) for name, path in scored or parts]
    other_pages: dict[str, Path] = {}
    cautions: list[str] = []
    for title, group in (("all visits", scored), ("answerable visits", parts)):
        if not group:
            continue
        page = target.with_name(f"{target.stem}-{title.replace(' ', '-')}{target.suffix or '.html'}")
        progress(f"writing the full report of {title}")
        report = write_report(group, page, replace(options, charts_folder=None, view=None), split=True)
        cautions += report.cautions
        other_pages[title] = page
    if len(scored) > 1:
        views = [*_comparison(scored, options), *views]
    if options.charts_folder is not None:
        write_charts(unique_names([chart for view in views for chart in view.charts]), options.charts_folder)
    progress("writing the page")
    systems = tuple(view.title for view in views[-len(scored or parts) :])
    first = next(iter(other_pages.values())).name
    title = options.title or f"Next places: {join_names(systems)}"
    write_text(target, render_views(title, views, links={view.title: first for view in views}, charts=options.charts))
    return PlacesPage(views[0].answer.headline, systems, other_pages, tuple(cautions))


def _named_view(name: str, path: Path) -> View:
    view = View.read(path) or View.read(path.with_name(path.name.removesuffix(ANSWERABLE)))
    assert view is not None, "has_views was asked before"
    return replace(view, title=name) if name else view


def _comparison(runs: NamedRuns, options: ReportOptions) -> list[View]:
    """The comparison of the systems; none if they were not scored on the same visits."""
    try:
        comparison = compare_runs(read_runs(runs, options.primary), primary=options.primary, config=options.config)
    except EquipoiseError:
        return []
    if comparison is None:
        return []
    return [systems_view(comparison, f"{len(runs)} systems by {display_metric(comparison.primary)}")]
