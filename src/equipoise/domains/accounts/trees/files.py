"""Trees in general files: tables, edge lists, nested JSON, and account codes such as ``102-0001-003``."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.accounts.trees.tree import MissingIdError, Node, Tree, TreeRows
from equipoise.errors import FormatError, InputError, ParameterError, did_you_mean
from equipoise.io import tables
from equipoise.io.dag import Edge, edge_lines, transitive_reduction
from equipoise.io.json import parse_json
from equipoise.io.tables import Table, find_delimiter, table_format, table_of_json
from equipoise.io.text import PathLike, TextFile, display_path, open_text

if TYPE_CHECKING:
    from equipoise.types import Bools

# Common names of the columns of a table of nodes.

ID_COLUMNS = ("id", "account_id", "account", "code", "account_code", "node", "node_id", "guid")
PARENT_COLUMNS = (
    "parent",
    "parent_id",
    "parent_account",
    "parent_account_id",
    "parent_code",
    "parent_guid",
    "parent_node",
)
NAME_COLUMNS = ("name", "account_name", "title", "label", "description", "text")


def guess_column(aliases: tuple[str, ...], columns: Iterable[str]) -> str | None:
    """The column with one of the known names, in any case; the first known name has priority.

    >>> guess_column(PARENT_COLUMNS, ["Account", "Parent Account", "Name"])
    'Parent Account'
    """
    by_plain_name = {_plain(column): column for column in reversed(list(columns))}
    return next((by_plain_name[name] for name in aliases if name in by_plain_name), None)


def _plain(column: str) -> str:
    return column.strip().casefold().replace(" ", "_").replace("-", "_")


# Trees in tables: one node a row, with its id, the id of its parent and its name.


def read_table(
    path: PathLike,
    id: str | None = None,  # noqa: A002  (the usual name of the column)
    parent: str | None = None,
    name: str | None = None,
) -> Tree:
    """Read a tree from a CSV, TSV, JSONL or parquet file with one row per node.

    A row without a parent is a root. A CSV file may be separated by semicolons or tabs.

    Parameters
    ----------
    path
        The file.
    id
        Column of the ids; by default ``id``, ``account`` or ``code``.
    parent
        Column of the parent ids; by default ``parent`` or ``parent_id``.
    name
        Column of the names; by default ``name``, ``title`` or ``label``. Without such a column the ids are the names.

    Returns
    -------
    Tree
        One node per row.

    Examples
    --------
    >>> read_table("chart.csv", id="nr", parent="above").named_edges()  # doctest: +SKIP
    """
    return tree_from_table(open_table(path), id, parent, name)


def open_table(path: PathLike) -> Table:
    """The rows of a file; text that is not JSON is split by the delimiter of its first line."""
    form = tables.table_format(path)
    if form not in (None, *tables.DELIMITERS):
        return tables.read_table(path)
    file = open_text(path)
    return tables.parse_table(file, form or "tsv")


def tree_from_table(table: Table, key: str | None, parent: str | None, name: str | None) -> Tree:
    """``tree_from_table`` for rows in memory; errors show the affected lines."""
    columns = list(dict.fromkeys(str(column) for row in table.rows for column in row))
    key_column = _column(table.name, columns, key, ID_COLUMNS, "ids")
    parent_column = _column(table.name, columns, parent, PARENT_COLUMNS, "parents")
    name_column = _column(table.name, columns, name, (), "names") if name else guess_column(NAME_COLUMNS, columns)
    # A record of JSON may leave out what it has nothing to say of: a root its parent.
    rows = [
        (
            cell_text(row.get(key_column)),
            cell_text(row.get(parent_column)),
            cell_text(row.get(name_column or "")),
        )
        for row in table.rows
    ]

    def excerpt(ids: Sequence[str]) -> str:
        if table.file is None:
            return ""
        requested = set(ids)
        line_numbers = [line for line, row in zip(table.line_numbers, rows, strict=True) if row[0] in requested]
        return table.file.excerpt(*line_numbers[:5])

    nodes = [(node, title) for node, _, title in rows]
    edges = [(node, above) for node, above, _ in rows if node and above]
    for index, (node, _, _) in enumerate(rows):
        if not node:
            error = table.error(MissingIdError, [index], f"has no {key_column}", hint="every node needs an id")
            assert isinstance(error, MissingIdError)
            error.rows = TreeRows(nodes, edges, table.name)
            raise error
    return Tree.of(nodes, edges, source=table.name, excerpt=excerpt)


def cell_text(value: object, source: str = "a table") -> str:
    """The content of a cell as an id or a name: stripped, empty for None.

    Bytes are text in UTF-8; others are an error that names the file.

    >>> cell_text(" 1010 "), cell_text(7), cell_text(7.0), cell_text(None), cell_text(b"1010")
    ('1010', '7', '7', '', '1010')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        return _decode_cell(bytes(value), source).strip()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _decode_cell(value: bytes, source: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{source} has the bytes 0x{value[:16].hex()} where an id or a name should be",
            hint="give them as text, for example by a view that converts them to hexadecimal",
        ) from error


