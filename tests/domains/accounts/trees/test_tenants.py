"""Businesses whose ids are equal under the collation of the database are distinguished, in every database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

sqlalchemy = pytest.importorskip("sqlalchemy")

from equipoise.domains.accounts.trees import sql  # noqa: E402
from equipoise.domains.accounts.trees.sql import __doc__ as documented  # noqa: E402
from equipoise.domains.accounts.trees.sql import read_sql  # noqa: E402
from equipoise.errors import InputError, ParameterError, StoreError  # noqa: E402

EQUAL_IDS = ("acme", "ACME", "acme ", "äcme")
ROWS = [(business, "1", None, f"Assets of {business!r}") for business in EQUAL_IDS]
FOLDING_COLUMN_TYPES = {
    "sqlite": "TEXT COLLATE NOCASE",
    "icu_postgres": "TEXT COLLATE ci",
    "mariadb": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
}
"""A column whose collation folds case, and in some databases accents and blanks at the end."""
SERVERS = ("icu_postgres", "mariadb")
MakeTable = Callable[..., str]


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def make_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeTable]:
    """A function that creates a table with case-folding business ids and returns the URL."""
    url = f"sqlite:///{tmp_path / 'b.db'}"
    if request.param != "sqlite":
        url = request.getfixturevalue(request.param)

    def create_table(
        rows: list[Any] = ROWS, kind: str = FOLDING_COLUMN_TYPES[request.param], table_options: str = ""
    ) -> str:
        with cursor(url) as run:
            if request.param == "icu_postgres":
                run(
                    "CREATE COLLATION IF NOT EXISTS ci "
                    "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
                )
            run(f"CREATE TABLE accounts (business_id {kind}, id TEXT, parent_id TEXT, name TEXT){table_options}")
            for row in rows:
                run("INSERT INTO accounts VALUES (:a, :b, :c, :d)", dict(zip("abcd", row, strict=True)))
        return url

    yield create_table
    with cursor(url) as run:
        run("DROP TABLE IF EXISTS accounts")


class cursor:  # noqa: N801  (used like a function)
    """Statements in one transaction."""

    def __init__(self, url: str) -> None:
        with_driver = url.replace("postgresql:", "postgresql+psycopg:").replace("mysql:", "mysql+pymysql:")
        self.engine = sqlalchemy.create_engine(with_driver, poolclass=sqlalchemy.NullPool)

    def __enter__(self) -> Callable[..., Any]:
        self.transaction = self.engine.begin()
        connection = self.transaction.__enter__()
        return lambda statement, values=None: connection.execute(sqlalchemy.text(statement), values or {})

    def __exit__(self, *exception: Any) -> None:
        self.transaction.__exit__(*exception)
        self.engine.dispose()


@pytest.mark.parametrize("business", EQUAL_IDS)
def test_ids_that_are_equal_in_the_database_are_different_businesses(make_table: MakeTable, business: str) -> None:
    assert read_sql(make_table(), business).names == (f"Assets of {business!r}",)


def test_similar_ids_are_not_one_business(make_table: MakeTable) -> None:
    with pytest.raises(ParameterError, match=r"4.*ACME"):
        read_sql(make_table())


def test_rows_without_a_business_are_a_business_that_cannot_be_selected(make_table: MakeTable) -> None:
    url = make_table([ROWS[0], (None, "2", None, "No business")])
    with pytest.raises(ParameterError, match=r"1 business: acme") as error_info:
        read_sql(url)
    assert error_info.value.hint.endswith("--business-id acme")
    assert len(read_sql(url, "acme")) == 1
    with pytest.raises(InputError, match="'None'"):
        read_sql(url, "None")


def test_rows_without_any_business_id_are_read(make_table: MakeTable) -> None:
    assert len(read_sql(make_table([(None, "1", None, "Assets"), (None, "2", "1", "Cash")]))) == 2


def test_numeric_business_ids_are_compared_by_their_digits(make_table: MakeTable) -> None:
    url = make_table([(1, *ROWS[0][1:]), (10, *ROWS[1][1:])], kind="DOUBLE PRECISION")
    assert len(read_sql(url, 1)) == len(read_sql(url, "10")) == 1
    with pytest.raises(InputError):
        read_sql(url, "1x")


def test_the_documented_table_can_be_created(make_table: MakeTable) -> None:
    url = make_table()
    statement = documented[documented.index("CREATE") : documented.index(";")]
    with cursor(url) as run:
        run("DROP TABLE accounts")
        run(statement)
        run("INSERT INTO accounts VALUES ('acme', '1', NULL, 'Assets')")
    assert len(read_sql(url, "acme")) == 1


def test_another_character_set_does_not_change_letters(make_table: MakeTable, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["make_table"] != "mariadb":
        pytest.skip("character sets of columns exist only in MariaDB")
    url = make_table(kind="VARCHAR(20) CHARACTER SET latin1")
    assert read_sql(url, "äcme").names == ("Assets of 'äcme'",)


def test_fetched_rows_of_another_business_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE accounts (business_id TEXT, id TEXT, parent_id TEXT, name TEXT)")
        connection.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?)", ROWS)
    match_all = sqlalchemy.true()
    monkeypatch.setattr("equipoise.domains.accounts.trees.sql.business_filter", lambda *arguments: match_all)
    with pytest.raises(StoreError, match=r"3 rows.*'acme'"):
        read_sql(str(path), "acme")


def test_an_id_that_is_not_valid_text_is_an_error() -> None:
    with pytest.raises(ParameterError, match="UTF-8"):
        sql.validate_business_id("acme\udcff")
