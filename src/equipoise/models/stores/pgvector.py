"""pgvector: a table of vectors in a PostgreSQL database.

Values are passed as bound parameters only; a collection's name becomes a quoted identifier. Every call is one
transaction, so nothing is ever half-written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from equipoise.errors import EquipoiseError, ParameterError, StoreError, UnknownNameError
from equipoise.models.stores import base
from equipoise.redaction import note_secret
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

# Connections to PostgreSQL: open them with the extension, and translate driver errors without the password.

_CATALOGUE = """
    CREATE TABLE IF NOT EXISTS equipoise_collections
    (name text PRIMARY KEY, number serial NOT NULL,
     dims integer NOT NULL, geometry text NOT NULL, approximate text NOT NULL)
"""


def connect(url: str) -> Any:
    """A connection to a database that has the extension and the catalogue of collections."""
    location, password = without_password(url)
    for secret in (password, os.environ.get("PGPASSWORD")):
        note_secret(secret)
    psycopg = require_extra("psycopg", extra="pgvector")
    vectors = require_extra("pgvector.psycopg", extra="pgvector")
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except (psycopg.OperationalError, psycopg.ProgrammingError, UnicodeError) as error:
        # The last lines of the driver's message may be a query; the error is before it.
        messages = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in reversed(messages) if not line.endswith("?")), "no answer")
        raise StoreError(
            f"the PostgreSQL server at {location} cannot be reached: {reason}",
            hint="check that it is running, and the host, port, database, user and password of the URL",
        ) from None
    try:
        with connection.transaction():
            connection.execute("SET client_min_messages = warning")
            # Two programs that start at once must not both create the same tables.
            connection.execute("SELECT pg_advisory_xact_lock(7201930)")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(_CATALOGUE)
        vectors.register_vector(connection)
        connection.commit()
    except psycopg.Error as error:
        connection.close()
        raise StoreError(
            f"the database at {location} cannot be prepared: {base.first_line(error)}",
            hint="install the extension vector (pgvector) there, and let this user create tables",
        ) from None
    return connection


@contextmanager
def transaction(connection: Any, location: str) -> Iterator[None]:
    """A transaction; errors of the server are raised as ``StoreError``."""
    psycopg = require_extra("psycopg", extra="pgvector")
    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        message = base.first_line(error)
        if connection.closed:
            raise StoreError(
                f"the PostgreSQL server at {location} is no longer reachable: {message}",
                hint="nothing of this call was stored; open the store again when the server is back",
            ) from None
        raise StoreError(
            f"PostgreSQL at {location} returned an error: {message}", hint="nothing of this call was stored"
        ) from None


def without_password(url: str) -> tuple[str, str]:
    """The URL as it may be shown, and the password that was in it."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise ParameterError(
            "the address of a PostgreSQL server begins with postgresql://",
            hint="write pgvector:postgresql://user@host/database; PGPASSWORD may hold the password",
        )
    scheme, _, rest = url.partition("://")
    before, slash, path = rest.partition("/")
    user, at, host = before.rpartition("@")
    name, _, password = user.partition(":")
    if set(password) & set("@?#") or (not at and ":" in before and "@" in path.partition("?")[0]):
        # The driver would mistake a part of it for a host and print it.
        raise ParameterError(
            "the password in the address of a PostgreSQL server holds a sign that ends it",
            hint="write %40 for @, %2F for /, %3F for ? and %23 for #, or keep it in PGPASSWORD",
        )
    return f"{scheme}://{name}{at}{host}{slash}{path.partition('?')[0]}", unquote(password)


INDEXES = ("hnsw", "ivfflat")
_MAX_INDEXED_DIMS = {"": 16_000, "hnsw": 2_000, "ivfflat": 2_000}


