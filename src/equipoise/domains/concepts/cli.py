"""``eq concepts``: score sentence embedding models on a concept set, and check the files of a concept set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.checks.base import run_checks
from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.main import CommandEntry, LazyGroup
from equipoise.cli.options import MultiValueOption, engine_options, executor_context
from equipoise.cli.output import Output, pass_output
from equipoise.domains.concepts.scores import CONCEPT_SCORES, CONCEPT_STATS
from equipoise.errors import ParameterError
from equipoise.types import Severity, with_label

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.concepts.results import ConceptEvaluation
    from equipoise.report.view import View
    from equipoise.runs.executors import Executor

COMMANDS = {
    "run": CommandEntry(
        "equipoise.domains.concepts.cli:run", "Score models on a concept set: five scores and their components."
    ),
    "check": CommandEntry("equipoise.domains.concepts.cli:check", "Check the files of a concept set."),
}

CONCEPTS_HELP = """
\b
  eq concepts run --models minilm wordllama -o results/
  eq concepts check my_concepts/

Score sentence embedding models on a concept set: similarity, clustering, entity typing, link
prediction and embedding quality. A concept set for philosophy is included.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=CONCEPTS_HELP, short_help="Score models on a concept set.")
def concepts() -> None:
    """See ``CONCEPTS_HELP``."""


RUN_HELP = """
\b
  eq concepts run --models minilm wordllama -o results/
  eq concepts run my_concepts/ --models minilm use --task similarity --task clustering

Score sentence embedding models on a concept set: similarity, clustering, entity typing, link prediction and
embedding quality. For each of the first four tasks, the model that scores best on labelled data is recommended,
unless its score is at chance level or its vectors all point in nearly the same direction. The scores are Spearman
for pairs, ARI for clusters, probe accuracy (of a linear classifier of entity types) and link MRR (the MRR of finding
the object of a relation). -v adds the weighted scores and their components. Without a CONCEPT_SET the included one for
philosophy is used.

A concept set is a folder with any of pairs, clusters, entities, relations and concepts as .json,
.jsonl, .csv, .tsv or .parquet, or one such file. With -o FOLDER, the command writes report.html (everything on
one page), results.json, run directories for eq compare and eq report, and charts.
"""

PAGE = "report.html"
WRITING, WRITING_WEIGHT = "drawing the charts", 4.0
"""The last step, and its time relative to the others."""

DEFAULT_MODELS = ("minilm", "wordllama", "use")
"""Offline models. Those that are installed are the default of --models."""


class ConceptTaskParam(options.NameType):
    """A task, or the name of its score."""

    name = "task"

    def known(self) -> Iterable[tuple[str, str]]:
        """The five tasks."""
        return ((task, blend.name) for task, blend in CONCEPT_SCORES.items())


scale_option = click.option(
    "--similarity-scale",
    type=float,
    metavar="MAX",
    help="The maximum of the gold similarity scale if it is not 1, such as 5 for STS.",
)


@options.command(help=RUN_HELP, short_help="Score models on a concept set.")
@click.argument("path", metavar="[CONCEPT_SET]", required=False)
@options.models_option(
    text="The models, such as minilm wordllama; see eq ls models.",
    default=f"{' '.join(DEFAULT_MODELS)}, where installed",
)
@click.option("--data", metavar="FOLDER|FILE", help="The same as CONCEPT_SET. Default: philosophy.")
@click.option(
    "--task",
    "tasks",
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
    help="Weights of the tasks in the overall scores (composite_score and ground_truth_score; see eq explain); tasks "
    "without a weight do not count.  [default: equal weights]",
)
@scale_option
@options.stats_options(omit=("test", "n_permutations"), n_resamples=CONCEPT_STATS.n_resamples)
@options.threads_option
@options.model_device_option
@click.option("-o", "--output", metavar="FOLDER", help="Write results, runs and charts here.")
@engine_options
@options.fail_option
@options.log_option
@options.table_options(file=False)
@options.output_options
@pass_output
def run(
    out: Output,
    /,
    path: str | None,
    models: tuple[str, ...],
    data: str | None,
    tasks: tuple[str, ...],
    weights: tuple[str, ...],
    output: str | None,
    fail_on: str | None,
    similarity_scale: float | None,
    threads: int,
    device: str | None,
    config: StatsConfig,
    engine: Executor,
) -> int:
    """See ``RUN_HELP``."""
    from equipoise.domains.concepts.concept_set_reader import read_concept_set
    from equipoise.domains.concepts.experiment import evaluate_concepts, select_tasks, step_weights
    from equipoise.domains.concepts.report import concepts_view
    from equipoise.runs.experiment_folder import check_writable, exit_code

    if path is not None and data is not None:
        raise ParameterError(f"two concept sets were given: {path} and {data}", hint="give one of them")
    if output is not None:
        check_writable(output)
    weights_by_task = _weights(weights)
    concept_set = read_concept_set(path or data, scale=similarity_scale)
    specs = options.models_on_device(models or _installed_models(), device, out)
    weights_of_steps = step_weights(specs, select_tasks(concept_set, tasks)[0])
    weights_of_steps |= {WRITING: WRITING_WEIGHT} if output is not None else {}
    with executor_context(engine, out, "a model"), out.progress(len(weights_of_steps), weights_of_steps) as step:
        evaluation = evaluate_concepts(
            specs,
            concept_set,
            tasks=tasks or None,
            weights=weights_by_task,
            progress=step,
            output=output,
            command=out.command,
            config=config,
            threads=threads,
            engine=engine,
        )
        if output is not None:
            step(WRITING)
            evaluation.draw(output)
            evaluation.report(Path(output) / PAGE)
        view = concepts_view(evaluation)
    _show(out, evaluation, view, output)
    gate = exits.gate(out, evaluation.findings, fail_on)
    return exit_code(evaluation.failures) or gate


