"""What people see of concept scores: the scores with intervals and chance, their parts, and what to use."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.concepts_edition import ByModel, ConceptEdition
from equipoise.report.findings import findings_part
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.numbers import figure, p_value, percent, shared_decimals, signed, span
from equipoise.stats.result import Estimate
from equipoise.types import Direction, labelled


def concepts_report(edition: ConceptEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts = scores_part(edition, quiet=quiet)
    if not quiet:
        parts += [*parts_part(edition, verbose=verbose), *beside_part(edition, verbose=verbose)]
        parts += [*pairs_part(edition)] if verbose else []
        parts += weights_part(edition)
    parts += advice_part(edition)
    return parts if quiet else [*parts, *findings_part(edition.findings, verbose=verbose)]


def scores_part(edition: ConceptEdition, *, quiet: bool = False) -> list[Any]:
    """Every score of every model, with what is known about it."""
    title = f"{counted(len(edition.models), 'model')} on {edition.name}, best first in every score"
    parts: list[Any] = [heading(title), Paragraph(""), FittedTable(score_columns(edition))]
    parts += [Paragraph(labelled(f"{name} failed", text)) for name, text in edition.failures.items()]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    return parts if quiet else [*parts, Paragraph(""), Paragraph(caption(edition))]


def score_columns(edition: ConceptEdition) -> list[Column]:
    """One row a score and model; on a narrow screen the score and who differs stay longest."""
    rows = []
    for standing in edition.all_standings:
        estimates = [standing.estimates[name] for name in standing.order]
        places = shared_decimals(each.interval for each in estimates)
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


def caption(edition: ConceptEdition) -> str:
    """What the letters, the intervals and the chance levels are."""
    drawn = "; ".join(f"{each.score}: {each.drawn}" for each in edition.standings)
    letters = (
        "Models that share a letter in a score cannot be told apart there "
        f"({edition.standings[0].family or 'one pair, nothing to correct for'}). "
        if len(edition.models) > 1
        else ""
    )
    luck = "; ".join(f"{each.score}: {each.luck}" for each in edition.standings)
    return (
        f"{letters}Intervals come from units that are drawn again ({drawn}). Chance is the score of what knows "
        f"nothing ({luck}). The readings poor, moderate, good and excellent are cut at 0.3, 0.5 and 0.7, "
        "wherever chance lies."
    )


def parts_part(edition: ConceptEdition, *, verbose: bool = False) -> list[Any]:
    """What each score adds up, term by term."""
    parts: list[Any] = [Paragraph(""), heading("What the scores are made of"), Paragraph("")]
    rows = [
        (f"{standing.score} =" if place == 0 else "", f"{'+ ' if place else '  '}{term}", own)
        for standing in edition.standings
        for place, (term, own) in enumerate(standing.terms.items())
    ]
    columns = [Column("score", [row[0] for row in rows]), Column("part", [row[1] for row in rows])]
    columns += _by_model(edition.models, [row[2] for row in rows], verbose=verbose)
    methods = [each.method for each in edition.standings if each.method]
    return [*parts, FittedTable(columns), *(Paragraph(f"{method}.") for method in methods)]


def beside_part(edition: ConceptEdition, *, verbose: bool = False) -> list[Any]:
    """Figures that the faults of the blends do not touch."""
    rows = [
        (standing.title if place == 0 else "", name, own)
        for standing in edition.standings
        for place, (name, own) in enumerate(standing.beside.items())
    ]
    columns = [
        Column("about", [row[0] for row in rows], rank=1),
        Column("figure", [f"{name} {_arrow(own)}" for _, name, own in rows]),
        *_by_model(edition.models, [row[2] for row in rows], verbose=verbose),
        Column("chance", [_chance(own) for _, _, own in rows], right=True, rank=20),
    ]
    return [
        Paragraph(""),
        heading("Beside them: held against the true labels, or free of scale"),
        Paragraph(""),
        FittedTable(columns),
    ]


def _by_model(models: Sequence[str], rows: Sequence[ByModel], *, verbose: bool) -> list[Column]:
    """A column a model, the later ones the first to give way."""
    columns = []
    for place, model in enumerate(models):
        cells = []
        for own in rows:
            digits = shared_decimals(each.interval for each in own.values())
            cells.append(_cell(own.get(model), digits, verbose=verbose))
        columns.append(Column(model, cells, right=True, rank=place and 2 + place))
    return columns


def _cell(estimate: Estimate | None, digits: int, *, verbose: bool) -> str:
    if estimate is None:
        return "n/a"
    shown = figure(estimate.value, digits)
    return f"{shown} {span(estimate.interval, digits)}" if verbose and estimate.interval.known else shown


def _arrow(own: ByModel) -> str:
    down = next(iter(own.values())).better == Direction.DOWN
    return "↓" if down else "↑"


def _chance(own: ByModel) -> str:
    """The chance level over all models, which differs a little where it depends on their vectors."""
    known = [each.chance for each in own.values() if not isnan(each.chance)]
    if not known:
        return ""
    digits = shared_decimals(each.interval for each in own.values())
    low, high = figure(min(known), digits), figure(max(known), digits)
    return low if low == high else f"{low} to {high}"


def pairs_part(edition: ConceptEdition) -> list[Any]:
    """Every pair of models on every score."""
    pairs = [(each.score, contrast) for each in edition.all_standings for contrast in each.contrasts]
    if not pairs:
        return []
    digits = [shared_decimals([contrast.interval]) for _, contrast in pairs]
    shown = [(contrast, places) for (_, contrast), places in zip(pairs, digits, strict=True)]
    return [
        Paragraph(""),
        heading("Every pair"),
        Paragraph(""),
        FittedTable(
            [
                Column("score", [score for score, _ in pairs]),
                Column("model", [each.a for _, each in pairs], shortens="middle"),
                Column("minus", [each.b for _, each in pairs], shortens="middle"),
                Column("difference", [signed(each.difference, at) for each, at in shown], right=True),
                Column("interval", [span(each.interval, at) for each, at in shown], right=True, rank=2),
                Column("adj. p", [p_value(each.adjusted) for _, each in pairs], right=True, rank=1),
            ]
        ),
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
                Column("comes first in", [percent(round(each.share, 3)) for each in ordered], right=True),
                Column(
                    "with redrawn units", [percent(round(each.redrawn, 3)) for each in ordered], right=True
                ),
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
        *(
            Paragraph(f"{each.sentence}{f'; {each.caution}' if each.caution else ''}", lead=f"{each.use}: ")
            for each in edition.advice
        ),
    ]
