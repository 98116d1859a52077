"""Distributions of per-unit values: equal values are in one bin, however they were computed."""

from __future__ import annotations

import numpy as np

from equipoise.report.breakdowns import _bins, _series


def test_values_that_differ_by_rounding_are_in_the_same_bin() -> None:
    other_values = np.linspace(0.0, 1.0, 41)
    exact = np.append(other_values, 0.2)
    computed = np.append(other_values, 1.0 - 0.8)  # 0.19999999999999996
    edges, _ = _bins(np.concatenate([exact, computed]))
    assert _series("a", exact, edges).counts == _series("a", computed, edges).counts
    assert sum(_series("a", exact, edges).counts) == len(exact)
