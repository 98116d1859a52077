"""Logistic regression by Newton's method and by L-BFGS, compared with scikit-learn."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from equipoise.tasks.classification import few_shot_hits
from equipoise.tasks.numpy_estimators import LogisticRegression, lbfgs_classes


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


@pytest.mark.parametrize("n_classes", [2, 3, 40])
@pytest.mark.parametrize("max_steps", [3, 100, 5000])
@pytest.mark.parametrize("sparse", [False, True])
def test_lbfgs_predicts_the_classes_of_scikit_learn(n_classes: int, max_steps: int, sparse: bool) -> None:
    engine = pytest.importorskip("sklearn.linear_model").LogisticRegression
    rng = np.random.default_rng([n_classes, max_steps])
    for spread in (0.1, 0.5):
        codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 400)]) + 3
        rows = spread * rng.normal(size=(n_classes, 60))[codes - 3] + rng.normal(size=(len(codes), 60))
        new_rows = rng.normal(size=(300, 60))
        if sparse:
            rows, new_rows = csr_array(np.where(rows > 1, rows, 0)), csr_array(np.where(new_rows > 1, new_rows, 0))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)  # scikit-learn warns of few iterations
            expected = engine(max_iter=max_steps).fit(rows, codes).predict(new_rows)
        assert np.array_equal(lbfgs_classes(rows, codes, new_rows, max_steps=max_steps), expected)


def test_few_shot_hits_count_experiments_with_the_correct_class() -> None:
    codes = np.repeat([0, 1], 20)
    vectors = np.eye(2)[codes] + 0.01 * np.random.default_rng(0).normal(size=(40, 2))
    hits = few_shot_hits(vectors, codes, np.arange(40), None)
    assert set(hits[~np.isnan(hits)].tolist()) == {1.0}
