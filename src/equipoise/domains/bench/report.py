"""The answer of a benchmark: for the whole suite if there are several data sets, and for every data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.bench.results import NEGLIGIBLE_SECONDS, TIME_TOLERANCE
from equipoise.domains.bench.systems import RANDOM
from equipoise.errors import EquipoiseError
from equipoise.io.atomic import write_text
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.progress import portion
from equipoise.report.answer import (
    TIED,
    WORSE,
    Answer,
    AnswerOptions,
    cheapest_sentence,
    comparison_answer,
    failure_line,
    single_answer,
)
from equipoise.report.charts.chart import LIGHT, Chart, chart, series_style
from equipoise.report.charts.marks import (
    line,
    log_axis,
    log_scale,
    position,
    scale_axis,
    series_labels,
    series_points,
    vertical_intervals,
    with_grid,
)
from equipoise.report.html.render import render_views
from equipoise.report.publish import ReportOptions, write_report
from equipoise.report.sections import axis_scale
from equipoise.report.tables import cost_report_columns
from equipoise.report.terminal import Paragraph, Part, ReportColumn, findings_section, heading
from equipoise.report.view import View
from equipoise.runs.experiment_folder import RESULTS, folder_names
from equipoise.stats.formatting import format_percent, format_ranks, format_value, metric_heading
from equipoise.stats.verdict import Vocabulary, name_list
from equipoise.tuning.grid import pareto_front

if TYPE_CHECKING:
    from equipoise.domains.bench.results import Aggregate, BenchComparison, DataComparison
    from equipoise.report.charts.marks import Row


MAX_METRICS = 3
"""Further metrics that the table of a data set shows."""
MAX_NAMES = 4
CHANCE_TOLERANCE = 1e-12
"""Rounding errors of a chance level."""
MAX_DATASETS = 5
"""Data sets that the answer of a suite describes; -v shows all."""
DETAILS = "Details: add -v."


def bench_views(comparison: BenchComparison) -> list[View]:
    """The suite first if there are several data sets, then every data set."""
    single = [_data_view(dataset, comparison) for dataset in comparison.datasets]
    if comparison.aggregate is None:
        return single
    return [_suite_view(comparison, comparison.aggregate), *single]


def answer_parts(views: Sequence[View], *, verbose: bool = False, quiet: bool = False) -> list[Part]:
    """The first answer, or with ``verbose`` all of them under their titles."""
    if not verbose:
        return views[0].answer.parts(quiet=quiet)
    parts: list[Part] = []
    for view in views:
        parts += [*([Paragraph("")] if parts else []), heading(view.title), Paragraph("")]
        # The title has the kind and the size; the note has the same and the issues.
        notes = tuple(note for note in view.answer.notes if note != f"{view.title}.")
        parts += replace(view.answer, notes=notes).parts(quiet=quiet, verbose=True)
        # The other findings of the suite are those of its data sets, which follow.
        follow = [finding for later in views[1:] for finding in later.answer.findings] if view is views[0] else []
        if not quiet:
            findings = [finding for finding in view.answer.findings if finding not in follow]
            parts += findings_section(findings, verbose=True)
    return parts


# The whole suite.


def _suite_view(comparison: BenchComparison, suite: Aggregate) -> View:
    names = [row.system for row in suite.rows]
    level, count = format_percent(suite.confidence_level), len(comparison.datasets)
    columns = (
        ReportColumn("rank", [format_ranks(*row.rank_range) for row in suite.rows]),
        ReportColumn("system", names, shortens="middle"),
        ReportColumn("mean", [f"{row.mean_score:.3f}" for row in suite.rows], right=True),
        ReportColumn(f"{level} interval", [_ends(row.score_interval) for row in suite.rows], right=True, rank=1),
        ReportColumn("vs. best", [_status(suite, name) for name in names], rank=2),
        *(
            ReportColumn(dataset.data.name, [_marked(dataset, name) for name in names], right=True, rank=3)
            for dataset in comparison.datasets
        ),
        *cost_report_columns(names, {name: _mean_cost(comparison, name) for name in names}),
    )
    metrics = ", ".join(dict.fromkeys(dataset.data.primary for dataset in comparison.datasets))
    notes = [
        f"Mean over {count} data sets ({metrics}); * marks scores that are not significantly worse than the best on "
        f"that data set. {_first_places(comparison, suite)}",
        _other_datasets(suite),
        *(_data_note(dataset) for dataset in comparison.datasets[:MAX_DATASETS]),
        *_dropped(comparison),
        *_skipped(comparison),
    ]
    if suite.incomplete:
        were = "was" if len(suite.incomplete) == 1 else "were"
        notes.append(f"Not in this table: {join_names(suite.incomplete)}, which {were} not scored on all data sets.")
    headline = _with_cheapest(comparison, _suite_decision(comparison, suite, count))
    answer = Answer(
        headline,
        columns,
        tuple(notes),
        failures=_failures(comparison),
        findings=comparison.findings,
        details=DETAILS,
        explains_codes=True,
    )
    return View(title="All data sets", answer=answer)


def _first_places(comparison: BenchComparison, suite: Aggregate) -> str:
    """On how many data sets the leader has the highest score, and on how many of these another system has it too."""
    tables = [[dataset.score(row.system) for row in suite.rows] for dataset in comparison.datasets]
    firsts = [scores for scores in tables if scores[0] == max(scores)]  # the leader is in the first row
    n_shared = sum(scores.count(scores[0]) > 1 for scores in firsts)
    shared = f" (shared with another system on {n_shared})" if n_shared else ""
    return f"{suite.leader} has the highest score on {len(firsts)} of the {len(tables)} data sets{shared}."


def _suite_decision(comparison: BenchComparison, suite: Aggregate, count: int) -> str:
    best, tied = suite.leader, list(suite.tied_with_leader)
    mean = f"{suite.rows[0].mean_score:.3f}"
    if not comparison.decision.above_random:
        return _NOT_ABOVE_RANDOM.format(metric="the mean score")
    if not tied:
        return (
            f"{best} is the best of {len(suite.rows)} systems on these {count} data sets: its mean score is {mean}, "
            "significantly higher than those of all others."
        )
    equal = [row.system for row in suite.rows if row.mean_score == suite.rows[0].mean_score]
    lower = [name for name in tied if name not in equal]
    first = f"{name_list(equal)} {'share' if len(equal) > 1 else 'has'} the highest mean score"
    verb = "is" if len(lower) == 1 else "are"
    others = f", but {name_list(lower)} {verb} not significantly worse" if lower else ""
    return f"Inconclusive: {first} on these {count} data sets ({mean}){others}."


def _other_datasets(suite: Aggregate) -> str:
    """The conclusions for other data sets of the same kind."""
    worse = [row.system for row in suite.rows[1:] if suite.significant_elsewhere[suite.leader][row.system]]
    verb = "is" if len(worse) == 1 else "are"
    leader = suite.leader
    shown = f"{name_list(worse)} {verb} significantly worse" if worse else f"no difference from {leader} is significant"
    level, interval = format_percent(suite.confidence_level), _ends(suite.rows[0].interval_elsewhere)
    return (
        f"On other data sets like these, {shown}, and the {level} interval of the mean of "
        f"{leader} is {interval} (Student's t over data sets)."
    )


def _status(suite: Aggregate, name: str) -> str:
    if name == suite.leader:
        return ""
    return TIED if name in suite.tied_with_leader else WORSE


def _marked(dataset: DataComparison, name: str) -> str:
    best = name == dataset.leader or name in dataset.tied_with_leader
    return f"{format_value(dataset.score(name), 3)}{'*' if best else ' '}"


def _ends(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:.3f}, {interval[1]:.3f}]"


def _mean_cost(comparison: BenchComparison, name: str) -> dict[str, float | None]:
    costs = [
        system.cost.to_dict() for dataset in comparison.datasets for system in dataset.systems if system.name == name
    ]
    means: dict[str, float | None] = {}
    for key in costs[0]:
        known = [value for cost in costs if (value := cost[key]) is not None]
        mean = harmonic_mean if key.endswith("_per_second") else fmean  # the mean of the times, not of the rates
        means[key] = mean(known) if known else None
    return means


# One data set.


def _data_view(dataset: DataComparison, comparison: BenchComparison) -> View:
    names, data = dataset.order, dataset.data
    further = [name for name in data.metrics[1:] if name in dataset.systems[0].result.estimates][:MAX_METRICS]
    columns = [
        ReportColumn(
            metric, [format_value(dataset.result(name)[metric].value, 3) for name in names], right=True, rank=3
        )
        for metric in further
    ]
    is_only_dataset = comparison.aggregate is None
    options = AnswerOptions(
        Vocabulary(data.unit),
        columns=(*columns, *cost_report_columns(names, {name: dataset.system(name).cost.to_dict() for name in names})),
        baseline="",
        score_note=RANDOM_NOTE if RANDOM in names else "",
        notes=(
            _data_note(dataset),
            *_certain_metrics(dataset, further),
            *_tuning_notes(dataset),
            *((*_dropped(comparison), *_skipped(comparison)) if is_only_dataset else ()),
        ),
        failures=_failures(comparison) if is_only_dataset else "",
        findings=dataset.findings,
        details=DETAILS,
        explains_codes=True,
    )
    if dataset.comparison is None:
        answer = single_answer(names[0], dataset.estimate(names[0]), options)
    else:
        answer = comparison_answer(dataset.comparison, options)
    if is_only_dataset and len(names) > 1:
        headline = answer.headline
        if not comparison.decision.above_random:
            headline = _NOT_ABOVE_RANDOM.format(metric=data.primary)
        answer = replace(answer, headline=_with_cheapest(comparison, headline))
    return View(title=f"{data.name}: {data.kind}, {data.size}", answer=answer)


def _data_note(dataset: DataComparison) -> str:
    data = dataset.data
    return f"{data.name}: {'; '.join([f'{data.kind}, {data.size}', *map(str, data.issues)])}."


def _certain_metrics(dataset: DataComparison, names: Sequence[str]) -> list[str]:
    """The metrics that any system maximises, such as R@100 on 64 documents: checks of scores leave these out."""
    chances = {name: dataset.systems[0].result[name].chance for name in names}
    certain = [name for name, chance in chances.items() if chance >= 1 - CHANCE_TOLERANCE]
    if not certain:
        return []
    levels = "chance level" if len(certain) == 1 else "chance levels"
    verb = "is" if len(certain) == 1 else "are"
    return [f"The {levels} of {name_list(certain)} {verb} 1, so every system has the maximum score."]


def _tuning_notes(dataset: DataComparison) -> list[str]:
    """The selected parameters of each tuned system, and how optimistic the score on all units would be."""
    notes = []
    for system in dataset.systems:
        if system.tuning is not None:
            record = system.tuning
            selected = ", ".join(f"{name} {value}" for name, value in record.trials[record.best].params.items())
            notes.append(
                f"{system.name}: {selected} has the highest of {len(record.trials)} scores on all "
                f"{Vocabulary(dataset.data.unit).plural}, {record.optimistic:.3f} (optimistic). The "
                f"table has the held-out score, {record.nested:.3f} (nested {record.fold_count}-fold cross-validation)."
            )
    return notes


# Shared sentences.

RANDOM_NOTE = f"The baseline {RANDOM} uses random vectors."
_NOT_ABOVE_RANDOM = (
    "No system is significantly better than random vectors on {metric}, so these data cannot show which system is "
    "best. Use more data."
)


def _with_cheapest(comparison: BenchComparison, headline: str) -> str:
    """The headline, and the cheapest system that is not significantly worse."""
    decision, sentences = comparison.decision, [headline]
    if decision.above_random and decision.cheapest != decision.best:
        faster = _times_faster(comparison, decision.cheapest, decision.best)
        sentences.append(cheapest_sentence(decision.cheapest, decision.best, faster))
    return " ".join(sentences)


def _dropped(comparison: BenchComparison) -> list[str]:
    """The systems that can be dropped, separated by semicolons: a name may contain commas."""
    decision = comparison.decision
    if not decision.above_random or not decision.dropped:
        return []
    shown = [f"{name} ({better})" for name, better in list(decision.dropped.items())[:MAX_NAMES]]
    more = f" and {len(decision.dropped) - MAX_NAMES} more" if len(decision.dropped) > MAX_NAMES else ""
    return [
        f"Can be dropped: {'; '.join(shown)}{more}. The system in parentheses is significantly better, costs no more, "
        f"takes at most {TIME_TOLERANCE:g} times as long per text (times below {1000 * NEGLIGIBLE_SECONDS:g} ms count "
        "as equal), and needs no more bytes per vector."
    ]


def _times_faster(comparison: BenchComparison, cheap: str, best: str) -> str:
    one, other = comparison.cost(cheap)[1], comparison.cost(best)[1]
    if isfinite(one) and isfinite(other) and other > max(1.5 * one, NEGLIGIBLE_SECONDS):
        # A time is measured once, so the ratio is rounded to one significant digit.
        ratio = f"{float(f'{other / one:.0e}'):,.0f}" if other > 2 * one else f"{other / one:.1f}"
        return f" (about {ratio} times faster than {best})"
    return ""


def _failures(comparison: BenchComparison) -> str:
    """The systems that failed; with several data sets, each with its data set."""
    datasets = comparison.datasets
    names = [system.name for dataset in datasets for system in dataset.systems]
    n_finished = sum(name not in comparison.baselines for name in names)
    suffix = f" on {datasets[0].data.name}"
    if len(datasets) > 1 or not all(name.endswith(suffix) for name in comparison.failures):
        return failure_line(comparison.failures, n_finished, "evaluation")
    return failure_line({name.removesuffix(suffix): error for name, error in comparison.failures.items()}, n_finished)


def _skipped(comparison: BenchComparison) -> list[str]:
    return [f"Not evaluated: {'; '.join(comparison.skipped)}."] if comparison.skipped else []


WIDTH, HEIGHT = 500, 280


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One system: seconds per 1,000 texts, the score, and its interval."""

    system: str
    seconds: float
    score: float
    low: float
    high: float


