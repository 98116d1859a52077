"""``eq compare``: which system is best, and whether the difference is significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli import options, output
from equipoise.cli.inputs import (
    EvidenceOptions,
    SystemInput,
    needs_labels,
    parse_systems,
    read_clusters,
    separate_experiments,
)
from equipoise.cli.output import Output, Step, pass_output
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError
from equipoise.metrics.parser import catalogue_with
from equipoise.report.answer import AnswerOptions, comparison_answer, metric_columns
from equipoise.runs.compare import compare as compare_systems
from equipoise.stats.verdict import DISPLAY, Vocabulary

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result

HELP = """
\b
  eq compare a.trec b.trec c.trec --qrels truth.qrels -m nDCG@10
  eq compare results/a results/b --primary MRR -m "HR@{1,10}" -o table.tex

Compare two or more systems on the same queries: paired differences with adjusted p values, wins and losses, tie bands
and rank intervals. SYSTEMS are run files (with --qrels), matrices of logits (with --targets), run directories such
as those written by eq score -o, or folders of them; NAME=path names a system. Systems are ordered by --primary
(default: the first metric). -v prints all pairs, wins and losses, and tie bands.
"""


@options.command(help=HELP, short_help="Compare systems.")
@click.argument("systems", nargs=-1, metavar="SYSTEMS...")
@options.reading_options
@options.primary_option
@options.metric_option
@options.ties_option
@options.cluster_options
@options.stats_options(of_runs=True)
@options.plugin_option
@options.fail_option
@options.log_option
@options.table_options()
@options.output_options
@pass_output
def compare(
    out: Output,
    systems: tuple[str, ...],
    primary: str | None,
    metrics: tuple[str, ...],
    plugins: tuple[str, ...],
    fail_on: str | None,
    cluster: str | None,
    cluster_by: str | None,
    reading: EvidenceOptions,
    config: StatsConfig,
) -> int:
    """See ``HELP``."""
    with separate_experiments(systems):
        inputs = parse_systems(systems)
    if len(inputs) < 2:
        from equipoise.runs.run_folder import find_runs

        for system in inputs:
            if Path(system.path).is_dir():
                find_runs(system.path)  # raises the error for a folder without runs
        raise ParameterError(
            f"a comparison needs at least two systems; there {'is 1' if inputs else 'are none'}",
            hint="eq compare a.trec b.trec --qrels truth.qrels",
        )
    catalogue = catalogue_with(plugins)
    labels = needs_labels([*metrics, *([primary] if primary else [])], catalogue)
    with separate_experiments(systems), out.progress(len(inputs) + 1) as step:
        evidence, runs = read_systems(inputs, reading, step, labels=labels, config=config)
        if runs:
            config = options.stats_of_runs(config, [run.result for run in runs])
        step("comparing")
        if cluster or cluster_by:
            units = next(iter(evidence.values())).unit_ids.tolist()
            config = replace(config, clusters=read_clusters(units, table=cluster, pattern=cluster_by))
        comparison = compare_systems(
            evidence,
            metrics or ((primary,) if primary else None),
            primary=primary,
            config=config,
            catalogue=catalogue,
            unit_noun=reading.unit_noun(inputs),
        )
    show_comparison(out, comparison, runs)
    if any(run.caution for run in runs):
        return output.FAILED_UNITS
    return output.gate(out, comparison.findings, fail_on)


def read_systems(
    inputs: Sequence[SystemInput],
    reading: EvidenceOptions,
    step: Step,
    *,
    labels: bool = False,
    config: StatsConfig = DEFAULT_STATS,
) -> tuple[dict[str, Evidence | Result], list[StoredRun]]:
    """Evidence or the stored result of each system of a command line by name, and the stored runs.

    A stored run has the name of its system, unless the command line names it. If two runs have the same name,
    all systems are named after their files and folders.
    """
    entries: list[Evidence | Result] = []
    stored: dict[int, StoredRun] = {}
    for index, system in enumerate(inputs):
        step(f"reading {system.name}")
        if system.is_stored:
            from equipoise.runs.run_folder import load_run

            stored[index] = load_run(system.path)
            entries.append(stored[index].result)
        elif reading.qrels is None and system.is_unit_table:
            entries.append(system.unit_result((), config))
        else:
            entries.append(reading.evidence(system, labels=labels))
    names = [
        stored[index].result.system if index in stored and not system.is_named else system.name
        for index, system in enumerate(inputs)
    ]
    if len(set(names)) < len(names):
        names = [system.name for system in inputs]
    runs = [run.renamed(names[index]) for index, run in stored.items()]
    return dict(zip(names, entries, strict=True)), runs


def show_comparison(out: Output, comparison: Comparison, runs: Sequence[StoredRun] = ()) -> None:
    """Print the comparison; ``runs`` are the stored ones among the systems."""
    cautions = [run.caution for run in runs if run.caution]
    for caution in cautions:
        out.note(f"caution: {caution}")
    out.log(lambda: comparison.to_dict(flat=True), f"compare {' '.join(comparison.systems)}")
    if out.json:
        from equipoise.report.export import comparison_dict

        out.data(comparison_dict(comparison) | {"cautions": cautions})
        return
    if out.to:
        from equipoise.report.export import export

        out.file(export(runs, comparison, out.to))
        return
    tables, options = comparison, AnswerOptions(comparison.words, details="Details: add -v.", explains_codes=True)
    if len(runs) == len(comparison.systems) and DISPLAY in runs[0].result.settings:
        from equipoise.report.build_view import comparison_in_percent, percent_names

        tables = comparison_in_percent(comparison, percent_names(runs[0]))
        words = Vocabulary.of([run.result for run in runs], comparison.primary)
        options = replace(options, words=words, findings=tables.findings)
    columns = metric_columns(tables, [name for name in tables.metrics if name != tables.primary])
    if runs:
        from equipoise.report.tables import cost_report_columns

        costs = {run.result.system: run.manifest.cost for run in runs}
        columns += cost_report_columns(comparison.order, costs)
    # Sentences give percentages with their sign and differences in points; tables have the unit in the heading.
    answer = comparison_answer(comparison, replace(options, columns=tuple(columns)))
    if out.verbose:
        from equipoise.report.pairwise import comparison_view

        out.view(replace(comparison_view(tables), answer=answer))
    else:
        out.show(*answer.parts(quiet=out.quiet))
