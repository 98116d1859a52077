"""``eq phenotypes benchmark``: run, compare-vectors and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.app import CommandEntry, LazyGroup
from equipoise.cli.output import Output, pass_output
from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.cli import (
    check_strategy_applies,
    index_dir_option,
    multi_vector_option,
    ontology_option,
    parse_weights,
    strategy_option,
    threads_option,
    weights_option,
)
from equipoise.errors import InputError, ParameterError
from equipoise.extras import install_command
from equipoise.types import with_label

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import PhenotypeBenchmark
    from equipoise.domains.phenotypes.cases import Case
    from equipoise.runs.executors import Executor

BENCHMARK_COMMANDS = {
    "run": CommandEntry("equipoise.domains.phenotypes.cli_benchmark:run", "Evaluate one or more models on cases."),
    "compare-vectors": CommandEntry(
        "equipoise.domains.phenotypes.cli_benchmark:compare_vectors",
        "One vector per term against one per text.",
    ),
    "compare": CommandEntry("equipoise.domains.phenotypes.cli_benchmark:compare", "Compare stored runs."),
}

BENCHMARK_HELP = """
\b
  eq phenotypes benchmark run --model-name use --model-name tfidf: --multi-vector
  eq phenotypes benchmark compare-vectors --test-file cases.json

Evaluate how well models retrieve the terms of a text: MRR, hit rate, nDCG, recall, precision, MAP
and the ontology similarity of near misses, each with an interval and its chance level.
"""


@click.group(
    cls=LazyGroup, entries=BENCHMARK_COMMANDS, help=BENCHMARK_HELP, short_help="Evaluate and compare models on cases."
)
def benchmark() -> None:
    """See ``BENCHMARK_HELP``."""


def bounded_measures() -> list[str]:
    """The similarity measures for MaxOntSim: those between 0 and 1."""
    from equipoise.domains.phenotypes.ontology.similarity import MEASURES

    return [name for name, measure in MEASURES.items() if measure.bounded]


@dataclass(frozen=True)
class BenchmarkOptions:
    """The options shared by ``run`` and ``compare-vectors``."""

    model_name: tuple[str, ...]
    test_file: str | None
    output_dir: str | None
    language: str | None
    skip_unknown: bool
    ontology: str
    fail_on: str | None
    enable_reranker: bool
    reranker: str | None
    rerank_depth: int | None
    weights: str | None
    gpu: bool
    device: str | None
    index_dir: str | None
    similarity: str
    diagnose: int
    config: StatsConfig
    threads: int
    engine: Executor

    @property
    def models(self) -> list[str]:
        """The named models, or the default."""
        from equipoise.domains.phenotypes.config import DEFAULT_MODEL

        return list(self.model_name) or [DEFAULT_MODEL]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the benchmark."""
        from equipoise.domains.phenotypes.config import DEFAULT_RERANK_DEPTH

        reranker = self.reranker or self.enable_reranker
        if self.rerank_depth is not None and not reranker:
            raise ParameterError(
                "--rerank-depth needs a reranker", hint="add --enable-reranker, or leave the depth out"
            )
        return {
            "weights": parse_weights(self.weights),
            "measure": self.similarity,
            "reranker": reranker,
            "rerank_depth": self.rerank_depth or DEFAULT_RERANK_DEPTH,
            "device": self._device,
            "index_dir": self.index_dir,
            "n_diagnosed_labels": self.diagnose,
            "config": self.config,
            "threads": self.threads,
            "skip_unknown": self.skip_unknown,
        }

    @property
    def _device(self) -> str | None:
        if self.gpu and self.device is not None:
            raise ParameterError(f"--gpu and --device {self.device} are the same option", hint="omit one of them")
        return "cuda" if self.gpu else self.device

    def cases(self) -> tuple[Case, ...]:
        """The cases of the file, or the samples; of one language where one was named."""
        from equipoise.domains.phenotypes.cases import SAMPLES, read_cases

        files = SAMPLES if self.test_file is None else (self.test_file,)
        found = tuple(case for file in files for case in read_cases(file, language=self.language))
        if self.language is None:
            return found
        wanted = self.language.casefold()
        kept = tuple(case for case in found if case.language.casefold() == wanted)
        if not kept:
            known = sorted({case.language for case in found})
            raise InputError(
                f"no case is in the language {self.language!r}", hint=f"the cases are in {', '.join(known)}"
            )
        return kept


