"""Every score of ``score_places`` against numpy, scikit-learn and torch, to 1e-12."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, top_k_accuracy_score

from equipoise.config import StatsConfig
from equipoise.domains.places.geography import EARTH_RADIUS_KM
from equipoise.domains.places.score import score_places

TOLERANCE = {"rel": 0.0, "abs": 1e-12}
SHAPES = [(500, 11), (120, 1187)]


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def batch(request):
    rows, classes = request.param
    rng = np.random.default_rng(classes)
    logits, targets = rng.normal(size=(rows, classes)), rng.integers(0, classes, rows)
    logits[np.arange(rows), targets] += rng.normal(2, 1, rows)
    coordinates = np.column_stack([rng.normal(47.4, 0.05, classes), rng.normal(8.5, 0.05, classes)])
    users = rng.integers(0, 9, rows)
    return logits, targets, users, coordinates


@pytest.fixture
def scores(batch):
    logits, targets, users, coordinates = batch
    return score_places(logits, targets, users=users, coordinates=coordinates, config=StatsConfig(n_resamples=50))


def sorted_ranks_of(logits, targets):
    """By sorting every row, as next-location projects do."""
    order = np.argsort(-logits, axis=1)
    return np.argmax(order == targets[:, None], axis=1) + 1


def test_scores_of_ranks_equal_sorting_and_scikit_learn(batch, scores):
    logits, targets, users, _ = batch
    target_ranks = sorted_ranks_of(logits, targets)
    gains = np.where(target_ranks <= 10, 1.0 / np.log2(target_ranks + 1.0), 0.0)
    for k in (1, 3, 5, 10):
        value = scores.all[f"Acc@{k}"].value
        assert value == pytest.approx(np.mean(target_ranks <= k), **TOLERANCE)
        labels = np.arange(logits.shape[1])
        assert value == pytest.approx(top_k_accuracy_score(targets, logits, k=k, labels=labels), **TOLERANCE)
    assert scores.all["MRR"].value == pytest.approx(np.mean(1.0 / target_ranks), **TOLERANCE)
    assert scores.all["nDCG@10"].value == pytest.approx(gains.mean(), **TOLERANCE)
    by_user = np.mean([np.mean(1.0 / target_ranks[users == user]) for user in np.unique(users)])
    assert scores.by_user["MRR"].value == pytest.approx(by_user, **TOLERANCE)


def test_f1_equals_scikit_learn(batch, scores):
    logits, targets, _, _ = batch
    for name, average in (("F1", "weighted"), ("F1(average=macro)", "macro"), ("F1(average=micro)", "micro")):
        expected = f1_score(targets, logits.argmax(axis=1), average=average, zero_division=0)
        assert scores.all[name].value == pytest.approx(expected, **TOLERANCE)


def test_calibration_equals_scikit_learn_and_the_definitions(batch, scores):
    logits, targets, _, _ = batch
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    result = scores.calibration.result
    expected = log_loss(targets, probabilities, labels=np.arange(logits.shape[1]))
    assert result["NLL"].value == pytest.approx(expected, **TOLERANCE)
    errors = probabilities.copy()
    errors[np.arange(len(targets)), targets] -= 1.0
    assert result["Brier"].value == pytest.approx(np.mean((errors**2).sum(axis=1)), **TOLERANCE)
    for k, value in scores.calibration.ece.items():
        confidence, hits = np.sort(probabilities, axis=1)[:, -k:].sum(axis=1), sorted_ranks_of(logits, targets) <= k
        assert value == pytest.approx(binned_error(confidence, hits), **TOLERANCE)


def binned_error(confidence, hits, bins=15):
    """The expected calibration error, in a loop over the bins."""
    total = 0.0
    for index in range(bins):
        inside = (confidence > index / bins) & (confidence <= (index + 1) / bins)
        if inside.any():
            total += inside.mean() * abs(confidence[inside].mean() - hits[inside].mean())
    return total


@pytest.mark.engines("torch")
def test_log_loss_equals_torch(batch, scores):
    torch = pytest.importorskip("torch")
    logits, targets, _, _ = batch
    expected = torch.nn.functional.cross_entropy(torch.from_numpy(logits), torch.from_numpy(targets))
    assert scores.calibration.result["NLL"].value == pytest.approx(float(expected), **TOLERANCE)
    sorted_ranks = (
        torch.from_numpy(logits).argsort(1, descending=True) == torch.from_numpy(targets)[:, None]
    ).nonzero()
    assert scores.all["MRR"].value == pytest.approx(
        float((1.0 / (sorted_ranks[:, 1] + 1.0).double()).mean()), **TOLERANCE
    )


def test_distances_equal_scikit_learn(batch, scores):
    from sklearn.metrics.pairwise import haversine_distances

    logits, targets, _, coordinates = batch
    radians = np.radians(coordinates)
    pairs = zip(radians[logits.argmax(axis=1)], radians[targets], strict=True)
    distances = np.array(
        [EARTH_RADIUS_KM * haversine_distances([predicted], [true])[0, 0] for predicted, true in pairs]
    )
    assert scores.distances.result["distance error"].value == pytest.approx(distances.mean(), rel=1e-12)
    assert scores.distances.median == pytest.approx(np.median(distances), rel=1e-12)
    for radius in (1, 5):
        assert scores.distances.result[f"within {radius} km"].value == pytest.approx(
            np.mean(distances <= radius), **TOLERANCE
        )
