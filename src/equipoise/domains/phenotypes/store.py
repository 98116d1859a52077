"""The result folder of a benchmark.

results.json        all metrics of all systems, and the comparison
runs/SYSTEM/        a run directory, as eq compare, eq report and eq view read them
visualizations/     the charts as PNG and SVG, if they can be rendered
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.domains.phenotypes.scoring import failure_message
from equipoise.errors import MissingExtraError, StoreError
from equipoise.io.atomic import write_bytes
from equipoise.runs.experiment import check_writable
from equipoise.runs.manifest import Manifest, Status, redact_secrets
from equipoise.runs.store import save_run
from equipoise.runs.unit_table import json_text

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import BenchmarkContext, PhenotypeBenchmark, TermSystemResult

RUNS, RESULTS, VISUALIZATIONS = "runs", "results.json", "visualizations"
_PLAIN_SYSTEM_NAME = re.compile(r"[\w.+,=@:-]+ \(\w+\)( > [\w.+,=@:-]+)?")
"""A model, a representation that is one word, and an optional reranker: unique without the brackets."""
_MAX_NAME_LENGTH = 100


def run_folder_name(system: str) -> str:
    """The folder name of a system.

    A name that must be shortened gets a digest, so that two systems never share a folder.

    >>> run_folder_name("sum:use+tfidf: (label_synonyms_max)"), run_folder_name("use (label - 0.1*definition)")
    ('sum-use+tfidf-label_synonyms_max', 'use-label-0.1-definition-49d18f')
    """
    words = re.sub(r"[^\w.+,=@]+", "-", system).strip("-.")
    if _PLAIN_SYSTEM_NAME.fullmatch(system) and len(words) <= _MAX_NAME_LENGTH:
        return words
    return f"{words[:_MAX_NAME_LENGTH].rstrip('-.')}-{sha256(system.encode()).hexdigest()[:6]}"


def run_paths(folder: Path, found: PhenotypeBenchmark) -> list[Path]:
    """The run directories of a benchmark."""
    return [folder / RUNS / run_folder_name(each.name) for each in found.outcomes]


def unrelated_runs(folder: Path, found: PhenotypeBenchmark) -> list[Path]:
    """Runs of earlier benchmarks in the same folder, which may be of other cases."""
    runs = folder / RUNS
    there = sorted(path for path in runs.iterdir() if not path.name.startswith(".")) if runs.is_dir() else []
    return [path for path in there if path not in run_paths(folder, found)]


def write_system_run(
    folder: Path, outcome: TermSystemResult, bench: BenchmarkContext, command: Sequence[str] = ()
) -> Path:
    """The run directory of one system; a partial run where cases failed."""
    resolved_cases, settings, card = bench.resolved_cases, bench.settings, outcome.card
    begun = Manifest.start(outcome.name, command=redact_secrets(command), seed=settings.config.seed)
    partial = failure_message(outcome.retrieved)
    manifest = replace(
        begun.finish(Status.PARTIAL if partial else Status.COMPLETE, reason=partial),
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
    return save_run(
        folder / RUNS / run_folder_name(outcome.name), outcome.result, manifest=manifest, details=outcome.details
    )


def write_benchmark(folder: Path, found: PhenotypeBenchmark, *, runs: bool = True) -> list[Path]:
    """Write all files of a benchmark; ``runs``: also the run directories."""
    check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if runs:
        for outcome in found.outcomes:
            write_system_run(folder, outcome, found.bench, found.command)
    file = folder / RESULTS
    write_bytes(file, f"{json_text(found.to_dict(), indent=2)}\n".encode())
    return [file, *write_charts(folder / VISUALIZATIONS, found)]


def write_charts(folder: Path, found: PhenotypeBenchmark) -> list[Path]:
    """Write every chart as PNG and SVG; none without the rendering extra."""
    from equipoise.domains.phenotypes.charts import benchmark_charts
    from equipoise.report.charts.render import render_png, render_svg

    written: list[Path] = []
    try:
        for each in benchmark_charts(found):
            for suffix, content in (("svg", render_svg(each).encode()), ("png", render_png(each))):
                file = folder / f"{each.name}.{suffix}"
                file.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(file, content)
                written.append(file)
    except MissingExtraError:
        return []
    except OSError as error:
        raise StoreError(
            f"the charts cannot be written to {folder}: {error.strerror}", hint="choose another folder"
        ) from error
    return written
