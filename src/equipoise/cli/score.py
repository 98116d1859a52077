"""``eq score``: every figure of one or more systems, with how sure it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import (
    Scorer,
    Statistics,
    catalogue_with,
    presets,
    refuse_unwritable,
    write_runs,
)
from equipoise.cli.sources import Reading, Source, sources
from equipoise.cli.suggest import next_command
from equipoise.errors import ParameterError
from equipoise.report.findings import findings_part
from equipoise.report.score import score_part
from equipoise.report.why import like_part
from equipoise.stats.result import Result

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
@click.option(
    "--logits", metavar="FILE", multiple=True, help="A matrix of scores (.npy, .npz, .safetensors)."
)
@options.reading_options
@options.metric_option
@click.option(
    "--like", type=options.OneOf("preset", presets), help="Score as this library would; see eq why."
)
@options.statistics_options
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
    reading: Reading,
    statistics: Statistics,
) -> int:
    """See ``HELP``."""
    systems = _systems(runs, logits)
    if output is not None:
        refuse_unwritable(output)
    scorer = Scorer(reading, statistics, metrics, catalogue_with(plugins), like)
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


def _systems(runs: Sequence[str], logits: Sequence[str]) -> list[Source]:
    if not runs and not logits:
        raise ParameterError(
            "there is nothing to score", hint="name run files with --run, or matrices with --logits"
        )
    systems = sources([*runs, *logits])
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
    systems: Sequence[Source],
    reading: Reading,
) -> None:
    if out.json:
        out.data({"results": [result.to_dict() for result in results], "written": written})
    else:
        out.show(*score_part(results, quiet=out.quiet))
        findings = [finding for result in results for finding in result.findings]
        if "like" in results[0].settings:
            out.show(*like_part(results, quiet=out.quiet))
        if not out.quiet:
            out.show(*findings_part(findings, verbose=out.verbose))
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


def _why(system: Source, reading: Reading, like: str, primary: str) -> str:
    """After scoring as another library: see what it does differently."""
    words = ["eq", "why", system.path, "--qrels", str(reading.qrels), "--like", like, "-m", primary]
    return f"\nNext: {shlex.join(words)}"
