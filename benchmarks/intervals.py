"""Intervals of 21 metrics at once, compared with scipy.stats.bootstrap per metric and with the metrics alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest, fastest_in_turn
from equipoise.config import StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.stats.bootstrap_mean import mean_intervals
from equipoise.stats.estimate import estimate

METRICS, RESAMPLES, TARGET = 21, 1_000, 10.0
SIZES = (1_000, 10_000, 100_000)
LARGEST_FOR_SCIPY = 10_000
"""The largest size for scipy, whose jackknife is quadratic: 100,000 units would take hours."""


def rows(quick: bool) -> list[Row]:
    """CPU seconds for graded values, which both packages resample.

    scipy is timed on two of the metrics and the time is extrapolated, because its cost is the same for each.
    The bounds must agree within a tenth of the width, because the resamples differ.
    """
    sizes = SIZES[:1] if quick else SIZES
    return [
        *(_row(units, peer_metrics=1 if quick else 2) for units in sizes),
        _row_of_rankings(2_000 if quick else 10_000),
    ]


def _row(units: int, peer_metrics: int) -> Row:
    values = np.random.default_rng(0).beta(2.0, 3.0, (units, METRICS))
    task = f"bootstrap intervals, {METRICS} metrics, {units:,} units, {RESAMPLES:,} resamples"
    seconds, our_intervals = fastest(
        lambda: mean_intervals(values, config=StatsConfig(n_resamples=RESAMPLES), rng=np.random.default_rng(1)), times=5
    )
    if units > LARGEST_FOR_SCIPY:
        return Row(task, seconds, note="scipy's jackknife would take hours")
    peer_times = []
    for column in range(peer_metrics):
        peer_seconds, peer_interval = fastest(lambda column=column: _by_scipy(values[:, column]), times=2)
        difference = max(
            abs(peer_interval.low - our_intervals[column].low), abs(peer_interval.high - our_intervals[column].high)
        )
        assert difference <= 0.1 * our_intervals[column].width, f"the bounds differ by {difference:g}"
        peer_times.append(peer_seconds)
    return Row(
        task, seconds, "scipy.stats.bootstrap, one call per metric", METRICS * float(np.mean(peer_times)), TARGET
    )


def _row_of_rankings(queries: int) -> Row:
    """The time for intervals of an evaluation compared with the metrics alone; the target is at most twice as much."""
    rng = np.random.default_rng(0)
    n_relevant = rng.integers(1, 6, queries)
    scores = rng.normal(size=(queries, 1_000)).astype(np.float32)
    relevant = [rng.choice(1_000, size=count, replace=False) for count in n_relevant]
    for row, items in zip(scores, relevant, strict=True):
        row[items] += 2.5
    lists = np.argsort(-scores, axis=1)[:, :100]
    ranking = Ranking.from_lists(lists.tolist(), [items.tolist() for items in relevant])
    names = ["MRR", *(f"{name}@{k}" for name in ("HR", "nDCG", "R", "P", "MAP") for k in (1, 3, 5, 10))]
    metrics = parse_metrics(names, evidence=Ranking)
    metric_seconds, total_seconds = fastest_in_turn(
        lambda: [metric.measure(ranking) for metric in metrics],
        lambda: estimate(ranking, metrics, chance=False),
        times=9,
    )
    task = f"intervals of {METRICS} ranking metrics, {queries:,} queries, 2,000 resamples"
    return Row(task, total_seconds - metric_seconds, "the metrics themselves", metric_seconds, 2.0, goal="within")


def _by_scipy(values: Any) -> Any:
    from scipy.stats import bootstrap

    return bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        vectorized=True,
        batch=max(1, 20_000_000 // len(values)),
        method="BCa",
        rng=np.random.default_rng(2),
    ).confidence_interval
