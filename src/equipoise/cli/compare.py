"""``eq compare``: who leads, and whether the data can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options, output
from equipoise.cli.inputs import ClusterOptions, EvidenceOptions, SystemInput, needs_labels, parse_systems
from equipoise.cli.output import Output, Step, pass_output
from equipoise.cli.score import catalogue_with
from equipoise.errors import ParameterError
from equipoise.report.answer import AnswerOptions, cost_report_columns
from equipoise.report.findings import findings_section
from equipoise.report.pairwise import comparison_sections
from equipoise.runs.compare import compare as compare_systems
from equipoise.runs.run_directory import read_manifest
from equipoise.runs.store import load_run
from equipoise.stats.result import Result
from equipoise.stats.verdict import Vocabulary

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.evidence.base import Evidence
    from equipoise.stats.comparison import Comparison

HELP = """
\b
  eq compare a.trec b.trec c.trec --qrels truth.qrels --primary nDCG@10
  eq compare results/a results/b --primary MRR -m "HR@{1,10}"

Compare two or more systems on the same units: differences to the leader with adjusted p,
wins and losses, tie bands and rank intervals, and a sentence on what the data can tell.
SYSTEMS are run files (with --qrels), matrices of logits (with --targets), or run
directories written by eq score -o; NAME=path gives a system a name of its own.
"""


@click.command(help=HELP, short_help="Compare systems.")
@click.argument("systems", nargs=-1)
@options.reading_options
@options.primary_option
@options.metric_option
@options.ties_option
@options.cluster_options
@options.stats_options()
@options.plugin_option
@options.fail_option
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
    named = parse_systems(systems)
    if len(named) < 2:
        raise ParameterError(
            f"a comparison needs at least two systems, and {len(named) or 'none'} was named",
            hint="name run files or run directories: eq compare a.trec b.trec --qrels truth.qrels",
        )
    catalogue = catalogue_with(plugins)
    labels = needs_labels([*metrics, *([primary] if primary else [])], catalogue)
    with out.progress(len(named) + 1) as step:
        gathered, cautions = gather(named, reading, step, labels=labels)
        step("comparing")
        units = next(iter(gathered.values())).unit_ids.tolist()
        comparison = compare_systems(
            gathered,
            metrics or ((primary,) if primary else None),
            primary=primary,
            config=ClusterOptions(cluster, cluster_by).resolve(config, units),
            catalogue=catalogue,
        )
    stored = {name: system.path for name, system in zip(gathered, named, strict=True) if system.is_stored}
    show_comparison(out, comparison, cautions, {name: read_manifest(path).cost for name, path in stored.items()})
    if cautions:
        return output.FAILED_UNITS
    return output.gate(out, comparison.findings, fail_on)


def gather(
    systems: Sequence[SystemInput], reading: EvidenceOptions, step: Step, *, labels: bool = False
) -> tuple[dict[str, Evidence | Result], list[str]]:
    """What each system delivered, and a caution for every stored run that is not complete.

    A stored run has the name of its system, as in a report, unless it was given another one here. Where two
    runs are of one system, all go by their folders.
    """
    delivered: list[Evidence | Result] = []
    cautions = []
    for system in systems:
        step(f"reading {system.name}")
        if system.is_stored:
            stored = load_run(system.path)
            delivered.append(stored.result)
            cautions += [stored.manifest.caution] if stored.manifest.caution else []
        else:
            delivered.append(reading.evidence(system, labels=labels))
    return dict(zip(_names(systems, delivered), delivered, strict=True)), cautions


def _names(systems: Sequence[SystemInput], delivered: Sequence[Evidence | Result]) -> list[str]:
    """What each system is called; all by their files and folders where anything else is ambiguous."""
    named = [
        entry.system if isinstance(entry, Result) and not system.own else system.name
        for system, entry in zip(systems, delivered, strict=True)
    ]
    return named if len(set(named)) == len(named) else [system.name for system in systems]


def show_comparison(
    out: Output,
    comparison: Comparison,
    cautions: Sequence[str] = (),
    costs: Mapping[str, Mapping[str, float | None]] | None = None,
) -> None:
    """Print the comparison as data or for people; ``costs`` are those of stored runs."""
    for caution in cautions:
        out.note(f"caution: {caution}")
    if out.json:
        out.data(comparison.to_dict() | {"estimates": _estimates(comparison), "cautions": cautions})
        return
    options = AnswerOptions(
        Vocabulary(comparison.unit_noun),
        columns=cost_report_columns(comparison.order, costs or {}),
        details="Details: add -v. The meaning of a code: eq explain CODE.",
    )
    out.show(*comparison_sections(comparison, options=options, verbose=out.verbose, quiet=out.quiet))
    if out.verbose:
        out.show(*findings_section(comparison.findings, verbose=True))


def _estimates(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """The estimates by system and metric, each in the shape that eq score gives it."""
    return {
        system: {metric: estimate.to_dict() for metric, estimate in estimates.items()}
        for system, estimates in comparison.estimates.items()
    }
