"""``eq places score``: one model's next places, beside what luck and habit would score."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli import output as exits
from equipoise.cli.app import CommandEntry, LazyGroup
from equipoise.cli.inputs import named_column, read_class_codes, read_column
from equipoise.cli.options import MultiValueOption, SeveralCommand
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError, StoreError
from equipoise.runs.experiment import check_writable

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.places.demo import PlacesDemo
    from equipoise.domains.places.history import VisitHistory
    from equipoise.domains.places.score import PlaceScores
    from equipoise.domains.places.seed_comparison import SeedComparison

# ``eq places``: next locations scored from logits, and models compared over seeds.

COMMANDS = {
    "score": CommandEntry("equipoise.domains.places.cli:score", "Score logits of next places, beside baselines."),
    "compare": CommandEntry("equipoise.domains.places.cli:compare", "Compare models over seeds and users."),
    "demo": CommandEntry("equipoise.domains.places.cli:demo", "Train and score a small model on made-up visits."),
}

GROUP_HELP = """
\b
  eq places score --logits logits.npy --targets y.npy --padding 0 -o results/
  eq places compare modelA/seed*/ modelB/seed*/

Score models that predict the next place: accuracy, MRR, nDCG and F1, each with how sure it is
and what luck and habit would score.
"""


@click.group(cls=LazyGroup, entries=COMMANDS, help=GROUP_HELP, short_help="Score models of the next place.")
def places() -> None:
    """See ``GROUP_HELP``."""


HELP = """
\b
  eq places score --logits logits.npy --targets y.npy --padding 0 --unseen 1 --train-counts counts.npy
  eq places score --logits all.npz:logits --targets all.npz:y --user user.npy --slice hour=hour.npy
  eq places score --predictions top10.parquet --classes 1187

