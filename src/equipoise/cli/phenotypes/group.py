"""``eq phenotypes``: clinical terms indexed, found and compared."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "index": Entry("equipoise.cli.phenotypes.index:index", "Build the index of all terms, once a model."),
    "query": Entry("equipoise.cli.phenotypes.query:query", "Find the terms that a text speaks of."),
    "benchmark": Entry(
        "equipoise.cli.phenotypes.benchmark:benchmark", "Measure and compare models on cases."
    ),
    "extract": Entry(
        "equipoise.cli.phenotypes.extract:extract", "Find the terms of a note, and who has them."
    ),
    "extraction": Entry(
        "equipoise.cli.phenotypes.extraction.group:extraction", "Measure and tune extraction on documents."
    ),
    "similarity": Entry("equipoise.cli.phenotypes.similarity:similarity", "How alike two terms are."),
}

HELP = """
\b
  eq phenotypes query "seizures" --multi-vector
  eq phenotypes benchmark run --model-name minilm --model-name use --multi-vector

Find the terms of an ontology (the Human Phenotype Ontology, or a file of your own) that a text speaks of,
and measure which model finds them best.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="Find clinical terms, and measure it.")
def phenotypes() -> None:
    """See ``HELP``."""
