"""Trees in relational databases, through SQLAlchemy: SQLite, PostgreSQL, MySQL and MariaDB.

The table that is expected unless another is named:

    CREATE TABLE accounts (
        business_id VARCHAR(191) NOT NULL,
        id          VARCHAR(191) NOT NULL,
        parent_id   VARCHAR(191),
        name        TEXT NOT NULL,
        PRIMARY KEY (business_id, id),
        FOREIGN KEY (business_id, parent_id) REFERENCES accounts (business_id, id)
    );

Values are bound, names are quoted, and the rows of a business are selected by the database, byte by byte: no
row of another one is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from equipoise.domains.accounts.trees.files import cell_text
from equipoise.domains.accounts.trees.tree import InvalidTreeError, Tree, TreeRows
from equipoise.errors import (
    FormatError,
    InputError,
    MissingExtraError,
    ParameterError,
    StoreError,
    UnknownNameError,
    did_you_mean,
)
from equipoise.io.text import PathLike, display_path, read_error
from equipoise.redaction import note_secret
from equipoise.types import require_extra

if TYPE_CHECKING:
    from sqlalchemy import Connection

# SQLite files, opened for reading only: a mistyped path makes no new database.

MAGIC = b"SQLite format 3\0"


def open_sqlite(path: PathLike) -> sqlite3.Connection:
    """A connection that cannot write; a file that is not SQLite is an error."""
    try:
        with open(path, "rb") as stream:
            start = stream.read(len(MAGIC))
    except (OSError, ValueError) as error:
        raise read_error(path, error) from error
    if start != MAGIC:
        raise InputError(
            f"{display_path(path)} is not a SQLite database", hint="a file of any other kind is read with --tree"
        )
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)


@contextmanager
def explained_damage(path: PathLike) -> Iterator[None]:
    """A database that SQLite cannot read is an error of the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise FormatError(
            f"{display_path(path)} is a damaged SQLite database: {error}",
            hint=f"sqlite3 {display_path(path)} 'PRAGMA integrity_check' lists what is wrong",
        ) from error


# Connections to databases: URLs and files, drivers by name, errors that never show a password.

_DRIVERS = {
    "postgresql": {"psycopg": "psycopg", "psycopg2": "psycopg2"},
    "mysql": {"pymysql": "pymysql", "MySQLdb": "mysqldb"},
    "mariadb": {"pymysql": "pymysql", "mariadb": "mariadbconnector"},
}
"""SQLAlchemy's names of database drivers, by their module."""

_DENIED = ("password", "authentication", "access denied", "permission denied", "no pg_hba.conf")
"""Beginnings of error messages of servers about access."""

_UNKNOWN = ("does not exist", "unknown database")
"""Beginnings of their messages about an unknown user or database."""


def _sqlalchemy() -> Any:
    return require_extra("sqlalchemy", extra="accounts")


@contextmanager
def connect(url: str) -> Iterator[tuple[Connection, str]]:
    """An open connection, and what to call the database in messages; all is closed at the end.

    ``url`` is a URL of SQLAlchemy, or the path of a SQLite file, which is opened for reading only.
    """
    sql = _sqlalchemy()
    engine, source = _engine(url)
    try:
        with engine.connect() as connection:
            yield connection, source
    except sql.exc.SQLAlchemyError as error:
        message = str(getattr(error, "orig", None) or error).strip()
        reason = message.splitlines()[0]
        raise StoreError(f"{source} cannot be read: {reason}", hint=_hint(source, message)) from error
    finally:
        engine.dispose()


def _hint(source: str, reason: str) -> str:
    """What to look at, as far as the words of the database say.

    >>> _hint("postgresql://ann@localhost/book", 'FATAL:  database "book" does not exist')
    'check the user and the name of the database in the URL: the server does not know one of them'
    """
    message = reason.casefold()
    if any(word in message for word in _DENIED):
        return "check the user and the password in the URL, and what this user may read"
    if "://" in source and any(word in message for word in _UNKNOWN):
        return "check the user and the name of the database in the URL: the server does not know one of them"
    if "://" not in source:
        return "check that the file is complete, and not being written"
    return "check the address, and that the server runs"


def _engine(url: str) -> tuple[Any, str]:
    """The engine for a URL or a path, and its name without a password."""
    sql = _sqlalchemy()
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
    sql = _sqlalchemy()
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


# Separation of tenants: business ids are compared byte by byte, because databases differ in collation.

MYSQL = ("mysql", "mariadb")
_LISTED = 5


