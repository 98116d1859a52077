"""Reliability against scikit-learn, and against models that are calibrated by construction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.stats.calibration_curve import reliability

units = st.lists(st.tuples(st.floats(0, 1, allow_nan=False), st.integers(0, 1)), min_size=2, max_size=60).filter(
    lambda pairs: len({right for _, right in pairs}) == 2
)


@given(units, st.integers(1, 12), st.sampled_from(["width", "mass"]))
def test_bins_are_those_of_scikit_learn(pairs: list[tuple[float, int]], bins: int, scheme: str) -> None:
    sure, right = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    found = reliability(sure, right, bins=bins, scheme=scheme, draws=1)
    strategy = {"width": "uniform", "mass": "quantile"}[scheme]
    accuracy, confidence = calibration_curve(right, sure, n_bins=bins, strategy=strategy)
    assert [each.accuracy for each in found.bins] == pytest.approx(accuracy.tolist())
    assert [each.confidence for each in found.bins] == pytest.approx(confidence.tolist(), abs=1e-12)
    assert sum(each.n for each in found.bins) == len(pairs)


@given(units, st.integers(1, 12))
def test_the_error_is_the_mean_gap_over_units(pairs: list[tuple[float, int]], bins: int) -> None:
    sure, right = zip(*pairs, strict=True)
    found = reliability(sure, right, bins=bins, draws=1)
    gaps = [each.n * abs(each.confidence - each.accuracy) for each in found.bins]
    assert found.ece == pytest.approx(sum(gaps) / len(pairs), abs=1e-12)
    assert found.ece <= found.largest_gap + 1e-12


def test_a_calibrated_model_shows_the_error_that_luck_gives() -> None:
    rng = np.random.default_rng(0)
    seen = []
    for trial in range(40):
        sure = rng.beta(3, 2, size=400)
        right = rng.random(400) < sure
        found = reliability(sure, right.astype(float), seed=trial, draws=200)
        seen.append((found.ece, found.calibrated, found.told_apart))
    ece, expected, apart = (np.array(side, dtype=float) for side in zip(*seen, strict=True))
    assert abs((ece - expected).mean()) < 4 * ece.std() / np.sqrt(len(ece))
    assert apart.mean() < 0.2  # one in twenty is expected


def test_a_model_that_is_too_sure_is_told_apart() -> None:
    rng = np.random.default_rng(1)
    sure = rng.uniform(0.7, 1.0, size=500)
    found = reliability(sure, (rng.random(500) < sure - 0.25).astype(float))
    assert found.told_apart
    assert found.ece == pytest.approx(0.25, abs=0.05)
    assert all(each.gap > 0 for each in found.bins if each.n > 50)


def test_the_same_seed_gives_the_same_figures_and_intervals_follow_the_users() -> None:
    rng = np.random.default_rng(2)
    sure, right = np.full(60, 0.5), np.repeat(rng.integers(0, 2, size=12), 5).astype(float)
    users = np.repeat(np.arange(12), 5)
    plain, again = (reliability(sure, right, seed=4) for _ in range(2))
    clustered = reliability(sure, right, seed=4, clusters=users)
    assert plain == again
    assert clustered.bins[0].interval.width > plain.bins[0].interval.width
    assert clustered.ece == plain.ece


def test_bad_input_is_refused_with_a_sentence() -> None:
    with pytest.raises(InputError, match="at position 0"):
        reliability([1.5], [1])
    with pytest.raises(InputError):
        reliability([], [])
    with pytest.raises(ShapeError, match=r"2 confidences.*1 right"):
        reliability([0.5, 0.5], [1])
    with pytest.raises(ParameterError):
        reliability([0.5], [1], scheme="depth")
    with pytest.raises(ParameterError, match="0 bins"):
        reliability([0.5], [1], bins=0)
    with pytest.raises(ShapeError, match=r"1 clusters.*2 units"):
        reliability([0.5, 0.5], [1, 0], clusters=np.array([1]))
