"""Files of predictions: tables of the k best classes, LibCity's evaluation input, and archives of arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, FormatError, InputError, ParameterError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import ARRAY_FORMATS, array_names, read_array, split_member
from equipoise.io.json import parse_json, parse_lines
from equipoise.io.tables import Table, read_table, table_format
from equipoise.io.text import PathLike, display_path, open_text, parse_number
from equipoise.tasks.classification import ClassificationOutput

TARGET = ("target", "true", "true_y", "y", "label", "loc_true", "next_place", "next_location")
PREDICTED = ("predictions", "predicted", "top_k", "topk", "candidates", "loc_pred")
SCORES = ("scores", "probabilities", "logits")
UNIT = ("unit_id", "id", "row")


@dataclass(frozen=True)
class TopKPredictions:
    """Lists of the k best classes of each unit, with its true class.

    Attributes
    ----------
    name
        The name of the system.
    targets
        The true class of each unit.
    predictions
        The predicted classes of each unit, best first unless there are scores.
    scores
        The scores of the predicted classes; None if there are none.
    unit_ids
        Ids of the units.
    columns
        Other columns by name, such as ``user``.
    """

    name: str
    targets: list[int]
    predictions: list[list[int]]
    scores: list[list[float]] | None = None
    unit_ids: list[Any] | None = None
    columns: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """The smallest number of classes of a unit."""
        return min(map(len, self.predictions))


def read_topk_predictions(path: PathLike) -> TopKPredictions:
    """Predictions from parquet, JSONL or JSON: one row per unit, a column of targets and one of lists of classes.

    Lists are best first, or have a column of scores. Unit ids are optional; other columns,
    such as the user or the hour, are kept.
    """
    table = read_table(path)
    target, predicted = require_column(table, TARGET, "targets"), require_column(table, PREDICTED, "predicted classes")
    scored = find_column(table, SCORES)
    unit = find_column(table, UNIT)
    if unit is not None:
        table.require(unit)
    rows, others = range(len(table.rows)), set(table.rows[0]) - {target, predicted, scored, unit}
    return TopKPredictions(
        name=table.name,
        targets=[_code(table, row, table.rows[row].get(target)) for row in rows],
        predictions=[_codes(table, row, predicted) for row in rows],
        scores=None if scored is None else [_scores(table, row, scored, predicted) for row in rows],
        unit_ids=None if unit is None else [_id(table, row, unit) for row in rows],
        columns={name: [record.get(name) for record in table.rows] for name in table.rows[0] if name in others},
    )


def find_column(table: Table, names: Sequence[str]) -> str | None:
    """The first of these columns that the table has; upper and lower case are equal."""
    header = {str(name).casefold(): str(name) for name in table.rows[0]}
    return next((header[name] for name in names if name in header), None)


def require_column(table: Table, names: Sequence[str], role: str) -> str:
    """``find_column``, or an error that lists the columns."""
    match = find_column(table, names)
    if match is None:
        raise FormatError(
            f"{table.name} has no column of {role}; it has {', '.join(map(str, table.rows[0]))}",
            hint=f"call it one of {', '.join(names)}",
        )
    return match


def _code(table: Table, index: int, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise table.error(FormatError, [index], f"names the class {value!r}", hint="classes are integers")
    return value


def _codes(table: Table, index: int, column: str) -> list[int]:
    value = table.rows[index].get(column)
    if not isinstance(value, list) or not value:
        hint = "give a list of classes, best first: [12, 7, 3]"
        raise table.error(FormatError, [index], f"has {value!r} for {column}", hint=hint)
    return [_code(table, index, item) for item in value]


def _scores(table: Table, index: int, column: str, predicted: str) -> list[float]:
    row = table.rows[index]
    values = row.get(column)
    if not isinstance(values, list) or len(values) != len(row[predicted]):
        raise table.error(
            FormatError, [index], f"has {column} that do not fit its {predicted}", hint="give one per class"
        )
    try:
        return [float(parse_number(item)) for item in values]
    except ValueError as error:
        raise table.error(
            FormatError, [index], f"has {column} that are not finite numbers", hint="give one per class"
        ) from error


def _id(table: Table, index: int, column: str) -> str | int:
    value = table.rows[index][column]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise table.error(FormatError, [index], f"has the {column} {value!r}", hint="ids are strings or integers")
    return value


# Top-k predictions as evidence, like full logits.

TRUNCATED_NOTE = "A target that is not among the predicted places counts as 0 in MRR and nDCG"


def evidence_from_top_k(
    top: TopKPredictions, *, classes: int | None = None, unseen: Any = None, ks: Iterable[int] = ()
) -> ClassificationOutput:
    """The rank of each target in its list; a target that is not in the list has no rank and scores 0.

    ``classes`` is how many there are; without it only those that occur are known. A cutoff deeper than the
    shortest list is an error: the following predictions are unknown.

    >>> output = evidence_from_top_k(TopKPredictions("t", [2, 5], [[2, 1], [1, 0]]), classes=9)
    >>> output.ranking.ranks.tolist(), output.labels.predicted.tolist()
    ([1.0, inf], [2, 1])
    """
    for k in ks:
        if k > top.depth:
            raise ParameterError(
                f"Acc@{k} is unknown: {top.name} has a row with {top.depth} predicted classes only",
                hint=f"ask for cutoffs up to {top.depth}, or write more classes",
            )
    size = _class_count(top, classes)
    true = np.array(top.targets, dtype=np.int64)
    ranking = Ranking.from_lists(
        top.predictions,
        [[target] for target in top.targets],
        scores=top.scores,
        unit_ids=top.unit_ids,
        corpus_size=size if classes is not None else None,
    )
    predicted, tied = _firsts(top)
    labels = Labels(ranking.unit_ids, true, predicted, np.arange(size), tied)
    answerable = np.ones(len(true), dtype=bool) if unseen is None else ~np.isin(true, unseen)
    return ClassificationOutput(ranking, labels, answerable, size)


def _class_count(top: TopKPredictions, classes: int | None) -> int:
    codes = [*top.targets, *chain.from_iterable(top.predictions)]
    smallest, largest = min(codes), max(codes)
    if smallest < 0 or (classes is not None and largest >= classes):
        invalid = smallest if smallest < 0 else largest
        raise InputError(
            f"{top.name} names the class {invalid}, which is none of {classes or largest + 1}",
            hint="classes are numbered from 0",
        )
    return classes or largest + 1


def _firsts(top: TopKPredictions) -> tuple[Any, Any]:
    """The first class of each list and whether it shares its score; the lowest code of those that do."""
    if top.scores is None:
        return np.array([row[0] for row in top.predictions], dtype=np.int64), None
    best = [max(scores) for scores in top.scores]
    leaders = [
        [code for code, score in zip(row, scores, strict=True) if score == most]
        for row, scores, most in zip(top.predictions, top.scores, best, strict=True)
    ]
    firsts = np.array([min(codes) for codes in leaders], dtype=np.int64)
    return firsts, np.array([len(codes) > 1 for codes in leaders])


# Scores of all classes with their targets in one file: LibCity's evaluation input, or an archive of arrays.

LIBCITY_KEYS = ("loc_true", "loc_pred")
"""What LibCity's evaluator of next locations takes, as lists; ``uid`` holds the users."""

