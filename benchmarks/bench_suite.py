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
from equipoise.models.encoder import EncodedBatch
from equipoise.stats.result import Result
from equipoise.types import Role

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "domains" / "bench"))

DIMS = 384
FEW = StatsConfig(n_resamples=200, n_permutations=200)


def rows(quick: bool) -> list[Row]:
    """Retrieval, similarity and bitext of both programs, and full-depth ranks against the matrix product."""
    import mteb  # noqa: F401  its import is not part of the times
    from mteb_harness import GivenVectors

    model = _random_model(GivenVectors)
    kinds = [
        _retrieval(model, *((200, 2_000) if quick else (1_000, 20_000))),
        _similarity(model, 300 if quick else 1_500),
        _bitext(model, 300 if quick else 1_500),
    ]
    total = Row(
        "the suite of these three", sum(row.ours for row in kinds), "mteb", sum(row.theirs or 0 for row in kinds), 5.0
    )
    return [*kinds, total, _product(*((200, 5_000) if quick else (1_000, 100_000))), _overhead(20 if quick else 1_400)]


def _random_model(base: Any) -> Any:
    """A model with random vectors that are made once per text."""

    class Random(base):  # type: ignore[misc]
        """The vector of a text follows from its number."""

        def of(self, text: str) -> Any:
            if text not in self.vectors:
                seed = int(text.rsplit(" ", 1)[1])
                rng, shared = np.random.default_rng([len(text), seed]), np.random.default_rng(seed)
                self.vectors[text] = (rng.standard_normal(DIMS) + shared.standard_normal(DIMS)).astype(np.float32)
            return self.vectors[text]

    return Random()


def _opened(model: Any) -> OpenSystem:
    return SystemPool(cache=False).open(SystemSpec("given", model))


def _ours(data: BenchData, model: Any) -> tuple[float, Result]:
    """CPU seconds from vectors to scores with intervals, the vectors being in memory."""
    queries, documents = data.texts
    model.encode([*queries, *documents])
    return fastest(lambda: score(data, data.observe(_opened(model)), "given", FEW), times=2)


def _checked(task: str, ours: tuple[float, Result], theirs: tuple[float, float], metric: str, tolerance: float) -> Row:
    value = ours[1][metric].value
    if abs(value - theirs[1]) > tolerance:
        raise SystemExit(f"{task}: {metric} is {value} and mteb's is {theirs[1]}")
    return Row(task, ours[0], "mteb", theirs[0], note=f"{metric} equal; ours with intervals and chance levels")


def _retrieval(model: Any, n_queries: int, n_documents: int) -> Row:
    from datasets import Dataset
    from mteb_harness import mteb_scores

    corpus = [{"id": f"d{row}", "title": "", "text": f"document {row}"} for row in range(n_documents)]
    queries = [{"id": f"q{row}", "text": f"query {row}"} for row in range(n_queries)]
    truth = {f"q{row}": {f"d{row}": 1, f"d{row + n_queries}": 1} for row in range(n_queries)}
    qrels = [{"query-id": q, "corpus-id": d, "score": gain} for q, gains in truth.items() for d, gain in gains.items()]
    ours = _ours(bench.Retrieval(corpus, queries, qrels, name="r"), model)
    given = {
        "corpus": Dataset.from_list(corpus),
        "queries": Dataset.from_list(queries),
        "relevant_docs": truth,
        "top_ranked": None,
    }
    seconds, scores = fastest(lambda: mteb_scores("Retrieval", given, model, "ndcg_at_10"), times=1)
    task = f"retrieval, {n_queries:,} queries x {n_documents:,} documents x {DIMS}"
    return _checked(task, ours, (seconds, scores["ndcg_at_10"]), "nDCG@10", 6e-6)


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
    with_intervals, result = _ours(data, model)
    metrics = parse_metrics(data.metrics)

    def scores_alone() -> None:
        observed = data.observe(_opened(model)).evidence
        for metric in metrics:
            metric.measure(observed)

    ours = fastest(scores_alone, times=3)[0], result
    given = DatasetDict(test=Dataset.from_list(_pairs(count)))
    seconds, scores = fastest(lambda: mteb_scores("STS", given, model, "cosine_spearman"), times=3)
    row = _checked(f"similarity, {count:,} pairs", ours, (seconds, scores["cosine_spearman"]), "Spearman", 1e-6)
    return replace(row, note=f"Spearman equal; scores alone, with intervals {with_intervals:.2g} s")


