"""Calibration against scikit-learn and torch, and against models that are calibrated by construction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import log_loss

from equipoise.config import StatsConfig
from equipoise.domains.places.metrics import are_probabilities, probability_columns
from equipoise.domains.places.score import score_places
from equipoise.errors import InputError, NotFiniteError

ROWS, CLASSES = 300, 12


def random_logits(seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, scale, (ROWS, CLASSES))
    return logits, rng.integers(0, CLASSES, ROWS)


def softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_log_loss_and_brier_score_equal_scikit_learn_and_the_definition(dtype):
    logits, targets = random_logits()
    logits = logits.astype(dtype)
    columns = probability_columns(logits, targets, ks=(1, 3))
    probabilities = softmax(logits.astype(np.float64))
    assert columns.nll.mean() == pytest.approx(log_loss(targets, probabilities, labels=np.arange(CLASSES)), abs=1e-12)
    np.testing.assert_allclose(columns.brier, ((probabilities - np.eye(CLASSES)[targets]) ** 2).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(columns.top[3], np.sort(probabilities, axis=1)[:, -3:].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(columns.top[1], probabilities.max(axis=1), atol=1e-12)


@pytest.mark.engines("torch")
def test_log_loss_equals_the_cross_entropy_of_torch_also_for_tensors():
    torch = pytest.importorskip("torch")
    logits, targets = random_logits()
    tensor = torch.from_numpy(logits).requires_grad_()
    columns = probability_columns(tensor, targets)
    expected = torch.nn.functional.cross_entropy(tensor, torch.from_numpy(targets), reduction="none")
    np.testing.assert_allclose(columns.nll, expected.detach().numpy(), atol=1e-12)


@given(arrays.arrays(np.float64, (5, 4), elements=st.floats(-30, 30)), st.integers(-100, 100))
def test_adding_a_constant_to_the_logits_changes_nothing(logits, shift):
    targets = np.arange(5) % 4
    original, shifted = (
        probability_columns(scores, targets, ks=(1, 2), probabilities=False) for scores in (logits, logits + shift)
    )
    np.testing.assert_allclose(original.target, shifted.target, atol=1e-9)
    np.testing.assert_allclose(original.top[2], shifted.top[2], atol=1e-9)


def test_probabilities_are_recognised_and_give_the_same_as_their_logarithms():
    logits, targets = random_logits()
    probabilities = softmax(logits)
    assert are_probabilities(probabilities)
    assert not are_probabilities(logits)
    assert not are_probabilities(np.log(probabilities))
    from_probabilities, from_logarithms = (
        probability_columns(probabilities, targets),
        probability_columns(np.log(probabilities), targets),
    )
    assert not from_probabilities.from_softmax
    assert from_logarithms.from_softmax
    np.testing.assert_allclose(from_probabilities.nll, from_logarithms.nll, atol=1e-12)
    np.testing.assert_allclose(from_probabilities.brier, from_logarithms.brier, atol=1e-12)


def test_padding_has_no_probability():
    logits, targets = random_logits()
    padded_logits = np.column_stack([np.full(ROWS, 50.0), logits[:, :5], np.full(ROWS, 50.0), logits[:, 5:]])
    padded_targets = np.where(targets < 5, targets + 1, targets + 2)
    padded, plain = (
        probability_columns(padded_logits, padded_targets, padding=[0, 6]),
        probability_columns(logits, targets),
    )
    np.testing.assert_allclose(padded.nll, plain.nll, atol=1e-12)
    np.testing.assert_allclose(padded.brier, plain.brier, atol=1e-12)


def test_block_size_does_not_change_the_columns(monkeypatch):
    logits, targets = random_logits()
    single_block = probability_columns(logits, targets, ks=(1, 5))
    monkeypatch.setattr("equipoise.domains.places.metrics.BLOCK_SCORES", 7 * CLASSES)
    blocks = probability_columns(logits, targets, ks=(1, 5))
    assert (single_block.nll == blocks.nll).all()
    assert (single_block.top[5] == blocks.top[5]).all()


def test_scores_without_a_softmax_are_an_error_with_the_row():
    logits, targets = random_logits()
    logits[17, 3] = np.inf
    with pytest.raises(NotFiniteError, match="row 17 "):
        probability_columns(logits, targets)
    scores = score_places(logits, targets)
    assert scores.calibration is None
    assert any("row 17" in note for note in scores.notes)
    with pytest.raises(InputError):
        score_places(logits, targets, probabilities=True)


def test_targets_of_probability_zero_have_infinite_log_loss_and_are_counted_and_left_out():
    logits, targets = random_logits()
    logits[5, targets[5]] = -np.inf
    calibration = score_places(logits, targets).calibration
    assert calibration.impossible == 1
    assert "NLL" not in calibration.result.estimates
    assert np.isfinite(calibration.result["Brier"].value)


@pytest.mark.slow
def test_targets_sampled_from_the_probabilities_are_calibrated_and_sharper_logits_are_not():
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1.5, (4000, CLASSES))
    probabilities = softmax(logits)
    targets = (probabilities.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    calibrated, overconfident = (
        score_places(scores, targets, config=StatsConfig(n_resamples=200)).calibration
        for scores in (logits, 3 * logits)
    )
    assert set(calibrated.curves) == {1, 3, 5, 10}
    for k in calibrated.curves:
        assert calibrated.curves[k].ece <= 1.5 * calibrated.curves[k].calibrated_high
        assert overconfident.curves[k].ece > overconfident.curves[k].calibrated_high
    assert calibrated.result["NLL"].value < overconfident.result["NLL"].value
