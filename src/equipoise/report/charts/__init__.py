"""All charts of a report, in the order of its sections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, slug, unique_names, write_charts
from equipoise.report.charts.curves import cost_charts
from equipoise.report.charts.distribution import distribution_chart
from equipoise.report.charts.heatmap import slice_heatmap, win_matrix
from equipoise.report.charts.intervals import difference_chart, leaderboard_chart
from equipoise.report.charts.tuning import cost_frontier_chart, fold_chart, grid_heatmap
from equipoise.runs.experiment_folder import VISUALIZATIONS
from equipoise.runs.run_folder import load_run

if TYPE_CHECKING:
    from equipoise.report.view import RunsView
    from equipoise.report.view_model import TuningView
    from equipoise.stats.comparison import Comparison


def report_charts(report: RunsView) -> tuple[Chart, ...]:
    """The charts of a report; their names are unique and safe as file names."""
    return unique_names(list(_charts(report)))


def _charts(report: RunsView) -> Iterator[Chart]:
    if report.leaderboards and report.leaderboard.rows:
        yield leaderboard_chart(report.leaderboard)
        yield from cost_charts(report.leaderboard, report.costs)
    if report.pairwise is not None and report.pairwise.rows:
        yield difference_chart(report.pairwise)
        yield win_matrix(report.pairwise, report.systems)
    if report.slices is not None and report.slices.rows:
        yield slice_heatmap(report.slices, report.systems)
    for distribution in report.distributions:
        yield distribution_chart(distribution, f"distribution-{slug(distribution.title.partition(' by ')[2])}")
    for tuned in report.tuning:
        yield grid_heatmap(tuned)
        if tuned.folds:
            yield fold_chart(tuned)
    for views in _by_cost(report):
        yield cost_frontier_chart(views, report.systems)
    yield from report.charts


def _by_cost(report: RunsView) -> list[list[TuningView]]:
    """The tunings with costs, grouped by metric and cost unit."""
    groups: dict[tuple[str, str], list[TuningView]] = {}
    for tuned in report.tuning:
        if any(trial.cost is not None for trial in tuned.trials):
            groups.setdefault((tuned.metric, tuned.cost_unit), []).append(tuned)
    return list(groups.values())


def write_run_charts(folder: Path, runs: Sequence[Path], comparison: Comparison | None) -> list[Path]:
    """Every chart of these run directories as PNG and SVG; none if the converter is not installed."""
    from equipoise.report.build_view import build_view

    report = build_view([load_run(path, evidence=False) for path in runs], comparison, exports=False)
    return write_charts(report_charts(report), folder / VISUALIZATIONS, required=False)


__all__ = ["Chart", "report_charts", "write_run_charts"]
