"""Write the report of stored runs as an HTML file, a page of single charts, and the downloads in a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import EquipoiseError
from equipoise.io.atomic import write_text
from equipoise.progress import portion, report_share
from equipoise.report.charts.chart import render_svg, slug, write_charts
from equipoise.report.export import FORMATS
from equipoise.report.view_model import Download
from equipoise.runs.experiment_folder import RUNS
from equipoise.runs.manifest import read_manifest
from equipoise.runs.progress_file import ActiveRun, find_active_runs
from equipoise.stats.formatting import format_count
from equipoise.stats.verdict import name_list, plural
from equipoise.types import install_command, require_extra

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.report.build_view import RunSet
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view import RunsView, View
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result

STEPS = 4
"""The steps of writing a page."""


@dataclass(frozen=True)
class ReportOptions:
    """Options of the page: the metric that orders the systems, statistics, charts and the title."""

    primary: str | None = None
    config: StatsConfig = DEFAULT_STATS
    config_of: Callable[[StatsConfig, Sequence[Result]], StatsConfig] = lambda config, results: config
    """The statistics for these results, from ``config``: which of its values are replaced by those of the runs."""
    charts: bool = True
    charts_folder: PathLike | None = None
    title: str = ""
    related: tuple[tuple[str, str], ...] = ()
    """Names and files of other pages that the page links to."""
    view: View | None = None
    """The view of the experiment, if the runs are those of one."""
    view_config: StatsConfig = DEFAULT_STATS
    """The statistics of that view."""
    folder_notes: tuple[str, ...] = ()
    """What else is in the folder of the runs, or is missing there."""


@dataclass(frozen=True)
class StoredExperiment:
    """The runs of the last command that wrote to a folder, its view, and notes about the folder.

    Without a view that lists its runs, these are all runs of the folder.
    """

    runs: Sequence[tuple[str, Path]]
    view: View | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: str | Path, runs: Sequence[tuple[str, Path]]) -> StoredExperiment:
        """Select from the runs at and below a folder."""
        from equipoise.report.view import View

        interrupted = tuple(_interruption(run) for run in find_active_runs(folder) if run.folder == Path(folder))
        view = View.read(folder)
        if interrupted or view is None or not view.runs:
            # An interrupted command may have replaced runs that the view describes.
            return cls(runs, None if interrupted else view, interrupted)
        named = {path.resolve(): (name, path) for name, path in runs}
        # In the order of the view: the first runs are on the main page.
        described = [resolved for run in view.runs if (resolved := (Path(folder) / run).resolve()) in named]
        shown = [named[path] for path in described]
        others = [path for resolved, (_, path) in named.items() if resolved not in described]
        if not others:
            return cls(shown, view)
        names = [path.relative_to(folder).as_posix().removeprefix(f"{RUNS}/") for path in others]
        note = (
            f"The folder also has runs of other commands, which are not shown: {name_list(names)}. To include them, "
            "repeat the last command with all models and data: finished ones are loaded"
        )
        return cls(shown, view, (note,))


def _interruption(run: ActiveRun) -> str:
    return f"Incomplete: {run.advice}"


def write_report(
    runs: Sequence[tuple[str, Path]],
    output: PathLike,
    options: ReportOptions | None = None,
    *,
    split: bool = False,
    progress: Callable[[str], None] = lambda message: None,
) -> RunsView:
    """Write the report of these runs, each with its name in the report, and return its view.

    The charts are also written to ``charts_folder`` as PNG and SVG files. With ``split``, runs that cannot be compared
    (other tasks or other subsets of the data) get separate pages next to this one, and the pages link to each other.
    """
    options = options or ReportOptions()
    if options.charts_folder is not None:
        require_extra("vl_convert", extra="report")
    groups = comparable_groups(runs) if split else {"": list(runs)}
    target = Path(output)
    pages = {
        name: target if index == 0 else target.with_name(f"{target.stem}-{slug(name)}{target.suffix}")
        for index, name in enumerate(groups)
    }
    reports = []
    for index, (name, group) in enumerate(groups.items()):
        related = tuple((other, pages[other].name) for other in groups if other != name)
        title = f"{options.title}: {name}" if options.title and name and index else options.title
        first = options if index == 0 else replace(options, charts_folder=None, view=None, title=title)
        with portion(index / len(groups), (index + 1) / len(groups)):
            reports.append(_write_page(group, pages[name], first, related, progress))
    return reports[0]


def _write_page(
    runs: Sequence[tuple[str, Path]],
    output: Path,
    options: ReportOptions,
    related: tuple[tuple[str, str], ...],
    progress: Callable[[str], None],
) -> RunsView:
    from equipoise.report.build_view import build_view, compare_runs, read_runs
    from equipoise.report.charts import report_charts
    from equipoise.report.html.render import render_html
    from equipoise.runs.evaluate import at_confidence_level

    progress(f"reading {len(runs)} runs")
    read = read_runs(runs, options.primary)
    config = options.config_of(options.config, [run.result for run in read])
    stored = tuple(replace(run, result=at_confidence_level(run.result, config)) for run in read)
    report_share(1, STEPS)
    progress("comparing")
    comparison = compare_runs(stored, primary=options.primary, config=config)
    report_share(2, STEPS)
    progress("building the report")
    # The answer of the experiment is about its own primary metric and statistics.
    is_same = not options.primary and options.config == options.view_config
    view = build_view(stored, comparison, experiment=options.view, heading=options.title, stored_answer=is_same)
    view = replace(view, related=(*options.related, *related), folder_notes=options.folder_notes)
    report_share(3, STEPS)
    progress("writing it")
    text = render_html(view, charts=options.charts)
    if options.charts_folder is not None:
        write_charts(report_charts(view), options.charts_folder)
    write_text(output, text)
    return view


def comparable_groups(runs: Sequence[tuple[str, Path]]) -> dict[str, list[tuple[str, Path]]]:
    """The runs in groups in which every system occurs once.

    One group if no system occurs twice. Otherwise by folder (the tasks of ``eq concepts``), and within a folder by the
    number of units (all and answerable visits of ``eq places``).
    """
    manifests = [read_manifest(path) for _, path in runs]
    systems = [name or manifest.system for (name, _), manifest in zip(runs, manifests, strict=True)]
    if len(set(systems)) == len(systems):
        return {"": list(runs)}
    by_folder = len({path.parent for _, path in runs}) > 1
    groups: dict[Path | int, list[tuple[str, Path]]] = {}
    for run, manifest in zip(runs, manifests, strict=True):
        groups.setdefault(run[1].parent if by_folder else manifest.units, []).append(run)
    return {(group[0][1].parent if by_folder else group[0][1]).name: group for group in groups.values()}


def difference_plot(comparison: Comparison, path: PathLike | None = None) -> Chart:
    """The chart of the paired differences of a comparison; with ``path`` it is written as SVG."""
    from equipoise.report.charts.intervals import difference_chart
    from equipoise.report.sections import comparison_pairs

    chart = difference_chart(comparison_pairs(comparison, comparison.words.plural))
    if path is not None:
        write_text(path, render_svg(chart))
    return chart


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the tables of a comparison and the chart of its differences as one page."""
    from equipoise.report.html.render import render_views
    from equipoise.report.pairwise import comparison_view
    from equipoise.report.view import Section

    view = comparison_view(comparison)
    chart = Section("Paired differences", charts=(difference_plot(comparison),))
    title = f"Comparison of {len(comparison.systems)} {plural(comparison.words.system)}"
    write_text(path, render_views(title, [replace(view, title=title, sections=(chart, *view.sections))]))
    return Path(path)


