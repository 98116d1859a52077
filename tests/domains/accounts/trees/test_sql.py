"""Databases: SQLite files and a PostgreSQL server, quoted names, and errors."""

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
MakeTable = Callable[..., str]


def create_accounts_table(
    connection: Any, placeholder: str, quoted_name: str, rows: list[Any], id_type: str = "TEXT"
) -> None:
    """Create a table of accounts with any name."""
    connection.execute(f"CREATE TABLE {quoted_name} (business_id {id_type}, id TEXT, parent_id TEXT, name TEXT)")
    if placeholder == "%s":
        quoted_name = quoted_name.replace("%", "%%")
    for row in rows:
        connection.execute(
            f"INSERT INTO {quoted_name} VALUES ({placeholder}, {placeholder}, {placeholder}, {placeholder})", row
        )


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def make_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeTable]:
    """A function that creates a table in each of the databases and returns the URL."""
    created_tables: list[str] = []

    def sqlite(rows: list[Any] = ROWS, table: str = "accounts", kind: str = "TEXT") -> str:
        path = tmp_path / "books.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            create_accounts_table(connection, "?", _quoted(table), rows, kind)
        return f"sqlite:///{path}"

    def postgresql(rows: list[Any] = ROWS, table: str = "accounts", kind: str = "TEXT") -> str:
        import psycopg

        url = request.getfixturevalue("postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            create_accounts_table(connection, "%s", _quoted(table), rows, kind)
        created_tables.append(table)
        return url

    yield sqlite if request.param == "sqlite" else postgresql
    if created_tables:
        import psycopg

        with psycopg.connect(request.getfixturevalue("postgres"), autocommit=True) as connection:
            for table in created_tables:
                connection.execute(f"DROP TABLE {_quoted(table)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_only_the_accounts_of_the_business_are_read(make_table):
    tree = read_sql(make_table(), "acme")
    assert tree.names == ("Assets", "Cash")
    assert tree.named_edges() == [("11", "1")]
    assert read_sql(make_table(table="second"), "ACME", table="second").names == ("Shouted assets",)


def test_rows_of_other_businesses_are_not_fetched(make_table):
    url = make_table()
    statements: list[tuple[str, Any]] = []

    def record_statement(connection, cursor, statement, parameters, context, executemany):
        if 'FROM "accounts"' in statement:
            statements.append((statement, parameters))

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", record_statement)
    try:
        read_sql(url, "acme")
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", record_statement)
    ((statement, parameters),) = statements
    assert "acme" not in statement
    assert "acme" in (parameters.values() if isinstance(parameters, dict) else parameters)
    with connect(url) as (connection, _):
        fetched = connection.exec_driver_sql(statement, parameters).fetchall()
    assert sorted(row[2] for row in fetched) == ["Assets", "Cash"]


@pytest.mark.parametrize("value", ["acme' OR '1'='1", "'; DROP TABLE accounts; --", "%", "acm_", "a" * 500, "漢"])
def test_a_business_id_is_quoted_as_a_value(make_table, value):
    url = make_table()
    with pytest.raises(InputError):
        read_sql(url, value)
    assert len(read_sql(url, "acme")) == 2


@pytest.mark.parametrize("name", ['a"; DROP TABLE x; --', "it's", "select", "Größe", "with space", "100%s", "a:b"])
def test_a_table_name_is_quoted_as_an_identifier(make_table, name):
    assert len(read_sql(make_table(table=name), "acme", table=name)) == 2


def test_a_parent_of_another_business_is_an_error(make_table):
    url = make_table([*ROWS, ("acme", "13", "12", "Stray")])
    with pytest.raises(InputError, match=r"'acme'.*13.*'12'") as error_info:
        read_sql(url, "acme")
    assert "belongs to another business" in error_info.value.hint


def test_several_businesses_need_a_business_id_and_a_single_one_does_not(make_table):
    with pytest.raises(ParameterError, match="3 businesses"):
        read_sql(make_table())
    assert len(read_sql(make_table(ROWS[:2], "single"), table="single")) == 2


def test_numeric_business_ids_match_a_number_or_its_text(make_table):
    url = make_table([(7, *row[1:]) for row in ROWS[:2]] + [(70, *row[1:]) for row in ROWS[3:]], kind="INTEGER")
    assert read_sql(url, 7).names == read_sql(url, "7").names == ("Assets", "Cash")
    with pytest.raises(InputError, match="'acme'"):
        read_sql(url, "acme")


def test_mistyped_tables_and_columns_get_suggestions(make_table):
    url = make_table(table="Ledger")
    assert len(read_sql(url, "acme", table="ledger")) == 2
    with pytest.raises(UnknownNameError, match="'ledgers'") as error_info:
        read_sql(url, "acme", table="ledgers")
    assert error_info.value.hint == "did you mean Ledger?"
    for columns, hint in (
        (TableColumns(parent="parent"), "did you mean parent_id?"),
        (TableColumns(business="busines_id"), "did you mean business_id?"),
        (TableColumns(name="nme"), "did you mean name?"),
    ):
        with pytest.raises(UnknownNameError) as error_info:
            read_sql(url, "acme", table="Ledger", columns=columns)
        assert error_info.value.hint == hint


def test_views_and_renamed_columns_are_read(tmp_path):
    path = tmp_path / "books.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, above INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(10, 2), (2, None), (1, 2)])
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
    tree = read_sql(str(path), table="v", columns=TableColumns(id="number", parent="above"))
    assert tree.ids == tree.names == ("1", "2", "10")


def test_a_missing_database_is_an_error_and_not_created(tmp_path):
    for url in (str(tmp_path / "absent.db"), f"sqlite:///{tmp_path / 'absent.db'}"):
        with pytest.raises(InputError):
            read_sql(url)
    assert not list(tmp_path.iterdir())
    (tmp_path / "text.db").write_text("id,parent\n")
    with pytest.raises(InputError, match="SQLite"):
        read_sql(str(tmp_path / "text.db"))


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "://", "postgresql://user:secret@[bad/x"])
def test_a_url_without_a_database_is_an_error_without_its_password(url):
    with pytest.raises(EquipoiseError) as error_info:
        read_sql(url)
    assert error_info.value.exit_code == 2
    assert "secret" not in error_info.value.render()


def test_no_error_shows_a_password():
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as error_info:
        read_sql("postgres://user:secret@127.0.0.1:9/books")
    assert "secret" not in error_info.value.render()
    assert "user:***@127.0.0.1:9/books cannot be read" in str(error_info.value)


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
def test_hints_distinguish_authentication_from_connection_errors(reason, hint):
    assert hint in _hint("postgresql://joe@host/books", reason)


def test_an_unknown_schema_is_an_error_with_its_name(make_table):
    url = make_table()
    with pytest.raises(UnknownNameError, match="'ledgers'") as error_info:
        read_sql(url, "acme", schema="ledgers")
    assert error_info.value.hint


def test_bytes_are_decoded_as_utf8_and_invalid_bytes_are_an_error(tmp_path):
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


def test_a_missing_driver_is_an_error():
    with pytest.raises(MissingExtraError):
        read_sql("oddsql://host/books")
