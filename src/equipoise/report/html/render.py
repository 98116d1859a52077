"""Render a report as one self-contained HTML file with its styles, scripts, data and charts.

The first half holds the helpers that the templates call: grouping of rows, the unit data as JSON, pixel
positions of the small charts in tables, and heatmap classes. ``render_html`` is the entry point.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from equipoise import __version__
from equipoise.checks.base import all_checks, reasons
from equipoise.redaction import inert
from equipoise.report.answer import SAMPLE_SIZE
from equipoise.report.build_view import system_label
from equipoise.report.charts.chart import heat_step, shorten_labels
from equipoise.report.charts.tuning import BASELINE, BEST, BUDGET, CHOSEN
from equipoise.report.html.charts import EmbeddedChart, PageCharts, chart_script, chart_style, embed_charts, page_charts
from equipoise.report.sections import axis_scale
from equipoise.report.terminal import grouped_findings
from equipoise.stats.formatting import metric_heading, metric_in_percent, metric_in_sentence
from equipoise.stats.verdict import INCOMPLETE_MARK, plural

if TYPE_CHECKING:
    from equipoise.report.view import RunsView, View
    from equipoise.report.view_model import (
        AxisScale,
        HeatCell,
        Leaderboard,
        LeaderboardRow,
        Number,
        PairDifference,
        PairwiseTable,
        SliceRow,
        TuningGrid,
        TuningView,
        ValueDistribution,
    )
    from equipoise.types import Finding


def group_by_tie(rows: Sequence[LeaderboardRow]) -> list[tuple[str, list[LeaderboardRow]]]:
    """The systems that are best or tied for it, those that are worse, and those without a test or a score."""
    best = rows[0].tie_groups
    tied = [row for row in rows if share_tie_group(best, row.tie_groups)]
    worse = [row for row in rows if row.tie_groups and not share_tie_group(best, row.tie_groups)]
    groups = [
        ("Best" if len(tied) == 1 else "Best, or tied with the best", tied),
        ("Worse than the best", worse),
        ("Not tested", [row for row in rows if not row.tie_groups and row.score.number is not None]),
        ("Without a score", [row for row in rows if not row.tie_groups and row.score.number is None]),
    ]
    return [(title, group) for title, group in groups if group]


MAX_NAME = 26
"""The longest name in a table; the whole name is its title."""


def short_labels(names: Sequence[str]) -> dict[str, str]:
    """The names as tables show them: long ones without their middle, and all different."""
    return dict(zip(names, shorten_labels(names, MAX_NAME), strict=True)) if names else {}


def best_first(board: Leaderboard) -> list[LeaderboardRow]:
    """The rows of a leaderboard by their score; systems without a score are last."""
    sign = -1.0 if board.better == "up" else 1.0
    return sorted(board.rows, key=lambda row: (row.score.number is None, sign * (row.score.number or 0.0)))


def cautions_by_system(report: RunsView) -> dict[str, str]:
    """The warnings about incomplete runs."""
    return {system.name: system.caution for system in report.systems}


def pairs_by_metric(table: PairwiseTable) -> list[tuple[str, AxisScale, list[PairDifference]]]:
    """The pairs on each metric with their axis, those on the primary metric first."""
    rows_by_metric: dict[str, list[PairDifference]] = {table.metric: list(table.rows)}
    for row in table.others:
        rows_by_metric.setdefault(row.metric, []).append(row)
    return [
        (metric, axis_scale([row.difference for row in rows], [0.0]), rows) for metric, rows in rows_by_metric.items()
    ]


def distributions_with_charts(
    distributions: Sequence[ValueDistribution], charts: PageCharts
) -> list[tuple[ValueDistribution, EmbeddedChart | None]]:
    """Each distribution with its chart; None if the page has no charts."""
    drawn = charts.by_section.get("distributions", ())
    return list(zip(distributions, drawn or [None] * len(distributions), strict=True))


def share_tie_group(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether two systems have a tie group in common."""
    return bool(set(a) & set(b))


def group_slices(rows: Iterable[SliceRow]) -> list[tuple[str, list[SliceRow]]]:
    """The rows of each slice, in their order."""
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row.name)]