def chart_note() -> str:
    """The end of a message about a report without charts, because the converter is not installed."""
    return "" if find_spec("vl_convert") else f". For charts in it: {install_command('report')}"


def charts_html(title: str, text: str, charts: Sequence[Chart]) -> str:
    """Some charts as one self-contained HTML page with tooltips. The same charts give the same bytes."""
    from equipoise.report.answer import Answer
    from equipoise.report.html.render import render_views
    from equipoise.report.view import View

    return render_views(title, [View(Answer(text, ())).with_charts(charts)])


MAX_DOWNLOAD_BYTES = 150_000
"""Longer texts are left out of the page; ``eq export`` writes them."""


def export_downloads(subject: RunSet) -> tuple[tuple[Download, ...], tuple[str, ...]]:
    """Every export of these runs, and a note for every export that is not possible."""
    downloads, notes = [], []
    for name, form in FORMATS.items():
        if form.is_single:
            continue
        try:
            text = form.function(subject.runs, subject.comparison)
        except EquipoiseError as error:
            notes.append(f"{form.title}: {error.message}.")
            continue
        if len(text) > MAX_DOWNLOAD_BYTES:
            notes.append(f"{form.title}: {format_count(len(text))} characters; eq export --to {name} writes it.")
        elif text:
            downloads.append(Download(name, form.title, form.filename, form.media, text))
    return tuple(downloads), tuple(notes)
