"""``eq phenotypes benchmark compare``: runs that were stored, compared on the same cases."""

from __future__ import annotations

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output

HELP = """
\b
  eq phenotypes benchmark compare results/runs/use-single results/runs/tfidf-single
  eq phenotypes benchmark compare results/ others/ --primary "HR@1"

Compare runs that a benchmark left behind; a folder stands for all runs in it. The runs must be of the same
cases. Any run directory of eq can be compared with eq compare too; this one knows which metrics to show.
"""

HINT = "eq phenotypes benchmark run --output-dir results/ leaves runs behind"
METRICS = ("MRR", "HR@{1,3,5,10}", "nDCG@10", "R@10", "MAP@10", "MaxOntSim@{1,10}")


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
    from equipoise.cli.compare import gather, show
    from equipoise.cli.sources import Reading, sources
    from equipoise.errors import ParameterError, StoreError
    from equipoise.run.evaluate import compare as compare_systems
    from equipoise.run.find import find_runs

    try:
        paths = [str(path) for path in find_runs(*runs)] if runs else []
    except StoreError as error:
        raise StoreError(error.sentence, hint=HINT) from error
    if len(paths) < 2:
        raise ParameterError(
            f"a comparison needs at least two runs, and {len(paths) or 'none'} was found", hint=HINT
        )
    with out.progress(len(paths) + 1) as step:
        systems, cautions = gather(sources(paths), Reading(), step)
        step("comparing")
        found = compare_systems(
            systems,
            metrics or METRICS,
            primary=primary or "MRR",
            test=test,
            correction=correction,
            flips=flips,
            seed=seed,
        )
    show(out, found, cautions)
    return exits.FAILED_UNITS if cautions else exits.gate(out, found.findings, fail_on)
