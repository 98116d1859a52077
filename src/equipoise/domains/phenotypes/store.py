"""The files of a benchmark: a run directory per system, results.json and the charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.domains.phenotypes.scoring import failure_message
from equipoise.runs.experiment_folder import RUNS, VISUALIZATIONS, ExperimentFolder, folder_name
from equipoise.runs.manifest import Manifest, Status, redact_secrets
from equipoise.runs.store import save_run

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import BenchmarkContext, PhenotypeBenchmark, TermSystemResult


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