_BENCHMARK_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--model-name",
        type=options.ModelType(),
        multiple=True,
        metavar="MODEL",
        help="A model, such as use, minilm, tfidf: or sum:use+tfidf:; may be repeated.",
    ),
    click.option("--test-file", metavar="FILE", help="The cases; without it, samples in English and German are used."),
    click.option("--output-dir", metavar="FOLDER", help="Write runs, results.json and charts here."),
    click.option("--language", metavar="CODE", help="Only cases in this language, or that name none."),
    click.option("--skip-unknown", is_flag=True, help="Skip expected ids without a live term."),
    ontology_option,
    click.option("--enable-reranker", is_flag=True, help="Let late interaction reorder the first terms."),
    click.option("--reranker", metavar="SPEC", help="Reranker to use, such as cross-encoder:FOLDER."),
    click.option(
        "--rerank-depth",
        type=click.IntRange(min=1),
        help="Number of top terms to rerank.  [default: 20]",
    ),
    click.option("--gpu", is_flag=True, help="Put models of the kind st: on the GPU."),
    click.option("--device", metavar="NAME", help="The same by name: cuda, cuda:1, mps, cpu."),
    index_dir_option,
    weights_option,
    options.one_of("--similarity", "similarity", bounded_measures, "lin", "Similarity of near misses."),
    click.option(
        "--diagnose",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Also evaluate N labels: self-retrieval, and correlation with ontology similarity.",
    ),
    options.ties_option,
    options.stats_options(omit=("test", "correction")),
    threads_option,
    options.engine_options,
    options.fail_option,
)

benchmark_options = options.options_as(BenchmarkOptions, "asked", *_BENCHMARK_OPTIONS)
"""All shared options as one argument ``asked``."""


def show_benchmark(out: Output, found: PhenotypeBenchmark, asked: BenchmarkOptions) -> int:
    """Show the report or JSON, write the files, and return the exit status."""
    from equipoise.domains.phenotypes.report import phenotype_report

    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*phenotype_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    for name in found.resumed:
        out.note(with_label(name, f"loaded from {asked.output_dir}, not computed again"))
    if asked.output_dir is not None:
        _write_results(out, found, Path(asked.output_dir))
    for where, error in found.failures.items():
        out.error(
            {"where": where, "code": error.code, "message": error.message, "hint": error.hint},
            f"{where}: {error.render()}",
        )
    if not out.quiet and not out.json:
        out.text(_next_command(found, asked))
    if found.failures:
        return output.FAILED_UNITS
    return output.gate(out, found.findings, asked.fail_on)


def _write_results(out: Output, found: PhenotypeBenchmark, folder: Path) -> None:
    """Write results and charts; the runs are already written."""
    from equipoise.domains.phenotypes.store import unrelated_runs, write_benchmark
    from equipoise.runs.experiment import VISUALIZATIONS

    written = write_benchmark(folder, found, runs=False)
    out.note(f"wrote {folder}/")
    older = unrelated_runs(folder, found)
    if older:
        out.note(f"unrelated runs in the same folder: {', '.join(path.name for path in older)}")
    if len(written) > 1:
        out.note(f"charts are in {folder / VISUALIZATIONS}/")
    else:
        out.note(f"For charts: {install_command('report')}")


def _next_command(found: PhenotypeBenchmark, asked: BenchmarkOptions) -> str:
    """The next command to type."""
    from equipoise.cli.output import after_comparison, suggestion
    from equipoise.domains.phenotypes.store import run_paths, unrelated_runs
    from equipoise.report.findings import sort_by_severity

    if asked.output_dir is not None:
        folder = Path(asked.output_dir)
        own = [str(path) for path in run_paths(folder, found)]
        return suggestion(["eq", "report", *(own if unrelated_runs(folder, found) else [str(folder)])])
    return after_comparison(sort_by_severity(found.findings), "MRR")


BENCHMARK_RUN_HELP = """
\b
  eq phenotypes benchmark run --model-name use --model-name tfidf: --multi-vector
  eq phenotypes benchmark run --test-file cases.json --enable-reranker --output-dir results/

Evaluate models on cases and compare them pairwise. A case is a text with the ids of the terms that
should be found: {"text": "...", "hpo_ids": ["HP:0001250"], "language": "en"} in a JSON list, JSONL or CSV;
other fields become slices. Every term of the ontology is ranked for every case, so that all models and
representations are compared at the same depth. A case that fails counts as a miss, is listed, and makes the run
partial (exit 3).
"""


