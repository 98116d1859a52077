"""Reliability against scikit-learn, and against models that are calibrated by construction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from equipoise.config import StatsConfig
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.stats.calibration_curve import reliability

units = st.lists(st.tuples(st.floats(0, 1, allow_nan=False), st.integers(0, 1)), min_size=2, max_size=60).filter(
    lambda pairs: len({right for _, right in pairs}) == 2
)


@given(units, st.integers(1, 12))
def test_bins_equal_scikit_learn(pairs: list[tuple[float, int]], bins: int) -> None:
    confidences, hits = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    curve = reliability(confidences, hits, bins=bins, n_simulations=1)
    expected_accuracy, expected_confidence = calibration_curve(hits, confidences, n_bins=bins)
    assert [bin_.accuracy for bin_ in curve.bins] == pytest.approx(expected_accuracy.tolist())
    assert [bin_.confidence for bin_ in curve.bins] == pytest.approx(expected_confidence.tolist(), abs=1e-12)
    assert sum(bin_.n for bin_ in curve.bins) == len(pairs)


@given(units, st.integers(1, 12))
def test_the_error_is_the_mean_gap_over_units(pairs: list[tuple[float, int]], bins: int) -> None:
    confidences, hits = zip(*pairs, strict=True)
    curve = reliability(confidences, hits, bins=bins, n_simulations=1)
    gaps = [bin_.n * abs(bin_.confidence - bin_.accuracy) for bin_ in curve.bins]
    assert curve.ece == pytest.approx(sum(gaps) / len(pairs), abs=1e-12)
    assert curve.ece <= curve.largest_gap + 1e-12


def test_a_calibrated_model_has_the_error_of_chance() -> None:
    rng = np.random.default_rng(0)
    results = []
    for trial in range(40):
        confidences = rng.beta(3, 2, size=400)
        hits = rng.random(400) < confidences
        curve = reliability(confidences, hits.astype(float), config=StatsConfig(seed=trial), n_simulations=200)
        results.append((curve.ece, curve.calibrated, curve.is_miscalibrated))
    ece, calibrated, significant = (np.array(side, dtype=float) for side in zip(*results, strict=True))
    assert abs((ece - calibrated).mean()) < 4 * ece.std() / np.sqrt(len(ece))
    assert significant.mean() < 0.2  # 5 % is expected


def test_the_error_of_an_overconfident_model_is_significant() -> None:
    rng = np.random.default_rng(1)
    confidences = rng.uniform(0.7, 1.0, size=500)
    curve = reliability(confidences, (rng.random(500) < confidences - 0.25).astype(float))
    assert curve.is_miscalibrated
    assert curve.ece == pytest.approx(0.25, abs=0.05)
    assert all(bin_.gap > 0 for bin_ in curve.bins if bin_.n > 50)


def test_the_same_seed_gives_the_same_values_and_intervals_are_clustered_by_users() -> None:
    rng = np.random.default_rng(2)
    confidences, hits = np.full(60, 0.5), np.repeat(rng.integers(0, 2, size=12), 5).astype(float)
    users = np.repeat(np.arange(12), 5)
    first, repeated = (reliability(confidences, hits, config=StatsConfig(seed=4)) for _ in range(2))
    clustered = reliability(confidences, hits, config=StatsConfig(seed=4), clusters=users)
    assert first == repeated
    assert clustered.bins[0].interval.width > first.bins[0].interval.width
    assert clustered.ece == first.ece


def test_bad_input_is_an_error() -> None:
    with pytest.raises(InputError, match="at position 0"):
        reliability([1.5], [1])
    with pytest.raises(InputError):
        reliability([], [])
    with pytest.raises(ShapeError, match=r"2 confidences.*1 right"):
        reliability([0.5, 0.5], [1])
    with pytest.raises(ParameterError, match="0 bins"):
        reliability([0.5], [1], bins=0)
    with pytest.raises(ShapeError, match=r"1 clusters.*2 units"):
        reliability([0.5, 0.5], [1, 0], clusters=np.array([1]))
