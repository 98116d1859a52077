"""Read a tree from any source; the format is detected from the content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from equipoise.domains.accounts.trees import files as usual
from equipoise.domains.accounts.trees.files import (
    open_table,
    read_codes,
    read_edges,
    read_table,
    tree_from_json,
    tree_from_table,
)
from equipoise.domains.accounts.trees.formats import (
    is_gnucash_database,
    read_gnucash,
    read_obo_tree,
    read_wordnet,
)
from equipoise.domains.accounts.trees.sql import MAGIC, TableColumns, read_sql
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import FormatError, InputError, ParameterError
from equipoise.io.edge_list import guess_header_roles, standard_header_roles
from equipoise.io.json import parse_json
from equipoise.io.tables import DELIMITERS, find_delimiter, records, table_format
from equipoise.io.text import PathLike, TextFile, display_path, open_text, read_bytes

WORDNET = "wordnet"
_TABLES = ("jsonl", "parquet")
_FORMS = (
    "a database URL, a SQLite file, GnuCash, OBO, JSON, a CSV or TSV with id and parent, edges, codes, "
    "wordnet:noun or wordnet:verb"
)

_NAME_THEM = "name them with --columns id=...,parent=..."


def read_tree(
    source: PathLike, business_id: str | int | None = None, *, columns: Mapping[str, str] | None = None
) -> Tree:
    """Read a tree from a file, a database or WordNet. The format is detected.

    Parameters
    ----------
    source
        A path, a database URL, or a part of WordNet such as ``wordnet:verb`` or ``wordnet:noun:mammal.n.01``.
    business_id
        The business, for databases with several.
    columns
        Names of the columns of a table: ``{"id": "Konto", "parent": "Oberkonto"}``; ``name`` and ``business`` may be
        named as well.

    Returns
    -------
    Tree
        Nodes with id, name and parents.

    Examples
    --------
    >>> read_tree("accounts.csv", columns={"id": "nr", "parent": "above"})  # doctest: +SKIP
    Tree('accounts.csv', 128 nodes, 122 edges, 6 roots, 4 levels)
    """
    spec, column_names = os.fspath(source), dict(columns or {})
    if "://" in spec:
        return read_sql(spec, business_id, columns=TableColumns(**column_names))
    if spec.partition(":")[0] == WORDNET and not os.path.exists(spec):
        _check_no_columns(spec, column_names)
        tree = _wordnet(spec)
    elif not read_bytes(spec).startswith(MAGIC):
        tree = _tree_from_columns(spec, column_names) if column_names else _tree_from_file(spec)
    elif not is_gnucash_database(spec):
        return read_sql(spec, business_id, columns=TableColumns(**column_names))
    else:
        _check_no_columns(spec, column_names)
        tree = read_gnucash(spec)
    if business_id is not None:
        raise ParameterError(
            f"{display_path(spec)} is not a database of several businesses, so no business id applies",
            hint="leave the business id out",
        )
    return tree


def _check_no_columns(path: str, column_names: Mapping[str, str]) -> None:
    if column_names:
        raise ParameterError(
            f"{display_path(path)} is not a table, so it has no columns to name", hint="leave the columns out"
        )


def _tree_from_columns(path: str, column_names: dict[str, str]) -> Tree:
    """A table whose columns were named; two columns without a row for a root are edges."""
    start = _start(path)
    if start.startswith(b"<") or _is_obo(path, start):
        _check_no_columns(path, column_names)
    if "business" in column_names:
        raise ParameterError(
            f"{display_path(path)} is not a database, so no column of businesses applies",
            hint="leave business= out of the columns",
        )
    table = open_table(path)
    key, parent = column_names.get("id"), column_names.get("parent")
    if key and parent and all(len(row) == 2 and row.get(key) and row.get(parent) for row in table.rows):
        return Tree.from_edges(((row[key], row[parent]) for row in table.rows), source=table.name)
    return tree_from_table(table, key, parent, column_names.get("name"))


def _wordnet(spec: str) -> Tree:
    _, part, root = (*spec.split(":", 2), "", "")[:3]
    return read_wordnet(part or "noun", root or None)


def _tree_from_file(path: str) -> Tree:
    form = table_format(path)
    if form in _TABLES:
        return read_table(path)
    start = _start(path)
    if start.startswith(b"<"):
        return read_gnucash(path)
    file = open_text(path)
    if start.startswith((b"{", b"[")) and form not in DELIMITERS:
        value = parse_json(file)
        return read_obo_tree(path) if isinstance(value, dict) and "graphs" in value else tree_from_json(file, value)
    if _is_obo(path, start):
        return read_obo_tree(path)
    return _read_delimited(path, file)


def _start(path: str) -> bytes:
    return read_bytes(path)[:512].lstrip(b"\xef\xbb\xbf \t\r\n")


def _is_obo(path: str, start: bytes) -> bool:
    return start.startswith((b"format-version:", b"[Term]")) or path.casefold().endswith((".obo", ".obo.gz"))


def _read_delimited(path: str, file: TextFile) -> Tree:
    """A table, edges or codes, by the columns of the first line; edges have no line for a root."""
    form = table_format(path)
    rows = records(file, find_delimiter(file, form))
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    key, parent = (
        usual.guess_column(usual.ID_COLUMNS, header),
        usual.guess_column(usual.PARENT_COLUMNS, header),
    )
    rooted = any(not all(cell.strip() for cell in fields) for _, fields in rows)
    if key and parent and (len(header) > 2 or rooted):
        return read_table(path)
    if key and not parent and form in DELIMITERS and not _names_edges(rows):
        return _check_not_flat(read_codes(path), header)
    if len(header) == 2 or (len(header) == 3 and header[2].casefold() == "weight"):
        return read_edges(path)
    if len(header) == 1 and form is None and len(rows) > 1:
        return read_codes(path)
    columns_text = f": its columns are {', '.join(header)}" if len(header) > 1 else ""
    raise InputError(
        f"{display_path(path)} is not a known format of hierarchies{columns_text}",
        hint=f"{_NAME_THEM}; it may also be {_FORMS}" if columns_text else f"it may be {_FORMS}",
    )


def _names_edges(rows: list[tuple[int, list[str]]]) -> bool:
    """Whether the first line names the two columns of edges, the second under a word for parents."""
    header = [cell.strip() for cell in rows[0][1]]
    roles = standard_header_roles(header) or guess_header_roles(
        header, (cell.strip() for _, row in rows[1:] for cell in row)
    )
    return roles is not None and usual.guess_column(usual.NAME_COLUMNS, header) is None


def _check_not_flat(tree: Tree, header: list[str]) -> Tree:
    """Codes of which none begins with another, in a table that may have parents under another name."""
    if len(tree.edges) or len(tree) < 2:
        return tree
    raise FormatError(
        f"{tree.source} has no column of parents, and no code is the beginning of another: its columns are "
        f"{', '.join(header)}",
        hint=f"{_NAME_THEM}; codes without separators are read with --codes and --code-widths",
    )


BUSINESSES = ("acme", "larkspur")
"""The business ids of ``accounts()``: a maker of tools with a shop, and a design studio."""


def accounts() -> Path:
    """The SQLite file with the charts of accounts of two businesses, some 200 accounts in four levels.

    The same folder has the chart of each as ``acme.csv`` and ``larkspur.csv``.
    """
    with as_file(files("equipoise.io") / "samples" / "accounts") as folder:
        return folder / "books.db"
