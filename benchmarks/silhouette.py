"""Silhouettes on given labels: cluster sums and blocks here, the full distance matrix in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.evidence.space import Space
from equipoise.metrics.class_separation import Silhouette

DIMENSIONS, CLASSES = 384, 50


def rows(quick: bool) -> list[Row]:
    """CPU seconds of both on the same points; the silhouette of every point must agree."""
    points = 2_000 if quick else 10_000
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, size=points)
    vectors = rng.normal(size=(points, DIMENSIONS)) + 0.5 * rng.normal(size=(CLASSES, DIMENSIONS))[labels]
    return [_row(distance, vectors, labels) for distance in ("cosine", "euclidean")]


def _row(distance: Any, vectors: NDArray[Any], labels: NDArray[Any]) -> Row:
    from sklearn.metrics import silhouette_samples

    metric, space = Silhouette(distance=distance), Space.of(vectors, labels=labels)
    ours, mine = fastest(lambda: metric.per_unit(space), times=5)
    theirs, peer = fastest(lambda: silhouette_samples(vectors, labels, metric=distance), times=2)
    gap = float(np.abs(mine - peer).max())
    assert gap <= 1e-9, f"the silhouettes of a point differ by {gap:g}"
    task = f"{distance} silhouette, {len(vectors):,} x {DIMENSIONS}, {CLASSES} classes"
    return Row(task, ours, "scikit-learn", theirs)