def _installed_models() -> tuple[str, ...]:
    """The default models that are installed."""
    from equipoise.models.inventory import list_models

    working = {listing.spec for listing in list_models() if listing.works}
    installed = tuple(name for name in DEFAULT_MODELS if name in working)
    if not installed:
        raise ParameterError(
            "none of the default models is installed",
            hint="choose one with --models; eq ls models shows how to install each",
        )
    return installed


def _weights(words: tuple[str, ...]) -> dict[str, float] | None:
    """The weights by task, from words such as ``similarity=2``."""
    weights: dict[str, float] = {}
    for word in words:
        task, equals, number = word.partition("=")
        try:
            weights[task] = float(number)
        except ValueError:
            raise ParameterError(
                f"the weight {word!r} {'has no number' if equals else 'has no ='}",
                hint="write TASK=N, such as similarity=2",
            ) from None
    return weights or None


def _show(out: Output, evaluation: ConceptEvaluation, view: View, output: str | None) -> None:
    """Print the report or the JSON data, and what was written."""
    out.results(evaluation.to_dict, lambda: view)
    for name in evaluation.resumed:
        out.note(with_label(name, f"loaded from {output}, not computed again"))
    if output is not None:
        out.note(f"wrote {output}; {Path(output) / PAGE} has everything on one page")
    out.failures(evaluation.failures, "model")


CHECK_HELP = """
\b
  eq concepts check my_concepts/
  eq concepts check sts.csv --similarity-scale 5 --json

Check pairs, clusters, entities, relations and concepts: missing keys, empty texts, duplicates,
similarities out of range, and offsets that do not match the text. The output lists all problems, and the scores that
cannot be computed because a file is missing. CONCEPT_SET
is a folder with any of pairs, clusters, entities, relations and concepts as .json, .jsonl, .csv, .tsv or
.parquet, or one such file; without it, the included concept set is checked. Exit status 1 means that
there are issues, 2 that the concept set cannot be used.
"""


@options.command(help=CHECK_HELP, short_help="Check the files of a concept set.")
@click.argument("path", metavar="[CONCEPT_SET]", required=False)
@scale_option
@options.table_options()
@options.output_options
@pass_output
def check(out: Output, /, path: str | None, similarity_scale: float | None) -> int:
    """See ``CHECK_HELP``."""
    from equipoise.domains.concepts.concept_set_reader import read_with_issues
    from equipoise.domains.concepts.report import concept_set_view, missing_sections, summary_lines

    concept_set = read_with_issues(path, scale=similarity_scale)
    findings = run_checks(concept_set)
    is_usable = not any(problem.fatal for problem in concept_set.problems)
    if out.json:
        out.data(
            {
                "concept_set": concept_set.name,
                "usable": is_usable,
                "parts": {part: len(getattr(concept_set, part)) for part in concept_set.present},
                "facts": summary_lines(concept_set),
                "missing": missing_sections(concept_set),
                "problems": [problem.to_dict() for problem in concept_set.problems],
                "findings": [asdict(finding) for finding in findings],
                "not_read": concept_set.unread,
                "fingerprint": concept_set.fingerprint,
            }
        )
    else:
        out.view(concept_set_view(concept_set, findings, verbose=out.verbose))
    if not is_usable:
        return exits.BAD_INPUT
    return exits.GATE_FAILED if any(finding.severity is Severity.ISSUE for finding in findings) else exits.DONE