def cost_chart(points: Sequence[CostPoint], metric: str, name: str = "cost") -> Chart:
    """Score by time per text; the line is the Pareto front."""
    times, scores = [point.seconds for point in points], [point.score for point in points]
    front = [points[index] for index in pareto_front(np.array(times), np.array(scores))]
    scale = log_scale(min(times) / 1.5, max(times) * 1.5)
    x = with_grid(log_axis(scale.low, scale.high, scale.ticks, "seconds per 1,000 texts (logarithmic)"))
    y_scale = axis_scale([], [end for point in points for end in (point.low, point.high)])
    y = with_grid(scale_axis(y_scale, metric))
    where = position(x, y, "cost", "value")
    rows = [_row(point, index) for index, point in enumerate(points)]
    steps: list[Row] = [{"cost": point.seconds, "value": point.score} for point in front]
    heights = [(y_scale.high - point.score) / (y_scale.high - y_scale.low) * HEIGHT for point in points]
    layers = [
        line([*steps, {**steps[-1], "cost": scale.high}], where, LIGHT["chance"], interpolate="step-after"),
        *(vertical_intervals([row], x, y, "cost", stroke=row["fill"], strokeWidth=1.4) for row in rows),
        *(series_points([row], where, row["fill"], row["shape"], size=80) for row in rows),
        *series_labels([point.system for point in points], heights, WIDTH),
    ]
    listed = ", ".join(point.system for point in front)
    return chart(
        name,
        f"{metric_heading(metric)} by seconds per 1,000 texts",
        f"The Pareto front of {metric} and time per text: {listed}.",
        layers,
        subtitle="Line: the best score at or below each time. Error bars are intervals.",
        width=WIDTH,
        height=HEIGHT,
    )


