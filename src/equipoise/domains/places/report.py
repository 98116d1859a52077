"""The views of a data set, of one scored system, and of several systems."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.places.charts import PlaceCharts
from equipoise.report.answer import Answer, AnswerOptions, comparison_answer
from equipoise.report.tables import caption
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    ScoreFormat,
    format_count,
    format_interval,
    format_percent,
    format_range,
    format_value,
    shared_decimals,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.verdict import Vocabulary
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.domains.places.checks import MobilityData
    from equipoise.domains.places.geography import DistanceErrors
    from equipoise.domains.places.metrics import PlaceCalibration
    from equipoise.report.charts.chart import Chart
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.stats.slices import Slice

# Next-location scores in percent, on all and on answerable visits, with baselines.

_SPARSE = "*"
_OUTER = 3
"""How many of the best and of the worst users are shown."""


@dataclass(frozen=True)
class UnitSubset:
    """Some of the units: what the system scores on them, and what each baseline does, by metric."""

    title: str
    result: Result
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlacesReportData:
    """All that the report of one system shows; figures are fractions here and percent in print."""

    system: str
    classes: int
    parts: tuple[UnitSubset, ...]
    by_user: Result | None = None
    slices: tuple[Slice, ...] = ()
    tied: int = 0
    tied_top: int = 0
    tie_range: tuple[float, float] | None = None
    tie_metric: str = ""
    calibration: PlaceCalibration | None = None
    distances: DistanceErrors | None = None
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def places_view(edition: PlacesReportData, charts: PlaceCharts | None = None) -> View:
    """The answer, then the scores on subsets, calibration, distances, users and slices, the methods and the charts."""
    drawn = charts or PlaceCharts()
    sections = (
        *(score_section(edition, part) for part in edition.parts[1:]),  # the answer has the scores of all visits
        Section("Ranks", charts=drawn.ranks),
        *calibration_section(edition, drawn.calibration),
        *distance_section(edition, drawn.distances),
        *user_section(edition),
        *slice_section(edition),
        Section("Confusion of the most frequent places", charts=drawn.confusion),
        Section("Methods", notes=(_caption(edition), tie_note(edition))),
    )
    shown = tuple(section for section in sections if section.tables or section.notes or section.charts)
    return View(places_answer(edition), shown, title=edition.system)


def places_answer(edition: PlacesReportData) -> Answer:
    """The first metric against the best baseline, and all metrics on all visits."""
    part = edition.parts[0]
    visits = pluralize(len(part.result.unit_ids), "visit")
    first = part.result[part.result.names[0]]
    level = format_percent(first.interval.confidence_level)
    shown = ScoreFormat(1, percent=True)
    interval = shown.interval(first.interval)
    return Answer(
        headline=(
            f"{edition.system}: {display_metric(first.metric)} {shown.value(first.value)} on {visits} "
            f"({level} interval {interval}){_best_baseline(part, first)}."
        ),
        columns=tuple(score_columns(part)),
        notes=(
            f"Scores are in percent, among {format_count(edition.classes)} classes. {_baselines(edition)}".rstrip(),
            *_calibration_note(edition.calibration),
            *_distance_note(edition.distances),
            *(f"{note}." for note in edition.notes),
        ),
        findings=edition.findings,
        details="Details: add -v (subsets, calibration, distances, users, slices, methods, findings with hints).",
    )


def _best_baseline(part: UnitSubset, first: Estimate) -> str:
    """The baseline with the highest value of the metric."""
    scores = {name: values.get(first.metric, float("nan")) for name, values in part.baselines.items()}
    known = {name: value for name, value in scores.items() if not isnan(value)}
    if not known:
        return ""
    best = max(known, key=known.__getitem__)
    return f"; the best baseline, {best}, has {ScoreFormat(1, percent=True).value(known[best])}"


def score_section(edition: PlacesReportData, part: UnitSubset) -> Section:
    """One table: each figure with interval and what the baselines would score."""
    visits = pluralize(len(part.result.unit_ids), "visit")
    title = f"{edition.system}, {part.title}: {visits}, {format_count(edition.classes)} classes (percent)"
    return Section.of_table(title, score_columns(part))


def score_columns(part: UnitSubset) -> list[ReportColumn]:
    """One row a metric, in percent."""
    estimates = list(part.result.estimates.values())
    reaches = [estimate.interval.scaled(100.0) for estimate in estimates]
    places = shared_decimals(reaches)
    level = format_percent(estimates[0].interval.confidence_level)
    columns = [
        ReportColumn("metric", [display_metric(estimate.metric) for estimate in estimates]),
        ReportColumn("estimate", [format_value(100 * estimate.value, places) for estimate in estimates], right=True),
        ReportColumn(f"{level} interval", [format_interval(reach, places) for reach in reaches], right=True, rank=1),
    ]
    for rank, (name, figures) in enumerate(part.baselines.items(), start=2):
        cells = [format_value(100 * figures.get(estimate.metric, float("nan")), places) for estimate in estimates]
        columns.append(ReportColumn(name, cells, right=True, rank=rank))
    n = [format_count(estimate.n) for estimate in estimates]
    return [*columns, ReportColumn("n", n, right=True, rank=len(part.baselines) + 2)]


def display_metric(metric: str) -> str:
    """The name that the field uses.

    >>> display_metric("HR@5"), display_metric("F1(average=macro)"), display_metric("MRR")
    ('Acc@5', 'F1 macro', 'MRR')
    """
    if metric.startswith("F1"):
        average = metric.partition("=")[2].rstrip(")")
        return f"F1 {average or 'weighted'}"
    return metric.replace("HR@", "Acc@")


def in_percent(finding: Finding) -> Finding:
    """A finding of the core about ranks in the names and units of this field: visits, Acc@k and percent."""
    metric_and_scores = rf"(?:{_METRICS})\S*(?: is between)? {_FRACTION}(?: and {_FRACTION})?"
    message = re.sub(metric_and_scores, _to_shares, finding.message)
    evidence = tuple(
        _place_terms(re.sub(_FRACTION, _to_shares, line)) if re.match(_METRICS, line) else line
        for line in finding.evidence
    )
    return replace(finding, message=_place_terms(message), hint=_place_terms(finding.hint), evidence=evidence)


_METRICS = "HR|MRR|nDCG|F1"
_FRACTION = r"\b(?:0\.\d+|1\.0+)\b"


def _to_shares(match: re.Match[str]) -> str:
    """The matched text with its fractions in percent."""
    return re.sub(_FRACTION, lambda number: _share(float(number[0])), match[0])


def _place_terms(text: str) -> str:
    terms = (("HR@", "Acc@"), ("queries", "visits"), ("relevant items", "targets"), ("candidate", "place"))
    for core_term, term in terms:
        text = text.replace(core_term, term)
    return text


def tie_note(edition: PlacesReportData) -> str:
    """How many scores are equal, and how much hangs on their order."""
    if not edition.tied and not edition.tied_top:
        return "Ties: no target shares its score with another class, and no largest score is shared."
    units = len(edition.parts[0].result.unit_ids)
    text = (
        f"Ties: {format_count(edition.tied)} of {format_count(units)} targets share their score with "
        f"another class, and "
        f"{pluralize(edition.tied_top, 'visit')} {'has' if edition.tied_top == 1 else 'have'} several classes "
        "with the largest score (F1 takes the lowest code)."
    )
    if edition.tie_range is None:
        return text
    low, high = edition.tie_range
    reach = format_range(100 * low, 100 * high, 2)
    return f"{text} Depending on the order of equals {display_metric(edition.tie_metric)} is {reach}."


def _calibration_note(calibration: PlaceCalibration | None) -> tuple[str, ...]:
    """The calibration error of the first place in one sentence."""
    if calibration is None or 1 not in calibration.curves:
        return ()
    curve = calibration.curves[1]
    level = format_percent(curve.confidence_level)
    verdict = "worse than" if curve.told_apart else "not significantly worse than"
    return (
        f"The expected calibration error is {_share(curve.ece)}, {verdict} that of a calibrated model, which is "
        f"{_share(curve.calibrated)} on these visits ({level} of the time at most {_share(curve.calibrated_high)}).",
    )


def calibration_section(edition: PlacesReportData, charts: tuple[Chart, ...] = ()) -> list[Section]:
    """Log loss and Brier score with intervals, and the calibration error at each cutoff."""
    calibration = edition.calibration
    if calibration is None:
        return []
    estimates = list(calibration.result.estimates.values())
    names = {"NLL": "log loss (nats)", "Brier": "Brier score"}
    curves = calibration.curves
    places = [f"calibration error, first {'place' if k == 1 else f'{k} places'}" for k in curves]
    blank = [""] * len(estimates)
    columns = [
        ReportColumn("metric", [*(names[estimate.metric] for estimate in estimates), *places]),
        ReportColumn(
            "value",
            [*(format_value(each.value) for each in estimates), *(_share(curve.ece) for curve in curves.values())],
            right=True,
        ),
        ReportColumn(
            f"{format_percent(estimates[0].interval.confidence_level)} interval",
            [*(format_interval(each.interval, 3) for each in estimates), *[""] * len(curves)],
            right=True,
            rank=1,
        ),
        ReportColumn(
            "calibrated model", [*blank, *(_share(curve.calibrated) for curve in curves.values())], right=True, rank=2
        ),
        ReportColumn("confidence", [*blank, *(_share(curve.confidence) for curve in curves.values())], right=True),
        ReportColumn("accuracy", [*blank, *(_share(curve.accuracy) for curve in curves.values())], right=True),
    ]
    notes = [
        "Probabilities are " + ("the softmax of the scores." if calibration.from_softmax else "the scores as given."),
        "The calibration error is the mean difference between confidence and accuracy over bins of confidence. It is "
        "above 0 for every model on finitely many visits, so that of a calibrated model is given, too.",
    ]
    if calibration.impossible:
        count = pluralize(calibration.impossible, "target")
        notes.insert(0, f"The log loss is infinite: {count} have probability 0.")
    return [Section("Calibration", (ReportTable.of(columns, *notes),), charts=charts)]


def _distance_note(errors: DistanceErrors | None) -> tuple[str, ...]:
    if errors is None:
        return ()
    near = ", ".join(f"{_share(errors.result[name].value)} {name}" for name in errors.result.names[1:])
    return (
        f"The predicted place is {_km(errors.result[errors.result.names[0]].value)} km from the true one on average "
        f"(median {_km(errors.median)} km): {near}.",
    )


def distance_section(edition: PlacesReportData, charts: tuple[Chart, ...] = ()) -> list[Section]:
    """The distance between the predicted and the true place, with those of the baselines."""
    errors = edition.distances
    if errors is None:
        return []
    mean, *near = errors.result.estimates.values()
    rows = ["mean distance (km)", "median distance (km)", *(f"{estimate.metric} (percent)" for estimate in near)]
    reaches = [format_interval(estimate.interval.scaled(100.0), 1) for estimate in near]
    level = format_percent(mean.interval.confidence_level)
    median = Interval(errors.median_low, errors.median_high)
    columns = [
        ReportColumn("metric", rows),
        ReportColumn(
            "estimate",
            [_km(mean.value), _km(errors.median), *(format_value(100 * each.value, 1) for each in near)],
            right=True,
        ),
        ReportColumn(
            f"{level} interval",
            [format_interval(mean.interval, 2), format_interval(median, 2), *reaches],
            right=True,
            rank=1,
        ),
    ]
    for rank, (name, scores) in enumerate(errors.baselines.items(), start=2):
        shares = [format_value(100 * scores[estimate.metric], 1) for estimate in near]
        columns.append(
            ReportColumn(name, [_km(scores[mean.metric]), _km(scores["median"]), *shares], right=True, rank=rank)
        )
    lost = pluralize(errors.undefined, "visit")
    note = f"{lost} without coordinates of the predicted or the true place were left out." if errors.undefined else ""
    return [
        Section("Distance between the predicted and the true place", (ReportTable.of(columns, note),), charts=charts)
    ]


def _share(value: float) -> str:
    """A share in percent with one decimal.

    >>> _share(0.0853)
    '8.5 %'
    """
    return f"{format_value(100 * value, 1)} %"


def _km(value: float) -> str:
    return format_value(value, 2)


def user_section(edition: PlacesReportData) -> list[Section]:
    """The mean over users, and the users with the lowest and highest scores."""
    result = edition.by_user
    if result is None:
        return []
    estimates = list(result.estimates.values())
    reaches = [estimate.interval.scaled(100.0) for estimate in estimates]
    places = shared_decimals(reaches)
    level = format_percent(estimates[0].interval.confidence_level)
    columns = [
        ReportColumn("metric", [display_metric(estimate.metric) for estimate in estimates]),
        ReportColumn(
            "mean of users", [format_value(100 * estimate.value, places) for estimate in estimates], right=True
        ),
        ReportColumn(f"{level} interval", [format_interval(reach, places) for reach in reaches], right=True, rank=1),
    ]
    title = f"Mean over users: {pluralize(len(result.unit_ids), 'user')} (percent)"
    return [Section.of_table(title, columns, *_outer_users(result))]


def _outer_users(result: Result) -> list[str]:
    metric = result.names[0]
    values = result.per_unit[metric]
    order = values.argsort(kind="stable").tolist()
    user_scores = [f"{result.unit_ids[user]} {format_value(100 * float(values[user]), 1)}" for user in order]
    name = display_metric(metric)
    return [
        f"Lowest {name}: {', '.join(user_scores[:_OUTER])}.",
        f"Highest {name}: {', '.join(user_scores[: -_OUTER - 1 : -1])}.",
    ]


def slice_section(edition: PlacesReportData) -> list[Section]:
    """The first metric on every slice."""
    if not edition.slices:
        return []
    estimates = [part.estimate for part in edition.slices]
    reaches = [estimate.interval.scaled(100.0) for estimate in estimates]
    columns = [
        ReportColumn("slice", [part.name for part in edition.slices]),
        ReportColumn("", [part.value for part in edition.slices], shortens="end"),
        ReportColumn("n", [f"{format_count(part.estimate.n)}{_mark(part)}" for part in edition.slices], right=True),
        ReportColumn("estimate", [format_value(100 * estimate.value, 1) for estimate in estimates], right=True),
        ReportColumn("interval", [format_interval(reach, 1) for reach in reaches], right=True, rank=1),
    ]
    note = f"{_SPARSE} few visits: the score is not reliable." if any(part.few for part in edition.slices) else ""
    return [Section.of_table(f"{display_metric(estimates[0].metric)} by slice (percent)", columns, note)]


def _mark(part: Slice) -> str:
    return _SPARSE if part.few else ""


def _caption(edition: PlacesReportData) -> str:
    text = caption([part.result for part in edition.parts])
    text = text.replace(" Chance is the expected score of a random baseline.", "")
    clusters = edition.parts[0].result.clusters
    if clusters is not None:
        text += f" Whole users are resampled ({format_count(len(set(clusters.tolist())))})."
    return f"{text} {_baselines(edition)}".rstrip()


def _baselines(edition: PlacesReportData) -> str:
    """What each baseline does."""
    names = dict.fromkeys(name for part in edition.parts for name in part.baselines)
    known = [f"{name} is {BASELINES[name]}" for name in names if name in BASELINES]
    return f"Baselines: {'; '.join(known)}." if known else ""


BASELINES = {
    "random": "a guess among all classes",
    "majority": "the most frequent places in training",
    "user": "the most frequent places of the user",
    "markov": "the most frequent places of the user after the previous place",
}
"""What each baseline does, in a few words."""


def to_percent(figures: Mapping[str, float] | Sequence[tuple[str, float]]) -> dict[str, float]:
    """Figures in percent, under the names of the field.

    >>> to_percent({"HR@1": 0.5})
    {'Acc@1': 50.0}
    """
    return {display_metric(name): 100 * value for name, value in dict(figures).items()}


# A data set before a model is trained.


def dataset_view(data: MobilityData, findings: Sequence[Finding]) -> View:
    """What the training and test visits are, what a model cannot know, and the findings."""
    counts = data.to_dict()
    train, test = counts["train"], counts["test"]
    issues = [finding for finding in findings if finding.severity is Severity.ISSUE]
    codes = ", ".join(dict.fromkeys(finding.code for finding in issues))
    headline = (
        f"The scores of a model on these data would mislead: {codes}."
        if issues
        else f"No leak was found in {pluralize(test['visits'], 'test visit')}."
    )
    sides = ("visits", "users", "places")
    columns = (
        ReportColumn("", ["training", "test"]),
        *(
            ReportColumn(
                name, ["n/a" if side[name] is None else format_count(side[name]) for side in (train, test)], right=True
            )
            for name in sides
        ),
    )
    n = test["visits"]
    facts = [
        f"{_share(test['unseen_targets'] / n)} of the targets do not occur in training; "
        f"the accuracy of a model that knows only training places is at most {_share(1 - test['unseen_targets'] / n)}.",
    ]
    if test["users"] is not None:
        facts.append(
            f"{_share(test['unseen_for_user'] / n)} of the targets are new for their user; "
            f"{_share(test['rows_of_new_users'] / n)} of the visits are of users without training visits."
        )
    if test["repeats"] is not None:
        facts.append(f"{_share(test['repeats'] / n)} of the targets equal the previous place.")
    answer = Answer(headline, columns, notes=tuple(facts), findings=tuple(findings), details="Details: add -v.")
    return View(answer, title="data set")


# Several systems on the same visits.


def systems_view(comparison: Comparison, title: str) -> View:
    """The answer of a comparison of systems, in percent, with a column per metric."""
    words = Vocabulary("visit", "system", display_metric(comparison.primary), percent=True, cluster="user")
    others = [name for name in comparison.metrics if name != comparison.primary]
    columns = []
    for rank, metric in enumerate(others):
        estimates = [comparison.estimates[name][metric] for name in comparison.order]
        cells = [format_value(100 * estimate.value, 1) for estimate in estimates]
        columns.append(ReportColumn(display_metric(metric), cells, right=True, rank=rank + 3))
    answer = comparison_answer(comparison, AnswerOptions(words, columns=tuple(columns), findings=()))
    return View(answer, title=title)
