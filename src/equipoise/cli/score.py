"""``eq score``: score systems on every metric, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.inputs import EvidenceOptions, SystemInput, needs_labels, parse_systems, read_clusters
from equipoise.cli.output import Output, Step, next_command, pass_output, suggestion
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.io.arrays import split_member
from equipoise.io.dataset import file_sha256
from equipoise.io.run_files import read_run
from equipoise.metrics.parser import catalogue_with
from equipoise.report.answer import collapsed
from equipoise.report.tables import score_part
from equipoise.report.terminal import findings_section, grouped_findings
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment_folder import check_no_experiment, check_writable
from equipoise.runs.manifest import Manifest, read_manifest
from equipoise.runs.run_folder import StoredRun, load_run, save_run
from equipoise.stats.verdict import EVIDENCE_NOUNS, UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.metrics.parser import MetricCatalogue
    from equipoise.stats.result import Result
    from equipoise.types import Finding

preset_names = options.names_in("equipoise.reproduce.presets", "PRESETS")


@dataclass(frozen=True)
class Scorer:
    """The settings of scoring: how systems are read, metrics, statistics and clusters."""

    reading: EvidenceOptions
    config: StatsConfig
    metrics: tuple[str, ...]
    catalogue: MetricCatalogue
    like: str | None = None
    cluster_table: str | None = None
    cluster_pattern: str | None = None

    def score(self, system: SystemInput) -> Result:
        """The result of one system."""
        if self.like is not None:
            return self._score_like(system, self.like)
        if self.reading.qrels is None and system.is_unit_table:
            return system.unit_result(self.metrics, self.config)
        evidence = self.reading.evidence(system, labels=needs_labels(self.metrics, self.catalogue))
        return evaluate(
            evidence,
            self.metrics or None,
            system=system.name,
            catalogue=self.catalogue,
            config=self._config(evidence.unit_ids.tolist()),
            unit_noun=self.reading.unit_noun([system]),
        )

    def _score_like(self, system: SystemInput, like: str) -> Result:
        """The result by the conventions of another library."""
        from equipoise.reproduce.score import DEFAULT_METRICS, score_like

        if system.is_logits:
            raise ParameterError(
                f"--like scores runs, and {system.path} has logits",
                hint="write the ranked lists to a run file first",
            )
        if self.config.ties != DEFAULT_STATS.ties:
            raise ParameterError(
                f"--like {like} and --ties {self.config.ties} both decide the order of tied scores",
                hint="omit one of them",
            )
        judgements = self.reading.judgements
        result = score_like(
            read_run(system.path, tag=self.reading.run_tag),
            judgements,
            self.metrics or DEFAULT_METRICS,
            like=like,
            system=system.name,
            corpus_size=self.reading.corpus_size,
            catalogue=self.catalogue,
            config=self._config(list(judgements)),
        )
        return replace(result, settings={**result.settings, UNIT_NOUN: EVIDENCE_NOUNS["ranking"]})

    def _config(self, unit_ids: Sequence[object]) -> StatsConfig:
        """The config with the clusters of these units."""
        clusters = read_clusters(unit_ids, table=self.cluster_table, pattern=self.cluster_pattern)
        return replace(self.config, clusters=clusters)

    def run(self, system: SystemInput, command: Sequence[str]) -> tuple[Result, Manifest]:
        """The result and the manifest of a complete run."""
        manifest = replace(
            Manifest.start(system.name, command=command, seed=self.config.seed),
            datasets=_fingerprints(self.reading.truth),
            inputs=_fingerprints([system.path]),
        )
        return self.score(system), manifest.finish()


def _fingerprints(paths: Sequence[str]) -> dict[str, str | None]:
    """The fingerprint of each file; None for a pipe, which can be read only once."""
    files = {path: split_member(path)[0] for path in paths}
    return {path: file_sha256(file) if file.is_file() else None for path, file in files.items()}


def write_runs(runs: Sequence[tuple[Result, Manifest]], folder: str, step: Step) -> list[str]:
    """Write one run directory per system into the folder."""
    written = []
    for result, manifest in runs:
        step(f"writing {result.system}")
        written.append(str(save_run(Path(folder) / result.system, result, manifest=manifest)))
    return written


def check_same_data(runs: Sequence[tuple[Result, Manifest]], folder: str) -> None:
    """Raise ``StoreError`` if a run in the folder would be replaced by one with other ground truth."""
    for result, manifest in runs:
        try:
            replaced = read_manifest(Path(folder) / result.system)
        except (EquipoiseError, OSError):
            continue
        if set(replaced.datasets.values()) != set(manifest.datasets.values()):
            raise StoreError(
                f"{folder} has a run of {result.system} with other ground truth: {', '.join(replaced.datasets)}",
                hint="choose another folder with -o, or remove this one",
            )


def dropped_metrics(runs: Sequence[tuple[Result, Manifest]], folder: str) -> list[str]:
    """Notes about runs in the folder that are replaced by runs without some of their metrics."""
    notes = []
    for result, _ in runs:
        try:
            replaced = load_run(Path(folder) / result.system, evidence=False).result
        except (EquipoiseError, OSError):
            continue
        dropped = [name for name in replaced.names if name not in result.names]
        if dropped:
            notes.append(
                f"caution: the run of {result.system} in {folder} is replaced and no longer has {', '.join(dropped)}; "
                "score all systems of a folder with the same metrics"
            )
    return notes


HELP = """
\b
  eq score a.trec b.trec --qrels truth.qrels -m nDCG@10 -m MRR
  eq score big.safetensors --device cuda -m "Acc@{1,5,10}" -o results/

