"""The folder of a benchmark.

results.json        every figure of every system, and the claims
runs/SYSTEM/        a run directory, as eq compare, eq report and eq view read them
visualizations/     the charts as PNG and SVG, where they can be drawn
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
_PLAIN = re.compile(r"[\w.+,=@:-]+ \(\w+\)( > [\w.+,=@:-]+)?")
"""A model, a mode that is one word, and perhaps a judge: such names stay apart without their brackets."""
_LONGEST = 100


def folder_of(system: str) -> str:
    """A name for the folder of a system.

    A name that a folder cannot have in full is marked, so that two systems never share one.

    >>> folder_of("sum:use+tfidf: (label_synonyms_max)"), folder_of("use (label - 0.1*definition)")
    ('sum-use+tfidf-label_synonyms_max', 'use-label-0.1-definition-49d18f')
    """
    words = re.sub(r"[^\w.+,=@]+", "-", system).strip("-.")
    if _PLAIN.fullmatch(system) and len(words) <= _LONGEST:
        return words
    return f"{words[:_LONGEST].rstrip('-.')}-{sha256(system.encode()).hexdigest()[:6]}"


def run_paths(folder: Path, found: PhenotypeBenchmark) -> list[Path]:
    """Where the runs of a benchmark stand."""
    return [folder / RUNS / folder_of(each.name) for each in found.outcomes]


def other_runs(folder: Path, found: PhenotypeBenchmark) -> list[Path]:
    """Runs of earlier benchmarks in the same folder, which may be of other cases."""
    runs = folder / RUNS
    there = sorted(path for path in runs.iterdir() if not path.name.startswith(".")) if runs.is_dir() else []
    return [path for path in there if path not in run_paths(folder, found)]


def write_run_of(folder: Path, outcome: TermSystemResult, bench: BenchmarkContext, command: Sequence[str] = ()) -> Path:
    """The run directory of one system; a partial run where cases failed."""
    truth, settings, card = bench.truth, bench.settings, outcome.card
    begun = Manifest.start(outcome.name, command=redact_secrets(command), seed=settings.seed)
    partial = failure_message(outcome.seen)
    manifest = replace(
        begun.finish(Status.PARTIAL if partial else Status.COMPLETE, reason=partial),
        parameters={
            "model": outcome.model,
            "model_name": card.name,
            "mode": outcome.mode.name,
            "reranker": outcome.judge or None,
            "ontology": truth.ontology.title,
            "similarity": settings.measure,
            "citation": truth.ontology.citation,
        },
        datasets={"cases": truth.fingerprint, truth.ontology.title: truth.ontology.fingerprint},
        cost={"dims": card.dims, "bytes_per_vector": card.bytes_per_vector, "seconds": outcome.seconds},
    )
    return save_run(folder / RUNS / folder_of(outcome.name), outcome.result, manifest=manifest, details=outcome.details)


def write_benchmark(folder: Path, found: PhenotypeBenchmark, *, runs: bool = True) -> list[Path]:
    """Everything of a benchmark; ``runs`` says whether the run directories are still to be written."""
    check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if runs:
        for outcome in found.outcomes:
            write_run_of(folder, outcome, found.bench, found.command)
    file = folder / RESULTS
    write_bytes(file, f"{json_text(found.to_dict(), indent=2)}\n".encode())
    return [file, *write_pictures(folder / VISUALIZATIONS, found)]


def write_pictures(folder: Path, found: PhenotypeBenchmark) -> list[Path]:
    """Every chart as PNG and SVG; none where nothing is installed to draw them."""
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
        raise StoreError(f"{folder} cannot hold the charts: {error.strerror}", hint="choose another folder") from error
    return written