Score a model that predicts the next place. Logits are .npy, .npz or .safetensors, also larger than memory;
predictions that were cut at the k best are parquet or JSONL. Scores are given for all units and, where
training counts or unseen classes are named, for the answerable ones. Random, majority, each user's habits
and first-order moves stand beside them where they can be had. A column is an array file or a column of a
table: user.npy, units.csv:user. With -o a run directory is left, which eq places compare reads.
"""


@dataclass(frozen=True)
class ScoreInputs:
    """What the command line names besides the system itself."""

    padding: tuple[int, ...]
    unseen: tuple[int, ...]
    ks: tuple[int, ...]
    train_counts: str | None
    user: str | None
    slices: tuple[str, ...]
    history: str | None
    previous: str | None
    unit_ids: str | None

    def files(self) -> list[str]:
        """The files whose content decides the figures beside the logits."""
        named = (self.train_counts, self.user, self.previous, self.unit_ids, self.history)
        return [word for word in (*named, *(each.partition("=")[2] for each in self.slices)) if word]


@click.command(cls=SeveralCommand, help=HELP, short_help="Score logits of next places.")
@click.option("--logits", metavar="FILE", help="Scores, a row a unit and a column a class; NAME=FILE too.")
@click.option("--targets", metavar="FILE", help="The right class of each row.")
@click.option("--predictions", metavar="FILE", help="The k best classes of each unit instead of logits.")
@click.option("--classes", type=click.IntRange(min=1), help="How many classes there are, for --predictions.")
@click.option("--padding", type=int, multiple=True, metavar="CLASS", help="A column that is no class.")
@click.option("--unseen", type=int, multiple=True, metavar="CLASS", help="A class that training never saw.")
@click.option("--train-counts", metavar="FILE", help="How often each class occurs in training.")
@click.option("--user", metavar="COLUMN", help="The user of each row; users are resampled whole.")
@click.option("--slice", "slices", multiple=True, metavar="NAME=COLUMN", help="A property of each row.")
@click.option("--history", metavar="FILE", help="Visits of training: a table with columns user and place.")
@click.option("--previous", metavar="COLUMN", help="The place before each row, -1 for none.")
@click.option("--unit-ids", metavar="COLUMN", help="An id for each row, to be compared with other systems.")
@click.option(
    "--ks",
    cls=MultiValueOption,
    commas=True,
    type=click.IntRange(min=1),
    show_default="1 3 5 10, up to the number of classes",
    metavar="K ...",
    help="Cutoffs of the accuracy.",
)
@options.ties_option
@options.stats_options()
@options.fail_option
@click.option("-o", "--output", metavar="FOLDER", help="Write a run directory here.")
@options.output_options
@pass_output
def score(
    out: Output,
    /,
    logits: str | None,
    targets: str | None,
    predictions: str | None,
    classes: int | None,
    config: StatsConfig,
    fail_on: str | None,
    output: str | None,
    **named: Any,
) -> int:
    """See ``HELP``."""
    given = ScoreInputs(**named)
    if output is not None:
        check_writable(output)
    if (logits is None) == (predictions is None):
        raise ParameterError(
            "there is nothing to score" if logits is None else "logits and predictions were both given",
            hint="name one of --logits logits.npy and --predictions top10.parquet",
        )
    if logits is not None:
        scores, inputs = _from_logits(logits, targets, given, config)
    else:
        scores, inputs = _from_predictions(str(predictions), classes, given, config)
    written = [] if output is None else _write(scores, output, inputs, out, config)
    _show(out, scores, written)
    return exits.gate(out, scores.findings, fail_on)


def _from_logits(
    logits: str, targets: str | None, given: ScoreInputs, config: StatsConfig
) -> tuple[PlaceScores, list[str]]:
    from equipoise.cli.inputs import SystemInput
    from equipoise.domains.places.score import score_places
    from equipoise.io.arrays import read_matrix

    if targets is None:
        raise ParameterError(f"the logits in {logits} need targets", hint="name them: --targets y.npy")
    source = SystemInput.of(logits)
    matrix = read_matrix(source.path)
    with _naming(source.path):
        scores = score_places(
            matrix,
            read_class_codes(targets, "--targets"),
            padding=list(given.padding) or None,
            unseen=list(given.unseen) or None,
            train_counts=_optional(given.train_counts, "--train-counts", read_class_codes),
            unit_ids=_optional(given.unit_ids, "--unit-ids", read_column),
            ks=given.ks or None,
            system=source.name,
            **_who(given, matrix.shape[1]),
            ties=config.ties,
            confidence_level=config.confidence_level,
            n_resamples=config.n_resamples,
            seed=config.seed,
        )
    return scores, [source.path, targets]


def _from_predictions(
    path: str, classes: int | None, given: ScoreInputs, config: StatsConfig
) -> tuple[PlaceScores, list[str]]:
    from equipoise.cli.inputs import SystemInput
    from equipoise.domains.places.score import score_top_k
    from equipoise.domains.places.topk_predictions import read_topk_predictions

    source = SystemInput.of(path)
    scores = score_top_k(
        read_topk_predictions(source.path),
        classes=classes,
        padding=list(given.padding) or None,
        unseen=list(given.unseen) or None,
        train_counts=_optional(given.train_counts, "--train-counts", read_class_codes),
        ks=given.ks or None,
        system=source.name,
        config=config,
        **_who(given, classes),
    )
    return scores, [source.path]


def _optional(word: str | None, option: str, read: Any) -> Any:
    return None if word is None else read(word, option)


def _who(given: ScoreInputs, classes: int | None) -> dict[str, Any]:
    """Users, slices and histories."""
    return {
        "users": _optional(given.user, "--user", read_column),
        "slices": dict(named_column(word, "--slice") for word in given.slices),
        "history": None if given.history is None else _history(given.history, classes),
        "previous": _optional(given.previous, "--previous", read_class_codes),
    }


def _history(path: str, classes: int | None) -> VisitHistory:
    from equipoise.domains.places.history import VisitHistory

    users, places = read_column(f"{path}:user", "--history"), read_class_codes(f"{path}:place", "--history")
    return VisitHistory.of(users, places, classes=classes)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors that arise from the arrays alone, with the file they come from."""
    try:
        yield
    except EquipoiseError as error:
        if path in error.message:
            raise
        raise type(error)(f"{path}: {error.message}", hint=error.hint, excerpt=error.excerpt) from error


