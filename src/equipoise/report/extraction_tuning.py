"""What people see of a tuning of extraction: the nested figure first, the optimistic one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.extraction import problems_part
from equipoise.report.findings import findings_part, gravest_first
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import figure, p_value, percent, signed, span
from equipoise.stats.result import Estimate
from equipoise.tune.record import Params, Tuning
from equipoise.types import Finding

_PLACES = 3


@dataclass(frozen=True)
class TunedPart:
    """One model: its tuning, the figure that may be quoted, and precision and recall of every trial.

    ``unseen`` are further figures on documents that had no say, by name.
    """

    name: str
    tuning: Tuning
    estimate: Estimate
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    unseen: tuple[tuple[str, float], ...] = ()

    @property
    def frontier(self) -> list[int]:
        """The trials of the grid that no other beats in precision and recall at once, by rising recall.

        Of equal ones the first stands for all.
        """
        known = [
            place
            for place in range(len(self.tuning.grid))
            if not isnan(self.precision[place]) and not isnan(self.recall[place])
        ]
        order = sorted(known, key=lambda place: (-self.recall[place], -self.precision[place], place))
        edge: list[int] = []
        for place in order:
            if not edge or self.precision[place] > self.precision[edge[-1]]:
                edge.append(place)
        return edge[::-1]


@dataclass(frozen=True)
class TuningEdition:
    """All that the report of a tuning shows."""

    parts: tuple[TunedPart, ...]
    documents: int
    counted: str
    comparison: Comparison | None
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def tuning_report(edition: TuningEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    first = edition.parts[0].tuning
    nested = bool(first.folds)
    documents = counted(edition.documents, "document")
    title = (
        f"{first.trial_metric} on {documents} that had no say in the parameters"
        if nested
        else f"{first.metric} on the very {documents} that chose the parameters (optimistic)"
    )
    parts: list[Any] = [heading(title), Paragraph(""), FittedTable(model_columns(edition))]
    parts += [Paragraph(""), *map(Paragraph, _deployed(edition))]
    if quiet:
        return parts
    parts += [Paragraph(""), Paragraph(_caption(edition, nested))]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    if edition.comparison is not None:
        parts += [Paragraph(""), Paragraph(edition.comparison.verdict(), style="bold")]
    for part in edition.parts:
        parts += _frontier(part)
        if verbose:
            parts += _folds(part)
    parts += problems_part(edition.problems, verbose=verbose)
    return [*parts, *findings_part(gravest_first(edition.findings), verbose=verbose)]


def model_columns(edition: TuningEdition) -> list[Column]:
    """A row a model, best first: the figure that may be quoted, and the optimistic one."""
    ranked = sorted(edition.parts, key=lambda each: -each.estimate.value)
    estimates = [each.estimate for each in ranked]
    level = percent(estimates[0].interval.level)
    columns = [
        Column("model", [each.name for each in ranked], shortens="middle"),
        Column("nested" if ranked[0].tuning.folds else "F1", _figures(estimates), right=True),
        Column(f"{level} interval", [span(each.interval, _PLACES) for each in estimates], right=True, rank=1),
    ]
    if edition.comparison is not None:
        columns.append(Column("adj. p", [_p(edition.comparison, each.name) for each in ranked], right=True))
    if ranked[0].tuning.folds:
        best = [figure(each.tuning.optimistic, _PLACES) for each in ranked]
        columns.append(Column("optimistic", best, right=True, rank=2))
        columns.append(
            Column("gap", [signed(each.tuning.gap, _PLACES) for each in ranked], right=True, rank=4)
        )
    usual = [_baseline(each.tuning) for each in ranked]
    columns.append(Column("untuned", usual, right=True, rank=3))
    columns.append(Column("chance", [figure(each.chance, _PLACES) for each in estimates], right=True, rank=5))
    return columns


def _deployed(edition: TuningEdition) -> list[str]:
    """What to deploy of each model, and that it is no better than what nobody tuned, where it is not."""
    lines = []
    for part in edition.parts:
        tuning = part.tuning
        line = f"Deploy {part.name} with {params_text(tuning.trials[tuning.best].params)}."
        usual = None if tuning.baseline is None else tuning.trials[tuning.baseline]
        if usual is not None and not usual.value < tuning.optimistic:
            line += (
                f" No trial beats the parameters that nobody tuned ({params_text(usual.params)}), which have "
                f"{figure(usual.value, _PLACES)} on the same documents: keep those, or try more."
            )
        lines.append(line)
    return lines


def params_text(params: Params) -> str:
    """Parameters in a few words.

    >>> few = {"num_results": 3, "chunk_threshold": 0.61, "min_confidence": 0.0, "top_term_only": False}
    >>> params_text(few)
    '3 terms, threshold 0.61'
    """
    first = params["top_term_only"]
    parts = ["top term only" if first else f"{params['num_results']} terms"]
    parts.append(f"threshold {float(params['chunk_threshold'] or 0.0):g}")
    confidence = float(params["min_confidence"] or 0.0)
    if confidence > 0:
        parts.append(f"confidence {confidence:g}")
    return ", ".join(parts)


def _figures(estimates: Sequence[Estimate]) -> list[str]:
    return [figure(each.value, _PLACES) for each in estimates]


def _baseline(tuning: Tuning) -> str:
    return "n/a" if tuning.baseline is None else figure(tuning.trials[tuning.baseline].value, _PLACES)


def _p(comparison: Comparison, name: str) -> str:
    """The adjusted p against the leader."""
    leader = comparison.leader
    if leader is None or name == leader:
        return ""
    return p_value(comparison.contrast(leader, name).adjusted)


def _caption(edition: TuningEdition, nested: bool) -> str:
    first = edition.parts[0]
    trials = counted(len(first.tuning.grid), "trial")
    told = [f"Counted are {edition.counted}. {trials} a model, from one grid; {_outcomes(edition)}."]
    if nested:
        told.append(
            f"{len(first.tuning.folds)} folds: each document is scored by what was chosen without it. "
            "Optimistic is the best trial on the documents that chose it. Thresholds are quantiles of a "
            "model's own scores on all texts, those of the fold left out among them; no gold is looked at."
        )
    unseen = ", ".join(f"{name} {figure(value, _PLACES)}" for name, value in first.unseen)
    if nested and unseen:
        told.append(f"On unseen documents {first.name} has {unseen}.")
    return " ".join(told)


def _outcomes(edition: TuningEdition) -> str:
    """How many trials of each model scored unlike its others."""
    told = []
    for part in edition.parts:
        values = [trial.value for trial in part.tuning.grid]
        rows = zip(values, part.precision, part.recall, strict=False)
        told.append(f"{len({repr(row) for row in rows})} of {part.name}")
    return f"{', '.join(told)} scored unlike the others"


def _frontier(part: TunedPart) -> list[Any]:
    """The trials that nothing beats in precision and recall at once."""
    edge = part.frontier
    if not edge:
        return []
    best = part.tuning.best
    columns = [
        Column("", ["chosen" if place == best else "" for place in edge]),
        Column("precision", [figure(part.precision[place], _PLACES) for place in edge], right=True),
        Column("recall", [figure(part.recall[place], _PLACES) for place in edge], right=True),
        Column("F1", [figure(part.tuning.trials[place].value, _PLACES) for place in edge], right=True),
        Column("parameters", [params_text(part.tuning.trials[place].params) for place in edge], rank=1),
    ]
    title = heading(f"Precision against recall of {part.name}, on the documents that chose (optimistic)")
    return [Paragraph(""), title, Paragraph(""), FittedTable(columns)]


def _folds(part: TunedPart) -> list[Any]:
    folds = part.tuning.folds
    if not folds:
        return []
    columns = [
        Column("fold", [str(number) for number in range(1, len(folds) + 1)], right=True),
        Column("documents", [str(each.n) for each in folds], right=True),
        Column("inner", [figure(each.inner, _PLACES) for each in folds], right=True),
        Column("outer", [figure(each.outer, _PLACES) for each in folds], right=True),
        Column("chosen", [params_text(each.params) for each in folds]),
    ]
    return [Paragraph(""), heading(f"Folds of {part.name}"), Paragraph(""), FittedTable(columns)]
