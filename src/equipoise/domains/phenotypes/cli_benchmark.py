"""``eq phenotypes benchmark``: run, compare-vectors and compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.output import Output, after_comparison, pass_output, suggestion
from equipoise.domains.phenotypes.cli import (
    COMMANDS,
    annotations_option,
    check_strategy_applies,
    compare_options,
    index_dir_option,
    multi_vector_option,
    ontology_option,
    show_stored_comparison,
    strategy_option,
    translate_option,
    translations_option,
    weights_option,
)
from equipoise.domains.phenotypes.defaults import DEFAULT_MODEL
from equipoise.errors import InputError, ParameterError, StoreError
from equipoise.types import install_command, with_label

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.phenotypes.benchmark import PhenotypeBenchmark
    from equipoise.domains.phenotypes.cases import Case
    from equipoise.runs.executors import Executor

BENCHMARK_COMMANDS = {
    "run": CommandEntry("equipoise.domains.phenotypes.cli_benchmark:run", "Evaluate one or more models on cases."),
    "compare-vectors": CommandEntry(
        "equipoise.domains.phenotypes.cli_benchmark:compare_vectors",
        "Compare one vector per term with one per label, synonym and definition.",
    ),
    "compare": CommandEntry("equipoise.domains.phenotypes.cli_benchmark:compare", "Compare stored runs."),
}

BENCHMARK_HELP = """
\b
  eq phenotypes benchmark run --models use tfidf
  eq phenotypes benchmark compare-vectors --data cases.json

