"""Stores filled some thousands at a time, also by ``eq phenotypes index build``: what arrived stays."""

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
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.models.stores.base.BATCH_ROWS", 5)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors each call of a store has sent."""
    add, sizes = VectorStore.add, []

    def counted(self: VectorStore, ids: Sequence[str], vectors: Any, texts: Any = None) -> None:
        sizes.append(len(ids))
        add(self, ids, vectors, texts)

    monkeypatch.setattr(VectorStore, "add", counted)
    return sizes


def eq(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="eq")


def test_documents_arrive_in_blocks_and_only_the_rest_is_sent_again(make: Any, sent: list[int]) -> None:
    made = make(3, geometry="dot")
    indexed = StoreIndex(made, len(TEXTS))
    made.add(indexed.ids[:12], VECTORS[:12], TEXTS[:12])
    told: list[int] = []
    indexed.fill(VECTORS, TEXTS, told.append)
    assert sent == [12, 5, 5, 5]
    assert told == [10, 15, 20]
    best = np.argsort(-(VECTORS[:4] @ VECTORS.T), axis=1, kind="stable")[:, :1]
    if made.exact:
        assert indexed.search(VECTORS[:4], 1).indices.tolist() == best.tolist()
    indexed.fill(VECTORS, TEXTS)
    assert len(sent) == 4


def test_a_collection_of_something_else_is_noticed() -> None:
    with open_store("memory", dims=3, geometry="dot") as made:
        made.add([f"other {number}" for number in range(30)], np.ones((30, 3)))
        with pytest.raises(ParameterError, match=r"30 vectors.*25"):
            StoreIndex(made, len(TEXTS)).fill(VECTORS, TEXTS)
    with open_store("memory", dims=3, geometry="dot") as made:
        made.add(["other"], np.ones((1, 3)))
        with pytest.raises(StoreError, match=r"26 vectors.*25"):
            StoreIndex(made, len(TEXTS)).fill(VECTORS, TEXTS)


def test_a_store_that_lost_documents_gets_all_of_them_once(make: Any, sent: list[int]) -> None:
    made = make(3, geometry="dot")
    indexed = StoreIndex(made, len(TEXTS))
    indexed.fill(VECTORS, TEXTS)
    assert indexed.sent == 25
    made.delete([indexed.ids[2], indexed.ids[9]])
    sent.clear()
    indexed.fill(VECTORS, TEXTS)
    assert sent == [5] + [5] * 5
    assert (made.count(), indexed.sent) == (25, 25)
    indexed.fill(VECTORS, TEXTS)
    assert indexed.sent == 0


def test_a_store_is_named_as_people_name_it(make_persistent: Any) -> None:
    made = make_persistent(3, geometry="dot")
    made.add([f"other {number}" for number in range(30)], np.ones((30, 3)))
    with pytest.raises(ParameterError, match="holds 30 vectors") as error:
        StoreIndex(made, len(TEXTS)).fill(VECTORS, TEXTS)
    assert error.value.message.startswith(f"the collection {made.collection!r} of {made.kind}:")
    assert "<" not in error.value.message
    assert "delete that collection" in str(error.value.hint)


def test_building_tells_what_the_store_holds_and_how_to_ask_it(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo", TERMS.replace("Coughing", "A cough that is told"))
    shown = f"pgvector:{without_password(postgres)[0]}"
    words = (*BUILD, *MODEL, "--store", f"pgvector:{with_password(postgres)}")
    first = eq(*words)
    assert first.exit_code == 0, first.output
    assert f"{shown}: 17 vectors, 17 sent now" in first.stdout
    told = first.stdout.partition("Next: ")[2].strip()
    assert told.startswith("eq phenotypes query seizures --model hash --ontology")
    # What else the address says is needed to reach the server again.
    assert shlex.split(told)[-1].partition("?") == (shown, "?", postgres.partition("?")[2])
    assert "without its password" in first.stderr
    again = eq(*words, "-v")
    assert f"{shown}: 17 vectors, all of them were already stored" in again.stdout
    facts = json.loads(eq(*words, "--json").stdout)["indexes"][0]["store"]
    assert (facts["store"], facts["vectors"], facts["sent"]) == (shown, 17, 0)
    assert facts["collection"] in again.stdout
    assert "s3cret" not in first.output + again.output + str(facts)


def test_building_and_asking_mend_a_store_that_lost_a_vector(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo", TERMS.replace("Coughing", "A cough that is lost"))
    words = (*BUILD, *MODEL, "--store", f"pgvector:{postgres}", "--json")
    facts = json.loads(eq(*words).stdout)["indexes"][0]["store"]
    query = ("phenotypes", "query", "seizure", *BUILD[3:], *MODEL, "--store", f"pgvector:{postgres}")
    for command in (words, query):
        with open_store(f"pgvector:{postgres}", collection=facts["collection"]) as held:
            assert held.delete(["03"]) == 1
        ended = eq(*command)
        assert ended.exit_code == 0, ended.output
        with open_store(f"pgvector:{postgres}", collection=facts["collection"]) as held:
            assert held.count() == 17


def with_password(url: str) -> str:
    """The same address with a password, which a server that trusts everybody does not look at."""
    scheme, _, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0] if at else getpass.getuser()}:s3cret@{host}"


def test_a_server_that_goes_away_keeps_the_blocks_that_arrived(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"dims": 3, "geometry": geometry("dot"), "model": "goes away"}
    end_the_server_at(3, postgres, monkeypatch)
    indexed = StoreIndex.open(f"pgvector:{postgres}", TEXTS, **options)
    with pytest.raises(PartialError):
        indexed.fill(VECTORS, TEXTS)
    with StoreIndex.open(f"pgvector:{postgres}", TEXTS, **options).store as back:
        assert back.count() == 10


def test_an_index_is_kept_when_its_store_goes_away_and_the_same_command_goes_on(
    postgres: str, sent: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo")
    words = (*BUILD, *MODEL, "--store", f"pgvector:{postgres}")
    with monkeypatch.context() as patch:
        end_the_server_at(3, postgres, patch)
        ended = eq(*words)
    assert ended.exit_code == 3, ended.output
    assert "error[E700]" in ended.stderr
    assert "stored vectors are kept" in ended.stderr
    assert "Traceback" not in ended.output
    again = eq(*words, "--json")
    assert again.exit_code == 0, again.output
    report = json.loads(again.stdout)["indexes"][0]["report"]
    assert (report["reused"], report["embedded"]) == (17, 0)
    assert sent[-2:] == [5, 2]


def test_a_store_that_is_not_there_costs_no_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    pytest.importorskip("pgvector")
    monkeypatch.chdir(tmp_path)
    obo(tmp_path / "toy.obo")
    ended = eq(*BUILD, *MODEL, "--store", "pgvector:postgresql://me:secret@127.0.0.1:1/db")
    assert ended.exit_code == 2
    assert "cannot be reached" in ended.stderr
    assert "secret" not in ended.output
    assert not (tmp_path / "indexes").exists()


def end_the_server_at(nth: int, postgres: str, patch: pytest.MonkeyPatch) -> None:
    """Let the server end its connections right before the nth block."""
    import psycopg

    add, calls = VectorStore.add, []

    def ending(self: VectorStore, ids: Sequence[str], vectors: Any, texts: Any = None) -> None:
        calls.append(ids)
        if len(calls) == nth:
            with psycopg.connect(postgres, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
        add(self, ids, vectors, texts)

    patch.setattr(VectorStore, "add", ending)