def _row(point: CostPoint, index: int) -> Row:
    color, shape = series_style(index)
    return {
        "cost": point.seconds,
        "value": point.score,
        "low": point.low,
        "high": point.high,
        "fill": color,
        "shape": shape,
        "tooltip": f"{point.system}: {point.score:.3f} at {point.seconds:.3g} seconds per 1,000 texts",
    }


# The page of a benchmark: the answer, quality against cost, and every data set.


def stored_suite(path: str | Path) -> Mapping[str, Any] | None:
    """The content of results.json of a benchmark with several data sets; None for any other folder."""
    file = Path(path) / RESULTS
    if not file.is_file():
        return None
    try:
        content: Any = parse_json(open_text(file))
    except EquipoiseError:
        return None
    known = isinstance(content, dict) and {"answers", "datasets", "decision"} <= set(content)
    return content if known and len(content["datasets"]) > 1 else None


def write_suite_page(
    folder: str | Path,
    runs: Iterable[Path],
    output: str | Path,
    options: ReportOptions,
    *,
    progress: Callable[[str], None] = lambda message: None,
) -> str:
    """Write the page of a suite, and next to it a full report of the runs on each data set; returns the decision."""
    content = stored_suite(folder)
    assert content is not None
    target = Path(output)
    names = [dataset["name"] for dataset in content["datasets"]]
    places, runs = folder_names(names), list(runs)
    links: dict[str, str] = {}
    for number, name in enumerate(names):
        progress(f"writing {name}")
        page = target.with_name(f"{target.stem}-{places[name]}{target.suffix or '.html'}")
        with portion(number / (len(names) + 1), (number + 1) / (len(names) + 1)):
            write_report([("", run) for run in runs if run.parent.name == places[name]], page, options)
        links[name] = page.name
    progress("writing the page")
    write_text(target, suite_html(content, links, charts=options.charts, notes=options.folder_notes))
    return View.from_dict(content["answers"][0]).answer.headline


