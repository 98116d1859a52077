"""``eq demo``: models that work here, compared on data that comes with the program."""

from __future__ import annotations

from dataclasses import replace

import click

from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import LineUp
from equipoise.cli import exits, options
from equipoise.cli.compare import Settings, show
from equipoise.cli.output import Output, Step, pass_output
from equipoise.cli.scoring import Statistics, catalogue_with, refuse_unwritable, write_runs
from equipoise.data.dataset import Dataset
from equipoise.evidence.base import Evidence
from equipoise.run.evaluate import evaluate
from equipoise.run.manifest import Manifest
from equipoise.stats.result import Result

HELP = """
\b
  eq demo
  eq demo -o results/ --json

Let the models that work here answer sample questions about bread, beside systems that only look at
words, and compare them: nothing to download, nothing to prepare. With -o, each also leaves a run
directory.
"""

PRIMARY = "nDCG@10"
WORDS = ("bm25", "tfidf", "hash")
MODELS = ("minilm", "use", "wordllama")


@click.command(help=HELP, short_help="Compare models on sample data.")
@click.option("-o", "--output", metavar="FOLDER", help="Write a run directory for each system here.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness."
)
@options.output_options
@pass_output
def demo(out: Output, output: str | None, seed: int) -> int:
    """See ``HELP``."""
    from equipoise.data.sample import bread
    from equipoise.embed.inventory import inventory

    if output is not None:
        refuse_unwritable(output)
    data = bread()
    models = [each.spec for each in inventory() if each.spec in MODELS and each.works]
    systems = (*models, *WORDS)
    out.note(
        f"{len(systems)} systems search {len(data.items)} passages about bread for the answers to "
        f"{len(data.units)} questions.\n"
    )
    settings = Settings(primary=PRIMARY, statistics=Statistics(seed=seed))
    with out.progress(len(systems) + 1) as step:
        gathered: dict[str, Evidence | Result] = dict(_rankings(data, systems, step))
        step("comparing")
        comparison = settings.compare(gathered, catalogue_with(()))
    show(out, replace(comparison, findings=comparison.findings + examine(LineUp(systems))))
    if output is not None:
        _keep(out, data, gathered, output, seed)
    missing = sorted(set(MODELS) - set(models))
    if missing:
        out.note(f"To let {', '.join(missing)} join in, see eq ls models.")
    return exits.DONE


def _rankings(data: Dataset, systems: tuple[str, ...], step: Step) -> dict[str, Evidence]:
    """Where each system ranks the right passages."""
    from equipoise.embed.retriever import retriever
    from equipoise.tasks.retrieve import retrieve

    ranked: dict[str, Evidence] = {}
    for system in systems:
        step(f"asking {system}")
        ranked[system] = retrieve(retriever(system), data)
    return ranked


def _keep(out: Output, data: Dataset, gathered: dict[str, Evidence | Result], folder: str, seed: int) -> None:
    """A run directory for each system."""
    runs = []
    for system, evidence in gathered.items():
        manifest = replace(
            Manifest.start(system, command=out.command, seed=seed), datasets={data.name: data.fingerprint}
        )
        if isinstance(evidence, Evidence):
            result = evaluate(evidence, PRIMARY, system=system, seed=seed)
            runs.append((result, manifest.finish()))
    with out.progress(len(runs)) as step:
        for path in write_runs(runs, folder, step):
            out.note(f"wrote {path}")
