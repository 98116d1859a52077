"""The commands of ``eq phenotypes extraction``."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "run": Entry("equipoise.cli.phenotypes.extraction.run:run", "Measure extraction on documents."),
    "compare": Entry("equipoise.cli.phenotypes.extraction.compare:compare", "Compare runs that were stored."),
    "tune": Entry("equipoise.cli.phenotypes.extraction.tune:tune", "Choose parameters by nested folds."),
}

HELP = """
\b
  eq phenotypes extraction run notes --model tfidf: -o results/default
  eq phenotypes extraction tune notes --model tfidf: --budget 40

Measure how well terms are found in whole documents: precision, recall and F1 against what people
annotated, with intervals over documents, the stage that lost each term, and the kinds of error.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="Measure and tune extraction.")
def extraction() -> None:
    """See ``HELP``."""
