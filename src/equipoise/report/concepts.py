"""What people see of concept scores: the scores with intervals and chance, their parts, and what to use."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.concepts_edition import ByModel, ConceptEdition, Standing
from equipoise.report.findings import findings_part
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import between, figure, p_value, percent, shared_decimals, signed, span
from equipoise.stats.result import Estimate
from equipoise.types import Direction, labelled

SMALL = 10.0
"""Figures below this are no ranks."""
REASON = 24
"""The longest reason that a table shows in place of an interval; results.json has them all."""

Row = tuple[str, str, ByModel]
"""What a figure is about, its name, and what every model has."""


def concepts_report(edition: ConceptEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts = scores_part(edition, verbose=verbose, quiet=quiet)
    if not quiet:
        parts += [*parts_part(edition, verbose=verbose), *beside_part(edition, verbose=verbose)]
        parts += [*pairs_part(edition)] if verbose else []
        parts += weights_part(edition)
    parts += advice_part(edition)
    return parts if quiet else [*parts, *findings_part(edition.findings, verbose=verbose)]


def scores_part(edition: ConceptEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """Every score of every model, with what is known about it."""
    several = ", best first in every score" if len(edition.models) > 1 else ""
    title = f"{counted(len(edition.models), 'model')} on {edition.name}{several}"
    parts: list[Any] = [heading(title), Paragraph(""), FittedTable(score_columns(edition))]
    parts += [Paragraph(labelled(f"{name} failed", text)) for name, text in edition.failures.items()]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    return parts if quiet else [*parts, Paragraph(""), Paragraph(caption(edition, verbose=verbose))]


def score_columns(edition: ConceptEdition) -> list[Column]:
    """One row a score and model; on a narrow screen the score and who differs stay longest."""
    rows = []
    for standing in edition.all_standings:
        estimates = [standing.estimates[name] for name in standing.order]
        places = _places(estimates)
        for number, (name, own) in enumerate(zip(standing.order, estimates, strict=True)):
            rows.append(
                (
                    standing.score if number == 0 else "",
                    " ".join(standing.letters[name]) or "-",
                    name,
                    figure(own.value, places),
                    span(own.interval, places),
                    figure(own.chance, places),
                    edition.readings[standing.score][name],
                )
            )
    score, band, model, value, reach, chance, said = zip(*rows, strict=True)
    level = percent(edition.settings.get("level", 0.95))
    several = [Column("band", band, rank=1)] if len(edition.models) > 1 else []
    return [
        Column("score", score),
        *several,
        Column("model", model, shortens="middle"),
        Column("value", value, right=True),
        Column(f"{level} interval", reach, right=True, rank=2),
        Column("chance", chance, right=True, rank=3),
        Column("reading", said, rank=4),
    ]


def caption(edition: ConceptEdition, *, verbose: bool = False) -> str:
    """What the letters, the intervals and the chance levels are."""
    letters = (
        "Models that share a letter in a score cannot be told apart there "
        f"({edition.standings[0].family or 'one pair, nothing to correct for'}). "
        if len(edition.models) > 1
        else ""
    )
    drawn = ", ".join(each.drawn if verbose else each.units for each in edition.standings)
    luck = f" ({'; '.join(each.luck for each in edition.standings)})" if verbose else ""
    return (
        f"{letters}Intervals come from units that are drawn again: {drawn}. Chance is the score of what "
        f"knows nothing: shuffled pairs and labels, or random vectors of the same shape{luck}. The readings "
        f"are cut at 0.3, 0.5 and 0.7, wherever chance lies.{'' if verbose else ' More: --verbose.'}"
    )


def parts_part(edition: ConceptEdition, *, verbose: bool = False) -> list[Any]:
    """What each score adds up, term by term."""
    rows = [
        (f"{standing.score} =" if place == 0 else "", f"{'+ ' if place else '  '}{term}", own)
        for standing in edition.standings
        for place, (term, own) in enumerate(standing.terms.items())
    ]
    methods = [each.method for each in edition.standings if each.method]
    methods += [line for each in edition.standings for line in each.readings] if verbose else []
    return [
        Paragraph(""),
        heading("What the scores are made of"),
        Paragraph(""),
        _table("score", "part", rows, edition.models, verbose=verbose),
        *(Paragraph(f"{method}.") for method in methods),
    ]


def beside_part(edition: ConceptEdition, *, verbose: bool = False) -> list[Any]:
    """Figures that the faults of the blends do not touch."""
    rows = [
        (standing.title if place == 0 else "", f"{name} {_arrow(own)}", own)
        for standing in edition.standings
        for place, (name, own) in enumerate(standing.beside.items())
    ]
    return [
        Paragraph(""),
        heading("Beside them: held against the true labels, or free of scale"),
        Paragraph(""),
        _table("about", "figure", rows, edition.models, verbose=verbose, chance=True),
    ]


def _table(
    first: str,
    second: str,
    rows: Sequence[Row],
    models: Sequence[str],
    *,
    verbose: bool,
    chance: bool = False,
) -> FittedTable:
    """A column a model, the later ones the first to give way; in detail a row a model, with intervals."""
    digits = [_places(list(own.values())) for _, _, own in rows]
    if verbose:
        return FittedTable(_detailed(first, second, rows, digits))
    columns = [Column(first, [row[0] for row in rows], rank=20), Column(second, [row[1] for row in rows])]
    for place, model in enumerate(models):
        cells = [
            figure(own[model].value, places) if model in own else "n/a"
            for (_, _, own), places in zip(rows, digits, strict=True)
        ]
        columns.append(Column(model, cells, right=True, rank=place))
    if chance:
        luck = [_chance(own, places) for (_, _, own), places in zip(rows, digits, strict=True)]
        columns.append(Column("chance", luck, right=True, rank=21))
    return FittedTable(columns)


def _detailed(first: str, second: str, rows: Sequence[Row], digits: Sequence[int]) -> list[Column]:
    cells = [
        (
            about if place == 0 else "",
            name if place == 0 else "",
            model,
            figure(each.value, places),
            _reach(each.interval, places),
            figure(each.chance, places),
        )
        for (about, name, own), places in zip(rows, digits, strict=True)
        for place, (model, each) in enumerate(own.items())
    ]
    abouts, names, models, values, reaches, luck = zip(*cells, strict=True)
    return [
        Column(first, abouts, rank=5),
        Column(second, names),
        Column("model", models, shortens="middle"),
        Column("value", values, right=True),
        Column("interval", reaches, right=True, rank=1),
        Column("chance", luck, right=True, rank=2),
    ]


def _places(estimates: Sequence[Estimate]) -> int:
    """Decimals for figures side by side; two at least where they are small: a correlation is never 1.0."""
    places = shared_decimals(each.interval for each in estimates)
    return (
        max(places, 2) if all(abs(each.value) < SMALL or isnan(each.value) for each in estimates) else places
    )


def _reach(interval: Interval, places: int) -> str:
    """An interval in a table of many: a reason must not be wider than what it stands for."""
    text = span(interval, places)
    return text if len(text) <= REASON else "n/a"


def _share(share: float) -> str:
    """A share of all, every one to the same digit."""
    return f"{figure(100 * share, 1)} %"


def _arrow(own: ByModel) -> str:
    return "↓" if next(iter(own.values())).better == Direction.DOWN else "↑"


def _chance(own: ByModel, places: int) -> str:
    """The chance level over all models, which differs a little where it depends on their vectors."""
    known = [each.chance for each in own.values() if not isnan(each.chance)]
    return between(min(known), max(known), places) if known else ""


def pairs_part(edition: ConceptEdition) -> list[Any]:
    """Every pair of models on every score."""
    every = [each for each in edition.all_standings if each.contrasts]
    parts: list[Any] = [Paragraph(""), heading("Every pair")] if every else []
    for standing in every:
        parts += [Paragraph(""), FittedTable(_pair_columns(standing))]
    return parts


def _pair_columns(standing: Standing) -> list[Column]:
    """Every pair of models on one score, whose name is the head of the first column."""
    pairs = [(each, shared_decimals([each.interval])) for each in standing.contrasts]
    return [
        Column(standing.title, [each.a for each, _ in pairs], shortens="middle"),
        Column("minus", [each.b for each, _ in pairs], shortens="middle"),
        Column("difference", [signed(each.difference, at) for each, at in pairs], right=True),
        Column("interval", [_reach(each.interval, at) for each, at in pairs], right=True, rank=2),
        Column("adj. p", [p_value(each.adjusted) for each, _ in pairs], right=True, rank=1),
    ]


def weights_part(edition: ConceptEdition) -> list[Any]:
    """How much the winner of the composite owes to the weights."""
    if not edition.winning:
        return []
    ordered = sorted(edition.winning, key=lambda each: -each.share)
    return [
        Paragraph(""),
        heading("If the scores were weighted otherwise"),
        Paragraph(""),
        FittedTable(
            [
                Column("model", [each.model for each in ordered], shortens="middle"),
                Column("comes first in", [_share(each.share) for each in ordered], right=True),
                Column("with redrawn units", [_share(each.redrawn) for each in ordered], right=True),
            ]
        ),
        Paragraph("of all weightings of the composite, each as likely as any other."),
    ]


def advice_part(edition: ConceptEdition) -> list[Any]:
    """Which model to use for what."""
    if not edition.advice:
        return []
    return [
        Paragraph(""),
        heading("What to use"),
        Paragraph(""),
        *(Paragraph(each.text, lead=f"{each.use}: ") for each in edition.advice),
    ]
