"""``eq places score``: one model's next places, beside what luck and habit would score."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.places.columns import named_column, read_codes, read_column
from equipoise.cli.scoring import Statistics, refuse_unwritable
from equipoise.cli.several import Several, SeveralCommand
from equipoise.errors import EquipoiseError, ParameterError

if TYPE_CHECKING:
    from equipoise.recipes.places.history import History
    from equipoise.recipes.places.scores import PlaceScores

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
class Given:
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
    cls=Several,
    commas=True,
    type=click.IntRange(min=1),
    show_default="1 3 5 10, up to the number of classes",
    metavar="K ...",
    help="Cutoffs of the accuracy.",
)
@options.statistics_options
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
    statistics: Statistics,
    fail_on: str | None,
    output: str | None,
    **named: Any,
) -> int:
    """See ``HELP``."""
    given = Given(**named)
    if output is not None:
        refuse_unwritable(output)
    if (logits is None) == (predictions is None):
        raise ParameterError(
            "there is nothing to score" if logits is None else "logits and predictions were both given",
            hint="name one of --logits logits.npy and --predictions top10.parquet",
        )
    if logits is not None:
        scores, inputs = _from_logits(logits, targets, given, statistics)
    else:
        scores, inputs = _from_predictions(str(predictions), classes, given, statistics)
    written = [] if output is None else _write(scores, output, inputs, out, statistics)
    _show(out, scores, written)
    return exits.gate(out, scores.findings, fail_on)


def _from_logits(
    logits: str, targets: str | None, given: Given, statistics: Statistics
) -> tuple[PlaceScores, list[str]]:
    from equipoise.cli.sources import Source
    from equipoise.data.arrays import read_matrix
    from equipoise.recipes.places.score import score_places

    if targets is None:
        raise ParameterError(f"the logits in {logits} need targets", hint="name them: --targets y.npy")
    source = Source.of(logits)
    matrix = read_matrix(source.path)
    with _naming(source.path):
        scores = score_places(
            matrix,
            read_codes(targets, "--targets"),
            padding=list(given.padding) or None,
            unseen=list(given.unseen) or None,
            train_counts=_optional(given.train_counts, "--train-counts", read_codes),
            unit_ids=_optional(given.unit_ids, "--unit-ids", read_column),
            ks=given.ks or None,
            system=source.name,
            **_who(given, statistics, matrix.shape[1]),
            **_sure(statistics),
        )
    return scores, [source.path, targets]


def _from_predictions(
    path: str, classes: int | None, given: Given, statistics: Statistics
) -> tuple[PlaceScores, list[str]]:
    from equipoise.cli.sources import Source
    from equipoise.data.topk import read_top_k
    from equipoise.recipes.places.score import Sure, score_top_k

    source = Source.of(path)
    scores = score_top_k(
        read_top_k(source.path),
        classes=classes,
        padding=list(given.padding) or None,
        unseen=list(given.unseen) or None,
        train_counts=_optional(given.train_counts, "--train-counts", read_codes),
        ks=given.ks or None,
        system=source.name,
        sure=Sure(**_sure(statistics)),
        **_who(given, statistics, classes),
    )
    return scores, [source.path]


def _optional(word: str | None, option: str, read: Any) -> Any:
    return None if word is None else read(word, option)


def _who(given: Given, statistics: Statistics, classes: int | None) -> dict[str, Any]:
    """Users, slices and histories."""
    if statistics.cluster or statistics.cluster_by:
        raise ParameterError(
            "--cluster and --cluster-by are for eq score; here users are resampled", hint="name them: --user"
        )
    return {
        "users": _optional(given.user, "--user", read_column),
        "slices": dict(named_column(word, "--slice") for word in given.slices),
        "history": None if given.history is None else _history(given.history, classes),
        "previous": _optional(given.previous, "--previous", read_codes),
    }


def _history(path: str, classes: int | None) -> History:
    from equipoise.recipes.places.history import History

    users, places = read_column(f"{path}:user", "--history"), read_codes(f"{path}:place", "--history")
    return History.of(users, places, classes=classes)


def _sure(statistics: Statistics) -> dict[str, Any]:
    return {
        "ties": statistics.ties,
        "level": statistics.level,
        "resamples": statistics.resamples,
        "seed": statistics.seed,
    }


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors that arise from the arrays alone, with the file they come from."""
    try:
        yield
    except EquipoiseError as error:
        if path in error.sentence:
            raise
        raise type(error)(f"{path}: {error.sentence}", hint=error.hint, excerpt=error.excerpt) from error


def _write(
    scores: PlaceScores, folder: str, inputs: list[str], out: Output, statistics: Statistics
) -> list[str]:
    """A run directory for all units, and one for the answerable ones where they are not all."""
    from equipoise.data.arrays import split_member
    from equipoise.run.manifest import Manifest
    from equipoise.run.store import write_run

    results = {scores.system: scores.all}
    if scores.answerable is not None and scores.partly_answerable:
        results[f"{scores.system}-answerable"] = scores.answerable
    manifest = Manifest.start(
        scores.system,
        command=out.command,
        seed=statistics.seed,
        truth=[split_member(path)[0] for path in inputs[1:]],
        inputs=[split_member(path)[0] for path in inputs[:1]],
    ).finish()
    details = scores.details() if scores.columns else None
    written = []
    for name, result in results.items():
        own = None
        if details is not None:
            own = {unit: details[unit] for unit in result.unit_ids.tolist()}
        written.append(str(write_run(Path(folder) / name, result, manifest=manifest, details=own)))
    return written


def _show(out: Output, scores: PlaceScores, written: list[str]) -> None:
    from equipoise.report.places import places_report

    if out.json:
        out.data({**scores.to_dict(), "written": written})
    else:
        out.show(*places_report(scores.edition, verbose=out.verbose, quiet=out.quiet))
    for path in written:
        out.note(f"wrote {path}")
    if not out.quiet and not out.json and written:
        out.text(f"\nNext: {shlex.join(['eq', 'report', written[0]])}")
