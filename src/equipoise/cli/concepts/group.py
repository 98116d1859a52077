"""``eq concepts``: what sentence models know of a field, and whether the field is fit to tell."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "run": Entry("equipoise.cli.concepts.run:run", "Score models on a field: five scores and their parts."),
    "check": Entry("equipoise.cli.concepts.check:check", "Check the files of a field."),
}

HELP = """
\b
  eq concepts run --models minilm wordllama -o results/
  eq concepts check my_field/

See what a sentence model knows of a field: similar pairs, clusters, types of entities,
relations, and the quality of the space. A field of philosophy comes with the program.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="See what a model knows of a field.")
def concepts() -> None:
    """See ``HELP``."""