def bytewise(value: Any, dialect: str) -> Any:
    """The text of a column or of a parameter as an expression that is equal only where every byte is.

    Numbers are their digits; integral real numbers of SQLite have no decimals.
    """
    sql = _sqlalchemy()
    if dialect == "sqlite":
        integer = sql.cast(value, sql.BigInteger)
        is_whole = sql.and_(sql.func.typeof(value) == "real", value == integer)
        text = sql.case((is_whole, sql.cast(integer, sql.Text)), else_=sql.cast(value, sql.Text))
        return sql.cast(text, sql.LargeBinary)
    if dialect in MYSQL:
        from sqlalchemy.dialects.mysql import VARCHAR

        # One character set first: the bytes of a latin1 column are others.
        return sql.cast(sql.cast(value, VARCHAR(charset="utf8mb4")), sql.LargeBinary)
    text = sql.cast(value, sql.Text)
    return sql.collate(text, "C") if dialect == "postgresql" else text


def business_filter(column: Any, business_id: str, dialect: str) -> Any:
    """The condition that a column holds this business id; the id is a bound parameter."""
    sql = _sqlalchemy()
    parameter = sql.bindparam("business", business_id, type_=sql.Text())
    if dialect == "sqlite":
        return bytewise(column, dialect) == sql.cast(parameter, sql.LargeBinary)
    return bytewise(column, dialect) == (bytewise(parameter, dialect) if dialect in MYSQL else parameter)


def validate_business_id(business_id: str | int) -> str:
    """A business id as text that a database can hold."""
    text = str(business_id)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"the business id {text!r} is not UTF-8 text", hint="write it as the database does"
        ) from error
    return text


def check_rows_of_business(owners: list[Any], business_id: str, source: str) -> None:
    """Check the selected rows again: a row of another business is never used."""
    n_foreign = sum(_text(owner) != business_id for owner in owners)
    if n_foreign:
        raise StoreError(
            f"{source} returned {n_foreign:,} rows of another business than {business_id!r}; none was used",
            hint="this database compares texts in a way that is unknown here; read a view of one business",
        )


def check_single_business(connection: Connection, column: Any, source: str) -> None:
    """Without a business id the rows must be those of one business."""
    sql = _sqlalchemy()
    chosen = sql.select(bytewise(column, connection.dialect.name)).distinct()
    owners = [_text(owner) for owner in connection.scalars(chosen)]
    if len(owners) < 2:
        return
    owner_ids = sorted(owner for owner in owners if owner is not None)
    listing = ", ".join(owner_ids[:_LISTED]) + (", ..." if len(owner_ids) > _LISTED else "")
    nameless = ", and rows that name none" if None in owners else ""
    noun = "business" if len(owner_ids) == 1 else "businesses"
    raise ParameterError(
        f"{source} holds the accounts of {len(owner_ids)} {noun}: {listing}{nameless}",
        hint=f"name one of them as the business id: --business-id {quote(owner_ids[0])}",
    )


