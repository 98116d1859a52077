"""Judgements and runs from objects of other libraries: data frames, ranx, ir_measures and ir_datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.errors import DuplicateError, FormatError, UnknownNameError
from equipoise.io.columns import ColumnTable, as_number, as_text, is_frame, table_of

ScoresByUnit = dict[str, dict[str, float]]
ROLES = ("query_id", "doc_id", "gain", "score", "rank")
"""The roles that a user may assign to columns."""


def judgements_of(source: Any, columns: Mapping[str, str] | None = None) -> ScoresByUnit | None:
    """Gains by query and document of an object of another library; None if it is none of them.

    >>> judgements_of([{"qid": "q1", "docid": "d7", "rel": 1}])
    {'q1': {'d7': 1.0}}
    """
    return _scores(source, "qrels", "gain", columns)


def run_of(source: Any, columns: Mapping[str, str] | None = None) -> ScoresByUnit | None:
    """Scores by query and document of an object of another library; None if it is none of them.

    A table without scores may have ranks: 1 is best.

    >>> run_of([{"qid": "q1", "docid": "d7", "score": 0.5}])
    {'q1': {'d7': 0.5}}
    """
    return _scores(source, "run", "score", columns)


def _scores(source: Any, name: str, role: str, columns: Mapping[str, str] | None) -> ScoresByUnit | None:
    if type(source).__module__.partition(".")[0] == "ranx":
        return {query: dict(scores) for query, scores in source.to_dict().items()}
    records = getattr(source, "qrels_iter" if role == "gain" else "scoreddocs_iter", None)
    if records is not None:  # ir_datasets
        source = records()
    if not is_frame(source) and not _has_records(source):
        return None
    return _by_query(table_of(source, name=f"the {name}"), role, columns or {})


def _has_records(source: Any) -> bool:
    """Whether an iterable holds dicts or named tuples; a generator does, or it is an error later."""
    if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
        return False
    if not hasattr(source, "__len__"):
        return True
    first = next(iter(source), None)
    return isinstance(first, Mapping) or hasattr(first, "_asdict")


def _by_query(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> ScoresByUnit:
    for name in chosen:
        if name not in ROLES:
            raise UnknownNameError.of("column role", name, ROLES, more=f"the roles are {', '.join(ROLES)}")
    values = _values(table, role, chosen)
    queries = table.columns[_column(table, "query_id", chosen)]
    documents = table.columns[_column(table, "doc_id", chosen)]
    found: ScoresByUnit = {}
    for row, (query, document, value) in enumerate(zip(queries, documents, values, strict=True)):
        query_id, document_id = as_text(query), as_text(document)
        if not query_id or not document_id:
            raise FormatError(f"{table.name} have no id in row {row + 1}", hint="remove the row, or give it both ids")
        scores = found.setdefault(query_id, {})
        if document_id in scores and (role != "gain" or scores[document_id] != value):
            raise DuplicateError(
                f"{table.name} list document {document_id} twice for query {query_id} (again in row {row + 1})",
                hint="keep one row per query and document",
            )
        scores[document_id] = value
    return found


def _values(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> list[float]:
    """Gains or scores; gains default to 1, and negated ranks may replace scores."""
    column = chosen.get(role) or table.find(role)
    sign = 1.0
    if column is None and role == "gain":
        return [1.0] * len(table)
    if column is None and (chosen.get("rank") or table.find("rank")):
        column, sign = chosen.get("rank") or table.find("rank"), -1.0
    column = table.column(role, column)
    numbers = [as_number(value) for value in table.columns[column]]
    for row, number in enumerate(numbers):
        if number is None:
            value = table.columns[column][row]
            raise FormatError(
                f"{table.name} have {value!r} in row {row + 1} of the column {column}, which is not a number",
                hint=f"every {role} must be a number; remove rows without one",
            )
    return [sign * number for number in numbers if number is not None]


def _column(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> str:
    try:
        return table.column(role, chosen.get(role))
    except FormatError as error:
        raise FormatError(
            f"{table.name} have no {role} column; the columns are {', '.join(table.columns)}",
            hint=f'name it: columns={{"{role}": "..."}}',
        ) from error
