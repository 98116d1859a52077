"""The accounts of GnuCash: books in XML or SQLite, and the account templates that come with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple
from xml.etree import ElementTree

from equipoise.data.text import PathLike, read_bytes, shown
from equipoise.errors import FormatError, InputError
from equipoise.hierarchy.sources.sqlite_file import MAGIC, explained_damage, open_sqlite
from equipoise.hierarchy.tree import Tree

ROOT_TYPE = "ROOT"
_ACCOUNT = "{http://www.gnucash.org/XML/gnc}account"
_TEMPLATES = "{http://www.gnucash.org/XML/gnc}template-transactions"
_FIELD = "{http://www.gnucash.org/XML/act}"
_ACCOUNTS_OF_BOOKS = "SELECT guid, parent_guid, name, account_type FROM accounts"
_TEMPLATE_ROOTS = "SELECT root_template_guid FROM books"


class _Account(NamedTuple):
    guid: str
    parent: str
    name: str
    kind: str


def read_gnucash(path: PathLike) -> Tree:
    """The accounts of a GnuCash file, by guid: XML plain or gzipped, SQLite, or a ``.gnucash-xea`` template.

    The invisible "Root Account" is left out, so that Assets, Income and so on are the roots; so are the
    accounts of scheduled transactions.
    """
    data = read_bytes(path)
    accounts = _without_templates(*_rows(path)) if data.startswith(MAGIC) else _parsed(shown(path), data)
    hidden = {each.guid for each in accounts if each.kind == ROOT_TYPE}
    kept = [each for each in accounts if each.guid not in hidden]
    if not kept:
        raise InputError(f"{shown(path)} holds no accounts", hint="is it a GnuCash file?")
    edges = [(each.guid, each.parent) for each in kept if each.parent and each.parent not in hidden]
    return Tree.of([(each.guid, each.name) for each in kept], edges, source=shown(path))


def is_gnucash_database(path: PathLike) -> bool:
    """Whether a SQLite file has books, and accounts with the columns that are read of them."""
    with explained_damage(path), closing(open_sqlite(path)) as connection:
        books = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'books'")
        held = {name for _, name, *_ in connection.execute("PRAGMA table_info(accounts)")}
        return books.fetchone() is not None and {"guid", "parent_guid", "name", "account_type"} <= held


def _parsed(source: str, data: bytes) -> list[_Account]:
    try:
        top = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise FormatError(
            f"{source} is no GnuCash XML: {error}", hint="GnuCash writes XML or SQLite"
        ) from error
    scheduled = {id(account) for part in top.iter(_TEMPLATES) for account in part.iter(_ACCOUNT)}
    found = [_account(element) for element in top.iter(_ACCOUNT) if id(element) not in scheduled]
    if not found:
        raise FormatError(
            f"{source} is XML, but no GnuCash accounts are in it",
            hint="export the accounts from GnuCash again",
        )
    return found


def _account(element: ElementTree.Element) -> _Account:
    fields = (
        (element.findtext(f"{_FIELD}{name}") or "").strip() for name in ("id", "parent", "name", "type")
    )
    return _Account(*fields)


def _rows(path: PathLike) -> tuple[list[_Account], list[str]]:
    """All accounts of a SQLite book, and the roots of scheduled transactions."""
    try:
        with closing(open_sqlite(path)) as connection:
            accounts = [
                _Account(*(str(value or "") for value in row))
                for row in connection.execute(_ACCOUNTS_OF_BOOKS)
            ]
            return accounts, [str(guid) for (guid,) in connection.execute(_TEMPLATE_ROOTS)]
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise FormatError(
            f"{shown(path)} is no GnuCash database: {error}", hint="other databases are read by their URL"
        ) from error


def _without_templates(accounts: list[_Account], roots: Iterable[str]) -> list[_Account]:
    """The accounts that do not hang from a root of scheduled transactions."""
    children: dict[str, list[str]] = {}
    for each in accounts:
        children.setdefault(each.parent, []).append(each.guid)
    gone: set[str] = set()
    waiting = list(roots)
    while waiting:
        guid = waiting.pop()
        if guid not in gone:
            gone.add(guid)
            waiting.extend(children.get(guid, ()))
    return [each for each in accounts if each.guid not in gone]