def _column(source: str, columns: list[str], requested: str | None, default_names: tuple[str, ...], role: str) -> str:
    """The requested column, or the first one with a known name."""
    column = (
        next((name for name in columns if name == requested), None)
        if requested
        else guess_column(default_names, columns)
    )
    if column is not None:
        return column
    if requested:
        hint = did_you_mean(requested, columns) or f"there are: {', '.join(columns)}"
        raise FormatError(f"{source} has no column {requested}", hint=hint)
    raise FormatError(
        f"{source} has no column of {role}: it has {', '.join(columns)}",
        hint=f"call one of them {default_names[0]}, or name it: --columns {default_names[0]}=...; "
        "a file of edges has two columns: child, parent",
    )


# Trees in files of edges: one (child, parent) pair a line, or every (descendant, ancestor) pair.

READ_AS_CLOSURE = "(read as a closure)"
"""The note on a tree whose pairs were detected as a transitive closure."""


def read_edges(path: PathLike, *, closure: bool | None = None) -> Tree:
    """Read a tree from a CSV or TSV file of ``child, parent`` pairs.

    A header and a column of weights are recognised. A first line that may be a header of unknown words is read as an
    edge, and ``Tree.source`` says so.

    Parameters
    ----------
    path
        The file.
    closure
        Whether the pairs are descendants with all their ancestors. Pairs that follow from others are then not edges,
        and ``Tree.closure`` returns the pairs of the file. By default this is detected: some pairs follow from others,
        and none is missing; ``Tree.source`` says so. With False every pair is an edge.

    Returns
    -------
    Tree
        The nodes in the order of the file.

    Examples
    --------
    >>> read_edges("edges.csv").named_edges()  # doctest: +SKIP
    """
    file, lines = edge_lines(path)
    pairs = [edge for _, edge in lines]

    def excerpt(ids: Sequence[str]) -> str:
        requested = set(ids)
        return file.excerpt(*[line for line, (child, _) in lines if child in requested][:5])

    source = f"{file.name}{_header_note(path, pairs)}"
    tree = Tree.from_edges(pairs, source=source, excerpt=excerpt)
    if closure:
        return replace(tree_from_closure(tree, file.name), source=source)
    if closure is None:
        direct, missing = transitive_reduction(len(tree), tree.edges)
        if not len(missing) and not direct.all():
            return _direct_edges(tree, direct, f"{tree.source} {READ_AS_CLOSURE}")
    return tree


def _header_note(path: PathLike, pairs: list[Edge]) -> str:
    """The note on a first edge whose nodes occur nowhere else, and which may be a header."""
    first, *others = pairs
    if not others or any(node in edge for edge in others for node in first):
        return ""
    file = open_text(path)
    fields = next(csv.reader([file.first_line], delimiter=find_delimiter(file, table_format(path))))
    if [field.strip() for field in fields[:2]] != list(first):
        return ""
    return f" (line 1 was read as an edge: {first[0]} -> {first[1]})"


