"""Scores per unit that other tools computed: tables of LangSmith, RAGAS, DeepEval and any other evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.errors import DuplicateError, FormatError
from equipoise.io.columns import ColumnTable, as_number, as_text, table_of

FEEDBACK = re.compile(r"^feedback[.: ]+(?P<name>.+)$", re.IGNORECASE)
"""A score column of LangSmith."""
MAX_NAMES = 12
"""Columns that an error lists."""
_NOT_A_SCORE = re.compile(
    r"(?i)(?:^|[_. ])(?:id|index|time|seconds|latency|tokens?|cost|price|date|start|end|attempts?|seed|length|count)$"
)
"""Numeric columns that describe the call and not its quality."""


@dataclass(frozen=True)
class UnitScoreTable:
    """One number per unit and metric; NaN where a score is missing."""

    name: str
    unit_ids: list[str]
    values: Mapping[str, list[float]]
    noun: str
    """The noun of a unit by its column: question, query or example."""

    @property
    def within_unit_interval(self) -> bool:
        """Whether all values are between 0 and 1."""
        return all(0 <= value <= 1 for column in self.values.values() for value in column if value == value)


def read_unit_scores(source: object) -> UnitScoreTable:
    """Read a table with one row per unit and one column per metric.

    Parameters
    ----------
    source
        A CSV, TSV, JSON, JSONL or parquet file, a data frame, or rows. The unit is the first column with a
        usual name, such as ``unit`` or ``question``; columns ``feedback.NAME`` (LangSmith) are the metrics, otherwise
        all numeric columns.

    Returns
    -------
    UnitScoreTable
        Unit ids, and one list of scores per metric; a missing score is NaN.

    Examples
    --------
    >>> scores = read_unit_scores([{"user_input": "why?", "response": "so", "faithfulness": 0.5}])
    >>> scores.unit_ids, dict(scores.values)
    (['why?'], {'faithfulness': [0.5]})
    """
    table = table_of(source)
    unit = table.find("unit")
    metrics = _metric_columns(table, unit)
    if unit is None or not metrics:
        missing = "column that names the units" if unit is None else "column of scores"
        raise FormatError(
            f"{table.name} has no {missing}; its columns are {_first_names(table)}",
            hint="name the units in a column unit, and write one column of numbers per metric",
        )
    unit_ids = table.texts(unit)
    first_row: dict[str, int] = {}
    for row, unit_id in enumerate(unit_ids):
        if not unit_id:
            raise FormatError(f"{table.name} has no {unit} in {table.where(row)}", hint="every unit needs a name")
        if first_row.setdefault(unit_id, row) != row:
            raise DuplicateError(
                f"{table.name} has the unit {unit_id[:60]!r} in {table.where(first_row[unit_id], row)}",
                hint="keep one row per unit, or average repetitions first",
            )
    columns = {metric: [_score(table, column, row) for row in range(len(table))] for metric, column in metrics.items()}
    noun = next((noun for noun in ("question", "query") if noun in unit.casefold()), "example")
    return UnitScoreTable(table.name, unit_ids, columns, "query" if unit.casefold() == "qid" else noun)


def is_unit_table(source: Any) -> bool:
    """Whether a table has one row per unit with scores: it names no documents."""
    table = table_of(source)
    unit = table.find("unit")
    return table.find("doc_id") is None and unit is not None and bool(_metric_columns(table, unit))


def _metric_columns(table: ColumnTable, unit: str | None) -> dict[str, str]:
    """Names of metrics and their columns."""
    feedback = {match["name"].strip(): column for column in table.columns if (match := FEEDBACK.match(column))}
    if feedback:
        return {metric: column for metric, column in feedback.items() if _is_numeric(table, column)}
    return {
        column: column
        for column in table.columns
        if column != unit and not _NOT_A_SCORE.search(column) and _is_numeric(table, column)
    }


_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "pass": 1.0, "fail": 0.0}


def _is_numeric(table: ColumnTable, column: str) -> bool:
    filled = [value for value in table.columns[column] if as_text(value)]
    return bool(filled) and all(_number(value) is not None for value in filled)


def _number(value: Any) -> float | None:
    word = as_text(value).casefold()
    return _TRUTH[word] if word in _TRUTH else as_number(value)


def _score(table: ColumnTable, column: str, row: int) -> float:
    number = _number(table.columns[column][row])
    return float("nan") if number is None else number


def _first_names(table: ColumnTable) -> str:
    names = list(table.columns)
    n_more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {n_more} more" if n_more > 0 else "")
