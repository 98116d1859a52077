"""``eq fair compare``: each model tuned by itself, all compared on questions that did not tune them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.app import CommandEntry, LazyGroup
from equipoise.cli.options import Command, MultiValueOption, SeveralCommand, engine_options, executor_context
from equipoise.cli.output import Output, pass_output
from equipoise.domains.fair.embedding_eval_matcher import MATCHERS
from equipoise.domains.fair.questions import read_questions
from equipoise.domains.fair.report import validation_view
from equipoise.domains.fair.validation import validate_fixture
from equipoise.domains.fair.validation_report import fixture_part
from equipoise.errors import ParameterError
from equipoise.io.documents import read_documents
from equipoise.types import with_label

if TYPE_CHECKING:
    from equipoise.domains.fair.results import FairComparison
    from equipoise.domains.fair.validation_result import ValidationResult
    from equipoise.runs.executors import Executor

# ``eq fair``: embedding models compared on one's own document and questions.

COMMANDS = {
    "compare": CommandEntry("equipoise.domains.fair.cli:compare", "Tune each model, compare them honestly."),
    "validate": CommandEntry("equipoise.domains.fair.cli:validate", "Check a fixture of questions and answers."),
}

GROUP_HELP = """
\b
  eq fair validate --qa fixture.json --doc document.txt
  eq fair compare --doc document.txt --qa fixture.json --models minilm bm25: -o results/

Compare embedding models on a document of your own: each gets the parameters that suit it,
and is scored on questions that had no say in choosing them.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=GROUP_HELP, short_help="Compare models on your document.")
def fair() -> None:
    """See ``GROUP_HELP``."""


HELP = """
\b
  eq fair compare --doc document.txt --qa fixture.json --models minilm bm25: -o results/
  eq fair compare --doc docs/ --qa qa.jsonl --models minilm use bm25: --budget 2000

Compare embedding models on a document of your own. For each model, every configuration of
the grid is tried; parameters are chosen on some questions and scored on others, and models
are compared in pairs on the same questions. The figures that choose and score on the same
questions are printed beside, named as optimistic.

Documents are .txt, .md, .html, .pdf and .docx files or folders of them; the fixture is JSON or
JSONL with "question", "answer" and, where they are known, "category" and "difficulty". With
-o FOLDER, results.json, a run directory a model and the charts are written; typed again, the
command goes on where it was. With -o FILE.json, only a list of the results is. With --engine ray
each model runs on a machine of a cluster; the figures are the same.
"""

ABSENT_HELP = "A question whose answer the document lacks: stop, count a miss, or leave it out."
RESUME_NOTE = "the same command typed again computes only what is missing"


chunkers = options.names_in("equipoise.models.chunking", "CHUNKERS")
matchers = options.names_in("equipoise.domains.fair.embedding_eval_matcher", "MATCHERS")
unanswerable_policies = options.names_in("equipoise.domains.fair.config", "UNANSWERABLE_POLICIES")


def _several(name: str, default: Sequence[int], least: int, text: str) -> options.Decorator:
    """An option that takes several whole numbers."""
    return click.option(
        name,
        cls=MultiValueOption,
        commas=True,
        type=click.IntRange(min=least),
        callback=lambda ctx, option, values: values or None,
        metavar="N ...",
        show_default=f"{' '.join(map(str, default))}, less for short documents",
        help=text,
    )


