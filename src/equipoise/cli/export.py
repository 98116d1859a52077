"""``eq export``: results in the forms that papers, pages and other programs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import catalogue_with
from equipoise.data.atomic import write_text
from equipoise.errors import ParameterError
from equipoise.metrics.catalogue import Catalogue
from equipoise.run.evaluate import compare
from equipoise.run.find import find_runs
from equipoise.run.measured import with_metrics
from equipoise.run.store import StoredRun, read_run
from equipoise.stats.comparison import Comparison

HELP = """
\b
  eq export results/ --to latex -o table.tex
  eq export results/bm25 results/minilm --to md --primary nDCG@10
  eq export results/bm25 --to csv --units

Export one run, or several and their comparison. RUNS are run directories as eq score -o
writes them, or folders that hold some below them.

\b
  latex   a booktabs table with bands, intervals and a caption that stands alone
  md      a table for a page on GitHub
  csv     one row a system and metric; with --units one row a unit
  json    everything, as eq compare --json writes it
  trec    the lists of one run that keeps them, as a TREC run file
  card    the metadata of a Hugging Face model card, as YAML
  bibtex  the sources of metrics, intervals and test
"""

FORMATS = options.names_in("equipoise.report.export", "FORMATS")
ALONE = ("trec",)
"""Formats that show each run by itself, so that nothing needs to be compared."""


@dataclass(frozen=True)
class Settings:
    """What is to be exported of the runs, and how they are compared."""

    metrics: tuple[str, ...]
    primary: str | None
    test: str
    correction: str
    catalogue: Catalogue

    def read(self, path: Path) -> StoredRun:
        """The run with the metrics that were asked for, or with all it has."""
        run = read_run(path)
        asked = [*(self.metrics or run.result.names), *([self.primary] if self.primary else [])]
        return replace(run, result=with_metrics(run.result, asked, catalogue=self.catalogue))

    def compare(self, runs: Sequence[StoredRun]) -> Comparison | None:
        """How the runs compare; nothing for a single one."""
        if len(runs) < 2:
            return None
        return compare(
            [run.result for run in runs],
            self.metrics or None,
            primary=self.primary,
            test=self.test,
            correction=self.correction,
            catalogue=self.catalogue,
        )


@click.command(help=HELP, short_help="Export results for papers and other programs.")
@click.argument("runs", nargs=-1)
@click.option("--to", type=options.OneOf("format", FORMATS), required=True, help="The form to write.")
@click.option("-o", "--output", metavar="FILE", help="Write this file; without it, to standard output.")
@click.option("--units", is_flag=True, help="With --to csv: one row a unit.")
@click.option(
    "--formulas/--no-formulas",
    default=False,
    help="With --to csv: leave cells that start with = + - @ as they are; else an apostrophe precedes them.",
)
@options.comparing_options
@options.metric_option
@options.plugin_option
@options.output_options
@pass_output
def export(
    out: Output,
    runs: tuple[str, ...],
    to: str,
    output: str | None,
    units: bool,
    formulas: bool,
    primary: str | None,
    metrics: tuple[str, ...],
    test: str,
    correction: str,
    plugins: tuple[str, ...],
) -> int:
    """See ``HELP``."""
    if not runs:
        raise ParameterError(
            "there is nothing to export", hint="name run directories, or a folder that holds some"
        )
    settings = Settings(metrics, primary, test, correction, catalogue_with(plugins))
    paths = find_runs(*runs)
    with out.progress(len(paths) + 1) as step:
        stored = []
        for path in paths:
            step(f"reading {path.name}")
            stored.append(settings.read(path))
        step("comparing")
        comparison = None if units or to in ALONE else settings.compare(stored)
    _write(out, _exported(stored, comparison, to, units=units, formulas=formulas), output)
    cautions = [run.caution for run in stored if run.caution]
    for caution in cautions:
        out.note(f"caution: {caution}")
    return exits.FAILED_UNITS if cautions else exits.DONE


def _exported(
    runs: Sequence[StoredRun], comparison: Comparison | None, to: str, *, units: bool, formulas: bool
) -> str:
    from equipoise.report.export import export as written

    return written(runs, comparison, to, units=units, formulas=formulas)


def _write(out: Output, text: str, path: str | None) -> None:
    if path is None:
        out.file(text)
    else:
        write_text(path, text)
        out.note(f"wrote {path}")