def setting_names(views: Iterable[TuningView]) -> list[str]:
    """The names in the summary of at least one tuning, each once."""
    return list(dict.fromkeys(name for view in views for name, _ in view.summary))


# In JSON these characters occur only inside strings. Escaped, they cannot end the script element or open another.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def unit_data_json(report: RunsView) -> str:
    """The data of the unit explorer by column, safe inside a script element.

    >>> safe_json({"text": "</script><b>"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
    """
    explorer = report.explorer
    if explorer is None:
        return ""
    systems = [{"name": system.name, "letter": system.letter} for system in report.systems]
    content = {field.name: getattr(explorer, field.name) for field in fields(explorer) if field.name != "note"}
    return safe_json({"systems": systems, **content, "nouns": [report.unit, report.units, report.system]})


def safe_json(value: Any) -> str:
    """JSON that an HTML parser reads as plain text."""
    text = json.dumps(_inert(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _inert(value: Any) -> Any:
    """The same value with control characters removed from every text."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list | tuple):
        return [_inert(element) for element in value]
    return {key: _inert(element) for key, element in value.items()} if isinstance(value, dict) else value


Link = tuple[str, str]
"""A title and a URL."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Links that only a server can offer: the list of runs, other systems, other metrics to sort by, and files."""

    home: str
    system_links: tuple[Link, ...] = ()
    sort_links: tuple[Link, ...] = ()
    files: tuple[Link, ...] = ()


WIDTH = 200
HEIGHT = 22
MARGIN = 8
SYMBOLS = {BEST: "★", BASELINE: "○", BUDGET: "★", CHOSEN: "✓"}
"""Symbols of the marks in a grid cell."""


@dataclass(frozen=True, slots=True)
class PixelScale:
    """Pixel positions on an axis that is ``WIDTH`` pixels wide."""

    scale: AxisScale
    width: int = WIDTH
    height: int = HEIGHT

    def x(self, value: Number) -> str:
        """The position of a number, to a tenth of a pixel; numbers outside the axis are clipped."""
        low, high = self.scale.low, self.scale.high
        fraction = 0.0 if value is None or high <= low else (value - low) / (high - low)
        return f"{MARGIN + min(max(fraction, 0.0), 1.0) * (self.width - 2 * MARGIN):.1f}".removesuffix(".0")

    @property
    def middle(self) -> str:
        """Half of the height."""
        return f"{self.height / 2:g}"

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Positions and texts of the first tick, of 0 or the middle tick, and of the last: more do not fit."""
        ticks = self.scale.ticks
        if not ticks:
            return ()
        inner = [index for index, (value, _) in enumerate(ticks) if value == 0] or [len(ticks) // 2]
        shown = [0, inner[0], len(ticks) - 1] if self._has_room(ticks[inner[0]][0]) else [0, len(ticks) - 1]
        return tuple((self.x(ticks[index][0]), ticks[index][1]) for index in dict.fromkeys(shown))

    def _has_room(self, value: float) -> bool:
        """Whether a label here does not overlap those at the ends."""
        return 6 * MARGIN <= float(self.x(value)) <= self.width - 6 * MARGIN


def heat_class(shade: Number) -> str:
    """The CSS class of a cell with this shade; ``plain`` if it has none.

    >>> heat_class(0.0), heat_class(1.0), heat_class(None)
    ('heat0', 'heat6', 'plain')
    """
    return "plain" if shade is None else f"heat{heat_step(shade)}"


def grid_symbol(mark: str) -> str:
    """A mark of a grid in one or two characters.

    >>> grid_symbol("best"), grid_symbol("selected by 4")
    ('★', '✓4')
    """
    return SYMBOLS.get(mark) or SYMBOLS[CHOSEN] + mark.removeprefix(f"{CHOSEN} by ")


def is_selected(cell: HeatCell) -> bool:
    """Whether a fold selected this point."""
    return any(mark.startswith(CHOSEN) for mark in cell.marks)


def grid_legend(grid: TuningGrid) -> list[tuple[str, str]]:
    """The symbols in this grid and their meanings."""
    cells = [cell for _, row in grid.rows for cell in row if cell is not None]
    present = {mark for cell in cells for mark in cell.marks}
    entries = [(SYMBOLS[mark], mark) for mark in (BEST, BASELINE, BUDGET) if mark in present]
    if any(map(is_selected, cells)):
        entries.append((SYMBOLS[CHOSEN], "number of folds that selected it"))
    return entries


def shown_value(value: Any) -> Any:
    """A text without control characters, applied before escaping; markup and other types are unchanged."""
    return inert(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


PACKAGE = "equipoise.report.html"
PROGRAM = f"equipoise {__version__}"
TEMPLATES = "templates"
MARKS = {"issue": "!", "tip": "+", "note": "–"}
MAX_OPEN_FINDINGS = 2
"""With more kinds of findings than this, tips and notes are folded; issues are always open."""
MAX_COLUMNS = 8
"""In a table with more columns than this, names are shortened further."""
MAX_OPEN_ITEMS = 6
"""Further findings of one kind are folded."""
MAX_OPEN_PAIRS = 6
"""With more pairs than this, only those with the best system are shown unfolded."""
SCRIPTS = ("page.js", "tables.js", "shown.js", "downloads.js", "units.js")
VIEW_SCRIPTS = SCRIPTS[:3]


def render_html(report: RunsView, *, charts: bool = True, links: PageLinks | None = None) -> str:
    """The report as HTML; the same report gives the same bytes.

    ``charts=False`` leaves the charts out; ``links`` are the links of a server.
    """
    charts_of_page = page_charts(report) if charts else PageCharts({})
    style = chart_style() + _asset("style.css")
    script = _script()
    text: str = (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            title=report.title,
            program=PROGRAM,
            letters={system.name: system.letter for system in report.systems},
            labels=short_labels([system.name for system in report.systems]),
            positions={system.name: index for index, system in enumerate(report.systems)},
            charts=charts_of_page,
            links=links,
            page_notes=report.folder_notes,
            linked=bool(report.related),
            findings=grouped_findings(report.answer.findings),
            check_titles={check.code: check.title for check in all_checks()},
            check_reasons=reasons(),
            sections=_sections(report),
            short_headings=_SHORT_HEADINGS,
            policy=content_security_policy(style, script),
            style=style,
            script=script,
            data=unit_data_json(report),
        )
    )
    return text


def render_views(
    title: str,
    views: Sequence[View],
    *,
    links: Mapping[str, str] | None = None,
    reports: Mapping[str, RunsView] | None = None,
    charts: bool = True,
    notes: Sequence[str] = (),
    subtitle: str = "",
) -> str:
    """Views as one page; ``links`` are the full reports by the titles of the views, ``notes`` come first.

    ``reports`` are the contents of these full reports: their leaderboards are shown instead of the tables of the views.
    """
    reports = reports or {}
    noun, names = _ranked_systems(views)
    names = list(dict.fromkeys([*names, *(system.name for report in reports.values() for system in report.systems)]))
    measured = [board.metric for report in reports.values() for board in report.leaderboards]
    parts = [(f"view-{number}", _short_title(view)) for number, view in enumerate(views)]
    findings = page_findings(views)
    placed = [
        (f"view-{number}-{index}", chart)
        for number, view in enumerate(views)
        for index, section in enumerate(view.sections)
        for chart in section.charts
    ]
    style, script = chart_style() + _asset("style.css"), _script(VIEW_SCRIPTS)
    text: str = (
        _environment()
        .get_template("views.html")
        .render(
            title=title,
            program=PROGRAM,
            views=views,
            reports=reports,
            # The parts of a suite have metrics of their own.
            metrics=[*([""] if len(reports) > 1 else []), *dict.fromkeys(measured)],
            findings=grouped_findings(findings),
            check_titles={check.code: check.title for check in all_checks()},
            check_reasons=reasons(),
            letters={name: system_label(index) for index, name in enumerate(names)},
            labels=short_labels(names),
            links=links or {},
            page_notes=notes,
            linked=bool(links),
            charts=embed_charts(placed) if charts else PageCharts({}),
            short_headings={},
            subtitle=subtitle,
            noun=noun,
            positions={name: index for index, name in enumerate(names)},
            sections=[
                ("verdict", "Verdict"),
                *([("findings", "Findings")] if findings else []),
                *(parts if len(views) > 1 else [("view-0", "Result")]),
            ],
            policy=content_security_policy(style, script),
            style=style,
            script=script,
        )
    )
    return text


def _ranked_systems(views: Sequence[View]) -> tuple[str, list[str]]:
    """The noun and the names of the systems in the tables of the answers: the first column of shortened names."""
    columns = [column for view in views for column in view.answer.columns[:2] if column.shortens == "middle"]
    cells = (cell for column in columns for cell in column.cells)
    return columns[0].head if columns else "", list(dict.fromkeys(cell.removesuffix(INCOMPLETE_MARK) for cell in cells))


def _short_title(view: View) -> str:
    """The title of a view without what follows a colon: the kind and the size of a data set."""
    return view.title.partition(": ")[0]


def _with_part(subject: str, part: str) -> str:
    """The subject of a finding and the part of the page that it is about."""
    return f"{subject.removesuffix(':')} ({part})" if subject and subject != part else part


def page_findings(views: Sequence[View]) -> list[Finding]:
    """The findings of all views, each once; those of one of several views name it.

    The finding that the notes of an answer state is left out.
    """
    titles: dict[Finding, list[str]] = {}
    for view in views:
        for finding in view.answer.findings:
            if finding.code != SAMPLE_SIZE:
                titles.setdefault(finding, []).append(_short_title(view))
    return [
        # The findings of the whole repeat those of its parts, which come after it.
        finding if len(views) == 1 else replace(finding, subject=_with_part(finding.subject, names[-1]))
        for finding, names in titles.items()
    ]


_SHORT_HEADINGS = {"pairwise": "Pairs", "costs": "Cost", "details": "Details", "protocol": "Protocol"}
"""What the list of sections calls a section with a long heading."""


def _sections(report: RunsView) -> list[tuple[str, str]]:
    """The ids and headings of the sections of this report, in order."""
    sections: list[tuple[str, str, object]] = [
        ("verdict", "Verdict", True),
        ("findings", "Findings", report.answer.findings),
        ("leaderboard", "Leaderboard" if report.pairwise else "Scores", report.leaderboards),
        ("costs", "Quality and cost" if report.costs else "Parameters", report.costs or report.parameters),
        ("pairwise", "Paired differences", report.pairwise),
        ("slices", "Slices", report.slices),
        ("units", f"{report.unit} by {report.unit}".capitalize(), report.explorer),
        ("distributions", "Distributions", report.distributions),
        ("tuning", "Tuning", report.tuning),
        ("details", "Details of the experiment", report.answer.columns or report.sections),
        ("findings", "Findings", not report.answer.findings),
        ("protocol", "Protocol and provenance", True),
        ("downloads", "Downloads", report.downloads or report.notes),
    ]
    return [(name, heading) for name, heading, present in sections if present]


def content_security_policy(style: str, script: str) -> str:
    """A policy that allows exactly these styles and scripts and embedded images, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE, TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=shown_value,
    )
    environment.globals.update(
        MARKS=MARKS,
        MAX_OPEN_FINDINGS=MAX_OPEN_FINDINGS,
        MAX_OPEN_PAIRS=MAX_OPEN_PAIRS,
        MAX_OPEN_ITEMS=MAX_OPEN_ITEMS,
        MAX_COLUMNS=MAX_COLUMNS,
    )
    environment.globals.update(PixelScale=PixelScale, INCOMPLETE_MARK=INCOMPLETE_MARK)
    for function in (
        heat_class,
        metric_heading,
        metric_in_percent,
        metric_in_sentence,
        plural,
        grid_symbol,
        grid_legend,
        is_selected,
        best_first,
        cautions_by_system,
        pairs_by_metric,
        distributions_with_charts,
        share_tie_group,
        group_by_tie,
        group_slices,
        setting_names,
    ):
        environment.globals[function.__name__] = function
    return environment


@lru_cache(maxsize=2)
def _script(names: tuple[str, ...] = SCRIPTS) -> str:
    """All scripts as one, in a function scope."""
    source = "\n".join(_asset(name) for name in names)
    return f'(() => {{\n"use strict";\n{source}}})();\n{chart_script()}'


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (files(PACKAGE) / name).read_text(encoding="utf-8")
