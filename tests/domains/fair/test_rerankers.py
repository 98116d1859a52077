"""Rerankers in a comparison: the rerank depth is tuned, and each pair of question and chunk is scored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import retriever, run_fair_comparison
from equipoise.domains.fair.config import FairConfig
from equipoise.domains.fair.costs import rerank_bytes, rerank_seconds
from equipoise.domains.fair.experiment import with_rerankers
from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.models.embedder import weights_bytes
from equipoise.models.encoder import ModelCard
from equipoise.models.registry import parse_spec
from equipoise.models.rerank import MemoisedReranker, Reranker, memoise_reranker, reranker
from equipoise.models.vector_cache import VectorCache
from fair_sample import CONFIG, GRID, Counting, chunks_of, document, pairs

TEXT = document(30)
QUESTIONS = pairs(TEXT, 15)
DEPTHS = [2, 6]


class SharedLetters(Reranker):
    """A reranker without tied scores that records the scored pairs."""

    pairwise = True
    card = ModelCard("letters", "letters:")
    fingerprint = "letters 1"

    def __init__(self) -> None:
        self.scored_pairs: list[tuple[str, str]] = []

    def score(self, query: str, documents: Sequence[str]) -> np.ndarray:
        self.scored_pairs += [(query, text) for text in documents]
        return np.array([self.value(query, text) for text in documents])

    @staticmethod
    def value(query: str, text: str) -> float:
        return len(set(query.lower().split()) & set(text.lower().split())) + Random(f"{query}|{text}").random() / 10


def reference_hits(params: dict[str, Any], depth: int) -> list[float]:
    """Rank every question with sorted lists: the first chunks of the model in the order of the reranker."""
    texts = [chunk.text for chunk in chunks_of(TEXT, params["chunk_size"], params["overlap"])]
    ((_, scores),) = retriever(Counting()).fit(texts).score_blocks([pair["question"] for pair in QUESTIONS])
    hits = []
    for pair, row in zip(QUESTIONS, scores, strict=True):
        order = sorted(range(len(texts)), key=lambda chunk: -row[chunk])
        first = sorted(order[:depth], key=lambda chunk: -SharedLetters.value(pair["question"], texts[chunk]))
        retrieved = [*first, *order[depth:]][: params["top_k"]]
        hits.append(float(any(pair["answer"].lower() in " ".join(texts[chunk].lower().split()) for chunk in retrieved)))
    return hits


@pytest.fixture(scope="module")
def reranked_comparison() -> tuple[Any, SharedLetters]:
    model = SharedLetters()
    return run_fair_comparison(
        [Counting()], TEXT, QUESTIONS, rerankers=[model], config=replace(CONFIG, rerank_depths=DEPTHS)
    ), model


def test_every_configuration_has_the_score_of_the_reference_ranking(
    reranked_comparison: tuple[Any, SharedLetters],
) -> None:
    reranked = reranked_comparison[0][1]
    assert reranked.model_spec.endswith(" > letters:")
    searches = product(GRID["chunk_sizes"], GRID["overlaps"], DEPTHS, GRID["top_ks"])
    for row, (size, overlap, depth, k) in zip(reranked.all_results, searches, strict=True):
        params = {"chunk_size": size, "overlap": overlap, "top_k": k}
        assert {name: row[name] for name in (*params, "rerank_depth")} == {**params, "rerank_depth": depth}
        assert row["accuracy"] == pytest.approx(100 * np.mean(reference_hits(params, depth)))
    assert reranked.best_params["rerank_depth"] in DEPTHS
    assert "rerank_depth" not in reranked_comparison[0][0].best_params


def test_each_pair_is_scored_once(reranked_comparison: tuple[Any, SharedLetters]) -> None:
    scored_pairs = reranked_comparison[1].scored_pairs
    assert len(scored_pairs) == len(set(scored_pairs))


def test_a_reranked_model_is_compared_with_the_same_grid(reranked_comparison: tuple[Any, SharedLetters]) -> None:
    """More values of a parameter that only one model has are no advantage on held-out questions."""
    assert "EQ203" not in {finding.code for finding in reranked_comparison[0].findings}


def test_other_depths_are_computed_again_and_the_model_without_reranker_is_not(tmp_path: Path) -> None:
    first, repeated, other = (
        run_fair_comparison(
            ["hash,dim=16"],
            TEXT,
            QUESTIONS,
            rerankers=["fusion:bm25:+tfidf:"],
            config=replace(CONFIG, rerank_depths=[depth]),
            output=tmp_path,
        )
        for depth in (2, 2, 3)
    )
    assert first.resumed == ()
    assert repeated.resumed == ("hash,dim=16", "hash,dim=16 > fusion:bm25:+tfidf:")
    assert other.resumed == ("hash,dim=16",)


def test_unknown_rerankers_and_depths_are_errors_before_the_evaluation() -> None:
    with pytest.raises(UnknownNameError):
        with_rerankers({"hash": "hash"}, ["maxsin:minilm"])
    with pytest.raises(UnknownNameError):
        with_rerankers({"hash": "hash"}, ["maxsim:minilmm"])
    with pytest.raises(InputError):
        with_rerankers({"hash": "hash"}, ["cross-encoder:/no/such/folder"])
    with pytest.raises(ParameterError):
        FairConfig(rerank_depths=[0])
    with pytest.raises(ParameterError):
        run_fair_comparison(["hash"], TEXT, QUESTIONS, config=FairConfig(rerank_depths=[5]))


def test_memoised_rerankers_give_the_same_scores() -> None:
    queries, texts = ["rye bread", "oats"], ["rye", "oats and rye", "wheat", "bread of rye"]
    inner = SharedLetters()
    memoised = memoise_reranker(inner)
    for candidates in ([texts[:3], texts], [texts, texts[1:]]):
        expected = [SharedLetters().score(query, part) for query, part in zip(queries, candidates, strict=True)]
        for scores, expected_scores in zip(memoised.score_many(queries, candidates), expected, strict=True):
            np.testing.assert_array_equal(scores, expected_scores)
    assert len(inner.scored_pairs) == len(set(inner.scored_pairs))
    assert (memoised.card, memoised.fingerprint) == (inner.card, inner.fingerprint)
    fusion = reranker("fusion:bm25:+tfidf:")
    assert not isinstance(memoise_reranker(fusion), MemoisedReranker)
    np.testing.assert_array_equal(memoise_reranker(fusion).score("rye", texts), fusion.score("rye", texts))


def test_a_later_run_uses_the_cached_scores(tmp_path: Path) -> None:
    config, cache = replace(CONFIG, rerank_depths=DEPTHS), tmp_path / "vectors.sqlite"
    first, second = SharedLetters(), SharedLetters()
    results = [
        run_fair_comparison([Counting()], TEXT, QUESTIONS, rerankers=[model], config=config, cache=cache)[1]
        for model in (first, second)
    ]
    assert first.scored_pairs
    assert not second.scored_pairs
    assert results[0].all_results == results[1].all_results


@given(score=st.floats(-1e30, 1e30).filter(lambda score: score == 0 or abs(score) > 1e-20))
def test_a_cached_score_equals_the_score(tmp_path_factory: pytest.TempPathFactory, score: float) -> None:
    class ConstantReranker(SharedLetters):
        def score(self, query: str, documents: Sequence[str]) -> np.ndarray:
            return np.full(len(documents), score)

    with VectorCache(tmp_path_factory.mktemp("cache") / "vectors.sqlite") as cache:
        memoise_reranker(ConstantReranker(), cache).score("q", ["a"])
        assert memoise_reranker(SharedLetters(), cache).score("q", ["a"]).tolist() == [score]


@pytest.mark.engines("sentence_transformers")
def test_a_packaged_model_reranks(tmp_path: Path) -> None:
    config = FairConfig(chunk_sizes=[24], overlaps=[4], top_ks=[2], rerank_depths=[4], tokenizer="words")
    comparison = run_fair_comparison(["bm25:"], TEXT, QUESTIONS, rerankers=["maxsim:minilm"], config=config)
    assert [result.model_name for result in comparison][1].startswith("BM25 (lucene), reranked by MaxSim")


class SlowReranker(SharedLetters):
    """A reranker that takes a known time per document."""

    fingerprint = "slow letters"

    def score(self, query: str, documents: Sequence[str]) -> np.ndarray:
        sleep(0.002 * len(documents))
        return super().score(query, documents)


def test_the_time_of_a_reranker_does_not_depend_on_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose scores are cached reports the measured time, not that of reading the cache."""
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path))
    config = replace(CONFIG, rerank_depths=[6])
    runs = [
        run_fair_comparison([Counting(), "bm25:"], TEXT, QUESTIONS, rerankers=[model], config=config)
        for model in (SlowReranker(), SlowReranker())
    ]
    seconds = [result.costs.rerank_seconds for run in runs for result in run if " > " in result.model_spec]
    assert len(seconds) == 4
    assert min(seconds) >= 6 * 0.002


