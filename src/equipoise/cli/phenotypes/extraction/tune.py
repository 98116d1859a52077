"""``eq phenotypes extraction tune``: parameters chosen by nested cross-validation over documents."""

from __future__ import annotations

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.benchmark.asked import ModelName
from equipoise.cli.phenotypes.extraction.asked import Asked, asking, ended

HELP = """
\b
  eq phenotypes extraction tune notes --model tfidf: --budget 40
  eq phenotypes extraction tune corpus/ --model use --model tfidf: --folds 5 -o results/tuned

Choose how many terms of a chunk count, and above which scores. Every model gets the same number of trials;
thresholds are quantiles of its own scores on all texts (no gold is looked at for that). What is reported of
a document was chosen without it, by the mean F1 of the documents in the other folds. Texts are embedded once
a model: trials use the stored candidates. With -o the frontier of precision and recall is drawn, and
extraction_tuning.json holds what to deploy, chunkers and mode included (eq phenotypes extraction run OTHER
--tuned FOLDER).
"""


@click.command(help=HELP, short_help="Choose parameters by nested folds.")
@click.argument("source", metavar="DIR")
@click.option(
    "--model",
    "--model-name",
    "models",
    type=ModelName(),
    multiple=True,
    metavar="MODEL",
    help="A model, such as use, tfidf: or sum:a+b; may be repeated.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Configurations tried for each model.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Parts of the documents; 1 nests nothing.",
)
@asking
@options.output_options
@pass_output
def tune(out: Output, source: str, models: tuple[str, ...], budget: int, folds: int, asked: Asked) -> int:
    """See ``HELP``."""
    from equipoise.recipes.phenotypes.extraction.tune import tune_extraction
    from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL
    from equipoise.report.extraction_tuning import tuning_report

    named = list(models) or [DEFAULT_MODEL]
    with out.progress(len(named) + 1) as step:
        found = tune_extraction(
            source,
            named,
            asked.ontology,
            budget=budget,
            folds=folds,
            dataset=asked.dataset,
            output=asked.output,
            progress=step,
            command=out.command,
            **asked.settings,
        )
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*tuning_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if asked.output is not None:
        out.note(f"wrote {asked.output.rstrip('/')}/")
    return ended(out, found.gold, found.findings, asked.fail_on)