Evaluate how well models retrieve the terms for a text: MRR, hit rate, nDCG, recall, precision, MAP
and the ontology similarity of near misses, each with an interval and its chance level.
"""


@click.group(
    cls=LazyGroup,
    entries=BENCHMARK_COMMANDS,
    aliases={"extraction": COMMANDS["extraction"]},
    help=BENCHMARK_HELP,
    short_help="Evaluate and compare models on cases.",
)
def benchmark() -> None:
    """See ``BENCHMARK_HELP``."""


def bounded_measures() -> list[str]:
    """The similarity measures for MaxOntSim: those between 0 and 1."""
    from equipoise.domains.phenotypes.similarity import MEASURES

    return [name for name, measure in MEASURES.items() if measure.bounded]


benchmark_options = options.joined(
    options.models_option(
        aliases=("--model-name", "--model"),
        text="The models, such as minilm, tfidf, use or sum:use+tfidf.",
        default=DEFAULT_MODEL,
    ),
    click.option(
        "--data",
        cls=options.AliasOption,
        aliases=("--test-file",),
        metavar="FILE",
        help="The cases; default: samples in English and German.",
    ),
    click.option(
        "-o",
        "--output",
        cls=options.AliasOption,
        aliases=("--output-dir",),
        metavar="FOLDER",
        help="Write runs, results.json and charts here.",
    ),
    click.option("--language", metavar="CODE", help="Only cases in this language, or without a language."),
    click.option(
        "--skip-unknown-ids", "skip_unknown", is_flag=True, help="Ignore expected ids that are not in the ontology."
    ),
    ontology_option,
    click.option(
        "--enable-reranker", is_flag=True, help="Rerank the top terms with the default reranker (late interaction)."
    ),
    click.option(
        "--reranker",
        metavar="SPEC",
        help="Rerank with this reranker, such as cross-encoder:FOLDER; implies --enable-reranker.",
    ),
    click.option("--rerank-depth", type=click.IntRange(min=1), help="Number of top terms to rerank.  [default: 20]"),
    options.model_device_option,
    click.option("--gpu", is_flag=True, hidden=True, help="The same as --device cuda."),
    index_dir_option,
    weights_option,
    translate_option,
    translations_option,
    click.option(
        "--similarity-measure",
        "measure",
        type=options.ChoiceWithHint("similarity measure", bounded_measures),
        default="lin",
        show_default=True,
        help="Ontology similarity of near misses.",
    ),
    annotations_option,
    options.metric_option,
    options.plugin_option,
    click.option(
        "--n-label-queries",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Also run N term labels as queries, and report whether each retrieves its own term and whether "
        "similarities agree with the ontology.",
    ),
    options.ties_option,
    options.stats_options(),
    options.threads_option,
    options.engine_options,
    options.fail_option,
    options.log_option,
    options.table_options(file=False),
)
"""The options shared by ``run`` and ``compare-vectors``: those of ``evaluate``, and fields of ``BenchmarkConfig``."""


def evaluate(
    out: Output,
    benchmark: Callable[..., PhenotypeBenchmark],
    n_passes: int,
    *,
    models: tuple[str, ...],
    data: str | None,
    language: str | None,
    ontology: str,
    output: str | None,
    enable_reranker: bool,
    gpu: bool,
    engine: Executor,
    fail_on: str | None,
    **settings: Any,
) -> int:
    """Run a benchmark with these options and show it; ``n_passes`` is the number of evaluations per model."""
    from equipoise.domains.phenotypes.config import DEFAULT_RERANK_DEPTH

    settings["reranker"] = settings["reranker"] or enable_reranker
    if settings["rerank_depth"] is not None and not settings["reranker"]:
        raise ParameterError("--rerank-depth needs a reranker", hint="add --enable-reranker, or omit --rerank-depth")
    settings["rerank_depth"] = settings["rerank_depth"] or DEFAULT_RERANK_DEPTH
    if gpu and settings["device"] is not None:
        raise ParameterError(f"--gpu and --device {settings['device']} are the same option", hint="omit one of them")
    settings["device"] = "cuda" if gpu else settings["device"]
    specs = list(models) or [DEFAULT_MODEL]
    with options.executor_context(engine, out, "a model"), out.progress(len(specs) * n_passes + 1) as step:
        evaluation = benchmark(
            specs,
            _read_cases(data, language),
            ontology,
            output=output,
            progress=step,
            command=out.command,
            engine=engine,
            **settings,
        )
    return show_benchmark(out, evaluation, output, fail_on)


def _read_cases(data: str | None, language: str | None) -> tuple[Case, ...]:
    """The cases of the file, or the samples; with ``language`` only those in that language."""
    from equipoise.domains.phenotypes.cases import SAMPLES, read_cases

    files = SAMPLES if data is None else (data,)
    cases = tuple(case for file in files for case in read_cases(file, language=language))
    if language is None:
        return cases
    selected = tuple(case for case in cases if case.language.casefold() == language.casefold())
    if not selected:
        known = sorted({case.language for case in cases})
        raise InputError(f"no case is in the language {language!r}", hint=f"the cases are in {', '.join(known)}")
    return selected


def show_benchmark(out: Output, evaluation: PhenotypeBenchmark, folder: str | None, fail_on: str | None) -> int:
    """Show the report or JSON, write the files, and return the exit status."""
    from equipoise.domains.phenotypes.report import benchmark_view
    from equipoise.report.terminal import sort_by_severity

    out.results(evaluation.to_dict, lambda: benchmark_view(evaluation))
    for name in evaluation.resumed:
        out.note(with_label(name, f"loaded from {folder}, not computed again"))
    next_command = after_comparison(sort_by_severity(evaluation.findings), "MRR")
    if folder is not None:
        _write_results(out, evaluation, Path(folder))
        next_command = suggestion(["eq", "report", folder])
    out.failures(evaluation.failures, "where")
    if not out.quiet and not out.json:
        out.text(next_command)
    if evaluation.failures:
        return exits.FAILED_UNITS
    return exits.gate(out, evaluation.findings, fail_on)


def _write_results(out: Output, evaluation: PhenotypeBenchmark, folder: Path) -> None:
    """Write results and charts; the runs are already written."""
    from equipoise.domains.phenotypes.report import write_benchmark
    from equipoise.runs.experiment_folder import VISUALIZATIONS

    written = write_benchmark(folder, evaluation, runs=False)
    out.note(f"wrote {folder}/")
    if len(written) > 1:
        out.note(f"charts are in {folder / VISUALIZATIONS}/")
    else:
        out.note(f"For charts: {install_command('report')}")


BENCHMARK_RUN_HELP = """
\b
  eq phenotypes benchmark run --models use tfidf
  eq phenotypes benchmark run --data cases.json --enable-reranker -o results/

Evaluate models on cases and compare them pairwise. A case is a text with the ids of the terms that
should be found: {"text": "...", "hpo_ids": ["HP:0001250"], "language": "en"} in a JSON list, JSONL or CSV;
other fields become slices. Every term of the ontology is ranked for every case. A case that fails counts as a miss, is
listed, and makes the run partial (exit status 3).

A text with German words is also translated into English, by a glossary and spelling rules, and searched again;
--translations adds translated labels (babelon tables of the Human Phenotype Ontology), in any language.
--no-translate evaluates the models alone.

