"""``eq fair``: embedding models compared on one's own document and questions."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "compare": Entry("equipoise.cli.fair.compare:compare", "Tune each model, compare them honestly."),
    "validate": Entry("equipoise.cli.fair.validate:validate", "Check a fixture of questions and answers."),
}

HELP = """
\b
  eq fair validate --qa fixture.json --doc document.txt
  eq fair compare --doc document.txt --qa fixture.json --models minilm bm25: -o results/

Compare embedding models on a document of your own: each gets the parameters that suit it,
and is scored on questions that had no say in choosing them.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="Compare models on your document.")
def fair() -> None:
    """See ``HELP``."""