def _write(scores: PlaceScores, folder: str, inputs: list[str], out: Output, config: StatsConfig) -> list[str]:
    """A run directory for all units, and one for the answerable ones where they are not all."""
    from equipoise.io.arrays import split_member
    from equipoise.runs.manifest import Manifest
    from equipoise.runs.store import save_run

    results = {scores.system: scores.all}
    if scores.answerable is not None and scores.partly_answerable:
        results[f"{scores.system}-answerable"] = scores.answerable
    manifest = Manifest.start(
        scores.system,
        command=out.command,
        seed=config.seed,
        truth=[split_member(path)[0] for path in inputs[1:]],
        inputs=[split_member(path)[0] for path in inputs[:1]],
    ).finish()
    details = scores.details() if scores.columns else None
    written = []
    for name, result in results.items():
        own = None
        if details is not None:
            own = {unit: details[unit] for unit in result.unit_ids.tolist()}
        written.append(str(save_run(Path(folder) / name, result, manifest=manifest, details=own)))
    return written


def _show(out: Output, scores: PlaceScores, written: list[str]) -> None:
    from equipoise.domains.places.report import places_report

    if out.json:
        out.data({**scores.to_dict(), "written": written})
    else:
        out.show(*places_report(scores.edition, verbose=out.verbose, quiet=out.quiet))
    for path in written:
        out.note(f"wrote {path}")
    if not out.quiet and not out.json and written:
        out.text(f"\nNext: {shlex.join(['eq', 'report', written[0]])}")


# ``eq places compare``: models trained with several seeds, compared over seeds and over users.

COMPARE_HELP = """
\b
  eq places compare modelA/seed*/ modelB/seed*/
  eq places compare lstm=runs/17/ lstm=runs/18/ markov=runs/19/ markov=runs/20/ --primary MRR

Compare models that were trained with several seeds each. A seed is a run directory, the folder that
eq places score -o wrote, or a folder with logits.npy and targets.npy (and user.npy). The folder around the
seeds names the model, or NAME=folder does; seeds of the same name are paired, others by their order.

Each figure is a mean over seeds with its standard deviation. Two kinds of tests answer two questions: would
other seeds show the same order on these users, and would other users show it with these models?
"""


@click.command(help=COMPARE_HELP, short_help="Compare models over seeds and users.")
@click.argument("folders", nargs=-1, metavar="FOLDER...")
@options.metric_option
@click.option("--primary", type=options.MetricType(), help="The metric that the verdict is on.")
@click.option("--answerable", is_flag=True, help="Only units whose target was seen in training.")
@click.option("--user", metavar="COLUMN", help="The user of each unit: user.npy or units.csv:user.")
@click.option("--padding", type=int, multiple=True, metavar="CLASS", help="A column of logits that is no class.")
@click.option("--unseen", type=int, multiple=True, metavar="CLASS", help="A class that training never saw.")
@click.option("--train-counts", metavar="FILE", help="How often each class occurs in training.")
@options.stats_options(omit=("test",))
@options.output_options
@pass_output
def compare(
    out: Output,
    folders: tuple[str, ...],
    metrics: tuple[str, ...],
    primary: str | None,
    answerable: bool,
    user: str | None,
    padding: tuple[int, ...],
    unseen: tuple[int, ...],
    train_counts: str | None,
    config: StatsConfig,
) -> int:
    """See ``COMPARE_HELP``."""
    from equipoise.domains.places.seed_comparison import (
        SeedRunReader,
        compare_across_seeds,
        find_seed_runs,
    )

    models = find_seed_runs(folders)
    if len(models) < 2:
        named = f"only {next(iter(models))} was named" if models else "none was named"
        raise ParameterError(
            f"a comparison needs the seeds of at least two models, and {named}",
            hint="eq places compare modelA/seed*/ modelB/seed*/",
        )
    reading = SeedRunReader(
        padding=padding,
        unseen=unseen,
        train_counts=None if train_counts is None else read_class_codes(train_counts, "--train-counts"),
        users=None if user is None else read_column(user, "--user"),
        answerable=answerable,
    )
    found = compare_across_seeds(
        reading.read(models),
        metrics=metrics,
        primary=primary,
        config=config,
    )
    _compare_show(out, found, reading.cautions)
    return exits.FAILED_UNITS if reading.cautions else exits.DONE


