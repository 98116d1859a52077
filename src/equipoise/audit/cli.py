"""``eq audit``: find impossible values in published tables."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.audit.audit import Audit, audit_table
from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, ParameterError

HELP = """
\b
  eq audit table.csv --n 200
  eq audit paper.tex --one-relevant
  eq audit results/ --json

Find values that cannot be true: violated identities, hit rates that decrease with k, reciprocal
ranks that contradict hit rates, means that n units cannot give, and more (eq ls checks). TABLE is
JSON, CSV, TSV, Markdown, LaTeX or a folder of such files, or - for standard input. Rounding is
taken into account: a value is impossible only if no unrounded number fits. Each finding shows its
derivation.

A column of shares without a percent sign is read as percent or as fractions by all of its values;
--percent and --fractions decide it. A file that cannot be read is reported, and the others are audited.

Exit with status 1 on impossible or misleading values, 3 if some files could not
be read, 0 otherwise.
"""


@click.command(help=HELP, short_help="Find impossible values in a published table.")
@click.argument("tables", metavar="TABLE...", nargs=-1)
@click.option("--n", type=int, help="The number of units of every value.")
@click.option("--one-relevant", is_flag=True, help="Every unit has one relevant item.")
@click.option("--binary", is_flag=True, help="Items are relevant or not, without grades.")
@click.option("--no-ties", is_flag=True, help="Every unit is a hit or a miss; ties are not averaged over.")
@click.option("--map-over-relevant", is_flag=True, help="MAP is divided by relevant items, not by those found.")
@click.option("--fractions", is_flag=True, help="Shares without a percent sign are fractions.")
@click.option("--percent", is_flag=True, help="Shares without a percent sign are percent.")
@options.table_options()
@options.output_options
@pass_output
def audit(out: Output, /, tables: tuple[str, ...], n: int | None, **declared: bool) -> int:
    """See ``HELP``."""
    if not tables:
        raise ParameterError("there is no table", hint="eq audit table.csv")
    audits: list[Audit] = []
    failures: list[EquipoiseError] = []
    for table in tables:
        try:
            audits.append(audit_table(Path(table), n=n, **declared))
        except EquipoiseError as error:
            failures.append(error)
    if not audits:
        raise failures[0]
    _show(out, audits)
    failures += [failure for audit in audits for failure in audit.failures]
    for failure in failures:
        output.report(failure, out)
    if any(audit.issues for audit in audits):
        return output.GATE_FAILED
    return output.FAILED_UNITS if failures else output.DONE


def _show(out: Output, audits: list[Audit]) -> None:
    if out.json:
        contents = [audit.to_dict() for audit in audits]
        sums = {kind: sum(content[kind] for content in contents) for kind in ("impossible", "misleading")}
        out.data({**sums, "tables": contents})
        return
    from equipoise.audit.report import audit_report

    for audit_result in audits:
        out.show(*audit_report(audit_result, quiet=out.quiet))
