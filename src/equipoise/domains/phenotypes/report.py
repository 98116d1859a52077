"""The report of a term-retrieval benchmark: comparison, metrics, slices and label queries, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.phenotypes.scoring import failure_message
from equipoise.report.answer import (
    Answer,
    AnswerOptions,
    comparison_answer,
    failure_line,
    metric_columns,
    single_answer,
)
from equipoise.report.pairwise import chance_note, comparison_caption, primary_columns
from equipoise.report.tables import caption as score_caption
from equipoise.report.tables import score_columns
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.runs.experiment_folder import RUNS, VISUALIZATIONS, ExperimentFolder, folder_name
from equipoise.runs.manifest import Manifest, Status
from equipoise.runs.run_folder import save_run
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value
from equipoise.stats.verdict import INCOMPLETE_MARK, Vocabulary

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import BenchmarkContext, PhenotypeBenchmark, TermSystemResult
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result

SUMMARY_METRICS = (
    "HR@1", "HR@3", "HR@5", "HR@10", "nDCG@10", "R@10", "P@10", "MAP@10", "MaxOntSim@1", "MaxOntSim@10",
)  # fmt: skip
"""The columns of the summary table."""
_FEW_CASES_MARK = "*"
_DECIMALS = 3


ANSWER_METRICS = ("HR@1", "HR@10", "MaxOntSim@10")
"""Further columns of the answer."""


def benchmark_view(benchmark: PhenotypeBenchmark) -> View:
    """The answer, then all metrics, methods, slices and label queries."""
    sections = (*_metric_sections(benchmark), *_slice_section(benchmark), *_diagnosis_section(benchmark))
    return View(_answer(benchmark), sections, citation=benchmark.bench.ontology.citation)


def _answer(benchmark: PhenotypeBenchmark) -> Answer:
    """Which system is best, with hit rates and ontology similarity."""
    cases, ontology, comparison = benchmark.bench.resolved_cases, benchmark.bench.ontology, benchmark.comparison
    n_cases, model = len(cases.cases), _only_model(benchmark)
    scored = "" if cases.scored == n_cases else f"{format_count(cases.scored)} of "
    where = f"{scored}{pluralize(n_cases, 'case')}, {format_count(len(ontology))} terms ({ontology.title})"
    details = ["all metrics"]
    details += ["slices"] if benchmark.outcomes[0].slices else []
    details += ["findings with hints"] if benchmark.findings else []
    options = AnswerOptions(
        Vocabulary("case", "mode" if model else "system"),
        notes=(f"{where}{f', {model}' if model else ''}.", *(f"{note}." for note in benchmark.notes)),
        failures=failure_line(benchmark.failed_models, len({outcome.model for outcome in benchmark.outcomes})),
        findings=benchmark.findings,
        details=f"Details: add -v ({', '.join(details)}).",
    )
    shown = list(dict.fromkeys((*ANSWER_METRICS, *benchmark.bench.settings.further_metrics)))
    if comparison is None:
        result = benchmark[0]
        columns = [
            ReportColumn(name, [format_value(result[name].value, _DECIMALS)], right=True)
            for name in shown
            if name in result.estimates
        ]
        return single_answer(result.system, result[result.names[0]], replace(options, columns=tuple(columns)))
    shown = [name for name in shown if name in comparison.metrics and name != comparison.primary]
    answer = comparison_answer(comparison, replace(options, columns=tuple(metric_columns(comparison, shown))))
    return replace(answer, columns=tuple(_short_names(benchmark, answer.columns)))


def _only_model(benchmark: PhenotypeBenchmark) -> str:
    """The model of all systems, if it is one model with several representations."""
    models = {outcome.model for outcome in benchmark.outcomes}
    return models.pop() if len(models) == 1 and len(benchmark) > 1 else ""


def _metric_sections(benchmark: PhenotypeBenchmark) -> list[Section]:
    """Every metric of every system; before it the comparison with a summary, if there are several systems."""
    comparison, results = benchmark.comparison, list(benchmark.results.values())
    metric_table = _table(benchmark, _with_exact_chance(score_columns(results), results))
    text = (
        score_caption(results) if comparison is None else f"{comparison_caption(comparison)} {chance_note(comparison)}"
    )
    caption = (
        f"{text} All {format_count(len(benchmark.bench.ontology))} terms are ranked for every case. "
        f"MaxOntSim uses the similarity measure {benchmark.bench.similarity.name}."
    )
    sections = [Section("Every metric", (metric_table,), (caption,))]
    if comparison is None:
        return sections
    tables = (_table(benchmark, primary_columns(comparison)), _table(benchmark, metric_summary_table(comparison)))
    return [Section(f"{comparison.primary}, best first", tables), *sections]


def _table(benchmark: PhenotypeBenchmark, columns: Sequence[ReportColumn], *notes: str) -> ReportTable:
    """The table with short system names; without the column of the system if there is one system."""
    shown = [column for column in columns if len(benchmark) > 1 or column.head != "system"]
    return ReportTable.of(_short_names(benchmark, shown), *notes)


def _short_names(benchmark: PhenotypeBenchmark, columns: Sequence[ReportColumn]) -> list[ReportColumn]:
    """The columns with representations as names if there is one model; an incomplete run keeps its mark."""
    if not _only_model(benchmark):
        return list(columns)
    names = {outcome.name: outcome.mode for outcome in benchmark.outcomes}
    names |= {f"{name}{INCOMPLETE_MARK}": f"{short}{INCOMPLETE_MARK}" for name, short in names.items()}
    return [
        replace(column, head="mode", cells=[names.get(cell, cell) for cell in column.cells])
        if column.head in ("system", "mode")
        else column
        for column in columns
    ]


def _with_exact_chance(columns: Sequence[ReportColumn], results: Sequence[Result]) -> list[ReportColumn]:
    """The columns of all metrics, with small chance levels shown as an upper bound instead of 0."""
    names = dict.fromkeys(name for result in results for name in result.names)
    chance_levels = [result[name].chance for name in names for result in results if name in result.estimates]
    cells = [
        _format_chance(value) if cell.strip("0.") == "" else cell
        for column in columns
        if column.head == "chance"
        for cell, value in zip(column.cells, chance_levels, strict=True)
    ]
    return [replace(column, cells=cells) if column.head == "chance" else column for column in columns]


def metric_summary_table(comparison: Comparison) -> list[ReportColumn]:
    """One row per system and one for chance, one column per metric."""
    shown = [name for name in SUMMARY_METRICS if name in comparison.metrics]
    rows = [comparison.estimates[name] for name in comparison.order]
    columns = [ReportColumn("system", [*comparison.order, "chance"], shortens="middle")]
    for rank, metric in enumerate(shown):
        chance_levels = [row[metric].chance for row in rows if not isnan(row[metric].chance)]
        cells = [format_value(row[metric].value, _DECIMALS) for row in rows]
        cells.append(_format_chance(chance_levels[0]) if chance_levels else "n/a")
        columns.append(ReportColumn(metric, cells, right=True, rank=rank))
    return columns


def _format_chance(value: float) -> str:
    """A chance level; a small positive value is shown as an upper bound."""
    least = 10**-_DECIMALS
    return f"<{format_value(least, _DECIMALS)}" if 0 < value < least / 2 else format_value(value, _DECIMALS)


def _slice_section(benchmark: PhenotypeBenchmark) -> list[Section]:
    """The primary metric by slice, one row per slice and system; the slice is named in its first row."""
    first = benchmark.outcomes[0].slices
    if not first:
        return []
    metric = first[0].estimate.metric
    rows = [
        (
            *(
                (part.name, part.value, f"{format_count(part.estimate.n)}{_FEW_CASES_MARK if part.few else ''}")
                if outcome is benchmark.outcomes[0]
                else ("", "", "")
            ),
            outcome.name,
            format_value(outcome.slices[at].estimate.value, _DECIMALS),
            format_interval(outcome.slices[at].estimate.interval, _DECIMALS),
        )
        for at, part in enumerate(first)
        for outcome in benchmark.outcomes
    ]
    names, values, sizes, systems, estimates, intervals = zip(*rows, strict=True)
    confidence_level = format_percent(first[0].estimate.interval.confidence_level)
    columns = [
        ReportColumn("slice", names),
        ReportColumn("", values, shortens="end"),
        ReportColumn("n", sizes, right=True),
        ReportColumn("system", systems, shortens="middle"),
        ReportColumn(metric, estimates, right=True),
        ReportColumn(f"{confidence_level} interval", intervals, right=True, rank=1),
    ]
    note = f"{_FEW_CASES_MARK} Few cases: the score is not reliable." if any(part.few for part in first) else ""
    return [Section(f"{metric} by slice of the cases", (_table(benchmark, columns, note),))]


def _diagnosis_section(benchmark: PhenotypeBenchmark) -> list[Section]:
    """The scores with labels as queries, one row per metric and system; the metric is named in its first row."""
    diagnosed = [(outcome.name, outcome.diagnosis.scores) for outcome in benchmark.outcomes if outcome.diagnosis]
    if not diagnosed:
        return []
    rows = [
        (
            estimate.metric if system == diagnosed[0][0] else "",
            system,
            format_value(estimate.value, _DECIMALS),
            format_interval(estimate.interval, _DECIMALS),
            _format_chance(estimate.chance),
            format_count(estimate.n),
        )
        for at in range(len(diagnosed[0][1]))
        for system, estimate in ((system, scores[at]) for system, scores in diagnosed)
    ]
    metrics, systems, estimates, intervals, chance_levels, sizes = zip(*rows, strict=True)
    level = diagnosed[0][1][0].interval.confidence_level
    columns = [
        ReportColumn("metric", metrics),
        ReportColumn("system", systems, shortens="middle"),
        ReportColumn("estimate", estimates, right=True),
        ReportColumn(f"{format_percent(level)} interval", intervals, right=True, rank=1),
        ReportColumn("chance", chance_levels, right=True, rank=3),
        ReportColumn("n", sizes, right=True, rank=2),
    ]
    note = (
        "The queries are the labels of a random sample of terms. Self-match: the term itself ranks first. "
        "Branch purity: the share of the 10 nearest terms in the same top-level branch. The Spearman correlations are "
        "means over terms: between the system's distances and path lengths in the ontology, and between its scores and "
        "Resnik similarities."
    )
    return [Section("Ontology labels as queries", (_table(benchmark, columns, note),), always=True)]


def write_system_runs(
    folder: ExperimentFolder, outcomes: Iterable[TermSystemResult], bench: BenchmarkContext, command: Sequence[str]
) -> None:
    for outcome in outcomes:
        path = folder.path / RUNS / folder_name(outcome.name)
        save_run(path, outcome.result, manifest=_manifest(outcome, bench, command), details=outcome.details)


def _manifest(outcome: TermSystemResult, bench: BenchmarkContext, command: Sequence[str]) -> Manifest:
    """The manifest of one system; the run is partial if cases failed."""
    resolved_cases, settings, card = bench.resolved_cases, bench.settings, outcome.card
    manifest = Manifest.start(outcome.name, command=command, seed=settings.config.seed)
    partial = failure_message(outcome.retrieved)
    return replace(
        manifest.finish(Status.PARTIAL if partial else Status.COMPLETE, reason=partial),
        parameters={
            "model": outcome.model,
            "model_name": card.name,
            "mode": outcome.representation.name,
            "reranker": outcome.reranker or None,
            "ontology": resolved_cases.ontology.title,
            "similarity": settings.measure,
            "citation": resolved_cases.ontology.citation,
        },
        datasets=resolved_cases.fingerprints,
        cost={"dims": card.dims, "bytes_per_vector": card.bytes_per_vector, "seconds": outcome.seconds},
    )


def write_benchmark(folder: Path, benchmark: PhenotypeBenchmark, *, runs: bool = True) -> list[Path]:
    """Write all files of a benchmark; ``runs``: also the run directories."""
    from equipoise.domains.phenotypes.charts import benchmark_charts
    from equipoise.report.charts.chart import write_charts

    target = ExperimentFolder(folder)
    target.check_writable()
    if runs:
        write_system_runs(target, benchmark.outcomes, benchmark.bench, benchmark.command)
    view = benchmark_view(benchmark).with_charts(benchmark_charts(benchmark))
    view.write(folder, [target.path / RUNS / folder_name(outcome.name) for outcome in benchmark.outcomes])
    chart_files = write_charts(view.charts, folder / VISUALIZATIONS, required=False)
    return [target.write_results(benchmark.to_dict()), *chart_files]
