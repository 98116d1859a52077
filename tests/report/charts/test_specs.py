"""Charts have the values of the comparison, and every specification compiles without warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import vl_convert

from equipoise.report.charts import report_charts
from equipoise.report.charts.chart import Chart
from equipoise.report.charts.distribution import WIDTH
from equipoise.report.charts.heatmap import slice_heatmap, win_matrix
from equipoise.report.charts.intervals import difference_chart
from equipoise.report.charts.projection import projection_chart
from equipoise.report.charts.tuning import grid_heatmap
from equipoise.report.view import RunsView
from equipoise.report.view_model import (
    AxisScale,
    HeatCell,
    PairDifference,
    PairwiseTable,
    Point,
    Projection,
    SliceRow,
    SliceTable,
    SystemInfo,
    Value,
    WinCell,
)
from equipoise.stats.comparison import Comparison
from equipoise.stats.formatting import p_in_sentence
from equipoise.types import Direction

ReportAndComparison = tuple[RunsView, Comparison]
ReportMaker = Callable[..., tuple[RunsView, Comparison | None]]


def chart_named(report: RunsView, name: str) -> Chart:
    return next(chart for chart in report_charts(report) if chart.name == name)


def compile_chart(chart: Chart) -> dict[str, Any]:
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(chart.spec, show_warnings=True)
    return vega


def rows_of(chart: Chart) -> Iterator[dict[str, Any]]:
    """All rows of data of the compiled chart."""
    for dataset in compile_chart(chart)["data"]:
        yield from dataset.get("values", ())


def test_every_chart_compiles_without_warnings(
    comparison_report: ReportAndComparison, capfd: pytest.CaptureFixture[str]
) -> None:
    for chart in report_charts(comparison_report[0]):
        assert compile_chart(chart)["marks"], chart.name
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_a_full_report_has_a_chart_of_every_kind(comparison_report: ReportAndComparison) -> None:
    names = {chart.name for chart in report_charts(comparison_report[0])}
    assert names >= {
        "leaderboard",
        "differences",
        "wins",
        "slices",
        "distribution-mrr",
        "frontier",
        "projection-a-tree",
    }
    assert names >= {"tuning-grid-alpha", "tuning-folds-alpha", "tuning-grid-delta", "projection-a-tree-2"}


def test_the_leaderboard_chart_has_the_values_and_intervals_of_the_comparison(
    comparison_report: ReportAndComparison,
) -> None:
    report, comparison = comparison_report
    rows_by_name = {row["name"]: row for row in rows_of(chart_named(report, "leaderboard")) if "name" in row}
    assert list(rows_by_name) == list(comparison.order)
    for system, row in rows_by_name.items():
        estimate = comparison.estimates[system]["MRR"]
        assert (row["value"], row["low"], row["high"]) == pytest.approx(
            (estimate.value, estimate.interval.low, estimate.interval.high)
        )
        assert row["chance"] == pytest.approx(0.2)


def test_shapes_mark_systems_tied_with_the_best(comparison_report: ReportAndComparison) -> None:
    report, comparison = comparison_report
    tied = {comparison.leader, *comparison.tied_with_leader}
    for row in rows_of(chart_named(report, "leaderboard")):
        if "name" in row:
            assert row["shape"] == ("circle" if row["name"] in tied else "diamond")


def test_the_forest_has_the_differences_of_the_comparison(comparison_report: ReportAndComparison) -> None:
    report, comparison = comparison_report
    rows_by_name = {row["name"]: row for row in rows_of(chart_named(report, "differences")) if "name" in row}
    assert len(rows_by_name) == 6
    for title, row in rows_by_name.items():
        contrast = comparison.contrast(*title.split(" − "))
        assert (row["value"], row["low"], row["high"]) == pytest.approx(
            (contrast.difference, contrast.interval.low, contrast.interval.high)
        )
        assert row["shape"] == ("circle" if contrast.winner(comparison.alpha) else "diamond")
        assert f"adjusted {p_in_sentence(row['p'])}" in row["tooltip"]


def test_the_win_matrix_counts_wins_ties_and_losses(comparison_report: ReportAndComparison) -> None:
    report, comparison = comparison_report
    cells = {(row["row"], row["column"]): row for row in rows_of(chart_named(report, "wins")) if "tooltip" in row}
    assert len(cells) == 12
    for (row, column), cell in cells.items():
        contrast = comparison.contrast(comparison.order[row], comparison.order[column])
        assert cell["text"] == f"{contrast.wins}/{contrast.ties}/{contrast.losses}"


def test_slices_have_the_means_over_the_units_with_values_of_all_systems(
    comparison_report: ReportAndComparison,
) -> None:
    report, _ = comparison_report
    columns = {column["metric"]: column for column in report.explorer.columns} if report.explorer else {}
    values = np.array(columns["MRR"]["values"], dtype=float)
    values[:, np.isnan(values).any(axis=0)] = np.nan
    kinds = np.array([index % 3 != 0 for index in range(60)])
    cells = {(row["row"], row["column"]): row for row in rows_of(chart_named(report, "slices")) if "tooltip" in row}
    assert report.slices is not None
    for (row, column), cell in cells.items():
        slice_values = values[column, kinds if report.slices.rows[row].value == "exact" else ~kinds]
        assert float(cell["text"]) == pytest.approx(np.nanmean(slice_values), abs=0.0051)


def test_the_bars_of_a_distribution_are_as_high_as_their_counts(comparison_report: ReportAndComparison) -> None:
    report, _ = comparison_report
    bars = [row for row in rows_of(chart_named(report, "distribution-mrr")) if "bin" in row and "top" in row]
    counts = [count for series in report.distributions[0].series for count in series.counts if count]
    heights = [row["base"] - row["top"] for row in bars]
    assert heights == pytest.approx(np.array(counts) * max(heights) / max(counts))


def test_stacked_bars_have_the_fractions_of_hits_and_misses(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["alpha", "beta"], hits=True, undefined={"beta": [1, 2, 3]})
    parts = [row for row in rows_of(chart_named(report, "distribution-hr-5")) if "from" in row]
    for row, series in enumerate(report.distributions[0].series):
        widths = [part["to"] - part["from"] for part in parts if part["row"] == row]
        shares = [series.counts[1], series.counts[0], series.undefined]
        assert widths == pytest.approx([WIDTH * units / 60 for units in shares if units])


def test_few_distinct_values_are_stacked_bars(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["alpha", "beta"], hits=True)
    first, difference = report.distributions[:2]
    assert first.labels == ("0", "1")
    assert difference.labels == ("-1", "0", "1")
    chart = chart_named(report, "distribution-difference-in-hr-5-alpha-minus-beta")
    parts = [row for row in rows_of(chart) if "from" in row]
    assert [row["text"].split(":")[0] for row in parts if row["row"] == 0][:3] == ["1", "0", "-1"]
    assert len({row["fill"] for row in parts}) == 3


def test_the_grid_shows_every_trial_and_marks_selected_ones(comparison_report: ReportAndComparison) -> None:
    report, _ = comparison_report
    cells = [row for row in rows_of(chart_named(report, "tuning-grid-alpha")) if "tooltip" in row and "column" in row]
    assert sorted({cell["text"] for cell in cells}) == sorted(trial.text for trial in report.tuning[0].trials)
    framed = {cell["text"] for cell in cells if "×" in cell["subtext"]}
    assert framed == {"0.756", "0.856"}


def test_configurations_above_the_budget_do_not_count_as_equal(
    comparison_report: ReportAndComparison,
) -> None:
    tuned = comparison_report[0].tuning[0]
    trial = replace(tuned.trials[0], best=True)
    equal = tuple(replace(trial, cost=cost, best=cost == 900) for cost in (900, 1300, 1301))
    described = grid_heatmap(replace(tuned, trials=equal)).description
    assert "(one of 2 configurations with this score)" in described


def test_folds_show_inner_and_outer_scores(comparison_report: ReportAndComparison) -> None:
    report, _ = comparison_report
    rows = [row for row in rows_of(chart_named(report, "tuning-folds-alpha")) if "choice" in row]
    folds = {(row["name"], row["inner"], row["outer"]) for row in rows}
    assert folds == {(f"fold {fold.name}", fold.inner, fold.outer) for fold in report.tuning[0].folds}


def test_the_frontier_has_all_trials_with_costs_and_the_budget(comparison_report: ReportAndComparison) -> None:
    report, _ = comparison_report
    rows = list(rows_of(chart_named(report, "frontier")))
    points = {(row["cost"], row["value"]) for row in rows if row.get("system") == "alpha"}
    assert points == {(trial.cost, trial.value) for trial in report.tuning[0].trials}
    assert any(row.get("text") == "budget 1,300 tokens" for row in rows)


def test_projections_have_all_points() -> None:
    points = tuple(Point(n / 10, -n / 20, f"node {n}") for n in range(9))
    rows = [row for row in rows_of(projection_chart(Projection("A tree", "disk", points))) if "tooltip" in row]
    assert [(row["x"], row["y"]) for row in rows] == [(point.x, point.y) for point in points]


def test_descriptions_are_sentences_with_numbers(comparison_report: ReportAndComparison) -> None:
    for chart in report_charts(comparison_report[0]):
        assert chart.description.endswith("."), chart.name
        assert any(letter.isdigit() for letter in chart.description), chart.name


def test_one_system_has_a_leaderboard_and_no_pairs(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["alone"])
    names = [chart.name for chart in report_charts(report)]
    assert names[0] == "leaderboard"
    assert not {"differences", "wins"} & set(names)


def test_the_axis_title_has_the_direction(report_maker: ReportMaker) -> None:
    for better, expected_text in ((Direction.UP, "higher is better →"), (Direction.DOWN, "← lower is better")):
        report, _ = report_maker(["one", "two"], better=better)
        assert expected_text in str(chart_named(report, "leaderboard").spec)


def test_the_direction_label_is_on_the_left_if_lower_is_better(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["one", "two"], better=Direction.DOWN)
    assert "← first better" in str(chart_named(report, "differences").spec)


def test_a_system_without_a_value_has_a_row_with_the_reason(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["one", "two", "three"], undefined={"two": range(60)})
    row = next(row for row in rows_of(chart_named(report, "leaderboard")) if row.get("name") == "two")
    assert row["value"] is None
    assert row["label"].startswith("n/a (")


def test_with_many_systems_only_differences_to_the_leader_are_drawn(
    report_maker: ReportMaker, capfd: pytest.CaptureFixture[str]
) -> None:
    report, _ = report_maker([f"a/very/long/common/beginning/of/the/name/model-{index:02}" for index in range(30)])
    leaderboard, forest = chart_named(report, "leaderboard"), chart_named(report, "differences")
    names = [row["name"] for row in rows_of(leaderboard) if "name" in row]
    assert len(set(names)) == 30
    assert max(map(len, names)) <= 36
    pairs = [row for row in rows_of(forest) if "name" in row]
    assert len(pairs) == 29
    assert all(report.systems[0].name in row["tooltip"] for row in pairs)
    assert "406 others" in forest.spec["title"]["subtitle"]
    assert capfd.readouterr().err == ""


def test_captions_have_the_percent_sign_after_the_value(report_maker: ReportMaker) -> None:
    report, _ = report_maker(["alpha", "beta"], hits=True, tuned=True, metric="accuracy (%)")
    first = report.leaderboards[0].rows[0]
    assert f"alpha with accuracy {first.score.text} % [" in chart_named(report, "leaderboard").description
    assert not [chart.description for chart in report_charts(report) if "(%)" in chart.description]


def pair_difference(a: str, b: str, difference: float) -> PairDifference:
    return PairDifference(
        "HR@1", a, b, Value(difference, None, None, f"{difference:+.1f}", "[-1, 1]"), "0.1", "0.2", "", "8"
    )


def test_descriptions_name_every_tied_maximum() -> None:
    systems = [SystemInfo(name, name[0]) for name in ("rye", "oats", "corn")]
    wins, losses = WinCell("4/2/2", 0.5, significant=False), WinCell("2/2/4", 0.25, significant=False)
    table = PairwiseTable(
        "HR@1",
        "higher",
        AxisScale(-1.0, 1.0, ()),
        (
            pair_difference("rye", "oats", 0.1),
            pair_difference("rye", "corn", 0.3),
            pair_difference("oats", "corn", -0.3),
        ),
        ((None, wins, wins), (losses, None, losses), (losses, losses, None)),
        (),
        "",
        "questions",
    )
    assert difference_chart(table).description.endswith(
        "the largest difference is rye minus corn, +0.3 [-1, 1], adjusted p = 0.2; equally large: oats minus corn."
    )
    assert win_matrix(table, systems).description == (
        "The most wins on HR@1: on 50 % of questions (rye over oats, rye over corn)."
    )
    best, worst = HeatCell("90 %", 0.9, 1.0), HeatCell("20 %", 0.2, 0.0)
    rows = (
        SliceRow("kind", "exact", 30, False, (best, best, worst)),
        SliceRow("kind", "hard", 30, False, (HeatCell("50 %", 0.5, 0.4), worst, worst)),
    )
    assert slice_heatmap(SliceTable("HR@1", "higher", rows, ""), systems).description == (
        "Best HR@1: rye on kind exact, oats on kind exact (90 %). "
        "Worst: corn on kind exact, oats on kind hard, corn on kind hard (20 %)."
    )
