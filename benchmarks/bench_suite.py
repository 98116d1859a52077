"""The harness of eq bench against that of mteb on the same precomputed vectors, and against the bare product."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest, fastest_in_turn
from equipoise import bench
from equipoise.config import StatsConfig
from equipoise.domains.bench.base_data import BenchData
from equipoise.domains.bench.experiment import score
from equipoise.domains.bench.systems import MeasuredEncoder, OpenSystem, SystemPool, SystemSpec
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.models.encoder import EncodedBatch, Role
from equipoise.stats.result import Result

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "domains" / "bench"))

DIMS = 384
FEW_RESAMPLES = StatsConfig(n_resamples=200, n_permutations=200)


def rows(quick: bool) -> list[Row]:
    """Retrieval, similarity and bitext of both packages, and full-depth ranks compared with the matrix product."""
    import mteb  # noqa: F401  so that its import is not part of the times
    from mteb_harness import GivenVectors

    model = _random_model(GivenVectors)
    task_rows = [
        _retrieval(model, *((200, 2_000) if quick else (1_000, 20_000))),
        _similarity(model, 300 if quick else 1_500),
        _bitext(model, 300 if quick else 1_500),
    ]
    total = Row(
        "the suite of these three",
        sum(row.ours for row in task_rows),
        "mteb",
        sum(row.theirs or 0 for row in task_rows),
        5.0,
    )
    return [
        *task_rows,
        total,
        _product(*((200, 5_000) if quick else (1_000, 100_000))),
        _overhead(20 if quick else 1_400),
    ]


def _random_model(base: Any) -> Any:
    """A model with random vectors, generated once per text."""

    class Random(base):  # type: ignore[misc]
        """The seed of a vector is the number in its text."""

        def of(self, text: str) -> Any:
            if text not in self.vectors:
                seed = int(text.rsplit(" ", 1)[1])
                rng, shared = np.random.default_rng([len(text), seed]), np.random.default_rng(seed)
                self.vectors[text] = (rng.standard_normal(DIMS) + shared.standard_normal(DIMS)).astype(np.float32)
            return self.vectors[text]

    return Random()


def _open_system(model: Any) -> OpenSystem:
    return SystemPool(cache=False).open(SystemSpec("given", model))


def _time_scoring(data: BenchData, model: Any) -> tuple[float, Result]:
    """CPU seconds from vectors in memory to scores with intervals."""
    queries, documents = data.texts
    model.encode([*queries, *documents])
    return fastest(lambda: score(data, data.observe(_open_system(model)), "given", FEW_RESAMPLES), times=2)


def _comparison_row(
    task: str, our_result: tuple[float, Result], peer_result: tuple[float, float], metric: str, tolerance: float
) -> Row:
    value = our_result[1][metric].value
    if abs(value - peer_result[1]) > tolerance:
        raise SystemExit(f"{task}: {metric} is {value} and mteb's is {peer_result[1]}")
    return Row(
        task, our_result[0], "mteb", peer_result[0], note=f"{metric} equal; ours with intervals and chance levels"
    )


def _retrieval(model: Any, n_queries: int, n_documents: int) -> Row:
    from datasets import Dataset
    from mteb_harness import mteb_scores

    corpus = [{"id": f"d{row}", "title": "", "text": f"document {row}"} for row in range(n_documents)]
    queries = [{"id": f"q{row}", "text": f"query {row}"} for row in range(n_queries)]
    truth = {f"q{row}": {f"d{row}": 1, f"d{row + n_queries}": 1} for row in range(n_queries)}
    qrels = [{"query-id": q, "corpus-id": d, "score": gain} for q, gains in truth.items() for d, gain in gains.items()]
    our_result = _time_scoring(bench.Retrieval(corpus, queries, qrels, name="r"), model)
    mteb_data = {
        "corpus": Dataset.from_list(corpus),
        "queries": Dataset.from_list(queries),
        "relevant_docs": truth,
        "top_ranked": None,
    }
    seconds, scores = fastest(lambda: mteb_scores("Retrieval", mteb_data, model, "ndcg_at_10"), times=1)
    task = f"retrieval, {n_queries:,} queries x {n_documents:,} documents x {DIMS}"
    return _comparison_row(task, our_result, (seconds, scores["ndcg_at_10"]), "nDCG@10", 6e-6)


def _pairs(count: int) -> list[dict[str, Any]]:
    values = np.random.default_rng(0).random(count)
    return [
        {"sentence1": f"one {row}", "sentence2": f"other {row if value > 0.5 else (row + 1) % count}", "score": value}
        for row, value in enumerate(values.tolist())
    ]


def _similarity(model: Any, count: int) -> Row:
    from datasets import Dataset, DatasetDict
    from mteb_harness import mteb_scores

    data = bench.Similarity(_pairs(count), name="s")
    with_intervals, result = _time_scoring(data, model)
    metrics = parse_metrics(data.metrics)

    def scores_alone() -> None:
        observed = data.observe(_open_system(model)).evidence
        for metric in metrics:
            metric.measure(observed)

    our_result = fastest(scores_alone, times=3)[0], result
    mteb_data = DatasetDict(test=Dataset.from_list(_pairs(count)))
    seconds, scores = fastest(lambda: mteb_scores("STS", mteb_data, model, "cosine_spearman"), times=3)
    row = _comparison_row(
        f"similarity, {count:,} pairs", our_result, (seconds, scores["cosine_spearman"]), "Spearman", 1e-6
    )
    return replace(row, note=f"Spearman equal; scores alone, with intervals {with_intervals:.2g} s")


def _bitext(model: Any, count: int) -> Row:
    from datasets import Dataset, DatasetDict
    from mteb_harness import mteb_scores

    pairs = [{"sentence1": f"one {row}", "sentence2": f"other {row}"} for row in range(count)]
    reversed_pairs = [{"sentence1": row["sentence2"], "sentence2": row["sentence1"]} for row in pairs]
    our_result = _time_scoring(bench.Bitext(pairs, name="b"), model)

    def mteb_accuracy() -> float:
        accuracies = [
            mteb_scores("BitextMining", DatasetDict(test=Dataset.from_list(side)), model, "accuracy")["accuracy"]
            for side in (pairs, reversed_pairs)
        ]
        return float(np.mean(accuracies))

    return _comparison_row(
        f"bitext, {count:,} pairs, both directions", our_result, fastest(mteb_accuracy, times=1), "HR@1", 1e-6
    )


def _product(n_queries: int, n_documents: int) -> Row:
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((n_queries, DIMS), dtype=np.float32)
    corpus = rng.standard_normal((n_documents, DIMS), dtype=np.float32)
    relevant = [[row, row + 1] for row in range(n_queries)]

    def multiply() -> None:
        for first in range(0, n_queries, 100):
            queries[first : first + 100] @ corpus.T

    rank_seconds, product_seconds = fastest_in_turn(
        lambda: Ranking.from_embeddings(queries, corpus, relevant, geometry="dot"), multiply, times=3
    )
    task = f"full-depth ranks, {n_queries:,} x {n_documents:,} x {DIMS}"
    return Row(task, rank_seconds, "matrix product alone", product_seconds, 1.5, "within")


def _overhead(n_documents: int) -> Row:
    """A benchmark with MiniLM, baselines, intervals and stored runs, compared with the CPU time of its encoder."""
    rng = np.random.default_rng(0)
    words = np.array(
        [f"{first}{second}" for first in ("cal", "mer", "ton", "ver") for second in ("ing", "ed", "s", "er")]
    )
    corpus = [{"id": f"d{row}", "text": f"{row} {' '.join(rng.choice(words, 120))}"} for row in range(n_documents)]
    queries = [{"id": f"q{row}", "text": corpus[row]["text"][:90]} for row in range(min(225, n_documents))]
    qrels = [{"query-id": f"q{row}", "corpus-id": f"d{row}", "score": 1} for row in range(len(queries))]
    encoding_seconds = 0.0
    original = MeasuredEncoder.measured

    def timed_encode(encoder: MeasuredEncoder, texts: Sequence[str], role: Role) -> EncodedBatch:
        nonlocal encoding_seconds
        start = process_time()
        batch = original(encoder, texts, role)
        encoding_seconds += process_time() - start
        return batch

    MeasuredEncoder.measured = timed_encode  # type: ignore[method-assign]
    try:
        with TemporaryDirectory() as folder:
            start = process_time()
            data = bench.Retrieval(corpus, queries, qrels, name="r")
            bench.compare(["minilm"], [data], cache=Path(folder) / "vectors.sqlite", output=Path(folder) / "out")
            total = process_time() - start
    finally:
        MeasuredEncoder.measured = original  # type: ignore[method-assign]
    task = f"whole benchmark of MiniLM, {len(queries):,} queries x {n_documents:,} documents of 120 words"
    return Row(task, total, "its encoder alone", encoding_seconds, 1.05, "within")


if __name__ == "__main__":
    for row in rows("--quick" in sys.argv):
        print(" | ".join(row.cells))
