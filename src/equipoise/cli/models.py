"""``eq ls models``: what can be embedded with, and what is missing for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph

if TYPE_CHECKING:
    from equipoise.embed.inventory import Listed

HELP = """
\b
  eq ls models
  eq ls models --json

List the models: how each is written, whether it works here now, and what it would take.
No model is loaded for this, and nothing is fetched.
"""


@click.command(help=HELP, short_help="List the models.")
@options.output_options
@pass_output
def models(out: Output) -> None:
    """See ``HELP``."""
    from equipoise.embed.inventory import inventory

    found = inventory()
    if out.json:
        out.data({"models": [{**asdict(each), "here": each.here, "works": each.works} for each in found]})
        return
    out.show(
        FittedTable(
            [
                Column("model", [each.spec for each in found]),
                Column("here", [each.here for each in found], shortens="end"),
                Column("dims", [_number(each.dims) for each in found], right=True),
                Column("tokens", [_number(each.max_tokens) for each in found], right=True),
                Column("licence", [each.licence for each in found]),
                Column("what it is", [each.title for each in found], rank=1, shortens="end", extra=True),
            ]
        ),
        *_remedies(found),
    )


def _remedies(found: Sequence[Listed]) -> list[Paragraph]:
    """Below the table, each thing that is missing, once, with the line that helps."""
    lines = {each.lack.what: each.lack.remedy for each in found if not each.works}
    return [Paragraph(remedy, lead=f"{what}: ") for what, remedy in lines.items()]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
