"""LanceDB: vectors in a folder of Lance files, compared with all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise.models.stores.base import CollectionSchema, RowStore, resolve_schema, translate_errors
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors


class LanceDBStore(RowStore):
    """A table of a LanceDB database; without an index its search compares with every vector."""

    kind = "lancedb"
    name_rule = re.compile(r"[A-Za-z0-9_.-]{1,48}")
    name_words = "1 to 48 letters, digits, dots, hyphens or underscores"
    batch = 1000

    def __init__(self, collection: str, shape: CollectionSchema, table: Any, location: str) -> None:
        super().__init__(collection, shape.dims, shape.geometry, location=location)
        self._table = table

    @classmethod
    def open(cls, path: str, collection: str, dims: int | None, geometry: str) -> Self:
        """Open a folder, and a table in it, or create them."""
        location = str(Path(path).expanduser())
        engine = require_extra("lancedb", extra="lancedb")
        with cls._translate_errors(location):
            database = engine.connect(location)
            opened = {name: database.open_table(name) for name in database.list_tables(limit=10_000).tables}
            schemas = {name: _schema(table.schema.metadata) for name, table in opened.items()}
            shape, is_new = resolve_schema(collection, schemas, dims, geometry, location)
            table = database.create_table(collection, schema=_arrow_schema(shape)) if is_new else opened[collection]
            return cls(collection, shape, table, location)

    def _count(self) -> int:
        return int(self._table.count_rows())

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        arrow = require_extra("pyarrow", extra="lancedb")
        column = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), self.dims)
        schema = _arrow_schema(CollectionSchema(self.dims, self.geometry))
        data = arrow.table(
            [arrow.array(ids, arrow.string()), column, arrow.array(texts, arrow.string())], schema=schema
        )
        self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(data)

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[str], Any]:
        metric = "l2" if self.geometry == "euclidean" else "dot"
        table = self._table.search(query).distance_type(metric).limit(k).to_arrow()
        return table["id"].to_pylist(), table["vector"].to_pylist()

    def _delete(self, ids: list[str]) -> int:
        before = self._count()
        self._table.delete(_condition(ids))
        return before - self._count()

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        rows = self._table.search().where(_condition(ids)).select(["id", name]).limit(self.batch).to_arrow()
        return dict(zip(rows["id"].to_pylist(), rows[name].to_pylist(), strict=True))

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        hint = "check that the folder can be written and was not removed or changed by another version"
        return translate_errors(f"the LanceDB database at {location}", (OSError, ValueError, RuntimeError), hint)


def _condition(ids: list[str]) -> str:
    """The SQL condition that selects these ids.

    >>> _condition(["a", "it's"])
    "id IN ('a', 'it''s')"
    """
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    return f"id IN ({quoted})"


def _arrow_schema(shape: CollectionSchema) -> Any:
    arrow = require_extra("pyarrow", extra="lancedb")
    fields = [("id", arrow.string()), ("vector", arrow.list_(arrow.float32(), shape.dims)), ("text", arrow.string())]
    return arrow.schema(fields, metadata={"dims": str(shape.dims), "geometry": shape.geometry})


def _schema(metadata: dict[bytes, bytes] | None) -> CollectionSchema:
    """The dimensions and the geometry in the metadata of a table."""
    return CollectionSchema.of_metadata({key.decode(): value.decode() for key, value in (metadata or {}).items()})