@click.command(cls=SeveralCommand, help=HELP, short_help="Compare models on your document.")
@click.option(
    "--doc",
    "documents",
    cls=MultiValueOption,
    required=True,
    metavar="PATH ...",
    help="Documents, or folders of them.",
)
@click.option("--qa", "fixture", required=True, metavar="FILE", help="The questions and answers.")
@click.option(
    "--models",
    cls=MultiValueOption,
    required=True,
    type=options.ModelType(),
    metavar="MODEL ...",
    help="The models; see eq ls models.",
)
@_several("--chunk-sizes", (256, 384, 512), 1, "Chunk sizes to try, in tokens.")
@_several("--overlaps", (25, 50, 100), 0, "Overlaps to try, in tokens.")
@_several("--top-ks", (5, 10, 15), 1, "How many chunks to retrieve.")
@click.option(
    "--chunkers",
    "chunker_names",
    cls=MultiValueOption,
    commas=True,
    type=options.ChoiceWithHint("chunker", chunkers),
    default=("fixed",),
    metavar="NAME ...",
    show_default="fixed",
    help="Ways to cut a document: fixed, section, sentence.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Choose only what retrieves at most N tokens a question.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Folds of the cross-validation; 1 is none, which flatters.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Random splits into folds; scores are means over them.",
)
@options.one_of("--matcher", "matcher", matchers, "words", "When a chunk holds an answer.")
@options.one_of("--absent", "way with absent answers", unanswerable_policies, "refuse", ABSENT_HELP)
@click.option("--tokenizer", metavar="NAME", help="What tokens are: cl100k, words, or those of a model.")
@options.seed_option
@options.test_option
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads a model.")
@click.option("-o", "--output", metavar="FOLDER", help="Write results here; a name in .json gets only a list.")
@engine_options
@options.fail_option
@options.output_options
@pass_output
def compare(
    out: Output,
    /,
    documents: tuple[str, ...],
    fixture: str,
    models: tuple[str, ...],
    chunker_names: tuple[str, ...],
    threads: int,
    output: str | None,
    fail_on: str | None,
    engine: Executor,
    **settings: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.domains.fair.config import checked_settings
    from equipoise.domains.fair.experiment import compare_models, prepare_comparison
    from equipoise.domains.fair.questions import read_questions
    from equipoise.io.documents import read_documents
    from equipoise.models.resolve import resolve_models
    from equipoise.runs.experiment import check_writable, is_json_file

    if output is not None:
        check_writable(output, example="results.json" if is_json_file(Path(output)) else None)
    checked = checked_settings(chunkers=chunker_names, **settings)
    named = resolve_models(models)
    text, asked = read_documents(*documents), read_questions(fixture)
    with executor_context(engine, out, "a model"):
        plan = prepare_comparison(text, asked, checked)
        with out.progress(len(named) * (len(plan.shelved) + 1)) as step:
            found = compare_models(
                named, plan, threads=threads, step=step, output=output, command=out.command, engine=engine
            )
    _show(out, found, output)
    return _code(out, found, fail_on)


def _show(out: Output, found: FairComparison, output: str | None) -> None:
    """The report for people or as data, and where it was written."""
    from equipoise.domains.fair.report import fair_report
    from equipoise.runs.experiment import is_json_file

    for name in found.resumed:
        out.note(with_label(name, f"read back from {output}, nothing computed again"))
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*fair_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        out.note(f"wrote {output}")
        if not is_json_file(Path(output)):
            found.draw(output)
            _tell_strangers(out, found, Path(output))
    _tell_failures(out, found)
    if found.failures and output is not None:
        out.note(RESUME_NOTE)
    if not out.quiet and not out.json:
        out.text(_next(found, output))


def _tell_failures(out: Output, found: FairComparison) -> None:
    """Each error once, and the models that it kept from a result; as data, an error a model."""
    alike: dict[str, list[str]] = {}
    for name, error in found.failures.items():
        alike.setdefault(error.render(), []).append(name)
    for rendered, names in alike.items():
        for name in names if out.json else names[:1]:
            error = found.failures[name]
            fields = {"model": name, "code": error.code, "message": error.message, "hint": error.hint}
            out.error(fields, rendered)
        if len(names) > 1:
            out.note(f"without a result for that: {', '.join(names)}")


def _tell_strangers(out: Output, found: FairComparison, folder: Path) -> None:
    """Name the runs in the folder that other calls left: they are no part of what was printed."""
    strangers = found.strangers(folder)
    for alike, why in ((True, "left by another call"), (False, "of other data, another grid or other rules")):
        names = [name for name, same in strangers.items() if same == alike]
        if names:
            verb = "is" if len(names) == 1 else "are"
            out.note(f"{', '.join(names)} in {folder} {verb} no part of this comparison ({why})")


def _next(found: FairComparison, output: str | None) -> str:
    """The next command to type."""
    from equipoise.cli.output import after_comparison, suggestion
    from equipoise.report.findings import sort_by_severity
    from equipoise.runs.experiment import is_json_file

    if output is not None and not is_json_file(Path(output)) and len(found.outcomes) > 1:
        return suggestion(["eq", "compare", *map(str, found.runs(output))])
    return after_comparison(sort_by_severity(found.findings), "HR@10")


def _code(out: Output, found: FairComparison, fail_on: str | None) -> int:
    from equipoise.runs.experiment import exit_code

    gate = exits.gate(out, found.findings, fail_on)
    return exit_code(found.failures) or gate


# ``eq fair validate``: whether a fixture of questions is fit to compare systems with.

VALIDATE_HELP = """
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


@click.command(cls=SeveralCommand, help=VALIDATE_HELP, short_help="Check a fixture of questions and answers.")
@click.option("--qa", metavar="FILE", help="The fixture: JSON or JSONL with question and answer.")
@click.option(
    "--doc",
    "docs",
    cls=MultiValueOption,
    metavar="PATH ...",
    help="Documents or folders that hold the answers.",
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
    type=options.ChoiceWithHint("matcher", lambda: MATCHERS),
    default="words",
    show_default=True,
    help="The rule that finds answers.",
)
@options.output_options
@pass_output
def validate(out: Output, /, qa: str | None, docs: tuple[str, ...], **settings: Any) -> int:
    """See ``VALIDATE_HELP``."""
    if qa is None:
        raise ParameterError("there is no fixture to check", hint="name a JSON or JSONL file with --qa")
    result = validate_fixture(read_questions(qa), read_documents(*docs) if docs else None, **settings)
    _validate_show(out, result)
    return exits.DONE if result.is_valid else exits.GATE_FAILED


def _validate_show(out: Output, result: ValidationResult) -> None:
    if out.json:
        out.data(result.to_dict())
    else:
        out.show(*fixture_part(validation_view(result), quiet=out.quiet, verbose=out.verbose))
