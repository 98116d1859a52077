"""What the report says, against the comparison and the runs it is made of."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import ParameterError
from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.export import export
from equipoise.report.view import RunsView
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
from equipoise.stats.slices import MIN_UNITS, slice_estimates
from equipoise.types import Direction, Floats
from stored_runs import COST, bread_runs, made_up, ranks

Made = tuple[list[StoredRun], Comparison, RunsView]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    runs = bread_runs(tmp_path_factory.mktemp("bread"))
    comparison = compare_runs(runs)
    assert comparison is not None
    return runs, comparison, build_view(runs, comparison)


def test_the_verdict_is_that_of_the_comparison(made: Made) -> None:
    _, comparison, report = made
    assert report.answer.headline == comparison.verdict()


def test_systems_stand_in_the_order_of_the_comparison_everywhere(made: Made) -> None:
    _, comparison, report = made
    assert tuple(each.name for each in report.systems) == comparison.order
    assert [each.letter for each in report.systems] == ["A", "B", "C"]
    for league in report.leaderboards:
        assert tuple(row.system for row in league.rows) == comparison.order
    assert tuple(each.system for each in report.tuning) == comparison.order


def test_every_figure_of_the_league_is_that_of_the_comparison(made: Made) -> None:
    _, comparison, report = made
    assert [league.metric for league in report.leaderboards] == list(comparison.metrics)
    for league in report.leaderboards:
        estimates = {name: comparison.estimates[name][league.metric] for name in comparison.order}
        places = shared_decimals(each.interval for each in estimates.values())
        for row in league.rows:
            own = estimates[row.system]
            assert (row.score.number, row.score.low, row.score.high) == (
                own.value,
                own.interval.low,
                own.interval.high,
            )
            assert row.score.text == format_value(own.value, places)
            assert row.score.interval_text == format_interval(own.interval, places)
            assert (row.n, row.undefined) == (str(own.n), str(own.undefined))
            assert row.chance == own.chance
            assert row.tie_groups == comparison.bands_on(league.metric)[row.system]
            ends = [own.interval.low, own.interval.high, own.chance]
            assert all(league.scale.low <= end <= league.scale.high for end in ends)


def test_differences_to_the_leader_have_its_sign_and_its_p(made: Made) -> None:
    _, comparison, report = made
    leader, *others = report.leaderboard.rows
    assert leader.difference == leader.p == leader.counts == ""
    for row in others:
        seen = comparison.contrast(row.system, comparison.order[0])
        assert float(row.difference) == pytest.approx(seen.difference, abs=5e-4)
        assert row.p == format_p(seen.adjusted)
        assert row.counts == f"{seen.wins}/{seen.ties}/{seen.losses}"


def test_every_pair_stands_once_with_the_better_ranked_first(made: Made) -> None:
    _, comparison, report = made
    assert report.pairwise is not None
    assert [(row.a, row.b) for row in report.pairwise.rows] == list(combinations(comparison.order, 2))
    places = shared_decimals(each.interval for each in comparison.contrasts if each.metric == report.primary)
    for row in report.pairwise.rows:
        seen = comparison.contrast(row.a, row.b)
        assert row.difference.number == seen.difference
        assert row.difference.text == format_difference(seen.difference, places)
        assert row.p_adjusted == format_p(seen.adjusted)
        assert (row.wins, row.ties, row.losses) == (seen.wins, seen.ties, seen.losses)
        assert row.winner == (seen.winner(comparison.alpha) or "")


def test_the_win_matrix_mirrors_itself(made: Made) -> None:
    _, _, report = made
    assert report.pairwise is not None
    matrix = report.pairwise.matrix
    for row in range(3):
        assert matrix[row][row] is None
        for column in range(row):
            one, other = matrix[row][column], matrix[column][row]
            assert one is not None
            assert other is not None
            assert one.text == "/".join(reversed(other.text.split("/")))
            assert one.significant == other.significant


def test_costs_are_those_of_the_manifests_and_unknown_ones_stay_empty(made: Made) -> None:
    runs, _, report = made
    assert [cost.name for cost in report.costs] == list(COST)
    by_name = {run.result.system: run.manifest.cost for run in runs}
    for cost in report.costs:
        assert cost.values == tuple(by_name[each.name].get(cost.name) for each in report.systems)
    texts = {cost.name: cost.texts[[each.name for each in report.systems].index("hash")] for cost in report.costs}
    assert texts == {
        "dims": "384",
        "seconds": "1.23",
        "bytes_per_vector": "1,536",
        "truncated_share": "25 %",
    }


def test_unusual_costs_are_facts_of_the_protocol(tmp_path: Path) -> None:
    cost = {"dims": 8.0, "grid_chunks": 1234.0, "window": None}
    report = build_view(made_up(tmp_path, ["a"], {"MRR": 1 / ranks(1, 30)}, cost=cost))
    assert [each.name for each in report.costs] == ["dims"]
    (group,) = [group for group in report.protocol.groups if group.title == "Other costs"]
    assert [(fact.name, fact.texts) for fact in group.entries] == [("grid chunks", ("1,234",))]


def test_slices_are_those_of_the_statistics(made: Made) -> None:
    runs, _, report = made
    assert report.slices is not None
    known = {unit: detail.slices for unit, detail in runs[0].details.items()}
    for place, system in enumerate(report.systems):
        run = next(run for run in runs if run.result.system == system.name)
        expected = {
            (each.name, each.value): each.estimate for each in slice_estimates(run.result, report.primary, known)
        }
        shown = {(row.name, row.value): row.cells[place] for row in report.slices.rows}
        assert shown.keys() == expected.keys()
        for key, cell in shown.items():
            assert cell.value == expected[key].value
            assert cell.small_sample == (expected[key].n < MIN_UNITS)


def test_small_slices_are_greyed_and_never_shaded(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 30)[np.newaxis].repeat(2, 0)
    kinds = {f"q{place}": {"kind": "rare" if place < 5 else "usual"} for place in range(30)}
    runs = _with_slices(tmp_path, values, kinds)
    report = build_view(runs, compare_runs(runs), exports=False)
    assert report.slices is not None
    rows = {row.value: row for row in report.slices.rows}
    assert (rows["rare"].small_sample, rows["usual"].small_sample) == (True, False)
    assert all(cell.shade is None for cell in rows["rare"].cells)
    assert all(cell.shade is not None for cell in rows["usual"].cells)


def test_a_slice_with_a_value_of_its_own_for_each_unit_makes_no_table(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 50)[np.newaxis].repeat(2, 0)
    runs = _with_slices(tmp_path, values, {f"q{place}": {"id": f"u{place}"} for place in range(50)})
    assert build_view(runs, compare_runs(runs), exports=False).slices is None


def test_distributions_count_every_unit_once(made: Made) -> None:
    runs, _, report = made
    for part in report.distributions:
        assert len(part.edges) == len(part.labels) + 1
        for series in part.series:
            assert sum(series.counts) + series.undefined == len(runs[0].result.unit_ids)


def test_undefined_units_are_counted_beside_the_bins(tmp_path: Path) -> None:
    values = np.array([[1.0, np.nan, 0.0, 0.5], [1.0, np.nan, 1.0, 0.25]])
    runs = made_up(tmp_path, ["a", "b"], {"nDCG@10": values})
    part = build_view(runs, compare_runs(runs), exports=False).distributions[0]
    assert [series.undefined for series in part.series] == [1, 1]


def test_findings_keep_code_evidence_and_hint(made: Made) -> None:
    _, comparison, report = made
    assert report.answer.findings == comparison.findings


def test_only_parameters_that_differ_are_marked(made: Made) -> None:
    _, _, report = made
    groups = {group.title: {fact.name: fact for fact in group.entries} for group in report.protocol.groups}
    parameters = groups["Parameters of the systems"]
    assert (parameters["model"].differs, parameters["stemmer"].differs) == (True, False)
    assert not groups["Data (SHA-256)"]["bread"].differs
    assert not groups["Runs"]["evidence"].differs
    assert len(set(groups["Runs"]["evidence"].texts)) == 3


def test_the_grid_holds_every_trial_once(made: Made) -> None:
    runs, _, report = made
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


def test_texts_to_take_away_are_those_of_the_export(made: Made) -> None:
    runs, comparison, report = made
    ordered = [next(run for run in runs if run.result.system == name) for name in comparison.order]
    assert [each.name for each in report.downloads] == ["latex", "md", "csv", "json", "card", "bibtex"]
    for download in report.downloads:
        assert download.text == export(ordered, comparison, download.name)


def test_one_run_alone_has_no_parts_of_a_comparison(made: Made) -> None:
    report = build_view(made[0][:1])
    assert report.pairwise is None
    assert len(report.systems) == 1
    assert report.leaderboard.rows[0].tie_groups == ()
    assert "A single run" in report.answer.headline
    assert report.explorer is not None
    assert report.slices is not None


def test_runs_without_a_comparison_of_them_are_refused(made: Made) -> None:
    runs, comparison, _ = made
    with pytest.raises(ParameterError, match="3 runs and no comparison"):
        build_view(runs)
    with pytest.raises(ParameterError, match="the comparison is of"):
        build_view(runs[:2], comparison)
    with pytest.raises(ParameterError, match="at least one run"):
        build_view([])


def test_a_partial_run_is_named_at_the_top(tmp_path: Path) -> None:
    runs = made_up(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 40)})
    partial = replace(runs[0].manifest, status=Status.PARTIAL, reason="interrupted")
    runs[0] = replace(runs[0], manifest=partial)
    report = build_view(runs, compare_runs(runs), exports=False)
    assert report.cautions == ("the run of a is partial: interrupted",)
    assert [bool(each.caution) for each in report.systems] == [each.name == "a" for each in report.systems]


def test_lower_is_better_where_the_metric_says_so(tmp_path: Path) -> None:
    near = ranks(1, 60)
    runs = made_up(
        tmp_path,
        ["far", "near"],
        {"MR": np.concatenate([near * 4, near])},
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


def _with_slices(folder: Path, values: Floats, kinds: dict[str, dict[str, str]]) -> list[StoredRun]:
    details: dict[str | int, UnitContent] = {unit: UnitContent("?", slices=own) for unit, own in kinds.items()}
    return made_up(folder, ["a", "b"], {"nDCG@10": values}, details=details)
