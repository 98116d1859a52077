"""From the systems named on the command line to their results, and to run directories."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.inputs import ClusterOptions, EvidenceOptions, SystemInput, needs_labels, parse_systems
from equipoise.cli.output import Output, Step, next_command, pass_output
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError
from equipoise.io.arrays import split_member
from equipoise.io.dataset import file_sha256
from equipoise.io.run_files import read_run
from equipoise.metrics.catalogue import MetricCatalogue, builtin
from equipoise.report.findings import findings_section
from equipoise.report.tables import score_part
from equipoise.reproduce.report import emulation_notes
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment import check_writable
from equipoise.runs.manifest import Manifest
from equipoise.runs.store import save_run

if TYPE_CHECKING:
    from equipoise.stats.result import Result


def reproduce() -> list[str]:
    """The libraries that ``--like`` knows."""
    from equipoise.reproduce.presets import PRESETS

    return list(PRESETS)


def catalogue_with(plugins: Sequence[str]) -> MetricCatalogue:
    """The built-in metrics, those of installed packages, and those of plugin files."""
    catalogue = builtin().with_entry_points()
    for path in plugins:
        catalogue = catalogue.with_plugin(path)
    return catalogue


@dataclass(frozen=True)
class Scorer:
    """Everything that scoring a source needs besides the source."""

    reading: EvidenceOptions
    config: StatsConfig
    metrics: tuple[str, ...]
    catalogue: MetricCatalogue
    like: str | None = None
    clusters: ClusterOptions = field(default_factory=ClusterOptions)

    def score(self, source: SystemInput) -> Result:
        """What one system scores."""
        if self.like is not None:
            return self._score_like(source, self.like)
        evidence = self.reading.evidence(source, labels=needs_labels(self.metrics, self.catalogue))
        return evaluate(
            evidence,
            self.metrics or None,
            system=source.name,
            catalogue=self.catalogue,
            config=self.clusters.resolve(self.config, evidence.unit_ids.tolist()),
        )

    def _score_like(self, source: SystemInput, like: str) -> Result:
        """What a library would say that it scores."""
        from equipoise.reproduce.score import DEFAULT_METRICS, score_like

        if source.is_logits:
            raise ParameterError(
                f"--like scores runs as other libraries do, and {source.path} holds logits",
                hint="write the ranked lists to a run file first",
            )
        if self.config.ties != DEFAULT_STATS.ties:
            raise ParameterError(
                f"--like {like} decides about equal scores, and so does --ties {self.config.ties}",
                hint="leave out one of them",
            )
        truth = self.reading.judgements
        return score_like(
            read_run(source.path, tag=self.reading.run_tag),
            truth,
            self.metrics or DEFAULT_METRICS,
            like=like,
            system=source.name,
            corpus_size=self.reading.corpus_size,
            catalogue=self.catalogue,
            config=self.clusters.resolve(self.config, list(truth)),
        )

    def run(self, source: SystemInput, command: Sequence[str]) -> tuple[Result, Manifest]:
        """The result and the manifest of a run that is complete, ready to be written."""
        manifest = replace(
            Manifest.start(source.name, command=command, seed=self.config.seed),
            datasets=_fingerprints(self.reading.truth),
            inputs=_fingerprints([source.path]),
        )
        return self.score(source), manifest.finish()


def _fingerprints(paths: Sequence[str]) -> dict[str, str | None]:
    """The fingerprint of each file; a pipe has none, since it can be read only once."""
    files = {path: split_member(path)[0] for path in paths}
    return {path: file_sha256(file) if file.is_file() else None for path, file in files.items()}


def write_runs(runs: Sequence[tuple[Result, Manifest]], folder: str, step: Step) -> list[str]:
    """Write every run into a directory of its own beneath the folder."""
    written = []
    for result, manifest in runs:
        step(f"writing {result.system}")
        written.append(str(save_run(Path(folder) / result.system, result, manifest=manifest)))
    return written


# ``eq score``: every figure of one or more systems, with how sure it is.

HELP = """
\b
  eq score --run a.trec --run b.trec --qrels truth.qrels -m nDCG@10 -m MRR
  eq score --logits big.safetensors --device cuda -m "Acc@{1,5,10}" -o results/

