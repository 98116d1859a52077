"""DuckDB: vectors in a table of a database file, compared with all of them or through an index of ``vss``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise.errors import UnknownNameError
from equipoise.models.stores.base import CollectionSchema, RowStore, batches, resolve_schema, translate_errors
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

REGISTRY = "equipoise_collections"
"""The table with the dimensions and the geometry of every collection."""
MEMORY = ":memory:"
BATCH = 1000
"""Rows per statement; all rows of a call are one transaction."""
INDEXES = ("hnsw",)
_INDEXED = "equipoise_indexed"
"""The temporary table with the index: ``vss`` stores an index in a file only as an experiment."""


class DuckDBStore(RowStore):
    """A table of a DuckDB database with one row per vector; search compares with every vector.

    ``index="hnsw"`` searches a graph of the extension ``vss`` in memory, built at the first search after a change.
    """

    kind = "duckdb"

    def __init__(
        self,
        collection: str,
        shape: CollectionSchema,
        connection: Any,
        location: str,
        *,
        index: str | None = None,
        ef_search: int = 100,
    ) -> None:
        super().__init__(collection, shape.dims, shape.geometry, connection, location, exact=index is None)
        self._table = _quoted(f"equipoise {collection}")
        self._index, self._ef_search = index, ef_search
        self._is_indexed = False

    @classmethod
    def open(
        cls,
        path: str,
        collection: str,
        dims: int | None,
        geometry: str,
        *,
        index: str | None = None,
        ef_search: int = 100,
    ) -> Self:
        """Open a database file, or ``:memory:``, and a collection in it, or create them."""
        if index is not None and index not in INDEXES:
            raise UnknownNameError.of("duckdb index", index, INDEXES, more=f"known: {', '.join(INDEXES)}")
        location = path if path == MEMORY else str(Path(path).expanduser())
        engine = require_extra("duckdb", extra="duckdb")
        with cls._translate_errors(location):
            connection = engine.connect(location)
            try:
                if index:
                    _load_vss(connection, engine.__version__)
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {REGISTRY} (name VARCHAR PRIMARY KEY, dims INTEGER, geometry VARCHAR)"
                )
                rows = connection.execute(f"SELECT name, dims, geometry FROM {REGISTRY}").fetchall()
                schemas = {name: CollectionSchema(stored_dims, stored) for name, stored_dims, stored in rows}
                shape, is_new = resolve_schema(collection, schemas, dims, geometry, location)
                store = cls(collection, shape, connection, location, index=index, ef_search=ef_search)
                if is_new:
                    store._create(shape)
            except Exception:
                connection.close()
                raise
            return store

    def _create(self, shape: CollectionSchema) -> None:
        columns = f"id VARCHAR PRIMARY KEY, vector FLOAT[{shape.dims}], text VARCHAR"
        self._client.execute(f"CREATE TABLE {self._table} ({columns})")
        values = (self.collection, shape.dims, shape.geometry)
        self._client.execute(f"INSERT INTO {REGISTRY} VALUES (?, ?, ?)", values)

    def _count(self) -> int:
        return int(self._client.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        statement = (
            f"INSERT OR REPLACE INTO {self._table} "
            f"SELECT unnest(?::VARCHAR[]), unnest(?::FLOAT[{self.dims}][]), unnest(?::VARCHAR[])"
        )
        self._is_indexed = False
        self._client.begin()
        try:
            for part in batches(len(ids), BATCH):
                self._client.execute(statement, (ids[part], vectors[part].tolist(), texts[part]))
            self._client.commit()
        except BaseException:
            self._client.rollback()
            raise

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[str], Any]:
        order = "array_distance" if self.geometry == "euclidean" else "array_negative_inner_product"
        table = self._indexed(k) if self._index else self._table
        statement = f"SELECT id, vector FROM {table} ORDER BY {order}(vector, ?::FLOAT[{self.dims}]) LIMIT {int(k)}"
        rows = self._client.execute(statement, (query.tolist(),)).fetchall()
        return [name for name, _ in rows], [vector for _, vector in rows]

    def _indexed(self, k: int) -> str:
        """The name of a copy with an index, made again if the rows have changed."""
        if not self._is_indexed:
            metric = "l2sq" if self.geometry == "euclidean" else "ip"
            self._client.execute(f"CREATE OR REPLACE TEMP TABLE {_INDEXED} AS SELECT id, vector FROM {self._table}")
            self._client.execute(f"CREATE INDEX near ON {_INDEXED} USING HNSW (vector) WITH (metric = '{metric}')")
            self._is_indexed = True
        self._client.execute(f"SET hnsw_ef_search = {max(self._ef_search, k)}")
        return _INDEXED

    def _delete(self, ids: list[str]) -> int:
        self._is_indexed = False
        before = self._count()
        self._client.execute(f"DELETE FROM {self._table} WHERE id IN (SELECT unnest(?::VARCHAR[]))", (ids,))
        return before - self._count()

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        statement = f"SELECT id, {name} FROM {self._table} WHERE id IN (SELECT unnest(?::VARCHAR[]))"
        return dict(self._client.execute(statement, (ids,)).fetchall())

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        errors = (require_extra("duckdb", extra="duckdb").Error,)
        hint = (
            "check the path, and that no other process has it open for writing; without a network, index=hnsw needs "
            "duckdb-extension-vss in the version of duckdb"
        )
        return translate_errors(f"the DuckDB database at {location}", errors, hint)


def _quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _load_vss(connection: Any, version: str) -> None:
    """Load the extension ``vss``: from the package duckdb-extension-vss, or as DuckDB does, by a download."""
    package = find_spec("duckdb_extension_vss")
    if package is not None and package.origin is not None:
        packaged = Path(package.origin).parent / "extensions" / f"v{version}" / "vss.duckdb_extension"
        if packaged.exists():
            escaped = str(packaged).replace("'", "''")
            connection.execute(f"LOAD '{escaped}'")
            return
    connection.execute("INSTALL vss")
    connection.execute("LOAD vss")
