"""``eq ls``: lists of models, metrics, checks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isinf
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.main import SuggestingGroup
from equipoise.cli.output import Output, pass_output
from equipoise.report.terminal import Paragraph, Part, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import format_bounds

if TYPE_CHECKING:
    from equipoise.models.inventory import ModelListing

# ``eq ls models``: which models work here, and what the others need.

MODELS_HELP = """
\b
  eq ls models
  eq ls models --json

List the models: the spec of each, whether it works on this machine, and what it still needs. No model is loaded,
and nothing is downloaded.
"""


@options.command(help=MODELS_HELP, short_help="List the models.")
@options.table_options()
@options.output_options
@pass_output
def models(out: Output) -> None:
    """See ``MODELS_HELP``."""
    from equipoise.models.inventory import list_models

    listings = list_models()
    if out.json:
        out.data(
            {"models": [{**asdict(listing), "here": listing.here, "works": _works(listing)} for listing in listings]}
        )
        return
    out.show(
        TerminalTable(
            [
                ReportColumn("model", [listing.spec for listing in listings]),
                ReportColumn("status", [listing.here for listing in listings], shortens="fold"),
                ReportColumn("dims", [_number(listing.dims) for listing in listings], right=True),
                ReportColumn("max tokens", [_number(listing.max_tokens) for listing in listings], right=True),
                ReportColumn("licence", [listing.licence for listing in listings]),
                ReportColumn("title", [listing.title for listing in listings], rank=1, shortens="end", extra=True),
            ]
        ),
        *_hints(listings),
    )


def _hints(listings: Sequence[ModelListing]) -> list[Paragraph]:
    """Each missing package once, with the command that installs it."""
    lines = {listing.missing.what: listing.missing.hint for listing in listings if not listing.works}
    return [Paragraph(hint, lead=f"{what}: ") for what, hint in lines.items()]


def _works(listing: ModelListing) -> bool | None:
    """Whether the model can be used now; None if that depends on its name, or on a server."""
    return None if listing.works and listing.here != "works" else listing.works


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


HELP = """
\b
  eq ls metrics --kind ranking
  eq ls models

List models, metrics, checks or tests. eq explain describes a metric, a check or a test.
"""

METRICS_HELP = """
\b
  eq ls metrics
  eq ls metrics --kind labels --plugin my_metric.py

List the metrics: name, title, kind of input (ranking, labels, sets, pairs or space) and direction. -v
also lists all aliases.
"""

CHECKS_HELP = """
\b
  eq ls checks
  eq ls checks --json

List the checks of data, results, comparisons and published tables. A check runs in every command to
which it applies; eq explain CODE describes it.
"""

TESTS_HELP = """
\b
  eq ls tests
  eq ls tests --json

List the paired tests that --test accepts, and the corrections that --correction accepts.
"""


@click.group(cls=SuggestingGroup, help=HELP, short_help="List models, metrics, checks or tests.")
def ls() -> None:
    """See ``HELP``."""


ls.add_command(models)


@ls.command(help=METRICS_HELP, short_help="List the metrics.")
@click.option(
    "--kind",
    type=options.ChoiceWithHint("kind of input", options.kinds),
    help="Only metrics for this kind of input.",
)
@options.plugin_option
@options.table_options()
@options.output_options
@pass_output
def metrics(out: Output, kind: str | None, plugins: tuple[str, ...]) -> None:
    """See ``METRICS_HELP``."""
    from equipoise.metrics.parser import catalogue_with

    listed = [metric for metric in catalogue_with(plugins) if kind in (None, metric.evidence.kind)]
    if out.json:
        out.data({"metrics": [metric_facts(metric) for metric in listed]})
        return
    out.show(*_metrics_part(listed, verbose=out.verbose))


def _metrics_part(listed: Sequence[Any], *, verbose: bool) -> list[Part]:
    """The table of the metrics, with ``verbose`` followed by their aliases."""
    names = [f"{metric.symbol}@k" if metric.needs_cutoff else metric.symbol for metric in listed]
    aliases = ReportColumn("aliases", [", ".join(metric.aliases) for metric in listed], rank=2, extra=True)
    columns = [
        ReportColumn("metric", names),
        ReportColumn("title", [metric.title for metric in listed], shortens="fold"),
        ReportColumn("input", [metric.evidence.kind for metric in listed]),
        ReportColumn("better", [str(metric.better) for metric in listed]),
        ReportColumn("range", [format_bounds(metric.bounds) for metric in listed], rank=1),
    ]
    if not verbose:
        return [TerminalTable([*columns, aliases], otherwise="-v lists them, or use --json")]
    width = max(map(len, names)) + 2
    lines = [Paragraph(cell, lead=f"{name:<{width}}") for name, cell in zip(names, aliases.cells, strict=True) if cell]
    return [TerminalTable(columns), Paragraph(""), heading("Aliases"), *lines]


@ls.command(help=CHECKS_HELP, short_help="List the checks.")
@options.table_options()
@options.output_options
@pass_output
def checks(out: Output) -> None:
    """See ``CHECKS_HELP``."""
    from equipoise.checks.base import all_checks

    listed = all_checks()
    if out.json:
        rows = [{"code": check.code, "severity": check.severity, "title": check.title} for check in listed]
        out.data({"checks": rows})
        return
    out.show(
        TerminalTable(
            [
                ReportColumn("code", [check.code for check in listed]),
                ReportColumn("severity", [str(check.severity) for check in listed]),
                ReportColumn("title", [check.title for check in listed], shortens="fold"),
            ]
        )
    )


@ls.command(help=TESTS_HELP, short_help="List the paired tests and corrections.")
@options.table_options()
@options.output_options
@pass_output
def tests(out: Output) -> None:
    """See ``TESTS_HELP``."""
    from equipoise.stats.multiple_comparisons import CORRECTIONS
    from equipoise.stats.paired_tests import TESTS

    rows = [
        {"option": "--test", "name": name, "title": test.title, "cite": test.cite} for name, test in TESTS.items()
    ] + [
        {"option": "--correction", "name": name, "title": title, "cite": ""} for name, (_, title) in CORRECTIONS.items()
    ]
    if out.json:
        out.data({"tests": rows})
        return
    out.show(
        TerminalTable(
            [
                ReportColumn("option", [row["option"] for row in rows]),
                ReportColumn("name", [row["name"] for row in rows]),
                ReportColumn("title", [row["title"] for row in rows]),
                ReportColumn("source", [row["cite"] for row in rows], rank=1, shortens="fold", extra=True),
            ]
        )
    )


def metric_facts(metric: Any) -> dict[str, Any]:
    """The declaration of a metric as plain values; an infinite bound is None."""
    return {
        "symbol": metric.symbol,
        "title": metric.title,
        "kind": metric.evidence.kind,
        "better": str(metric.better),
        "bounds": [None if isinf(bound) else bound for bound in metric.bounds],
        "unit": metric.unit,
        "needs_cutoff": metric.needs_cutoff,
        "aliases": list(metric.aliases),
        "formula": metric.formula,
        "undefined": metric.undefined,
        "cite": metric.cite,
    }
