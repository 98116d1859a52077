"""Trees in tables: one node a row, with its id, the id of its parent and its name."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.data import tables
from equipoise.data.tables import Table
from equipoise.data.text import PathLike, open_text
from equipoise.errors import FormatError, did_you_mean
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
    A column of names may be missing; then the ids serve. A CSV may be separated by semicolons or tabs.
    """
    return tree_of_table(opened(path), id, parent, name)


def opened(path: PathLike) -> Table:
    """The rows of a file; text that is no JSON is separated by whatever its first line is."""
    form = tables.format_of(path)
    if form not in (None, *tables.DELIMITERS):
        return tables.read_table(path)
    file = open_text(path)
    return tables.parse_table(file, form or "csv", tables.delimiter_of(file, form))


def tree_of_table(table: Table, key: str | None, parent: str | None, name: str | None) -> Tree:
    """The same from rows that were read already; an error shows the lines it speaks of."""
    known = list(dict.fromkeys(str(column) for row in table.rows for column in row))
    key_column = _column(table.name, known, key, columns.ID, "ids")
    parent_column = _column(table.name, known, parent, columns.PARENT, "parents")
    name_column = (
        _column(table.name, known, name, (), "names") if name else columns.guess(columns.NAME, known)
    )
    # A record of JSON may leave out what it has nothing to say of: a root its parent.
    rows = [
        (cell(row.get(key_column)), cell(row.get(parent_column)), cell(row.get(name_column or "")))
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


def _column(source: str, known: list[str], asked: str | None, usual: tuple[str, ...], what: str) -> str:
    """The column that was asked for, or the one that bears a usual name."""
    found = next((each for each in known if each == asked), None) if asked else columns.guess(usual, known)
    if found is not None:
        return found
    if asked:
        hint = did_you_mean(asked, known) or f"there are: {', '.join(known)}"
        raise FormatError(f"{source} has no column {asked}", hint=hint)
    raise FormatError(
        f"{source} has no column of {what}: it has {', '.join(known)}",
        hint=f"call one of them {usual[0]}, or name it: --columns {usual[0]}=...; a file of edges has two "
        "columns: child, parent",
    )
