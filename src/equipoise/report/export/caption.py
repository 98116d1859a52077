"""What must be said beside a table, so that it can stand alone in a paper: test, correction, n, level."""

from __future__ import annotations

from math import isnan

from equipoise.checks.base import counted
from equipoise.report.export.sheet import PARTIAL, Sheet
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import count, percent


def caption(sheet: Sheet) -> list[str]:
    """Plain sentences, the most important first."""
    said = [_subject(sheet), _intervals(sheet)]
    if sheet.comparison is not None:
        said += [_letters(sheet.comparison), "The best of a column is bold."]
    said += [
        "Arrows point to where figures are better. Chance is what a system that knows nothing would score.",
        "A chance level with an inequality sign is only a bound: the number of candidates is not known."
        if sheet.bounded
        else "",
        _like(sheet),
        _undefined(sheet),
        _unknown(sheet),
        *_cautions(sheet),
    ]
    return [sentence for sentence in said if sentence]


def notes(sheet: Sheet) -> list[str]:
    """What must be said where there is no table to explain."""
    letters = [] if sheet.comparison is None else [_letters(sheet.comparison)]
    return [*filter(None, (_subject(sheet), _like(sheet))), *letters, *_cautions(sheet)]


def _cautions(sheet: Sheet) -> list[str]:
    return [f"{PARTIAL} {sentence}." for sentence in sheet.cautions.values()]


def _subject(sheet: Sheet) -> str:
    systems = sheet.systems[0] if len(sheet.systems) == 1 else f"{len(sheet.systems)} systems"
    within = f" in {counted(sheet.clusters, 'cluster')}" if sheet.clusters is not None else ""
    order = f", best first on {sheet.comparison.primary}" if sheet.comparison else ""
    return f"{_listed(sheet.metrics)} of {systems} on {counted(sheet.units, 'unit')}{within}{order}."


def _intervals(sheet: Sheet) -> str:
    known = [each.interval for metric in sheet.metrics for each in sheet.column(metric)]
    known = [interval for interval in known if interval.known]
    if not known:
        return ""
    methods = ", ".join(dict.fromkeys(interval.method for interval in known))
    levels = " and ".join(dict.fromkeys(percent(interval.level) for interval in known))
    return f"In brackets: {levels} intervals ({methods})."


def _letters(comparison: Comparison) -> str:
    """What the letters mean, and which test and correction they come from."""
    question = comparison.question
    test = f"{comparison.test[:1].upper()}{comparison.test[1:]}, two-sided"
    flips = "" if comparison.flips is None else f", {count(comparison.flips)} flips"
    return (
        f"Systems that share a letter on a metric cannot be told apart at {percent(question.level)}. "
        f"{test}{flips}, seed {question.seed}; {comparison.families_of(comparison.metrics)}."
    )


def _like(sheet: Sheet) -> str:
    return f"Scored like {sheet.like}, by its rules for each metric." if sheet.like else ""


def _undefined(sheet: Sheet) -> str:
    gaps = [
        f"{metric} of {system} ({counted(estimate.undefined, 'unit')})"
        for metric in sheet.metrics
        for system, estimate in zip(sheet.systems, sheet.column(metric), strict=True)
        if estimate.undefined
    ]
    return f"Undefined units, left out of the figure: {_listed(gaps)}." if gaps else ""


def _unknown(sheet: Sheet) -> str:
    gaps = [
        f"{metric} of {system} ({estimate.interval.reason})"
        for metric in sheet.metrics
        for system, estimate in zip(sheet.systems, sheet.column(metric), strict=True)
        if not estimate.interval.known or isnan(estimate.value)
    ]
    return f"Without an interval: {_listed(gaps)}." if gaps else ""


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
