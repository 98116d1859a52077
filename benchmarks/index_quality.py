"""Indexes of the installed vector stores: recall with its interval, latency percentiles and throughput.

Wall time, because servers run in separate processes; all stores have the same vectors and queries.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.stores import DIMS, points, specs
from equipoise.models.stores import open_store
from equipoise.stats.formatting import format_interval, format_value
from equipoise.tasks.index_quality import measure_index

K = 10
HEAD = (
    "store",
    f"recall@{K}",
    "95 % interval",
    "p50, ms",
    "p95, ms",
    "p99, ms",
    "queries per second",
    "fill and build, s",
)


def curve(quick: bool) -> list[tuple[str, ...]]:
    """One line per store."""
    corpus, queries = points(2_000 if quick else 20_000, 100 if quick else 500)
    lines: list[tuple[str, ...]] = [HEAD]
    with TemporaryDirectory() as folder, ExitStack() as servers:
        for name, spec, options in specs(Path(folder), servers):
            with open_store(spec, dims=DIMS, **options) as store:
                measurement = measure_index(store, corpus, queries, K)
            result = measurement.result(name)
            recall = result[f"IndexRecall@{K}"]
            latencies = (result[f"Latency(p{percentile})"].value for percentile in (50, 95, 99))
            lines.append(
                (
                    f"{name}, {len(corpus):,} x {DIMS}",
                    format_value(recall.value, 4),
                    format_interval(recall.interval, 4),
                    *(format_value(latency, 2) for latency in latencies),
                    format_value(measurement.throughput, 0),
                    format_value(measurement.fill_seconds + measurement.build_seconds, 2),
                )
            )
    return lines