def _compare_show(out: Output, found: SeedComparison, cautions: list[str]) -> None:
    from equipoise.domains.places.report import replicate_report

    for caution in cautions:
        out.note(f"caution: {caution}")
    if out.json:
        out.data(found.to_dict() | {"cautions": cautions})
    else:
        out.show(*replicate_report(found.edition, quiet=out.quiet))


# ``eq places demo``: a small model trained on made-up visits, and scored beside what knows less.

DEMO_HELP = """
\b
  eq places demo
  eq places demo --users 200 --seed 7 -o demo/

Simulate people with a home, work and habits, train a Markov model on their visits, let it predict the last
fifth of them, and score it beside random, majority, each user's habits and plain moves. With -o the logits
and all else that eq places score takes are left in a folder, and charts where these can be drawn.
"""


@click.command(help=DEMO_HELP, short_help="Train and score a small model on made-up visits.")
@click.option("--users", type=click.IntRange(min=1), default=60, show_default=True, help="How many people.")
@click.option("--days", type=click.IntRange(min=1), default=28, show_default=True, help="For how many days.")
@click.option("--places", type=click.IntRange(min=10), default=300, show_default=True, help="How many places.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option("-o", "--output", metavar="FOLDER", help="Leave the logits, the targets and charts here.")
@options.output_options
@pass_output
def demo(out: Output, users: int, days: int, places: int, seed: int, output: str | None) -> int:
    """See ``DEMO_HELP``."""
    from equipoise.domains.places.demo import PlacesDemo

    if output is not None:
        check_writable(output)
    found = PlacesDemo.of(users, days, places, seed=seed)
    _demo_show(out, found)
    if output is not None:
        _keep(out, found, Path(output))
    return 0


def _demo_show(out: Output, found: PlacesDemo) -> None:
    from equipoise.domains.places.report import places_report
    from equipoise.report.terminal import Paragraph

    sure = found.reliability
    if out.json:
        calibration = {
            "ece": sure.ece,
            "calibrated": sure.calibrated,
            "calibrated_high": sure.calibrated_high,
        }
        out.data({**found.scores.to_dict(), "reliability": calibration})
        return
    learned = found.learned
    out.note(
        f"{len(learned.names)} made-up people made {len(learned):,} visits to {learned.classes} places; "
        f"{len(found.cases):,} more are to be predicted.\n"
    )
    out.show(*places_report(found.scores.edition, verbose=out.verbose, quiet=out.quiet))
    if not out.quiet:
        apart = "more than" if sure.told_apart else "no more than"
        out.show(
            Paragraph(""),
            Paragraph(
                f"Calibration: the expected calibration error is {sure.ece:.3f}, {apart} luck explains: a "
                f"calibrated model would show {sure.calibrated:.3f} on these units, and rarely above "
                f"{sure.calibrated_high:.3f}."
            ),
        )


def _keep(out: Output, found: PlacesDemo, folder: Path) -> None:
    """The files, a run directory, the charts where they can be drawn, and the command that scores the same again."""
    from equipoise.config import DEFAULT_STATS
    from equipoise.io.atomic import write_bytes
    from equipoise.report.charts.render import render_png, render_svg

    try:
        found.write(folder)
        inputs = [str(folder / "logits.npy"), str(folder / "targets.npy")]
        _write(found.scores, str(folder / "runs"), inputs, out, DEFAULT_STATS)
        for chart in found.charts():
            write_bytes(folder / f"{chart.name}.svg", render_svg(chart).encode())
            write_bytes(folder / f"{chart.name}.png", render_png(chart))
    except MissingExtraError as error:
        out.note(f"For charts: {error.hint}")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}", hint="choose another folder") from error
    out.note(f"wrote {folder}/")
    if not out.quiet and not out.json:
        named = {"logits": "logits", "targets": "targets", "user": "user", "previous": "previous"}
        words = [word for option, file in named.items() for word in (f"--{option}", str(folder / f"{file}.npy"))]
        words += ["--history", str(folder / "visits.csv")]
        out.text(f"\nNext: {shlex.join(['eq', 'places', 'score', *words])}")
