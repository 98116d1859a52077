"""``eq places``: next locations scored from logits, and models compared over seeds."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "score": Entry("equipoise.cli.places.score:score", "Score logits of next places, beside baselines."),
    "compare": Entry("equipoise.cli.places.compare:compare", "Compare models over seeds and users."),
    "demo": Entry("equipoise.cli.places.demo:demo", "Train and score a small model on made-up visits."),
}

HELP = """
\b
  eq places score --logits logits.npy --targets y.npy --padding 0 -o results/
  eq places compare modelA/seed*/ modelB/seed*/

Score models that predict the next place: accuracy, MRR, nDCG and F1, each with how sure it is
and what luck and habit would score.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="Score models of the next place.")
def places() -> None:
    """See ``HELP``."""