def tree_from_closure(closed: Tree, source: str) -> Tree:
    """The tree whose closure the edges of another one are; edges that are not closed are an error with an example."""
    direct, missing = transitive_reduction(len(closed), closed.edges)
    if len(missing):
        low, high = (closed.ids[index] for index in missing[0])
        between = _between(closed, *missing[0])
        raise InputError(
            f"{source} is not closed: it has {low} -> {between} -> {high}, but not {low} -> {high} "
            f"(missing pairs: {len(missing):,})",
            hint="if the pairs are edges to parents, read it without closure",
        )
    return _direct_edges(closed, direct, source)


def _direct_edges(closed: Tree, direct: Bools, source: str) -> Tree:
    """The same nodes with the direct edges alone."""
    edges = closed.edges[direct]
    edges.setflags(write=False)
    return Tree(closed.ids, closed.names, edges, source, closed.unnamed)


def _between(tree: Tree, low: int, high: int) -> str:
    """One node between the first and the second."""
    return tree.ids[int(np.intersect1d(tree.parents(low), tree.children(high))[0])]


# Trees in JSON: objects inside the ``children`` of others, or a flat list of records with parents.

CHILDREN = "children"
SEPARATOR = " / "
_EXAMPLE = '{"id": "1", "name": "Assets", "children": [...]}'


def read_json(path: PathLike) -> Tree:
    """Read a tree from a JSON file.

    Parameters
    ----------
    path
        Nested objects with ``children``, or a list of records with ``id`` and ``parent``. The id of a nested object
        without one is its path of names: ``Assets / Cash``.

    Returns
    -------
    Tree
        The nodes in the order of the file.

    Examples
    --------
    >>> read_json("chart.json").ids  # doctest: +SKIP
    """
    file = open_text(path)
    return tree_from_json(file, parse_json(file))


def tree_from_json(file: TextFile, value: Any) -> Tree:
    """The same from a value that was parsed already."""
    roots = [value] if isinstance(value, dict) else value
    if isinstance(roots, list) and any(isinstance(top, dict) and CHILDREN in top for top in roots):
        return _tree_from_nested(file.name, roots)
    if isinstance(value, dict):
        raise FormatError(
            f"{file.name} is one JSON object without {CHILDREN!r}, so it contains no tree",
            hint=f'write {_EXAMPLE}, or a list of {{"id": ..., "parent": ...}}',
        )
    return tree_from_table(table_of_json(file, value), None, None, None)


def _tree_from_nested(source: str, roots: list[Any]) -> Tree:
    nodes: list[tuple[str, str]] = []
    edges: list[Edge] = []
    waiting: list[tuple[Any, str | None]] = [(top, None) for top in reversed(roots)]
    while waiting:
        value, parent = waiting.pop()
        key, name = _identity(source, value, parent)
        nodes.append((key, name))
        if parent is not None:
            edges.append((key, parent))
        waiting.extend((child, key) for child in reversed(_children(source, value, key)))
    return Tree.of(nodes, edges, source=source)


def _identity(source: str, value: Any, parent: str | None) -> tuple[str, str]:
    """The id and the name of a nested object."""
    location = f"below {parent!r}" if parent is not None else "at the top"
    if not isinstance(value, dict):
        raise FormatError(f"{source} has {value!r} {location}, which is not a JSON object", hint=f"write {_EXAMPLE}")
    keys = [guess_column(aliases, value) for aliases in (ID_COLUMNS, NAME_COLUMNS)]
    key, name = (cell_text(value[column]) if column else "" for column in keys)
    if not key and not name:
        raise FormatError(f"{source} has an object {location} with neither id nor name", hint=f"write {_EXAMPLE}")
    return key or (name if parent is None else f"{parent}{SEPARATOR}{name}"), name


def _children(source: str, value: dict[str, Any], key: str) -> list[Any]:
    children = value.get(CHILDREN) or []
    if not isinstance(children, list):
        raise FormatError(f"{source}: the children of {key!r} are not a list", hint=f"write {_EXAMPLE}")
    return children