def _bitext(model: Any, count: int) -> Row:
    from datasets import Dataset, DatasetDict
    from mteb_harness import mteb_scores

    pairs = [{"sentence1": f"one {row}", "sentence2": f"other {row}"} for row in range(count)]
    flipped = [{"sentence1": row["sentence2"], "sentence2": row["sentence1"]} for row in pairs]
    ours = _ours(bench.Bitext(pairs, name="b"), model)

    def theirs() -> float:
        both = [
            mteb_scores("BitextMining", DatasetDict(test=Dataset.from_list(side)), model, "accuracy")["accuracy"]
            for side in (pairs, flipped)
        ]
        return float(np.mean(both))

    return _checked(f"bitext, {count:,} pairs, both directions", ours, fastest(theirs, times=1), "HR@1", 1e-6)


def _product(n_queries: int, n_documents: int) -> Row:
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((n_queries, DIMS), dtype=np.float32)
    corpus = rng.standard_normal((n_documents, DIMS), dtype=np.float32)
    relevant = [[row, row + 1] for row in range(n_queries)]

    def product() -> None:
        for first in range(0, n_queries, 100):
            queries[first : first + 100] @ corpus.T

    ranks, bare = fastest_in_turn(
        lambda: Ranking.from_embeddings(queries, corpus, relevant, geometry="dot"), product, times=3
    )
    task = f"full-depth ranks, {n_queries:,} x {n_documents:,} x {DIMS}"
    return Row(task, ranks, "matrix product alone", bare, 1.5, "within")


def _overhead(n_documents: int) -> Row:
    """A whole benchmark with MiniLM, baselines, intervals and stored runs, against the CPU time of its encoder."""
    rng = np.random.default_rng(0)
    words = np.array(
        [f"{first}{second}" for first in ("cal", "mer", "ton", "ver") for second in ("ing", "ed", "s", "er")]
    )
    corpus = [{"id": f"d{row}", "text": f"{row} {' '.join(rng.choice(words, 120))}"} for row in range(n_documents)]
    queries = [{"id": f"q{row}", "text": corpus[row]["text"][:90]} for row in range(min(225, n_documents))]
    qrels = [{"query-id": f"q{row}", "corpus-id": f"d{row}", "score": 1} for row in range(len(queries))]
    encoding = 0.0
    inner = MeasuredEncoder.measured

    def timed(encoder: MeasuredEncoder, texts: Sequence[str], role: Role) -> EncodedBatch:
        nonlocal encoding
        start = process_time()
        batch = inner(encoder, texts, role)
        encoding += process_time() - start
        return batch

    MeasuredEncoder.measured = timed  # type: ignore[method-assign]
    try:
        with TemporaryDirectory() as folder:
            start = process_time()
            data = bench.Retrieval(corpus, queries, qrels, name="r")
            bench.compare(["minilm"], [data], cache=Path(folder) / "vectors.sqlite", output=Path(folder) / "out")
            total = process_time() - start
    finally:
        MeasuredEncoder.measured = inner  # type: ignore[method-assign]
    task = f"whole benchmark of MiniLM, {len(queries):,} queries x {n_documents:,} documents of 120 words"
    return Row(task, total, "its encoder alone", encoding, 1.05, "within")


if __name__ == "__main__":
    for row in rows("--quick" in sys.argv):
        print(" | ".join(row.cells))
