"""What the page says, against the comparison and the runs it is made of."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import ParameterError
from equipoise.report.build import build_page, compare_runs
from equipoise.report.export import export
from equipoise.report.view_model import Page
from equipoise.runs.manifest import Status
from equipoise.runs.store import StoredRun
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

Made = tuple[list[StoredRun], Comparison, Page]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    runs = bread_runs(tmp_path_factory.mktemp("bread"))
    comparison = compare_runs(runs)
    assert comparison is not None
    return runs, comparison, build_page(runs, comparison)


def test_the_verdict_is_that_of_the_comparison(made: Made) -> None:
    _, comparison, page = made
    assert page.verdict == comparison.verdict()


def test_systems_stand_in_the_order_of_the_comparison_everywhere(made: Made) -> None:
    _, comparison, page = made
    assert tuple(each.name for each in page.systems) == comparison.order
    assert [each.letter for each in page.systems] == ["A", "B", "C"]
    for league in page.leagues:
        assert tuple(row.system for row in league.rows) == comparison.order
    assert tuple(each.system for each in page.tuned) == comparison.order


def test_every_figure_of_the_league_is_that_of_the_comparison(made: Made) -> None:
    _, comparison, page = made
    assert [league.metric for league in page.leagues] == list(comparison.metrics)
    for league in page.leagues:
        estimates = {name: comparison.estimates[name][league.metric] for name in comparison.order}
        places = shared_decimals(each.interval for each in estimates.values())
        for row in league.rows:
            own = estimates[row.system]
            assert (row.figure.value, row.figure.low, row.figure.high) == (
                own.value,
                own.interval.low,
                own.interval.high,
            )
            assert row.figure.text == format_value(own.value, places)
            assert row.figure.span == format_interval(own.interval, places)
            assert (row.n, row.undefined) == (str(own.n), str(own.undefined))
            assert row.chance == own.chance
            assert row.bands == comparison.bands_on(league.metric)[row.system]
            ends = [own.interval.low, own.interval.high, own.chance]
            assert all(league.scale.low <= end <= league.scale.high for end in ends)


def test_differences_to_the_leader_have_its_sign_and_its_p(made: Made) -> None:
    _, comparison, page = made
    leader, *others = page.league.rows
    assert leader.difference == leader.p == leader.counts == ""
    for row in others:
        seen = comparison.contrast(row.system, comparison.order[0])
        assert float(row.difference) == pytest.approx(seen.difference, abs=5e-4)
        assert row.p == format_p(seen.adjusted)
        assert row.counts == f"{seen.wins}/{seen.ties}/{seen.losses}"


def test_every_pair_stands_once_with_the_better_ranked_first(made: Made) -> None:
    _, comparison, page = made
    assert page.pairs is not None
    assert [(row.a, row.b) for row in page.pairs.rows] == list(combinations(comparison.order, 2))
    places = shared_decimals(each.interval for each in comparison.contrasts if each.metric == page.primary)
    for row in page.pairs.rows:
        seen = comparison.contrast(row.a, row.b)
        assert row.figure.value == seen.difference
        assert row.figure.text == format_difference(seen.difference, places)
        assert row.adjusted == format_p(seen.adjusted)
        assert (row.wins, row.ties, row.losses) == (seen.wins, seen.ties, seen.losses)
        assert row.winner == (seen.winner(comparison.alpha) or "")


def test_the_win_matrix_mirrors_itself(made: Made) -> None:
    _, _, page = made
    assert page.pairs is not None
    matrix = page.pairs.matrix
    for row in range(3):
        assert matrix[row][row] is None
        for column in range(row):
            one, other = matrix[row][column], matrix[column][row]
            assert one is not None
            assert other is not None
            assert one.text == "/".join(reversed(other.text.split("/")))
            assert one.told_apart == other.told_apart


def test_costs_are_those_of_the_manifests_and_unknown_ones_stay_empty(made: Made) -> None:
    runs, _, page = made
    assert [cost.name for cost in page.costs] == list(COST)
    by_name = {run.result.system: run.manifest.cost for run in runs}
    for cost in page.costs:
        assert cost.values == tuple(by_name[each.name].get(cost.name) for each in page.systems)
    texts = {cost.name: cost.texts[[each.name for each in page.systems].index("hash")] for cost in page.costs}
    assert texts == {
        "dims": "384",
        "seconds": "1.23",
        "bytes_per_vector": "1,536",
        "truncated_share": "25 %",
    }


def test_unusual_costs_are_facts_of_the_protocol(tmp_path: Path) -> None:
    cost = {"dims": 8.0, "grid_chunks": 1234.0, "window": None}
    page = build_page(made_up(tmp_path, ["a"], {"MRR": 1 / ranks(1, 30)}, cost=cost))
    assert [each.name for each in page.costs] == ["dims"]
    (group,) = [group for group in page.protocol.groups if group.title == "Other costs"]
    assert [(fact.name, fact.texts) for fact in group.facts] == [
        ("grid chunks", ("1,234",)),
        ("window", ("—",)),
    ]


def test_slices_are_those_of_the_statistics(made: Made) -> None:
    runs, _, page = made
    assert page.slices is not None
    known = {unit: detail.slices for unit, detail in runs[0].details.items()}
    for place, system in enumerate(page.systems):
        run = next(run for run in runs if run.result.system == system.name)
        expected = {(each.name, each.value): each.estimate for each in slice_estimates(run.result, page.primary, known)}
        shown = {(row.name, row.value): row.cells[place] for row in page.slices.rows}
        assert shown.keys() == expected.keys()
        for key, cell in shown.items():
            assert cell.value == expected[key].value
            assert cell.few == (expected[key].n < MIN_UNITS)


def test_small_slices_are_greyed_and_never_shaded(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 30)[np.newaxis].repeat(2, 0)
    kinds = {f"q{place}": {"kind": "rare" if place < 5 else "usual"} for place in range(30)}
    runs = _with_slices(tmp_path, values, kinds)
    page = build_page(runs, compare_runs(runs), texts=False)
    assert page.slices is not None
    rows = {row.value: row for row in page.slices.rows}
    assert (rows["rare"].few, rows["usual"].few) == (True, False)
    assert all(cell.shade is None for cell in rows["rare"].cells)
    assert all(cell.shade is not None for cell in rows["usual"].cells)


def test_a_slice_with_a_value_of_its_own_for_each_unit_makes_no_table(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 50)[np.newaxis].repeat(2, 0)
    runs = _with_slices(tmp_path, values, {f"q{place}": {"id": f"u{place}"} for place in range(50)})
    assert build_page(runs, compare_runs(runs), texts=False).slices is None


def test_distributions_count_every_unit_once(made: Made) -> None:
    runs, _, page = made
    for part in page.distributions:
        assert len(part.edges) == len(part.labels) + 1
        for series in part.series:
            assert sum(series.counts) + series.undefined == len(runs[0].result.unit_ids)


def test_undefined_units_are_counted_beside_the_bins(tmp_path: Path) -> None:
    values = np.array([[1.0, np.nan, 0.0, 0.5], [1.0, np.nan, 1.0, 0.25]])
    runs = made_up(tmp_path, ["a", "b"], {"nDCG@10": values})
    part = build_page(runs, compare_runs(runs), texts=False).distributions[0]
    assert [series.undefined for series in part.series] == [1, 1]


def test_findings_keep_code_evidence_and_hint(made: Made) -> None:
    _, comparison, page = made
    shown = {
        (group.code, item.subject, item.message, item.evidence, group.hint)
        for group in page.findings
        for item in group.items
    }
    expected = {(each.code, each.subject, each.message, each.evidence, each.hint) for each in comparison.findings}
    assert shown == expected
    assert all(group.title for group in page.findings)


def test_only_parameters_that_differ_are_marked(made: Made) -> None:
    _, _, page = made
    groups = {group.title: {fact.name: fact for fact in group.facts} for group in page.protocol.groups}
    parameters = groups["Parameters of the systems"]
    assert (parameters["model"].differs, parameters["stemmer"].differs) == (True, False)
    assert not groups["Data (SHA-256)"]["bread"].differs
    assert not groups["Runs"]["evidence"].differs
    assert len(set(groups["Runs"]["evidence"].texts)) == 3


def test_the_grid_holds_every_trial_once(made: Made) -> None:
    runs, _, page = made
    for tuned in page.tuned:
        tuning = next(run.tuning for run in runs if run.result.system == tuned.system)
        assert tuning is not None
        cells = [cell for _, row in tuned.grid.rows for cell in row if cell is not None]
        assert sorted(cell.value or 0.0 for cell in cells) == sorted(trial.value for trial in tuning.trials)
        assert tuned.grid.column_head == "top_k"
        assert [mark for cell in cells for mark in cell.marks if mark == "best"] == ["best"]
        assert sum(trial.chosen for trial in tuned.trials) == len(tuning.folds)
        assert dict(tuned.facts)["gap"] == format_difference(tuning.optimistic - tuning.nested)
        assert [point.cost for point in tuned.frontier] == [trial.cost for trial in tuning.frontier]


def test_texts_to_take_away_are_those_of_the_export(made: Made) -> None:
    runs, comparison, page = made
    ordered = [next(run for run in runs if run.result.system == name) for name in comparison.order]
    assert [each.name for each in page.downloads] == ["latex", "md", "csv", "json", "card", "bibtex"]
    for download in page.downloads:
        assert download.text == export(ordered, comparison, download.name)


def test_one_run_alone_has_no_parts_of_a_comparison(made: Made) -> None:
    page = build_page(made[0][:1])
    assert page.pairs is None
    assert len(page.systems) == 1
    assert page.league.rows[0].bands == ()
    assert "One run alone" in page.verdict
    assert page.explorer is not None
    assert page.slices is not None


def test_runs_without_a_comparison_of_them_are_refused(made: Made) -> None:
    runs, comparison, _ = made
    with pytest.raises(ParameterError, match="3 runs and no comparison"):
        build_page(runs)
    with pytest.raises(ParameterError, match="the comparison is of"):
        build_page(runs[:2], comparison)
    with pytest.raises(ParameterError, match="at least one run"):
        build_page([])


def test_a_partial_run_is_named_at_the_top(tmp_path: Path) -> None:
    runs = made_up(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 40)})
    partial = replace(runs[0].manifest, status=Status.PARTIAL, reason="interrupted")
    runs[0] = replace(runs[0], manifest=partial)
    page = build_page(runs, compare_runs(runs), texts=False)
    assert page.cautions == ("the run of a is partial: interrupted",)
    assert [bool(each.caution) for each in page.systems] == [each.name == "a" for each in page.systems]


def test_lower_is_better_where_the_metric_says_so(tmp_path: Path) -> None:
    near = ranks(1, 60)
    runs = made_up(
        tmp_path,
        ["far", "near"],
        {"MR": np.concatenate([near * 4, near])},
        bounds=(1.0, 1000.0),
        better=Direction.DOWN,
    )
    page = build_page(runs, compare_runs(runs), texts=False)
    assert page.better == page.league.better == "down"
    assert page.systems[0].name == "near"
    assert page.pairs is not None
    assert page.pairs.rows[0].winner == "near"
    assert (page.pairs.rows[0].figure.value or 0) < 0
    assert "to the left of 0" in page.pairs.caption


def _with_slices(folder: Path, values: Floats, kinds: dict[str, dict[str, str]]) -> list[StoredRun]:
    details: dict[str | int, UnitContent] = {unit: UnitContent("?", slices=own) for unit, own in kinds.items()}
    return made_up(folder, ["a", "b"], {"nDCG@10": values}, details=details)
