"""A small, seeded run of the tuning trials, and the trials' own truths."""

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
    return {each.name: selection_row(each, 250 if THOROUGH else 120, rng, n_resamples=150) for each in PROMISED}


def false_alarms() -> FalseAlarmRow:
    """The rates under the rule that comparisons use at the time of the call, on the same simulated data."""
    return false_alarm_row(PROMISED[0], 150 if THOROUGH else 60, np.random.default_rng(2), n_resamples=100)


@pytest.fixture(scope="module")
def shipped() -> FalseAlarmRow:
    return false_alarms()


def test_the_nested_figure_keeps_its_promise(rows: dict[str, SelectionRow]) -> None:
    assert [row for row in rows.values() if not row.kept] == []


def test_the_optimistic_figure_would_not(rows: dict[str, SelectionRow]) -> None:
    for name in ("all equal", "smooth grid"):
        row = rows[name]
        assert row.optimistic_bias > 0.03
        assert not replace(row, nested_bias=row.optimistic_bias).kept
    assert rows["all equal"].optimistic_coverage < 0.85


def test_taking_the_questions_for_independent_covers_less(rows: dict[str, SelectionRow]) -> None:
    for name in ("all equal", "smooth grid"):
        assert rows[name].wilson_coverage < rows[name].nested_coverage - 0.03


def test_a_clear_winner_is_hardly_flattered(rows: dict[str, SelectionRow]) -> None:
    assert abs(rows["one clearly best"].optimistic_bias) < 0.02


def test_tests_that_ignore_the_choice_cry_wolf(shipped: FalseAlarmRow) -> None:
    assert shipped.kept
    assert min(shipped.randomisation, shipped.mcnemar) > shipped.shipped
    assert not replace(shipped, shipped=shipped.randomisation + 0.05).kept
    assert not replace(shipped, any_pair=shipped.randomisation + 0.05).kept


def test_the_rule_that_is_tried_is_the_one_that_comparisons_use(
    shipped: FalseAlarmRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the redrawn errors left out of comparisons, the trials would show it."""
    from equipoise.stats import tuning_uncertainty

    monkeypatch.setattr(tuning_uncertainty, "with_tuning_uncertainty", lambda contrasts, results: contrasts)
    without = false_alarms()
    assert without.randomisation == shipped.randomisation
    assert without.shipped > shipped.shipped


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda each: f"{each.name}, {each.shared}")
def test_the_stated_accuracies_are_the_means_of_many_fixtures(scenario: Scenario) -> None:
    rng = np.random.default_rng(3)
    for models in (1, 2):
        drawn = [simulate_tuning_data(scenario, rng, models=models).hits for _ in range(60 // models)]
        means = np.array([hits.mean(axis=1) for each in drawn for hits in each])
        error = means.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        assert (np.abs(means.mean(axis=0) - scenario.accuracies) < 4.5 * error).all()


def test_a_larger_top_k_never_loses_a_hit_and_twins_stay_together() -> None:
    smooth = PROMISED[-1]
    fixture = simulate_tuning_data(smooth, np.random.default_rng(4))
    by_k = fixture.hits[0].reshape(9, 3, -1)
    assert (np.diff(by_k, axis=1) >= 0).all()
    for train, test in (fold for parts in fixture.splits for fold in parts):
        assert not set(fixture.groups[train].tolist()) & set(fixture.groups[test].tolist())


def test_what_the_questions_decide_is_shared_by_the_configurations() -> None:
    rng = np.random.default_rng(5)
    agreement = []
    for scenario in scenarios()[:2]:
        pairs = [simulate_tuning_data(scenario, rng).hits[0][:2] for _ in range(40)]
        agreement.append(np.mean([one == other for one, other in pairs]))
    assert agreement[1] > agreement[0] + 0.05


def test_rows_tell_what_was_not_kept() -> None:
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
