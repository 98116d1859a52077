"""``eq accounts demo``: the chart of accounts that comes with the program, embedded and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.cli.accounts.evaluate import keep
from equipoise.cli.output import Output, pass_output
from equipoise.cli.scoring import refuse_unwritable
from equipoise.cli.several import Several, SeveralCommand

HELP = """
\b
  eq accounts demo
  eq accounts demo --business-id larkspur --dims 2 5 10 -o demo/

Read one of the two businesses whose charts of accounts come with the program, embed it in the Lorentz model,
and judge the vectors beside a tuned euclidean embedding, a combinatorial construction and a random one: no
data to prepare. With -o the vectors, run directories and charts are left in a folder.
"""

GEOMETRY, EMBEDDERS, RATES = "lorentz", ("combinatorial",), (0.3, 1.0)


def businesses() -> list[str]:
    """The businesses of the sample."""
    from equipoise.data.sample import BUSINESSES

    return list(BUSINESSES)


@click.command(
    cls=SeveralCommand, help=HELP, short_help="Embed and judge the chart of accounts that is shipped."
)
@options.one_of("--business-id", "business", businesses, "acme", "Which of the two.")
@click.option(
    "--dims",
    cls=Several,
    commas=True,
    type=click.IntRange(min=2),
    default=(2, 5),
    show_default="2 5",
    metavar="N ...",
    help="Dimensions to try.",
)
@options.seed_option
@click.option("-o", "--output", metavar="FOLDER", help="Keep everything here.")
@options.output_options
@pass_output
def demo(out: Output, /, business_id: str, dims: tuple[int, ...], seed: int, output: str | None) -> int:
    """See ``HELP``."""
    from equipoise.data.sample import accounts
    from equipoise.hierarchy.sources.sql import read_sql
    from equipoise.recipes.accounts.evaluate import evaluate_tree
    from equipoise.recipes.accounts.settings import checked_settings
    from equipoise.report.accounts import accounts_report

    if output is not None:
        refuse_unwritable(output)
    settings: dict[str, Any] = {"embedders": EMBEDDERS, "rates": RATES, "seeds": seed, "seed": seed}
    tree = replace(read_sql(str(accounts()), business_id), source=f"the chart of accounts of {business_id}")
    with out.progress(len(checked_settings(GEOMETRY, dims, **settings).cells)) as step:
        found = evaluate_tree(tree, GEOMETRY, dims, output=output, command=out.command, step=step, **settings)
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*accounts_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        keep(out, found, Path(output))
    return 0
