"""Bootstrap intervals of 21 metrics at once, against scipy.stats.bootstrap metric by metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.stats.resampling import mean_intervals

METRICS, RESAMPLES, TARGET = 21, 1_000, 10.0
SIZES = (1_000, 10_000, 100_000)
LARGEST_FOR_SCIPY = 10_000
"""Its jackknife is quadratic: 100,000 units would take hours."""


def rows(quick: bool) -> list[Row]:
    """CPU seconds for graded values, which have to be resampled by both.

    scipy is timed on two of the metrics, as its cost is the same for each, and the time is multiplied up.
    Its ends must lie near ours: the resamples differ, so a tenth of the width is allowed.
    """
    return [_row(units, peer_metrics=1 if quick else 2) for units in (SIZES[:1] if quick else SIZES)]


def _row(units: int, peer_metrics: int) -> Row:
    values = np.random.default_rng(0).beta(2.0, 3.0, (units, METRICS))
    task = f"bootstrap intervals, {METRICS} metrics, {units:,} units, {RESAMPLES:,} resamples"
    seconds, ours = fastest(
        lambda: mean_intervals(values, n_resamples=RESAMPLES, rng=np.random.default_rng(1)), times=5
    )
    if units > LARGEST_FOR_SCIPY:
        return Row(task, seconds, note="scipy's jackknife would take hours")
    spent = []
    for column in range(peer_metrics):
        peer_seconds, ends = fastest(lambda column=column: _by_scipy(values[:, column]), times=2)
        difference = max(abs(ends.low - ours[column].low), abs(ends.high - ours[column].high))
        assert difference <= 0.1 * ours[column].width, f"the ends are {difference:g} apart"
        spent.append(peer_seconds)
    return Row(task, seconds, "scipy.stats.bootstrap, a call a metric", METRICS * float(np.mean(spent)), TARGET)


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
