"""Trees in tables: one node a row, with its id, the id of its parent and its name."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.data import tables
from equipoise.data.tables import Table
from equipoise.data.text import PathLike
from equipoise.errors import FormatError
from equipoise.hierarchy.sources import columns
from equipoise.hierarchy.tree import Tree


def read_table(
    path: PathLike,
    id: str | None = None,  # noqa: A002  (what everybody calls the column)
    parent: str | None = None,
    name: str | None = None,
) -> Tree:
    """The tree of a CSV, TSV, JSONL or parquet file with a row for every node.

    A row without a parent is a root. Columns that are not named are looked for by the names people
    use: ``id``, ``account`` or ``code``; ``parent`` or ``parent_id``; ``name``, ``title`` or ``label``.
    A column of names may be missing; then the ids serve.
    """
    return tree_of_table(tables.read_table(path), id, parent, name)


def tree_of_table(table: Table, key: str | None, parent: str | None, name: str | None) -> Tree:
    """The same from rows that were read already; an error shows the lines it speaks of."""
    key_column = _column(table, key, columns.ID, "ids")
    parent_column = _column(table, parent, columns.PARENT, "parents")
    name_column = name or columns.guess(columns.NAME, table.rows[0])
    table.require(key_column, parent_column, *([name] if name else []))
    rows = [
        (cell(row[key_column]), cell(row[parent_column]), cell(row.get(name_column)) if name_column else "")
        for row in table.rows
    ]
    for index, (node, _, _) in enumerate(rows):
        if not node:
            raise table.error(FormatError, [index], f"has no {key_column}", hint="every node needs an id")

    def excerpt(ids: Sequence[str]) -> str:
        if table.file is None:
            return ""
        wanted = set(ids)
        places = [place for place, row in zip(table.places, rows, strict=True) if row[0] in wanted]
        return table.file.excerpt(*places[:5])

    edges = [(node, above) for node, above, _ in rows if above]
    return Tree.of([(node, title) for node, _, title in rows], edges, source=table.name, excerpt=excerpt)


def cell(value: object, source: str = "a table") -> str:
    """What stands in a cell, as an id or a name: without white space around it, nothing for None.

    Bytes are text in UTF-8; others are an error, which names the source.

    >>> cell(" 1010 "), cell(7), cell(7.0), cell(None), cell(b"1010")
    ('1010', '7', '7', '', '1010')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        return _decoded(bytes(value), source).strip()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _decoded(value: bytes, source: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{source} has the bytes 0x{value[:16].hex()} where an id or a name should be",
            hint="give them as text, for example by a view that spells them in hexadecimal",
        ) from error


def _column(table: Table, asked: str | None, known: tuple[str, ...], what: str) -> str:
    if asked:
        return asked
    found = columns.guess(known, table.rows[0])
    if found is None:
        raise FormatError(
            f"{table.name} has no column of {what}: it has {', '.join(map(str, table.rows[0]))}",
            hint=f"call one of them {known[0]}, or name it; a file of edges has two columns: child, parent",
        )
    return found
