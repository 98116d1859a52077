"""``eq bench``: compare models on your own data sets. ``eq leaderboard``: how certain published ranks are."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.options import ChoiceWithHint, MultiValueOption, engine_options, executor_context
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, ParameterError

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.runs.executors import Executor


COMMANDS = {
    "run": CommandEntry("equipoise.domains.bench.cli:run", "Compare models on your data sets."),
    "ls": CommandEntry("equipoise.domains.bench.cli:ls", "List kinds of data, formats and metrics."),
}

BENCH_HELP = """
\b
  eq bench run support/ faq.csv tickets.csv --models minilm bm25 -o results/
  eq bench ls

Benchmark embedding models on your own data: retrieval, reranking, similarity, pairs,
classification, clustering and parallel sentences.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=BENCH_HELP, short_help="Benchmark models on your own data.")
def bench() -> None:
    """See ``BENCH_HELP``."""


RUN_HELP = """
\b
  eq bench run support/ faq.csv --models minilm use bm25 -o results/
  eq bench run support/ --models minilm --dims 64 128 256 --dtypes int8 binary
  eq bench run clustering:tickets.csv few-shot:tickets.csv --models minilm --text subject body

Compare embedding models on your own data sets. DATA is a BEIR folder, a CSV, TSV, JSONL, JSON or parquet
table, a folder of such tables, or a folder saved by Hugging Face datasets. The kind is detected from files and columns,
or given as a prefix: retrieval:PATH, reranking:, similarity:, pair-classification:,
classification:, few-shot:, clustering:, bitext:.

Every model and variant is scored with an interval, and models are compared in pairs on the same queries or texts.
BM25, TF-IDF and random vectors are added as baselines. With several data sets, the output states which model has the
best mean on these data sets, and how well this generalises to similar data sets. With -o FOLDER, each result is stored
as soon as it is computed, and repeating the command computes only what is missing.
"""

dtypes = options.names_in("equipoise.models.encoder", "VectorDtype")
tunable = options.names_in("equipoise.domains.bench.systems", "TUNABLE")


@options.command(help=RUN_HELP, short_help="Compare models on your data sets.")
@click.argument("data", nargs=-1, metavar="DATA [DATA ...]")
@options.models_option()
@click.option("--text", cls=MultiValueOption, metavar="COLUMN ...", help="Columns of text, such as title body.")
@click.option(
    "--split",
    metavar="NAME",
    help="Split of the qrels of BEIR folders.  [default: test if there is one, else all]",
)
@click.option(
    "--dims",
    cls=MultiValueOption,
    commas=True,
    type=click.IntRange(min=1),
    metavar="N ...",
    help="Also evaluate vectors truncated to N dimensions. With --dtypes, every combination is evaluated; add float32 "
    "to --dtypes for truncation alone.",
)
@click.option(
    "--dtypes",
    cls=MultiValueOption,
    commas=True,
    type=options.ChoiceWithHint("dtype", dtypes),
    metavar="NAME ...",
    help="Also evaluate vectors stored as float16, int8 or binary.",
)
@click.option(
    "--rerankers",
    cls=MultiValueOption,
    metavar="SPEC ...",
    help="Also rerank the top hits of every system with these rerankers, such as maxsim:minilm.",
)
@click.option(
    "--rerank-depth", type=click.IntRange(min=1), default=50, show_default=True, help="Number of top hits to rerank."
)
@click.option(
    "--tune",
    cls=MultiValueOption,
    commas=True,
    type=options.ChoiceWithHint("parameter", tunable),
    metavar="fusion|depth ...",
    help="Also select fusion weights or rerank depths by nested cross-validation.",
)
@click.option("--no-baselines", is_flag=True, help="Do not add BM25, TF-IDF and random vectors.")
@click.option(
    "--price",
    "prices",
    cls=MultiValueOption,
    metavar="MODEL=USD ...",
    help="Price of a hosted model in US dollars per million tokens.",
)
@options.model_device_option
@options.threads_option
@click.option("-o", "--output", metavar="FOLDER", help="Write results and runs here, and resume from here.")
@options.stats_options()
@engine_options
@options.fail_option
@options.log_option
@options.table_options(file=False)
@options.output_options
@pass_output
def run(
    out: Output,
    /,
    data: tuple[str, ...],
    models: tuple[str, ...],
    no_baselines: bool,
    prices: tuple[str, ...],
    output: str | None,
    fail_on: str | None,
    engine: Executor,
    config: StatsConfig,
    **settings: Any,
) -> int:
    """See ``RUN_HELP``."""
    if not data:
        raise ParameterError("no data was given", hint="give a folder or a table; eq bench ls lists the formats")
    if not models:
        raise ParameterError(
            "no model was given", hint="add --models, such as --models minilm; eq ls models lists them"
        )
    from equipoise.domains.bench.experiment import plan_benchmark, run_benchmark
    from equipoise.domains.bench.systems import SystemVariants
    from equipoise.report.view import findings_from_dicts
    from equipoise.runs.experiment_folder import exit_code
    from equipoise.runs.trackers import flat_scores

    text, split, threads = (settings.pop(name) for name in ("text", "split", "threads"))
    plan = plan_benchmark(
        list(options.models_on_device(models, settings.pop("device"), out).values()),
        list(data),
        SystemVariants(baselines=not no_baselines, **settings),
        text=text,
        split=split,
        prices=_prices(prices),
        output=output,
        config=config,
    )
    content = plan.stored()
    failures: Mapping[str, EquipoiseError] = {}
    if content is None:
        bar = out.progress(len(plan.jobs) + 1, plan.weights)
        with executor_context(engine, out, "a system on a data set"), bar as step:
            comparison = run_benchmark(
                plan,
                threads=threads,
                progress=step,
                command=out.command,
                engine=engine,
            )
        content, failures = comparison.to_dict(), comparison.failures
        if output is not None:
            out.note(f"wrote {output}")
    else:
        out.note(f"results read from {output}; nothing was computed again")
    _show(out, content, output)
    out.log(lambda: flat_scores(content), f"bench {output or ''}".strip())
    out.failures(failures, "system")
    return exit_code(failures) or exits.gate(out, findings_from_dicts(content["findings"]), fail_on)


