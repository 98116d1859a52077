"""Read a tree from any source, and the formats of other programs: GnuCash, WordNet, OBO ontologies and NetworkX.

The format of a file is detected from its content.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from equipoise.domains.accounts.trees import files as usual
from equipoise.domains.accounts.trees.files import (
    open_table,
    read_codes,
    read_edges,
    read_table,
    tree_from_json,
    tree_from_table,
)
from equipoise.domains.accounts.trees.sql import MAGIC, TableColumns, explained_damage, open_sqlite, read_sql
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import FormatError, InputError, ParameterError, UnknownNameError
from equipoise.io.dag import Edge, find_cycle, guess_header_roles, standard_header_roles
from equipoise.io.json import parse_json
from equipoise.io.obo import read_obo
from equipoise.io.tables import DELIMITERS, find_delimiter, records, table_format
from equipoise.io.text import PathLike, TextFile, display_path, open_text, read_bytes, read_text

WORDNET = "wordnet"
_TABLES = ("jsonl", "parquet")
_FORMS = (
    "database URLs, SQLite files, GnuCash, OBO, JSON, CSV or TSV with id and parent, edges, codes, wordnet:noun and "
    "wordnet:verb"
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
        f"{display_path(path)} is not in a known format of trees{columns_text}",
        hint=_NAME_THEM if columns_text else f"known are {_FORMS}",
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


ROOT_TYPE = "ROOT"
_ACCOUNT = "{http://www.gnucash.org/XML/gnc}account"
_TEMPLATES = "{http://www.gnucash.org/XML/gnc}template-transactions"
_FIELD = "{http://www.gnucash.org/XML/act}"
_ACCOUNTS_OF_BOOKS = "SELECT guid, parent_guid, name, account_type, code FROM accounts"
_TEMPLATE_ROOTS = "SELECT root_template_guid FROM books"


class _Account(NamedTuple):
    guid: str
    parent: str
    name: str
    kind: str
    code: str


def read_gnucash(path: PathLike) -> Tree:
    """Read the accounts of a GnuCash file.

    The hidden root account is left out, so that Assets, Income and so on are the roots. Accounts of scheduled
    transactions are left out, too.

    Parameters
    ----------
    path
        XML (plain or gzipped), SQLite, or a ``.gnucash-xea`` template.

    Returns
    -------
    Tree
        One node per account. The ids are the account codes; an account without a code of its own has its GUID.

    Examples
    --------
    >>> tree = read_gnucash("books.gnucash")  # doctest: +SKIP
    """
    data = read_bytes(path)
    accounts = _without_templates(*_rows(path)) if data.startswith(MAGIC) else _parse_xml(display_path(path), data)
    hidden = {account.guid for account in accounts if account.kind == ROOT_TYPE}
    visible = [account for account in accounts if account.guid not in hidden]
    if not visible:
        raise InputError(f"{display_path(path)} holds no accounts", hint="is it a GnuCash file?")
    codes, guids = Counter(account.code for account in visible), Counter(account.guid for account in visible)
    id_of = {
        account.guid: account.code
        for account in visible
        if account.code and codes[account.code] == guids[account.guid] == 1
    }
    edges = [
        (id_of.get(account.guid, account.guid), id_of.get(account.parent, account.parent))
        for account in visible
        if account.parent and account.parent not in hidden
    ]
    nodes = [(id_of.get(account.guid, account.guid), account.name) for account in visible]
    return Tree.of(nodes, edges, source=display_path(path))


def is_gnucash_database(path: PathLike) -> bool:
    """Whether a SQLite file has books, and accounts with the columns that are read of them."""
    with explained_damage(path), closing(open_sqlite(path)) as connection:
        tables = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'books'")
        columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(accounts)")}
        return tables.fetchone() is not None and {"guid", "parent_guid", "name", "account_type", "code"} <= columns


def _parse_xml(source: str, data: bytes) -> list[_Account]:
    try:
        top = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise FormatError(f"{source} is not GnuCash XML: {error}", hint="GnuCash writes XML or SQLite") from error
    scheduled = {id(account) for part in top.iter(_TEMPLATES) for account in part.iter(_ACCOUNT)}
    accounts = [_account(element) for element in top.iter(_ACCOUNT) if id(element) not in scheduled]
    if not accounts:
        raise FormatError(
            f"{source} is XML, but no GnuCash accounts are in it",
            hint="export the accounts from GnuCash again",
        )
    return accounts


def _account(element: ElementTree.Element) -> _Account:
    fields = ((element.findtext(f"{_FIELD}{name}") or "").strip() for name in ("id", "parent", "name", "type", "code"))
    return _Account(*fields)


def _rows(path: PathLike) -> tuple[list[_Account], list[str]]:
    """All accounts of a SQLite book, and the roots of scheduled transactions."""
    try:
        with closing(open_sqlite(path)) as connection:
            accounts = [
                _Account(*(str(value or "") for value in row)) for row in connection.execute(_ACCOUNTS_OF_BOOKS)
            ]
            return accounts, [str(guid) for (guid,) in connection.execute(_TEMPLATE_ROOTS)]
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise FormatError(
            f"{display_path(path)} is not a GnuCash database: {error}",
            hint="other databases are read by their URL",
        ) from error


def _without_templates(accounts: list[_Account], roots: Iterable[str]) -> list[_Account]:
    """The accounts that do not hang from a root of scheduled transactions."""
    children: dict[str, list[str]] = {}
    for account in accounts:
        children.setdefault(account.parent, []).append(account.guid)
    template_guids: set[str] = set()
    waiting = list(roots)
    while waiting:
        guid = waiting.pop()
        if guid not in template_guids:
            template_guids.add(guid)
            waiting.extend(children.get(guid, ()))
    return [account for account in accounts if account.guid not in template_guids]


# The hypernyms of WordNet as a tree, read from its files (Debian: ``apt install wordnet-base``).

FOLDER = Path("/usr/share/wordnet")
PARTS = {"noun": "n", "verb": "v"}
HYPERNYM, INSTANCE = "@", "@i"


@dataclass(frozen=True, slots=True)
class _Synset:
    """One line of a data file: offset, words, and pointers to hypernyms."""

    offset: str
    words: list[str]
    above: list[tuple[str, str]]


def read_wordnet(
    part: str = "noun",
    root: str | None = None,
    instances: bool = True,
    *,
    isolated: bool = False,
    folder: PathLike = FOLDER,
) -> Tree:
    """Read the synsets of a part of speech and their hypernyms from the files of WordNet.

    If the hypernyms of a release contain a cycle (some have one among the verbs), the edge of the cycle that is last in
    the file is left out.

    Parameters
    ----------
    part
        ``noun`` or ``verb``.
    root
        A synset such as ``mammal.n.01``, to read only its subtree.
    instances
        Whether "is an instance of" (Einstein is a physicist) counts as a hypernym.
    isolated
        Whether synsets without any relation are kept.
    folder
        The folder with WordNet's database files; by default that of Debian's package ``wordnet-base``.

    Returns
    -------
    Tree
        One node per synset.

    Examples
    --------
    >>> mammals = read_wordnet("noun", root="mammal.n.01")  # doctest: +SKIP
    """
    if part not in PARTS:
        raise UnknownNameError.of("part of WordNet with hypernyms", part, PARTS, more="there are: noun, verb")
    location = Path(folder)
    # Releases have the files in dict/, and NLTK's download in corpora/wordnet.
    for below in ("dict", "corpora/wordnet"):
        if not (location / f"data.{part}").is_file() and (location / below / f"data.{part}").is_file():
            location = location / below
    if not (location / f"data.{part}").is_file():
        raise InputError(
            f"there is no WordNet at {location}",
            hint="apt install wordnet-base, or name the folder of data.noun: --wordnet-folder",
        )
    kinds = {HYPERNYM, INSTANCE} if instances else {HYPERNYM}
    senses = _senses(location / f"index.{part}")
    synsets = list(_synsets(location / f"data.{part}", PARTS[part]))
    name_of = {synset.offset: _name(synset, PARTS[part], senses) for synset in synsets}
    nodes = [(name_of[synset.offset], synset.words[0].replace("_", " ")) for synset in synsets]
    edges = _without_cycles(
        {
            (name_of[synset.offset], name_of[above]): None
            for synset in synsets
            for kind, above in synset.above
            if kind in kinds
        }
    )
    tree = Tree.of(nodes, edges, source=f"WordNet {part}s")
    if root is not None:
        return replace(tree.subtree(root), source=f"{tree.source} below {root}")
    return tree if isolated else tree.taken(np.flatnonzero(~tree.isolated))


def _synsets(path: Path, letter: str) -> Iterator[_Synset]:
    """The synsets of a data file, as wndb(5WN) describes it; lines of the licence start with blanks."""
    for line in read_text(path).splitlines():
        if line.startswith(" "):
            continue
        fields = line.partition(" | ")[0].split()
        count = int(fields[3], 16)
        pointers = fields[4 + 2 * count :]
        above = [
            (pointers[field], pointers[field + 1])
            for field in range(1, 1 + 4 * int(pointers[0]), 4)
            if pointers[field] in {HYPERNYM, INSTANCE} and pointers[field + 2] == letter
        ]
        yield _Synset(fields[0], fields[4 : 4 + 2 * count : 2], above)


def _senses(path: Path) -> dict[str, list[str]]:
    """The offsets of each word's synsets, the most frequent sense first."""
    senses = {}
    for line in read_text(path).splitlines():
        if not line.startswith(" "):
            fields = line.split()
            senses[fields[0]] = fields[-int(fields[2]) :]
    return senses


