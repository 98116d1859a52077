"""Bootstrap intervals of 21 metrics at once, against scipy.stats.bootstrap metric by metric."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from equipoise.stats.resample import mean_intervals

METRICS, RESAMPLES = 21, 1000


def rows(quick: bool) -> list[dict[str, Any]]:
    """CPU seconds of both for each number of units, and their ratio.

    Graded values, so that ours resamples every column too; scipy is timed on ``peer_metrics`` of them, as
    its cost is the same for each, and the time is multiplied up. Both limits are compared on the way.
    """
    table = []
    for units in (1_000,) if quick else (1_000, 10_000, 100_000):
        # scipy's jackknife is quadratic: 100,000 units would take hours.
        peer_metrics = 0 if units > 10_000 else (1 if quick else 2)
        table.append(_row(units, peer_metrics, repeats=3 if quick else 5))
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    for row in rows(parser.parse_args().quick):
        peer = "  scipy not timed" if row["scipy_seconds"] is None else ""
        if not peer:
            peer = f"  scipy {row['scipy_seconds']:8.3f} s  ratio {row['ratio']:7.1f}"
            peer += f"  largest gap {row['largest_gap']:.1%} of the width"
        print(f"{row['units']:7} units, {METRICS} metrics: ours {row['seconds']:7.3f} s{peer}")


def _row(units: int, peer_metrics: int, repeats: int) -> dict[str, Any]:
    values = np.random.default_rng(0).beta(2.0, 3.0, (units, METRICS))
    seconds, ours = _fastest(
        lambda: mean_intervals(values, resamples=RESAMPLES, rng=np.random.default_rng(1)), repeats
    )
    row = {"units": units, "seconds": seconds, "scipy_seconds": None, "ratio": None, "largest_gap": None}
    if not peer_metrics:
        return row
    from scipy.stats import bootstrap

    spent, gaps = [], []
    for column in range(peer_metrics):
        taken, found = _fastest(
            lambda column=column: bootstrap(
                (values[:, column],),
                np.mean,
                n_resamples=RESAMPLES,
                vectorized=True,
                batch=max(1, 20_000_000 // units),
                method="BCa",
                rng=np.random.default_rng(2),
            ),
            min(repeats, 2),
        )
        spent.append(taken)
        ends = found.confidence_interval
        apart = max(abs(ends.low - ours[column].low), abs(ends.high - ours[column].high))
        gaps.append(apart / ours[column].width)
    scipy_seconds = METRICS * float(np.mean(spent))
    return row | {
        "scipy_seconds": scipy_seconds,
        "ratio": scipy_seconds / seconds,
        "largest_gap": max(gaps),
    }


def _fastest(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least CPU time of several runs, and what the last one gave."""
    times, answer = [], None
    for _ in range(repeats):
        start = process_time()
        answer = work()
        times.append(process_time() - start)
    return min(times), answer


if __name__ == "__main__":
    main()
