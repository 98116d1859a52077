"""Trees in relational databases, through SQLAlchemy: SQLite, PostgreSQL, MySQL and MariaDB.

The table that is expected unless another is named:

    CREATE TABLE accounts (
        business_id TEXT NOT NULL,
        id          TEXT NOT NULL,
        parent_id   TEXT,
        name        TEXT NOT NULL,
        PRIMARY KEY (business_id, id),
        FOREIGN KEY (business_id, parent_id) REFERENCES accounts (business_id, id)
    );

Values are bound, names are quoted, and the rows of a business are selected by the database: no row of
another one is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, ParameterError, UnknownNameError, did_you_mean
from equipoise.hierarchy.sources.connection import connected
from equipoise.hierarchy.sources.table import cell
from equipoise.hierarchy.tree import Tree
from equipoise.types import need

if TYPE_CHECKING:
    from sqlalchemy import Connection

EXTRA = "accounts"
_EXACT = {"sqlite": "BINARY", "mysql": "utf8mb4_bin", "mariadb": "utf8mb4_bin"}
"""Collations that tell ``acme`` from ``ACME``, where the column's own may not."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of the table are called."""

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
    columns: Columns = Columns(),  # noqa: B008  (frozen)
) -> Tree:
    """The tree of one business in a table or a view; ``url`` is an SQLAlchemy URL or a SQLite file.

    A row whose parent is null or empty is a root. A parent that is no row of the same business is an
    error. Without ``business_id`` the table must hold the rows of one business only, or have no such
    column. A table without a column of names is read with its ids as names.
    """
    with connected(url) as (connection, source):
        read = _Reading(connection, source, table, schema, columns)
        rows = read.rows(business_id)
    return _tree(rows, f"{source} {table}", business_id)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One open database, and the table in it that is asked for."""

    connection: Connection
    source: str
    table: str
    schema: str | None
    columns: Columns

    def rows(self, business_id: str | int | None) -> list[tuple[Any, ...]]:
        """(id, parent, name) of the rows of one business, in the order of their ids."""
        sql = need("sqlalchemy", extra=EXTRA)
        table = self._name_of_table()
        known = [each["name"] for each in sql.inspect(self.connection).get_columns(table, schema=self.schema)]
        ids, parents = (self._column(each, known) for each in (self.columns.id, self.columns.parent))
        names = _match(self.columns.name, known)
        if names is None and self.columns.name != Columns().name:
            names = self._column(self.columns.name, known)
        business = _match(self.columns.business, known)
        held = sql.table(_quoted(table), *(sql.column(_quoted(each)) for each in known), schema=self.schema)
        chosen = sql.select(held.c[ids], held.c[parents], held.c[names or ids])
        if business_id is not None:
            business = business or self._column(self.columns.business, known)
            chosen = chosen.where(self._same(held.c[business], str(business_id)))
        elif business is not None:
            self._refuse_many(held.c[business])
        return sorted((tuple(row) for row in self.connection.execute(chosen)), key=_order)

    def _same(self, column: Any, business_id: str) -> Any:
        """The condition that a column is this text, letter by letter, whatever type and collation it has."""
        sql = need("sqlalchemy", extra=EXTRA)
        text = sql.cast(column, sql.String)
        collation = _EXACT.get(self.connection.dialect.name)
        return (sql.collate(text, collation) if collation else text) == sql.bindparam("business", business_id)

    def _refuse_many(self, business: Any) -> None:
        sql = need("sqlalchemy", extra=EXTRA)
        found = [
            str(each) for each in self.connection.scalars(sql.select(business).distinct().order_by(business))
        ]
        if len(found) > 1:
            listed = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
            raise ParameterError(
                f"{self.source} {self.table} holds the accounts of {len(found)} businesses: {listed}",
                hint=f"name one of them as the business id, such as {found[0]}",
            )

    def _name_of_table(self) -> str:
        sql = need("sqlalchemy", extra=EXTRA)
        inspector = sql.inspect(self.connection)
        known = [
            *inspector.get_table_names(schema=self.schema),
            *inspector.get_view_names(schema=self.schema),
        ]
        found = _match(self.table, known)
        if found is None:
            listed = f"there are: {', '.join(sorted(known)[:8])}" if known else "the database has no tables"
            raise UnknownNameError(
                f"{self.source} has no table {self.table!r}", hint=did_you_mean(self.table, known) or listed
            )
        return found

    def _column(self, name: str, known: list[str]) -> str:
        found = _match(name, known)
        if found is None:
            raise UnknownNameError(
                f"{self.source} {self.table} has no column {name!r}",
                hint=did_you_mean(name, known) or f"there are: {', '.join(known)}",
            )
        return found


def _match(name: str, known: list[str]) -> str | None:
    """The name as the database spells it: the same letters, or the only one that differs in case."""
    if name in known:
        return name
    near = [each for each in known if each.casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def _quoted(name: str) -> Any:
    return need("sqlalchemy", extra=EXTRA).sql.quoted_name(name, quote=True)


def _order(row: tuple[Any, ...]) -> tuple[bool, Any]:
    """Numbers by value, then texts by letter, so that every database gives the same order."""
    return (False, row[0]) if isinstance(row[0], int) else (True, str(row[0]))


def _tree(rows: list[tuple[Any, ...]], source: str, business_id: str | int | None) -> Tree:
    of_business = "" if business_id is None else f" of business {str(business_id)!r}"
    if not rows:
        raise InputError(
            f"{source} has no rows{of_business}", hint="business ids are matched letter by letter"
        )
    nodes = [(cell(key), cell(name)) for key, _, name in rows]
    edges = [(cell(key), cell(parent)) for key, parent, _ in rows if cell(parent)]
    known = {key for key, _ in nodes}
    for child, parent in edges:
        if parent not in known:
            raise InputError(
                f"{source}: the parent of {child} is {parent!r}, which is no account{of_business}",
                hint="it does not exist, or belongs to another business; correct the parent, or empty it",
            )
    return Tree.of(nodes, edges, source=f"{source}{of_business}")
