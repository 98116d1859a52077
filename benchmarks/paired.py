"""Paired randomisation tests of many metrics: one matrix product here, one metric at a time in scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.stats.paired_tests import sign_flip_test

METRICS, N_PERMUTATIONS, TARGET = 21, 1_000, 100.0


def rows(quick: bool) -> list[Row]:
    """CPU seconds for all metrics; scipy's time is that of one metric times the number of metrics."""
    units = 1_000 if quick else 10_000
    rng = np.random.default_rng(0)
    graded = rng.normal(0.6 / np.sqrt(units), 1.0, size=(units, METRICS))
    hits = np.sign(graded) * (np.abs(graded) > 1.0)
    return [_row("graded", graded), _row("hit-or-miss", hits)]


def _row(kind: str, differences: NDArray[Any]) -> Row:
    our_seconds, p = fastest(
        lambda: sign_flip_test(differences, n_permutations=N_PERMUTATIONS, rng=np.random.default_rng(1)), times=7
    )
    peer_seconds, scipy_p = fastest(lambda: _by_scipy(differences[:, 0]), times=2)
    # The permutations differ: near p = 0.5 two such p values almost always differ by less than 0.1.
    assert abs(float(p[0]) - scipy_p) <= 0.1, f"p is {p[0]} and scipy's is {scipy_p}"
    task = f"{METRICS} {kind} metrics, {len(differences):,} units, {N_PERMUTATIONS:,} permutations"
    return Row(task, our_seconds, "scipy.stats.permutation_test, one call per metric", METRICS * peer_seconds, TARGET)


def _by_scipy(differences: NDArray[Any]) -> float:
    from scipy.stats import permutation_test

    result = permutation_test(
        (differences,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        n_resamples=N_PERMUTATIONS,
        vectorized=True,
        batch=100,
        rng=np.random.default_rng(2),
    )
    return float(result.pvalue)
