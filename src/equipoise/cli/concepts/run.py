"""``eq concepts run``: five scores, their composite, and what to use for what."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.several import Several, SeveralCommand
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.recipes.concepts.evaluation import ConceptEvaluation

HELP = """
\b
  eq concepts run --models minilm wordllama -o results/
  eq concepts run --models minilm use --data my_field/ --task similarity --task clustering

Score sentence models on a field: semantic similarity, clustering, entity recognition,
knowledge graph and embedding quality, each a declared blend with its parts, an interval and a
chance level; every pair of models compared; and which model to use for what, or that the data
do not say. Without --data the field of philosophy is used that comes with the program.

A field is a folder with any of pairs, clusters, entities, relations and concepts as .json,
.jsonl, .csv or .tsv, or one such file. With -o FOLDER, results.json, run directories for
eq compare and eq report, and the charts are written.
"""

DEFAULT_MODELS = ("minilm", "wordllama", "use")
"""Those that need no network; the ones that are installed are used where nobody names any."""


class ModelName(options.Spelled):
    """A model as it is written."""

    name = "model"

    def known(self) -> Iterable[tuple[str, str]]:
        """What works here."""
        from equipoise.embed.inventory import inventory

        return ((each.spec, each.title) for each in inventory())


class TaskName(options.Spelled):
    """A task, or the name of its score."""

    name = "task"

    def known(self) -> Iterable[tuple[str, str]]:
        """The five tasks."""
        from equipoise.recipes.concepts.blends import BLENDS

        return ((task, blend.name) for task, blend in BLENDS.items())


@click.command(cls=SeveralCommand, help=HELP, short_help="Score models on a field.")
@click.option(
    "--models",
    cls=Several,
    type=ModelName(),
    metavar="MODEL ...",
    help="The models; see eq ls models. Without it, those that work here offline.",
)
@click.option("--data", metavar="FIELD", help="A folder or a file; the field of philosophy if not given.")
@click.option(
    "--task",
    "asked",
    cls=Several,
    commas=True,
    type=TaskName(),
    metavar="TASK ...",
    help="Only these: similarity, clustering, entities, relations, quality.",
)
@click.option(
    "--weight",
    "weights",
    cls=Several,
    commas=True,
    metavar="TASK=N ...",
    help="Weights of the composite; all five count alike if not given.",
)
@click.option("--scale", type=float, metavar="MOST", help="The largest score, where it is not 1: 5 for STS.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option(
    "--resamples",
    type=click.IntRange(min=20),
    default=200,
    show_default=True,
    help="How often units are drawn again.",
)
@options.seed_option
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads a model.")
@click.option("-o", "--output", metavar="FOLDER", help="Write results, runs and charts here.")
@options.fail_option
@options.output_options
@pass_output
def run(
    out: Output,
    /,
    models: tuple[str, ...],
    data: str | None,
    asked: tuple[str, ...],
    weights: tuple[str, ...],
    output: str | None,
    fail_on: str | None,
    **settings: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.data.field import read_field
    from equipoise.recipes.concepts.evaluate import chosen_tasks, evaluate_concepts
    from equipoise.recipes.concepts.store import refuse_unwritable
    from equipoise.recipes.fair.comparison import exit_code
    from equipoise.run.progress import reported

    if output is not None:
        refuse_unwritable(Path(output))
    weighed = _weights(weights)
    field = read_field(data, scale=settings.pop("scale"))
    named = models or _here()
    steps = len(named) * (len(chosen_tasks(field, asked)[0]) + 1)
    with (
        out.progress(steps) as step,
        reported(output, "concepts", steps, command=out.command, step=step) as tell,
    ):
        found = evaluate_concepts(
            named,
            field,
            tasks=asked or None,
            weights=weighed,
            progress=tell,
            command=out.command,
            **settings,
        )
    _show(out, found, output)
    gate = exits.gate(out, found.findings, fail_on)
    return exit_code(found.failures) or gate


def _here() -> tuple[str, ...]:
    """The usual offline models that work here."""
    from equipoise.embed.inventory import inventory

    works = {each.spec for each in inventory() if each.works}
    found = tuple(name for name in DEFAULT_MODELS if name in works)
    if not found:
        raise ParameterError(
            "no model was named, and none of the usual ones is installed",
            hint="name one with --models; eq ls models says what each takes",
        )
    return found


def _weights(given: tuple[str, ...]) -> dict[str, float] | None:
    """``similarity=2`` and the like by task."""
    weights: dict[str, float] = {}
    for word in given:
        task, equals, number = word.partition("=")
        try:
            weights[task] = float(number)
        except ValueError:
            raise ParameterError(
                f"the weight {word!r} {'has no number' if equals else 'has no ='}",
                hint="write TASK=N, such as similarity=2",
            ) from None
    return weights or None


def _show(out: Output, found: ConceptEvaluation, output: str | None) -> None:
    """The report for people or as data, and where it was written."""
    from equipoise.report.concepts import concepts_report

    if out.json:
        out.data(found.to_dict())
    else:
        out.show(*concepts_report(found.edition, verbose=out.verbose, quiet=out.quiet))
    if output is not None:
        # After the report: what was computed is not lost where it cannot be written.
        found.write(output)
        found.draw(output)
        out.note(f"wrote {output}")
    for name, error in found.failures.items():
        fields = {"model": name, "code": error.code, "sentence": error.sentence, "hint": error.hint}
        out.error(fields, error.render())
    if not out.quiet and not out.json:
        _suggest(out, found, output)


def _suggest(out: Output, found: ConceptEvaluation, output: str | None) -> None:
    """The next command to type."""
    from equipoise.cli.suggest import after_comparison, suggestion
    from equipoise.recipes.fair.store import RUNS, folder_names
    from equipoise.report.findings import gravest_first

    observed = next(iter(found.scores.values())).tasks[found.tasks[0]].observed
    if output is not None:
        place = Path(output) / RUNS / observed.main
        runs = [str(place / name) for name in folder_names(found.scores).values()]
        out.text(suggestion(["eq", "compare", *runs] if len(runs) > 1 else ["eq", "report", *runs]))
    else:
        known = observed.beside.get(observed.blend.truth) or next(iter(observed.parts.values()))
        out.text(after_comparison(gravest_first(found.findings), known.metric))
