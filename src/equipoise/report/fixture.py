"""What people see of a fixture of questions: counts, shares, thresholds, what is wrong, what it can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import counted
from equipoise.report.findings import findings_part
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.numbers import count, figure
from equipoise.types import Finding

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

SHOWN = 10
"""So many lines of a list are shown, unless all are asked for."""

TEXT_WIDTH = 100


class Mark(StrEnum):
    """How a thing stands: as wished, just so, not good enough, or unknown."""

    GOOD = "✓"
    FAIR = "~"
    BAD = "✗"
    UNKNOWN = "?"


_ASCII = {Mark.GOOD: "+", Mark.BAD: "x"}
_STYLES = {Mark.GOOD: "green", Mark.FAIR: "yellow", Mark.BAD: "bold red", Mark.UNKNOWN: "yellow"}


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence behind its mark; plain letters stand for the marks where the screen has no others."""

    mark: Mark
    text: str
    indent: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The mark, then the sentence as a block beside it."""
        sign = _ASCII.get(self.mark, str(self.mark)) if options.ascii_only else str(self.mark)
        yield Paragraph(self.text, indent=self.indent, lead=f"{sign} ", mark=_STYLES[self.mark])


@dataclass(frozen=True, slots=True)
class Share:
    """How many questions have a name, and how many in a hundred that are."""

    name: str
    count: int
    percentage: float


@dataclass(frozen=True, slots=True)
class SizeRow:
    """What so many questions can show, in percentage points; None is nothing at all."""

    n: int
    half_width: float
    detectable: float | None
    here: bool


@dataclass(frozen=True)
class FixtureReport:
    """Everything the report shows, computed by whoever validates."""

    questions: int
    facts: Sequence[Line]
    categories: Sequence[Share]
    difficulties: Sequence[Share]
    thresholds: Sequence[Line]
    status: Line
    method: str = ""
    sizes: Sequence[SizeRow] = ()
    sizes_note: str = ""
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    findings: Sequence[Finding] = ()


def fixture_part(report: FixtureReport, *, quiet: bool = False, verbose: bool = False) -> list[Any]:
    """Counts, shares, thresholds and status; then, unless quiet, what is wrong and what it can show."""
    parts: list[Any] = [heading(f"Fixture of {counted(report.questions, 'question')}"), *report.facts]
    parts += [Paragraph(report.method, indent=4, style="dim")] if report.method and not quiet else []
    parts += _shares("category", report.categories)
    parts += _shares("difficulty", report.difficulties)
    parts += [Paragraph(""), heading("Thresholds"), *report.thresholds]
    if not quiet:
        for title, lines in report.lists.items():
            parts += _listed(title, lines, verbose=verbose)
        parts += _sizes(report)
        parts += findings_part(report.findings, verbose=verbose)
    return [*parts, Paragraph(""), report.status]


def fixture_text(report: FixtureReport) -> str:
    """The report as plain text."""
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    screen = Console(
        file=stream, width=TEXT_WIDTH, color_system=None, highlight=False, markup=False, emoji=False
    )
    screen.print(*fixture_part(report), sep="\n", crop=False)
    return stream.getvalue().rstrip("\n")


def _shares(kind: str, shares: Sequence[Share]) -> list[Any]:
    return [
        Paragraph(""),
        FittedTable(
            [
                Column(kind, [each.name for each in shares], shortens="end"),
                Column("questions", [count(each.count) for each in shares], right=True),
                Column("share", [f"{figure(each.percentage, 1)} %" for each in shares], right=True),
            ]
        ),
    ]


def _listed(title: str, lines: Sequence[str], *, verbose: bool) -> list[Any]:
    """A list under its title, cut after the first few."""
    if not lines:
        return []
    shown = lines if verbose else lines[:SHOWN]
    parts = [Paragraph(""), heading(title), *(Paragraph(line, indent=2, lead="- ") for line in shown)]
    rest = len(lines) - len(shown)
    return [*parts, Paragraph(f"and {count(rest)} more (-v shows all)", indent=4)] if rest else parts


def _sizes(report: FixtureReport) -> list[Any]:
    """The table of sample sizes; the row of this fixture is pointed at."""
    if not report.sizes:
        return []
    rows = report.sizes
    return [
        Paragraph(""),
        heading("What so many questions can show"),
        FittedTable(
            [
                Column("questions", [count(row.n) for row in rows], right=True),
                Column("95 % interval", [f"± {figure(row.half_width, 1)} %" for row in rows], right=True),
                Column("detectable difference", [_detectable(row) for row in rows], right=True),
                Column("", ["<- this fixture" if row.here else "" for row in rows]),
            ]
        ),
        Paragraph(report.sizes_note),
    ]


def _detectable(row: SizeRow) -> str:
    return "none" if row.detectable is None else f"{figure(row.detectable, 1)} %"