def _name(synset: _Synset, letter: str, senses: dict[str, list[str]]) -> str:
    """``mammal.n.01``: the first word, and which of its senses this is."""
    word = synset.words[0].lower()
    return f"{word}.{letter}.{senses[word].index(synset.offset) + 1:02d}"


def _without_cycles(edges: dict[Edge, None]) -> dict[Edge, None]:
    """The edges without the last one of every cycle."""
    left = dict(edges)
    order = {edge: index for index, edge in enumerate(edges)}
    while cycle := find_cycle(left):
        left.pop(max(zip(cycle, [*cycle[1:], cycle[0]], strict=True), key=order.__getitem__))
    return left


# Trees of ontologies: the is_a relation of an OBO file.


def read_obo_tree(path: PathLike) -> Tree:
    """Read the terms of an ontology and their ``is_a`` parents as a tree. Obsolete terms are left out.

    Parameters
    ----------
    path
        An OBO text file or an OBO-graph JSON file.

    Returns
    -------
    Tree
        One node per term.

    Examples
    --------
    >>> read_obo_tree("hp.obo")  # doctest: +SKIP
    Tree('hp.obo', 19034 nodes, 23392 edges, 1 root, 15 levels)
    """
    terms = [term for term in read_obo(path).terms if not term.obsolete]
    return Tree.of(
        [(term.id, term.name) for term in terms],
        [(term.id, parent) for term in terms for parent in dict.fromkeys(term.parents)],
        source=display_path(path),
    )


