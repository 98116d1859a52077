"""Logistic regression of few rows, compared with scikit-learn."""

import sys

import numpy as np
import pytest

from equipoise.tasks.classification import logistic_classes
from equipoise.tasks.numpy_estimators import LogisticRegression


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("dim", [2, 40, 300])
def test_classes_are_those_of_scikit_learn_at_its_optimum(n_classes: int, dim: int) -> None:
    engine = pytest.importorskip("sklearn.linear_model").LogisticRegression
    rng = np.random.default_rng([n_classes, dim])
    for spread in (0.0, 0.3, 2.0):
        codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 60)])
        centers = spread * rng.normal(size=(n_classes, dim))
        rows = centers[codes] + rng.normal(size=(len(codes), dim))
        new_rows = rng.normal(size=(200, dim))
        expected = engine(max_iter=5000, tol=1e-8).fit(rows, codes).predict(new_rows)
        assert np.array_equal(LogisticRegression(rows, codes).predict(new_rows), expected)


def test_equal_rows_have_the_most_frequent_class() -> None:
    codes = np.array([4, 4, 7])
    assert LogisticRegression(np.ones((3, 2)), codes).predict(np.ones((2, 2))).tolist() == [4, 4]


def test_few_rows_need_no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    rows, codes = np.eye(6), np.array([0, 0, 1, 1, 2, 2])
    assert logistic_classes(rows, codes, rows).tolist() == codes.tolist()