ARRAY_SCORES = ("logits", "loc_pred", "scores", "prediction", "predictions", "probabilities", "y_pred")
ARRAY_TARGETS = ("targets", "target", "loc_true", "truth", "true_y", "y_true", "y", "labels", "true")
ARRAY_USERS = ("users", "user", "uid", "user_id", "user_ids")


@dataclass(frozen=True, eq=False)
class ScoredPredictions:
    """One row of scores per unit; the targets and the users, if the file has them."""

    name: str
    scores: NDArray[Any]
    targets: NDArray[Any] | None = None
    users: NDArray[Any] | None = None


def read_predictions(path: PathLike) -> TopKPredictions | ScoredPredictions:
    """Read predictions: top-k lists in a table, LibCity's JSON or JSONL, or an archive of arrays.

    Parameters
    ----------
    path
        A table of lists (parquet, JSONL, JSON), a file with LibCity's ``loc_true`` and ``loc_pred``, or an .npz,
        .safetensors or .pt file with scores and targets.

    Returns
    -------
    TopKPredictions or ScoredPredictions
        For ``score_top_k``, or with scores of all classes for ``score_places``.

    Examples
    --------
    >>> read_predictions("libcity.json").scores.shape  # doctest: +SKIP
    """
    if split_member(path)[0].suffix.casefold() in ARRAY_FORMATS:
        return read_score_arrays(path)
    if table_format(path) in ("json", "jsonl"):
        batches = _libcity_batches(path)
        if batches:
            return _join_batches(display_path(path), batches)
    try:
        return read_topk_predictions(path)
    except FormatError as error:
        metrics = _result_metrics(path)
        if not metrics:
            raise
        raise FormatError(
            f"{display_path(path)} has results ({', '.join(metrics)}), not predictions",
            hint=f"eq places results {display_path(path)} reads it; predictions are the k best places of each visit",
        ) from error


