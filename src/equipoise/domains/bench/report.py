"""The answer of a benchmark: for the whole suite if there are several data sets, and for every data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan, nan
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.bench.base_data import ISSUES
from equipoise.domains.bench.results import NEGLIGIBLE_SECONDS, TIME_TOLERANCE
from equipoise.domains.bench.systems import RANDOM
from equipoise.errors import EquipoiseError
from equipoise.io.atomic import write_text
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.progress import portion
from equipoise.report.answer import (
    MAX_ROWS,
    METRIC_RANK,
    TIED,
    WORSE,
    Answer,
    AnswerOptions,
    cheapest_sentence,
    comparison_answer,
    failure_line,
    interval_column,
    metric_column,
    rank_column,
    single_answer,
    status_column,
)
from equipoise.report.build_view import data_and_dates
from equipoise.report.charts.chart import Chart, unique_names, write_charts
from equipoise.report.charts.curves import cost_charts
from equipoise.report.html.render import render_views
from equipoise.report.publish import ReportOptions, write_report
from equipoise.report.sections import axis_scale, to_value
from equipoise.report.tables import COST_RANK, cost_columns, cost_report_columns
from equipoise.report.terminal import Paragraph, Part, ReportColumn, findings_section, heading
from equipoise.report.view import View
from equipoise.report.view_model import Leaderboard, LeaderboardRow, Value
from equipoise.runs.experiment_folder import RESULTS, folder_names
from equipoise.runs.manifest import read_manifest
from equipoise.stats.formatting import format_percent, format_value
from equipoise.stats.intervals import Interval
from equipoise.stats.verdict import Vocabulary, name_list

if TYPE_CHECKING:
    from equipoise.domains.bench.base_data import BenchData
    from equipoise.domains.bench.results import Aggregate, BenchComparison, DataComparison
    from equipoise.report.view import RunsView


MAX_METRICS = 3
"""Further metrics that the table of a data set shows."""
CHANCE_TOLERANCE = 1e-12
"""Rounding errors of a chance level."""
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
        parts += view.answer.parts(quiet=quiet, verbose=True)
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
        rank_column([row.rank_range for row in suite.rows]),
        ReportColumn("system", names, shortens="middle"),
        ReportColumn(
            "mean",
            [f"{row.mean_score:.3f}" for row in suite.rows],
            right=True,
            values={"mean": [row.mean_score for row in suite.rows]},
        ),
        interval_column(
            [_ends(row.score_interval) for row in suite.rows],
            [Interval(*row.score_interval, suite.confidence_level) for row in suite.rows],
        ),
        status_column([_status(suite, name) for name in names]),
        *(
            ReportColumn(
                dataset.data.name,
                [_marked(dataset, name) for name in names],
                right=True,
                rank=COST_RANK - len(comparison.datasets) + place,  # the last ones are dropped first
                values={dataset.data.name: [dataset.score(name) for name in names]},
            )
            for place, dataset in enumerate(comparison.datasets)
        ),
        *cost_report_columns(names, {name: _mean_cost(comparison, name) for name in names}),
    )
    metrics = ", ".join(dict.fromkeys(dataset.data.primary for dataset in comparison.datasets))
    notes = [
        "* not significantly worse than the best on that data set.",
        _other_datasets(suite),
        *_input_notes([dataset.data for dataset in comparison.datasets]),
        *_dropped(comparison),
        *_skipped(comparison),
    ]
    if suite.incomplete:
        notes.append(f"Not in this table: {join_names(suite.incomplete)} (not scored on all data sets).")
    explanation = [
        f"Mean over {count} data sets ({metrics}). {_first_places(comparison, suite)}",
        f"On other data sets like these, the {level} interval of the mean of {suite.leader} is "
        f"{_ends(suite.rows[0].interval_elsewhere)} (Student's t over data sets).",
        *_about_dropped(comparison),
    ]
    headline = _with_cheapest(comparison, _suite_decision(comparison, suite, count))
    answer = Answer(
        headline,
        columns,
        tuple(notes),
        failures=_failures(comparison),
        findings=comparison.findings,
        details=DETAILS,
        explains_codes=True,
        explanation="\n".join(explanation),
        max_rows=MAX_ROWS,
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
    return f"On other data sets like these, {shown}."


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
    return mean_costs(
        [system.cost.to_dict() for dataset in comparison.datasets for system in dataset.systems if system.name == name]
    )


def mean_costs(costs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each cost over the data sets on which it is known."""
    means: dict[str, float | None] = {}
    for key in costs[0]:
        known = [value for cost in costs if (value := cost[key]) is not None]
        mean = harmonic_mean if key.endswith("_per_second") else fmean  # the mean of the times, not of the rates
        means[key] = mean(known) if known else None
    return means


