"""``eq accounts``: trees embedded, judged and drawn."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "evaluate": Entry(
        "equipoise.cli.accounts.evaluate:evaluate", "Embed a tree in several dimensions, and judge each."
    ),
    "train": Entry("equipoise.cli.accounts.train:train", "Embed a tree, and keep the vectors."),
    "plot": Entry("equipoise.cli.accounts.plot:plot", "Draw the tree in the disk."),
    "demo": Entry(
        "equipoise.cli.accounts.demo:demo", "Embed and judge the chart of accounts that is shipped."
    ),
}

HELP = """
\b
  eq accounts evaluate --tree accounts.csv --geometry lorentz --dims 2 5 10 -o results/
  eq accounts train --tree accounts.csv --geometry lorentz --dim 10 -o account_vectors.csv

Embed a chart of accounts, or any other tree, and see how well distances keep the order of parents
and children, beside a tuned euclidean embedding and a random one.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="Embed trees, and judge the embeddings.")
def accounts() -> None:
    """See ``HELP``."""
