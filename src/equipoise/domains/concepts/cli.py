"""``eq concepts run``: five scores, their composite, and what to use for what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.checks.registry import run_checks
from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.app import CommandEntry, LazyGroup
from equipoise.cli.options import MultiValueOption, SeveralCommand
from equipoise.cli.output import Output, pass_output
from equipoise.domains.concepts.concept_set_reader import read_with_issues
from equipoise.domains.concepts.dataset_report import concept_set_report, summary_lines
from equipoise.errors import ParameterError
from equipoise.types import Finding, Severity

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.concepts.concept_set import ConceptSet
    from equipoise.domains.concepts.results import ConceptEvaluation

# ``eq concepts``: what sentence models know of a field, and whether the field is fit to tell.

COMMANDS = {
    "run": CommandEntry("equipoise.domains.concepts.cli:run", "Score models on a field: five scores and their parts."),
    "check": CommandEntry("equipoise.domains.concepts.cli:check", "Check the files of a field."),
}

GROUP_HELP = """
\b
  eq concepts run --models minilm wordllama -o results/
  eq concepts check my_field/

See what a sentence model knows of a field: similar pairs, clusters, types of entities,
relations, and the quality of the space. A field of philosophy comes with the program.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=GROUP_HELP, short_help="See what a model knows of a field.")
def concepts() -> None:
    """See ``GROUP_HELP``."""


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


class ConceptTaskParam(options.NameType):
    """A task, or the name of its score."""

    name = "task"

    def known(self) -> Iterable[tuple[str, str]]:
        """The five tasks."""
        from equipoise.domains.concepts.scores import CONCEPT_SCORES

        return ((task, blend.name) for task, blend in CONCEPT_SCORES.items())


@click.command(cls=SeveralCommand, help=HELP, short_help="Score models on a field.")
@click.option(
    "--models",
    cls=MultiValueOption,
    type=options.ModelType(),
    metavar="MODEL ...",
    help="The models; see eq ls models. Without it, those that work here offline.",
)
@click.option("--data", metavar="FIELD", help="A folder or a file; the field of philosophy if not given.")
@click.option(
    "--task",
    "asked",
    cls=MultiValueOption,
    commas=True,
    type=ConceptTaskParam(),
    metavar="TASK ...",
    help="Only these: similarity, clustering, entities, relations, quality.",
)
@click.option(
    "--weight",
    "weights",
    cls=MultiValueOption,
    commas=True,
    metavar="TASK=N ...",
    help="Weights of the composite; all five count alike if not given.",
)
@click.option("--scale", type=float, metavar="MOST", help="The largest score, where it is not 1: 5 for STS.")
@options.stats_options(omit=("test", "correction", "n_permutations"), n_resamples=200, min_resamples=20)
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
    config: StatsConfig,
    **settings: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.domains.concepts.concept_set_reader import read_concept_set
    from equipoise.domains.concepts.experiment import evaluate_concepts, select_tasks
    from equipoise.runs.experiment import check_writable, exit_code
    from equipoise.runs.progress import report_progress

    if output is not None:
        check_writable(output)
    weighed = _weights(weights)
    field = read_concept_set(data, scale=settings.pop("scale"))
    named = models or _here()
    steps = len(named) * (len(select_tasks(field, asked)[0]) + 1)
    with (
        out.progress(steps) as step,
        report_progress(output, "concepts", steps, command=out.command, step=step) as tell,
    ):
        found = evaluate_concepts(
            named,
            field,
            tasks=asked or None,
            weights=weighed,
            progress=tell,
            command=out.command,
            confidence_level=config.confidence_level,
            n_resamples=config.n_resamples,
            seed=config.seed,
            **settings,
        )
    _show(out, found, output)
    gate = exits.gate(out, found.findings, fail_on)
    return exit_code(found.failures) or gate


def _here() -> tuple[str, ...]:
    """The usual offline models that work here."""
    from equipoise.models.inventory import list_models

    works = {each.spec for each in list_models() if each.works}
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
    from equipoise.domains.concepts.report import concepts_report

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
        fields = {"model": name, "code": error.code, "message": error.message, "hint": error.hint}
        out.error(fields, error.render())
    if not out.quiet and not out.json:
        _suggest(out, found, output)


def _suggest(out: Output, found: ConceptEvaluation, output: str | None) -> None:
    """The next command to type."""
    from equipoise.cli.output import after_comparison, suggestion
    from equipoise.report.findings import sort_by_severity
    from equipoise.runs.experiment import RUNS, folder_names

    observed = next(iter(found.scores.values())).tasks[found.tasks[0]].observed
    if output is not None:
        place = Path(output) / RUNS / observed.main
        runs = [str(place / name) for name in folder_names(found.scores).values()]
        out.text(suggestion(["eq", "compare", *runs] if len(runs) > 1 else ["eq", "report", *runs]))
    else:
        known = observed.beside.get(observed.blend.truth) or next(iter(observed.parts.values()))
        out.text(after_comparison(sort_by_severity(found.findings), known.metric))


# ``eq concepts check``: whether the files of a field are fit to measure models with.

CHECK_HELP = """
\b
  eq concepts check my_field/
  eq concepts check sts.csv --scale 5 --json

Check pairs, clusters, entities, relations and concepts: missing keys, empty texts, duplicates,
similarities out of range, offsets that do not match. All problems are listed at once. FIELD is
a folder with any of pairs, clusters, entities, relations and concepts as .json, .jsonl, .csv or
.tsv, or one such file; without it, the field that comes with the program is checked. Exit code 1
means that something should be mended, 2 that the field cannot be used as it is.
"""


@click.command(help=CHECK_HELP, short_help="Check the files of a field.")
@click.argument("field", metavar="[FIELD]", required=False)
@click.option("--scale", type=float, metavar="MOST", help="The largest score, where it is not 1: 5 for STS.")
@options.output_options
@pass_output
def check(out: Output, /, field: str | None, scale: float | None) -> int:
    """See ``CHECK_HELP``."""
    seen = read_with_issues(field, scale=scale)
    findings = run_checks(seen)
    if out.json:
        out.data(_data(seen, findings))
    else:
        out.show(*concept_set_report(seen, findings, quiet=out.quiet, verbose=out.verbose))
    return _exit_code(seen, findings)


def _exit_code(field: ConceptSet, findings: tuple[Finding, ...]) -> int:
    if any(problem.fatal for problem in field.problems):
        return exits.BAD_INPUT
    return exits.GATE_FAILED if any(each.severity is Severity.ISSUE for each in findings) else exits.DONE


def _data(field: ConceptSet, findings: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "field": field.name,
        "usable": not any(problem.fatal for problem in field.problems),
        "parts": {part: len(getattr(field, part)) for part in field.present},
        "facts": summary_lines(field),
        "problems": [{"rule": problem.rule, "fatal": problem.fatal, **_told(problem)} for problem in field.problems],
        "findings": [asdict(finding) for finding in findings],
        "not_read": field.unread,
        "fingerprint": field.fingerprint,
    }


def _told(problem: Any) -> dict[str, str]:
    return {"file": problem.file, "message": problem.message, "hint": problem.hint}
