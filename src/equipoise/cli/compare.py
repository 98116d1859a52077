"""``eq compare``: who leads, and whether the data can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, Step, pass_output
from equipoise.cli.scoring import Statistics, catalogue_with
from equipoise.cli.sources import Reading, Source, needs_labels, sources
from equipoise.cli.suggest import after_comparison
from equipoise.errors import ParameterError
from equipoise.evidence.base import Evidence
from equipoise.metrics.catalogue import Catalogue
from equipoise.report.comparison import comparison_part
from equipoise.report.findings import findings_part, gravest_first
from equipoise.run.evaluate import compare as compare_systems
from equipoise.run.store import read_run
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result

HELP = """
\b
  eq compare a.trec b.trec c.trec --qrels truth.qrels --primary nDCG@10
  eq compare results/a results/b --primary MRR -m "HR@{1,10}"

Compare two or more systems on the same units: differences to the leader with adjusted p,
wins and losses, tie bands and rank intervals, and a sentence on what the data can tell.
SYSTEMS are run files (with --qrels), matrices of logits (with --targets), or run
directories written by eq score -o; NAME=path gives a system a name of its own.
"""


@dataclass(frozen=True)
class Settings:
    """What is to be compared, and how."""

    metrics: tuple[str, ...] = ()
    primary: str | None = None
    test: str = "randomisation"
    correction: str = "holm"
    flips: int = 10_000
    statistics: Statistics = field(default_factory=Statistics)

    def compare(self, systems: dict[str, Evidence | Result], catalogue: Catalogue) -> Comparison:
        """The comparison; a primary metric alone is compared alone."""
        asked = self.metrics or ((self.primary,) if self.primary else None)
        return compare_systems(
            systems,
            asked,
            primary=self.primary,
            test=self.test,
            correction=self.correction,
            flips=self.flips,
            catalogue=catalogue,
            **self.statistics.options(next(iter(systems.values()))),
        )


@click.command(help=HELP, short_help="Compare systems.")
@click.argument("systems", nargs=-1)
@options.reading_options
@options.comparing_options
@options.metric_option
@options.flips_option
@options.statistics_options
@options.plugin_option
@options.fail_option
@options.output_options
@pass_output
def compare(
    out: Output,
    systems: tuple[str, ...],
    primary: str | None,
    metrics: tuple[str, ...],
    test: str,
    correction: str,
    flips: int,
    plugins: tuple[str, ...],
    fail_on: str | None,
    reading: Reading,
    statistics: Statistics,
) -> int:
    """See ``HELP``."""
    named = sources(systems)
    if len(named) < 2:
        raise ParameterError(
            f"a comparison needs at least two systems, and {len(named) or 'none'} was named",
            hint="name run files or run directories: eq compare a.trec b.trec --qrels truth.qrels",
        )
    settings = Settings(metrics, primary, test, correction, flips, statistics)
    catalogue = catalogue_with(plugins)
    labels = needs_labels([*metrics, *([primary] if primary else [])], catalogue)
    with out.progress(len(named) + 1) as step:
        gathered, cautions = gather(named, reading, step, labels=labels)
        step("comparing")
        comparison = settings.compare(gathered, catalogue)
    show(out, comparison, cautions)
    if cautions:
        return exits.FAILED_UNITS
    return exits.gate(out, comparison.findings, fail_on)


def gather(
    systems: Sequence[Source], reading: Reading, step: Step, *, labels: bool = False
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
            stored = read_run(system.path)
            delivered.append(stored.result)
            cautions += [stored.manifest.caution] if stored.manifest.caution else []
        else:
            delivered.append(reading.evidence(system, labels=labels))
    return dict(zip(_names(systems, delivered), delivered, strict=True)), cautions


def _names(systems: Sequence[Source], delivered: Sequence[Evidence | Result]) -> list[str]:
    """What each system is called; all by their files and folders where anything else is ambiguous."""
    named = [
        entry.system if isinstance(entry, Result) and not system.own else system.name
        for system, entry in zip(systems, delivered, strict=True)
    ]
    return named if len(set(named)) == len(named) else [system.name for system in systems]


def show(out: Output, comparison: Comparison, cautions: Sequence[str] = ()) -> None:
    """Print the comparison as data or for people."""
    for caution in cautions:
        out.note(f"caution: {caution}")
    if out.json:
        out.data(comparison.to_dict() | {"estimates": _estimates(comparison), "cautions": cautions})
        return
    findings = gravest_first(comparison.findings)
    out.show(*comparison_part(comparison, verbose=out.verbose, quiet=out.quiet))
    if not out.quiet:
        out.show(*findings_part(findings, verbose=out.verbose))
        out.text(after_comparison(findings, comparison.primary))


def _estimates(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """The estimates by system and metric, each in the shape that eq score gives it."""
    return {
        system: {metric: estimate.to_dict() for metric, estimate in estimates.items()}
        for system, estimates in comparison.estimates.items()
    }
