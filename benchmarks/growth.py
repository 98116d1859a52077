"""Nanoseconds per score as the number of queries and the depth grow: constant if the cost grows linearly."""

from __future__ import annotations

from benchmarks import peers
from benchmarks.retrieval import Results
from benchmarks.timing import fastest
from equipoise.evidence.ranking import Ranking

QUERIES = (1_000, 10_000, 100_000)
DEPTHS = (10, 100, 1_000)
RELEVANT = 2


def curve(quick: bool) -> list[tuple[str, ...]]:
    """Lines of (queries, depth, dicts, arrays), costs in nanoseconds per score; the first line is the header."""
    sizes = [(queries, 100) for queries in QUERIES] + [(10_000, depth) for depth in DEPTHS]
    if quick:
        sizes = [(queries // 10, depth) for queries, depth in sizes]
    lines: list[tuple[str, ...]] = [("queries", "depth", "from dicts, ns per score", "from arrays, ns per score")]
    for queries, depth in sizes:
        results = Results.of_size(queries, depth, RELEVANT)
        qrels, run = results.as_dicts()
        seconds = (
            fastest(lambda q=qrels, r=run: peers.by_equipoise(Ranking.from_runs(q, r)), times=3)[0],
            fastest(lambda r=results: peers.by_equipoise(Ranking.from_lists(r.retrieved, r.relevant)), times=3)[0],
        )
        costs = (f"{duration / (queries * depth) * 1e9:.1f}" for duration in seconds)
        lines.append((f"{queries:,}", f"{depth:,}", *costs))
    return lines
