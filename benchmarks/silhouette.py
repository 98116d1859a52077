"""Silhouettes on given labels: cluster sums and blocks here, the full distance matrix in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.evidence.space import Space
from equipoise.metrics.structure import Silhouette

DIMENSIONS, CLASSES = 384, 50


def rows(quick: bool) -> list[Row]:
    """CPU seconds of both packages on the same points; all silhouettes must be equal."""
    points = 2_000 if quick else 10_000
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, size=points)
    vectors = rng.normal(size=(points, DIMENSIONS)) + 0.5 * rng.normal(size=(CLASSES, DIMENSIONS))[labels]
    return [_row(distance, vectors, labels) for distance in ("cosine", "euclidean")]


def _row(distance: Any, vectors: NDArray[Any], labels: NDArray[Any]) -> Row:
    from sklearn.metrics import silhouette_samples

    metric, space = Silhouette(distance=distance), Space.of(vectors, labels=labels)
    our_seconds, our_values = fastest(lambda: metric.per_unit(space), times=5)
    peer_seconds, peer_values = fastest(lambda: silhouette_samples(vectors, labels, metric=distance), times=2)
    difference = float(np.abs(our_values - peer_values).max())
    assert difference <= 1e-9, f"the silhouettes of a point differ by {difference:g}"
    task = f"{distance} silhouette, {len(vectors):,} x {DIMENSIONS}, {CLASSES} classes"
    return Row(task, our_seconds, "scikit-learn", peer_seconds)
