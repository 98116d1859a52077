"""The view model of a report, compared with its comparison and runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import nan
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import ParameterError
from equipoise.report.answer import Answer
from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.export import export
from equipoise.report.view import RunsView, View
from equipoise.runs.manifest import Status
from equipoise.runs.run_folder import StoredRun
from equipoise.runs.unit_table import UnitContent
from equipoise.stats.comparison import Comparison
from equipoise.stats.formatting import (
    format_difference,
    format_interval,
    format_p,
    format_value,
    shared_decimals,
)
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.stats.slices import MIN_UNITS, slice_estimates
from equipoise.types import Direction, Floats
from stored_runs import COST, bread_runs, ranks, synthetic_runs

BuiltReport = tuple[list[StoredRun], Comparison, RunsView]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltReport:
    runs = bread_runs(tmp_path_factory.mktemp("bread"))
    comparison = compare_runs(runs)
    assert comparison is not None
    return runs, comparison, build_view(runs, comparison)


def test_the_verdict_is_that_of_the_comparison(built: BuiltReport) -> None:
    _, comparison, report = built
    assert report.answer.headline == comparison.verdict()


def test_systems_are_in_the_order_of_the_comparison(built: BuiltReport) -> None:
    _, comparison, report = built
    assert tuple(system.name for system in report.systems) == comparison.order
    assert [system.letter for system in report.systems] == ["A", "B", "C"]
    for leaderboard in report.leaderboards:
        assert tuple(row.system for row in leaderboard.rows) == comparison.order
    assert tuple(system.system for system in report.tuning) == comparison.order


def test_leaderboard_values_equal_the_comparison(built: BuiltReport) -> None:
    _, comparison, report = built
    assert [leaderboard.metric for leaderboard in report.leaderboards] == list(comparison.metrics)
    for leaderboard in report.leaderboards:
        estimates = {name: comparison.estimates[name][leaderboard.metric] for name in comparison.order}
        decimals = shared_decimals(estimate.interval for estimate in estimates.values())
        for row in leaderboard.rows:
            estimate_of_row = estimates[row.system]
            assert (row.score.number, row.score.low, row.score.high) == (
                estimate_of_row.value,
                estimate_of_row.interval.low,
                estimate_of_row.interval.high,
            )
            assert row.score.text == format_value(estimate_of_row.value, decimals)
            assert row.score.interval_text == format_interval(estimate_of_row.interval, decimals)
            assert (row.n, row.undefined) == (str(estimate_of_row.n), str(estimate_of_row.undefined))
            assert row.chance == estimate_of_row.chance
            assert row.tie_groups == comparison.bands_on(leaderboard.metric)[row.system]
            bounds = [estimate_of_row.interval.low, estimate_of_row.interval.high, estimate_of_row.chance]
            assert all(leaderboard.scale.low <= bound <= leaderboard.scale.high for bound in bounds)


def test_differences_to_the_leader_equal_the_comparison(built: BuiltReport) -> None:
    _, comparison, report = built
    leader, *others = report.leaderboard.rows
    assert leader.difference == leader.p == leader.counts == ""
    for row in others:
        contrast = comparison.contrast(row.system, comparison.order[0])
        assert float(row.difference) == pytest.approx(contrast.difference, abs=5e-4)
        assert row.p == format_p(contrast.adjusted)
        assert row.counts == f"{contrast.wins}/{contrast.ties}/{contrast.losses}"


def test_every_pair_is_listed_once_with_the_better_system_first(built: BuiltReport) -> None:
    _, comparison, report = built
    assert report.pairwise is not None
    assert [(row.a, row.b) for row in report.pairwise.rows] == list(combinations(comparison.order, 2))
    decimals = shared_decimals(
        contrast.interval for contrast in comparison.contrasts if contrast.metric == report.primary
    )
    for row in report.pairwise.rows:
        pair = comparison.contrast(row.a, row.b)
        assert row.difference.number == pair.difference
        assert row.difference.text == format_difference(pair.difference, decimals)
        assert row.p_adjusted == format_p(pair.adjusted)
        assert (row.wins, row.ties, row.losses) == (pair.wins, pair.ties, pair.losses)
        assert row.winner == (pair.winner(comparison.alpha) or "")


def test_mirrored_cells_of_the_win_matrix_are_reversed(built: BuiltReport) -> None:
    _, _, report = built
    assert report.pairwise is not None
    matrix = report.pairwise.matrix
    for row in range(3):
        assert matrix[row][row] is None
        for column in range(row):
            cell, mirrored = matrix[row][column], matrix[column][row]
            assert cell is not None
            assert mirrored is not None
            assert cell.text == "/".join(reversed(mirrored.text.split("/")))
            assert cell.significant == mirrored.significant


def test_costs_equal_the_manifests_and_unknown_ones_are_empty(built: BuiltReport) -> None:
    runs, _, report = built
    assert [cost.name for cost in report.costs] == list(COST)
    by_name = {run.result.system: run.manifest.cost for run in runs}
    for cost in report.costs:
        assert cost.values == tuple(by_name[system.name].get(cost.name) for system in report.systems)
    texts = {cost.name: cost.texts[[system.name for system in report.systems].index("hash")] for cost in report.costs}
    assert texts == {
        "dims": "384",
        "seconds": "1.23",
        "bytes_per_vector": "1,536",
        "truncated_share": "25 %",
    }


def test_other_costs_are_in_the_protocol(tmp_path: Path) -> None:
    cost = {"dims": 8.0, "grid_chunks": 1234.0, "window": None}
    report = build_view(synthetic_runs(tmp_path, ["a"], {"MRR": 1 / ranks(1, 30)}, cost=cost))
    assert [cost_column.name for cost_column in report.costs] == ["dims"]
    (group,) = [group for group in report.protocol.groups if group.title == "Other costs"]
    assert [(fact.name, fact.texts) for fact in group.entries] == [("grid chunks", ("1,234",))]


def test_slices_equal_the_slice_estimates(built: BuiltReport) -> None:
    runs, _, report = built
    assert report.slices is not None
    unit_slices = {unit: detail.slices for unit, detail in runs[0].details.items()}
    for index, system in enumerate(report.systems):
        run = next(run for run in runs if run.result.system == system.name)
        expected = {
            (estimate.name, estimate.value): estimate.estimate
            for estimate in slice_estimates(run.result, report.primary, unit_slices)
        }
        cells = {(row.name, row.value): row.cells[index] for row in report.slices.rows}
        assert cells.keys() == expected.keys()
        for key, cell in cells.items():
            assert cell.value == expected[key].value
            assert cell.small_sample == (expected[key].n < MIN_UNITS)


def test_small_slices_are_marked_and_not_shaded(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 30)[np.newaxis].repeat(2, 0)
    kinds = {f"q{index}": {"kind": "rare" if index < 5 else "usual"} for index in range(30)}
    runs = _runs_with_slices(tmp_path, values, kinds)
    report = build_view(runs, compare_runs(runs), exports=False)
    assert report.slices is not None
    rows = {row.value: row for row in report.slices.rows}
    assert (rows["rare"].small_sample, rows["usual"].small_sample) == (True, False)
    assert all(cell.shade is None for cell in rows["rare"].cells)
    assert all(cell.shade is not None for cell in rows["usual"].cells)


def test_a_slice_with_one_unit_per_value_has_no_table(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 50)[np.newaxis].repeat(2, 0)
    runs = _runs_with_slices(tmp_path, values, {f"q{index}": {"id": f"u{index}"} for index in range(50)})
    assert build_view(runs, compare_runs(runs), exports=False).slices is None


def test_distributions_count_every_unit_once(built: BuiltReport) -> None:
    runs, _, report = built
    for distribution in report.distributions:
        assert len(distribution.edges) == len(distribution.labels) + 1
        for series in distribution.series:
            assert sum(series.counts) + series.undefined == len(runs[0].result.unit_ids)


def test_undefined_units_are_counted_separately(tmp_path: Path) -> None:
    values = np.array([[1.0, np.nan, 0.0, 0.5], [1.0, np.nan, 1.0, 0.25]])
    runs = synthetic_runs(tmp_path, ["a", "b"], {"nDCG@10": values})
    distribution = build_view(runs, compare_runs(runs), exports=False).distributions[0]
    assert [series.undefined for series in distribution.series] == [1, 1]


def test_findings_equal_the_comparison(built: BuiltReport) -> None:
    _, comparison, report = built
    assert report.answer.findings == comparison.findings


def test_only_parameters_that_differ_are_marked(built: BuiltReport) -> None:
    _, _, report = built
    groups = {group.title: {fact.name: fact for fact in group.entries} for group in report.protocol.groups}
    parameters = groups["Parameters of the systems"]
    assert (parameters["model"].differs, parameters["stemmer"].differs) == (True, False)
    assert not groups["Data (SHA-256)"]["bread"].differs
    assert not groups["Runs"]["evidence"].differs
    assert len(set(groups["Runs"]["evidence"].texts)) == 3


def test_the_protocol_has_an_entry_once_unless_its_values_differ(tmp_path: Path) -> None:
    runs = synthetic_runs(
        tmp_path,
        ["a"],
        {"MRR": 1 / ranks(1, 20)},
        parameters={"pooling": "mean", "dim": 64},
        settings={"pooling": "mean", "dim": 32, "window": {"tokens": 256, "texts": 9, "truncated": 0}, "seed": 0},
        cost={"window": 256.0},
    )
    protocol = build_view(runs, exports=False).protocol
    names = [entry.name for group in protocol.groups for entry in group.entries]
    assert [names.count(name) for name in ("pooling", "dimensions", "input window", "seed")] == [1, 2, 1, 1]


def test_the_grid_has_every_trial_once(built: BuiltReport) -> None:
    runs, _, report = built
    for tuned in report.tuning:
        tuning = next(run.tuning for run in runs if run.result.system == tuned.system)
        assert tuning is not None
        cells = [cell for _, row in tuned.grid.rows for cell in row if cell is not None]
        assert sorted(cell.value or 0.0 for cell in cells) == sorted(trial.value for trial in tuning.trials)
        assert tuned.grid.column_title == "top_k"
        assert [mark for cell in cells for mark in cell.marks if mark == "best"] == ["best"]
        assert sum(trial.chosen for trial in tuned.trials) == len(tuning.folds)
        assert dict(tuned.summary)["gap"] == format_difference(tuning.optimistic - tuning.nested)
        assert [point.cost for point in tuned.frontier] == [trial.cost for trial in tuning.frontier]


def test_downloads_equal_the_exports(built: BuiltReport) -> None:
    runs, comparison, report = built
    ordered = [next(run for run in runs if run.result.system == name) for name in comparison.order]
    assert [item.name for item in report.downloads] == ["latex", "md", "csv", "json", "card", "bibtex"]
    for download in report.downloads:
        assert download.text == export(ordered, comparison, download.name)


def test_a_single_run_has_no_comparison(built: BuiltReport) -> None:
    report = build_view(built[0][:1])
    assert report.pairwise is None
    assert len(report.systems) == 1
    assert report.leaderboard.rows[0].tie_groups == ()
    assert "One system alone" in report.answer.headline
    assert report.explorer is not None
    assert report.slices is not None


def test_a_missing_or_mismatched_comparison_is_an_error(built: BuiltReport) -> None:
    runs, comparison, _ = built
    with pytest.raises(ParameterError) as error:
        build_view(runs)
    assert error.value.code == "E310"
    with pytest.raises(ParameterError) as error:
        build_view(runs[:2], comparison)
    assert error.value.code == "E310"
    with pytest.raises(ParameterError) as error:
        build_view([])
    assert error.value.code == "E310"


def test_a_partial_run_has_a_caution(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 40)})
    partial = replace(runs[0].manifest, status=Status.PARTIAL, reason="interrupted")
    runs[0] = replace(runs[0], manifest=partial)
    report = build_view(runs, compare_runs(runs), exports=False)
    assert report.cautions == ("the run of a is partial: interrupted",)
    assert [bool(system.caution) for system in report.systems] == [system.name == "a" for system in report.systems]


def test_the_direction_of_the_metric_is_used(tmp_path: Path) -> None:
    unit_ranks = ranks(1, 60)
    runs = synthetic_runs(
        tmp_path,
        ["far", "near"],
        {"MR": np.concatenate([unit_ranks * 4, unit_ranks])},
        bounds=(1.0, 1000.0),
        better=Direction.DOWN,
    )
    report = build_view(runs, compare_runs(runs), exports=False)
    assert report.better == report.leaderboard.better == "down"
    assert report.systems[0].name == "near"
    assert report.pairwise is not None
    assert report.pairwise.rows[0].winner == "near"
    assert (report.pairwise.rows[0].difference.number or 0) < 0
    assert "to the left of 0" in report.pairwise.caption
    assert "are not adjusted" not in report.pairwise.caption


def test_with_several_pairs_the_caption_explains_intervals_that_exclude_0(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path, ["a", "b", "c"], {"MRR": np.random.default_rng(0).random((3, 60))})
    report = build_view(runs, compare_runs(runs), exports=False)
    assert report.pairwise is not None
    assert "are not adjusted for the 3 pairs" in report.pairwise.caption


def _runs_with_slices(folder: Path, values: Floats, kinds: dict[str, dict[str, str]]) -> list[StoredRun]:
    details: dict[str | int, UnitContent] = {unit: UnitContent("?", slices=slices) for unit, slices in kinds.items()}
    return synthetic_runs(folder, ["a", "b"], {"nDCG@10": values}, details=details)


def test_the_hint_of_the_experiment_replaces_that_of_a_finding(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": np.vstack([np.full(3, 1.0), [0.3, 0.9, 0.5]])})
    finding = replace(build_view(runs, compare_runs(runs), exports=False).answer.findings[0], hint="use a larger tree")
    experiment = View(Answer("The decision.", (), findings=(finding,)))
    report = build_view(runs, compare_runs(runs), experiment=experiment, exports=False)
    assert [other.hint for other in report.answer.findings if other.code == finding.code] == ["use a larger tree"]


def test_metrics_without_a_test_have_no_tie_bands_and_say_why(tmp_path: Path) -> None:
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 30)})
    speed = Estimate("speed", 2.0, Interval.unknown("measured once"), 30, 0, nan, Direction.UP)
    runs = [
        replace(run, result=replace(run.result, estimates={**run.result.estimates, "speed": speed})) for run in runs
    ]
    tested, untested = build_view(runs, compare_runs(runs), exports=False).leaderboards
    assert not tested.untested
    assert all(row.tie_groups for row in tested.rows)
    assert untested.untested == "each system was measured once"
    assert [row.tie_groups for row in untested.rows] == [(), ()]
    assert untested.caption.startswith("The differences were not tested")
