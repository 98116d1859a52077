"""``eq demo``: compare the installed models on a sample document."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.domains.fair.config import FAIR_STATS

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.fair.plan import Plan
    from equipoise.domains.fair.results import FairComparison

DEMO_HELP = """
\b
  eq demo
  eq demo -o results/ --json

Compare the installed models with lexical baselines: each searches a text on the history of
timekeeping for the answers to 130 questions. Nothing is downloaded. Each model is tuned
separately on a small grid and scored on held-out questions. The results and an HTML report are
written to a folder; re-running the command reuses them.
"""

PAGE = "report.html"
MODELS = ("minilm", "use", "wordllama")
LEXICAL_MODELS = ("bm25", "tfidf", "hash")
CHUNK_SIZES, OVERLAPS = (50, 100, 200), (0, 20)
BUDGET = 800
"""Token budget per question: 4 of the largest chunks or 16 of the smallest."""

BASELINE = {"chunk_size": 200, "overlap": 20, "top_k": 4}


@options.command(help=DEMO_HELP, short_help="Compare models on a sample document.")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default="equipoise-demo",
    show_default=True,
    help="The output folder.",
)
@options.device_option
@options.stats_options(n_resamples=FAIR_STATS.n_resamples)
@options.table_options(file=False)
@options.output_options
@pass_output
def demo(out: Output, output: str, device: str | None, config: StatsConfig) -> int:
    """See ``DEMO_HELP``."""
    from equipoise.domains.fair.experiment import compare_models
    from equipoise.models.inventory import list_models
    from equipoise.models.resolve import resolve_models
    from equipoise.runs.experiment_folder import check_writable, exit_code

    check_writable(output)
    with out.working("chunking the sample document"):
        plan = _plan(config)
    installed = [listing.spec for listing in list_models() if listing.spec in MODELS and listing.works]
    models = options.models_on_device(list(resolve_models([*installed, *LEXICAL_MODELS])), device, out)
    _announce(out, plan, len(models))
    with out.progress(len(models) * (len(plan.settings.chunkings) + 1)) as step:
        comparison = compare_models(models, plan, step=step, output=output, command=out.command)
    _write_report(out, comparison, Path(output))
    _show(out, comparison, Path(output))
    missing = [name for name in MODELS if name not in installed]
    if missing:
        out.note(f"Not installed: {', '.join(missing)}. See eq ls models.")
    return exit_code(comparison.failures)


def _plan(config: StatsConfig) -> Plan:
    """The sample document, its questions and the grid."""
    from equipoise.domains.fair.config import checked_settings
    from equipoise.domains.fair.experiment import prepare_comparison
    from equipoise.domains.fair.questions import timekeeping
    from equipoise.io.documents import TextDocument

    document, questions = timekeeping()
    settings = checked_settings(
        chunk_sizes=CHUNK_SIZES,
        overlaps=OVERLAPS,
        top_ks=[BUDGET // min(CHUNK_SIZES)],
        budget=BUDGET,
        baseline_params=BASELINE,
        tokenizer="words",  # so that the scores do not depend on the installed tokenizers
        stats=config,
    )
    return prepare_comparison(TextDocument("timekeeping.md", document), questions, settings, "questions.jsonl")


def _announce(out: Output, plan: Plan, systems: int) -> None:
    """Print what is compared, before the work starts."""
    words = sum(len(document.text.split()) for document in plan.dataset.documents)
    out.note(
        f"Comparing {systems} models on {len(plan.dataset.questions)} questions about a text of {words:,} words. "
        f"Each model is tuned separately, within {BUDGET} retrieved tokens per question on average.\n"
    )


def _show(out: Output, comparison: FairComparison, folder: Path) -> None:
    """Print the report or the JSON data."""
    from equipoise.domains.fair.report import fair_view

    if out.json:
        out.data(comparison.to_dict())
        return
    details = (
        f"Details: {folder / PAGE}, the same command with -v, or eq view {shlex.quote(str(folder))}.\n"
        "Next: eq fair compare for your own document, eq bench run for data sets, eq compare for existing runs."
    )
    out.view(fair_view(comparison, details))


def _write_report(out: Output, comparison: FairComparison, folder: Path) -> None:
    """Write the HTML report into the output folder."""
    from equipoise.domains.fair.report import fair_view
    from equipoise.report.publish import ReportOptions, chart_note, write_report
    from equipoise.runs.experiment_folder import RUNS, folder_names

    names = folder_names(comparison.keys)
    runs = [(spec, folder / RUNS / names[spec]) for spec in comparison.tunings]
    write_report(runs, folder / PAGE, ReportOptions(view=fair_view(comparison)))
    if chart_note():
        out.note(f"wrote {folder / PAGE}{chart_note()}")