def _result_metrics(path: PathLike) -> list[str]:
    """The names of the metrics in a result file; empty for other files."""
    from equipoise.domains.places.published_results import read_published_results

    try:
        row = read_published_results(path)[0]
    except EquipoiseError:
        return []
    return [value.label for value in row.accepted] + [value.label for value in row.rejected]


def read_score_arrays(path: PathLike) -> ScoredPredictions:
    """The scores of a file of arrays; of an archive also the targets and users, found by their names."""
    file, member = split_member(path)
    names = {name.casefold(): name for name in array_names(path)}
    if not names:
        return ScoredPredictions(display_path(path), read_array(path, ndim=2))

    def find(options: Sequence[str], ndim: int) -> NDArray[Any] | None:
        member_name = next((names[option] for option in options if option in names and names[option] != member), None)
        return None if member_name is None else read_array(f"{file}:{member_name}", ndim=ndim)

    scores = read_array(path, ndim=2) if member or len(names) == 1 else find(ARRAY_SCORES, 2)
    if scores is None:
        raise ParameterError(
            f"{display_path(path)} holds {', '.join(names.values())}",
            hint=f"name the array of the scores: {display_path(file)}:{next(iter(names.values()))}",
        )
    return ScoredPredictions(display_path(path), scores, find(ARRAY_TARGETS, 1), find(ARRAY_USERS, 1))


def _libcity_batches(path: PathLike) -> list[Mapping[str, Any]]:
    """The batches of a file in LibCity's form; empty for a file of another form."""
    file = open_text(path)
    if table_format(path) == "jsonl":
        content: Any = [value for _, value in parse_lines(file)]
    else:
        content = parse_json(file)
    batches = [content] if isinstance(content, Mapping) else content
    if not isinstance(batches, list) or not batches:
        return []
    if not all(isinstance(batch, Mapping) and set(LIBCITY_KEYS) <= set(batch) for batch in batches):
        return []
    if isinstance(batches[0]["loc_true"], list):
        return batches
    # One visit per line: floats are scores of all places, integers are the best places.
    first = batches[0]["loc_pred"]
    if not isinstance(first, list) or not any(isinstance(value, float) for value in first):
        return []
    names = ("uid", *LIBCITY_KEYS)
    return [{name: [batch[name] for batch in batches] for name in names if all(name in batch for batch in batches)}]


def _join_batches(name: str, batches: Sequence[Mapping[str, Any]]) -> ScoredPredictions:
    try:
        scores = np.concatenate([np.asarray(batch["loc_pred"], dtype=np.float64) for batch in batches])
        targets = np.concatenate([np.asarray(batch["loc_true"]) for batch in batches])
        users = None if any("uid" not in batch for batch in batches) else [batch["uid"] for batch in batches]
        names = None if users is None else np.concatenate([np.asarray(batch) for batch in users])
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"{name} has {' and '.join(LIBCITY_KEYS)} of unequal shapes or of values that are not numbers",
            hint="loc_pred has one row of scores per location in loc_true, all of the same length",
        ) from error
    if scores.ndim != 2 or targets.ndim != 1 or targets.dtype.kind not in "iu":
        raise FormatError(
            f"{name} has loc_pred of shape {scores.shape} for loc_true of shape {targets.shape} ({targets.dtype})",
            hint="loc_true has one location number per row of loc_pred",
        )
    return ScoredPredictions(name, scores, targets, names)


GENERIC_STEMS = frozenset(
    {"logits", "predictions", "prediction", "preds", "pred", "scores", "outputs", "output", "out", "topk"}
)
"""File names that say what a file holds and not which system wrote it."""


_SEED_FOLDER = re.compile(r"(?:seed|run|fold|trial|version)?[-_ ]?\d+", re.IGNORECASE)


def system_name(path: PathLike) -> str:
    """The name of the system that wrote a file: that of the file, or of its folder if the file has a generic name.

    A folder of a seed is named with the folder around it.
    """
    file = split_member(path)[0]
    stem = Path(file.name.removesuffix(".gz")).stem
    folder = file.resolve().parent
    if stem.casefold() not in GENERIC_STEMS or not folder.name:
        return stem
    if _SEED_FOLDER.fullmatch(folder.name) and folder.parent.name:
        return f"{folder.parent.name}-{folder.name}"
    return folder.name
