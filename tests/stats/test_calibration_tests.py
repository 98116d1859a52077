"""A small seeded run of the calibration: every test holds its level under the null hypothesis."""

from __future__ import annotations

import numpy as np
import pytest
from studies.interval_calibration import (
    DATA,
    FalsePositiveRow,
    false_positive_rates,
    null_differences,
)

from equipoise.stats.paired_tests import TESTS


@pytest.fixture(scope="module")
def rows():
    return false_positive_rates(600, np.random.default_rng(1), sizes=(20, 60))


@pytest.mark.slow
def test_every_test_holds_its_level_under_the_null(rows):
    broken = [(row, row.promise) for row in rows if not row.kept]
    assert broken == []


@pytest.mark.slow
def test_every_test_is_run_on_all_supported_data(rows):
    combinations = {(row.test, row.data, row.clusters) for row in rows}
    assert {test for test, _, _ in combinations} == set(TESTS)
    for name in ("randomisation", "t", "wilcoxon"):
        assert {(name, kind, cluster_use) for kind in DATA for cluster_use in ("none", "used")} <= combinations


@pytest.mark.slow
def test_ignoring_clusters_inflates_false_positives(rows):
    ignored = [row.rate for row in rows if row.clusters == "ignored" and row.data != "binary"]
    assert min(ignored) > 0.1


def test_rates_outside_the_tolerance_are_reported():
    row = FalsePositiveRow("randomisation", "rank", 60, "none", 600, 0.12, at_most=False)
    assert not row.kept
    assert not FalsePositiveRow("randomisation", "rank", 60, "none", 600, 0.005, at_most=False).kept
    assert FalsePositiveRow("mcnemar", "binary", 60, "none", 600, 0.005, at_most=True).kept


@pytest.mark.parametrize("kind", DATA)
def test_null_differences_have_mean_zero(kind):
    labels = np.arange(400) // 4
    differences = null_differences(kind, 400, 200, labels, np.random.default_rng(2))
    assert abs(differences.mean()) < 5 * differences.std() / np.sqrt(differences.size / 4)
    assert (differences > 0).any()
    assert (differences < 0).any()