class PgVectorStore(base.VectorStore):
    """A collection in PostgreSQL; search compares with every row unless an index is requested.

    ``index`` is ``hnsw`` or ``ivfflat``: the index is built at the first search, after the rows were added.
    """

    kind = "pgvector"

    def __init__(
        self, collection: str, shape: base.CollectionSchema, table: str, connection: Any, location: str
    ) -> None:
        super().__init__(collection, shape.dims, shape.geometry, connection, location, exact=not shape.index)
        self._index = shape.index
        self._lists: int | None = None
        sql = require_extra("psycopg.sql", extra="pgvector")
        self._sql: Any = sql
        self._table = sql.Identifier(table)
        self._index_name = sql.Identifier(f"{table}_near")
        self._distance_operator = sql.SQL("<->" if self.geometry == "euclidean" else "<#>")

    @classmethod
    def open(cls, url: str, collection: str, dims: int | None, geometry: str, *, index: str | None = None) -> Self:
        """Connect, and open a collection or create it."""
        if index is not None and index not in INDEXES:
            raise UnknownNameError.of("pgvector index", index, INDEXES, more=f"known: {', '.join(INDEXES)}")
        location, _ = without_password(url)
        connection = connect(url)
        try:
            with transaction(connection, location):
                shape, table = _open_table(connection, collection, dims, geometry, index or "", location)
            return cls(collection, shape, table, connection, location)
        except EquipoiseError:
            connection.close()
            raise

    def _count(self) -> int:
        return int(self._execute("SELECT count(*) FROM {table}").fetchone()[0])

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        self._execute("CREATE TEMP TABLE arriving (LIKE {table}) ON COMMIT DROP")
        copying = "COPY arriving (id, vector, content) FROM STDIN WITH (FORMAT BINARY)"
        with self._client.cursor() as cursor, cursor.copy(copying) as copy:
            copy.set_types(["text", "vector", "text"])
            for row in zip(ids, vectors, texts, strict=True):
                copy.write_row(row)
        self._execute(
            "INSERT INTO {table} (id, vector, content) SELECT id, vector, content FROM arriving "
            "ON CONFLICT (id) DO UPDATE SET vector = excluded.vector, content = excluded.content"
        )

    def _search(self, queries: Vectors, k: int) -> base.SearchResult:
        hits: list[list[tuple[str, float]]] = [[] for _ in queries]
        self._build_index()
        self._tune(k)
        rows = self._execute(
            "SELECT query.number, hit.id, hit.distance "
            "FROM unnest(%s::integer[], %s::vector[]) AS query (number, point), LATERAL "
            "(SELECT id, vector {distance_operator} query.point AS distance FROM {table} "
            "ORDER BY vector {distance_operator} query.point LIMIT %s) AS hit ORDER BY 1, 3",
            (list(range(len(queries))), list(queries), k),
        )
        for number, name, distance in rows:
            hits[number].append((name, self._similarity(distance)))
        return base.pad_hits(hits, k)

    def _delete(self, ids: list[str]) -> int:
        return int(self._execute("DELETE FROM {table} WHERE id = ANY(%s)", (ids,)).rowcount)

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        column = "content" if name == "text" else "vector::real[]"
        return dict(self._execute(f"SELECT id, {column} FROM {{table}} WHERE id = ANY(%s)", (ids,)).fetchall())

    def _similarity(self, distance: float) -> float:
        """The similarity from a distance, or from minus the inner product."""
        return -distance * distance if self.geometry == "euclidean" else -distance

    def _build_index(self) -> None:
        if not self._index or self._lists is not None:
            return
        # As the authors of pgvector advise: a list for a thousand rows.
        lists = max(1, min(1000, self._count() // 1000))
        operators = "vector_l2_ops" if self.geometry == "euclidean" else "vector_ip_ops"
        options = f" WITH (lists = {lists})" if self._index == "ivfflat" else ""
        method = f"{self._index} (vector {operators}){options}"
        self._execute("SET LOCAL client_min_messages = warning")
        self._execute(f"CREATE INDEX IF NOT EXISTS {{index}} ON {{table}} USING {method}")
        self._lists = lists

    def _tune(self, k: int) -> None:
        """Set the search depth so that k rows are returned."""
        if self._index == "hnsw":
            self._execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(min(1000, max(100, 2 * k))),))
            self._execute("SET LOCAL hnsw.iterative_scan = strict_order")
        elif self._index == "ivfflat":
            probes = str(max(1, 2 * isqrt(self._lists or 1)))
            self._execute("SELECT set_config('ivfflat.probes', %s, true)", (probes,))
            self._execute("SET LOCAL ivfflat.iterative_scan = relaxed_order")

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        names = {"table": self._table, "index": self._index_name, "distance_operator": self._distance_operator}
        return self._client.execute(self._sql.SQL(statement).format(**names), values)

    @contextmanager
    def _request(self) -> Iterator[None]:
        """One transaction; if it is rolled back, so is an index that it built."""
        try:
            with transaction(self._client, self._place):
                yield
        except StoreError:
            self._lists = None
            raise


def _open_table(
    connection: Any, collection: str, dims: int | None, geometry: str, index: str, location: str
) -> tuple[base.CollectionSchema, str]:
    """The schema and the table of a collection, which is created if it does not exist."""
    connection.execute("SELECT pg_advisory_xact_lock(7201930)")
    rows = connection.execute("SELECT name, number, dims, geometry, approximate FROM equipoise_collections")
    numbers: dict[str, int] = {}
    schemas: dict[str, base.CollectionSchema] = {}
    for name, number, *rest in rows:
        numbers[name], schemas[name] = number, base.CollectionSchema(*rest)
    shape, is_new = base.resolve_schema(collection, schemas, dims, geometry, location, index=index)
    if not is_new:
        return shape, _table(numbers[collection], collection)
    if shape.dims > _MAX_INDEXED_DIMS[index]:
        raise ParameterError(
            f"{'an index of ' if index else ''}pgvector holds at most {_MAX_INDEXED_DIMS[index]:,} dimensions, "
            f"not {shape.dims:,}",
            hint="truncate the vectors with dim=" + (", or search without an index" if index else ""),
        )
    sql = require_extra("psycopg.sql", extra="pgvector")
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
    """A valid identifier of the server that contains the name of the collection."""
    return f"equipoise_{number}_{re.sub('[^a-z0-9]+', '_', collection.lower())[:32]}"
