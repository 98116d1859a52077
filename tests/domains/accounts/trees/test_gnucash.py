"""GnuCash: books in XML and SQLite, and the templates of the program."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from equipoise.domains.accounts.trees.read import read_gnucash
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import DuplicateError, FormatError, InputError

TEMPLATES = Path("/usr/share/gnucash/accounts")

ROWS = [
    ("root", "", "Root Account", "ROOT"),
    ("a", "root", "Assets", "ASSET"),
    ("c", "a", "Cash & coins", "CASH"),
    ("e", "root", "Expenses", "EXPENSE"),
]
CODES = {"a": "1000", "c": "1010", "e": ""}
SCHEDULED = [("troot", "", "Template Root", "ROOT"), ("t", "troot", "Monthly rent", "BANK")]


def element(row: tuple[str, str, str, str]) -> str:
    guid, parent, name, account_type = row
    code = f"<act:code>{CODES[guid]}</act:code>" if guid in CODES else ""
    parent_element = f'<act:parent type="guid">{parent}</act:parent>' if parent else ""
    return (
        f'<gnc:account version="2.0.0"><act:name>{name.replace("&", "&amp;")}</act:name>'
        f'<act:id type="guid">{guid}</act:id><act:type>{account_type}</act:type>{code}{parent_element}</gnc:account>'
    )


def book() -> bytes:
    return (
        '<?xml version="1.0" encoding="utf-8" ?>\n<gnc-v2 xmlns:gnc="http://www.gnucash.org/XML/gnc" '
        'xmlns:act="http://www.gnucash.org/XML/act"><gnc:book version="2.0.0">'
        + "".join(map(element, ROWS))
        + "<gnc:template-transactions>"
        + "".join(map(element, SCHEDULED))
        + "</gnc:template-transactions></gnc:book></gnc-v2>"
    ).encode()


def database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE accounts (guid, name, account_type, parent_guid, code)")
        connection.execute("CREATE TABLE books (guid, root_account_guid, root_template_guid)")
        connection.execute("CREATE TABLE commodities (guid)")
        connection.execute("INSERT INTO books VALUES ('b', 'root', 'troot')")
        connection.executemany(
            "INSERT INTO accounts (guid, parent_guid, name, account_type, code) VALUES (?, ?, ?, ?, ?)",
            [(guid, parent or None, name, kind, CODES.get(guid)) for guid, parent, name, kind in ROWS + SCHEDULED],
        )
    return path


def test_xml_gzip_and_sqlite_have_the_same_accounts_without_root_and_templates(tmp_path):
    xml_path, gzip_path = tmp_path / "plain.gnucash", tmp_path / "packed.gnucash"
    xml_path.write_bytes(book())
    gzip_path.write_bytes(gzip.compress(book()))
    expected = Tree.of([("1000", "Assets"), ("1010", "Cash & coins"), ("e", "Expenses")], [("1010", "1000")])
    for path in (xml_path, gzip_path, database(tmp_path / "books.gnucash")):
        assert read_gnucash(path).fingerprint == expected.fingerprint


def test_accounts_that_share_a_code_have_their_guids_as_ids(tmp_path, monkeypatch):
    monkeypatch.setitem(CODES, "e", "1010")
    path = tmp_path / "plain.gnucash"
    path.write_bytes(book())
    assert read_gnucash(path).ids == ("1000", "c", "e")


def test_files_without_gnucash_accounts_are_errors(tmp_path):
    path = tmp_path / "books.gnucash"
    path.write_text("<html></html>")
    with pytest.raises(FormatError, match="GnuCash"):
        read_gnucash(path)
    path.write_text("<gnc-v2>")
    with pytest.raises(FormatError, match="GnuCash XML"):
        read_gnucash(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE other (id)")
    with pytest.raises(FormatError):
        read_gnucash(path)
    with pytest.raises(InputError):
        read_gnucash(tmp_path / "absent.gnucash")


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="gnucash-common is not installed")
def test_the_templates_of_gnucash_are_trees_with_several_roots():
    tree = read_gnucash(TEMPLATES / "C" / "acctchrt_common.gnucash-xea")
    assert {"Assets", "Liabilities", "Income", "Expenses", "Equity"} == {tree.names[root] for root in tree.roots}
    assert "Checking Account" in tree.names


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="gnucash-common is not installed")
@pytest.mark.parametrize("language", ["de_DE", "ja", "he"])
def test_templates_of_other_languages_are_read(language):
    paths = sorted((TEMPLATES / language).glob("*.gnucash-xea"))
    assert paths
    for path in paths:
        tree = read_gnucash(path)
        assert len(tree.edges) == len(tree) - len(tree.roots)


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="gnucash-common is not installed")
def test_a_template_with_a_repeated_id_is_an_error():
    with pytest.raises(DuplicateError, match="id 2ff007a389bd23d8970afeba2d58c9a8"):
        read_gnucash(TEMPLATES / "es_MX" / "acctchrt_common.gnucash-xea")
