"""Indexes of every store that is installed: recall with its interval, latency percentiles and throughput.

Wall time, since a server works in a process of its own; the same vectors and queries for all of them.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.stores import DIMS, points, specs
from equipoise.embed.stores import store
from equipoise.stats.numbers import figure, span
from equipoise.tasks.index_quality import index_quality

K = 10
HEAD = (
    "store",
    f"recall@{K}",
    "95 % interval",
    "p50, ms",
    "p95, ms",
    "p99, ms",
    "queries a second",
    "fill and build, s",
)


def curve(quick: bool) -> list[tuple[str, ...]]:
    """A line a store."""
    corpus, queries = points(2_000 if quick else 20_000, 100 if quick else 500)
    lines: list[tuple[str, ...]] = [HEAD]
    with TemporaryDirectory() as folder, ExitStack() as servers:
        for name, spec, options in specs(Path(folder), servers):
            with store(spec, dims=DIMS, **options) as held:
                found = index_quality(held, corpus, queries, K)
            result = found.result(name)
            recall = result[f"IndexRecall@{K}"]
            waits = (result[f"Latency(p{percentile})"].value for percentile in (50, 95, 99))
            lines.append(
                (
                    f"{name}, {len(corpus):,} x {DIMS}",
                    figure(recall.value, 4),
                    span(recall.interval, 4),
                    *(figure(wait, 2) for wait in waits),
                    figure(found.throughput, 0),
                    figure(found.fill_seconds + found.build_seconds, 2),
                )
            )
    return lines