# One data set.


def _data_view(dataset: DataComparison, comparison: BenchComparison) -> View:
    names, data = dataset.order, dataset.data
    further = [name for name in data.metrics[1:] if name in dataset.systems[0].result.estimates]
    columns = [
        metric_column(
            metric,
            [format_value(dataset.result(name)[metric].value, 3) for name in names],
            [dataset.result(name)[metric] for name in names],
            rank=METRIC_RANK + place,
        )
        for place, metric in enumerate([name for name in further if not _is_certain(dataset, name)][:MAX_METRICS])
    ]
    is_only_dataset = comparison.aggregate is None
    options = AnswerOptions(
        Vocabulary(data.unit),
        columns=(*columns, *cost_report_columns(names, {name: dataset.system(name).cost.to_dict() for name in names})),
        baseline="",
        score_note=f"Random vectors score {dataset.score(RANDOM):.3f}." if RANDOM in names else "",
        notes=(
            *_input_notes([data]),
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
    more = [f"{data.columns}." if data.columns.columns else "", "; ".join(map(str, data.issues)), answer.explanation]
    more += _about_dropped(comparison) if is_only_dataset else []
    answer = replace(answer, explanation="\n".join(filter(None, more)))
    return View(title=f"{data.name}: {data.kind}, {data.size}", answer=answer)


def _input_notes(suite: Iterable[BenchData]) -> list[str]:
    """The columns of data sets with others that could have been meant, and the issues of the rows without their ids."""
    notes, issues = [], []
    for data in suite:
        if data.columns.others:
            notes.append(f"{data.name}: {data.columns}.")
        if data.issues:
            rows = ", ".join(f"{ISSUES[issue.code][0]} ({issue.count:,})" for issue in data.issues)
            issues.append(f"{data.name}: {rows}")
    return [*notes, *([f"{'; '.join(issues)}."] if issues else [])]


def _is_certain(dataset: DataComparison, metric: str) -> bool:
    """Whether any system has the maximum, as of R@100 on 64 documents: checks of scores leave such metrics out."""
    return dataset.systems[0].result[metric].chance >= 1 - CHANCE_TOLERANCE


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

_NOT_ABOVE_RANDOM = (
    "No system is significantly better than random vectors on {metric}, so these data cannot show which system is "
    "best. Use more data."
)


def _with_cheapest(comparison: BenchComparison, headline: str) -> str:
    """The headline, and the cheapest system if several could be best."""
    decision = comparison.decision
    if not decision.above_random or len(decision.could_be_best) < 2:
        return headline
    faster = _times_faster(comparison, decision.cheapest, decision.best)
    return f"{headline} {cheapest_sentence(decision.cheapest, faster)}"


def _dropped(comparison: BenchComparison) -> list[str]:
    """The systems that can be dropped, by the system that is better."""
    decision = comparison.decision
    if not decision.above_random:
        return []
    names: dict[str, list[str]] = {}
    for name, better in decision.dropped.items():
        names.setdefault(better, []).append(name)
    return [
        f"{better} is significantly better and no more expensive than {name_list(worse)}."
        for better, worse in names.items()
    ]


def _about_dropped(comparison: BenchComparison) -> list[str]:
    """What ``_dropped`` means by the costs."""
    if not _dropped(comparison):
        return []
    return [
        f"No more expensive: the price is not higher, each text takes at most {TIME_TOLERANCE:g} times as long (times "
        f"below {1000 * NEGLIGIBLE_SECONDS:g} ms count as equal), and no more bytes per vector are needed."
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
    links = {name: f"{target.stem}-{places[name]}{target.suffix or '.html'}" for name in names}
    reports: dict[str, RunsView] = {}
    for number, name in enumerate(names):
        progress(f"writing {name}")
        related = (("all data sets", target.name), *((other, links[other]) for other in names if other != name))
        chosen = replace(
            options,
            title=f"{options.title}: {name}" if options.title else "",
            charts_folder=None if options.charts_folder is None else Path(options.charts_folder) / places[name],
            related=related,
        )
        with portion(number / (len(names) + 1), (number + 1) / (len(names) + 1)):
            group = [("", run) for run in runs if run.parent.name == places[name]]
            reports[name] = write_report(group, target.with_name(links[name]), chosen)
    progress("writing the page")
    if options.charts_folder is not None:
        write_charts([chart for view in suite_views(content) for chart in view.charts], options.charts_folder)
    text = suite_html(
        content,
        links,
        reports=reports,
        charts=options.charts,
        notes=options.folder_notes,
        title=options.title,
        subtitle=data_and_dates([read_manifest(run) for run in runs]),
    )
    write_text(target, text)
    return View.from_dict(content["answers"][0]).answer.headline


def suite_html(
    content: Mapping[str, Any],
    links: Mapping[str, str] | None = None,
    *,
    reports: Mapping[str, RunsView] | None = None,
    charts: bool = True,
    notes: Sequence[str] = (),
    title: str = "",
    subtitle: str = "",
) -> str:
    """The page of ``BenchComparison.to_dict()``.

    ``links`` and ``reports`` are the full reports by data set, ``notes`` come first.
    """
    views = suite_views(content)
    datasets = content["datasets"]
    titles = dict(zip((dataset["name"] for dataset in datasets), views[-len(datasets) :], strict=True))
    return render_views(
        title or _suite_title(content, views),
        views,
        links={titles[name].title: file for name, file in (links or {}).items()},
        reports={titles[name].title: report for name, report in (reports or {}).items()},
        charts=charts,
        notes=notes,
        subtitle=subtitle,
    )


def _suite_title(content: Mapping[str, Any], views: Sequence[View]) -> str:
    if content["aggregate"] is None:
        return f"Benchmark: {views[0].title}"
    n_systems = pluralize(len(content["aggregate"]["rows"]), "system")
    return f"Benchmark: {len(content['datasets'])} data sets, {n_systems}"


def suite_views(content: Mapping[str, Any]) -> list[View]:
    """The views of a stored benchmark with the charts of quality against cost; their names are unique."""
    views = [View.from_dict(view) for view in content["answers"]]
    datasets = content["datasets"]
    charts = [list(_dataset_charts(dataset)) for dataset in datasets]
    if content["aggregate"] is not None:
        charts.insert(0, list(_suite_charts(content)))
    named = iter(unique_names([chart for drawn in charts for chart in drawn]))
    return [
        view.with_charts([next(named) for _ in drawn], "Quality and cost")
        for view, drawn in zip(views, charts, strict=True)
    ]


def _suite_charts(content: Mapping[str, Any]) -> Iterator[Chart]:
    """The mean score over the mean costs of the systems in the aggregate."""
    rows = content["aggregate"]["rows"]
    costs = {
        row["system"]: mean_costs(
            [
                system["cost"]
                for dataset in content["datasets"]
                for system in dataset["systems"]
                if system["name"] == row["system"]
            ]
        )
        for row in rows
    }
    values = {row["system"]: (row["mean_score"], *row["score_interval"]) for row in rows}
    level = content["datasets"][0]["systems"][0]["estimates"][0]["interval"]["confidence_level"]
    yield from _cost_charts("mean score", values, costs, level)


def _dataset_charts(dataset: Mapping[str, Any]) -> Iterator[Chart]:
    """The primary metric of a data set over the costs."""
    estimates = {
        system["name"]: next(item for item in system["estimates"] if item["metric"] == dataset["primary"])
        for system in dataset["systems"]
    }
    values = {
        name: (estimate["value"], *(estimate["interval"][end] for end in ("low", "high")))
        for name, estimate in estimates.items()
    }
    costs = {system["name"]: system["cost"] for system in dataset["systems"]}
    level = next(iter(estimates.values()))["interval"]["confidence_level"]
    yield from _cost_charts(dataset["primary"], values, costs, level)


def _cost_charts(
    metric: str,
    values: Mapping[str, tuple[float | None, float | None, float | None]],
    costs: Mapping[str, Mapping[str, float | None]],
    confidence_level: float,
) -> Iterator[Chart]:
    """The systems with their scores and the ends of the intervals, over each of their costs."""
    scores = {name: _score_value(ends, confidence_level) for name, ends in values.items()}
    rows = tuple(LeaderboardRow(name, score, "", "", None, "") for name, score in scores.items())
    board = Leaderboard(
        metric, "up", "fraction", format_percent(confidence_level), axis_scale(scores.values()), rows, caption=""
    )
    yield from cost_charts(board, cost_columns(list(values), costs))


def _score_value(ends: tuple[float | None, float | None, float | None], confidence_level: float) -> Value:
    """A score and its interval from JSON."""
    value, low, high = (nan if number is None else number for number in ends)
    known = not isnan(low + high)
    interval = Interval(low, high, confidence_level) if known else Interval.unknown("unknown")
    return to_value(value, interval, 3)
