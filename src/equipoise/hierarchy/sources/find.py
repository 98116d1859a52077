"""One reader for all sources: what a path or a URL holds decides how it is read."""

from __future__ import annotations

import os

from equipoise.data.jsontext import parse_json
from equipoise.data.tables import DELIMITERS, format_of, records
from equipoise.data.text import PathLike, TextFile, open_text, read_bytes, shown
from equipoise.errors import InputError, ParameterError
from equipoise.hierarchy.sources import columns
from equipoise.hierarchy.sources.codes import read_codes
from equipoise.hierarchy.sources.edges import read_edges
from equipoise.hierarchy.sources.gnucash import is_gnucash_database, read_gnucash
from equipoise.hierarchy.sources.json_tree import tree_of_json
from equipoise.hierarchy.sources.obo import read_obo_tree
from equipoise.hierarchy.sources.sql import read_sql
from equipoise.hierarchy.sources.sqlite_file import MAGIC
from equipoise.hierarchy.sources.table import read_table
from equipoise.hierarchy.sources.wordnet import read_wordnet
from equipoise.hierarchy.tree import Tree

WORDNET = "wordnet"
_TABLES = ("jsonl", "parquet")
_FORMS = (
    "a database URL, a SQLite file, GnuCash, OBO, JSON, a CSV or TSV with id and parent, edges, codes, "
    "wordnet:noun or wordnet:verb"
)


def read_tree(source: PathLike, business_id: str | int | None = None) -> Tree:
    """The tree of a file, of a database or of WordNet, told apart by what they hold.

    ``wordnet:verb`` and ``wordnet:noun:mammal.n.01`` name parts of WordNet; all else is a URL or a path.
    Readers with options of their own stand beside this one. ``business_id`` is for databases.
    """
    spec = os.fspath(source)
    if "://" in spec:
        return read_sql(spec, business_id)
    if spec.partition(":")[0] == WORDNET and not os.path.exists(spec):
        tree = _wordnet(spec)
    elif not read_bytes(spec).startswith(MAGIC):
        tree = _of_file(spec)
    elif not is_gnucash_database(spec):
        return read_sql(spec, business_id)
    else:
        tree = read_gnucash(spec)
    if business_id is not None:
        raise ParameterError(
            f"{shown(spec)} is no database of several businesses, so no business id applies",
            hint="leave the business id out",
        )
    return tree


def _wordnet(spec: str) -> Tree:
    _, part, root = (*spec.split(":", 2), "", "")[:3]
    return read_wordnet(part or "noun", root or None)


def _of_file(path: str) -> Tree:
    form = format_of(path)
    if form in _TABLES:
        return read_table(path)
    start = read_bytes(path)[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return read_gnucash(path)
    file = open_text(path)
    if start.startswith((b"{", b"[")) and form not in DELIMITERS:
        value = parse_json(file)
        return (
            read_obo_tree(path)
            if isinstance(value, dict) and "graphs" in value
            else tree_of_json(file, value)
        )
    if start.startswith((b"format-version:", b"[Term]")) or path.casefold().endswith((".obo", ".obo.gz")):
        return read_obo_tree(path)
    return _delimited(path, file)


def _delimited(path: str, file: TextFile) -> Tree:
    """A table, edges or codes, by the columns of the first line; edges have no line for a root."""
    form = format_of(path)
    delimiter = DELIMITERS.get(form or "") or ("\t" if "\t" in file.first_line else ",")
    rows = records(file, delimiter)
    header = rows[0][1] if rows else []
    key, parent = columns.guess(columns.ID, header), columns.guess(columns.PARENT, header)
    rooted = any(not all(each.strip() for each in fields) for _, fields in rows)
    if key and parent and (len(header) > 2 or rooted) and form in DELIMITERS:
        return read_table(path)
    if key and not parent and form in DELIMITERS:
        return read_codes(path)
    if len(header) == 2 or (len(header) == 3 and header[2].strip().casefold() == "weight"):
        return read_edges(path)
    if len(header) == 1 and form is None and len(rows) > 1:
        return read_codes(path)
    raise InputError(f"{shown(path)} is no hierarchy that is known here", hint=f"it may be {_FORMS}")
