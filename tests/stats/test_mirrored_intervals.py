"""The interval of A - B is the mirror image of that of B - A, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import evaluate
from equipoise.config import StatsConfig
from equipoise.evidence.labels import Labels
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.space import Space
from equipoise.runs.compare import compare
from equipoise.stats.bootstrap_mean import MIN_GROUPED_UNITS
from equipoise.stats.comparison import Contrast
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID

FAST = StatsConfig(n_resamples=100, n_permutations=99)
VALUES = {
    "hits": lambda rng, shape: (rng.random(shape) < 0.6).astype(float),
    "graded": lambda rng, shape: rng.random(shape),
    "coarse": lambda rng, shape: rng.integers(0, 4, shape) / 3,
    "skewed": lambda rng, shape: rng.random(shape) ** 20,
    "rare": lambda rng, shape: (rng.random(shape) < 0.01) * rng.random(shape),
}


def results_of(columns: np.ndarray, **changes: Any) -> list[Result]:
    """One system per column."""
    return [
        replace(result_from_values(name, range(len(columns)), {"m": column}, config=FAST), **changes)
        for name, column in zip("abcdef", columns.T, strict=False)
    ]


def assert_mirrored(results: Sequence[Result]) -> list[Contrast]:
    """Compare the systems in both orders; every pair has opposite differences and intervals, and the same p."""
    forward = compare(list(results), config=FAST).contrasts
    backward = {(c.metric, c.a, c.b): c for c in compare(list(results)[::-1], config=FAST).contrasts}
    for contrast in forward:
        other = backward[contrast.metric, contrast.b, contrast.a]
        assert contrast.difference == -other.difference or contrast.difference != contrast.difference
        assert contrast.interval == other.interval.mirrored()
        assert contrast.p == other.p or (contrast.p != contrast.p and other.p != other.p)
    return list(forward)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("n_units", [2, 8, 40, 300, MIN_GROUPED_UNITS + 5])
@pytest.mark.parametrize("structure", ["units", "clusters", "weights", "undefined"])
def test_means_of_units_have_mirrored_intervals(kind: str, n_units: int, structure: str) -> None:
    rng = np.random.default_rng([n_units, len(kind)])
    columns = VALUES[kind](rng, (n_units, 3))
    changes: dict[str, Any] = {}
    if structure == "clusters":
        changes["clusters"] = rng.integers(0, max(2, n_units // 3), n_units)
    elif structure == "weights":
        changes["weights"] = {"m": rng.integers(1, 4, n_units).astype(float)}
    elif structure == "undefined":
        columns[rng.random(columns.shape) < 0.1] = np.nan
    contrasts = assert_mirrored(results_of(columns, **changes))
    assert len(contrasts) == 3


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=2, max_size=24), st.booleans())
def test_balanced_differences_have_mirrored_intervals(differences: list[float], is_balanced: bool) -> None:
    signed = np.array([*differences, *(-value for value in differences)] if is_balanced else differences)
    columns = np.column_stack([np.maximum(signed, 0.0), np.maximum(-signed, 0.0)])
    (contrast,) = assert_mirrored(results_of(columns))
    if is_balanced and contrast.interval.known:
        assert contrast.interval.low == -contrast.interval.high


@pytest.mark.parametrize("n_units", [30, 200])
def test_metrics_of_the_whole_data_have_mirrored_intervals(n_units: int) -> None:
    rng = np.random.default_rng(n_units)
    truth = rng.normal(size=n_units)
    pairs = [
        evaluate(Pairs.of(truth + spread * rng.normal(size=n_units), truth), ["Spearman"], system=name, config=FAST)
        for name, spread in (("a", 1.0), ("b", 0.5), ("c", 1.1))
    ]
    true = rng.integers(0, 3, n_units)
    labels = [
        evaluate(
            Labels.of(true, np.where(rng.random(n_units) < share, true, 0)),
            ["F1(average=macro)"],
            system=name,
            config=FAST,
        )
        for name, share in (("a", 0.4), ("b", 0.8), ("c", 0.5))
    ]
    spaces = [
        evaluate(
            Space.of(rng.normal(size=(n_units, 3)) + shift * true[:, None], labels=true),
            ["Silhouette"],
            system=name,
            config=FAST,
        )
        for name, shift in (("a", 1.0), ("b", 2.0), ("c", 1.1))
    ]
    for results in (pairs, labels, spaces):
        contrasts = assert_mirrored(results)
        assert any(contrast.interval.known for contrast in contrasts)


@pytest.mark.parametrize("resample_ids", [("same", "same"), ("one", "other")])
@pytest.mark.parametrize("degrees", [None, 20])
def test_intervals_from_bootstrap_errors_are_mirrored(resample_ids: tuple[str, str], degrees: int | None) -> None:
    rng = np.random.default_rng(3)
    columns = VALUES["hits"](rng, (80, 2))
    results = [
        replace(
            result,
            errors={"m": rng.normal(0, 0.1, 101)},
            settings={RESAMPLE_ID: key} | ({} if degrees is None else {ERROR_DF: degrees}),
        )
        for result, key in zip(results_of(columns), resample_ids, strict=True)
    ]
    (contrast,) = assert_mirrored(results)
    assert contrast.interval.method == "bootstrap-errors"
