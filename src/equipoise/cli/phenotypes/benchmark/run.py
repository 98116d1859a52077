"""``eq phenotypes benchmark run``: one or more models measured on cases."""

from __future__ import annotations

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.benchmark.asked import Asked, asking, show
from equipoise.cli.phenotypes.choices import multi_vector_option, refuse_idle, strategy_option

HELP = """
\b
  eq phenotypes benchmark run --model-name use --model-name tfidf: --multi-vector
  eq phenotypes benchmark run --test-file cases.json --enable-reranker --output-dir results/

Measure models on cases and compare them pair by pair. A case is a text with the ids of the terms that
should be found: {"text": "...", "hpo_ids": ["HP:0001250"], "language": "en"} in a JSON list, JSONL or CSV;
other fields become slices. Every term of the ontology is ranked for every case, so that all models and
modes are compared at the same depth. A case that a model cannot answer stays in as a miss, is named, and
makes the run partial (exit 3).
"""


@click.command(help=HELP, short_help="Measure one or more models on cases.")
@asking
@multi_vector_option
@strategy_option
@options.output_options
@pass_output
def run(out: Output, asked: Asked, multi_vector: bool, aggregation_strategy: str | None) -> int:
    """See ``HELP``."""
    from equipoise.ontology.index.aggregate import DEFAULT_STRATEGY
    from equipoise.recipes.phenotypes.benchmark import run_benchmark

    refuse_idle(multi_vector, aggregation_strategy, asked.weights)
    models = asked.models
    with out.progress(len(models) + 1) as step:
        found = run_benchmark(
            models,
            asked.cases(),
            asked.ontology,
            multi=multi_vector,
            strategy=DEFAULT_STRATEGY if aggregation_strategy is None else aggregation_strategy,
            output=asked.output_dir,
            progress=step,
            command=out.command,
            **asked.settings,
        )
    return show(out, found, asked)
