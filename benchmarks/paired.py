"""Paired randomisation tests of many metrics: one matrix product here, one metric at a time in scipy."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from equipoise.stats.paired import sign_flip

METRICS = 21
FLIPS = 1_000


def rows(quick: bool) -> list[dict[str, Any]]:
    """CPU seconds for all metrics, scipy's scaled up from one metric, and the largest difference of p."""
    units = 1_000 if quick else 10_000
    rng = np.random.default_rng(0)
    graded = rng.normal(0.6 / np.sqrt(units), 1.0, size=(units, METRICS))
    hits = np.sign(graded) * (np.abs(graded) > 1.0)
    return [_row("graded", graded, quick), _row("hit or miss", hits, quick)]


def _row(kind: str, differences: np.ndarray[Any, Any], quick: bool) -> dict[str, Any]:
    """One line of the table."""
    from scipy.stats import permutation_test

    def ours() -> Any:
        return sign_flip(differences, flips=FLIPS, rng=np.random.default_rng(1))

    def theirs() -> Any:
        return permutation_test(
            (differences[:, 0],),
            lambda sample, axis: sample.mean(axis=axis),
            permutation_type="samples",
            n_resamples=FLIPS,
            vectorized=True,
            batch=100,
            rng=np.random.default_rng(2),
        ).pvalue

    mine, p = fastest(ours, times=7)
    peer, oracle = fastest(theirs, times=2 if quick else 3)
    return {
        "task": f"sign flips, {METRICS} {kind} metrics, {len(differences):,} units, {FLIPS:,} flips",
        "peer": "scipy.stats.permutation_test, a call a metric",
        "ours_seconds": mine,
        "peer_seconds": peer * METRICS,
        "ratio": peer * METRICS / mine,
        "largest_difference": abs(float(p[0]) - float(oracle)),
    }


def fastest(work: Callable[[], Any], *, times: int) -> tuple[float, Any]:
    """The least CPU seconds of several calls, and what the last returned."""
    seconds = []
    for _ in range(times):
        start = process_time()
        answer = work()
        seconds.append(process_time() - start)
    return min(seconds), answer


def main() -> None:
    """Print the table."""
    for row in rows(quick=False):
        print(row)


if __name__ == "__main__":
    main()