Score systems against a truth. Every figure comes with its interval, the number of units,
the undefined ones, and the chance level. Runs are TREC, JSON, JSONL, CSV, TSV or parquet,
plain or gzipped; "-" is standard input; NAME=path gives a system a name of its own.
Logits are a matrix in .npy, .npz or .safetensors, their targets the right column of each row:
the array "targets" of the same file, or --targets y.npy. With --device they are counted there.
With -o each system leaves a run directory, which eq compare reads. With --like the figures
are those that another library would print; eq why says how they differ from ours.
"""


@click.command(help=HELP, short_help="Score runs or logits.")
@click.option("--run", "runs", metavar="FILE", multiple=True, help="A run file; may be repeated.")
@click.option("--logits", metavar="FILE", multiple=True, help="A matrix of scores (.npy, .npz, .safetensors).")
@options.reading_options
@options.metric_option
@click.option(
    "--like",
    type=options.ChoiceWithHint("preset", reproduce),
    help="Score as this library would; see eq why.",
)
@options.ties_option
@options.cluster_options
@options.stats_options()
@options.plugin_option
@options.fail_option
@click.option("-o", "--output", metavar="FOLDER", help="Write a run directory for each system here.")
@options.output_options
@pass_output
def score(
    out: Output,
    runs: tuple[str, ...],
    logits: tuple[str, ...],
    metrics: tuple[str, ...],
    like: str | None,
    plugins: tuple[str, ...],
    fail_on: str | None,
    output: str | None,
    cluster: str | None,
    cluster_by: str | None,
    reading: EvidenceOptions,
    config: StatsConfig,
) -> int:
    """See ``HELP``."""
    systems = _systems(runs, logits)
    if output is not None:
        check_writable(output)
    scorer = Scorer(reading, config, metrics, catalogue_with(plugins), like, ClusterOptions(cluster, cluster_by))
    with out.progress(len(systems) * (1 if output is None else 2)) as step:
        made = []
        for system in systems:
            step(f"scoring {system.name}")
            made.append(scorer.run(system, out.command))
        written = [] if output is None else write_runs(made, output, step)
    results = [result for result, _ in made]
    _show(out, results, written, systems, reading)
    findings = [finding for result in results for finding in result.findings]
    return exits.gate(out, findings, fail_on)


def _systems(runs: Sequence[str], logits: Sequence[str]) -> list[SystemInput]:
    if not runs and not logits:
        raise ParameterError("there is nothing to score", hint="name run files with --run, or matrices with --logits")
    systems = parse_systems([*runs, *logits])
    for word, system in zip([*runs, *logits], systems, strict=True):
        if system.is_logits != (word in logits):
            wanted, other = ("--logits", "--run") if system.is_logits else ("--run", "--logits")
            raise ParameterError(
                f"{system.path} was given to {other}, and looks like a file for {wanted}",
                hint=f"write {wanted} {system.path}",
            )
    return systems


def _show(
    out: Output,
    results: Sequence[Result],
    written: Sequence[str],
    systems: Sequence[SystemInput],
    reading: EvidenceOptions,
) -> None:
    if out.json:
        out.data({"results": [result.to_dict() for result in results], "written": written})
    else:
        out.show(*score_part(results, quiet=out.quiet))
        findings = [finding for result in results for finding in result.findings]
        if "like" in results[0].settings:
            out.show(*emulation_notes(results, quiet=out.quiet))
        if not out.quiet:
            out.show(*findings_section(findings, verbose=out.verbose))
    for path in written:
        out.note(f"wrote {path}")
    if not out.quiet and not out.json:
        primary = results[0].names[0]
        places = written or [system.path for system in systems]
        truth = [] if written else reading.options()
        like = results[0].settings.get("like")
        if like is None:
            out.text(next_command(places, truth, primary))
        else:
            out.text(_why(systems[0], reading, str(like), primary))


def _why(system: SystemInput, reading: EvidenceOptions, like: str, primary: str) -> str:
    """After scoring as another library: see what it does differently."""
    words = ["eq", "why", system.path, "--qrels", str(reading.qrels), "--like", like, "-m", primary]
    return f"\nNext: {shlex.join(words)}"
