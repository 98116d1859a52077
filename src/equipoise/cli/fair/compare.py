"""``eq fair compare``: each model tuned by itself, all compared on questions that did not tune them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.engines import engine_options, running
from equipoise.cli.output import Output, pass_output
from equipoise.cli.several import Several, SeveralCommand
from equipoise.types import labelled

if TYPE_CHECKING:
    from equipoise.recipes.fair.comparison import FairComparison
    from equipoise.run.engines.base import Engine

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
GOES_ON = "the same command typed again computes only what is missing"


class ModelName(options.Spelled):
    """A model as it is written."""

    name = "model"

    def known(self) -> Iterable[tuple[str, str]]:
        """What works here."""
        from equipoise.embed.inventory import inventory

        return ((each.spec, each.title) for each in inventory())


chunkers = options.names_in("equipoise.embed.chunk.chunkers", "CHUNKERS")
matchers = options.names_in("equipoise.tasks.answers.matcher", "MATCHERS")
ways_with_absent = options.names_in("equipoise.recipes.fair.settings", "ABSENT")


def _several(name: str, default: Sequence[int], least: int, text: str) -> options.Decorator:
    """An option that takes several whole numbers."""
    return click.option(
        name,
        cls=Several,
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
    cls=Several,
    required=True,
    metavar="PATH ...",
    help="Documents, or folders of them.",
)
@click.option("--qa", "fixture", required=True, metavar="FILE", help="The questions and answers.")
@click.option(
    "--models",
    cls=Several,
    required=True,
    type=ModelName(),
    metavar="MODEL ...",
    help="The models; see eq ls models.",
)
@_several("--chunk-sizes", (256, 384, 512), 1, "Chunk sizes to try, in tokens.")
@_several("--overlaps", (25, 50, 100), 0, "Overlaps to try, in tokens.")
@_several("--top-ks", (5, 10, 15), 1, "How many chunks to retrieve.")
@click.option(
    "--chunkers",
    "chunker_names",
    cls=Several,
    commas=True,
    type=options.OneOf("chunker", chunkers),
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
@options.one_of("--absent", "way with absent answers", ways_with_absent, "refuse", ABSENT_HELP)
@click.option("--tokenizer", metavar="NAME", help="What tokens are: cl100k, words, or those of a model.")
@options.seed_option
@options.test_option
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads a model.")
@click.option(
    "-o", "--output", metavar="FOLDER", help="Write results here; a name in .json gets only a list."
)
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
    engine: Engine,
    **settings: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.data.documents import read_documents
    from equipoise.data.fixture import read_fixture
    from equipoise.recipes.fair.compare import compare_models, planned
    from equipoise.recipes.fair.models import named_models
    from equipoise.recipes.fair.settings import checked_settings
    from equipoise.recipes.fair.store import refuse_unwritable

    if output is not None:
        refuse_unwritable(Path(output))
    checked = checked_settings(chunkers=chunker_names, **settings)
    named = named_models(models)
    text, asked = read_documents(*documents), read_fixture(fixture)
    with running(engine, out, "a model"):
        plan = planned(text, asked, checked)
        with out.progress(len(named) * (len(plan.shelved) + 1)) as step:
            found = compare_models(
                named, plan, threads=threads, step=step, output=output, command=out.command, engine=engine
            )
    _show(out, found, output)
    return _code(out, found, fail_on)


def _show(out: Output, found: FairComparison, output: str | None) -> None:
    """The report for people or as data, and where it was written."""
    from equipoise.recipes.fair.store import is_list
    from equipoise.report.fair import fair_report

    for name in found.resumed:
        out.note(labelled(name, f"read back from {output}, nothing computed again"))
    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*fair_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        out.note(f"wrote {output}")
        if not is_list(Path(output)):
            found.draw(output)
            _tell_strangers(out, found, Path(output))
    _tell_failures(out, found)
    if found.failures and output is not None:
        out.note(GOES_ON)
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
            fields = {"model": name, "code": error.code, "sentence": error.sentence, "hint": error.hint}
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
    from equipoise.cli.suggest import after_comparison, suggestion
    from equipoise.recipes.fair.store import is_list
    from equipoise.report.findings import gravest_first

    if output is not None and not is_list(Path(output)) and len(found.outcomes) > 1:
        return suggestion(["eq", "compare", *map(str, found.runs(output))])
    return after_comparison(gravest_first(found.findings), "HR@10")


def _code(out: Output, found: FairComparison, fail_on: str | None) -> int:
    from equipoise.recipes.fair.comparison import exit_code

    gate = exits.gate(out, found.findings, fail_on)
    return exit_code(found.failures) or gate