def _prices(words: tuple[str, ...]) -> dict[str, float]:
    """US dollars per million tokens by model, from words such as ``openai:text-embedding-3-small=0.02``."""
    prices: dict[str, float] = {}
    for word in words:
        model, _, number = word.rpartition("=")
        try:
            prices[model] = float(number)
        except ValueError:
            raise ParameterError(f"the price {word!r} has no number", hint="write MODEL=USD") from None
    return prices


def _show(out: Output, content: dict[str, Any], output: str | None) -> None:
    """Print the answer or the JSON data, and where the rest is."""
    from equipoise.domains.bench.report import answer_parts
    from equipoise.report.view import View

    if out.json:
        out.data(content)
        return
    views = [View.from_dict(answer) for answer in content["answers"]]
    if output is not None:
        details = f"Details: add -v, or {shlex.join(['eq', 'report', str(Path(output))])}."
        views[0] = replace(views[0], answer=replace(views[0].answer, details=details))
    out.show(*answer_parts(views, verbose=out.verbose, quiet=out.quiet))


LS_HELP = """
\b
  eq bench ls
  eq bench ls --json

List the kinds of data, their formats, and their metrics. eq bench run orders models by the first metric.
"""


@options.command(help=LS_HELP, short_help="List kinds of data, formats and metrics.")
@options.table_options()
@options.output_options
@pass_output
def ls(out: Output, /) -> int:
    """See ``LS_HELP``."""
    from equipoise.domains.bench.read_data import listed_kinds
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable

    kinds = listed_kinds()
    if out.json:
        out.data([{**kind._asdict(), "metrics": list(kind.metrics)} for kind in kinds])
        return exits.DONE
    if out.to:
        out.show(
            TerminalTable(
                [
                    ReportColumn("kind", [kind.kind for kind in kinds]),
                    ReportColumn("metrics", [", ".join(kind.metrics) for kind in kinds]),
                    ReportColumn("format", [kind.formats for kind in kinds]),
                ]
            )
        )
        return exits.DONE
    width = 2 + max(len(kind.kind) for kind in kinds)
    parts = []
    for kind in kinds:
        parts += [
            Paragraph(f"{kind.formats}.", lead=f"{kind.kind:<{width}}"),
            Paragraph(f"Metrics: {', '.join(kind.metrics)}.", indent=width),
        ]
    if not out.quiet:
        parts += [
            Paragraph(""),
            Paragraph(
                "In a folder of tables, each table is a data set. KIND:PATH names the kind, such as clustering:PATH."
            ),
            Paragraph("few-shot is classification under MTEB's protocol: 8 texts per label, 10 experiments."),
        ]
    out.show(*parts)
    return exits.DONE


