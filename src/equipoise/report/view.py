"""The view of an experiment: the answer, and sections of tables, charts and notes.

Every experiment is described once, by a function ``X_view(data) -> View`` in its ``report.py``. Everything that
readers see is made from it: the terminal (``View.parts``), Markdown, LaTeX and CSV of ``--to``, and the page of
``eq report``, for which the view is stored next to the results as ``view.json``.

To add a table, append a ``Section`` with a ``ReportTable`` to the sections of the view; to add a chart, append a
``Chart`` (``report/charts/``) to the section that it belongs to. Texts are rounded and final: a renderer computes
nothing. A section is shown with ``--verbose`` and on the page; with ``always`` it is part of the short output too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise.errors import FormatError
from equipoise.report.answer import Answer
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, findings_section, heading
from equipoise.runs.experiment_folder import write_json
from equipoise.runs.manifest import VIEW
from equipoise.stats.verdict import plural
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from equipoise.report.charts.chart import Chart
    from equipoise.report.tables import SystemColumn
    from equipoise.report.terminal import Part
    from equipoise.report.view_model import (
        Download,
        Leaderboard,
        PairwiseTable,
        ProtocolSection,
        SliceTable,
        SystemInfo,
        TuningView,
        UnitExplorer,
        ValueDistribution,
    )


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Columns of equal length; ``notes`` explain marks in its cells and are shown directly below it."""

    columns: tuple[ReportColumn, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Iterable[ReportColumn], *notes: str) -> ReportTable:
        """A table of these columns; empty notes are left out."""
        return cls(tuple(columns), tuple(filter(None, notes)))


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a view: tables, then notes about all of them, then charts.

    The terminal leaves the charts out. ``always`` shows the section without ``--verbose``. With ``on_page=False`` the
    page of the stored runs leaves it out, because it has the same in a part of its own.
    """

    title: str
    tables: tuple[ReportTable, ...] = ()
    notes: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    always: bool = False
    on_page: bool = True

    @classmethod
    def of_table(cls, title: str, columns: Iterable[ReportColumn], *notes: str) -> Section:
        """A section of one table; the notes are directly below it."""
        return cls(title, (ReportTable.of(columns, *notes),))

    def parts(self, *, quiet: bool = False) -> list[Part]:
        """The section for the terminal; ``quiet`` leaves out the notes of the section."""
        if not self.tables and not self.notes:
            return []
        parts: list[Part] = [Paragraph(""), heading(self.title)]
        for table in self.tables:
            parts += [Paragraph(""), TerminalTable(table.columns), *map(Paragraph, table.notes)]
        return parts if quiet or not self.notes else [*parts, Paragraph(""), *map(Paragraph, self.notes)]


@dataclass(frozen=True, slots=True)
class View:
    """The answer of an experiment and its sections in display order. The findings are those of the answer."""

    answer: Answer
    sections: tuple[Section, ...] = ()
    title: str = ""
    """What the experiment is about; printed only where several views are."""
    citation: str = ""
    """Where the data are from; shown after the sections."""
    runs: tuple[str, ...] = ()
    """The run directories that it describes, relative to the folder where it is stored; empty if not recorded."""

    def parts(self, *, quiet: bool = False, verbose: bool = False) -> list[Part]:
        """The view for the terminal: ``quiet`` leaves out notes; ``verbose`` has every section and all findings."""
        parts = self.answer.parts(quiet=quiet, verbose=verbose)
        for section in self.sections:
            if section.always or verbose:
                parts += section.parts(quiet=quiet)
        if not verbose:
            return parts
        parts += [Paragraph(""), Paragraph(self.citation)] if self.citation else []
        return [*parts, *findings_section(self.answer.findings, verbose=True)]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of all sections."""
        return tuple(chart for section in self.sections for chart in section.charts)

    def with_charts(self, charts: Iterable[Chart], title: str = "Charts") -> Self:
        """The view with another section, of these charts; unchanged if there are none."""
        section = Section(title, charts=tuple(charts))
        return replace(self, sections=(*self.sections, section)) if section.charts else self

    def write(self, folder: str | Path, runs: Iterable[Path] = ()) -> Path:
        """Store the view in the output folder of the experiment, where ``eq report`` finds it.

        ``runs`` are the run directories in the folder that it describes: other commands may have written more.
        """
        described = tuple(run.relative_to(folder).as_posix() for run in runs)
        return write_json(Path(folder) / VIEW, replace(self, runs=described).to_dict())

    @classmethod
    def read(cls, folder: str | Path) -> View | None:
        """The view that is stored in a folder; None if there is none."""
        from equipoise.io.json import parse_json
        from equipoise.io.text import open_text

        file = Path(folder) / VIEW
        if not file.is_file():
            return None
        try:
            return cls.from_dict(parse_json(open_text(file)))
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"{file} is not a view: {type(error).__name__} {error}", hint="delete it, or run the experiment again"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> View:
        """The view of ``to_dict``, also after it was stored as JSON."""
        from equipoise.report.charts.chart import Chart

        answer = content["answer"]
        return cls(
            Answer(
                **{
                    **answer,
                    "columns": _columns(answer["columns"]),
                    "notes": tuple(answer["notes"]),
                    "warnings": tuple(answer["warnings"]),
                    "findings": findings_from_dicts(answer["findings"]),
                    "details_only": tuple(answer.get("details_only", ())),
                }
            ),
            tuple(
                Section(
                    section["title"],
                    tuple(
                        ReportTable(_columns(table["columns"]), tuple(table["notes"])) for table in section["tables"]
                    ),
                    tuple(section["notes"]),
                    tuple(Chart(**chart) for chart in section["charts"]),
                    section["always"],
                    section.get("on_page", True),
                )
                for section in content["sections"]
            ),
            content["title"],
            content["citation"],
            tuple(content.get("runs", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView(View):
    """The view of stored runs: tables for a page with links, sorting and single units.

    The answer and the sections are those of the experiment that wrote the runs; without one, the headline is the
    verdict of the comparison. Parts without content are None or empty.
    """

    subtitle: str
    systems: tuple[SystemInfo, ...]
    primary: str
    better: str
    leaderboards: tuple[Leaderboard, ...]
    costs: tuple[SystemColumn, ...]
    parameters: tuple[SystemColumn, ...]
    pairwise: PairwiseTable | None
    slices: SliceTable | None
    explorer: UnitExplorer | None
    distributions: tuple[ValueDistribution, ...]
    tuning: tuple[TuningView, ...]
    protocol: ProtocolSection
    downloads: tuple[Download, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str = "unit"
    units: str = "units"
    """The noun of a unit, and its plural."""
    system: str = "system"
    """What a system is called: a model, an embedding."""
    related: tuple[tuple[str, str], ...] = ()
    """Names and files of other pages of the same experiment."""
    folder_notes: tuple[str, ...] = ()
    """What else is in the folder of the runs, or is missing there."""

    @property
    def leaderboard(self) -> Leaderboard:
        """All systems on the primary metric."""
        return self.leaderboards[0]

    @property
    def plural_systems(self) -> str:
        """What several systems are called."""
        return plural(self.system)

    @property
    def cautions(self) -> tuple[str, ...]:
        """One warning per incomplete run."""
        return tuple(system.caution for system in self.systems if system.caution)


def _columns(content: Iterable[Mapping[str, Any]]) -> tuple[ReportColumn, ...]:
    return tuple(ReportColumn(**{**column, "cells": tuple(column["cells"])}) for column in content)


def findings_from_dicts(content: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Findings that were stored as JSON."""
    return tuple(
        Finding(**{**finding, "severity": Severity(finding["severity"]), "evidence": tuple(finding["evidence"])})
        for finding in content
    )


# Lines with a status symbol: passed, acceptable, failed, unknown.


class ThresholdStatus(StrEnum):
    """Good, acceptable, not good enough, or unknown."""

    GOOD = "✓"
    FAIR = "~"
    BAD = "✗"
    UNKNOWN = "?"


_ASCII = {ThresholdStatus.GOOD: "+", ThresholdStatus.BAD: "x"}


_STYLES = {
    ThresholdStatus.GOOD: "green",
    ThresholdStatus.FAIR: "yellow",
    ThresholdStatus.BAD: "bold red",
    ThresholdStatus.UNKNOWN: "yellow",
}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A sentence after a status symbol; ASCII letters replace symbols that the terminal cannot show."""

    status: ThresholdStatus
    text: str
    indent: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The symbol, then the sentence as an indented block."""
        sign = _ASCII.get(self.status, str(self.status)) if options.ascii_only else str(self.status)
        yield Paragraph(self.text, indent=self.indent, lead=f"{sign} ", mark=_STYLES[self.status])
