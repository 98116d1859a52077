"""What people see of concept scores: the scores with intervals and chance, their parts, and what to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.errors import UnknownNameError
from equipoise.report.findings import findings_section
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import (
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_range,
    format_value,
    shared_decimals,
)
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Finding, with_label

if TYPE_CHECKING:
    from equipoise.stats.contrasts import Contrast
    from equipoise.stats.intervals import Interval

# What a report on concept scores shows: every model on every score, the claims, and what to use.

ByModel = Mapping[str, Estimate]


@dataclass(frozen=True)
class ScoreComparison:
    """All models on one score.

    ``terms`` are what the score adds up, as it enters; ``parts`` are the figures behind them, and ``beside``
    what judges without its faults; each by name and then by model. ``letters`` are tie bands: two models
    share one exactly when the data cannot tell them apart. ``units`` are what the score rests on, ``drawn``
    says how they were drawn again for the intervals, ``luck`` what the chance level is made of, ``family``
    what p was corrected for. ``readings`` say how the words of the source were read where they leave a
    choice. ``truth`` names the figure beside that is held against the truth: ``chance_p`` has the p of "no
    better than shuffled" by figure and model, ``truth_contrasts`` every pair of models on it.
    """

    score: str
    title: str
    formula: str
    estimates: ByModel
    contrasts: tuple[Contrast, ...] = field(repr=False)
    letters: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    drawn: str
    units: str = ""
    luck: str = ""
    family: str = ""
    method: str = ""
    readings: tuple[str, ...] = ()
    truth: str = ""
    chance_p: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    truth_contrasts: tuple[Contrast, ...] = field(default=(), repr=False)
    terms: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    parts: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    beside: Mapping[str, ByModel] = field(default_factory=dict, repr=False)

    @property
    def leader(self) -> str | None:
        """The model with the highest score; None where no model has one."""
        return next((name for name in self.order if self.letters[name]), None)

    @property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The models that cannot be told from the leader, best first."""
        if self.leader is None:
            return ()
        mine = set(self.letters[self.leader])
        return tuple(name for name in self.order if name != self.leader and mine & set(self.letters[name]))

    @property
    def scored(self) -> tuple[str, ...]:
        """The models that have this score, best first."""
        return tuple(name for name in self.order if self.letters[name])

    def above_chance(self, figure: str, model: str) -> bool:
        """Whether a figure beside is shown to be better than luck: by shuffles, else by its interval."""
        own = self.beside[figure][model]
        if figure in self.chance_p:
            return self.chance_p[figure].get(model, nan) < 1 - own.interval.confidence_level
        return own.interval.known and own.interval.low > own.chance

    def beaten(self, model: str) -> tuple[str, ...]:
        """The models whose figure against the truth is shown to be better than that of this one."""
        return tuple(
            each.a
            for seen in self.truth_contrasts
            for each in (seen, seen.reversed())
            if each.b == model and each.difference > 0 and each.adjusted < 1 - each.interval.confidence_level
        )

    def contrast(self, a: str, b: str) -> Contrast:
        """Model ``a`` minus model ``b``."""
        for each in self.contrasts:
            if {each.a, each.b} == {a, b} and a != b:
                return each if each.a == a else each.reversed()
        raise UnknownNameError.of("pair of models", f"{a}, {b}", (f"{c.a}, {c.b}" for c in self.contrasts))


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use for a kind of work: the models that may be best, and the sentence that says so.

    ``caution`` is what a figure says that is held against the truth, where that is another thing.
    """

    use: str
    score: str
    models: tuple[str, ...]
    message: str
    caution: str = ""

    @property
    def text(self) -> str:
        """The sentence with its caution."""
        return f"{self.message}; {self.caution}" if self.caution else self.message

    @property
    def settled(self) -> bool:
        """Whether the data separate one model from all others."""
        return len(self.models) == 1


@dataclass(frozen=True, slots=True)
class WeightSensitivity:
    """In what share of all weightings a model comes first: with the scores as they are, and redrawn."""

    model: str
    share: float
    redrawn: float


@dataclass(frozen=True)
class ConceptReportData:
    """The whole of it; ``composite`` is None where not all of its scores are there, and ``notes`` say why."""

    name: str
    models: tuple[str, ...]
    standings: tuple[ScoreComparison, ...]
    composite: ScoreComparison | None
    advice: tuple[Recommendation, ...]
    winning: tuple[WeightSensitivity, ...]
    readings: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_standings(self) -> tuple[ScoreComparison, ...]:
        """The scores and, where there is one, the composite after them."""
        return self.standings if self.composite is None else (*self.standings, self.composite)


SMALL = 10.0
"""Figures below this are no ranks."""
MAX_REASON_LENGTH = 24
"""The longest reason that a table shows in place of an interval; results.json has them all."""

Row = tuple[str, str, ByModel]
"""What a figure is about, its name, and what every model has."""


def concepts_report(edition: ConceptReportData, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts = scores_part(edition, verbose=verbose, quiet=quiet)
    if not quiet:
        parts += [
            *component_table(edition, verbose=verbose),
            *reference_metric_table(edition, verbose=verbose),
        ]
        parts += [*pairwise_table(edition)] if verbose else []
        parts += weight_table(edition)
    parts += recommendation_notes(edition)
    return parts if quiet else [*parts, *findings_section(edition.findings, verbose=verbose)]


def scores_part(edition: ConceptReportData, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """Every score of every model, with what is known about it."""
    several = ", best first in every score" if len(edition.models) > 1 else ""
    title = f"{pluralize(len(edition.models), 'model')} on {edition.name}{several}"
    parts: list[Any] = [heading(title), Paragraph(""), TerminalTable(score_columns(edition))]
    parts += [Paragraph(with_label(f"{name} failed", text)) for name, text in edition.failures.items()]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    return parts if quiet else [*parts, Paragraph(""), Paragraph(caption(edition, verbose=verbose))]


def score_columns(edition: ConceptReportData) -> list[ReportColumn]:
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
                    format_value(own.value, places),
                    format_interval(own.interval, places),
                    format_value(own.chance, places),
                    edition.readings[standing.score][name],
                )
            )
    score, band, model, value, reach, chance, said = zip(*rows, strict=True)
    level = format_percent(edition.settings.get("confidence_level", 0.95))
    several = [ReportColumn("band", band, rank=1)] if len(edition.models) > 1 else []
    return [
        ReportColumn("score", score),
        *several,
        ReportColumn("model", model, shortens="middle"),
        ReportColumn("value", value, right=True),
        ReportColumn(f"{level} interval", reach, right=True, rank=2),
        ReportColumn("chance", chance, right=True, rank=3),
        ReportColumn("reading", said, rank=4),
    ]


def caption(edition: ConceptReportData, *, verbose: bool = False) -> str:
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


def component_table(edition: ConceptReportData, *, verbose: bool = False) -> list[Any]:
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


def reference_metric_table(edition: ConceptReportData, *, verbose: bool = False) -> list[Any]:
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
) -> TerminalTable:
    """A column a model, the later ones the first to give way; in detail a row a model, with intervals."""
    digits = [_places(list(own.values())) for _, _, own in rows]
    if verbose:
        return TerminalTable(_detailed(first, second, rows, digits))
    columns = [
        ReportColumn(first, [row[0] for row in rows], rank=20),
        ReportColumn(second, [row[1] for row in rows]),
    ]
    for place, model in enumerate(models):
        cells = [
            format_value(own[model].value, places) if model in own else "n/a"
            for (_, _, own), places in zip(rows, digits, strict=True)
        ]
        columns.append(ReportColumn(model, cells, right=True, rank=place))
    if chance:
        luck = [_chance(own, places) for (_, _, own), places in zip(rows, digits, strict=True)]
        columns.append(ReportColumn("chance", luck, right=True, rank=21))
    return TerminalTable(columns)


def _detailed(first: str, second: str, rows: Sequence[Row], digits: Sequence[int]) -> list[ReportColumn]:
    cells = [
        (
            about if place == 0 else "",
            name if place == 0 else "",
            model,
            format_value(each.value, places),
            _reach(each.interval, places),
            format_value(each.chance, places),
        )
        for (about, name, own), places in zip(rows, digits, strict=True)
        for place, (model, each) in enumerate(own.items())
    ]
    abouts, names, models, values, reaches, luck = zip(*cells, strict=True)
    return [
        ReportColumn(first, abouts, rank=5),
        ReportColumn(second, names),
        ReportColumn("model", models, shortens="middle"),
        ReportColumn("value", values, right=True),
        ReportColumn("interval", reaches, right=True, rank=1),
        ReportColumn("chance", luck, right=True, rank=2),
    ]


def _places(estimates: Sequence[Estimate]) -> int:
    """Decimals for figures side by side; two at least where they are small: a correlation is never 1.0."""
    places = shared_decimals(each.interval for each in estimates)
    return max(places, 2) if all(abs(each.value) < SMALL or isnan(each.value) for each in estimates) else places


def _reach(interval: Interval, places: int) -> str:
    """An interval in a table of many: a reason must not be wider than what it stands for."""
    text = format_interval(interval, places)
    return text if len(text) <= MAX_REASON_LENGTH else "n/a"


def _share(share: float) -> str:
    """A share of all, every one to the same digit."""
    return f"{format_value(100 * share, 1)} %"


def _arrow(own: ByModel) -> str:
    return "↓" if next(iter(own.values())).better == Direction.DOWN else "↑"


def _chance(own: ByModel, places: int) -> str:
    """The chance level over all models, which differs a little where it depends on their vectors."""
    known = [each.chance for each in own.values() if not isnan(each.chance)]
    return format_range(min(known), max(known), places) if known else ""


def pairwise_table(edition: ConceptReportData) -> list[Any]:
    """Every pair of models on every score."""
    every = [each for each in edition.all_standings if each.contrasts]
    parts: list[Any] = [Paragraph(""), heading("Every pair")] if every else []
    for standing in every:
        parts += [Paragraph(""), TerminalTable(_pair_columns(standing))]
    return parts


def _pair_columns(standing: ScoreComparison) -> list[ReportColumn]:
    """Every pair of models on one score, whose name is the head of the first column."""
    pairs = [(each, shared_decimals([each.interval])) for each in standing.contrasts]
    return [
        ReportColumn(standing.title, [each.a for each, _ in pairs], shortens="middle"),
        ReportColumn("minus", [each.b for each, _ in pairs], shortens="middle"),
        ReportColumn("difference", [format_difference(each.difference, at) for each, at in pairs], right=True),
        ReportColumn("interval", [_reach(each.interval, at) for each, at in pairs], right=True, rank=2),
        ReportColumn("adj. p", [format_p(each.adjusted) for each, _ in pairs], right=True, rank=1),
    ]


def weight_table(edition: ConceptReportData) -> list[Any]:
    """How much the winner of the composite owes to the weights."""
    if not edition.winning:
        return []
    ordered = sorted(edition.winning, key=lambda each: -each.share)
    return [
        Paragraph(""),
        heading("If the scores were weighted otherwise"),
        Paragraph(""),
        TerminalTable(
            [
                ReportColumn("model", [each.model for each in ordered], shortens="middle"),
                ReportColumn("comes first in", [_share(each.share) for each in ordered], right=True),
                ReportColumn("with redrawn units", [_share(each.redrawn) for each in ordered], right=True),
            ]
        ),
        Paragraph("of all weightings of the composite, each as likely as any other."),
    ]


def recommendation_notes(edition: ConceptReportData) -> list[Any]:
    """Which model to use for what."""
    if not edition.advice:
        return []
    return [
        Paragraph(""),
        heading("What to use"),
        Paragraph(""),
        *(Paragraph(each.text, lead=f"{each.use}: ") for each in edition.advice),
    ]
