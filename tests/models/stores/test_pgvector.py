"""What only PostgreSQL can get wrong: names as identifiers, passwords in errors, a server that goes away."""

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


def opened(postgres: str, collection: str, **settings: Any) -> VectorStore:
    return open_store(f"pgvector:{postgres}", collection=collection, **{"dims": 2, **settings})


@pytest.mark.parametrize("name", ['a"; DROP TABLE precious; --', "it's", "{table}", "%s", "Größe", "漢" * 40, "x" * 48])
def test_any_name_is_a_name_and_nothing_more(postgres: str, admin: Any, name: str) -> None:
    admin.execute("CREATE TABLE IF NOT EXISTS precious (id integer)")
    with opened(postgres, name, index="hnsw") as made:
        made.add(["a", "b"], [[1, 0], [0, 1]])
        assert made.search([[1, 0]], 1).ids.tolist() == [["a"]]
        assert made.delete(["a"]) == 1
    admin.execute("SELECT count(*) FROM precious")
    held = admin.execute("SELECT count(*) FROM equipoise_collections WHERE name = %s", (name,)).fetchone()
    assert held == (1,)


def test_names_that_differ_in_the_end_only_are_two_collections(postgres: str) -> None:
    with opened(postgres, "y" * 47 + "1") as first, opened(postgres, "y" * 47 + "2") as second:
        first.add(["a"], [[1, 0]])
        assert (first.count(), second.count()) == (1, 0)


def test_an_index_is_made_only_when_asked_for(postgres: str, admin: Any) -> None:
    for index, expected in ((None, 0), ("hnsw", 1), ("ivfflat", 1)):
        name = f"with {index}"
        with opened(postgres, name, index=index) as made:
            made.add(["a", "b"], [[1, 0], [0, 1]])
            made.search([[1, 0]], 1)
            assert made.exact == (index is None)
        found = admin.execute(
            "SELECT count(*) FROM pg_indexes WHERE tablename LIKE %s AND indexname LIKE %s",
            (f"equipoise%with_{str(index).lower()}", "%_near"),
        )
        assert found.fetchone() == (expected,)


def test_the_index_of_a_collection_stays_what_it_was(postgres: str) -> None:
    opened(postgres, "indexed", index="hnsw").close()
    with opened(postgres, "indexed") as again:
        assert not again.exact
    with pytest.raises(ParameterError):
        opened(postgres, "indexed", index="ivfflat")


@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
def test_an_index_returns_k_of_many_rows_and_its_recall_is_measured(postgres: str, index: str) -> None:
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(3000, 8)).astype(np.float32), rng.normal(size=(20, 8)).astype(np.float32)
    with opened(postgres, f"recall {index}", dims=8, index=index) as made:
        made.add([str(number) for number in range(len(rows))], rows)
        hits = made.search(queries, 150)
        assert np.isfinite(hits.scores).all()
        report = index_recall(made, queries, nearest_neighbors(queries, rows, 10), 10)
    assert 0.5 < report.recall <= 1.0


def test_too_many_dimensions_are_refused(postgres: str) -> None:
    with pytest.raises(ParameterError, match=r"16,000 dimensions.*16,001"):
        opened(postgres, "wide", dims=16_001)
    with pytest.raises(ParameterError, match=r"2,000"):
        opened(postgres, "wide", dims=3_000, index="hnsw")
    with opened(postgres, "wide", dims=3_000) as made:
        made.add(["a"], np.ones((1, 3_000)))
        assert made.search(np.ones((1, 3_000)), 1).scores[0, 0] == pytest.approx(1.0, rel=1e-5)


def test_a_server_that_goes_away_is_named_and_the_call_left_no_trace(postgres: str, admin: Any) -> None:
    made = opened(postgres, "going")
    made.add(["a"], [[1, 0]])
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with pytest.raises(StoreError) as error:
        made.add(["b"], [[0, 1]])
    assert error.value.hint.startswith("nothing of this call was stored")
    with opened(postgres, "going") as again:
        assert again.count() == 1


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    for address in ("me:secret%21word@127.0.0.1:1/db", "me:secret!word@:bad:/db?connect_timeout=x"):
        with pytest.raises(StoreError) as error:
            open_store(f"pgvector:postgresql://{address}", dims=2)
        shown = error.value.render() + repr(error.value.__cause__)
        assert "secret" not in shown
        assert "postgresql://me@" in shown


def test_a_server_that_is_not_there_is_named_by_its_refusal() -> None:
    with pytest.raises(StoreError):
        open_store("pgvector:postgresql://me@127.0.0.1:1/db", dims=2)


def test_a_table_that_was_removed_is_a_sentence(postgres: str, admin: Any) -> None:
    made = opened(postgres, "removed")
    (table,) = admin.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE '%_removed'").fetchone()
    admin.execute(psycopg.sql.SQL("DROP TABLE {}").format(psycopg.sql.Identifier(table)))
    with pytest.raises(StoreError, match="PostgreSQL"):
        made.count()
    made.close()


@pytest.mark.parametrize("password", ["se/cret", "se@cret", "se?cret@x", "se#cret"])
def test_a_password_with_a_sign_that_ends_it_is_shown_nowhere(password: str) -> None:
    with pytest.raises(ParameterError) as error:
        open_store(f"pgvector:postgresql://me:{password}@127.0.0.1:1/db", dims=2)
    assert "cret" not in error.value.render()
    assert "%40 for @" in error.value.render()