LEADERBOARD_HELP = """
\b
  eq leaderboard mteb.csv
  eq leaderboard results/ --missing models -o report/
  eq leaderboard per_query.csv --resample units --to md

Show which models could rank first, and which models at adjacent ranks differ significantly. TABLE (CSV, TSV, Markdown,
LaTeX, JSON or parquet) has one row per model and one column per data set, or one row per model, data set and unit (such
as a query). It can also be a folder of MTEB results (MODEL/REVISION/TASK.json) or of run directories (written by
eq score -o or eq bench run -o).

The rank interval of a model comes from simultaneous tests against all other models (Mogstad et al., 2024). Their
critical values come from a paired bootstrap, which resamples data sets and, if the table has them, units. The
confidence level holds for each interval, not for all of them together. A model could rank first if its interval
includes 1. Missing scores are never imputed. If scores have different scales, models are ordered by Borda count.
"""

RANKS = "equipoise.stats.aggregate_ranks"
aggregates = options.names_in(RANKS, "AGGREGATES")
modes = options.names_in(RANKS, "RESAMPLE_MODES")
policies = options.names_in("equipoise.domains.bench.score_table", "MISSING_POLICIES")


@options.command(help=LEADERBOARD_HELP, short_help="Show the uncertainty of published ranks.")
@click.argument("table", metavar="TABLE", required=False)
@click.option("--models", cls=MultiValueOption, metavar="MODEL ...", help="Only these models.")
@click.option("--datasets", cls=MultiValueOption, metavar="NAME ...", help="Only these data sets.")
@click.option("--lower", cls=MultiValueOption, metavar="NAME ...", help="Data sets on which lower scores are better.")
@click.option(
    "--accuracy",
    is_flag=True,
    help="Scores are accuracies. With -v, list the numbers of units (such as queries) that are consistent with the "
    "printed decimals.",
)
@click.option(
    "--missing",
    type=ChoiceWithHint("policy", policies),
    help="With missing scores, keep complete data sets, keep complete models, or stop.  [default: models for run "
    "directories, else datasets]",
)
@click.option(
    "--aggregate",
    type=ChoiceWithHint("aggregate", aggregates),
    help="How scores are aggregated over data sets.  [default: mean, or borda if scales differ]",
)
@click.option(
    "--resample",
    type=ChoiceWithHint("resampling", modes),
    help="Resample data sets, units (such as queries) within them, or both.  [default: both with several data sets "
    "and units, else the one that the table has]",
)
@click.option(
    "--models-in",
    type=ChoiceWithHint("orientation", lambda: ("rows", "columns")),
    help="Whether models are in rows or columns; detected by default.",
)
@click.option("-m", "--metric", metavar="NAME", help="The metric to read, if the table has several.")
@click.option("--split", metavar="NAME", help="The split of MTEB results.  [default: test]")
@click.option(
    "--subset",
    "subsets",
    cls=MultiValueOption,
    metavar="NAME ...",
    help="Only these subsets of MTEB results.",
)
@options.stats_options(
    tested="Only models at adjacent ranks are compared in pairs; rank intervals do not depend on it."
)
@click.option("-o", "--output", "folder", metavar="FOLDER", help="Write results.json and report.html here.")
@options.fail_option
@options.table_options(file=False)
@options.output_options
@pass_output
def leaderboard(
    out: Output, /, table: str | None, folder: str | None, fail_on: str | None, config: StatsConfig, **settings: Any
) -> int:
    """See ``LEADERBOARD_HELP``."""
    from equipoise.domains.bench.leaderboard import N_STEPS
    from equipoise.domains.bench.leaderboard import leaderboard as analyse
    from equipoise.domains.bench.leaderboard_report import leaderboard_view
    from equipoise.runs.experiment_folder import check_writable

    if table is None:
        raise ParameterError("no table was given", hint="name a table or a folder: eq leaderboard mteb.csv")
    if folder is not None:
        check_writable(folder)
    with out.progress(N_STEPS) as step:
        analysis = analyse(table, config=config, progress=step, **settings)
    if out.json:
        out.data(analysis.to_dict())
    else:
        details = "" if folder is None else f"{folder}/report.html"
        out.view(leaderboard_view(analysis, details))
    if folder is not None:
        results, page = analysis.write(folder)
        out.note(f"wrote {results} and {page}")
    return exits.gate(out, analysis.findings, fail_on)
