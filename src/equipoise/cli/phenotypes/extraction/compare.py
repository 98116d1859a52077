"""``eq phenotypes extraction compare``: runs that were stored, paired over documents."""

from __future__ import annotations

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output

HELP = """
\b
  eq phenotypes extraction compare results/default/extraction_results.json \\
     results/top_term/extraction_results.json
  eq phenotypes extraction compare results/default results/top_term --primary "F1(average=macro,mode=id)"

Compare runs of extraction on the same documents: differences with intervals and tests, paired document by
document. Runs of other documents, or that lead with another mode or average, are refused.
"""


@click.command(help=HELP, short_help="Compare runs that were stored.")
@click.argument("runs", nargs=-1)
@options.metric_option
@options.comparing_options
@options.flips_option
@options.seed_option
@options.fail_option
@options.output_options
@pass_output
def compare(
    out: Output,
    runs: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    test: str,
    correction: str,
    flips: int,
    seed: int,
    fail_on: str | None,
) -> int:
    """See ``HELP``."""
    from equipoise.cli.compare import show
    from equipoise.recipes.phenotypes.extraction.compare import compare_runs, read_extractions

    with out.progress(2) as step:
        step("reading")
        stored = read_extractions(runs)
        step("comparing")
        found = compare_runs(
            stored,
            metrics or None,
            primary=primary,
            test=test,
            correction=correction,
            flips=flips,
            seed=seed,
        )
    cautions = [run.caution for run in stored.values() if run.caution]
    show(out, found, cautions)
    return exits.FAILED_UNITS if cautions else exits.gate(out, found.findings, fail_on)
