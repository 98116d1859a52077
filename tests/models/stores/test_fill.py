"""Stores are filled in batches, also by ``eq phenotypes index build``, and resume after a failure."""

from __future__ import annotations

import getpass
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from equipoise.cli.main import cli
from equipoise.errors import ParameterError, PartialError, StoreError
from equipoise.geometry.spaces import geometry
from equipoise.models.dense import StoreIndex
from equipoise.models.stores import open_store
from equipoise.models.stores.base import VectorStore
from equipoise.models.stores.pgvector import without_password
from toy_ontology import TERMS, obo

TEXTS = [f"text {number}" for number in range(25)]
VECTORS = np.random.default_rng(0).normal(size=(25, 3)).astype(np.float32)
BUILD = ("phenotypes", "index", "build", "--ontology", "toy.obo", "--index-dir", "indexes")
MODEL = ("--model-name", "hash", "--multi-vector")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.models.stores.base.BATCH_ROWS", 5)


@pytest.fixture
def sent_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of vectors of every ``add`` call."""
    add, batch_sizes = VectorStore.add, []

    def counting_add(self: VectorStore, ids: Sequence[str], vectors: Any, texts: Any = None) -> None:
        batch_sizes.append(len(ids))
        add(self, ids, vectors, texts)

    monkeypatch.setattr(VectorStore, "add", counting_add)
    return batch_sizes


def eq(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), prog_name="eq")


def test_documents_are_sent_in_batches_and_only_missing_ones_again(make: Any, sent_sizes: list[int]) -> None:
    store = make(3, geometry="dot")
    indexed = StoreIndex(store, len(TEXTS))
    store.add(indexed.ids[:12], VECTORS[:12], TEXTS[:12])
    progress: list[int] = []
    indexed.fill(VECTORS, TEXTS, progress.append)
    assert sent_sizes == [12, 5, 5, 5]
    assert progress == [10, 15, 20]
    expected = np.argsort(-(VECTORS[:4] @ VECTORS.T), axis=1, kind="stable")[:, :1]
    if store.exact:
        assert indexed.search(VECTORS[:4], 1).indices.tolist() == expected.tolist()
    indexed.fill(VECTORS, TEXTS)
    assert len(sent_sizes) == 4


def test_collections_of_other_vectors_raise_errors() -> None:
    with open_store("memory", dims=3, geometry="dot") as store:
        store.add([f"other {number}" for number in range(30)], np.ones((30, 3)))
        with pytest.raises(ParameterError, match=r"30 vectors.*25"):
            StoreIndex(store, len(TEXTS)).fill(VECTORS, TEXTS)
    with open_store("memory", dims=3, geometry="dot") as store:
        store.add(["other"], np.ones((1, 3)))
        with pytest.raises(StoreError, match=r"26 vectors.*25"):
            StoreIndex(store, len(TEXTS)).fill(VECTORS, TEXTS)


def test_stores_without_some_documents_are_filled_again(make: Any, sent_sizes: list[int]) -> None:
    store = make(3, geometry="dot")
    indexed = StoreIndex(store, len(TEXTS))
    indexed.fill(VECTORS, TEXTS)
    assert indexed.sent == 25
    store.delete([indexed.ids[2], indexed.ids[9]])
    sent_sizes.clear()
    indexed.fill(VECTORS, TEXTS)
    assert sent_sizes == [5] + [5] * 5
    assert (store.count(), indexed.sent) == (25, 25)
    indexed.fill(VECTORS, TEXTS)
    assert indexed.sent == 0


def test_errors_name_the_collection_and_the_kind_of_store(make_persistent: Any) -> None:
    store = make_persistent(3, geometry="dot")
    store.add([f"other {number}" for number in range(30)], np.ones((30, 3)))
    with pytest.raises(ParameterError, match="30 vectors") as error:
        StoreIndex(store, len(TEXTS)).fill(VECTORS, TEXTS)
    assert error.value.message.startswith(f"the collection {store.collection!r} of {store.kind}:")
    assert "<" not in error.value.message
    assert "delete that collection" in str(error.value.hint)


def test_build_reports_the_store_and_the_query_command(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo", TERMS.replace("Coughing", "A cough that is reported"))
    store_label = f"pgvector:{without_password(postgres)[0]}"
    arguments = (*BUILD, *MODEL, "--store", f"pgvector:{with_password(postgres)}")
    first = eq(*arguments)
    assert first.exit_code == 0, first.output
    assert f"{store_label}: 17 vectors, 17 sent now" in first.stdout
    query_command = first.stdout.partition("Next: ")[2].strip()
    assert query_command.startswith("eq phenotypes query seizures --model hash --ontology")
    # The other parameters of the address are needed to connect again.
    assert shlex.split(query_command)[-1].partition("?") == (store_label, "?", postgres.partition("?")[2])
    assert "without its password" in first.stderr
    second = eq(*arguments, "-v")
    assert f"{store_label}: 17 vectors, all of them were already stored" in second.stdout
    store_report = json.loads(eq(*arguments, "--json").stdout)["indexes"][0]["store"]
    assert (store_report["store"], store_report["vectors"], store_report["sent"]) == (store_label, 17, 0)
    assert store_report["collection"] in second.stdout
    assert "s3cret" not in first.output + second.output + str(store_report)


def test_build_and_query_restore_a_missing_vector(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo", TERMS.replace("Coughing", "A cough that is lost"))
    arguments = (*BUILD, *MODEL, "--store", f"pgvector:{postgres}", "--json")
    store_report = json.loads(eq(*arguments).stdout)["indexes"][0]["store"]
    query = ("phenotypes", "query", "seizure", *BUILD[3:], *MODEL, "--store", f"pgvector:{postgres}")
    for command in (arguments, query):
        with open_store(f"pgvector:{postgres}", collection=store_report["collection"]) as store:
            assert store.delete(["03"]) == 1
        result = eq(*command)
        assert result.exit_code == 0, result.output
        with open_store(f"pgvector:{postgres}", collection=store_report["collection"]) as store:
            assert store.count() == 17


def with_password(url: str) -> str:
    """The address with a password, which a server with trust authentication ignores."""
    scheme, _, rest = url.partition("://")
    user, separator, host = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0] if separator else getpass.getuser()}:s3cret@{host}"


def test_lost_connections_keep_the_stored_batches(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"dims": 3, "geometry": geometry("dot"), "model": "lost connection"}
    end_connections_before_call(3, postgres, monkeypatch)
    indexed = StoreIndex.open(f"pgvector:{postgres}", TEXTS, **options)
    with pytest.raises(PartialError):
        indexed.fill(VECTORS, TEXTS)
    with StoreIndex.open(f"pgvector:{postgres}", TEXTS, **options).store as reopened:
        assert reopened.count() == 10


def test_build_resumes_after_a_lost_connection(
    postgres: str, sent_sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo")
    arguments = (*BUILD, *MODEL, "--store", f"pgvector:{postgres}")
    with monkeypatch.context() as patch:
        end_connections_before_call(3, postgres, patch)
        result = eq(*arguments)
    assert result.exit_code == 3, result.output
    assert "error[E700]" in result.stderr
    assert "stored vectors are kept" in result.stderr
    assert "Traceback" not in result.output
    second = eq(*arguments, "--json")
    assert second.exit_code == 0, second.output
    report = json.loads(second.stdout)["indexes"][0]["report"]
    assert (report["reused"], report["embedded"]) == (17, 0)
    assert sent_sizes[-2:] == [5, 2]


def test_unreachable_stores_fail_before_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    pytest.importorskip("pgvector")
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo")
    result = eq(*BUILD, *MODEL, "--store", "pgvector:postgresql://me:secret@127.0.0.1:1/db")
    assert result.exit_code == 2
    assert "cannot be reached" in result.stderr
    assert "secret" not in result.output
    assert not (tmp_path / "indexes").exists()


def end_connections_before_call(nth: int, postgres: str, patch: pytest.MonkeyPatch) -> None:
    """End all connections of the server right before the nth batch."""
    import psycopg

    add, calls = VectorStore.add, []

    def ending_add(self: VectorStore, ids: Sequence[str], vectors: Any, texts: Any = None) -> None:
        calls.append(ids)
        if len(calls) == nth:
            with psycopg.connect(postgres, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
        add(self, ids, vectors, texts)

    patch.setattr(VectorStore, "add", ending_add)
