"""``eq index-quality`` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from equipoise.errors import StoreError
from equipoise.geometry.shards import write_shards
from equipoise.models.stores import open_store
from equipoise.runs.run_folder import load_run

Eq = Callable[..., Result]
RNG = np.random.default_rng(0)
ROWS, QUERIES = RNG.normal(size=(500, 8)).astype(np.float32), RNG.normal(size=(30, 8)).astype(np.float32)
COMMAND = ("index-quality", "--corpus", "c.npy", "--queries", "q.npy", "--store")


@pytest.fixture(autouse=True)
def vectors(folder: Path) -> None:
    np.save(folder / "c.npy", ROWS)
    np.save(folder / "q.npy", QUERIES)


def test_an_exact_store_has_full_recall(eq: Eq) -> None:
    result = eq(*COMMAND, "memory", "-k", "5")
    assert result.exit_code == 0, result.output
    assert "exact nearest neighbours among 500 vectors" in result.output
    assert "it found all exact neighbours for 30 of 30 queries" in result.output


def test_vectors_that_eq_embed_wrote_are_a_corpus_with_or_without_the_name_of_the_array(eq: Eq, folder: Path) -> None:
    (folder / "texts.csv").write_text("id,text\na,rye bread\nb,white bread\nc,water\n")
    assert eq("embed", "texts.csv", "--model", "hash", "-o", "v.npz").exit_code == 0
    for corpus, queries in (("v.npz", "v.npz:vectors"), ("v.npz:vectors", "v.npz")):
        command = ("index-quality", "--corpus", corpus, "--queries", queries, "--store", "memory", "-k", "1")
        result = eq(*command, "-o", "runs")
        assert result.exit_code == 0, result.output
        assert "it found all exact neighbours for 3 of 3 queries" in result.output
        assert [Path(path).name for path in load_run("runs/memory").manifest.inputs] == ["v.npz"]


@pytest.mark.engines("torch")
def test_the_exact_search_runs_on_a_device(eq: Eq) -> None:
    result = eq(*COMMAND, "memory", "-k", "5", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "it found all exact neighbours for 30 of 30 queries" in result.output
    assert "E300" in eq(*COMMAND, "memory", "--device", "nonsense").stderr


def test_json_has_every_metric_with_its_unit(eq: Eq) -> None:
    content = json.loads(eq(*COMMAND, "memory", "--json").stdout)
    estimates = {estimate["metric"]: estimate for estimate in content["estimates"]}
    assert list(estimates) == [
        "IndexRecall@10",
        "Latency",
        "Latency(p50)",
        "Latency(p95)",
        "Latency(p99)",
        "Throughput",
    ]
    assert estimates["IndexRecall@10"]["value"] == 1.0
    assert estimates["Latency(p50)"]["unit"] == "ms"
    assert content["exact"] is True
    assert content["cost"]["fill_seconds"] > 0.0


def test_two_stored_indexes_are_compared(eq: Eq) -> None:
    pytest.importorskip("faiss")
    weak = ("--option", "ef_search=1", "--option", "neighbours=2", "--option", "ef_construction=2")
    assert eq(*COMMAND, "faiss:flat", "-o", "runs", "--name", "flat").exit_code == 0
    assert eq(*COMMAND, "faiss:hnsw", *weak, "-o", "runs", "--name", "weak").exit_code == 0
    compared = eq("compare", "runs/flat", "runs/weak", "--primary", "IndexRecall@10", "--json")
    assert compared.exit_code == 0, compared.output
    assert load_run("runs/weak").manifest.parameters["ef_search"] == 1
    assert load_run("runs/weak").result["IndexRecall@10"].value < 1.0


def test_int8_shards_of_a_folder_are_evaluated(eq: Eq, folder: Path) -> None:
    write_shards(folder / "shards", [ROWS], rows=200, kind="int8")
    result = eq("index-quality", "--corpus", "shards", "--queries", "q.npy", "--store", "memory", "-o", "runs")
    assert result.exit_code == 0, result.output
    assert "it found all exact neighbours for 30 of 30" in result.output
    assert [Path(path).name for path in load_run("runs/memory").manifest.inputs] == [
        "00000.npy",
        "00001.npy",
        "00002.npy",
        "q.npy",
    ]


@pytest.mark.engines("chromadb")
def test_a_chroma_folder_is_filled_once(eq: Eq) -> None:
    pytest.importorskip("chromadb")
    command = (*COMMAND, "chroma:here", "--collection", "corpus")
    assert eq(*command).exit_code == 0
    with open_store("chroma:here", collection="corpus") as store:
        store.add(["7"], ROWS[7:8], texts=["still here"])
    assert eq(*command).exit_code == 0
    with open_store("chroma:here", collection="corpus") as store:
        assert (store.count(), store.texts(["7"])) == (500, ["still here"])


@pytest.mark.parametrize(
    ("arguments", "code", "expected_text"),
    [
        (("faisss:hnsw",), 2, "did you mean faiss"),
        (("memory", "--geometry", "cosin"), 2, "did you mean cosine"),
        (("memory", "--option", "index"), 2, "--option index has no value"),
        (("memory", "--option", "geometry=dot"), 2, "--option geometry is not an option of stores"),
        (("memory", "--option", "ef_search=3"), 2, "the memory store has no option 'ef_search'"),
        (("memory", "--corpus", "absent.npy"), 2, "absent.npy"),
        (("pgvector:postgresql://127.0.0.1:1/db",), 2, "cannot be reached"),
        (("memory", "-o", "c.npy"), 2, "c.npy is a file, not a folder"),
    ],
)
def test_bad_input_is_an_error(eq: Eq, arguments: tuple[str, ...], code: int, expected_text: str) -> None:
    result = eq(*COMMAND, *arguments)
    assert result.exit_code == code
    assert expected_text in result.output
    assert "Traceback" not in result.output


def test_queries_of_other_dimensions_are_an_error(eq: Eq, folder: Path) -> None:
    np.save(folder / "q.npy", QUERIES[:, :5])
    result = eq(*COMMAND, "memory")
    assert result.exit_code == 2
    assert "the queries have 5 coordinates and the corpus has 8" in result.output


@pytest.mark.engines("chromadb")
def test_a_collection_of_another_corpus_is_an_error_with_a_hint(eq: Eq, folder: Path) -> None:
    pytest.importorskip("chromadb")
    command = (*COMMAND, "chroma:here", "--collection", "corpus")
    assert eq(*command).exit_code == 0
    np.save(folder / "c.npy", RNG.normal(size=(500, 8)).astype(np.float32))
    result = eq(*command)
    assert result.exit_code == 2
    assert "the collection 'corpus' of chroma:here holds other vectors" in result.stderr
    assert "--collection NAME" in result.stderr


@pytest.mark.parametrize("columns", ["80", "100"])
def test_a_narrow_table_keeps_units_and_intervals_and_explains_missing_ones(
    eq: Eq, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    output = eq(*COMMAND, "memory").stdout
    assert "not shown:" not in output
    table, _, reasons = output.partition("\n\nNo interval")
    rows = {line.split()[0]: line.split() for line in table.splitlines()[4:]}
    assert rows["Latency(p50)"][2] == "ms"
    assert rows["Latency(p50)"][3].startswith("[")
    assert rows["Throughput"][2:] == ["queries/s", "n/a", "30"]
    text = " ".join(output.split())
    assert "No interval for Latency(p99): the 99 % quantile needs 368 values; there are only 30." in text
    assert "No interval for Throughput: one pass over the queries." in reasons


def test_finished_shards_are_kept_until_the_run_is_written(
    eq: Eq, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_disk_full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full", hint="make room")

    monkeypatch.setattr("equipoise.runs.executors.LocalExecutor.name", "remote")
    with monkeypatch.context() as patch:
        patch.setattr("equipoise.runs.run_folder.save_run", raise_disk_full)
        assert eq(*COMMAND, "memory", "-o", "runs").exit_code == 2
    shard_folder = folder / "runs" / ".memory.shards"
    assert len(list(shard_folder.iterdir())) == 1
    result = eq(*COMMAND, "memory", "-o", "runs")
    assert result.exit_code == 0, result.output
    assert not shard_folder.exists()
    assert load_run("runs/memory").result["IndexRecall@10"].value == 1.0
