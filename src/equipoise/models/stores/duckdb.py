"""DuckDB: vectors as arrays in a table of a database file, compared with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from equipoise.errors import StoreError
from equipoise.models.stores.base import (
    CollectionSchema,
    SearchResult,
    VectorStore,
    pad_hits,
    resolve_schema,
    similarities,
    unit_rows,
)
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

REGISTRY = "equipoise_collections"
"""The table with the dimensions and the geometry of every collection."""
MEMORY = ":memory:"
BATCH = 1000
"""Rows per statement."""
_ORDER = {"euclidean": "array_distance(vector, ?::FLOAT[{dims}])", "": "-array_inner_product(vector, ?::FLOAT[{dims}])"}


class DuckDBStore(VectorStore):
    """A table of a DuckDB database with one row per vector; search compares with every vector."""

    kind = "duckdb"

    def __init__(self, collection: str, shape: CollectionSchema, connection: Any, location: str) -> None:
        super().__init__(collection, shape.dims, shape.geometry)
        self._connection = connection
        self._place = location
        self._table = _quoted(f"equipoise {collection}")

    @classmethod
    def open(cls, path: str, collection: str, dims: int | None, geometry: str) -> Self:
        """Open a database file, or ``:memory:``, and a collection in it, or create them."""
        location = path if path == MEMORY else str(Path(path).expanduser())
        engine = require_extra("duckdb", extra="duckdb")
        with _translate_errors(location):
            connection = engine.connect(location)
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {REGISTRY} (name VARCHAR PRIMARY KEY, dims INTEGER, geometry VARCHAR)"
            )
            rows = connection.execute(f"SELECT name, dims, geometry FROM {REGISTRY}").fetchall()
            schemas = {name: CollectionSchema(stored_dims, stored) for name, stored_dims, stored in rows}
            try:
                shape, is_new = resolve_schema(collection, schemas, dims, geometry, location)
            except Exception:
                connection.close()
                raise
            made = cls(collection, shape, connection, location)
            if is_new:
                made._create(shape)
            return made

    def _create(self, shape: CollectionSchema) -> None:
        columns = f"id VARCHAR PRIMARY KEY, vector FLOAT[{shape.dims}], text VARCHAR"
        self._connection.execute(f"CREATE TABLE {self._table} ({columns})")
        values = (self.collection, shape.dims, shape.geometry)
        self._connection.execute(f"INSERT INTO {REGISTRY} VALUES (?, ?, ?)", values)

    def _count(self) -> int:
        with _translate_errors(self._place):
            return int(self._connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def close(self) -> None:
        if not self._closed:
            self._connection.close()
        super().close()

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        rows = unit_rows(vectors) if self.geometry == "cosine" else vectors
        statement = (
            f"INSERT OR REPLACE INTO {self._table} "
            f"SELECT unnest(?::VARCHAR[]), unnest(?::FLOAT[{self.dims}][]), unnest(?::VARCHAR[])"
        )
        with _translate_errors(self._place):
            self._connection.begin()
            try:
                for start in range(0, len(ids), BATCH):
                    part = slice(start, start + BATCH)
                    self._connection.execute(statement, (ids[part], rows[part].tolist(), texts[part]))
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    def _search(self, queries: Vectors, k: int) -> SearchResult:
        rows = unit_rows(queries) if self.geometry == "cosine" else queries
        order = _ORDER["euclidean" if self.geometry == "euclidean" else ""].format(dims=self.dims)
        statement = f"SELECT id, vector FROM {self._table} ORDER BY {order} LIMIT {int(k)}"
        lists = []
        with _translate_errors(self._place):
            for query in rows:
                found = self._connection.execute(statement, (query.tolist(),)).fetchall()
                near = np.array([vector for _, vector in found], dtype=np.float32).reshape(len(found), self.dims)
                scores = similarities(query, near, self.geometry)
                pairs = [(name, score) for (name, _), score in zip(found, scores.tolist(), strict=True)]
                lists.append(sorted(pairs, key=lambda pair: -pair[1]))
        return pad_hits(lists, k)

    def _delete(self, ids: list[str]) -> int:
        with _translate_errors(self._place):
            before = self._count()
            self._connection.execute(f"DELETE FROM {self._table} WHERE id IN (SELECT unnest(?::VARCHAR[]))", (ids,))
            return before - self._count()

    def _texts(self, ids: list[str]) -> list[str | None]:
        stored = dict(self._rows_of("text", ids))
        return [stored.get(name) for name in ids]

    def _vectors(self, ids: list[str]) -> dict[str, Any]:
        return dict(self._rows_of("vector", ids))

    def _rows_of(self, column: str, ids: list[str]) -> list[tuple[str, Any]]:
        statement = f"SELECT id, {column} FROM {self._table} WHERE id IN (SELECT unnest(?::VARCHAR[]))"
        with _translate_errors(self._place):
            rows: list[tuple[str, Any]] = self._connection.execute(statement, (ids,)).fetchall()
        return rows


def _quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@contextmanager
def _translate_errors(location: str) -> Iterator[None]:
    """Raise errors of DuckDB as ``StoreError``."""
    engine = require_extra("duckdb", extra="duckdb")
    try:
        yield
    except engine.Error as error:
        message = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StoreError(
            f"the DuckDB database at {location} cannot be used: {message}",
            hint="check the path, and that no other process has it open for writing",
        ) from error
