"""Milvus: a server, or Milvus Lite in a local file; vectors are compared with all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise.models.stores import base
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors

PREFIX = "equipoise_"
MOST_HITS = 16_384
"""Hits that Milvus returns at most."""
MOST_BYTES = 65_535
"""Bytes of an id or a text at most."""


class MilvusStore(base.RowStore):
    """A collection with a FLAT index, so that search is exact; every read sees every earlier write."""

    kind = "milvus"
    batch = 500

    def __init__(self, collection: str, shape: base.CollectionSchema, client: Any, location: str) -> None:
        super().__init__(collection, shape.dims, shape.geometry, client, location)
        self._name = _stored_name(collection, shape.geometry)

    @classmethod
    def open(cls, address: str, collection: str, dims: int | None, geometry: str) -> Self:
        """Open a file (``vectors.db``) or a server (``http://localhost:19530``), and a collection in it."""
        location = address if "://" in address else str(Path(address).expanduser())
        engine = require_extra("pymilvus", extra="milvus")
        with cls._translate_errors(location):
            client = engine.MilvusClient(location)
            schemas = _schemas(client)
            shape, is_new = base.resolve_schema(collection, schemas, dims, geometry, base.without_secrets(location))
            store = cls(collection, shape, client, location)
            if is_new:
                store._create(engine, shape)
            client.load_collection(store._name)
            return store

    def _create(self, engine: Any, shape: base.CollectionSchema) -> None:
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        kinds = engine.DataType
        schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=MOST_BYTES)
        schema.add_field("vector", kinds.FLOAT_VECTOR, dim=shape.dims)
        schema.add_field("text", kinds.VARCHAR, max_length=MOST_BYTES, nullable=True)
        index = self._client.prepare_index_params()
        metric = "L2" if shape.geometry == "euclidean" else "IP"
        index.add_index("vector", index_type="FLAT", metric_type=metric)
        self._client.create_collection(self._name, schema=schema, index_params=index, consistency_level="Strong")

    def _count(self) -> int:
        (row,) = self._client.query(self._name, filter="", output_fields=["count(*)"], consistency_level="Strong")
        return int(row["count(*)"])

    def _add(self, ids: list[str], vectors: Vectors, texts: list[str | None]) -> None:
        columns = zip(ids, vectors.tolist(), texts, strict=True)
        data = [{"id": name, "vector": vector, "text": text} for name, vector, text in columns]
        self._client.upsert(self._name, data)

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[str], Any]:
        (hits,) = self._client.search(
            self._name,
            data=[query.tolist()],
            limit=min(k, MOST_HITS),
            output_fields=["vector"],
            consistency_level="Strong",
        )
        return [hit["id"] for hit in hits], [hit["entity"]["vector"] for hit in hits]

    def _delete(self, ids: list[str]) -> int:
        before = self._count()
        self._client.delete(self._name, filter=_condition(ids))
        return before - self._count()

    def _column(self, name: str, ids: list[str]) -> dict[str, Any]:
        rows = self._client.query(
            self._name, filter=_condition(ids), output_fields=["id", name], consistency_level="Strong"
        )
        return {row["id"]: row[name] for row in rows}

    @classmethod
    def _translate_errors(cls, location: str) -> AbstractContextManager[None]:
        errors = (require_extra("pymilvus", extra="milvus").MilvusException, OSError, ValueError)
        hint = "check the address; for a local file, pip install milvus-lite"
        return base.translate_errors(f"the Milvus database at {base.without_secrets(location)}", errors, hint)


def _condition(ids: list[str]) -> str:
    r"""The filter for these ids. ``get`` and ``delete`` of pymilvus do not escape quotes in ids.

    >>> print(_condition(["a", 'say "hi"']))
    id in ["a", "say \"hi\""]
    """
    return f"id in {json.dumps(ids, ensure_ascii=False)}"


def _stored_name(collection: str, geometry: str) -> str:
    """The name of a collection in Milvus, which allows letters, digits and underscores.

    Milvus Lite does not store descriptions, so the name holds the geometry.

    >>> _stored_name("test-1", "dot")
    'equipoise_dot_test_2d_1'
    """
    coded = (sign if sign.isascii() and sign.isalnum() else f"_{ord(sign):x}_" for sign in collection)
    return f"{PREFIX}{geometry}_{''.join(coded)}"


_NAME = re.compile(rf"{PREFIX}(?P<geometry>[a-z]+)_(?P<coded>.*)")
_CODE = re.compile(r"_([0-9a-f]+)_")


def _schemas(client: Any) -> dict[str, base.CollectionSchema]:
    """The schemas of the collections of this package, by name."""
    schemas = {}
    for stored_name in client.list_collections():
        if match := _NAME.fullmatch(stored_name):
            name = _CODE.sub(lambda code: chr(int(code[1], 16)), match["coded"])
            fields = client.describe_collection(stored_name)["fields"]
            (dims,) = [field["params"]["dim"] for field in fields if field["name"] == "vector"]
            schemas[name] = base.CollectionSchema(int(dims), match["geometry"])
    return schemas
