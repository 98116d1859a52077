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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, UnknownNameError, did_you_mean
from equipoise.hierarchy.sources.connection import connected
from equipoise.hierarchy.sources.table import cell
from equipoise.hierarchy.sources.tenants import (
    EXTRA,
    checked_business,
    exact,
    is_business,
    refuse_several,
    refuse_strangers,
)
from equipoise.hierarchy.tree import Tree
from equipoise.types import need

if TYPE_CHECKING:
    from sqlalchemy import Connection


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
        asked = None if business_id is None else checked_business(business_id)
        rows = read.rows(asked)
    return _tree(rows, f"{source} {table}", asked)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One open database, and the table in it that is asked for."""

    connection: Connection
    source: str
    table: str
    schema: str | None
    columns: Columns

    def rows(self, business_id: str | None) -> list[tuple[str, str, str]]:
        """(id, parent, name) of the rows of one business, in the order of their ids."""
        sql = need("sqlalchemy", extra=EXTRA)
        self._refuse_unknown_schema()
        table = self._name_of_table()
        known = [each["name"] for each in sql.inspect(self.connection).get_columns(table, schema=self.schema)]
        ids, parents = (self._column(each, known) for each in (self.columns.id, self.columns.parent))
        names = _match(self.columns.name, known)
        if names is None and self.columns.name != Columns().name:
            names = self._column(self.columns.name, known)
        business = _match(self.columns.business, known)
        held = sql.table(_quoted(table), *(sql.column(_quoted(each)) for each in known), schema=self.schema)
        chosen = [held.c[ids], held.c[parents], held.c[names or ids]]
        if business_id is not None:
            owner = held.c[business or self._column(self.columns.business, known)]
            found = self._of_business(chosen, owner, business_id)
        else:
            if business is not None:
                refuse_several(self.connection, held.c[business], self._called)
            found = list(self.connection.execute(sql.select(*chosen)))
        ordered = sorted((tuple(row) for row in found), key=_order)
        return [(self._cell(key), self._cell(parent), self._cell(name)) for key, parent, name in ordered]

    def _of_business(self, chosen: list[Any], owner: Any, business_id: str) -> list[Any]:
        """The rows of one business, selected by the database and looked at once more."""
        sql = need("sqlalchemy", extra=EXTRA)
        dialect = self.connection.dialect.name
        asked = sql.select(*chosen, exact(owner, dialect)).where(is_business(owner, business_id, dialect))
        found = list(self.connection.execute(asked))
        refuse_strangers([row[-1] for row in found], business_id, self._called)
        return [row[:-1] for row in found]

    def _cell(self, value: Any) -> str:
        return cell(value, self._called)

    @property
    def _called(self) -> str:
        return f"{self.source} {self.table}"

    def _refuse_unknown_schema(self) -> None:
        if self.schema is None:
            return
        known = need("sqlalchemy", extra=EXTRA).inspect(self.connection).get_schema_names()
        if self.schema not in known:
            raise UnknownNameError(
                f"{self.source} has no schema {self.schema!r}",
                hint=did_you_mean(self.schema, known) or f"there are: {', '.join(known)}",
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
            where = "the database" if self.schema is None else f"the schema {self.schema}"
            listed = f"there are: {', '.join(sorted(known)[:8])}" if known else f"{where} has no tables"
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


def _tree(rows: list[tuple[str, str, str]], source: str, business_id: str | None) -> Tree:
    of_business = "" if business_id is None else f" of business {business_id!r}"
    if not rows:
        raise InputError(
            f"{source} has no rows{of_business}", hint="business ids are matched letter by letter"
        )
    nodes = [(key, name) for key, _, name in rows]
    edges = [(key, parent) for key, parent, _ in rows if parent]
    known = {key for key, _ in nodes}
    for child, parent in edges:
        if parent not in known:
            raise InputError(
                f"{source}: the parent of {child} is {parent!r}, which is no account{of_business}",
                hint="it does not exist, or belongs to another business; correct the parent, or empty it",
            )
    return Tree.of(nodes, edges, source=f"{source}{of_business}")
