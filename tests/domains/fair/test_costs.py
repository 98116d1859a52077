"""Throughput, memory and price of the models, and the cheapest model that is not significantly worse."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import retriever, run_fair_comparison
from equipoise.domains.fair.costs import ModelCosts, array_bytes, cheapest, measure_costs
from equipoise.models.backends.hosted import ApiEncoder
from equipoise.models.dense import DenseRetriever
from equipoise.models.embedder import Embedder, EmbedStats
from equipoise.models.encoder import ModelCard
from equipoise.models.registry import parse_spec
from equipoise.report.answer import cheapest_sentence
from fair_sample import CONFIG, Counting, document, pairs

TEXT = document()
QUESTIONS = pairs(TEXT)
TEXTS = [f"text number {number} about rye" for number in range(40)]


class HostedModel(ApiEncoder):
    """A service with a price per million tokens; a request fails the test."""

    def __init__(self, price: float | None) -> None:
        card = ModelCard("hosted", "openai:hosted", dims=4, bytes_per_vector=16)
        spec = parse_spec("openai:hosted" if price is None else f"openai:hosted,price={price}")
        super().__init__(spec, card, "hosted")

    def request(self, texts: Any, role: Any) -> Any:
        pytest.fail("a request was made")


def embed_stats(embedded: int, seconds: float, from_cache: int = 0) -> EmbedStats:
    return EmbedStats(embedded + from_cache, embedded + from_cache, from_cache, embedded, None, None, None, seconds)


def hosted_retriever(price: float | None = None) -> DenseRetriever:
    return DenseRetriever(Embedder(HostedModel(price)))


def test_the_throughput_is_measured_stored_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    system = hosted_retriever(2.0)
    name = system.embedder.fingerprint
    assert measure_costs(system, TEXTS, 400, {name: embed_stats(0, 0.1, 40)}, 0.0).documents_per_second is None
    assert measure_costs(system, TEXTS, 400, {name: embed_stats(40, 0.5)}, 0.0).documents_per_second == pytest.approx(
        80.0
    )
    cached = measure_costs(system, TEXTS, 400, {name: embed_stats(0, 0.1, 40)}, 0.0)
    assert cached.documents_per_second == pytest.approx(80.0)


def test_memory_and_price_are_computed_from_the_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    costs = measure_costs(hosted_retriever(2.0), TEXTS, 400, {}, 0.25)
    assert costs.index_bytes == 40 * 16
    assert costs.price == pytest.approx(2.0 * 10)  # ten tokens per chunk, two dollars for a million tokens
    assert costs.rerank_seconds == 0.25
    assert measure_costs(hosted_retriever(None), TEXTS, 400, {}, 0.0).price is None


def test_a_local_model_without_a_stored_throughput_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    system = retriever("hash,dim=16")
    first = measure_costs(system, TEXTS, 400, {}, 0.0)
    assert first.documents_per_second
    assert measure_costs(system, TEXTS, 400, {}, 0.0).documents_per_second == first.documents_per_second
    assert (first.price, first.model_bytes) == (0.0, 0.0)


def test_a_cached_run_of_the_next_day_loads_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    system = retriever("hash,dim=16")
    assert isinstance(system, DenseRetriever)
    first = measure_costs(system, TEXTS, 400, {}, 0.0)
    (file,) = (tmp_path / "throughput").iterdir()
    yesterday = file.stat().st_mtime - 24 * 3600
    os.utime(file, (yesterday, yesterday))
    monkeypatch.setattr(system.embedder.encoder, "encode", lambda *_: pytest.fail("the model was loaded"))
    assert measure_costs(system, TEXTS, 400, {}, 0.0).documents_per_second == first.documents_per_second


def test_an_outdated_throughput_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    system = retriever("hash,dim=16")
    assert isinstance(system, DenseRetriever)
    slow_costs = measure_costs(system, TEXTS, 400, {system.embedder.fingerprint: embed_stats(40, 400.0)}, 0.0)
    assert slow_costs.documents_per_second == pytest.approx(0.1)
    (file,) = (tmp_path / "throughput").iterdir()
    os.utime(file, (0, 0))
    rate = measure_costs(system, TEXTS, 400, {}, 0.0).documents_per_second
    assert rate is not None
    assert rate > 1
    slow_costs = measure_costs(system, TEXTS, 400, {system.embedder.fingerprint: embed_stats(40, 400.0)}, 0.0)
    assert slow_costs.documents_per_second == rate


def test_the_costs_of_a_fusion_are_the_sum_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    lexical, fusion = retriever("bm25:"), retriever("sum:hash,dim=16+bm25:")
    lexical_costs, fusion_costs = (measure_costs(system, TEXTS, 400, {}, 0.0) for system in (lexical, fusion))
    assert fusion_costs.index_bytes == pytest.approx((lexical_costs.index_bytes or 0) + 40 * 16 * 4)
    assert (fusion_costs.price, lexical_costs.price) == (0.0, 0.0)


def test_precomputed_vectors_have_no_known_costs_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    np.savez(tmp_path / "vectors.npz", texts=np.array(TEXTS), vectors=np.eye(40, dtype=np.float32))
    system = retriever(f"vectors:{tmp_path / 'vectors.npz'}")
    assert isinstance(system, DenseRetriever)
    costs = measure_costs(system, TEXTS, 400, {system.embedder.fingerprint: embed_stats(40, 0.001)})
    assert (costs.documents_per_second, costs.model_bytes) == (None, None)
    assert costs.index_bytes == 40 * 40 * 4
    assert cheapest({"precomputed": costs, "fast": COSTS["fast"]}) is None
    assert cheapest({"precomputed": costs, "paid": COSTS["paid"]}) == "precomputed"


def test_arrays_are_counted_in_nested_objects() -> None:
    class Holder:
        __slots__ = ("rows",)

        def __init__(self) -> None:
            self.rows = [np.zeros(3), {"a": np.zeros((2, 2), dtype=np.float32)}]

    assert array_bytes(Holder()) == 24 + 16 + 1


COSTS = {
    "paid": ModelCosts(900.0, 1.0, 1.0, 5.0),
    "slow": ModelCosts(10.0, 1.0, 1.0, 0.0),
    "fast": ModelCosts(90.0, 9.0, 9.0, 0.0),
    "fast > reranker": ModelCosts(90.0, 9.0, 9.0, 0.0, 0.5),
}


def test_the_cheapest_has_the_lowest_price_then_no_reranker_then_the_highest_throughput() -> None:
    assert sorted(COSTS, key=lambda name: COSTS[name].order) == ["fast", "slow", "fast > reranker", "paid"]
    assert cheapest(COSTS) == "fast"
    assert cheapest({}) is None
    assert ModelCosts().order == (inf, 0.0, inf, inf)
    assert ModelCosts(9.0, 5.0, 3.0).order == ModelCosts(15.0, 3.0, 5.0).order  # a twofold difference is noise


def test_an_unknown_cost_that_may_be_the_lowest_gives_no_cheapest_model() -> None:
    assert cheapest({"a": ModelCosts(price=0.0), "b": ModelCosts(9.0, 1.0, 1.0, 0.0)}) is None
    assert cheapest({"a": ModelCosts(price=0.0), "b": ModelCosts(9.0, 1.0, 1.0, 3.0)}) == "a"
    costs = {"a": ModelCosts(9.0, 1.0, 1.0, 0.0), "b": ModelCosts(3.0, 1.0, 1.0, 0.0)}
    assert cheapest(costs) == "a"
    assert cheapest({**costs, "c": ModelCosts(price=0.0)}) is None, "c may be faster than a"


def test_the_cheapest_model_that_could_be_best_is_in_the_summary(tmp_path: Path) -> None:
    comparison = run_fair_comparison(["bm25:", "tfidf:", Counting()], TEXT, QUESTIONS, output=tmp_path, config=CONFIG)
    assert comparison.comparison is not None
    candidates = comparison.comparison.could_be_best
    costs = {result.model_spec: result.costs for result in comparison if result.model_spec in candidates}
    assert comparison.cheapest == min(costs, key=lambda name: costs[name].order)
    assert len(candidates) > 1
    assert cheapest_sentence(comparison.cheapest) in " ".join(comparison.summary.split())
    repeated = run_fair_comparison(["bm25:", "tfidf:", Counting()], TEXT, QUESTIONS, output=tmp_path, config=CONFIG)
    assert repeated.cheapest == comparison.cheapest
    assert [result.costs for result in repeated][:2] == [result.costs for result in comparison][:2]


def test_the_share_of_truncated_texts_is_the_same_everywhere(tmp_path: Path) -> None:
    """The report, EQ151 and EQ205 use the chunks of the best configuration."""
    comparison = run_fair_comparison(["bm25:", "hash"], TEXT, QUESTIONS, output=tmp_path, config=CONFIG)
    for outcome in comparison.outcomes:
        window = outcome.result.settings["window"]
        assert outcome.optimization.truncated_share == window["truncated"] / window["texts"]
