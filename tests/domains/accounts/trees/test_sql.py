"""Databases: SQLite files and a real PostgreSQL, names that are only names, and what is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

sqlalchemy = pytest.importorskip("sqlalchemy")

from equipoise.domains.accounts.trees.sql import TableColumns, _hint, connect, read_sql  # noqa: E402
from equipoise.errors import (  # noqa: E402
    EquipoiseError,
    FormatError,
    InputError,
    MissingExtraError,
    ParameterError,
    StoreError,
    UnknownNameError,
)

ROWS = [
    ("acme", "1", None, "Assets"),
    ("acme", "11", "1", "Cash"),
    ("ACME", "1", None, "Shouted assets"),
    ("other", "1", "", "Secret"),
    ("other", "12", "1", "Secret cash"),
]
Make = Callable[..., str]


def filled(connection: Any, mark: str, quoted: str, rows: list[Any], kind: str = "TEXT") -> None:
    """A table of accounts under any name."""
    connection.execute(f"CREATE TABLE {quoted} (business_id {kind}, id TEXT, parent_id TEXT, name TEXT)")
    if mark == "%s":
        quoted = quoted.replace("%", "%%")
    for row in rows:
        connection.execute(f"INSERT INTO {quoted} VALUES ({mark}, {mark}, {mark}, {mark})", row)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a table in each of the databases, and gives its URL."""
    made: list[str] = []

    def sqlite(rows: list[Any] = ROWS, table: str = "accounts", kind: str = "TEXT") -> str:
        path = tmp_path / "books.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            filled(connection, "?", _quoted(table), rows, kind)
        return f"sqlite:///{path}"

    def postgresql(rows: list[Any] = ROWS, table: str = "accounts", kind: str = "TEXT") -> str:
        import psycopg

        url = request.getfixturevalue("postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            filled(connection, "%s", _quoted(table), rows, kind)
        made.append(table)
        return url

    yield sqlite if request.param == "sqlite" else postgresql
    if made:
        import psycopg

        with psycopg.connect(request.getfixturevalue("postgres"), autocommit=True) as connection:
            for table in made:
                connection.execute(f"DROP TABLE {_quoted(table)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_a_business_sees_its_own_accounts_only(make):
    tree = read_sql(make(), "acme")
    assert tree.names == ("Assets", "Cash")
    assert tree.named_edges() == [("11", "1")]
    assert read_sql(make(table="second"), "ACME", table="second").names == ("Shouted assets",)


def test_the_rows_of_others_never_leave_the_database(make):
    url = make()
    seen: list[tuple[str, Any]] = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if 'FROM "accounts"' in statement:
            seen.append((statement, parameters))

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
    try:
        read_sql(url, "acme")
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
    ((statement, parameters),) = seen
    assert "acme" not in statement
    assert "acme" in (parameters.values() if isinstance(parameters, dict) else parameters)
    with connect(url) as (connection, _):
        fetched = connection.exec_driver_sql(statement, parameters).fetchall()
    assert sorted(row[2] for row in fetched) == ["Assets", "Cash"]


@pytest.mark.parametrize("value", ["acme' OR '1'='1", "'; DROP TABLE accounts; --", "%", "acm_", "a" * 500, "漢"])
def test_a_business_id_is_a_value_and_nothing_more(make, value):
    url = make()
    with pytest.raises(InputError):
        read_sql(url, value)
    assert len(read_sql(url, "acme")) == 2


@pytest.mark.parametrize("name", ['a"; DROP TABLE x; --', "it's", "select", "Größe", "with space", "100%s", "a:b"])
def test_a_table_name_is_a_name_and_nothing_more(make, name):
    assert len(read_sql(make(table=name), "acme", table=name)) == 2


def test_a_parent_of_another_business_is_an_error(make):
    url = make([*ROWS, ("acme", "13", "12", "Stray")])
    with pytest.raises(InputError, match=r"'acme'.*13.*'12'") as it:
        read_sql(url, "acme")
    assert "belongs to another business" in it.value.hint


def test_several_businesses_need_a_name_and_one_does_not(make):
    with pytest.raises(ParameterError, match="of 3 businesses: "):
        read_sql(make())
    assert len(read_sql(make(ROWS[:2], "single"), table="single")) == 2


def test_numbers_as_business_ids_are_found_by_number_or_text(make):
    url = make([(7, *row[1:]) for row in ROWS[:2]] + [(70, *row[1:]) for row in ROWS[3:]], kind="INTEGER")
    assert read_sql(url, 7).names == read_sql(url, "7").names == ("Assets", "Cash")
    with pytest.raises(InputError, match="'acme'"):
        read_sql(url, "acme")


def test_mistyped_tables_and_columns_are_corrected(make):
    url = make(table="Ledger")
    assert len(read_sql(url, "acme", table="ledger")) == 2
    with pytest.raises(UnknownNameError, match="'ledgers'") as caught:
        read_sql(url, "acme", table="ledgers")
    assert caught.value.hint == "did you mean Ledger?"
    for columns, hint in (
        (TableColumns(parent="parent"), "did you mean parent_id?"),
        (TableColumns(business="busines_id"), "did you mean business_id?"),
        (TableColumns(name="nme"), "did you mean name?"),
    ):
        with pytest.raises(UnknownNameError) as caught:
            read_sql(url, "acme", table="Ledger", columns=columns)
        assert caught.value.hint == hint


def test_views_and_other_columns_are_read(tmp_path):
    path = tmp_path / "books.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, above INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(10, 2), (2, None), (1, 2)])
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
    tree = read_sql(str(path), table="v", columns=TableColumns(id="number", parent="above"))
    assert tree.ids == tree.names == ("1", "2", "10")


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    for url in (str(tmp_path / "absent.db"), f"sqlite:///{tmp_path / 'absent.db'}"):
        with pytest.raises(InputError):
            read_sql(url)
    assert not list(tmp_path.iterdir())
    (tmp_path / "text.db").write_text("id,parent\n")
    with pytest.raises(InputError, match="SQLite"):
        read_sql(str(tmp_path / "text.db"))


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "://", "postgresql://user:secret@[bad/x"])
def test_a_url_that_names_no_database_is_refused(url):
    with pytest.raises(EquipoiseError) as caught:
        read_sql(url)
    assert caught.value.exit_code == 2
    assert "secret" not in caught.value.render()


