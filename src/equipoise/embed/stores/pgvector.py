"""pgvector: a table of vectors in a PostgreSQL database.

Values travel as bound parameters only; a collection's name becomes a quoted identifier. Every call is one
transaction, so nothing is ever half-written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt
from typing import Any, Self

from equipoise.embed.encoder import Vectors
from equipoise.embed.stores.base import Found, Store, found_of, unit_rows
from equipoise.embed.stores.postgres import connected, explained, without_password
from equipoise.embed.stores.shape import Shape, agreed
from equipoise.errors import EquipoiseError, ParameterError, UnknownNameError
from equipoise.types import need

INDEXES = ("hnsw", "ivfflat")
_MOST_DIMS = {"": 16_000, "hnsw": 2_000, "ivfflat": 2_000}
_QUERIES_AT_ONCE = 256


class PgVector(Store):
    """A collection in PostgreSQL; search compares with every row unless an index is asked for.

    ``index`` is ``hnsw`` or ``ivfflat``: the index is built at the first search, when the rows are there.
    """

    kind = "pgvector"

    def __init__(self, collection: str, shape: Shape, table: str, connection: Any, place: str) -> None:
        super().__init__(collection, shape.dims, shape.geometry)
        self._index = shape.index
        self._lists: int | None = None
        self._connection = connection
        self._place = place
        sql = need("psycopg.sql", extra="pgvector")
        self._sql: Any = sql
        self._table = sql.Identifier(table)
        self._index_name = sql.Identifier(f"{table}_near")
        self._nearness = sql.SQL("<->" if self.geometry == "euclidean" else "<#>")

    @classmethod
    def open(
        cls, url: str, collection: str, dims: int | None, geometry: str, *, index: str | None = None
    ) -> Self:
        """Connect, and open a collection or create it."""
        if index is not None and index not in INDEXES:
            raise UnknownNameError.of("pgvector index", index, INDEXES, more=f"known: {', '.join(INDEXES)}")
        place, _ = without_password(url)
        connection = connected(url)
        try:
            with explained(connection, place):
                shape, table = _opened(connection, collection, dims, geometry, index or "", place)
            return cls(collection, shape, table, connection, place)
        except EquipoiseError:
            connection.close()
            raise

    @property
    def exact(self) -> bool:
        return not self._index

    def _count(self) -> int:
        with self._work() as connection:
            row = connection.execute(self._query("SELECT count(*) FROM {table}")).fetchone()
        return int(row[0])

    def close(self) -> None:
        super().close()
        self._connection.close()

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        rows = unit_rows(vectors) if self.geometry == "cosine" else vectors
        with self._work() as connection, connection.cursor() as cursor:
            cursor.execute(self._query("CREATE TEMP TABLE arriving (LIKE {table}) ON COMMIT DROP"))
            with cursor.copy("COPY arriving (id, vector, content) FROM STDIN WITH (FORMAT BINARY)") as copy:
                copy.set_types(["text", "vector", "text"])
                for row in zip(ids, rows, texts, strict=True):
                    copy.write_row(row)
            cursor.execute(
                self._query(
                    "INSERT INTO {table} (id, vector, content) SELECT id, vector, content FROM arriving "
                    "ON CONFLICT (id) DO UPDATE SET vector = excluded.vector, content = excluded.content"
                )
            )

    def _search(self, queries: Vectors, k: int) -> Found:
        rows = unit_rows(queries) if self.geometry == "cosine" else queries
        found: list[list[tuple[str, float]]] = [[] for _ in rows]
        self._build_index()
        with self._work() as connection:
            self._tune(connection, k)
            for start in range(0, len(rows), _QUERIES_AT_ONCE):
                part = list(rows[start : start + _QUERIES_AT_ONCE])
                numbers = list(range(start, start + len(part)))
                statement = self._query(
                    "SELECT query.number, hit.id, hit.distance "
                    "FROM unnest(%s::integer[], %s::vector[]) AS query (number, point), LATERAL "
                    "(SELECT id, vector {nearness} query.point AS distance FROM {table} "
                    "ORDER BY vector {nearness} query.point LIMIT %s) AS hit ORDER BY 1, 3"
                )
                for number, name, distance in connection.execute(statement, (numbers, part, k)):
                    found[number].append((name, self._similarity(distance)))
        return found_of(found, k)

    def _delete(self, ids: list[str]) -> int:
        with self._work() as connection:
            return int(
                connection.execute(self._query("DELETE FROM {table} WHERE id = ANY(%s)"), (ids,)).rowcount
            )

    def _texts(self, ids: list[str]) -> list[str | None]:
        with self._work() as connection:
            statement = self._query("SELECT id, content FROM {table} WHERE id = ANY(%s)")
            content = dict(connection.execute(statement, (ids,)).fetchall())
        return [content.get(name) for name in ids]

    def _vectors(self, ids: list[str]) -> dict[str, Any]:
        with self._work() as connection:
            statement = self._query("SELECT id, vector::real[] FROM {table} WHERE id = ANY(%s)")
            return dict(connection.execute(statement, (ids,)).fetchall())

    def _similarity(self, distance: float) -> float:
        """From what the operator returns: a distance, or minus the inner product."""
        return -distance * distance if self.geometry == "euclidean" else -distance

    def _build_index(self) -> None:
        if not self._index or self._lists is not None:
            return
        # As the authors of pgvector advise: a list for a thousand rows.
        lists = max(1, min(1000, self.count() // 1000))
        operators = "vector_l2_ops" if self.geometry == "euclidean" else "vector_ip_ops"
        options = f" WITH (lists = {lists})" if self._index == "ivfflat" else ""
        method = f"{self._index} (vector {operators}){options}"
        with self._work() as connection:
            connection.execute("SET LOCAL client_min_messages = warning")
            connection.execute(
                self._sql.SQL(f"CREATE INDEX IF NOT EXISTS {{name}} ON {{table}} USING {method}").format(
                    name=self._index_name, table=self._table
                )
            )
        self._lists = lists

    def _tune(self, connection: Any, k: int) -> None:
        """Search deep enough to return k rows."""
        if self._index == "hnsw":
            connection.execute(
                "SELECT set_config('hnsw.ef_search', %s, true)", (str(min(1000, max(100, 2 * k))),)
            )
            connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        elif self._index == "ivfflat":
            probes = str(max(1, 2 * isqrt(self._lists or 1)))
            connection.execute("SELECT set_config('ivfflat.probes', %s, true)", (probes,))
            connection.execute("SET LOCAL ivfflat.iterative_scan = relaxed_order")

    def _query(self, statement: str) -> Any:
        return self._sql.SQL(statement).format(table=self._table, nearness=self._nearness)

    @contextmanager
    def _work(self) -> Iterator[Any]:
        """One transaction, its failures explained."""
        with explained(self._connection, self._place):
            yield self._connection


def _opened(
    connection: Any, collection: str, dims: int | None, geometry: str, index: str, place: str
) -> tuple[Shape, str]:
    """The shape and the table of a collection that is there, or that is made now."""
    connection.execute("SELECT pg_advisory_xact_lock(7201930)")
    rows = connection.execute("SELECT name, number, dims, geometry, approximate FROM equipoise_collections")
    numbers: dict[str, int] = {}
    found: dict[str, Shape] = {}
    for name, number, *rest in rows:
        numbers[name], found[name] = number, Shape(*rest)
    shape, is_new = agreed(collection, found, dims, geometry, place, index=index)
    if not is_new:
        return shape, _table(numbers[collection], collection)
    if shape.dims > _MOST_DIMS[index]:
        raise ParameterError(
            f"{'an index of ' if index else ''}pgvector holds at most {_MOST_DIMS[index]:,} dimensions, "
            f"not {shape.dims:,}",
            hint="truncate the vectors with dim=" + (", or search without an index" if index else ""),
        )
    sql = need("psycopg.sql", extra="pgvector")
    row = connection.execute(
        "INSERT INTO equipoise_collections (name, dims, geometry, approximate) VALUES (%s, %s, %s, %s) "
        "RETURNING number",
        (collection, shape.dims, shape.geometry, index),
    ).fetchone()
    table = _table(row[0], collection)
    statement = "CREATE TABLE {table} (id text PRIMARY KEY, vector vector({dims}) NOT NULL, content text)"
    connection.execute(sql.SQL(statement).format(table=sql.Identifier(table), dims=sql.Literal(shape.dims)))
    return shape, table


def _table(number: int, collection: str) -> str:
    """A name that the server neither cuts nor misreads, and in which people see the collection's."""
    return f"equipoise_{number}_{re.sub('[^a-z0-9]+', '_', collection.lower())[:32]}"
