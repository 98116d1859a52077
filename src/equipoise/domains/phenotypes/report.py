"""The report of a term-retrieval benchmark: its view with comparison, metrics, slices and diagnosis, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.phenotypes.scoring import failure_message
from equipoise.report.answer import (
    INCOMPLETE_MARK,
    Answer,
    AnswerOptions,
    comparison_answer,
    metric_columns,
    single_answer,
)
from equipoise.report.pairwise import (
    chance_note,
    comparison_caption,
    primary_columns,
)
from equipoise.report.tables import caption as score_caption
from equipoise.report.tables import score_columns
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.runs.experiment_folder import RUNS, VISUALIZATIONS, ExperimentFolder, folder_name
from equipoise.runs.manifest import Manifest, Status, redact_secrets
from equipoise.runs.store import save_run
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value
from equipoise.stats.verdict import Vocabulary

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import BenchmarkContext, PhenotypeBenchmark, TermSystemResult
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.stats.slices import Slice
    from equipoise.types import Finding

SUMMARY_METRICS = (
    "HR@1",
    "HR@3",
    "HR@5",
    "HR@10",
    "nDCG@10",
    "R@10",
    "P@10",
    "MAP@10",
    "MaxOntSim@1",
    "MaxOntSim@10",
)
"""The columns of the summary table."""
_FEW_CASES_MARK = "*"
_DECIMALS = 3


@dataclass(frozen=True)
class SystemScores:
    """One system: its result, the primary metric by slice, and the label diagnosis."""

    result: Result
    slices: tuple[Slice, ...] = ()
    diagnosis: tuple[Estimate, ...] = ()
    model: str = ""
    representation: str = ""


@dataclass(frozen=True)
class BenchmarkReportData:
    """The data of a benchmark report; ``scored`` is the number of cases with an expected term."""

    cases: int
    scored: int
    ontology: str
    citation: str
    terms: int
    measure: str
    systems: tuple[SystemScores, ...]
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    metrics: tuple[str, ...] = ()
    """Further metrics that were requested."""

    @property
    def model(self) -> str:
        """The model of all systems, if it is one model with several representations."""
        models = {part.model for part in self.systems}
        return models.pop() if len(models) == 1 and len(self.systems) > 1 else ""

    @property
    def called(self) -> dict[str, str]:
        """The name of each system in the tables: its representation if there is one model."""
        return {part.result.system: part.representation if self.model else part.result.system for part in self.systems}


ANSWER_METRICS = ("HR@1", "HR@10", "MaxOntSim@10")
"""Further columns of the answer."""


def benchmark_view(edition: BenchmarkReportData) -> View:
    """The answer, then all metrics, methods, slices and the label diagnosis."""
    results = [part.result for part in edition.systems]
    sections = (*_metric_sections(edition, results), *slice_section(edition), *diagnosis_section(edition))
    return View(phenotype_answer(edition), sections, citation=edition.citation)


def phenotype_answer(edition: BenchmarkReportData) -> Answer:
    """Which system is best, with hit rates and ontology similarity."""
    scored = "" if edition.scored == edition.cases else f"{format_count(edition.scored)} of "
    where = f"{scored}{pluralize(edition.cases, 'case')}, {format_count(edition.terms)} terms ({edition.ontology})"
    comparison = edition.comparison
    options = AnswerOptions(
        Vocabulary("case", "mode" if edition.model else "system"),
        notes=(f"{where}{f', {edition.model}' if edition.model else ''}.", *(f"{note}." for note in edition.notes)),
        findings=edition.findings,
        details="Details: add -v (all metrics, slices, label diagnosis, findings with hints).",
    )
    if comparison is None:
        result = edition.systems[0].result
        estimates = [result[name] for name in _answer_metrics(edition) if name in result.estimates]
        columns = [
            ReportColumn(estimate.metric, [format_value(estimate.value, _DECIMALS)], right=True)
            for estimate in estimates
        ]
        return single_answer(result.system, result[result.names[0]], replace(options, columns=tuple(columns)))
    shown = [name for name in _answer_metrics(edition) if name in comparison.metrics and name != comparison.primary]
    answer = comparison_answer(comparison, replace(options, columns=tuple(metric_columns(comparison, shown))))
    return replace(answer, columns=tuple(_short_names(edition, answer.columns)))


def _answer_metrics(edition: BenchmarkReportData) -> dict[str, None]:
    """The further columns of the answer, each once."""
    return dict.fromkeys((*ANSWER_METRICS, *edition.metrics))


def _metric_sections(edition: BenchmarkReportData, results: Sequence[Result]) -> list[Section]:
    """Every metric of every system; before it the comparison with a summary, if there are several systems."""
    comparison = edition.comparison
    every = _table(edition, _with_exact_chance(score_columns(results), results))
    sections = [Section("Every metric", (every,), (_caption(edition, results),))]
    if comparison is None:
        return sections
    tables = (_table(edition, primary_columns(comparison)), _table(edition, metric_summary_table(comparison)))
    return [Section(f"{comparison.primary}, best first", tables), *sections]


def _table(edition: BenchmarkReportData, columns: Sequence[ReportColumn], *notes: str) -> ReportTable:
    """The table with short system names; without the column of the system if there is one system."""
    shown = [column for column in columns if len(edition.systems) > 1 or column.head != "system"]
    return ReportTable.of(_short_names(edition, shown), *notes)


def _short_names(edition: BenchmarkReportData, columns: Sequence[ReportColumn]) -> list[ReportColumn]:
    """The columns with short system names; an incomplete run keeps its mark."""
    called = edition.called
    marked = {f"{name}{INCOMPLETE_MARK}": f"{short}{INCOMPLETE_MARK}" for name, short in called.items()}
    names = called | marked
    return [
        replace(
            column,
            head="mode" if edition.model else column.head,
            cells=[names.get(cell, cell) for cell in column.cells],
        )
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
    """A chance level; a small positive value is shown as an upper bound.

    >>> _format_chance(0.0001), _format_chance(0.234)
    ('<0.001', '0.234')
    """
    least = 10**-_DECIMALS
    return f"<{format_value(least, _DECIMALS)}" if 0 < value < least / 2 else format_value(value, _DECIMALS)


def _caption(edition: BenchmarkReportData, results: Sequence[Result]) -> str:
    comparison = edition.comparison
    text = (
        score_caption(results) if comparison is None else f"{comparison_caption(comparison)} {chance_note(comparison)}"
    )
    return (
        f"{text} All {format_count(edition.terms)} terms are ranked for every case, so that all systems have the "
        f"same depth. MaxOntSim by {edition.measure}."
    )


def slice_section(edition: BenchmarkReportData) -> list[Section]:
    """The primary metric by slice, one row per slice and system."""
    first = edition.systems[0].slices
    if not first:
        return []
    metric = first[0].estimate.metric
    rows = [
        (
            part.slices[at].name if part is edition.systems[0] else "",
            part.slices[at].value if part is edition.systems[0] else "",
            f"{format_count(row.estimate.n)}{_FEW_CASES_MARK if row.few else ''}" if part is edition.systems[0] else "",
            part.result.system,
            format_value(part.slices[at].estimate.value, _DECIMALS),
            format_interval(part.slices[at].estimate.interval, _DECIMALS),
        )
        for at, row in enumerate(first)
        for part in edition.systems
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
    note = f"{_FEW_CASES_MARK} few cases, low precision." if any(row.few for row in first) else ""
    return [Section(f"{metric} by slice of the cases", (_table(edition, columns, note),))]


def diagnosis_section(edition: BenchmarkReportData) -> list[Section]:
    """The label diagnosis, one row per metric and system."""
    diagnosed = [part for part in edition.systems if part.diagnosis]
    if not diagnosed:
        return []
    rows = [
        (
            outcome.diagnosis[at].metric if outcome is diagnosed[0] else "",
            outcome.result.system,
            format_value(outcome.diagnosis[at].value, _DECIMALS),
            format_interval(outcome.diagnosis[at].interval, _DECIMALS),
            _format_chance(outcome.diagnosis[at].chance),
            format_count(outcome.diagnosis[at].n),
        )
        for at in range(len(diagnosed[0].diagnosis))
        for outcome in diagnosed
    ]
    metrics, systems, estimates, intervals, chance_levels, sizes = zip(*rows, strict=True)
    columns = [
        ReportColumn("diagnosis", metrics),
        ReportColumn("system", systems, shortens="middle"),
        ReportColumn("estimate", estimates, right=True),
        ReportColumn("interval", intervals, right=True, rank=1),
        ReportColumn("chance", chance_levels, right=True, rank=3),
        ReportColumn("n", sizes, right=True, rank=2),
    ]
    note = (
        "The labels of a random sample of terms are the queries. Self-match: the term itself ranks first. "
        "Branch purity: the share of the 10 nearest terms in a common top-level branch. Correlations: "
        "of the system's distance with path length, of its score with Resnik; means over terms."
    )
    return [Section("Diagnosis with ontology labels", (_table(edition, columns, note),), always=True)]


def run_paths(folder: Path, benchmark: PhenotypeBenchmark) -> list[Path]:
    """The run directories of a benchmark."""
    return list(ExperimentFolder(folder).run_paths(outcome.name for outcome in benchmark.outcomes).values())


def unrelated_runs(folder: Path, benchmark: PhenotypeBenchmark) -> list[Path]:
    """Runs of earlier benchmarks in the same folder, which may be of other cases."""
    return ExperimentFolder(folder).unrelated_runs(outcome.name for outcome in benchmark.outcomes)


def write_system_runs(
    folder: ExperimentFolder, outcomes: Iterable[TermSystemResult], bench: BenchmarkContext, command: Sequence[str]
) -> None:
    """Write the run directory of each system."""
    for outcome in outcomes:
        path = folder.path / RUNS / folder_name(outcome.name)
        save_run(path, outcome.result, manifest=_manifest(outcome, bench, command), details=outcome.details)


def _manifest(outcome: TermSystemResult, bench: BenchmarkContext, command: Sequence[str]) -> Manifest:
    """The manifest of one system; the run is partial if cases failed."""
    resolved_cases, settings, card = bench.resolved_cases, bench.settings, outcome.card
    manifest = Manifest.start(outcome.name, command=redact_secrets(command), seed=settings.config.seed)
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
        datasets={
            "cases": resolved_cases.fingerprint,
            resolved_cases.ontology.title: resolved_cases.ontology.fingerprint,
        },
        cost={"dims": card.dims, "bytes_per_vector": card.bytes_per_vector, "seconds": outcome.seconds},
    )


def write_benchmark(folder: Path, benchmark: PhenotypeBenchmark, *, runs: bool = True) -> list[Path]:
    """Write all files of a benchmark; ``runs``: also the run directories."""
    from equipoise.domains.phenotypes.charts import benchmark_charts
    from equipoise.domains.phenotypes.report import benchmark_view
    from equipoise.report.charts.chart import write_charts

    target = ExperimentFolder(folder)
    target.check_writable()
    if runs:
        write_system_runs(target, benchmark.outcomes, benchmark.bench, benchmark.command)
    view = benchmark_view(benchmark.edition).with_charts(benchmark_charts(benchmark))
    view.write(folder)
    drawn = write_charts(view.charts, folder / VISUALIZATIONS, required=False)
    return [target.write_results(benchmark.to_dict()), *drawn]