def _text(value: Any) -> str | None:
    return bytes(value).decode("utf-8", "surrogateescape") if isinstance(value, bytes | memoryview) else value


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The names of the columns of a table of nodes.

    Attributes
    ----------
    id
        Column of the id.
    parent
        Column of the parent's id.
    name
        Column of the name.
    business
        Column of the business, for tables with the accounts of several businesses.
    """

    id: str = "id"
    parent: str = "parent_id"
    name: str = "name"
    business: str = "business_id"


def read_sql(
    url: str,
    business_id: str | int | None = None,
    *,
    table: str = "accounts",
    schema: str | None = None,
    columns: TableColumns = TableColumns(),  # noqa: B008  (frozen)
) -> Tree:
    """Read the tree of one business from a database table or view.

    A row whose parent is null or empty is a root. A parent that is not a row of the same business is an error.

    Parameters
    ----------
    url
        An SQLAlchemy URL, or the path of a SQLite file.
    business_id
        The business whose rows are read. It can be left out if the table has no such column or one business only.
    table
        The name of the table or view.
    schema
        The schema of the table.
    columns
        The names of the columns. Without a column of names the ids are the names.

    Returns
    -------
    Tree
        One node per row.

    Examples
    --------
    >>> tree = read_sql("postgresql://user@host/books", "acme")  # doctest: +SKIP
    """
    with connect(url) as (connection, source):
        read = _TableReader(connection, source, table, schema, columns)
        owner_id = None if business_id is None else validate_business_id(business_id)
        rows = read.rows(owner_id)
    return _tree(rows, source, table, owner_id)


@dataclass(frozen=True, slots=True)
class _TableReader:
    """One open database, and the table in it that was requested."""

    connection: Connection
    source: str
    table: str
    schema: str | None
    columns: TableColumns

    def rows(self, business_id: str | None) -> list[tuple[str, str, str]]:
        """(id, parent, name) of the rows of one business, in the order of their ids."""
        sql = _sqlalchemy()
        self._check_schema_exists()
        table = self._name_of_table()
        columns = [column["name"] for column in sql.inspect(self.connection).get_columns(table, schema=self.schema)]
        ids, parents = (self._column(column, columns) for column in (self.columns.id, self.columns.parent))
        names = _match(self.columns.name, columns)
        if names is None and self.columns.name != TableColumns().name:
            names = self._column(self.columns.name, columns)
        business = _match(self.columns.business, columns)
        selectable = sql.table(
            _quoted_name(table), *(sql.column(_quoted_name(column)) for column in columns), schema=self.schema
        )
        chosen = [selectable.c[ids], selectable.c[parents], selectable.c[names or ids]]
        if business_id is not None:
            owner = selectable.c[business or self._column(self.columns.business, columns)]
            rows = self._of_business(chosen, owner, business_id)
        else:
            if business is not None:
                check_single_business(self.connection, selectable.c[business], self._called)
            rows = list(self.connection.execute(sql.select(*chosen)))
        ordered = sorted((tuple(row) for row in rows), key=_order)
        return [(self._cell(key), self._cell(parent), self._cell(name)) for key, parent, name in ordered]

    def _of_business(self, chosen: list[Any], owner: Any, business_id: str) -> list[Any]:
        """The rows of one business, selected by the database and looked at once more."""
        sql = _sqlalchemy()
        dialect = self.connection.dialect.name
        query = sql.select(*chosen, bytewise(owner, dialect)).where(business_filter(owner, business_id, dialect))
        rows = list(self.connection.execute(query))
        check_rows_of_business([row[-1] for row in rows], business_id, self._called)
        return [row[:-1] for row in rows]

    def _cell(self, value: Any) -> str:
        return cell_text(value, self._called)

    @property
    def _called(self) -> str:
        return f"{self.source} (table {self.table})"

    def _check_schema_exists(self) -> None:
        if self.schema is None:
            return
        schemas = _sqlalchemy().inspect(self.connection).get_schema_names()
        if self.schema not in schemas:
            raise UnknownNameError(
                f"{self.source} has no schema {self.schema!r}",
                hint=did_you_mean(self.schema, schemas) or f"there are: {', '.join(schemas)}",
            )

    def _name_of_table(self) -> str:
        sql = _sqlalchemy()
        inspector = sql.inspect(self.connection)
        tables = [
            *inspector.get_table_names(schema=self.schema),
            *inspector.get_view_names(schema=self.schema),
        ]
        match = _match(self.table, tables)
        if match is None:
            location = "the database" if self.schema is None else f"the schema {self.schema}"
            listed = f"there are: {', '.join(sorted(tables)[:8])}" if tables else f"{location} has no tables"
            raise UnknownNameError(
                f"{self.source} has no table {self.table!r}", hint=did_you_mean(self.table, tables) or listed
            )
        return match

    def _column(self, name: str, columns: list[str]) -> str:
        match = _match(name, columns)
        if match is None:
            raise UnknownNameError(
                f"{self._called} has no column {name!r}",
                hint=did_you_mean(name, columns) or f"there are: {', '.join(columns)}",
            )
        return match


def _match(name: str, names: list[str]) -> str | None:
    """The name in the database: an exact match, or the only one that differs in case."""
    if name in names:
        return name
    near = [candidate for candidate in names if candidate.casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def _quoted_name(name: str) -> Any:
    return _sqlalchemy().sql.quoted_name(name, quote=True)


def _order(row: tuple[Any, ...]) -> tuple[bool, Any]:
    """Numbers by value, then texts by letter, so that every database gives the same order."""
    return (False, row[0]) if isinstance(row[0], int) else (True, str(row[0]))


def _tree(rows: list[tuple[str, str, str]], source: str, table: str, business_id: str | None) -> Tree:
    source = f"{source} (table {table}{'' if business_id is None else f', business {business_id!r}'})"
    if not rows:
        raise InputError(f"{source} has no rows", hint="business ids must match exactly")
    nodes = [(key, name) for key, _, name in rows]
    edges = [(key, parent) for key, parent, _ in rows if parent]
    node_ids = {key for key, _ in nodes}
    for child, parent in edges:
        if parent not in node_ids:
            error = InvalidTreeError(
                f"{source}: the parent of {child} is {parent!r}, which is not one of these accounts",
                hint="it does not exist, or belongs to another business; correct the parent, or leave it empty",
            )
            error.rows = TreeRows(nodes, edges, source)
            raise error
    return Tree.of(nodes, edges, source=source)
