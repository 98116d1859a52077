"""The commands of ``eq phenotypes benchmark``."""

from __future__ import annotations

import click

from equipoise.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "run": Entry("equipoise.cli.phenotypes.benchmark.run:run", "Measure one or more models on cases."),
    "compare-vectors": Entry(
        "equipoise.cli.phenotypes.benchmark.vectors:compare_vectors",
        "One vector a term against one for each of its texts.",
    ),
    "compare": Entry("equipoise.cli.phenotypes.benchmark.compare:compare", "Compare runs that were stored."),
}

HELP = """
\b
  eq phenotypes benchmark run --model-name use --model-name tfidf: --multi-vector
  eq phenotypes benchmark compare-vectors --test-file cases.json

Measure how well models find the terms that a text speaks of: MRR, hit rate, nDCG, recall, precision, MAP
and the ontology similarity of near misses, each with an interval and its chance level.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=HELP, short_help="Measure and compare models on cases.")
def benchmark() -> None:
    """See ``HELP``."""
