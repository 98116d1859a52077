"""``eq leaderboard``: the uncertainty of the ranks in a published table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.options import ChoiceWithHint, MultiValueOption, SeveralCommand
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.leaderboard.experiment import LeaderboardAnalysis

HELP = """
\b
  eq leaderboard mteb.csv
  eq leaderboard results/ --missing models -o report/
  eq leaderboard per_query.csv --resample units --to md

Show which models may be first, and which ranks differ significantly. TABLE has models and data sets: CSV, TSV,
Markdown, LaTeX, JSON or parquet, one row per model, or one row per model, data set and
unit (query, question, ...). It may be a folder of MTEB results (MODEL/REVISION/TASK.json) or of
run directories written by eq score -o.

Rank intervals come from a paired bootstrap over the data sets, and over the units within them where the
table has them. Missing scores are never imputed. If scores have different scales, models are ordered by
Borda count.
"""

RANKS = "equipoise.stats.aggregate_ranks"
aggregates = options.names_in(RANKS, "AGGREGATES")
modes = options.names_in(RANKS, "RESAMPLE_MODES")
policies = options.names_in("equipoise.domains.leaderboard.data", "MISSING_POLICIES")
exports = options.names_in("equipoise.domains.leaderboard.report", "EXPORTS")


@click.command(cls=SeveralCommand, help=HELP, short_help="Show the uncertainty of published ranks.")
@click.argument("table", metavar="TABLE", required=False)
@click.option("--models", cls=MultiValueOption, metavar="MODEL ...", help="Only these models.")
@click.option("--datasets", cls=MultiValueOption, metavar="NAME ...", help="Only these data sets.")
@click.option("--lower", cls=MultiValueOption, metavar="NAME ...", help="Data sets on which lower scores are better.")
@click.option("--accuracy", is_flag=True, help="Scores are accuracies: recover the number of units from the digits.")
@click.option(
    "--missing",
    type=ChoiceWithHint("policy", policies),
    default="datasets",
    show_default=True,
    help="With missing scores, keep complete data sets, keep complete models, or stop.",
)
@click.option(
    "--aggregate",
    type=ChoiceWithHint("aggregate", aggregates),
    help="How scores are aggregated over data sets. Default: mean.",
)
@click.option(
    "--resample",
    type=ChoiceWithHint("resampling", modes),
    help="Resample data sets, units within them, or both. Default: both if there are units and several data sets.",
)
@click.option(
    "--models-in",
    type=ChoiceWithHint("orientation", lambda: ("rows", "columns")),
    help="Whether models are in rows or columns.",
)
@click.option("-m", "--metric", metavar="NAME", help="The metric to read if there are several.")
@click.option("--split", metavar="NAME", help="The split of MTEB results. Default: test.")
@click.option("--subset", "subsets", cls=MultiValueOption, metavar="NAME ...", help="Subsets of MTEB results.")
@options.stats_options()
@click.option("--to", type=ChoiceWithHint("format", exports), help="Write the leaderboard in this format.")
@click.option("-o", "--output", "folder", metavar="FOLDER", help="Write results.json and report.html here.")
@options.fail_option
@options.output_options
@pass_output
def leaderboard(
    out: Output,
    /,
    table: str | None,
    to: str | None,
    folder: str | None,
    fail_on: str | None,
    config: StatsConfig,
    **settings: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.domains.leaderboard.experiment import N_STEPS
    from equipoise.domains.leaderboard.experiment import leaderboard as analyse
    from equipoise.runs.experiment_folder import check_writable

    if table is None:
        raise ParameterError("no table was given", hint="name a table or a folder: eq leaderboard mteb.csv")
    if folder is not None:
        check_writable(folder)
    with out.progress(N_STEPS) as step:
        analysis = analyse(table, config=config, progress=step, **settings)
    _show(out, analysis, to, folder)
    return output.gate(out, analysis.findings, fail_on)


def _show(out: Output, analysis: LeaderboardAnalysis, to: str | None, folder: str | None) -> None:
    """Print the leaderboard, and write the files."""
    from equipoise.domains.leaderboard.report import SHOWN_MODELS, leaderboard_view

    if to is not None:
        out.file(analysis.export(to))
    elif out.json:
        out.data(analysis.to_dict())
    else:
        details = "" if folder is None else f"{folder}/report.html"
        out.view(leaderboard_view(analysis, details, None if out.verbose else SHOWN_MODELS))
    if folder is not None:
        results, page = analysis.write(folder)
        out.note(f"wrote {results} and {page}")
