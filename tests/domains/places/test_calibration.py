"""Calibration against scikit-learn and torch, and against models that are calibrated by construction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import log_loss

from equipoise.domains.places.metrics import are_probabilities, probability_columns
from equipoise.domains.places.score import score_places
from equipoise.errors import InputError, NotFiniteError

ROWS, CLASSES = 300, 12


def made(seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, scale, (ROWS, CLASSES))
    return logits, rng.integers(0, CLASSES, ROWS)


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_log_loss_and_brier_score_are_those_of_scikit_learn_and_of_the_definition(dtype):
    logits, targets = made()
    logits = logits.astype(dtype)
    columns = probability_columns(logits, targets, ks=(1, 3))
    shares = softmax(logits.astype(np.float64))
    assert columns.nll.mean() == pytest.approx(log_loss(targets, shares, labels=np.arange(CLASSES)), abs=1e-12)
    np.testing.assert_allclose(columns.brier, ((shares - np.eye(CLASSES)[targets]) ** 2).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(columns.top[3], np.sort(shares, axis=1)[:, -3:].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(columns.top[1], shares.max(axis=1), atol=1e-12)


@pytest.mark.engines("torch")
def test_log_loss_is_the_cross_entropy_of_torch_also_for_tensors():
    torch = pytest.importorskip("torch")
    logits, targets = made()
    tensor = torch.from_numpy(logits).requires_grad_()
    columns = probability_columns(tensor, targets)
    expected = torch.nn.functional.cross_entropy(tensor, torch.from_numpy(targets), reduction="none")
    np.testing.assert_allclose(columns.nll, expected.detach().numpy(), atol=1e-12)


@given(arrays.arrays(np.float64, (5, 4), elements=st.floats(-30, 30)), st.integers(-100, 100))
def test_adding_a_constant_to_the_logits_changes_nothing(logits, shift):
    targets = np.arange(5) % 4
    one, other = (
        probability_columns(each, targets, ks=(1, 2), probabilities=False) for each in (logits, logits + shift)
    )
    np.testing.assert_allclose(one.target, other.target, atol=1e-9)
    np.testing.assert_allclose(one.top[2], other.top[2], atol=1e-9)


def test_probabilities_are_recognised_and_give_the_same_as_their_logarithms():
    logits, targets = made()
    shares = softmax(logits)
    assert are_probabilities(shares)
    assert not are_probabilities(logits)
    assert not are_probabilities(np.log(shares))
    one, other = probability_columns(shares, targets), probability_columns(np.log(shares), targets)
    assert not one.from_softmax
    assert other.from_softmax
    np.testing.assert_allclose(one.nll, other.nll, atol=1e-12)
    np.testing.assert_allclose(one.brier, other.brier, atol=1e-12)


def test_padding_has_no_probability():
    logits, targets = made()
    wide = np.column_stack([np.full(ROWS, 50.0), logits[:, :5], np.full(ROWS, 50.0), logits[:, 5:]])
    codes = np.where(targets < 5, targets + 1, targets + 2)
    one, other = probability_columns(wide, codes, padding=[0, 6]), probability_columns(logits, targets)
    np.testing.assert_allclose(one.nll, other.nll, atol=1e-12)
    np.testing.assert_allclose(one.brier, other.brier, atol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    logits, targets = made()
    whole = probability_columns(logits, targets, ks=(1, 5))
    monkeypatch.setattr("equipoise.domains.places.metrics.BLOCK_SCORES", 7 * CLASSES)
    parts = probability_columns(logits, targets, ks=(1, 5))
    assert (whole.nll == parts.nll).all()
    assert (whole.top[5] == parts.top[5]).all()


def test_scores_without_a_softmax_are_an_error_that_names_the_row():
    logits, targets = made()
    logits[17, 3] = np.inf
    with pytest.raises(NotFiniteError, match="row 17 "):
        probability_columns(logits, targets)
    scores = score_places(logits, targets)
    assert scores.calibration is None
    assert any("row 17" in note for note in scores.notes)
    with pytest.raises(InputError):
        score_places(logits, targets, probabilities=True)


def test_an_impossible_target_has_infinite_log_loss_which_is_counted_and_left_out():
    logits, targets = made()
    logits[5, targets[5]] = -np.inf
    calibration = score_places(logits, targets).calibration
    assert calibration.impossible == 1
    assert "NLL" not in calibration.result.estimates
    assert np.isfinite(calibration.result["Brier"].value)


@pytest.mark.slow
def test_targets_drawn_from_the_probabilities_are_calibrated_at_every_cutoff_and_sharper_ones_are_not():
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1.5, (4000, CLASSES))
    shares = softmax(logits)
    targets = (shares.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    honest, sharp = (score_places(scores, targets, n_resamples=200).calibration for scores in (logits, 3 * logits))
    assert set(honest.curves) == {1, 3, 5, 10}
    for k in honest.curves:
        assert honest.curves[k].ece <= 1.5 * honest.curves[k].calibrated_high
        assert sharp.curves[k].ece > sharp.curves[k].calibrated_high
    assert honest.result["NLL"].value < sharp.result["NLL"].value