Score systems against ground truth. Every score is shown with a confidence interval, the number
of queries, the number of undefined values, and the chance level. SYSTEMS are run files or matrices
of logits; NAME=path names a system. Runs are TREC, JSON, JSONL, CSV, TSV or parquet, plain or
gzipped; "-" is standard input. Logits are .npy, .npz, .safetensors or .pt, with the correct column of
each row in --targets or in the array "targets" of the same file; with --device they are ranked
on that device. With -o a run directory per system is written; eq compare reads these and by default uses the
statistics options they were written with. With --like the scores are those that another
library would print; eq why explains the differences.
"""


@options.command(help=HELP, short_help="Score runs or logits.")
@click.argument("systems", nargs=-1, metavar="SYSTEMS...")
@options.reading_options
@options.metric_option
@click.option(
    "--like",
    type=options.ChoiceWithHint("library", preset_names),
    help="Score with the conventions of this library; see eq why.",
)
@options.ties_option
@options.cluster_options
@options.stats_options()
@options.plugin_option
@options.fail_option
@options.log_option
@click.option("-o", "--output", metavar="FOLDER", help="Write a run directory per system here.")
@options.table_options(file=False)
@options.output_options
@pass_output
def score(
    out: Output,
    systems: tuple[str, ...],
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
    inputs = parse_systems(systems)
    if not inputs:
        raise ParameterError("there is nothing to score", hint="eq score a.trec b.trec --qrels truth.qrels")
    if output is not None:
        check_writable(output)
        check_no_experiment(output)
    scorer = Scorer(reading, config, metrics, catalogue_with(plugins), like, cluster, cluster_by)
    with out.progress(len(inputs) * (1 if output is None else 2)) as step:
        runs = []
        for system in inputs:
            step(f"scoring {system.name}")
            runs.append(scorer.run(system, out.command))
        if output is not None:
            check_same_data(runs, output)
        dropped = [] if output is None else dropped_metrics(runs, output)
        written = [] if output is None else write_runs(runs, output, step)
    for note in dropped:
        out.note(note)
    results = [result for result, _ in runs]
    for result in results:
        out.log(partial(result.to_dict, flat=True), result.system, data=reading.qrels or "")
    if out.to == "csv":
        out.file(_csv(runs))
    else:
        _show(out, results, written, inputs, reading)
    findings = [finding for result in results for finding in result.findings]
    return exits.gate(out, findings, fail_on)


def _csv(runs: Sequence[tuple[Result, Manifest]]) -> str:
    """One row per system and metric, as ``eq export --to csv`` writes it."""
    from equipoise.report.export import export

    tables = [export([StoredRun(result, manifest, Path())], None, "csv") for result, manifest in runs]
    return tables[0] + "".join(table.partition("\n")[2] for table in tables[1:])


def _collapsed(findings: Sequence[Finding]) -> list[Finding]:
    """One finding per code and hint; similar findings about several systems are named or counted."""
    return [
        group[0] if len(group) == 1 else replace(group[0], subject="", message=collapsed(group))
        for group in grouped_findings(findings)
    ]


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
            from equipoise.reproduce.report import emulation_notes

            out.show(*emulation_notes(results, quiet=out.quiet))
        if not out.quiet:
            out.show(*findings_section(findings if out.verbose else _collapsed(findings), verbose=out.verbose))
    for path in written:
        out.note(f"wrote {path}")
    if not out.quiet and not out.json:
        primary = results[0].names[0]
        like = results[0].settings.get("like")
        if like is None:
            paths = written or [system.path for system in systems]
            out.text(next_command(paths, [] if written else reading.options(), primary))
        else:
            words = ["eq", "why", systems[0].path, "--qrels", str(reading.qrels), "--like", str(like), "-m", primary]
            out.text(suggestion(words))