Path = tuple[str, ...]

_PART = re.compile(r"[^\W_]+")


def from_codes(
    codes: Iterable[Node],
    *,
    widths: Sequence[int] | None = None,
    source: str = "codes",
) -> Tree:
    """Build a tree from hierarchical codes.

    The parts of a code are separated (``102-0001-003``, ``1.2.3``) or have fixed widths. Trailing parts that are all
    zeros are padding, so 1000 is the parent of 1100, and 102-0000 is 102. If the code directly above is not listed,
    the next one above is the parent.

    Parameters
    ----------
    codes
        Codes, or tuples of code and name.
    widths
        Widths of the parts of codes without separators: ``(1, 1, 2)`` reads 1120 as 1, 1, 20.
    source
        The name of the tree.

    Returns
    -------
    Tree
        One node per code.

    Examples
    --------
    >>> tree = from_codes(["102", "102-0001", "102-0001-003"])
    >>> tree.named_edges()
    [('102-0001', '102'), ('102-0001-003', '102-0001')]
    >>> from_codes(["1000", "1100", "1120"], widths=(1, 1, 2)).named_edges()
    [('1100', '1000'), ('1120', '1100')]
    """
    nodes = [(node, node) if isinstance(node, str) else node for node in codes]
    paths: dict[Path, str] = {}
    for code, _ in nodes:
        path = _path(code, widths, source)
        if paths.setdefault(path, code) != code:
            raise InputError(
                f"{source}: the codes {paths[path]} and {code} name the same node",
                hint="trailing parts of zeros are padding; keep one of the two",
            )
    edges = []
    for path, code in paths.items():
        above = next((path[:size] for size in range(len(path) - 1, 0, -1) if path[:size] in paths), ())
        if above:
            edges.append((code, paths[above]))
    return Tree.of(nodes, edges, source=source)


def read_codes(path: PathLike, *, widths: Sequence[int] | None = None) -> Tree:
    """Build a tree from the hierarchical codes in a file.

    Parameters
    ----------
    path
        A table with a column of codes and optionally one of names, or a text file with one code per line.
    widths
        As in ``from_codes``.

    Returns
    -------
    Tree
        One node per code.

    Examples
    --------
    >>> read_codes("codes.txt", widths=(1, 1, 2)).named_edges()  # doctest: +SKIP
    """
    if table_format(path) is None:
        lines = [line.decode("utf-8").strip() for line in open_text(path).lines]
        return from_codes((line for line in lines if line), widths=widths, source=display_path(path))
    table = open_table(path)
    key, name = (guess_column(aliases, table.rows[0]) for aliases in (ID_COLUMNS, NAME_COLUMNS))
    if key is None:
        raise FormatError(
            f"{table.name} has no column of codes: it has {', '.join(map(str, table.rows[0]))}",
            hint="call it code",
        )
    nodes = [(cell_text(row[key]), cell_text(row.get(name)) if name else "") for row in table.require(key).rows]
    return from_codes(nodes, widths=widths, source=table.name)


def _path(code: str, widths: Sequence[int] | None, source: str) -> Path:
    """The parts of a code, without parts of zeros at its end; the first part is always kept."""
    parts = _split_code(code, widths, source) if widths else _PART.findall(code)
    if not parts:
        raise InputError(f"{source}: the code {code!r} has no letters or digits", hint="drop it")
    while len(parts) > 1 and not parts[-1].strip("0"):
        parts.pop()
    return tuple(parts)


def _split_code(code: str, widths: Sequence[int], source: str) -> list[str]:
    ends = [sum(widths[: index + 1]) for index in range(len(widths))]
    if any(width < 1 for width in widths):
        raise ParameterError(f"the widths are {list(widths)}", hint="each part has at least one character")
    if len(code) not in ends:
        raise InputError(
            f"{source}: the code {code} has {len(code)} characters, not {' or '.join(map(str, ends))}",
            hint="give the widths of all parts, from the left",
        )
    return [code[end - width : end] for end, width in zip(ends, widths, strict=True) if end <= len(code)]
