"""Units that belong together: cluster labels from a table, or from a part of each unit's id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from equipoise.data.runs import QUERY_COLUMNS
from equipoise.data.tables import Table, read_table
from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError

UNIT_COLUMNS = ("unit_id", *QUERY_COLUMNS, "id")


def cluster_labels(
    unit_ids: Sequence[Any], *, table: str | None = None, pattern: str | None = None
) -> dict[Any, str] | None:
    """The cluster of each unit by its id, or None when no key was given."""
    if table and pattern:
        raise ParameterError("--cluster and --cluster-by were both given", hint="keep one of them")
    names = [str(unit) for unit in unit_ids]
    if table:
        return dict(zip(unit_ids, _from_table(names, table), strict=True))
    return dict(zip(unit_ids, _from_pattern(names, pattern), strict=True)) if pattern else None


def _from_table(names: list[str], word: str) -> list[str]:
    path, colon, column = word.rpartition(":")
    if not colon or not path or not column:
        raise ParameterError(
            f"--cluster {word} names no column",
            hint="write the file and the column: --cluster units.csv:document",
        )
    found = read_table(path).require(column)
    key = _unit_column(found, column)
    labels: dict[str, str] = {}
    for index, row in enumerate(found.rows):
        name = str(row[key])
        if labels.setdefault(name, str(row[column])) != str(row[column]):
            raise found.error(DuplicateError, [index], f"puts the unit {name} into a second cluster")
    missing = [name for name in names if name not in labels]
    if missing:
        raise InputError(
            f"{path} has no cluster for {len(missing)} of {len(names)} units, the first being {missing[0]}",
            hint=f"its column {key} must name every unit of the truth",
        )
    return [labels[name] for name in names]


def _unit_column(table: Table, column: str) -> str:
    """The column that holds the unit ids."""
    header = {str(name).casefold().replace("-", "_"): str(name) for name in table.rows[0]}
    for name in UNIT_COLUMNS:
        if name in header and header[name] != column:
            return header[name]
    raise FormatError(
        f"{table.name} has no column of unit ids; it has {', '.join(header.values())}",
        hint=f"call it one of {', '.join(UNIT_COLUMNS)}",
    )


def _from_pattern(names: list[str], pattern: str) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ParameterError(
            f"--cluster-by {pattern} is no regular expression: {error}",
            hint="for example --cluster-by '^[^_]+'",
        ) from error
    labels = []
    for name in names:
        match = compiled.search(name)
        if match is None:
            raise InputError(
                f"--cluster-by {pattern} does not match the unit {name}",
                hint="it must match every unit; its first group, or all of it, names the cluster",
            )
        labels.append(match[1] if compiled.groups and match[1] is not None else match[0])
    return labels
