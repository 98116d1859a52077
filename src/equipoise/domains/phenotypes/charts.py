"""The charts of a benchmark: metrics with intervals, hit rate over k, precision against recall, representations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from equipoise.evidence.ranking import Ranking
from equipoise.metrics.ranking import HitRate, Precision, Recall
from equipoise.report.charts.bars import metric_bars
from equipoise.report.charts.curves import accuracy_at_k_chart, precision_recall_chart

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import PhenotypeBenchmark
    from equipoise.report.charts.chart import Chart

MAX_K = 50
"""The largest k of the curves."""
BAR_METRICS = ("MRR", "HR@1", "HR@10", "nDCG@10", "R@10", "MAP@10", "MaxOntSim@10")
REPRESENTATION_METRICS = ("MRR", "HR@1", "HR@10")


def benchmark_charts(benchmark: PhenotypeBenchmark) -> Iterator[Chart]:
    """The charts that apply to this benchmark."""
    results = benchmark.results
    shown = [name for name in BAR_METRICS if all(name in result.names for result in results.values())]
    yield metric_bars({system: [result[name] for name in shown] for system, result in results.items()})
    rankings = {system: result.evidence for system, result in results.items() if isinstance(result.evidence, Ranking)}
    if rankings:
        ks = range(1, MAX_K + 1)
        first = next(iter(rankings.values()))
        yield accuracy_at_k_chart(
            {system: [_mean(HitRate(k).per_unit(each)) for k in ks] for system, each in rankings.items()},
            [_mean(HitRate(k).per_unit(first.uninformed())) for k in ks],
            "hit-rate-over-k",
            what="Hit rate",
            symbol="HR",
        )
        yield precision_recall_chart(
            {
                system: [(_mean(Recall(k).per_unit(each)), _mean(Precision(k).per_unit(each))) for k in ks]
                for system, each in rankings.items()
            }
        )
    if len({each.representation.name for each in benchmark.outcomes}) > 1:
        shown = [name for name in REPRESENTATION_METRICS if name in benchmark[0].names]
        against = any(not each.representation.multi_vector for each in benchmark.outcomes)
        yield metric_bars(
            {system: [result[name] for name in shown] for system, result in results.items()},
            name="single-against-multi-vector" if against else "strategies",
            title="Single against multi-vector" if against else "Aggregation strategies (multi-vector)",
        )


def _mean(values: object) -> float:
    return float(np.nanmean(np.asarray(values)))
