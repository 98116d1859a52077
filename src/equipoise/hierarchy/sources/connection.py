"""Connections to databases: URLs and files, drivers by name, errors that never show a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from equipoise.errors import MissingExtraError, ParameterError, StoreError
from equipoise.hierarchy.sources.sqlite_file import open_sqlite
from equipoise.redaction import note_secret
from equipoise.types import need

if TYPE_CHECKING:
    from sqlalchemy import Connection

EXTRA = "accounts"
_DRIVERS = {
    "postgresql": {"psycopg": "psycopg", "psycopg2": "psycopg2"},
    "mysql": {"pymysql": "pymysql", "MySQLdb": "mysqldb"},
    "mariadb": {"pymysql": "pymysql", "mariadb": "mariadbconnector"},
}
"""What SQLAlchemy calls the drivers of a database, by the module that each comes in."""

_DENIED = ("password", "authentication", "access denied", "permission denied", "no pg_hba.conf")
"""How servers begin to say that somebody may not come in."""

_UNKNOWN = ("does not exist", "unknown database")
"""How they say that they know no such user or database."""


@contextmanager
def connected(url: str) -> Iterator[tuple[Connection, str]]:
    """An open connection, and what to call the database in messages; all is closed at the end.

    ``url`` is a URL of SQLAlchemy, or the path of a SQLite file, which is opened for reading only.
    """
    sql = need("sqlalchemy", extra=EXTRA)
    engine, source = _engine(url)
    try:
        with engine.connect() as connection:
            yield connection, source
    except sql.exc.SQLAlchemyError as error:
        told = str(getattr(error, "orig", None) or error).strip()
        reason = told.splitlines()[0]
        raise StoreError(f"{source} cannot be read: {reason}", hint=_remedy(source, told)) from error
    finally:
        engine.dispose()


def _remedy(source: str, reason: str) -> str:
    """What to look at, as far as the words of the database say.

    >>> _remedy("postgresql://ann@localhost/book", 'FATAL:  database "book" does not exist')
    'check the user and the name of the database in the URL: the server answered, and knows no such'
    """
    told = reason.casefold()
    if any(word in told for word in _DENIED):
        return "check the user and the password in the URL, and what this user may read"
    if "://" in source and any(word in told for word in _UNKNOWN):
        return (
            "check the user and the name of the database in the URL: the server answered, and knows no such"
        )
    if "://" not in source:
        return "check that the file is whole, and that nobody is writing it"
    return "check the address, and that the server runs"


def _engine(url: str) -> tuple[Any, str]:
    """The engine for a URL or a path, and its name without a password."""
    sql = need("sqlalchemy", extra=EXTRA)
    address = _address(url)
    note_secret(address.password)
    if address.get_backend_name() == "sqlite":
        path = address.database
        if not path or path == ":memory:":
            raise ParameterError("the URL names no SQLite file", hint="write sqlite:///books.db")
        open_sqlite(path).close()
        return sql.create_engine("sqlite://", creator=lambda: open_sqlite(path), poolclass=sql.NullPool), path
    try:
        engine = sql.create_engine(address, poolclass=sql.NullPool)
    except (sql.exc.NoSuchModuleError, ImportError) as error:
        raise MissingExtraError(
            f"no driver for {address.drivername} is installed",
            hint="pip install 'psycopg[binary]' for PostgreSQL, pip install pymysql for MySQL and MariaDB",
        ) from error
    return engine, address.render_as_string(hide_password=True)


def _address(url: str) -> Any:
    """The parts of a URL, with a driver that is installed where it names none."""
    sql = need("sqlalchemy", extra=EXTRA)
    if "://" not in url:
        return sql.URL.create("sqlite", database=url)
    try:
        address = sql.make_url(url)
    except (sql.exc.ArgumentError, ValueError) as error:
        raise ParameterError(
            "the URL of the database cannot be read",
            hint="write sqlite:///books.db or postgresql://user@host/database",
        ) from error
    name = "postgresql" if address.drivername == "postgres" else address.drivername
    driver = next((driver for module, driver in _DRIVERS.get(name, {}).items() if find_spec(module)), None)
    return address.set(drivername=f"{name}+{driver}" if driver else name)
