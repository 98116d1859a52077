"""Judgements and runs from objects of other libraries: data frames, ranx, ir_measures and ir_datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.errors import DuplicateError, FormatError, UnknownNameError
from equipoise.io.columns import ColumnTable, as_number, as_text, is_frame, table_of

ScoresByUnit = dict[str, dict[str, float]]
ROLES = ("query_id", "doc_id", "gain", "score", "rank")
"""The roles that a user may assign to columns."""


def judgements_and_run(
    qrels: Any, run: Any, columns: Mapping[str, str] | None = None
) -> tuple[ScoresByUnit | None, ScoresByUnit | None]:
    """Gains and scores by query and document of objects of other libraries; None for any other object.

    ``columns`` names columns by their role. A name that only one of the two tables has applies to that one. A table
    without scores may have ranks: 1 is best. Without gains, every judgement is 1.

    >>> judgements_and_run([{"qid": "q1", "docid": "d7"}], [{"qid": "q1", "docid": "d7", "score": 0.5}])
    ({'q1': {'d7': 1.0}}, {'q1': {'d7': 0.5}})
    """
    chosen = dict(columns or {})
    tables = _table(qrels, "qrels"), _table(run, "run")
    known = {name for table in tables if isinstance(table, ColumnTable) for name in table.columns}
    for role, name in chosen.items():
        if role not in ROLES:
            raise UnknownNameError.of("column role", role, ROLES, more=f"the roles are {', '.join(ROLES)}")
        if name not in known:
            raise UnknownNameError.of("column", name, known, more=f"there are {', '.join(sorted(known))}")
    return _scores(tables[0], "gain", chosen), _scores(tables[1], "score", chosen)


def _table(source: Any, name: str) -> ColumnTable | ScoresByUnit | None:
    """The object as a table, or its scores if it has them by query already."""
    if type(source).__module__.partition(".")[0] == "ranx":
        return {query: dict(scores) for query, scores in source.to_dict().items()}
    records = getattr(source, "qrels_iter" if name == "qrels" else "scoreddocs_iter", None)
    if records is not None:  # ir_datasets
        source = records()
    if not is_frame(source) and not _has_records(source):
        return None
    return table_of(source, name=f"the {name}")


def _scores(table: ColumnTable | ScoresByUnit | None, role: str, chosen: Mapping[str, str]) -> ScoresByUnit | None:
    if not isinstance(table, ColumnTable):
        return table
    return _by_query(table, role, {each: name for each, name in chosen.items() if name in table.columns})


def _has_records(source: Any) -> bool:
    """Whether an iterable holds dicts or named tuples; a generator does, or it is an error later."""
    if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
        return False
    if not hasattr(source, "__len__"):
        return True
    first = next(iter(source), None)
    return isinstance(first, Mapping) or hasattr(first, "_asdict")


def _by_query(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> ScoresByUnit:
    values = _values(table, role, chosen)
    queries = table.columns[_column(table, "query_id", chosen)]
    documents = table.columns[_column(table, "doc_id", chosen)]
    found: ScoresByUnit = {}
    for row, (query, document, value) in enumerate(zip(queries, documents, values, strict=True)):
        query_id, document_id = as_text(query), as_text(document)
        if not query_id or not document_id:
            raise FormatError(
                f"row {row + 1} of {table.name} has no id of a query or document",
                hint="remove the row, or give it both ids",
            )
        scores = found.setdefault(query_id, {})
        if document_id in scores and (role != "gain" or scores[document_id] != value):
            raise DuplicateError(
                f"document {document_id} is in {table.name} twice for query {query_id} (again in row {row + 1})",
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
    column = column or _column(table, role, chosen)
    numbers = [as_number(value) for value in table.columns[column]]
    for row, number in enumerate(numbers):
        if number is None:
            value = table.columns[column][row]
            raise FormatError(
                f"row {row + 1} of {table.name} has {value!r} in the column {column}, which is not a number",
                hint=f"every {role} must be a number; remove rows without one",
            )
    return [sign * number for number in numbers if number is not None]


def _column(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> str:
    try:
        return table.column(role, chosen.get(role))
    except FormatError as error:
        hint = f'name it: columns={{"{role}": "..."}}'
        if role == "score" and table.find("gain"):
            hint += "; judgements are the first argument and the run is the second"
        raise FormatError(
            f"there is no {role} column in {table.name}; the columns are {', '.join(table.columns)}", hint=hint
        ) from error
