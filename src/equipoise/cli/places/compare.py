"""``eq places compare``: models trained with several seeds, compared over seeds and over users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.places.columns import read_codes, read_column
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.recipes.places.replicates import SeedComparison

HELP = """
\b
  eq places compare modelA/seed*/ modelB/seed*/
  eq places compare lstm=runs/17/ lstm=runs/18/ markov=runs/19/ markov=runs/20/ --primary MRR

Compare models that were trained with several seeds each. A seed is a run directory, the folder that
eq places score -o wrote, or a folder with logits.npy and targets.npy (and user.npy). The folder around the
seeds names the model, or NAME=folder does; seeds of the same name are paired, others by their order.

Each figure is a mean over seeds with its standard deviation. Two kinds of tests answer two questions: would
other seeds show the same order on these users, and would other users show it with these models?
"""


@click.command(help=HELP, short_help="Compare models over seeds and users.")
@click.argument("folders", nargs=-1, metavar="FOLDER...")
@options.metric_option
@click.option("--primary", type=options.MetricName(), help="The metric that the verdict is on.")
@click.option("--answerable", is_flag=True, help="Only units whose target was seen in training.")
@click.option("--user", metavar="COLUMN", help="The user of each unit: user.npy or units.csv:user.")
@click.option(
    "--padding", type=int, multiple=True, metavar="CLASS", help="A column of logits that is no class."
)
@click.option("--unseen", type=int, multiple=True, metavar="CLASS", help="A class that training never saw.")
@click.option("--train-counts", metavar="FILE", help="How often each class occurs in training.")
@click.option(
    "--correction",
    type=options.OneOf("correction", options.corrections),
    default="holm",
    show_default=True,
    help="For having compared more than one pair.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@options.flips_option
@click.option(
    "--resamples", type=click.IntRange(min=1), default=2000, show_default=True, help="Bootstrap resamples."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness here."
)
@options.output_options
@pass_output
def compare(
    out: Output,
    folders: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    answerable: bool,
    user: str | None,
    padding: tuple[int, ...],
    unseen: tuple[int, ...],
    train_counts: str | None,
    correction: str,
    level: float,
    flips: int,
    resamples: int,
    seed: int,
) -> int:
    """See ``HELP``."""
    from equipoise.recipes.places.folders import Reading, seed_folders
    from equipoise.recipes.places.replicates import Settings, compare_replicates

    models = seed_folders(folders)
    if len(models) < 2:
        named = f"only {next(iter(models))} was named" if models else "none was named"
        raise ParameterError(
            f"a comparison needs the seeds of at least two models, and {named}",
            hint="eq places compare modelA/seed*/ modelB/seed*/",
        )
    reading = Reading(
        padding=padding,
        unseen=unseen,
        train_counts=None if train_counts is None else read_codes(train_counts, "--train-counts"),
        users=None if user is None else read_column(user, "--user"),
        answerable=answerable,
    )
    found = compare_replicates(
        reading.read(models),
        metrics=metrics,
        primary=primary,
        settings=Settings(correction, level, flips, resamples, seed),
    )
    _show(out, found, reading.cautions)
    return exits.FAILED_UNITS if reading.cautions else exits.DONE


def _show(out: Output, found: SeedComparison, cautions: list[str]) -> None:
    from equipoise.report.replicates import replicates_report

    for caution in cautions:
        out.note(f"caution: {caution}")
    if out.json:
        out.data(found.to_dict() | {"cautions": cautions})
    else:
        out.show(*replicates_report(found.edition, quiet=out.quiet))