def test_a_reranker_whose_scores_were_cached_without_a_measurement_has_no_known_time(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "vectors.sqlite") as cache:
        memoise_reranker(SharedLetters(), cache).score("q", ["a"])
        memoised = memoise_reranker(SharedLetters(), cache)
        memoised.score("q", ["a"])
        assert rerank_seconds(memoised, 10, 0.5) is None
        memoised.score("q", ["b", "c"])
        assert rerank_seconds(memoised, 10, 0.5) == 10 * memoised.seconds_per_pair
    assert rerank_seconds(reranker("fusion:bm25:+tfidf:"), 10, 0.5) == 0.5


@pytest.mark.engines("sentence_transformers")
def test_the_weights_of_a_reranker_count_as_memory() -> None:
    assert rerank_bytes(reranker("maxsim:minilm")) == weights_bytes(parse_spec("minilm"))
    assert rerank_bytes(reranker("fusion:maxsim:+bm25:")) == weights_bytes(parse_spec("minilm"))
    assert rerank_bytes(SharedLetters()) is None


@pytest.mark.engines("sentence_transformers")
def test_token_vectors_are_computed_once_per_document(monkeypatch: pytest.MonkeyPatch) -> None:
    model = reranker("maxsim:minilm")
    first = model.score_many(["rye bread"], [["a loaf of rye", "an oat field"]])
    monkeypatch.setattr(model._encoder, "token_vectors", one_text_at_most(model._encoder.token_vectors))
    repeated = model.score_many(["rye bread"], [["an oat field", "a loaf of rye"]])
    np.testing.assert_array_equal(repeated[0][::-1], first[0])


def one_text_at_most(token_vectors: Any) -> Any:
    """Only the query is read again."""

    def limited(texts: Sequence[str]) -> Any:
        assert list(texts) == ["rye bread"]
        return token_vectors(texts)

    return limited
