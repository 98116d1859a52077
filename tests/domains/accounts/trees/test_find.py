"""The reader for all sources, and the packaged sample."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing

import pytest

from equipoise.domains.accounts.trees.read import BUSINESSES, accounts, read_tree
from equipoise.errors import EquipoiseError, InputError, ParameterError

CHART = [("b", "a"), ("c", "b")]
XML = (
    '<x xmlns:gnc="http://www.gnucash.org/XML/gnc" xmlns:act="http://www.gnucash.org/XML/act">'
    "<gnc:account><act:name>Assets</act:name><act:id>a</act:id><act:type>ASSET</act:type></gnc:account></x>"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("table.csv", "id,parent,name\na,,A\nb,a,B\nc,b,C\n"),
        ("narrow.csv", "id,parent\na,\nb,a\nc,b\n"),
        ("table.jsonl", '{"id":"a","parent":null}\n{"id":"b","parent":"a"}\n{"id":"c","parent":"b"}\n'),
        ("edges.tsv", "b\ta\nc\tb\n"),
        ("edges.csv", "child,parent\nb,a\nc,b\n"),
        ("words.csv", "child_account,parent_account\nb,a\nc,b\n"),
        ("belongs.csv", "account,belongs_to\nb,a\nc,b\n"),
        ("known.csv", "account,parent_account\nb,a\nc,b\n"),
        ("closure.csv", "id1,id2,weight\nb,a,1\nc,b,1\n"),
        ("edges.txt", "b\ta\nc\tb\n"),
        ("nested.json", '{"id":"a","children":[{"id":"b","children":[{"id":"c"}]}]}'),
        ("flat.json", '[{"id":"a","parent":""},{"id":"b","parent":"a"},{"id":"c","parent":"b"}]'),
        (
            "terms.obo",
            "format-version: 1.2\n\n[Term]\nid: a\n\n[Term]\nid: b\nis_a: a\n\n[Term]\nid: c\nis_a: b\n",
        ),
    ],
)
def test_a_file_is_read_by_its_content(file, tmp_path, name, text):
    assert set(read_tree(file(text, name)).named_edges()) == set(CHART)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert set(read_tree(packed).named_edges()) == set(CHART)


def test_codes_gnucash_files_and_databases_are_recognised(file, tmp_path):
    assert read_tree(file("code,name\n1,Assets\n1-1,Cash\n", "codes.csv")).named_edges() == [("1-1", "1")]
    assert read_tree(file("1\n1-1\n", "codes.txt")).named_edges() == [("1-1", "1")]
    assert read_tree(file(XML, "books.gnucash")).names == ("Assets",)
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection, connection:
        connection.execute("CREATE TABLE accounts (id TEXT, parent_id TEXT)")
        connection.execute("INSERT INTO accounts VALUES ('a', NULL)")
    assert read_tree(tmp_path / "books.db").ids == read_tree(f"sqlite:///{tmp_path}/books.db").ids == ("a",)


def test_the_error_for_an_unknown_file_lists_the_accepted_sources(file):
    with pytest.raises(InputError) as error_info:
        read_tree(file("w\n", "text.csv"))
    assert "GnuCash" in error_info.value.hint


def test_the_error_for_unknown_columns_suggests_the_columns_option(file):
    german = file("Konto,Oberkonto,Bezeichnung\n1,,A\n", "table.csv")
    with pytest.raises(InputError) as error_info:
        read_tree(german)
    assert "--columns id=" in error_info.value.hint
    with pytest.raises(InputError) as error_info:
        read_tree(file("id,name\nx,Assets\ny,Cash\n", "table.csv"))
    assert "--columns" in error_info.value.hint


def test_columns_with_any_name_can_be_mapped(file, tmp_path):
    columns = {"id": "Konto", "parent": "Oberkonto"}
    for text, name in [
        ("Konto;Oberkonto;Bezeichnung\na;;A\nb;a;B\nc;b;C\n", "table.csv"),
        ("Konto,Oberkonto\nb,a\nc,b\n", "edges.csv"),
        ('[{"Konto": "a"}, {"Konto": "b", "Oberkonto": "a"}, {"Konto": "c", "Oberkonto": "b"}]', "flat.json"),
    ]:
        assert set(read_tree(file(text, name), columns=columns).named_edges()) == set(CHART)
    tree = read_tree(tmp_path / "table.csv", columns={**columns, "name": "Bezeichnung"})
    assert tree.names == ("A", "B", "C")


@pytest.mark.parametrize(
    ("text", "name", "columns", "pattern"),
    [
        (XML, "books.gnucash", {"id": "x"}, "columns"),
        ("id,parent\na,\n", "table.csv", {"business": "x"}, "businesses"),
        ("id,parent\na,\n", "table.csv", {"id": "Konto"}, "Konto"),
    ],
)
def test_invalid_column_mappings_are_errors(file, text, name, columns, pattern):
    with pytest.raises(EquipoiseError, match=pattern):
        read_tree(file(text, name), columns=columns)


def test_columns_of_a_database_can_be_mapped(tmp_path):
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection, connection:
        connection.execute("CREATE TABLE accounts (nr TEXT, above TEXT)")
        connection.executemany("INSERT INTO accounts VALUES (?, ?)", [("a", None), ("b", "a"), ("c", "b")])
    columns = {"id": "nr", "parent": "above"}
    assert set(read_tree(tmp_path / "books.db", columns=columns).named_edges()) == set(CHART)


def test_a_small_gnucash_database_is_recognised(tmp_path):
    with closing(sqlite3.connect(tmp_path / "books.gnucash")) as connection, connection:
        connection.execute("CREATE TABLE accounts (guid, name, account_type, parent_guid, code)")
        connection.execute("CREATE TABLE books (guid, root_account_guid, root_template_guid)")
        connection.execute("INSERT INTO accounts VALUES ('a', 'Assets', 'ASSET', NULL, '')")
    assert read_tree(tmp_path / "books.gnucash").names == ("Assets",)


def test_a_business_id_is_for_databases_only(file):
    with pytest.raises(ParameterError):
        read_tree(file("b,a\n", "edges.csv"), "acme")


@pytest.mark.parametrize("business", BUSINESSES)
def test_the_sample_is_the_same_in_sqlite_and_in_csv(business):
    pytest.importorskip("sqlalchemy")
    tree = read_tree(accounts(), business)
    assert tree.fingerprint == read_tree(accounts().with_name(f"{business}.csv")).fingerprint
    assert len(tree.roots) > 3
    assert tree.depth.max() == 3
    assert len(set(tree.names)) == len(tree)


def test_the_sample_has_two_hundred_accounts_and_needs_a_business():
    pytest.importorskip("sqlalchemy")
    assert sum(len(read_tree(accounts(), business)) for business in BUSINESSES) == 216
    with pytest.raises(ParameterError, match=r"2 .*acme, larkspur"):
        read_tree(accounts())
