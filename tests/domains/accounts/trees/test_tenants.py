"""Tenants kept apart where the database itself takes their ids for equal: in every database that is read."""

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

ALIKE = ("acme", "ACME", "acme ", "äcme")
ROWS = [(business, "1", None, f"Assets of {business!r}") for business in ALIKE]
FOLDING = {
    "sqlite": "TEXT COLLATE NOCASE",
    "icu_postgres": "TEXT COLLATE ci",
    "mariadb": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
}
"""A column whose collation folds case, and in some databases accents and blanks at the end."""
SERVERS = ("icu_postgres", "mariadb")
Make = Callable[..., str]


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a table whose business ids fold, and gives its URL."""
    url = f"sqlite:///{tmp_path / 'b.db'}"
    if request.param != "sqlite":
        url = request.getfixturevalue(request.param)

    def made(rows: list[Any] = ROWS, kind: str = FOLDING[request.param], more: str = "") -> str:
        with cursor(url) as run:
            if request.param == "icu_postgres":
                run(
                    "CREATE COLLATION IF NOT EXISTS ci "
                    "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
                )
            run(f"CREATE TABLE accounts (business_id {kind}, id TEXT, parent_id TEXT, name TEXT){more}")
            for row in rows:
                run("INSERT INTO accounts VALUES (:a, :b, :c, :d)", dict(zip("abcd", row, strict=True)))
        return url

    yield made
    with cursor(url) as run:
        run("DROP TABLE IF EXISTS accounts")


class cursor:  # noqa: N801  (used like a function)
    """Statements in one transaction."""

    def __init__(self, url: str) -> None:
        with_driver = url.replace("postgresql:", "postgresql+psycopg:").replace("mysql:", "mysql+pymysql:")
        self.engine = sqlalchemy.create_engine(with_driver, poolclass=sqlalchemy.NullPool)

    def __enter__(self) -> Callable[..., Any]:
        self.begun = self.engine.begin()
        connection = self.begun.__enter__()
        return lambda words, values=None: connection.execute(sqlalchemy.text(words), values or {})

    def __exit__(self, *raised: Any) -> None:
        self.begun.__exit__(*raised)
        self.engine.dispose()


@pytest.mark.parametrize("business", ALIKE)
def test_ids_that_the_database_takes_for_equal_are_different_tenants(make: Make, business: str) -> None:
    assert read_sql(make(), business).names == (f"Assets of {business!r}",)


def test_ids_that_only_look_alike_are_not_taken_for_one_business(make: Make) -> None:
    with pytest.raises(ParameterError, match=r"4.*ACME"):
        read_sql(make())


def test_rows_of_no_business_are_another_business_that_cannot_be_named(make: Make) -> None:
    url = make([ROWS[0], (None, "2", None, "Nobody's")])
    with pytest.raises(ParameterError, match="of 1 business: acme, and rows that name none") as caught:
        read_sql(url)
    assert caught.value.hint.endswith("--business-id acme")
    assert len(read_sql(url, "acme")) == 1
    with pytest.raises(InputError, match="'None'"):
        read_sql(url, "None")


def test_rows_that_all_name_no_business_are_read(make: Make) -> None:
    assert len(read_sql(make([(None, "1", None, "Assets"), (None, "2", "1", "Cash")]))) == 2


def test_numbers_are_their_digits(make: Make) -> None:
    url = make([(1, *ROWS[0][1:]), (10, *ROWS[1][1:])], kind="DOUBLE PRECISION")
    assert len(read_sql(url, 1)) == len(read_sql(url, "10")) == 1
    with pytest.raises(InputError):
        read_sql(url, "1x")


def test_the_documented_table_can_be_made(make: Make) -> None:
    url = make()
    statement = documented[documented.index("CREATE") : documented.index(";")]
    with cursor(url) as run:
        run("DROP TABLE accounts")
        run(statement)
        run("INSERT INTO accounts VALUES ('acme', '1', NULL, 'Assets')")
    assert len(read_sql(url, "acme")) == 1


def test_another_character_set_changes_no_letters(make: Make, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["make"] != "mariadb":
        pytest.skip("character sets of columns are MariaDB's")
    url = make(kind="VARCHAR(20) CHARACTER SET latin1")
    assert read_sql(url, "äcme").names == ("Assets of 'äcme'",)


def test_a_row_of_another_business_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE accounts (business_id TEXT, id TEXT, parent_id TEXT, name TEXT)")
        connection.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?)", ROWS)
    everything = sqlalchemy.true()
    monkeypatch.setattr("equipoise.domains.accounts.trees.sql.business_filter", lambda *asked: everything)
    with pytest.raises(StoreError, match=r"3 rows.*'acme'"):
        read_sql(str(path), "acme")


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(ParameterError, match="UTF-8"):
        sql.validate_business_id("acme\udcff")
