"""``eq fair validate``: whether a fixture of questions is fit to compare systems with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from equipoise.cli import exits, options
from equipoise.cli.options import Command
from equipoise.cli.output import Output, pass_output
from equipoise.cli.several import Several, SeveralCommand
from equipoise.data.documents import read_documents
from equipoise.data.fixture import read_fixture
from equipoise.errors import ParameterError
from equipoise.recipes.fair.validation import ValidationResult, validate_fixture
from equipoise.recipes.fair.validation.view import report_of
from equipoise.report.fixture import fixture_part
from equipoise.tasks.answers.matcher import MATCHERS

HELP = """
\b
  eq fair validate --qa fixture.json --doc document.txt
  eq fair validate --qa fixture.jsonl --doc manual.pdf --doc notes/ --min-multihop 5 --json

Check questions and answers before models are compared on them: answers that the document
does not hold, with the closest passage; answers that stand at several places or are cut by
chunk borders; questions asked twice; shares of categories and difficulties; and what so many
questions can show. Without --doc no answer is verified. Exit code 1 means invalid.
"""


def _number(
    name: str, kind: type[int] | type[float], default: float, words: str, *, into: str = ""
) -> Callable[[Command], Command]:
    """An option with a number; ``into`` is the parameter it fills, where that has another name."""
    names = (name, into) if into else (name,)
    return click.option(*names, type=kind, default=default, show_default=True, help=words)


@click.command(cls=SeveralCommand, help=HELP, short_help="Check a fixture of questions and answers.")
@click.option("--qa", metavar="FILE", help="The fixture: JSON or JSONL with question and answer.")
@click.option(
    "--doc", "docs", cls=Several, metavar="PATH ...", help="Documents or folders that hold the answers."
)
@_number("--min-questions", int, 50, "The fewest questions that are valid.")
@_number("--recommended-questions", int, 80, "How many there should be.")
@_number("--min-multihop", float, 10.0, "The least percentage of multi_hop.", into="min_multihop_pct")
@_number("--recommended-multihop", float, 20.0, "What it should be.", into="recommended_multihop_pct")
@_number("--min-hard", float, 30.0, "The least percentage of hard.", into="min_hard_pct")
@_number("--recommended-hard", float, 40.0, "What it should be.", into="recommended_hard_pct")
@_number("--chunk-size", int, 512, "Tokens of a chunk.")
@_number("--overlap", int, 50, "Tokens that two chunks share.")
@_number("--top-k", int, 10, "Chunks that a search returns.")
@click.option("--tokenizer", metavar="MODEL", help="Count tokens as this model does; words or cl100k.")
@click.option(
    "--matcher",
    type=options.OneOf("matcher", lambda: MATCHERS),
    default="words",
    show_default=True,
    help="The rule that finds answers.",
)
@options.output_options
@pass_output
def validate(out: Output, /, qa: str | None, docs: tuple[str, ...], **settings: Any) -> int:
    """See ``HELP``."""
    if qa is None:
        raise ParameterError("there is no fixture to check", hint="name a JSON or JSONL file with --qa")
    result = validate_fixture(read_fixture(qa), read_documents(*docs) if docs else None, **settings)
    _show(out, result)
    return exits.DONE if result.is_valid else exits.GATE_FAILED


def _show(out: Output, result: ValidationResult) -> None:
    if out.json:
        out.data(result.to_dict())
    else:
        out.show(*fixture_part(report_of(result), quiet=out.quiet, verbose=out.verbose))