def test_no_error_shows_a_password():
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        read_sql("postgres://user:secret@127.0.0.1:9/books")
    assert "secret" not in caught.value.render()
    assert "user:***@127.0.0.1:9/books cannot be read" in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ('FATAL: password authentication failed for user "joe"', "check the user and the password"),
        ("(1045, \"Access denied for user 'joe'@'localhost'\")", "check the user and the password"),
        ("connection refused", "that the server runs"),
        ('FATAL:  role "joe" does not exist', "the server does not know"),
        ("(1049, \"Unknown database 'books'\")", "the server does not know"),
    ],
)
def test_who_may_not_come_in_is_not_sent_to_look_for_the_server(reason, hint):
    assert hint in _hint("postgresql://joe@host/books", reason)


def test_a_schema_that_is_not_there_is_named(make):
    url = make()
    with pytest.raises(UnknownNameError, match="'ledgers'") as caught:
        read_sql(url, "acme", schema="ledgers")
    assert caught.value.hint


def test_bytes_are_read_as_text_and_refused_where_they_are_none(tmp_path):
    path = tmp_path / "books.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE accounts (id BLOB, parent_id BLOB, name BLOB)")
        rows = [(b"1", None, "Käse".encode()), (b"11", b"1", b"Cash")]
        connection.executemany("INSERT INTO accounts VALUES (?, ?, ?)", rows)
    tree = read_sql(str(path))
    assert (tree.ids, tree.names) == (("1", "11"), ("Käse", "Cash"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO accounts VALUES (x'ff00', NULL, 'Odd')")
    with pytest.raises(FormatError, match="0xff00"):
        read_sql(str(path))


def test_an_absent_driver_is_named():
    with pytest.raises(MissingExtraError):
        read_sql("oddsql://host/books")
