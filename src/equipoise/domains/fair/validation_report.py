"""The terminal report of a fixture validation: counts, shares, thresholds, issues, detectable differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.report.findings import findings_section
from equipoise.report.status_lines import StatusLine
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import format_count, format_value

if TYPE_CHECKING:
    from equipoise.types import Finding

MAX_LISTED = 10
"""The maximum number of lines of a list without --verbose."""

TEXT_WIDTH = 100


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """The number and percentage of questions with a label."""

    name: str
    count: int
    percentage: float


@dataclass(frozen=True, slots=True)
class SampleSizeRow:
    """The precision of ``n`` questions, in percentage points; ``detectable`` is None if no difference is."""

    n: int
    half_width: float
    detectable: float | None
    here: bool


@dataclass(frozen=True)
class ValidationData:
    """The data of the report."""

    questions: int
    facts: Sequence[StatusLine]
    categories: Sequence[CategoryCount]
    difficulties: Sequence[CategoryCount]
    thresholds: Sequence[StatusLine]
    status: StatusLine
    method: str = ""
    sizes: Sequence[SampleSizeRow] = ()
    sizes_note: str = ""
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    findings: Sequence[Finding] = ()


def fixture_part(report: ValidationData, *, quiet: bool = False, verbose: bool = False) -> list[Any]:
    """Counts, shares, thresholds and status; then, unless quiet, issues, sample sizes and findings."""
    parts: list[Any] = [heading(f"Fixture of {pluralize(report.questions, 'question')}"), *report.facts]
    parts += [Paragraph(report.method, indent=4, style="dim")] if report.method and not quiet else []
    parts += _shares("category", report.categories)
    parts += _shares("difficulty", report.difficulties)
    parts += [Paragraph(""), heading("Thresholds"), *report.thresholds]
    if not quiet:
        for title, lines in report.lists.items():
            parts += _listed(title, lines, verbose=verbose)
        parts += _sizes(report)
        parts += findings_section(report.findings, verbose=verbose)
    return [*parts, Paragraph(""), report.status]


def fixture_text(report: ValidationData) -> str:
    """The report as plain text."""
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    screen = Console(file=stream, width=TEXT_WIDTH, color_system=None, highlight=False, markup=False, emoji=False)
    screen.print(*fixture_part(report), sep="\n", crop=False)
    return stream.getvalue().rstrip("\n")


def _shares(kind: str, shares: Sequence[CategoryCount]) -> list[Any]:
    return [
        Paragraph(""),
        TerminalTable(
            [
                ReportColumn(kind, [each.name for each in shares], shortens="end"),
                ReportColumn("questions", [format_count(each.count) for each in shares], right=True),
                ReportColumn("share", [f"{format_value(each.percentage, 1)} %" for each in shares], right=True),
            ]
        ),
    ]


def _listed(title: str, lines: Sequence[str], *, verbose: bool) -> list[Any]:
    """A list under its title, truncated to ``MAX_LISTED`` lines."""
    if not lines:
        return []
    shown = lines if verbose else lines[:MAX_LISTED]
    parts = [Paragraph(""), heading(title), *(Paragraph(line, indent=2, lead="- ") for line in shown)]
    rest = len(lines) - len(shown)
    return [*parts, Paragraph(f"and {format_count(rest)} more (-v shows all)", indent=4)] if rest else parts


def _sizes(report: ValidationData) -> list[Any]:
    """The table of sample sizes, with the row of this fixture marked."""
    if not report.sizes:
        return []
    rows = report.sizes
    return [
        Paragraph(""),
        heading("Precision by number of questions"),
        TerminalTable(
            [
                ReportColumn("questions", [format_count(row.n) for row in rows], right=True),
                ReportColumn("95 % interval", [f"± {format_value(row.half_width, 1)} %" for row in rows], right=True),
                ReportColumn("detectable difference", [_detectable(row) for row in rows], right=True),
                ReportColumn("", ["<- this fixture" if row.here else "" for row in rows]),
            ]
        ),
        Paragraph(report.sizes_note),
    ]


def _detectable(row: SampleSizeRow) -> str:
    return "none" if row.detectable is None else f"{format_value(row.detectable, 1)} %"
