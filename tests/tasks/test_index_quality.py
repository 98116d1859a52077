"""Index quality: recall, latency percentiles and errors."""

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


def measurement_of(seconds: list[float], recall: list[float]) -> IndexMeasurement:
    return IndexMeasurement(10, 1000, np.array(recall), np.array(seconds), 1.0, 0.1, 0.5, 2.0)


def test_recall_increases_with_the_search_effort() -> None:
    pytest.importorskip("faiss")
    means = []
    for effort in (1, 1000):
        with open_store("faiss:hnsw", dims=16, neighbours=4, ef_construction=8, ef_search=effort) as store:
            means.append(measure_index(store, ROWS, QUERIES).recall.mean())
    assert means[0] < 0.9 < means[1]


@pytest.mark.engines("torch")
@pytest.mark.parametrize("geometry", ["cosine", "dot", "euclidean"])
def test_search_on_a_device_agrees_with_search_in_shards(geometry: str) -> None:
    rows = np.round(ROWS, 1).astype(np.float32)
    rows[2000:] = rows[:1000]  # equal scores at the cutoff
    shards = Shards.of([rows[:1200], rows[1200:]])
    progress: list[int] = []
    neighbors = nearest_on_device(QUERIES.astype(np.float32), shards, 10, geometry, "cpu", progress.append)
    expected = nearest_in_shards(QUERIES.astype(np.float32), shards, 10, geometry=geometry)
    assert neighbors.indices.tolist() == expected.indices.tolist()
    assert neighbors.scores.tolist() == expected.scores.tolist()
    assert progress[-1] == len(rows)


def test_latencies_are_in_milliseconds_and_lower_is_better() -> None:
    seconds = np.linspace(0.001, 0.4, 400).tolist()
    result = measurement_of(seconds, [1.0, 0.5] * 200).result("index")
    estimates = {name: result[name] for name in ("Latency", "Latency(p50)", "Latency(p95)", "Latency(p99)")}
    assert estimates["Latency(p50)"].value == pytest.approx(200.5)
    assert estimates["Latency(p99)"].value == pytest.approx(1000 * np.quantile(seconds, 0.99))
    assert all(estimate.unit == "ms" and estimate.better == Direction.DOWN for estimate in estimates.values())
    assert all(estimate.interval.covers(estimate.value) for estimate in estimates.values())
    assert result["Throughput"].value == pytest.approx(800.0)


def test_recall_has_an_interval_and_a_chance_level() -> None:
    estimate: Estimate = measurement_of([0.001] * 40, [1.0, 0.9] * 20).result("index")["IndexRecall@10"]
    assert (estimate.value, estimate.chance, estimate.n) == (pytest.approx(0.95), 0.01, 40)
    assert estimate.interval.low < 0.95 < estimate.interval.high


def test_few_queries_give_no_interval_of_a_high_percentile() -> None:
    result = measurement_of([0.001, 0.002, 0.003], [1.0, 1.0, 1.0]).result("index")
    assert result["Latency(p99)"].interval.reason == "the 99 % quantile needs 368 values; there are only 3"


def test_a_corpus_smaller_than_k_has_recall_one() -> None:
    with open_store("memory", dims=16) as store:
        measurement = measure_index(store, ROWS[:4], QUERIES, k=10)
    assert measurement.recall.tolist() == [1.0] * 60
    assert measurement.result("index")["IndexRecall@10"].chance == 1.0


def test_invalid_arguments_raise_errors() -> None:
    with open_store("memory", dims=16) as store:
        with pytest.raises(InputError):
            measure_index(store, ROWS, np.empty((0, 16)))
        with pytest.raises(ParameterError, match="k is 0"):
            measure_index(store, ROWS, QUERIES, k=0)
        with pytest.raises(ParameterError, match="8 dimensions"):
            measure_index(store, ROWS[:, :8], QUERIES[:, :8])
