"""What people see of a benchmark of term retrieval: who leads, all metrics, parts of the cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.comparison import caption as comparison_caption
from equipoise.report.comparison import chance_line, partial_lines, primary_columns
from equipoise.report.findings import findings_part, gravest_first
from equipoise.report.score import caption as score_caption
from equipoise.report.score import score_columns
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import count, figure, span
from equipoise.stats.result import Estimate, Result
from equipoise.stats.slices import Slice
from equipoise.types import Finding

BRIEF = ("HR@1", "HR@3", "HR@5", "HR@10", "nDCG@10", "R@10", "P@10", "MAP@10", "MaxOntSim@1", "MaxOntSim@10")
"""What the short table of several systems has a column for."""
_SPARSE = "*"
_PLACES = 3


@dataclass(frozen=True)
class SystemPart:
    """One system: its figures, the primary one on parts of the cases, and what a diagnosis found."""

    result: Result
    slices: tuple[Slice, ...] = ()
    diagnosis: tuple[Estimate, ...] = ()


@dataclass(frozen=True)
class PhenotypeEdition:
    """All that the report of a benchmark shows."""

    cases: int
    ontology: str
    citation: str
    terms: int
    measure: str
    systems: tuple[SystemPart, ...]
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def phenotype_report(edition: PhenotypeEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    results = [part.result for part in edition.systems]
    parts: list[Any] = _leading(edition, results)
    if edition.comparison is not None and verbose:
        parts += [Paragraph(""), heading("Every metric"), Paragraph(""), FittedTable(score_columns(results))]
    if quiet:
        return parts
    parts += [Paragraph(""), Paragraph(_caption(edition, results))]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    parts += [*slices_part(edition), *diagnosis_part(edition)]
    parts += [Paragraph(""), Paragraph(edition.citation)]
    if edition.comparison is not None:
        parts += [Paragraph(""), Paragraph(edition.comparison.verdict())]
    return [*parts, *findings_part(gravest_first(edition.findings), verbose=verbose)]


def _leading(edition: PhenotypeEdition, results: Sequence[Result]) -> list[Any]:
    """The table that everyone reads: all metrics of one system, or who leads and the metrics in brief."""
    where = f"on {counted(edition.cases, 'case')} among {count(edition.terms)} terms"
    comparison = edition.comparison
    if comparison is None:
        title = heading(f"{results[0].system} {where}")
        return [title, Paragraph(""), FittedTable(score_columns(results))]
    parts: list[Any] = [heading(f"{comparison.primary} {where}, best first"), Paragraph("")]
    parts += [FittedTable(primary_columns(comparison))]
    parts += [Paragraph(line) for line in partial_lines(comparison)]
    return [*parts, Paragraph(""), FittedTable(brief_columns(comparison))]


def brief_columns(comparison: Comparison) -> list[Column]:
    """A row a system and one for chance, a column a metric."""
    shown = [name for name in BRIEF if name in comparison.metrics]
    rows = [comparison.estimates[name] for name in comparison.order]
    columns = [Column("system", [*comparison.order, "chance"], shortens="middle")]
    for rank, metric in enumerate(shown):
        luck = [each[metric].chance for each in rows if not isnan(each[metric].chance)]
        cells = [figure(each[metric].value, _PLACES) for each in rows]
        cells.append(_luck(luck[0]) if luck else "n/a")
        columns.append(Column(metric, cells, right=True, rank=rank))
    return columns


def _luck(value: float) -> str:
    """The chance level, which among many terms is small and yet not 0.

    >>> _luck(0.0001), _luck(0.234)
    ('<0.001', '0.234')
    """
    least = 10**-_PLACES
    return f"<{figure(least, _PLACES)}" if 0 < value < least / 2 else figure(value, _PLACES)


def _caption(edition: PhenotypeEdition, results: Sequence[Result]) -> str:
    comparison = edition.comparison
    told = (
        score_caption(results)
        if comparison is None
        else f"{comparison_caption(comparison)} {chance_line(comparison)}"
    )
    return (
        f"{told} All {count(edition.terms)} terms are ranked for every case, so that all systems have the "
        f"same depth. MaxOntSim by {edition.measure}."
    )


def slices_part(edition: PhenotypeEdition) -> list[Any]:
    """The primary metric on parts of the cases, a column a system."""
    first = edition.systems[0].slices
    if not first:
        return []
    metric = first[0].estimate.metric
    columns = [
        Column("slice", [each.name for each in first]),
        Column("", [each.value for each in first], shortens="end"),
        Column("n", [f"{count(each.estimate.n)}{_SPARSE if each.few else ''}" for each in first], right=True),
    ]
    alone = len(edition.systems) == 1
    for part in edition.systems:
        cells = [_slice_cell(each.estimate, alone=alone) for each in part.slices]
        columns.append(Column(metric if alone else part.result.system, cells, right=True))
    parts: list[Any] = [
        Paragraph(""),
        heading(f"{metric} on parts of the cases"),
        Paragraph(""),
        FittedTable(columns),
    ]
    if any(each.few for each in first):
        parts.append(Paragraph(f"{_SPARSE} few cases: such a figure says little."))
    return parts


def _slice_cell(estimate: Estimate, *, alone: bool) -> str:
    value = figure(estimate.value, _PLACES)
    return f"{value} {span(estimate.interval, _PLACES)}" if alone else value


def diagnosis_part(edition: PhenotypeEdition) -> list[Any]:
    """What each system makes of the ontology's own labels."""
    diagnosed = [part for part in edition.systems if part.diagnosis]
    if not diagnosed:
        return []
    first = diagnosed[0].diagnosis
    columns = [Column("diagnosis", [each.metric for each in first])]
    for part in diagnosed:
        cells = [f"{figure(each.value, 3)} {span(each.interval, 3)}" for each in part.diagnosis]
        columns.append(Column(part.result.system, cells, right=True))
    columns.append(Column("chance", [figure(each.chance, 3) for each in first], right=True, rank=3))
    columns.append(Column("n", [count(each.n) for each in first], right=True, rank=2))
    return [
        Paragraph(""),
        heading("What the systems make of the ontology"),
        Paragraph(""),
        FittedTable(columns),
        Paragraph(
            "Labels of a random sample are asked like any text. Self-match: the term itself comes first. "
            "Branch purity: the share of the 10 nearest terms in a common top-level branch. Correlations: "
            "of the system's distance with path length, of its score with Resnik; means over terms."
        ),
    ]
