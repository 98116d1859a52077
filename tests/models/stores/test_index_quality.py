"""Index quality of every installed store, including servers, and lost connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from equipoise.cli.main import cli
from equipoise.errors import ParameterError, PartialError, StoreError
from equipoise.models.stores import open_store
from equipoise.models.stores.base import Hits, VectorStore
from equipoise.runs.run_folder import load_run
from equipoise.tasks.index_quality import measure_index

RNG = np.random.default_rng(0)
ROWS, QUERIES = RNG.normal(size=(700, 6)).astype(np.float32), RNG.normal(size=(40, 6)).astype(np.float32)


def test_every_store_is_measured(make: Any) -> None:
    store = make(6)
    measurement = measure_index(store, [ROWS[:400], ROWS[400:]], QUERIES, 5)
    assert measurement.vectors == store.count() == 700
    assert measurement.recall.shape == measurement.seconds.shape == (40,)
    assert (measurement.recall == 1.0).all() if store.exact else measurement.recall.mean() > 0.8
    assert (measurement.seconds > 0.0).all()
    assert measurement.throughput > 0.0
    assert not measurement.stopped


def test_complete_stores_are_not_filled_again(make_persistent: Any) -> None:
    store = make_persistent(6)
    store.add([str(row) for row in range(700)], ROWS, texts=["original"] * 700)
    measure_index(store, ROWS, QUERIES, 5)
    assert store.texts(["0", "699"]) == ["original", "original"]


class EndableServer:
    """A store on a real server whose connections can be closed by the server."""

    def __init__(self, postgres: str, **settings: Any) -> None:
        psycopg = pytest.importorskip("psycopg")
        self.store: VectorStore = open_store(f"pgvector:{postgres}", dims=6, **settings)
        self._connect = lambda: psycopg.connect(postgres, autocommit=True)

    def __enter__(self) -> VectorStore:
        return self.store

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def end(self) -> None:
        with self._connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )


def test_lost_connections_between_queries_keep_the_finished_ones(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endable = EndableServer(postgres, collection="lost between queries")
    ask, query_counts = endable.store.search_once, []

    def counting_call(queries: Any, k: int) -> Hits:
        query_counts.append(len(queries))
        if len(query_counts) == 12:
            endable.end()
        return ask(queries, k)

    monkeypatch.setattr(endable.store, "search_once", counting_call)
    with endable as store:
        measurement = measure_index(store, ROWS, QUERIES, 5)
    assert "is no longer reachable" in measurement.stopped
    # One request is sent before the measurement, for indexes that are built at the first query.
    assert measurement.recall.tolist() == [1.0] * 10
    result = measurement.result("lost")
    assert np.isnan(result["Throughput"].value)
    assert "is no longer reachable" in result["Throughput"].interval.reason


def test_filling_resumes_after_a_lost_connection(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.models.stores.base.BATCH_ROWS", 100)
    endable = EndableServer(postgres, collection="lost while filling")
    add, first_ids = endable.store.add, []

    def counting_call(ids: Any, vectors: Any, texts: Any) -> None:
        first_ids.append(ids[0])
        if len(first_ids) == 4:
            endable.end()
        add(ids, vectors, texts)

    monkeypatch.setattr(endable.store, "add", counting_call)
    with endable as store, pytest.raises(PartialError) as error:
        measure_index(store, ROWS, QUERIES, 5)
    assert error.value.exit_code == 3
    with EndableServer(postgres, collection="lost while filling") as reopened:
        assert reopened.count() == 300
        events: list[tuple[str, int, int]] = []
        measurement = measure_index(reopened, ROWS, QUERIES, 5, watch=lambda *event: events.append(event))
        assert measurement.recall.tolist() == [1.0] * 40
    assert [n_done for stage, n_done, _ in events if stage.startswith("filling")] == [300, 400, 500, 600]


def test_the_command_measures_a_server_and_stores_the_run(postgres: str, tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", ROWS)
    np.save(tmp_path / "q.npy", QUERIES)
    arguments = ["index-quality", "--store", f"pgvector:{postgres}", "--option", "index=hnsw", "--name", "hnsw"]
    arguments += ["--corpus", str(tmp_path / "c.npy"), "--queries", str(tmp_path / "q.npy"), "-o", str(tmp_path)]
    for _ in range(2):
        result = CliRunner().invoke(cli, arguments, prog_name="eq")
        assert result.exit_code == 0, result.output
    assert "exact nearest neighbours among 700 vectors" in result.output
    run = load_run(tmp_path / "hnsw")
    assert run.result["IndexRecall@10"].n == 40
    assert run.manifest.cost["build_seconds"] > 0.0
    assert str(tmp_path / "c.npy") in run.manifest.inputs


def test_the_command_stores_a_partial_run_after_a_lost_connection(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "c.npy", ROWS)
    np.save(tmp_path / "q.npy", QUERIES)
    endable = EndableServer(postgres, collection="only to end connections")
    ask, query_counts = VectorStore.search_once, []

    def counting_call(self: VectorStore, queries: Any, k: int) -> Hits:
        query_counts.append(len(queries))
        if len(query_counts) == 21:
            endable.end()
        return ask(self, queries, k)

    monkeypatch.setattr(VectorStore, "search_once", counting_call)
    arguments = ["index-quality", "--store", f"pgvector:{postgres}", "--name", "lost", "-o", str(tmp_path)]
    arguments += ["--corpus", str(tmp_path / "c.npy"), "--queries", str(tmp_path / "q.npy")]
    with endable:
        result = CliRunner().invoke(cli, arguments, prog_name="eq")
    assert result.exit_code == 3, result.output
    assert "is no longer reachable" in result.output
    assert "19 of 40 queries were answered" in result.output
    run = load_run(tmp_path / "lost")
    assert run.manifest.status == "partial"
    assert run.result["IndexRecall@10"].n == 19


def test_ask_equals_search_without_ties(make: Any) -> None:
    store = make(6, geometry="euclidean")
    store.add([str(row) for row in range(50)], ROWS[:50])
    ask_hits, search_hits = store.search_once(QUERIES[:3], 4), store.search(QUERIES[:3], 4)
    assert ask_hits.ids.tolist() == search_hits.ids.tolist()
    np.testing.assert_allclose(ask_hits.scores, search_hits.scores, rtol=1e-6)


def test_stores_with_more_vectors_than_the_corpus_raise() -> None:
    with open_store("memory", dims=6) as store:
        store.add(["a"] + [str(row) for row in range(700)], np.concatenate([ROWS[:1], ROWS]))
        with pytest.raises(Exception, match=r"701.*700"):
            measure_index(store, ROWS, QUERIES)


def test_collections_of_other_vectors_raise_store_error() -> None:
    with open_store("memory", dims=6) as store:
        store.add([f"other {row}" for row in range(5)], ROWS[:5])
        with pytest.raises(StoreError, match=r"705 vectors.*700"):
            measure_index(store, ROWS, QUERIES)


OTHER_ROWS = RNG.normal(size=(700, 6)).astype(np.float32)


@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_collections_of_equal_size_with_other_vectors_raise_parameter_error(
    make_persistent: Any, geometry: str
) -> None:
    store = make_persistent(6, geometry=geometry)
    measure_index(store, ROWS, QUERIES, 5)
    with pytest.raises(ParameterError, match=r"256.*256") as error:
        measure_index(store, OTHER_ROWS, QUERIES, 5)
    assert store.collection in error.value.message
    assert "--collection" in str(error.value.hint)
    np.testing.assert_allclose(measure_index(store, ROWS, QUERIES, 5).recall.mean(), 1.0, atol=0.2)


def test_partial_collections_of_other_vectors_raise_before_filling() -> None:
    with open_store("memory", dims=6) as store:
        store.add([str(row) for row in range(300)], OTHER_ROWS[:300])
        with pytest.raises(ParameterError):
            measure_index(store, ROWS, QUERIES, 5)
        assert store.count() == 300


def test_collections_with_other_ids_raise_parameter_error() -> None:
    with open_store("memory", dims=6) as store:
        store.add([f"other {row}" for row in range(700)], ROWS)
        with pytest.raises(ParameterError, match="id 0"):
            measure_index(store, ROWS, QUERIES, 5)


def test_missing_vectors_are_sent_again(make_persistent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.models.stores.base.BATCH_ROWS", 100)
    store = make_persistent(6)
    measure_index(store, ROWS, QUERIES, 5)
    store.delete(["5"])
    measurement = measure_index(store, ROWS, QUERIES, 5)
    assert measurement.vectors == store.count() == 700


@pytest.mark.parametrize(("second", "expected"), [("1", 1.0), ("2", 1.0), ("3", 0.5), ("99", 0.5), ("x", 0.5)])
def test_hits_are_scored_by_the_corpus_and_not_by_the_reported_score(
    second: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.9, 0.3], [0.0, 1.0]], dtype=np.float32)
    hits_with_high_scores = Hits(np.array([["0", second]], dtype=object), np.full((1, 2), 9.0))
    with open_store("memory", dims=2, geometry="dot") as store:
        monkeypatch.setattr(store, "search_once", lambda queries, k: hits_with_high_scores)
        assert measure_index(store, rows, [[1.0, 0.0]], 2).recall.tolist() == [expected]
