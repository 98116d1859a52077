"""``eq demo``: models that work here, compared on a document that comes with the program."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output

if TYPE_CHECKING:
    from equipoise.domains.fair.plan import Plan
    from equipoise.domains.fair.results import FairComparison

HELP = """
\b
  eq demo
  eq demo -o elsewhere/ --json

Let the models that work here look for the answers to questions about a text on how people
learned to keep time, beside systems that only look at words: nothing to download, nothing to
prepare. Each is tuned by itself, on a small grid, and scored on questions that did not tune
it. The results and a page about them are kept in a folder; typed again, the command reads them.
"""

MODELS = ("minilm", "use", "wordllama")
LEXICAL_MODELS = ("bm25", "tfidf", "hash")
CHUNK_SIZES, OVERLAPS = (50, 100, 200), (0, 20)
BUDGET = 800
"""Tokens that a system may retrieve for a question: four of the largest chunks, 16 of the smallest."""

BASELINE = {"chunk_size": 200, "overlap": 20, "top_k": 4}


@click.command(help=HELP, short_help="Compare models on a sample document.")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default="equipoise-demo",
    show_default=True,
    help="Where the results are kept.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@options.output_options
@pass_output
def demo(out: Output, output: str, seed: int) -> int:
    """See ``HELP``."""
    from equipoise.domains.fair.experiment import compare_models
    from equipoise.models.inventory import list_models
    from equipoise.models.resolve import resolve_models
    from equipoise.runs.experiment import check_writable, exit_code

    check_writable(output)
    plan = _plan(seed)
    here = [each.spec for each in list_models() if each.spec in MODELS and each.works]
    models = resolve_models([*here, *LEXICAL_MODELS])
    _announce(out, plan, len(models))
    with out.progress(len(models) * (len(plan.settings.chunkings) + 1)) as step:
        found = compare_models(models, plan, step=step, output=output, command=out.command)
    _show(out, found)
    _keep(out, found, Path(output))
    missing = [name for name in MODELS if name not in here]
    if missing:
        out.note(f"To let {', '.join(missing)} join in, see eq ls models.")
    return exit_code(found.failures)


def _plan(seed: int) -> Plan:
    """The sample document and its questions, and the grid that each system is tuned on."""
    from equipoise.domains.fair.config import checked_settings
    from equipoise.domains.fair.experiment import prepare_comparison
    from equipoise.domains.fair.questions import timekeeping

    document, questions = timekeeping()
    settings = checked_settings(
        chunk_sizes=CHUNK_SIZES,
        overlaps=OVERLAPS,
        top_ks=[BUDGET // min(CHUNK_SIZES)],
        budget=BUDGET,
        baseline_params=BASELINE,
        tokenizer="words",  # so that the figures do not depend on which tokenizers are installed
        seed=seed,
    )
    return prepare_comparison(document, questions, settings)


def _announce(out: Output, plan: Plan, systems: int) -> None:
    """Say what is compared and what is tried, before the wait."""
    words = sum(len(each.text.split()) for each in plan.material.documents)
    out.note(
        f"{systems} systems look for the answers to {len(plan.material.questions)} questions in a text of "
        f"{words:,} words about keeping time.\n"
        f"Each is tuned by itself: chunks of {_either(CHUNK_SIZES)} tokens that overlap by "
        f"{_either(OVERLAPS)},\nand as many as fit into {BUDGET} tokens. "
        "A token is a word or a punctuation mark.\n"
    )


def _either(numbers: tuple[int, ...]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}"


def _show(out: Output, found: FairComparison) -> None:
    """The report, for people or as data."""
    from equipoise.domains.fair.report import fair_report

    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*fair_report(found.edition, verbose=out.verbose, quiet=out.quiet))


def _keep(out: Output, found: FairComparison, folder: Path) -> None:
    """Write the page into the folder of the results, and say what to type next."""
    from equipoise.report.publish import chart_note, write_report
    from equipoise.runs.experiment import RUNS, folder_names

    out.note(f"wrote {folder}{os.sep}")
    names = folder_names(found.keys)
    runs = [(spec, folder / RUNS / names[spec]) for spec in found.tunings]
    page = folder / "report.html"
    write_report(runs, page)
    out.note(f"wrote {page}: open it in a browser{chart_note()}")
    if not out.json and not out.quiet:
        out.text(f"\nNext: eq view {shlex.quote(str(folder))}")
