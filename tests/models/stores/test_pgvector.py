"""PostgreSQL: quoting of names, passwords in errors, indexes and lost connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from equipoise.errors import ParameterError, StoreError
from equipoise.geometry.search import nearest_neighbors
from equipoise.models.stores import open_store
from equipoise.models.stores.base import VectorStore
from equipoise.models.stores.recall import index_recall

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("pgvector")


@pytest.fixture
def admin(postgres: str) -> Iterator[Any]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def open_collection(postgres: str, collection: str, **settings: Any) -> VectorStore:
    return open_store(f"pgvector:{postgres}", collection=collection, **{"dims": 2, **settings})


@pytest.mark.parametrize("name", ['a"; DROP TABLE precious; --', "it's", "{table}", "%s", "Größe", "漢" * 40, "x" * 48])
def test_names_are_quoted(postgres: str, admin: Any, name: str) -> None:
    admin.execute("CREATE TABLE IF NOT EXISTS precious (id integer)")
    with open_collection(postgres, name, index="hnsw") as store:
        store.add(["a", "b"], [[1, 0], [0, 1]])
        assert store.search([[1, 0]], 1).ids.tolist() == [["a"]]
        assert store.delete(["a"]) == 1
    admin.execute("SELECT count(*) FROM precious")
    count = admin.execute("SELECT count(*) FROM equipoise_collections WHERE name = %s", (name,)).fetchone()
    assert count == (1,)


def test_long_names_that_differ_at_the_end_are_two_collections(postgres: str) -> None:
    with open_collection(postgres, "y" * 47 + "1") as first, open_collection(postgres, "y" * 47 + "2") as second:
        first.add(["a"], [[1, 0]])
        assert (first.count(), second.count()) == (1, 0)


def test_indexes_are_created_only_on_request(postgres: str, admin: Any) -> None:
    for index, expected in ((None, 0), ("hnsw", 1), ("ivfflat", 1)):
        name = f"with {index}"
        with open_collection(postgres, name, index=index) as store:
            store.add(["a", "b"], [[1, 0], [0, 1]])
            store.search([[1, 0]], 1)
            assert store.exact == (index is None)
        count = admin.execute(
            "SELECT count(*) FROM pg_indexes WHERE tablename LIKE %s AND indexname LIKE %s",
            (f"equipoise%with_{str(index).lower()}", "%_near"),
        )
        assert count.fetchone() == (expected,)


def test_the_index_of_a_collection_cannot_be_changed(postgres: str) -> None:
    open_collection(postgres, "indexed", index="hnsw").close()
    with open_collection(postgres, "indexed") as reopened:
        assert not reopened.exact
    with pytest.raises(ParameterError):
        open_collection(postgres, "indexed", index="ivfflat")


@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
def test_indexes_return_k_hits_and_have_a_recall(postgres: str, index: str) -> None:
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(3000, 8)).astype(np.float32), rng.normal(size=(20, 8)).astype(np.float32)
    with open_collection(postgres, f"recall {index}", dims=8, index=index) as store:
        store.add([str(number) for number in range(len(rows))], rows)
        hits = store.search(queries, 150)
        assert np.isfinite(hits.scores).all()
        report = index_recall(store, queries, nearest_neighbors(queries, rows, 10), 10)
    assert 0.5 < report.recall <= 1.0


def test_too_many_dimensions_raise_parameter_error(postgres: str) -> None:
    with pytest.raises(ParameterError, match=r"16,000 dimensions.*16,001"):
        open_collection(postgres, "wide", dims=16_001)
    with pytest.raises(ParameterError, match=r"2,000"):
        open_collection(postgres, "wide", dims=3_000, index="hnsw")
    with open_collection(postgres, "wide", dims=3_000) as store:
        store.add(["a"], np.ones((1, 3_000)))
        assert store.search(np.ones((1, 3_000)), 1).scores[0, 0] == pytest.approx(1.0, rel=1e-5)


def test_lost_connections_raise_store_error_and_store_nothing(postgres: str, admin: Any) -> None:
    store = open_collection(postgres, "lost connection")
    store.add(["a"], [[1, 0]])
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with pytest.raises(StoreError) as error:
        store.add(["b"], [[0, 1]])
    assert error.value.hint.startswith("nothing of this call was stored")
    with open_collection(postgres, "lost connection") as reopened:
        assert reopened.count() == 1


def test_errors_of_unreachable_servers_hide_the_password() -> None:
    for address in ("me:secret%21word@127.0.0.1:1/db", "me:secret!word@:bad:/db?connect_timeout=x"):
        with pytest.raises(StoreError) as error:
            open_store(f"pgvector:postgresql://{address}", dims=2)
        error_text = error.value.render() + repr(error.value.__cause__)
        assert "secret" not in error_text
        assert "postgresql://me@" in error_text


def test_unreachable_servers_raise_store_error() -> None:
    with pytest.raises(StoreError):
        open_store("pgvector:postgresql://me@127.0.0.1:1/db", dims=2)


def test_removed_tables_raise_store_error(postgres: str, admin: Any) -> None:
    store = open_collection(postgres, "removed")
    (table,) = admin.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE '%_removed'").fetchone()
    admin.execute(psycopg.sql.SQL("DROP TABLE {}").format(psycopg.sql.Identifier(table)))
    with pytest.raises(StoreError, match="PostgreSQL"):
        store.count()
    store.close()


@pytest.mark.parametrize("password", ["se/cret", "se@cret", "se?cret@x", "se#cret"])
def test_passwords_with_reserved_characters_are_hidden(password: str) -> None:
    with pytest.raises(ParameterError) as error:
        open_store(f"pgvector:postgresql://me:{password}@127.0.0.1:1/db", dims=2)
    assert "cret" not in error.value.render()
    assert "%40 for @" in error.value.render()
