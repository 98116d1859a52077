"""The quality of every store that is installed, real servers among them; and when one goes away."""

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
    made = make(6)
    found = measure_index(made, [ROWS[:400], ROWS[400:]], QUERIES, 5)
    assert found.vectors == made.count() == 700
    assert found.recall.shape == found.seconds.shape == (40,)
    assert (found.recall == 1.0).all() if made.exact else found.recall.mean() > 0.8
    assert (found.seconds > 0.0).all()
    assert found.throughput > 0.0
    assert not found.stopped


def test_a_store_that_is_full_already_is_not_filled_again(make_persistent: Any) -> None:
    made = make_persistent(6)
    made.add([str(row) for row in range(700)], ROWS, texts=["mine"] * 700)
    measure_index(made, ROWS, QUERIES, 5)
    assert made.texts(["0", "699"]) == ["mine", "mine"]


class Failing:
    """A real store whose server goes away: every connection is closed from the other side."""

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


def test_a_server_that_goes_away_between_queries_leaves_the_answers_before(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(postgres, collection="goes between queries")
    ask, asked = failing.store.search_once, []

    def counted(queries: Any, k: int) -> Hits:
        asked.append(len(queries))
        if len(asked) == 12:
            failing.end()
        return ask(queries, k)

    monkeypatch.setattr(failing.store, "search_once", counted)
    with failing as going:
        found = measure_index(going, ROWS, QUERIES, 5)
    assert "is no longer reachable" in found.stopped
    # One request came first, to build what is built late.
    assert found.recall.tolist() == [1.0] * 10
    result = found.result("gone")
    assert np.isnan(result["Throughput"].value)
    assert "is no longer reachable" in result["Throughput"].interval.reason


def test_a_server_that_goes_away_while_it_is_filled_is_filled_up_by_the_same_call(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.models.stores.base.BATCH_ROWS", 100)
    failing = Failing(postgres, collection="goes while filling")
    add, added = failing.store.add, []

    def counted(ids: Any, vectors: Any, texts: Any) -> None:
        added.append(ids[0])
        if len(added) == 4:
            failing.end()
        add(ids, vectors, texts)

    monkeypatch.setattr(failing.store, "add", counted)
    with failing as going, pytest.raises(PartialError) as error:
        measure_index(going, ROWS, QUERIES, 5)
    assert error.value.exit_code == 3
    with Failing(postgres, collection="goes while filling") as again:
        assert again.count() == 300
        seen: list[tuple[str, int, int]] = []
        found = measure_index(again, ROWS, QUERIES, 5, watch=lambda *told: seen.append(told))
        assert found.recall.tolist() == [1.0] * 40
    assert [done for what, done, _ in seen if what.startswith("filling")] == [300, 400, 500, 600]


def test_the_command_measures_a_real_server_and_keeps_the_run(postgres: str, tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", ROWS)
    np.save(tmp_path / "q.npy", QUERIES)
    words = ["index-quality", "--store", f"pgvector:{postgres}", "--option", "index=hnsw", "--name", "hnsw"]
    words += ["--corpus", str(tmp_path / "c.npy"), "--queries", str(tmp_path / "q.npy"), "-o", str(tmp_path)]
    for _ in range(2):
        ended = CliRunner().invoke(cli, words, prog_name="eq")
        assert ended.exit_code == 0, ended.output
    assert "hnsw on 700 vectors" in ended.output
    run = load_run(tmp_path / "hnsw")
    assert run.result["IndexRecall@10"].n == 40
    assert run.manifest.cost["build_seconds"] > 0.0
    assert str(tmp_path / "c.npy") in run.manifest.inputs


def test_the_command_keeps_a_partial_run_when_the_server_goes_away(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "c.npy", ROWS)
    np.save(tmp_path / "q.npy", QUERIES)
    failing = Failing(postgres, collection="only to end connections")
    ask, asked = VectorStore.search_once, []

    def counted(self: VectorStore, queries: Any, k: int) -> Hits:
        asked.append(len(queries))
        if len(asked) == 21:
            failing.end()
        return ask(self, queries, k)

    monkeypatch.setattr(VectorStore, "search_once", counted)
    words = ["index-quality", "--store", f"pgvector:{postgres}", "--name", "gone", "-o", str(tmp_path)]
    words += ["--corpus", str(tmp_path / "c.npy"), "--queries", str(tmp_path / "q.npy")]
    with failing:
        ended = CliRunner().invoke(cli, words, prog_name="eq")
    assert ended.exit_code == 3, ended.output
    assert "is no longer reachable" in ended.output
    assert "19 of 40 queries were answered" in ended.output
    run = load_run(tmp_path / "gone")
    assert run.manifest.status == "partial"
    assert run.result["IndexRecall@10"].n == 19


def test_asking_is_searching_where_nothing_ties(make: Any) -> None:
    made = make(6, geometry="euclidean")
    made.add([str(row) for row in range(50)], ROWS[:50])
    asked, searched = made.search_once(QUERIES[:3], 4), made.search(QUERIES[:3], 4)
    assert asked.ids.tolist() == searched.ids.tolist()
    np.testing.assert_allclose(asked.scores, searched.scores, rtol=1e-6)


def test_a_store_that_holds_more_than_the_corpus_is_refused() -> None:
    with open_store("memory", dims=6) as made:
        made.add(["a"] + [str(row) for row in range(700)], np.concatenate([ROWS[:1], ROWS]))
        with pytest.raises(Exception, match="holds 701 vectors and there are 700"):
            measure_index(made, ROWS, QUERIES)


def test_a_collection_of_other_vectors_is_noticed() -> None:
    with open_store("memory", dims=6) as made:
        made.add([f"other {row}" for row in range(5)], ROWS[:5])
        with pytest.raises(StoreError, match=r"705 vectors.*700"):
            measure_index(made, ROWS, QUERIES)


OTHERS = RNG.normal(size=(700, 6)).astype(np.float32)


@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_a_collection_of_the_same_size_and_other_vectors_is_refused(make_persistent: Any, geometry: str) -> None:
    made = make_persistent(6, geometry=geometry)
    measure_index(made, ROWS, QUERIES, 5)
    with pytest.raises(ParameterError, match=r"256.*256") as error:
        measure_index(made, OTHERS, QUERIES, 5)
    assert made.collection in error.value.message
    assert "--collection" in str(error.value.hint)
    np.testing.assert_allclose(measure_index(made, ROWS, QUERIES, 5).recall.mean(), 1.0, atol=0.2)


def test_a_part_of_other_vectors_is_refused_before_it_is_mixed() -> None:
    with open_store("memory", dims=6) as made:
        made.add([str(row) for row in range(300)], OTHERS[:300])
        with pytest.raises(ParameterError):
            measure_index(made, ROWS, QUERIES, 5)
        assert made.count() == 300


def test_as_many_vectors_under_other_ids_are_refused() -> None:
    with open_store("memory", dims=6) as made:
        made.add([f"other {row}" for row in range(700)], ROWS)
        with pytest.raises(ParameterError, match="id 0"):
            measure_index(made, ROWS, QUERIES, 5)


def test_a_lost_vector_is_sent_again(make_persistent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.models.stores.base.BATCH_ROWS", 100)
    made = make_persistent(6)
    measure_index(made, ROWS, QUERIES, 5)
    made.delete(["5"])
    found = measure_index(made, ROWS, QUERIES, 5)
    assert found.vectors == made.count() == 700


@pytest.mark.parametrize(("second", "expected"), [("1", 1.0), ("2", 1.0), ("3", 0.5), ("99", 0.5), ("x", 0.5)])
def test_a_hit_counts_by_its_row_of_the_corpus_whatever_score_the_store_reports(
    second: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.9, 0.3], [0.0, 1.0]], dtype=np.float32)
    boast = Hits(np.array([["0", second]], dtype=object), np.full((1, 2), 9.0))
    with open_store("memory", dims=2, geometry="dot") as made:
        monkeypatch.setattr(made, "search_once", lambda queries, k: boast)
        assert measure_index(made, rows, [[1.0, 0.0]], 2).recall.tolist() == [expected]
