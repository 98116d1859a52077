"""What people see of next-location scores: percent, all units and the answerable ones, beside baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.findings import findings_part
from equipoise.report.score import caption
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import between, count, figure, percent, shared_decimals, span
from equipoise.stats.result import Result
from equipoise.stats.slices import Slice
from equipoise.types import Finding

_SPARSE = "*"
_OUTER = 3
"""How many of the best and of the worst users are shown."""


@dataclass(frozen=True)
class Part:
    """Some of the units: what the system scores on them, and what each baseline does, by metric."""

    title: str
    result: Result
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlacesEdition:
    """All that the report of one system shows; figures are fractions here and percent in print."""

    system: str
    classes: int
    parts: tuple[Part, ...]
    by_user: Result | None = None
    slices: tuple[Slice, ...] = ()
    tied: int = 0
    tied_top: int = 0
    tie_range: tuple[float, float] | None = None
    tie_metric: str = ""
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def places_report(edition: PlacesEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts: list[Any] = [each for part in edition.parts for each in score_part(edition, part)]
    if quiet:
        return parts
    parts += [Paragraph(_caption(edition)), Paragraph(ties_sentence(edition))]
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    parts += [*user_part(edition, verbose=verbose), *slices_part(edition)]
    return [*parts, *findings_part(edition.findings, verbose=verbose)]


def score_part(edition: PlacesEdition, part: Part) -> list[Any]:
    """One table: each figure with interval and what the baselines would score."""
    units = counted(len(part.result.unit_ids), "unit")
    title = f"{edition.system}, {part.title}: {units}, {count(edition.classes)} classes (percent)"
    return [heading(title), Paragraph(""), FittedTable(score_columns(part)), Paragraph("")]


def score_columns(part: Part) -> list[Column]:
    """One row a metric, in percent."""
    estimates = list(part.result.estimates.values())
    reaches = [_in_percent(each.interval) for each in estimates]
    places = shared_decimals(reaches)
    level = percent(estimates[0].interval.level)
    columns = [
        Column("metric", [shown_name(each.metric) for each in estimates]),
        Column("estimate", [figure(100 * each.value, places) for each in estimates], right=True),
        Column(f"{level} interval", [span(reach, places) for reach in reaches], right=True, rank=1),
    ]
    for rank, (name, figures) in enumerate(part.baselines.items(), start=2):
        cells = [figure(100 * figures.get(each.metric, float("nan")), places) for each in estimates]
        columns.append(Column(name, cells, right=True, rank=rank))
    n = [count(each.n) for each in estimates]
    return [*columns, Column("n", n, right=True, rank=len(part.baselines) + 2)]


def shown_name(metric: str) -> str:
    """The name that the field uses.

    >>> shown_name("HR@5"), shown_name("F1(average=macro)"), shown_name("MRR")
    ('Acc@5', 'F1 macro', 'MRR')
    """
    if metric.startswith("F1"):
        average = metric.partition("=")[2].rstrip(")")
        return f"F1 {average or 'weighted'}"
    return metric.replace("HR@", "Acc@")


def ties_sentence(edition: PlacesEdition) -> str:
    """How many scores are equal, and how much hangs on their order."""
    if not edition.tied and not edition.tied_top:
        return "Ties: no target shares its score with another class, and no largest score is shared."
    units = len(edition.parts[0].result.unit_ids)
    told = (
        f"Ties: {count(edition.tied)} of {count(units)} targets share their score with another class, and "
        f"{counted(edition.tied_top, 'unit')} {'has' if edition.tied_top == 1 else 'have'} several classes "
        "with the largest score (F1 takes the lowest code)."
    )
    if edition.tie_range is None:
        return told
    low, high = edition.tie_range
    reach = between(100 * low, 100 * high, 2)
    return f"{told} Depending on the order of equals {shown_name(edition.tie_metric)} is {reach}."


def user_part(edition: PlacesEdition, *, verbose: bool = False) -> list[Any]:
    """Every user counted alike, and on request the users at both ends."""
    result = edition.by_user
    if result is None:
        return []
    estimates = list(result.estimates.values())
    reaches = [_in_percent(each.interval) for each in estimates]
    places = shared_decimals(reaches)
    level = percent(estimates[0].interval.level)
    table = FittedTable(
        [
            Column("metric", [shown_name(each.metric) for each in estimates]),
            Column("mean of users", [figure(100 * each.value, places) for each in estimates], right=True),
            Column(f"{level} interval", [span(reach, places) for reach in reaches], right=True, rank=1),
        ]
    )
    title = f"Every user counted alike: {counted(len(result.unit_ids), 'user')} (percent)"
    parts: list[Any] = [Paragraph(""), heading(title), Paragraph(""), table]
    return [*parts, *_outer_users(result)] if verbose else parts


def _outer_users(result: Result) -> list[Any]:
    metric = result.names[0]
    values = result.per_unit[metric]
    order = values.argsort(kind="stable").tolist()
    told = [f"{result.unit_ids[user]} {figure(100 * float(values[user]), 1)}" for user in order]
    name = shown_name(metric)
    return [
        Paragraph(f"Lowest {name}: {', '.join(told[:_OUTER])}."),
        Paragraph(f"Highest {name}: {', '.join(told[: -_OUTER - 1 : -1])}."),
    ]


def slices_part(edition: PlacesEdition) -> list[Any]:
    """The first metric on every slice."""
    if not edition.slices:
        return []
    estimates = [each.estimate for each in edition.slices]
    reaches = [_in_percent(each.interval) for each in estimates]
    table = FittedTable(
        [
            Column("slice", [each.name for each in edition.slices]),
            Column("", [each.value for each in edition.slices], shortens="end"),
            Column("n", [f"{count(each.estimate.n)}{_mark(each)}" for each in edition.slices], right=True),
            Column("estimate", [figure(100 * each.value, 1) for each in estimates], right=True),
            Column("interval", [span(reach, 1) for reach in reaches], right=True, rank=1),
        ]
    )
    title = f"{shown_name(estimates[0].metric)} by slice (percent)"
    parts: list[Any] = [Paragraph(""), heading(title), Paragraph(""), table]
    if any(each.few for each in edition.slices):
        parts.append(Paragraph(f"{_SPARSE} few units: such a figure says little."))
    return parts


def _mark(part: Slice) -> str:
    return _SPARSE if part.few else ""


def _caption(edition: PlacesEdition) -> str:
    names = dict.fromkeys(name for part in edition.parts for name in part.baselines)
    beside = [f"{name} is {BASELINES[name]}" for name in names if name in BASELINES]
    told = caption([part.result for part in edition.parts])
    told = told.replace(" Chance is what a system that knows nothing would score.", "")
    clusters = edition.parts[0].result.clusters
    if clusters is not None:
        told += f" Whole users are resampled ({count(len(set(clusters.tolist())))})."
    return f"{told} Baselines: {'; '.join(beside)}." if beside else told


BASELINES = {
    "random": "a guess among all classes, exactly",
    "majority": "the same order for everyone, by how often places occur in training",
    "user": "the places of each user by how often that user was there",
    "markov": "the places by how often this user went there from the place before",
}
"""What each baseline does, in a few words."""


def _in_percent(interval: Interval) -> Interval:
    return replace(interval, low=100 * interval.low, high=100 * interval.high)


def percent_of(figures: Mapping[str, float] | Sequence[tuple[str, float]]) -> dict[str, float]:
    """Figures in percent, under the names of the field.

    >>> percent_of({"HR@1": 0.5})
    {'Acc@1': 50.0}
    """
    return {shown_name(name): 100 * value for name, value in dict(figures).items()}
