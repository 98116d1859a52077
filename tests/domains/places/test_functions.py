"""The functions of next-location projects, against sorting in torch and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, top_k_accuracy_score

from equipoise.domains.places.training_meter import (
    calculate_correct_total_prediction,
    get_mrr,
    get_ndcg,
    get_performance_dict,
    top_k_accuracy,
)
from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError


@pytest.fixture(params=[(200, 11), (64, 1187)])
def batch(request):
    """Logits without ties, and targets that are usually near the top."""
    rows, classes = request.param
    rng = np.random.default_rng(rows)
    logits = rng.normal(size=(rows, classes)).astype(np.float32)
    targets = rng.integers(0, classes, rows)
    logits[np.arange(rows), targets] += rng.normal(2, 1, rows).astype(np.float32)
    assert all(len(set(row)) == classes for row in logits.tolist())
    return logits, targets


def ranks_by_sorting(logits, targets):
    """The method of next-location projects: sort every row and look up the target."""
    torch = pytest.importorskip("torch")
    order = torch.argsort(torch.tensor(logits), dim=-1, descending=True)
    return torch.nonzero(order == torch.tensor(targets)[:, None])[:, 1].numpy() + 1


def test_cached_sums_by_rank_equal_sums_computed_per_row(batch, monkeypatch):
    cached = calculate_correct_total_prediction(*batch)[0]
    monkeypatch.setattr("equipoise.domains.places.training_meter.MAX_CACHED_CLASSES", 0)
    computed = calculate_correct_total_prediction(*batch)[0]
    np.testing.assert_array_equal(cached[[0, 1, 2, 3, 6]], computed[[0, 1, 2, 3, 6]])
    np.testing.assert_allclose(cached, computed, rtol=1e-14)


@pytest.mark.engines("torch")
def test_sums_equal_those_of_sorting(batch):
    logits, targets = batch
    ranks = ranks_by_sorting(logits, targets)
    sums, true, top1 = calculate_correct_total_prediction(logits, targets)
    gains = np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0)
    expected = [*(np.sum(ranks <= k) for k in (1, 3, 5, 10)), np.sum(1 / ranks), gains.sum(), len(targets)]
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    np.testing.assert_array_equal(true, targets)
    np.testing.assert_array_equal(top1, logits.argmax(axis=1))
    assert top_k_accuracy(logits, targets, 7) == np.sum(ranks <= 7)
    assert get_mrr(logits, targets) == pytest.approx(np.sum(1 / ranks))
    assert get_ndcg(logits, targets, k=4) == pytest.approx(np.sum((1 / np.log2(ranks + 1))[ranks <= 4]))


@pytest.mark.engines("torch")
def test_tensors_give_the_same_sums(batch):
    torch = pytest.importorskip("torch")
    logits, targets = batch
    from_arrays = calculate_correct_total_prediction(logits, targets)
    from_tensors = calculate_correct_total_prediction(torch.tensor(logits, requires_grad=True), torch.tensor(targets))
    for expected, sums in zip(from_arrays, from_tensors, strict=True):
        np.testing.assert_array_equal(expected, sums)


def test_percent_values_equal_scikit_learn(batch):
    logits, targets = batch
    performance = get_performance_dict(*calculate_correct_total_prediction(logits, targets))
    labels = np.arange(logits.shape[1])
    for k in (1, 3, 5, 10):
        expected = 100 * top_k_accuracy_score(targets, logits, k=k, labels=labels)
        assert performance[f"acc@{k}"] == pytest.approx(expected)
    expected = 100 * f1_score(targets, logits.argmax(axis=1), average="weighted", zero_division=0)
    assert performance["f1"] == pytest.approx(expected)


def test_sums_of_batches_add_up(batch):
    logits, targets = batch
    batches = [
        calculate_correct_total_prediction(logits[rows], targets[rows])
        for rows in np.array_split(np.arange(len(targets)), 5)
    ]
    performance = get_performance_dict(
        sum(sums for sums, _, _ in batches),
        np.concatenate([true for _, true, _ in batches]),
        np.concatenate([top1 for _, _, top1 in batches]),
    )
    assert performance == pytest.approx(get_performance_dict(*calculate_correct_total_prediction(logits, targets)))


def logits_with_ranks(ranks, classes=20):
    """One row per rank, in which the target, class 0, has that rank."""
    rows = np.zeros((len(ranks), classes))
    for row, rank in zip(rows, ranks, strict=True):
        row[1:] = np.where(np.arange(1, classes) < rank, 2.0, 0.0) + np.arange(1, classes) / 1000
        row[0] = 1.0
    return rows, np.zeros(len(ranks), dtype=int)


def test_published_examples_are_reproduced():
    assert get_mrr(*logits_with_ranks([2, 1, 5])) / 3 == pytest.approx(0.567, abs=5e-4)
    assert get_ndcg(*logits_with_ranks([1, 3, 7, 15])) / 4 == pytest.approx(0.458, abs=5e-4)


def test_tied_scores_earn_the_expected_value_and_other_tie_rules_are_options():
    constant, targets = np.zeros((6, 12)), np.arange(6)
    sums, _, top1 = calculate_correct_total_prediction(constant, targets)
    np.testing.assert_allclose(sums[:4], [6 * k / 12 for k in (1, 3, 5, 10)])
    assert sums[4] == pytest.approx(6 * sum(1 / rank for rank in range(1, 13)) / 12)
    assert (top1 == 0).all()
    assert top_k_accuracy(constant, targets, 1, ties="optimistic") == 6
    assert top_k_accuracy(constant, targets, 1, ties="pessimistic") == 0
    with pytest.raises(ParameterError):
        get_mrr(constant, targets, ties="luck")


def test_a_batch_without_rows_adds_nothing():
    sums, true, top1 = calculate_correct_total_prediction(np.zeros((0, 12)), [])
    assert sums.tolist() == [0.0] * 7
    assert len(true) == len(top1) == 0
    with pytest.raises(InputError):
        get_performance_dict(sums)


def test_a_dict_of_sums_equals_the_array_and_f1_is_a_fraction():
    names = ("correct@1", "correct@3", "correct@5", "correct@10", "rr", "ndcg", "total")
    sums = dict(zip(names, (1, 2, 3, 4, 2.5, 3.0, 5), strict=True))
    assert get_performance_dict(sums) == get_performance_dict(list(sums.values()))
    assert get_performance_dict({**sums, "f1": 0.212})["f1"] == pytest.approx(21.2)
    assert get_performance_dict(sums, f1=0.5)["f1"] == 50.0
    assert "f1" not in get_performance_dict(sums)
    with pytest.raises(InputError):
        get_performance_dict(sums, f1=21.2)
    with pytest.raises(InputError):
        get_performance_dict({**sums, "correct@10": 6})
    with pytest.raises(InputError):
        get_performance_dict({name: value for name, value in sums.items() if name != "rr"})
    with pytest.raises(ShapeError, match=r"3.*7"):
        get_performance_dict([1, 2, 3])


def test_bad_batches_are_errors():
    with pytest.raises(ParameterError, match="k = 8"):
        top_k_accuracy(np.zeros((2, 7)), [0, 1], 8)
    with pytest.raises(ParameterError, match="k = 0"):
        get_ndcg(np.zeros((2, 7)), [0, 1], k=0)
    with pytest.raises(NotFiniteError, match="row 1"):
        get_mrr([[0.0, 1.0], [np.nan, 1.0]], [0, 1])
    with pytest.raises(InputError, match="7 classes"):
        get_mrr(np.zeros((1, 7)), [7])
    with pytest.raises(ShapeError, match=r"3 targets.*2 rows"):
        get_mrr(np.zeros((2, 7)), [0, 1, 2])


@pytest.mark.parametrize("classes", [1, 2, 4, 9, 10])
def test_fewer_classes_than_a_cutoff_give_the_sums_of_clipped_cutoffs(classes):
    rng = np.random.default_rng(classes)
    logits, targets = rng.normal(size=(30, classes)), rng.integers(0, classes, 30)
    order = np.argsort(-logits, axis=1)
    expected = [int((order[:, : min(k, classes)] == targets[:, None]).sum()) for k in (1, 3, 5, 10)]
    sums, _, _ = calculate_correct_total_prediction(logits, targets)
    assert sums[:4].tolist() == expected
    assert sums[6] == 30
    assert get_performance_dict(sums)["acc@10"] == pytest.approx(100 * expected[3] / 30)


@pytest.mark.engines("torch")
@pytest.mark.parametrize("n_levels", [3, 10**6])
def test_a_gpu_gives_the_sums_and_labels_of_the_cpu(n_levels: int) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    rng = np.random.default_rng(n_levels)
    logits = rng.integers(0, n_levels, (500, 40)).astype(np.float32)  # three levels: most targets are tied
    targets = rng.integers(0, 40, 500)
    sums, true, top1 = calculate_correct_total_prediction(logits, targets)
    on_gpu = calculate_correct_total_prediction(torch.tensor(logits).cuda(), torch.tensor(targets).cuda())
    np.testing.assert_allclose(on_gpu[0], sums, rtol=1e-12)
    assert (on_gpu[1].tolist(), on_gpu[2].tolist()) == (true.tolist(), top1.tolist())
    for invalid in (np.full(500, 40), np.full(500, -1)):
        with pytest.raises(InputError):
            calculate_correct_total_prediction(torch.tensor(logits).cuda(), invalid)
    with pytest.raises(NotFiniteError):
        calculate_correct_total_prediction(torch.full((500, 40), torch.nan).cuda(), targets)
