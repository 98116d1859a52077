"""The views of a data set, of one scored system, and of several systems; scores are in percent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.domains.places.charts import PlaceCharts
from equipoise.report.answer import Answer, AnswerOptions, comparison_answer
from equipoise.report.tables import interval_methods
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    ScoreFormat,
    format_count,
    format_interval,
    format_percent,
    format_value,
    n_decimals,
    p_in_sentence,
    shared_decimals,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.verdict import Vocabulary
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.domains.places.checks import MobilityData
    from equipoise.domains.places.geography import DistanceErrors
    from equipoise.domains.places.metrics import PlaceCalibration
    from equipoise.domains.places.published_results import PublishedScores
    from equipoise.domains.places.score import PlaceScores
    from equipoise.report.charts.chart import Chart
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.tasks.classification import ClassificationOutput

Baselines = Mapping[str, Mapping[str, float]]
"""What each baseline scores, by metric."""

BASELINES = {
    "random": "orders the places at random",
    "majority": "predicts the most frequent places in training",
    "user": "predicts the user's most frequent places in training",
    "markov": "predicts the places that the user most often visited after the previous place",
}
"""What each baseline does, in a few words."""
SPARSE = "*"
N_EXTREME_USERS = 3
"""The number of best and of worst users that are shown."""


# Names and numbers of this field: Acc@k, visits, users, percent.


def display_metric(metric: str) -> str:
    """The name that the field uses.

    >>> display_metric("HR@5"), display_metric("F1(average=macro)"), display_metric("MRR")
    ('Acc@5', 'F1 macro', 'MRR')
    """
    if metric.startswith("F1"):
        return f"F1 {metric.partition('=')[2].rstrip(')') or 'weighted'}"
    return metric.replace("HR@", "Acc@")


_FRACTION = r"(?<![\w.])(?:0\.\d+|1\.0+)\b"
_METRIC = r"\b(?:HR@\d+|MRR|nDCG@\d+|F1(?:\(average=\w+\))?(?!\w))"
_METRIC_OR_FRACTION = re.compile(f"(?P<metric>{_METRIC})|{_FRACTION}")
_TERMS = (
    ("queries", "visits"),
    ("relevant items", "targets"),
    ("candidate", "place"),
    ("one cluster", "one user"),
    ("the size of the corpus", "the number of places"),
    (
        "the chance levels are computed from items that were retrieved or are relevant",
        "the random baseline assumes one place per class id up to the largest",
    ),
    ("items that could have been retrieved: corpus_size=N or --corpus-size N", "places: --n-classes N"),
)


def in_percent(finding: Finding, estimates: Mapping[str, Estimate]) -> Finding:
    """A finding of the core about ranks in the names and units of this field: visits, Acc@k and percent.

    The numbers of these estimates are rounded from their values, as in the table, and not from the rounded text.
    """
    exact = {
        (name, format_value(value, n_decimals(estimate.interval))): value
        for name, estimate in estimates.items()
        for value in (estimate.chance, estimate.interval.high, estimate.interval.low, estimate.value)
    }

    def translated(text: str) -> str:
        metric = ""

        def replaced(match: re.Match[str]) -> str:
            nonlocal metric
            if match["metric"]:
                metric = match["metric"]
                return display_metric(metric)
            number = match[0]
            decimals = max(1, len(number.partition(".")[2]) - 2)
            return f"{format_value(100 * exact.get((metric, number), float(number)), decimals)} %"

        if re.search(_METRIC, text):
            text = _METRIC_OR_FRACTION.sub(replaced, text)
        for core_term, term in _TERMS:
            text = text.replace(core_term, term)
        return text

    evidence = tuple(map(translated, finding.evidence))
    return replace(
        finding,
        message=translated(finding.message),
        hint=translated(finding.hint),
        evidence=evidence,
        title=translated(finding.title),
    )


def _share(value: float) -> str:
    """A share in percent with one decimal: ``8.5 %``; a small share that is not 0 is ``<0.1 %``."""
    text = format_value(100 * value, 1)
    if text == "0.0" and value > 0:
        return "<0.1 %"
    return ">99.9 %" if text == "100.0" and value < 1 else f"{text} %"


def _km(value: float) -> str:
    return format_value(value, 2)


def _interval(interval: Interval, decimals: int) -> str:
    return format_interval(interval, decimals).replace("one cluster", "one user")


def _level(estimates: Iterable[Estimate]) -> str:
    return f"{format_percent(next(iter(estimates)).interval.confidence_level)} interval"


# One scored system.


def places_view(scores: PlaceScores, charts: PlaceCharts | None = None) -> View:
    """The answer, then the scores on subsets, calibration, distances, users and slices, the methods and the charts."""
    charts = charts or PlaceCharts()
    sections = (
        *_answerable_section(scores),  # the answer has the scores of all visits
        Section("Ranks", charts=charts.ranks),
        *_calibration_section(scores.calibration, charts.calibration),
        *_distance_section(scores.distances, charts.distances),
        *_user_section(scores.by_user),
        *_slice_section(scores),
        Section("Confusion of the most frequent places", charts=charts.confusion),
        Section("Methods", notes=tuple(filter(None, (_methods(scores), tie_note(scores))))),
    )
    shown = tuple(section for section in sections if section.tables or section.notes or section.charts)
    return View(_places_answer(scores), shown, title=scores.system)


def _places_answer(scores: PlaceScores) -> Answer:
    """The first metric against the best baseline, and all metrics on all visits."""
    result = scores.all
    first = result[result.names[0]]
    shown = ScoreFormat(1, percent=True)
    interval = shown.interval(first.interval).replace("one cluster", "one user")
    return Answer(
        headline=(
            f"{scores.system}: {display_metric(first.metric)} {shown.value(first.value)} on "
            f"{pluralize(len(result.unit_ids), 'visit')} ({_level([first])} {interval})"
            f"{_best_baseline(scores, first)}."
        ),
        columns=tuple(_score_columns(result, scores.baselines)),
        notes=(
            f"{_candidate_note(scores.classified)} {_baseline_note(scores.baselines)}".rstrip(),
            *_calibration_note(scores.calibration),
            *_distance_note(scores.distances),
            *(f"{note}." for note in scores.all_notes),
        ),
        findings=scores.findings,
        details=f"Details: add -v ({', '.join(_details(scores))}).",
    )


def _candidate_note(classified: ClassificationOutput) -> str:
    """The unit of the scores, and the number of places that could have been predicted."""
    count, ranking = format_count(classified.classes), classified.ranking
    if ranking.pool_known or ranking.complete:
        return f"Scores are in percent; each visit has {count} candidate places."
    return (
        f"Scores are in percent. The number of places is unknown; the random baseline assumes {count}, one per class "
        "id up to the largest."
    )


def _details(scores: PlaceScores) -> list[str]:
    """What ``-v`` adds."""
    parts = {
        "visits with known targets": scores.partly_answerable,
        "calibration": scores.calibration,
        "distances": scores.distances,
        "users": scores.by_user,
        "slices": scores.slices,
        "methods": True,
        "findings with hints": scores.findings,
    }
    return [name for name, present in parts.items() if present]


def best_baseline(baselines: Baselines, metric: str) -> str:
    """The baseline with the highest value of a metric; empty if none has one."""
    values = {name: by_metric.get(metric, nan) for name, by_metric in baselines.items()}
    known = {name: value for name, value in values.items() if not isnan(value)}
    return max(known, key=known.__getitem__, default="")


def _best_baseline(scores: PlaceScores, first: Estimate) -> str:
    """The baseline with the highest value of the metric, and whether the system differs significantly from it."""
    best, contrast = best_baseline(scores.baselines, first.metric), scores.against_baseline
    if not best:
        return ""
    text = f"; the best baseline ({best}) has {_share(scores.baselines[best][first.metric])}"
    if contrast is None or isnan(contrast.p):
        return text
    alpha = 1.0 - first.interval.confidence_level
    significant = "significant" if contrast.winner(alpha) else "not significant"
    return f"{text} (difference {significant}, {p_in_sentence(contrast.p)})"


def _baseline_note(baselines: Baselines) -> str:
    known = [f"{name} {BASELINES[name]}" for name in baselines if name in BASELINES]
    return f"Baselines: {'; '.join(known)}." if known else ""


def _percent_columns(result: Result, header: str) -> tuple[list[ReportColumn], int]:
    """The metrics of a result with their intervals in percent, and the number of decimals."""
    estimates = list(result.estimates.values())
    intervals = [estimate.interval.scaled(100.0) for estimate in estimates]
    decimals = shared_decimals(intervals)
    columns = [
        ReportColumn("metric", [display_metric(estimate.metric) for estimate in estimates]),
        ReportColumn(header, [format_value(100 * estimate.value, decimals) for estimate in estimates], right=True),
        ReportColumn(_level(estimates), [_interval(interval, decimals) for interval in intervals], right=True, rank=1),
    ]
    return columns, decimals


def _score_columns(result: Result, baselines: Baselines) -> list[ReportColumn]:
    """One row per metric, one column per baseline."""
    columns, decimals = _percent_columns(result, "estimate")
    for rank, (name, values) in enumerate(baselines.items(), start=2):
        cells = [format_value(100 * values.get(metric, nan), decimals) for metric in result.estimates]
        columns.append(ReportColumn(name, cells, right=True, rank=rank))
    n = [format_count(estimate.n) for estimate in result.estimates.values()]
    return [*columns, ReportColumn("n", n, right=True, rank=len(baselines) + 2)]


def _answerable_section(scores: PlaceScores) -> list[Section]:
    if scores.answerable is None or not scores.partly_answerable:
        return []
    visits = pluralize(len(scores.answerable.unit_ids), "visit")
    title = f"{scores.system} on the {visits} whose target occurs in training (percent)"
    return [Section.of_table(title, _score_columns(scores.answerable, scores.answerable_baselines))]


def tie_note(scores: PlaceScores) -> str:
    """The number of tied scores, and the range of the first metric over all orders of ties."""
    ties = scores.ties
    if not ties.targets and not ties.tops:
        return "Ties: no target shares its score with another place, and no largest score is shared."
    name = display_metric(ties.metric)
    order = (
        f"{name} does not depend on the order of equal scores."
        if ties.low == ties.high
        else f"Depending on the order of equal scores, {name} is between {format_value(100 * ties.low, 2)} and "
        f"{format_value(100 * ties.high, 2)} %."
    )
    return (
        f"Ties: {format_count(ties.targets)} of {format_count(len(scores.all.unit_ids))} targets share their score "
        f"with another place, and {pluralize(ties.tops, 'visit')} {'has' if ties.tops == 1 else 'have'} several "
        f"places with the largest score (F1 uses the one with the lowest class number). {order}"
    )


def _calibration_note(calibration: PlaceCalibration | None) -> tuple[str, ...]:
    """The calibration error of the most probable place in one sentence."""
    if calibration is None or 1 not in calibration.curves:
        return ()
    curve = calibration.curves[1]
    level = format_percent(curve.confidence_level)
    verdict = "more" if curve.is_miscalibrated else "not significantly more"
    return (
        f"The expected calibration error is {_share(curve.ece)}, {verdict} than a perfectly calibrated model would "
        f"have on as many visits ({_share(curve.calibrated)} on average; at most {_share(curve.calibrated_high)} in "
        f"{level} of samples).",
    )


def _calibration_section(calibration: PlaceCalibration | None, charts: tuple[Chart, ...]) -> list[Section]:
    """Log loss and Brier score with intervals, and the calibration error at each cutoff."""
    if calibration is None:
        return []
    names = {"NLL": "log loss (nats)", "Brier": "Brier score"}
    estimates = calibration.result.estimates.values()
    rows: list[tuple[str, ...]] = [
        (names[e.metric], format_value(e.value), _interval(e.interval, 3), "", "", "") for e in estimates
    ]
    for k, curve in calibration.curves.items():
        shares = map(_share, (curve.calibrated, curve.confidence, curve.accuracy))
        name = f"calibration error, top {k}"
        rows.append((name, _share(curve.ece), "", *shares))
    headers = ("metric", "value", _level(estimates), "if calibrated", "confidence", "accuracy")
    ranks = (0, 0, 1, 0, 2, 2)
    columns = [
        ReportColumn(header, cells, right=header != "metric", rank=rank)
        for header, cells, rank in zip(headers, zip(*rows, strict=True), ranks, strict=True)
    ]
    notes = [
        "Probabilities are " + ("the softmax of the scores." if calibration.from_softmax else "the scores as given."),
        "The calibration error of the top k compares confidence (the total probability of the k most probable places) "
        'with accuracy (Acc@k): it is their mean absolute difference over bins of confidence. "If calibrated" is its '
        "expected value for a perfectly calibrated model, which is above 0 because the number of visits is finite.",
    ]
    if calibration.impossible:
        count = pluralize(calibration.impossible, "target")
        notes.insert(0, f"The log loss is infinite: {count} have probability 0.")
    return [Section("Calibration", (ReportTable.of(columns, *notes),), charts=charts)]


def _distance_note(errors: DistanceErrors | None) -> tuple[str, ...]:
    if errors is None:
        return ()
    mean, *near = errors.result.estimates.values()
    shares = ", ".join(f"{_share(estimate.value)} {estimate.metric}" for estimate in near)
    located = f", on {_located(mean.n)}" if errors.undefined else ""
    return (
        f"The predicted place is {_km(mean.value)} km from the true one on average "
        f"(median {_km(errors.median)} km): {shares}{located}.",
    )


def _located(n: int) -> str:
    return f"the {pluralize(n, 'visit')} whose true and predicted places have coordinates"


def _distance_section(errors: DistanceErrors | None, charts: tuple[Chart, ...]) -> list[Section]:
    """The distance between the predicted and the true place, with those of the baselines."""
    if errors is None:
        return []
    mean, *near = errors.result.estimates.values()
    median = Interval(errors.median_low, errors.median_high)
    if isnan(errors.median_low):
        median = Interval.unknown(mean.interval.reason)
    intervals = [_interval(interval, 2) for interval in (mean.interval, median)]
    intervals += [_interval(estimate.interval.scaled(100.0), 1) for estimate in near]
    rows = ["mean distance (km)", "median distance (km)", *(f"{estimate.metric} (percent)" for estimate in near)]
    estimates = [_km(mean.value), _km(errors.median), *(format_value(100 * share.value, 1) for share in near)]
    columns = [
        ReportColumn("metric", rows),
        ReportColumn("estimate", estimates, right=True),
        ReportColumn(_level([mean]), intervals, right=True, rank=1),
    ]
    for rank, (name, values) in enumerate(errors.baselines.items(), start=2):
        shares = [format_value(100 * values[estimate.metric], 1) for estimate in near]
        cells = [_km(values[mean.metric]), _km(values["median"]), *shares]
        columns.append(ReportColumn(name, cells, right=True, rank=rank))
    note = f"Distances are of {_located(mean.n)}." if errors.undefined else ""
    title = "Distance between the predicted and the true place"
    return [Section(title, (ReportTable.of(columns, note),), charts=charts)]


def _user_section(by_user: Result | None) -> list[Section]:
    """The mean over users, and the users with the lowest and highest scores."""
    if by_user is None:
        return []
    metric = by_user.names[0]
    values = by_user.per_unit[metric]
    order = np.argsort(values, kind="stable").tolist()
    users = [f"{by_user.unit_ids[user]} {format_value(100 * float(values[user]), 1)}" for user in order]
    notes = [
        f"Lowest {display_metric(metric)}: {', '.join(users[:N_EXTREME_USERS])}.",
        f"Highest {display_metric(metric)}: {', '.join(users[: -N_EXTREME_USERS - 1 : -1])}.",
    ]
    title = f"Mean over users: {pluralize(len(by_user.unit_ids), 'user')} (percent)"
    return [Section.of_table(title, _percent_columns(by_user, "mean over users")[0], *notes)]


def _slice_section(scores: PlaceScores) -> list[Section]:
    """The first metric on every slice."""
    counts = Counter(part.name for part in scores.slices)
    slices = [part for part in scores.slices if counts[part.name] > 1]  # one value is all visits
    if not slices:
        return []
    estimates = [part.estimate for part in slices]
    n = [f"{format_count(part.estimate.n)}{SPARSE if part.few else ''}" for part in slices]
    intervals = [_interval(estimate.interval.scaled(100.0), 1) for estimate in estimates]
    columns = [
        ReportColumn("slice", [part.name for part in slices]),
        ReportColumn("", [part.value for part in slices], shortens="end"),
        ReportColumn("n", n, right=True),
        ReportColumn("estimate", [format_value(100 * estimate.value, 1) for estimate in estimates], right=True),
        ReportColumn(_level(estimates), intervals, right=True, rank=1),
    ]
    note = f"{SPARSE} Few visits: the score is not reliable." if any(part.few for part in slices) else ""
    return [Section.of_table(f"{display_metric(estimates[0].metric)} by slice (percent)", columns, note)]


def _methods(scores: PlaceScores) -> str:
    results = [scores.all, *([scores.answerable] if scores.answerable is not None else [])]
    estimates = [estimate for result in results for estimate in result.estimates.values()]
    methods = interval_methods(estimates, display_metric)
    if not methods:
        return ""
    text = f"Intervals: {methods}."
    clusters = scores.all.clusters
    if clusters is not None:
        users = pluralize(len(set(clusters.tolist())), "user")
        text += f" They account for the dependence of visits of the same user ({users})."
    return text


# Results of other projects.


def published_view(rows: Sequence[PublishedScores]) -> View:
    """The accepted values in percent, one row per result, the rejected ones, and the proof of each unit."""
    names = sorted({name for row in rows for name in row.values}, key=_metric_order)
    totals = ["n/a" if row.total is None else format_count(row.total) for row in rows]
    columns = [
        ReportColumn("result", [row.name for row in rows], shortens="middle"),
        *(
            ReportColumn(
                display_metric(name),
                [format_value(100 * row.values.get(name, nan), 2) for row in rows],
                right=True,
            )
            for name in names
        ),
        ReportColumn("n", totals, right=True, rank=1),
    ]
    n_accepted = sum(len(row.accepted) for row in rows)
    rejected = [(row.name, value) for row in rows for value in row.rejected]
    answer = Answer(
        f"{pluralize(len(rows), 'result')}: {pluralize(n_accepted, 'value')} read, {len(rejected)} rejected.",
        tuple(columns),
        notes=(
            "Values are in percent. The files have no per-visit scores, so there are no intervals and no tests.",
            *(f"Rejected: {name}, {value.label} {value.text}: {value.reason}." for name, value in rejected),
        ),
        details="Details: add -v (the unit of each value and its proof).",
    )
    sections = tuple(
        Section(
            f"Units in {row.name}",
            notes=tuple(f"{value.label} {value.text}: {value.unit} ({value.proof})." for value in row.accepted),
        )
        for row in rows
        if row.accepted
    )
    return View(answer, sections, title="results")


def _metric_order(metric: str) -> tuple[int, int, str]:
    """Accuracies by cutoff, then MRR, nDCG and F1."""
    symbol, _, k = metric.partition("@")
    order = ("HR", "MRR", "nDCG")
    return order.index(symbol) if symbol in order else len(order), int(k or 0), metric


# A data set before a model is trained.


def dataset_view(data: MobilityData, findings: Sequence[Finding]) -> View:
    """What the training and test visits are, what a model cannot know, and the findings."""
    counts = data.to_dict()
    train, test = counts["train"], counts["test"]
    issues = [finding for finding in findings if finding.severity is Severity.ISSUE]
    problems = ", ".join(dict.fromkeys(f"{finding.title} ({finding.code})" for finding in issues))
    headline = (
        f"Scores on these data would be misleading: {problems}."
        if issues
        else f"No leakage was found in {pluralize(test['visits'], 'test visit')}, as far as these tables can show."
        if data.unchecked
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
        f"{_share(test['unseen_targets'] / n)} of the targets do not occur in training, so the accuracy of a model "
        f"that predicts only training places is at most {_share(1 - test['unseen_targets'] / n)}."
        if test["unseen_targets"]
        else "All targets occur in training.",
    ]
    if test["users"] is not None:
        facts.append(
            f"{_share(test['unseen_for_user'] / n)} of the targets are places that the user did not visit in training."
        )
        if test["rows_of_new_users"]:
            facts.append(f"{_share(test['rows_of_new_users'] / n)} of the visits are by users without training visits.")
    if test["repeats"] is not None:
        facts.append(f"{_share(test['repeats'] / n)} of the targets equal the previous place.")
    facts += [f"Not checked: {what}." for what in data.unchecked]
    details = "Details: add -v (findings with hints)." if findings else ""
    answer = Answer(headline, columns, notes=tuple(facts), findings=tuple(findings), details=details)
    return View(answer, title="data set")


# Several systems on the same visits.


def systems_view(comparison: Comparison, title: str) -> View:
    """The answer of a comparison of systems, in percent, with a column per metric."""
    words = Vocabulary("visit", "system", display_metric(comparison.primary), percent=True, cluster="user")
    others = [name for name in comparison.metrics if name != comparison.primary]
    columns = []
    for rank, metric in enumerate(others):
        estimates = [comparison.estimates[name][metric] for name in comparison.order]
        shown = ScoreFormat.of([estimate.interval for estimate in estimates], percent=True)
        cells = [shown.value(estimate.value) for estimate in estimates]
        columns.append(ReportColumn(display_metric(metric), cells, right=True, rank=rank + 3))
    answer = comparison_answer(comparison, AnswerOptions(words, columns=tuple(columns), findings=()))
    return View(answer, title=title)