-m adds metrics to the default ones, such as -m "nDCG@20"; --plugin reads your own metrics from a Python file.
"""


@options.command(help=BENCHMARK_RUN_HELP, short_help="Evaluate one or more models on cases.")
@benchmark_options
@multi_vector_option
@strategy_option
@options.output_options
@pass_output
def run(
    out: Output, /, multi_vector: bool, aggregation_strategy: str | None, weights: list[float] | None, **choices: Any
) -> int:
    from equipoise.domains.phenotypes.benchmark import run_benchmark
    from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY

    check_strategy_applies(multi_vector, aggregation_strategy, weights)
    strategy = DEFAULT_STRATEGY if aggregation_strategy is None else aggregation_strategy
    benchmark = partial(run_benchmark, multi_vector=multi_vector, strategy=strategy, weights=weights)
    return evaluate(out, benchmark, 1, **choices)


BENCHMARK_COMPARE_HELP = """
\b
  eq phenotypes benchmark compare results/runs/use-label_synonyms_max \\
     results/runs/tfidf-label_synonyms_max
  eq phenotypes benchmark compare results/ others/ --primary "HR@1"

Compare stored runs of a benchmark; a folder means all runs in it. The runs must have the same cases. This is eq
compare with the default metrics of the benchmark.
"""

NO_RUNS_HINT = "eq phenotypes benchmark run -o results/ stores runs"
COMPARED_METRICS = ("MRR", "HR@{1,3,5,10}", "nDCG@10", "R@10", "MAP@10", "MaxOntSim@{1,10}")


@options.command(help=BENCHMARK_COMPARE_HELP, short_help="Compare stored runs.")
@compare_options(options.metric_option)
@pass_output
def compare(
    out: Output,
    runs: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    config: StatsConfig,
    fail_on: str | None,
) -> int:
    from equipoise.cli.compare import read_systems
    from equipoise.cli.inputs import EvidenceOptions, SystemInput, parse_systems
    from equipoise.runs.compare import compare as compare_systems
    from equipoise.runs.run_folder import find_runs

    try:
        found = [[run] if SystemInput.of(run).is_named else map(str, find_runs(run)) for run in runs]
    except StoreError as error:
        raise StoreError(error.message, hint=NO_RUNS_HINT) from error
    paths = list(dict.fromkeys(chain.from_iterable(found)))
    if len(paths) < 2:
        raise ParameterError(
            f"a comparison needs at least two runs; there are {len(paths) or 'none'}", hint=NO_RUNS_HINT
        )
    with out.progress(len(paths) + 1) as step:
        systems, stored = read_systems(parse_systems(paths), EvidenceOptions(), step)
        step("comparing")
        comparison = compare_systems(systems, metrics or COMPARED_METRICS, primary=primary or "MRR", config=config)
    return show_stored_comparison(out, comparison, stored, fail_on)


COMPARE_VECTORS_HELP = """
\b
  eq phenotypes benchmark compare-vectors --data cases.json
  eq phenotypes benchmark compare-vectors --no-single --strategies "label_synonyms_max,label_only"

Compare one vector per term with separate vectors for its label, synonyms and definition, whose scores are
aggregated by different strategies. All strategies of a model use the same scores. A strategy may be an
expression such as "0.6*label + 0.4*max(synonyms)". --weights sets the weights of all_weighted.
"""


@options.command(
    name="compare-vectors",
    help=COMPARE_VECTORS_HELP,
    short_help="Single against multi-vector.",
)
@benchmark_options
@click.option(
    "--strategies",
    default="label_synonyms_max,all_max,label_only,all_weighted",
    show_default=True,
    metavar="LIST",
    help="Strategies, separated by commas or semicolons.",
)
@click.option("--single/--no-single", default=True, show_default=True, help="Also evaluate one vector per term.")
@options.output_options
@pass_output
def compare_vectors(out: Output, /, strategies: str, single: bool, weights: list[float] | None, **choices: Any) -> int:
    from equipoise.domains.phenotypes.benchmark import compare_vectors as compared

    benchmark = partial(compared, strategies=split_strategies(strategies), single=single, weights=weights)
    return evaluate(out, benchmark, 2 if single else 1, **choices)


def split_strategies(text: str) -> list[str]:
    """Split a list at semicolons and commas outside of brackets.

    >>> split_strategies("all_max, label_only"), split_strategies("max(label, synonyms), all_max; label")
    (['all_max', 'label_only'], ['max(label, synonyms)', 'all_max', 'label'])
    """
    strategies, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character in ",;" and depth <= 0:
            strategies.append("")
        else:
            strategies[-1] += character
    return [strategy.strip() for strategy in strategies if strategy.strip()]
