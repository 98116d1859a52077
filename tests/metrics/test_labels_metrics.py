"""Metrics of classes and clusterings, compared with scikit-learn and with the chance level."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from equipoise.errors import ParameterError
from equipoise.evidence.labels import Labels
from equipoise.metrics.labels import (
    MAX_CLASSES,
    METRICS,
    Accuracy,
    AdjustedRand,
    ClassF1,
    ClassPrecision,
    ClassRecall,
    Completeness,
    Homogeneity,
    MutualInformation,
    VMeasure,
    contingency,
)

COLUMNS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)
CLUSTERING = (
    AdjustedRand(),
    MutualInformation(),
    MutualInformation(normaliser="geometric"),
    VMeasure(),
    Homogeneity(),
    Completeness(),
)


def from_confusion(matrix) -> Labels:
    true, predicted = np.indices(np.shape(matrix)).reshape(2, -1).repeat(np.ravel(matrix), axis=1)
    return Labels.of(true, predicted)


def test_the_example_confusion_matrix_has_a_weighted_f1_of_71_percent():
    labels = from_confusion([[50, 10, 5], [5, 80, 15], [10, 20, 35]])
    assert ClassF1().measure(labels).value == pytest.approx(0.71, abs=0.005)
    assert Accuracy().measure(labels).value == pytest.approx(165 / 230)


@pytest.mark.parametrize("average", ["weighted", "macro", "micro"])
@given(rows=COLUMNS)
def test_class_scores_agree_with_scikit_learn(average, rows):
    true, predicted = zip(*rows, strict=True)
    labels = Labels.of(true, predicted)
    expected = sklearn.precision_recall_fscore_support(true, predicted, average=average, zero_division=0)
    values = [kind(average=average).measure(labels).value for kind in (ClassPrecision, ClassRecall, ClassF1)]
    assert values == pytest.approx(list(expected[:3]), abs=1e-12)


def test_classes_that_never_occur_are_excluded():
    logits = np.eye(5)[[0, 1, 1]]
    labels = Labels.from_logits(logits, [0, 1, 0])
    assert len(labels.classes) == 5
    expected = sklearn.f1_score([0, 1, 0], [0, 1, 1], average="macro")
    assert ClassF1(average="macro").measure(labels).value == pytest.approx(expected, abs=1e-12)


@given(COLUMNS)
def test_accuracy_is_micro_f1_and_weighted_recall(rows):
    labels = Labels.of(*zip(*rows, strict=True))
    accuracy = Accuracy().measure(labels).value
    assert accuracy == pytest.approx(sklearn.accuracy_score(labels.true, labels.predicted), abs=1e-12)
    assert ClassF1(average="micro").measure(labels).value == pytest.approx(accuracy, abs=1e-12)
    assert ClassRecall().measure(labels).value == pytest.approx(accuracy, abs=1e-12)


@given(COLUMNS)
def test_clustering_scores_agree_with_scikit_learn_where_both_are_defined(rows):
    true, predicted = zip(*rows, strict=True)
    labels = Labels.of(true, predicted)
    expected_values = {
        "ARI": sklearn.adjusted_rand_score(true, predicted),
        "NMI": sklearn.normalized_mutual_info_score(true, predicted),
        "NMI(normaliser=geometric)": sklearn.normalized_mutual_info_score(true, predicted, average_method="geometric"),
        "V": sklearn.v_measure_score(true, predicted),
        "Homogeneity": sklearn.homogeneity_score(true, predicted),
        "Completeness": sklearn.completeness_score(true, predicted),
    }
    for metric in CLUSTERING:
        value = metric.measure(labels).value
        if not isnan(value):
            assert value == pytest.approx(expected_values[metric.name], abs=1e-9)


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
def test_v_measure_weights_homogeneity_and_completeness_by_beta(beta):
    labels = from_confusion([[8, 1, 0, 3], [1, 6, 0, 0], [0, 2, 5, 4]])
    expected = sklearn.v_measure_score(labels.true, labels.predicted, beta=beta)
    assert VMeasure(beta=beta).measure(labels).value == pytest.approx(expected, abs=1e-12)


@given(COLUMNS, st.permutations(range(5)), st.integers(0, 99))
def test_clustering_scores_do_not_depend_on_cluster_names_or_unit_order(rows, names, seed):
    true, predicted = (np.array(side) for side in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(true))
    labels, permuted_labels = Labels.of(true, predicted), Labels.of(true[order], np.array(names)[predicted][order] + 50)
    for metric in CLUSTERING:
        expected = pytest.approx(metric.measure(labels).value, abs=1e-12, nan_ok=True)
        assert metric.measure(permuted_labels).value == expected


@given(COLUMNS)
def test_every_value_is_within_its_declared_bounds(rows):
    labels = Labels.of(*zip(*rows, strict=True))
    for metric in (*CLUSTERING, *(kind() for kind in METRICS)):
        value = metric.measure(labels).value
        assert isnan(value) or metric.bounds[0] - 1e-12 <= value <= metric.bounds[1] + 1e-12


def test_perfect_predictions_score_one_on_every_metric():
    labels = Labels.of(list("aabbcc"), list("aabbcc"))
    for metric in (kind() for kind in METRICS):
        assert metric.measure(labels).value == pytest.approx(1.0, abs=1e-12)


def test_one_class_in_one_cluster_is_undefined():
    labels = Labels.of([1, 1, 1], [2, 2, 2])
    for metric in CLUSTERING:
        assert isnan(metric.measure(labels).value)
    two_classes = Labels.of([1, 1, 2], [7, 7, 7])
    assert VMeasure().measure(two_classes).value == 0.0
    assert isnan(Completeness().measure(two_classes).value)


@pytest.mark.parametrize("metric", [Accuracy(), AdjustedRand()], ids=str)
def test_closed_form_chance_is_the_mean_over_shuffles(metric):
    rng = np.random.default_rng(5)
    true = rng.choice(4, size=80, p=[0.5, 0.3, 0.1, 0.1])
    labels = Labels.of(true, true)
    values = [metric.measure(labels.shuffled(rng)).value for _ in range(500)]
    assert np.mean(values) == pytest.approx(metric.chance(labels, rng), abs=4 * np.std(values) / 500**0.5)


def test_unknown_averages_raise_parameter_error():
    with pytest.raises(ParameterError, match=r"F1.*'samples'"):
        ClassF1(average="samples")
    with pytest.raises(ParameterError):
        MutualInformation(normaliser="mean")
    with pytest.raises(ParameterError, match="beta"):
        VMeasure(beta=0)


@pytest.mark.parametrize("metric", [kind() for kind in METRICS], ids=str)
def test_no_units_give_nan(metric):
    assert isnan(metric.measure(Labels.of([], [])).value)


def test_names_show_the_parameters_that_differ_from_the_default():
    assert [str(ClassF1()), str(ClassF1(average="macro"))] == ["F1", "F1(average=macro)"]


@pytest.mark.parametrize("classes", [3, MAX_CLASSES, 3 * MAX_CLASSES])
def test_contingency_tables_agree_with_scikit_learn(classes: int) -> None:
    rng = np.random.default_rng(classes)
    true, predicted = rng.integers(classes, size=(2, 400))
    matrix = sklearn.cluster.contingency_matrix(true, predicted)
    table = contingency(Labels.of(true.tolist(), predicted.tolist()))
    assert sorted(table.cells) == sorted(matrix[matrix > 0])
    assert sorted(table.classes) == sorted(matrix.sum(axis=1))
    assert sorted(table.clusters) == sorted(matrix.sum(axis=0))
