"""``eq concepts check``: whether the files of a field are fit to measure models with."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from equipoise.checks.catalogue import examine
from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.data.field import Field, inspect_field
from equipoise.report.field import facts_of, field_part
from equipoise.types import Finding, Severity

HELP = """
\b
  eq concepts check my_field/
  eq concepts check sts.csv --scale 5 --json

Check pairs, clusters, entities, relations and concepts: missing keys, empty texts, duplicates,
similarities out of range, offsets that do not match. All problems are listed at once. FIELD is
a folder with any of pairs, clusters, entities, relations and concepts as .json, .jsonl, .csv or
.tsv, or one such file; without it, the field that comes with the program is checked. Exit code 1
means that something should be mended, 2 that the field cannot be used as it is.
"""


@click.command(help=HELP, short_help="Check the files of a field.")
@click.argument("field", metavar="[FIELD]", required=False)
@click.option("--scale", type=float, metavar="MOST", help="The largest score, where it is not 1: 5 for STS.")
@options.output_options
@pass_output
def check(out: Output, /, field: str | None, scale: float | None) -> int:
    """See ``HELP``."""
    seen = inspect_field(field, scale=scale)
    findings = examine(seen)
    if out.json:
        out.data(_data(seen, findings))
    else:
        out.show(*field_part(seen, findings, quiet=out.quiet, verbose=out.verbose))
    return _exit_code(seen, findings)


def _exit_code(field: Field, findings: tuple[Finding, ...]) -> int:
    if any(problem.fatal for problem in field.problems):
        return exits.BAD_INPUT
    return exits.GATE_FAILED if any(each.severity is Severity.ISSUE for each in findings) else exits.DONE


def _data(field: Field, findings: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "field": field.name,
        "usable": not any(problem.fatal for problem in field.problems),
        "parts": {part: len(getattr(field, part)) for part in field.present},
        "facts": facts_of(field),
        "problems": [
            {"rule": problem.rule, "fatal": problem.fatal, **_told(problem)} for problem in field.problems
        ],
        "findings": [asdict(finding) for finding in findings],
        "not_read": field.unread,
        "fingerprint": field.fingerprint,
    }


def _told(problem: Any) -> dict[str, str]:
    return {"file": problem.file, "sentence": problem.sentence, "hint": problem.hint}
