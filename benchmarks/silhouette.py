"""Silhouettes on given labels: cluster sums and blocks here, the full distance matrix in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.space import Space
from equipoise.metrics.space import Silhouette

DIMENSIONS = 384
CLASSES = 50


def rows(quick: bool) -> list[dict[str, Any]]:
    """CPU seconds of both on the same points, their ratio, and the largest difference of any point."""
    points = 2_000 if quick else 10_000
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, size=points)
    vectors = rng.normal(size=(points, DIMENSIONS)) + 0.5 * rng.normal(size=(CLASSES, DIMENSIONS))[labels]
    return [_row("cosine", vectors, labels, quick), _row("euclidean", vectors, labels, quick)]


def _row(distance: Any, vectors: NDArray[Any], labels: NDArray[Any], quick: bool) -> dict[str, Any]:
    """One line of the table."""
    from sklearn.metrics import silhouette_samples

    metric, space = Silhouette(distance=distance), Space.of(vectors, labels=labels)
    ours, mine = fastest(lambda: metric.per_unit(space), times=5)
    theirs, peer = fastest(
        lambda: silhouette_samples(vectors, labels, metric=distance), times=2 if quick else 3
    )
    return {
        "task": f"{distance} silhouette, {len(vectors):,} x {DIMENSIONS}, {CLASSES} classes",
        "peer": "scikit-learn",
        "ours_seconds": ours,
        "peer_seconds": theirs,
        "ratio": theirs / ours,
        "largest_difference": float(np.abs(mine - peer).max()),
    }


def fastest(work: Callable[[], Any], *, times: int) -> tuple[float, Any]:
    """The least CPU seconds of several calls, and what the last returned."""
    seconds = []
    for _ in range(times):
        start = process_time()
        answer = work()
        seconds.append(process_time() - start)
    return min(seconds), answer


if __name__ == "__main__":
    for row in rows(quick=False):
        print(row)
