"""A small, seeded run of the simulated tuning, and its true accuracies."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from studies.tuning_calibration import (
    FalseAlarmRow,
    Scenario,
    SelectionRow,
    false_alarm_lines,
    false_alarm_row,
    main,
    scenarios,
    selection_lines,
    selection_row,
    simulate_tuning_data,
)

pytestmark = pytest.mark.slow

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
PROMISED = [scenario for scenario in scenarios() if scenario.promised and scenario.shared == 0.5]


@pytest.fixture(scope="module")
def rows() -> dict[str, SelectionRow]:
    rng = np.random.default_rng(1)
    return {
        scenario.name: selection_row(scenario, 250 if THOROUGH else 120, rng, n_resamples=150) for scenario in PROMISED
    }


def false_alarms() -> FalseAlarmRow:
    """The false-positive rates of comparisons on the same simulated data."""
    return false_alarm_row(PROMISED[0], 150 if THOROUGH else 60, np.random.default_rng(2), n_resamples=100)


@pytest.fixture(scope="module")
def default_rates() -> FalseAlarmRow:
    return false_alarms()


def test_nested_scores_are_calibrated(rows: dict[str, SelectionRow]) -> None:
    assert [row for row in rows.values() if not row.kept] == []


def test_optimistic_scores_are_biased(rows: dict[str, SelectionRow]) -> None:
    for name in ("all equal", "smooth grid"):
        row = rows[name]
        assert row.optimistic_bias > 0.03
        assert not replace(row, nested_bias=row.optimistic_bias).kept
    assert rows["all equal"].optimistic_coverage < 0.85


def test_intervals_of_independent_questions_have_lower_coverage(rows: dict[str, SelectionRow]) -> None:
    for name in ("all equal", "smooth grid"):
        assert rows[name].wilson_coverage < rows[name].nested_coverage - 0.03


def test_a_clearly_best_configuration_has_little_optimistic_bias(rows: dict[str, SelectionRow]) -> None:
    assert abs(rows["one clearly best"].optimistic_bias) < 0.02


def test_tests_that_ignore_the_choice_have_more_false_positives(default_rates: FalseAlarmRow) -> None:
    assert default_rates.kept
    assert min(default_rates.randomisation, default_rates.mcnemar) > default_rates.shipped
    assert not replace(default_rates, shipped=default_rates.randomisation + 0.1).kept
    assert not replace(default_rates, any_pair=default_rates.randomisation + 0.1).kept


def test_the_simulation_uses_the_bootstrap_errors_of_comparisons(
    default_rates: FalseAlarmRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparisons without the bootstrap errors have more false positives."""
    from equipoise.stats import tuning_uncertainty

    monkeypatch.setattr(tuning_uncertainty, "with_tuning_uncertainty", lambda contrasts, results: contrasts)
    without_errors = false_alarms()
    assert without_errors.randomisation == default_rates.randomisation
    assert without_errors.shipped > default_rates.shipped


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda model_hits: f"{model_hits.name}, {model_hits.shared}")
def test_true_accuracies_are_the_means_of_many_simulated_fixtures(scenario: Scenario) -> None:
    rng = np.random.default_rng(3)
    for models in (1, 2):
        simulated_hits = [simulate_tuning_data(scenario, rng, models=models).hits for _ in range(60 // models)]
        means = np.array([hits.mean(axis=1) for model_hits in simulated_hits for hits in model_hits])
        error = means.std(axis=0, ddof=1) / np.sqrt(len(simulated_hits))
        assert (np.abs(means.mean(axis=0) - scenario.accuracies) < 4.5 * error).all()


def test_hits_increase_with_top_k_and_groups_are_not_split() -> None:
    smooth = PROMISED[-1]
    fixture = simulate_tuning_data(smooth, np.random.default_rng(4))
    by_k = fixture.hits[0].reshape(9, 3, -1)
    assert (np.diff(by_k, axis=1) >= 0).all()
    for train, test in (fold for folds in fixture.splits for fold in folds):
        assert not set(fixture.groups[train].tolist()) & set(fixture.groups[test].tolist())


def test_configurations_agree_more_with_shared_question_difficulty() -> None:
    rng = np.random.default_rng(5)
    agreements = []
    for scenario in scenarios()[:2]:
        pairs = [simulate_tuning_data(scenario, rng).hits[0][:2] for _ in range(40)]
        agreements.append(np.mean([left == right for left, right in pairs]))
    assert agreements[1] > agreements[0] + 0.05


def test_rows_mark_failed_calibration() -> None:
    row = SelectionRow("x", 0.5, 1000, 0.05, 0.8, 0.0, 0.001, 0.9, 0.95, 0.0)
    assert selection_lines([row])[1].endswith("+0.00")
    assert selection_lines([replace(row, nested_bias=0.02)])[1].endswith("not kept")
    assert selection_lines([replace(row, nested_coverage=0.9)])[1].endswith("not kept")
    assert selection_lines([replace(row, nested_coverage=1.0)])[1].endswith("not kept")
    assert selection_lines([replace(row, nested_bias=0.02, promised=False)])[1].endswith("no promise")
    rate = FalseAlarmRow("x", 0.5, 1000, 0.1, 0.1, 0.05, 0.05)
    assert false_alarm_lines([rate])[1].endswith("5.0%")
    assert false_alarm_lines([replace(rate, shipped=0.1)])[1].endswith("not kept")
    assert false_alarm_lines([replace(rate, any_pair=0.1)])[1].endswith("not kept")
    assert false_alarm_lines([replace(rate, promised=False)])[1].endswith("no promise")


def test_the_module_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--simulations", "2", "--seed", "1"])
    printed = capsys.readouterr().out
    assert "The best of 27 configurations" in printed
    assert "False positives at 5 %" in printed
    assert printed.count("smooth grid") == 4