# Trees from NetworkX graphs.

DIRECTIONS = ("down", "up")


def from_networkx(graph: Any, direction: str = "down", *, name: str = "name") -> Tree:
    """Build a tree from a directed NetworkX graph.

    Parameters
    ----------
    graph
        The graph. The ids of the tree are the nodes as text.
    direction
        Whether edges point ``down`` to the children or ``up`` to the parents.
    name
        The node attribute that is the name.

    Returns
    -------
    Tree
        One node per node of the graph.

    Examples
    --------
    >>> import networkx
    >>> from_networkx(networkx.DiGraph([("assets", "cash")])).named_edges()
    [('cash', 'assets')]
    """
    if direction not in DIRECTIONS:
        raise UnknownNameError.of("direction", direction, DIRECTIONS, more="edges lead down or up")
    if not graph.is_directed():
        raise InputError(
            "the graph is undirected, so parents and children are unknown",
            hint="networkx.bfs_tree(graph, root) gives a directed tree",
        )
    nodes = [(str(node), str(data.get(name) or node)) for node, data in graph.nodes(data=True)]
    pairs = [(str(left), str(right)) for left, right in graph.edges()]
    edges = pairs if direction == "up" else [(right, left) for left, right in pairs]
    return Tree.of(nodes, edges, source=str(graph.name or "networkx graph"))
