"""The k best classes of each unit, from a table: what is left of logits that were too large to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import FormatError
from equipoise.io.tables import Table, TableRow, read_table
from equipoise.io.text import PathLike, parse_number

TARGET = ("target", "true", "true_y", "y", "label")
PREDICTED = ("predictions", "predicted", "top_k", "topk", "candidates")
SCORES = ("scores", "probabilities", "logits")
UNIT = ("unit_id", "id", "row")


@dataclass(frozen=True)
class TopKPredictions:
    """For each unit the right class, the predicted ones, best first or with scores, and its other columns."""

    name: str
    targets: list[int]
    predictions: list[list[int]]
    scores: list[list[float]] | None = None
    unit_ids: list[Any] | None = None
    columns: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many classes every unit has at least."""
        return min(map(len, self.predictions))


def read_topk_predictions(path: PathLike) -> TopKPredictions:
    """Predictions from parquet, JSONL or JSON: one row per unit, a column of targets and one of lists of classes.

    Lists are best first, or have a column of scores. Unit ids are optional; other columns,
    such as the user or the hour, are kept.
    """
    table = read_table(path)
    target, predicted = _column(table, TARGET, "targets"), _column(table, PREDICTED, "predicted classes")
    scored = _find_column(table, SCORES)
    unit = _find_column(table, UNIT)
    if unit is not None:
        table.require(unit)
    special_columns = {target, predicted, scored, unit}
    return TopKPredictions(
        name=table.name,
        targets=[_code(table, row, record, record.get(target)) for row, record in enumerate(table.rows)],
        predictions=[_codes(table, row, record, predicted) for row, record in enumerate(table.rows)],
        scores=None if scored is None else [_scores(table, row, scored, predicted) for row in _rows(table)],
        unit_ids=None if unit is None else [_id(table, row, unit) for row in _rows(table)],
        columns={
            name: [record.get(name) for record in table.rows] for name in table.rows[0] if name not in special_columns
        },
    )


def _rows(table: Table) -> range:
    return range(len(table.rows))


def _find_column(table: Table, names: Sequence[str]) -> str | None:
    header = {str(name).casefold(): str(name) for name in table.rows[0]}
    return next((header[name] for name in names if name in header), None)


def _column(table: Table, names: Sequence[str], role: str) -> str:
    match = _find_column(table, names)
    if match is None:
        raise FormatError(
            f"{table.name} has no column of {role}; it has {', '.join(map(str, table.rows[0]))}",
            hint=f"call it one of {', '.join(names)}",
        )
    return match


def _code(table: Table, index: int, row: TableRow, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise table.error(FormatError, [index], f"names the class {value!r}", hint="classes are integers")
    return value


def _codes(table: Table, index: int, row: TableRow, column: str) -> list[int]:
    value = row.get(column)
    if not isinstance(value, list) or not value:
        raise table.error(
            FormatError,
            [index],
            f"has {value!r} for {column}",
            hint="give a list of classes, best first: [12, 7, 3]",
        )
    return [_code(table, index, row, item) for item in value]


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