@click.command(help=BENCHMARK_RUN_HELP, short_help="Evaluate one or more models on cases.")
@benchmark_options
@multi_vector_option
@strategy_option
@options.output_options
@pass_output
def run(out: Output, asked: BenchmarkOptions, multi_vector: bool, aggregation_strategy: str | None) -> int:
    """See ``BENCHMARK_RUN_HELP``."""
    from equipoise.domains.phenotypes.benchmark import run_benchmark
    from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY

    check_strategy_applies(multi_vector, aggregation_strategy, asked.weights)
    models = asked.models
    with options.executor_context(asked.engine, out, "a model"), out.progress(len(models) + 1) as step:
        found = run_benchmark(
            models,
            asked.cases(),
            asked.ontology,
            multi_vector=multi_vector,
            strategy=DEFAULT_STRATEGY if aggregation_strategy is None else aggregation_strategy,
            output=asked.output_dir,
            progress=step,
            command=out.command,
            engine=asked.engine,
            **asked.settings,
        )
    return show_benchmark(out, found, asked)


BENCHMARK_COMPARE_HELP = """
\b
  eq phenotypes benchmark compare results/runs/use-single results/runs/tfidf-single
  eq phenotypes benchmark compare results/ others/ --primary "HR@1"

Compare stored runs of a benchmark; a folder means all runs in it. The runs must have the same cases. This is eq
compare with the default metrics of the benchmark.
"""

NO_RUNS_HINT = "eq phenotypes benchmark run --output-dir results/ stores runs"
COMPARED_METRICS = ("MRR", "HR@{1,3,5,10}", "nDCG@10", "R@10", "MAP@10", "MaxOntSim@{1,10}")


@click.command(help=BENCHMARK_COMPARE_HELP, short_help="Compare stored runs.")
@click.argument("runs", nargs=-1)
@options.metric_option
@options.primary_option
@options.stats_options()
@options.fail_option
@options.output_options
@pass_output
def compare(
    out: Output,
    runs: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    config: StatsConfig,
    fail_on: str | None,
) -> int:
    """See ``BENCHMARK_COMPARE_HELP``."""
    from equipoise.cli.compare import gather, show_comparison
    from equipoise.cli.inputs import EvidenceOptions, parse_systems
    from equipoise.errors import ParameterError, StoreError
    from equipoise.runs.compare import compare as compare_systems
    from equipoise.runs.store import find_runs

    try:
        paths = [str(path) for path in find_runs(*runs)] if runs else []
    except StoreError as error:
        raise StoreError(error.message, hint=NO_RUNS_HINT) from error
    if len(paths) < 2:
        raise ParameterError(
            f"a comparison needs at least two runs, and {len(paths) or 'none'} was found", hint=NO_RUNS_HINT
        )
    with out.progress(len(paths) + 1) as step:
        systems, cautions = gather(parse_systems(paths), EvidenceOptions(), step)
        step("comparing")
        found = compare_systems(
            systems,
            metrics or COMPARED_METRICS,
            primary=primary or "MRR",
            config=config,
        )
    show_comparison(out, found, cautions)
    return output.FAILED_UNITS if cautions else output.gate(out, found.findings, fail_on)


COMPARE_VECTORS_HELP = """
\b
  eq phenotypes benchmark compare-vectors --test-file cases.json
  eq phenotypes benchmark compare-vectors --no-single --strategies "label_synonyms_max,label_only"

Compare one vector per term with one per label, synonym and definition, aggregated by strategies. All
strategies of a model are evaluated on the same scores in one pass. A strategy may be an expression
such as "0.6*label + 0.4*max(synonyms)". --weights are those of all_weighted.
"""


@click.command(name="compare-vectors", help=COMPARE_VECTORS_HELP, short_help="Single against multi-vector.")
@benchmark_options
@click.option(
    "--strategies",
    default="label_synonyms_max,all_max,label_only,all_weighted",
    show_default=True,
    metavar="LIST",
    help="Strategies, separated by commas or semicolons.",
)
@click.option("--single/--no-single", default=True, help="Whether to include one vector per term.")
@options.output_options
@pass_output
def compare_vectors(out: Output, asked: BenchmarkOptions, strategies: str, single: bool) -> int:
    """See ``COMPARE_VECTORS_HELP``."""
    from equipoise.domains.phenotypes.benchmark import compare_vectors as compared

    models = asked.models
    n_steps = len(models) * (2 if single else 1) + 1
    with options.executor_context(asked.engine, out, "a model"), out.progress(n_steps) as step:
        found = compared(
            models,
            asked.cases(),
            asked.ontology,
            strategies=split_strategies(strategies),
            single=single,
            output=asked.output_dir,
            progress=step,
            command=out.command,
            engine=asked.engine,
            **asked.settings,
        )
    return show_benchmark(out, found, asked)


def split_strategies(text: str) -> list[str]:
    """Split a list at semicolons and commas outside of brackets.

    >>> split_strategies("all_max, label_only"), split_strategies("max(label, synonyms), all_max; label")
    (['all_max', 'label_only'], ['max(label, synonyms)', 'all_max', 'label'])
    """
    found, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign in ",;" and depth <= 0:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found if each.strip()]
