"""What people see of an extraction: the leading figures, all modes, where terms were lost, kinds of error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.checks.base import counted
from equipoise.metrics.overlap import Mode
from equipoise.metrics.sets import AVERAGES, OverDocuments, SetF1, SetPrecision, SetRecall, SetScore
from equipoise.report.findings import findings_part, gravest_first
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.numbers import count, figure, percent, span
from equipoise.stats.result import Estimate, Result
from equipoise.types import Finding

TITLES: dict[Mode, str] = {"strict": "with assertion", "present": "affirmed only", "id": "id only"}
SCORES: tuple[tuple[str, Callable[..., SetScore]], ...] = (
    ("precision", SetPrecision),
    ("recall", SetRecall),
    ("F1", SetF1),
)
SHOWN = 5
"""How many problems are told where nobody asked for more."""
_PLACES = 3


@dataclass(frozen=True)
class ExtractionEdition:
    """All that the report of a run shows.

    ``stages`` counts gold entries by where they ended; ``mistakes`` predicted and gold entries by kind;
    ``split`` how many the pipeline found, the chunker lost and the model lost, where spans are known.
    """

    result: Result
    averaging: OverDocuments
    mode: Mode
    counted: str
    documents: int
    chunks: int
    seconds: float
    stages: Mapping[str, int]
    mistakes: Mapping[str, Mapping[str, int]]
    spans: tuple[Estimate, ...]
    split: tuple[int, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    citation: str
    findings: tuple[Finding, ...]


def extraction_report(edition: ExtractionEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts = _leading(edition)
    if quiet:
        return parts
    parts += [Paragraph(""), Paragraph(_caption(edition))]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    parts += [*_modes(edition), *_stages(edition), *_mistakes(edition), *_spans(edition)]
    parts += problems_part(edition.problems, verbose=verbose)
    parts += [Paragraph(""), Paragraph(edition.citation)]
    return [*parts, *findings_part(gravest_first(edition.findings), verbose=verbose)]


def problems_part(problems: tuple[str, ...], *, verbose: bool = False) -> list[Any]:
    """What did not fit in the documents, line by line."""
    if not problems:
        return []
    shown = problems if verbose else problems[:SHOWN]
    parts: list[Any] = [Paragraph(""), heading("What did not fit in the documents"), Paragraph("")]
    parts += [Paragraph(each) for each in shown]
    if len(shown) < len(problems):
        parts.append(Paragraph(f"and {len(problems) - len(shown)} more: --verbose lists them."))
    return parts


def _leading_rows(edition: ExtractionEdition) -> list[tuple[str, str, Estimate]]:
    """A row a score: its title, how terms match, and its estimate."""
    return [
        (title, "soft" if soft else "exact", edition.result[kind(edition.averaging, edition.mode, soft).name])
        for soft in (False, True)
        for title, kind in SCORES
    ]


def _leading(edition: ExtractionEdition) -> list[Any]:
    """Precision, recall and F1 as they were asked for, exact and soft."""
    rows = _leading_rows(edition)
    estimates = [each for _, _, each in rows]
    level = percent(estimates[0].interval.level)
    columns = [
        Column(edition.averaging, [title for title, _, _ in rows]),
        Column("match", [match for _, match, _ in rows]),
        Column("estimate", [figure(each.value, _PLACES) for each in estimates], right=True),
        Column(f"{level} interval", [span(each.interval, _PLACES) for each in estimates], right=True, rank=1),
        Column("chance", [figure(each.chance, _PLACES) for each in estimates], right=True, rank=2),
    ]
    title = f"{edition.result.system} on {counted(edition.documents, 'document')}"
    return [heading(title), Paragraph(""), FittedTable(columns)]


def _caption(edition: ExtractionEdition) -> str:
    shown = [each for _, _, each in _leading_rows(edition)]
    shown += [edition.result[SetF1(average, mode).name] for mode in TITLES for average in AVERAGES]
    methods = dict.fromkeys(each.interval.method for each in shown if each.interval.known)
    how = f"Intervals over documents: {', '.join(methods)}. " if methods else ""
    rate = edition.documents / edition.seconds if edition.seconds else 0.0
    return (
        f"Counted are {edition.counted}. Soft scores match one to one and give near terms part of a hit. "
        f"{how}Chance is what the same findings would score if they were dealt to the documents at random. "
        f"{count(edition.chunks)} chunks in {figure(edition.seconds, 1)} s, {figure(rate, 1)} documents a "
        "second."
    )


def _modes(edition: ExtractionEdition) -> list[Any]:
    """P, R and F1 by every mode and average."""
    rows = [(mode, average) for mode in TITLES for average in AVERAGES]
    columns = [
        Column("mode", [TITLES[mode] if average == AVERAGES[0] else "" for mode, average in rows]),
        Column("average", [average for _, average in rows]),
    ]
    for title, kind in SCORES:
        found = [edition.result[kind(average, mode).name] for mode, average in rows]
        columns.append(Column(title, [figure(each.value, _PLACES) for each in found], right=True))
    of_f1 = [edition.result[SetF1(average, mode).name] for mode, average in rows]
    columns.append(
        Column("F1 interval", [span(each.interval, _PLACES) for each in of_f1], right=True, rank=1)
    )
    undefined = [str(each.undefined) for each in of_f1]
    columns.append(Column("undefined", undefined, right=True, rank=2))
    return [Paragraph(""), heading("By mode and average"), Paragraph(""), FittedTable(columns)]


def _stages(edition: ExtractionEdition) -> list[Any]:
    """Where the gold entries ended."""
    total = sum(edition.stages.values())
    met = {stage: number for stage, number in edition.stages.items() if number}
    if not total:
        return []
    columns = [
        Column("ended at", list(met)),
        Column("gold entries", [count(number) for number in met.values()], right=True),
        Column("share", [figure(number / total, _PLACES) for number in met.values()], right=True),
    ]
    return [Paragraph(""), heading("What became of the gold"), Paragraph(""), FittedTable(columns)]


def _mistakes(edition: ExtractionEdition) -> list[Any]:
    """Predicted and gold entries by kind."""
    kinds = list(edition.mistakes["predicted"])
    columns = [
        Column("kind", kinds),
        Column("predicted", [count(edition.mistakes["predicted"][each]) for each in kinds], right=True),
        Column("gold", [count(edition.mistakes["gold"][each]) for each in kinds], right=True),
    ]
    return [
        Paragraph(""),
        heading("Errors by kind"),
        Paragraph(""),
        FittedTable(columns),
        Paragraph("Parent, child, sibling: what was found, seen from the gold term of the same document."),
    ]


def _spans(edition: ExtractionEdition) -> list[Any]:
    """What the model makes of the spans that people marked."""
    if not edition.spans:
        return []
    columns = [
        Column("gold spans as queries", [each.metric for each in edition.spans], shortens="end"),
        Column("estimate", [figure(each.value, _PLACES) for each in edition.spans], right=True),
        Column("interval", [span(each.interval, _PLACES) for each in edition.spans], right=True, rank=1),
    ]
    found, chunker, model = edition.split
    return [
        Paragraph(""),
        heading("The model apart from the chunker"),
        Paragraph(""),
        FittedTable(columns),
        Paragraph(
            f"Marked gold terms: {count(found + chunker + model)}. Found: {count(found)}. Lost by the "
            f"chunker: {count(chunker)}, which their own words would have found. Lost by the "
            f"model: {count(model)}, which are not found even so."
        ),
    ]
