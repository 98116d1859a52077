"""The figures of an index: recall against a known loss, latency percentiles, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import InputError, ParameterError
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import Shards
from equipoise.models.stores import open_store
from equipoise.stats.result import Estimate
from equipoise.tasks.index_quality import IndexMeasurement, measure_index, nearest_on_device
from equipoise.types import Direction

RNG = np.random.default_rng(0)
ROWS, QUERIES = RNG.normal(size=(3000, 16)), RNG.normal(size=(60, 16))


def measured(seconds: list[float], recall: list[float]) -> IndexMeasurement:
    return IndexMeasurement(10, 1000, np.array(recall), np.array(seconds), 1.0, 0.1, 0.5, 2.0)


def test_a_graph_with_little_effort_is_found_out() -> None:
    pytest.importorskip("faiss")
    means = []
    for effort in (1, 1000):
        with open_store("faiss:hnsw", dims=16, neighbours=4, ef_construction=8, ef_search=effort) as made:
            means.append(measure_index(made, ROWS, QUERIES).recall.mean())
    assert means[0] < 0.9 < means[1]


@pytest.mark.engines("torch")
@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
def test_a_search_on_a_device_finds_the_neighbors_of_the_search_in_shards(geometry: str) -> None:
    rows = np.round(ROWS, 1).astype(np.float32)
    rows[2000:] = rows[:1000]  # equal scores at the cutoff
    shards = Shards.of([rows[:1200], rows[1200:]])
    seen: list[int] = []
    found = nearest_on_device(QUERIES.astype(np.float32), shards, 10, geometry, "cpu", seen.append)
    expected = nearest_in_shards(QUERIES.astype(np.float32), shards, 10, geometry=geometry)
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.scores.tolist() == expected.scores.tolist()
    assert seen[-1] == len(rows)


def test_latencies_are_in_milliseconds_and_lower_is_better() -> None:
    seconds = np.linspace(0.001, 0.4, 400).tolist()
    result = measured(seconds, [1.0, 0.5] * 200).result("index")
    found = {name: result[name] for name in ("Latency", "Latency(p50)", "Latency(p95)", "Latency(p99)")}
    assert found["Latency(p50)"].value == pytest.approx(200.5)
    assert found["Latency(p99)"].value == pytest.approx(1000 * np.quantile(seconds, 0.99))
    assert all(each.unit == "ms" and each.better == Direction.DOWN for each in found.values())
    assert all(each.interval.covers(each.value) for each in found.values())
    assert result["Throughput"].value == pytest.approx(800.0)


def test_recall_has_an_interval_and_a_chance_level() -> None:
    recall: Estimate = measured([0.001] * 40, [1.0, 0.9] * 20).result("index")["IndexRecall@10"]
    assert (recall.value, recall.chance, recall.n) == (pytest.approx(0.95), 0.01, 40)
    assert recall.interval.low < 0.95 < recall.interval.high


def test_few_queries_have_no_interval_of_a_high_percentile() -> None:
    result = measured([0.001, 0.002, 0.003], [1.0, 1.0, 1.0]).result("index")
    assert result["Latency(p99)"].interval.reason == "the 99 % quantile needs 368 values, not 3"


def test_a_corpus_smaller_than_k_is_found_whole() -> None:
    with open_store("memory", dims=16) as made:
        found = measure_index(made, ROWS[:4], QUERIES, k=10)
    assert found.recall.tolist() == [1.0] * 60
    assert found.result("index")["IndexRecall@10"].chance == 1.0


def test_what_cannot_be_measured_is_refused() -> None:
    with open_store("memory", dims=16) as made:
        with pytest.raises(InputError):
            measure_index(made, ROWS, np.empty((0, 16)))
        with pytest.raises(ParameterError, match="k is 0"):
            measure_index(made, ROWS, QUERIES, k=0)
        with pytest.raises(ParameterError, match="8 dimensions"):
            measure_index(made, ROWS[:, :8], QUERIES[:, :8])