def suite_html(
    content: Mapping[str, Any],
    links: Mapping[str, str] | None = None,
    *,
    charts: bool = True,
    notes: Sequence[str] = (),
) -> str:
    """The page of ``BenchComparison.to_dict()``; ``links`` are the full reports by data set, ``notes`` come first."""
    views = [View.from_dict(view) for view in content["answers"]]
    datasets = content["datasets"]
    n_suite = len(views) - len(datasets)  # 1 if there is an aggregate, else 0
    points = [suite_points(content)] * n_suite + [data_points(dataset) for dataset in datasets]
    metrics = ["mean score"] * n_suite + [dataset["primary"] for dataset in datasets]
    drawn = [
        view.with_charts([cost_chart(shown, metric, f"cost-{number}")], "Quality and cost") if len(shown) > 1 else view
        for number, (view, shown, metric) in enumerate(zip(views, points, metrics, strict=True))
    ]
    pages = {
        view.title: links[dataset["name"]]
        for view, dataset in zip(views[n_suite:], datasets, strict=True)
        if links and dataset["name"] in links
    }
    subject = views[0].title
    if n_suite:
        subject = f"{len(datasets)} data sets, {pluralize(len(content['aggregate']['rows']), 'system')}"
    return render_views(f"Benchmark: {subject}", drawn, links=pages, charts=charts, notes=notes)


def data_points(dataset: Mapping[str, Any]) -> list[CostPoint]:
    """The systems of a data set whose cost is known."""
    points = []
    for system in dataset["systems"]:
        rate = system["cost"].get("documents_per_second")
        estimate = next(item for item in system["estimates"] if item["metric"] == dataset["primary"])
        if rate and estimate["value"] is not None:
            low, high = (estimate["interval"][end] for end in ("low", "high"))
            value = float(estimate["value"])
            points.append(
                CostPoint(
                    system["name"], 1000 / rate, value, value if low is None else low, value if high is None else high
                )
            )
    return points


def suite_points(content: Mapping[str, Any]) -> list[CostPoint]:
    """The systems of the aggregate whose cost is known on every data set."""
    if content.get("aggregate") is None:
        return []
    times: dict[str, list[float]] = {}
    for dataset in content["datasets"]:
        for point in data_points(dataset):
            times.setdefault(point.system, []).append(point.seconds)
    count = len(content["datasets"])
    return [
        CostPoint(
            row["system"],
            sum(times[row["system"]]) / count,
            row["mean_score"],
            row["score_interval"][0],
            row["score_interval"][1],
        )
        for row in content["aggregate"]["rows"]
        if len(times.get(row["system"], ())) == count
    ]
