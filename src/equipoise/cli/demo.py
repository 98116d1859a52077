"""``eq demo``: a comparison on data that comes with the program."""

from __future__ import annotations

import shlex
from importlib.resources import as_file, files
from pathlib import Path

import click

from equipoise.cli import exits, options
from equipoise.cli.compare import Settings, gather, show
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import Scorer, Statistics, catalogue_with, refuse_unwritable, write_runs
from equipoise.cli.sources import Reading, sources
from equipoise.data.tables import read_rows

HELP = """
\b
  eq demo
  eq demo -o results/ --json

Compare the runs of a few small search systems on sample questions: nothing to download,
nothing to prepare. With -o, each system also leaves a run directory.
"""

PRIMARY = "nDCG@10"


@click.command(help=HELP, short_help="Compare systems on sample data.")
@click.option("-o", "--output", metavar="FOLDER", help="Write a run directory for each system here.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness."
)
@options.output_options
@pass_output
def demo(out: Output, output: str | None, seed: int) -> int:
    """See ``HELP``."""
    if output is not None:
        refuse_unwritable(output)
    with as_file(files("equipoise.data") / "samples") as folder:
        _demonstrate(out, folder, output, Statistics(seed=seed))
    return exits.DONE


def _demonstrate(out: Output, folder: Path, output: str | None, statistics: Statistics) -> None:
    truth, runs = folder / "truth.qrels", sorted(folder.glob("*.trec"))
    corpus = len(read_rows(folder / "passages.jsonl"))
    reading = Reading(qrels=str(truth), corpus_size=corpus)
    systems = sources([str(run) for run in runs])
    out.note(
        f"{len(runs)} systems answered questions about {corpus} passages; which one is best?\n"
        f"The files are in {folder}. The same on data of your own:\n\n"
        f"  eq compare {' '.join(shlex.quote(run.name) for run in runs[:2])} ... --qrels {truth.name} "
        f"--primary {PRIMARY} --corpus-size {corpus}\n"
    )
    settings = Settings(primary=PRIMARY, statistics=statistics)
    with out.progress(len(systems) + 1) as step:
        gathered, _ = gather(systems, reading, step)
        step("comparing")
        comparison = settings.compare(gathered, catalogue_with(()))
    show(out, comparison)
    if output is not None:
        scorer = Scorer(reading, statistics, (PRIMARY,), catalogue_with(()))
        with out.progress(len(systems)) as step:
            runs_made = [scorer.run(system, out.command) for system in systems]
            for path in write_runs(runs_made, output, step):
                out.note(f"wrote {path}")
