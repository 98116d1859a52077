"""``eq audit``: find impossible values in published tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from equipoise.audit.apply_rules import Audit, audit_table
from equipoise.checks.base import join_names, pluralize
from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, ParameterError
from equipoise.report.terminal import Paragraph, findings_section, heading
from equipoise.types import Finding, Severity

# The terminal report of an audit: values read, findings with derivations, and a summary.

_OPTION = re.compile(r"--[a-z-]+")


def audit_report(audit: Audit, *, quiet: bool = False) -> list[Paragraph]:
    """Title, summary, and findings with their derivations."""
    read = f"{pluralize(audit.n_values, 'value')} in {pluralize(audit.n_rows, 'row')}"
    parts = [heading(f"Audit of {audit.name}: {read}")]
    if not quiet:
        parts.append(Paragraph(audit_summary(audit)))
    findings = [finding for finding in audit.findings if not quiet or finding.severity is Severity.ISSUE]
    parts += findings_section(findings, verbose=not quiet)
    if audit.unread and not quiet:
        parts += [Paragraph(""), Paragraph(f"Not recognised as a metric or a number: {join_names(audit.unread)}.")]
    return parts


def audit_summary(audit: Audit) -> str:
    """One or two sentences with the counts of findings.

    >>> from equipoise.audit.apply_rules import audit_table
    >>> audit_summary(audit_table({"HR@1": 0.31, "MRR": 0.42}))
    'No impossible value was found, which does not mean that the values are correct.'
    """
    impossible, misleading = audit.impossible, audit.misleading
    sentences = []
    if impossible:
        sentences.append(f"{pluralize(len(impossible), 'impossible result')} in {_subjects(impossible)}.")
    if misleading:
        sentences.append(f"{pluralize(len(misleading), 'misleading value')} in {_subjects(misleading)}.")
    sentences += _conditional(audit.findings)
    if audit.issues:
        return " ".join(sentences)
    nothing = "No impossible value was found, which does not mean that the values are correct."
    return " ".join([nothing, *sentences])


def _conditional(findings: Sequence[Finding]) -> list[str]:
    """The number of results that depend on an assumption, and the options that declare it."""
    notes = [finding for finding in findings if finding.severity is Severity.NOTE]
    options = dict.fromkeys(word for note in notes for word in _OPTION.findall(note.hint))
    if not notes:
        return []
    count = f"{pluralize(len(notes), 'result')} would be impossible under an assumption"
    if not options:
        return [f"{count}."]
    return [f"{count}. If it holds, declare it with {' '.join(options)}."]


def _subjects(findings: Sequence[Finding]) -> str:
    return join_names(list(dict.fromkeys(finding.subject for finding in findings)))


HELP = """
\b
  eq audit table.csv --n 200
  eq audit paper.tex --one-relevant
  eq audit results/ --json

Find values that cannot be true: violated identities, hit rates that decrease with k, reciprocal ranks that contradict
hit rates, mean values that are impossible with n queries, and more (eq ls checks). TABLE is JSON, CSV, TSV, Markdown,
LaTeX or a folder of such files, or - for standard input. Rounding is taken into account: a value is impossible only
if no unrounded number fits. Each finding shows its derivation.

A column of scores without percent signs is read as percentages or as fractions, whichever fits all of its values;
--percent and --fractions override this. A file that cannot be read is reported, and the others are audited.

Exit status: 1 on findings of severity issue, 3 if some files could not be read, 0 otherwise. eq ls checks lists the
issues.
"""


@options.command(help=HELP, short_help="Find impossible values in a published table.")
@click.argument("tables", metavar="TABLE...", nargs=-1)
@click.option("--n", type=int, help="Number of queries (or other units) over which every value is averaged.")
@click.option("--one-relevant", is_flag=True, help="Every query has one relevant item.")
@click.option("--binary", is_flag=True, help="Items are relevant or not, without grades.")
@click.option("--no-ties", is_flag=True, help="Every query is a hit or a miss; ties are not averaged.")
@click.option(
    "--map-over-relevant",
    is_flag=True,
    help="AP is divided by the number of all relevant items, not only of those found.",
)
@click.option("--fractions", is_flag=True, help="Numbers without a percent sign are fractions.")
@click.option("--percent", is_flag=True, help="Numbers without a percent sign are percentages.")
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

    for audit_result in audits:
        out.show(*audit_report(audit_result, quiet=out.quiet))
