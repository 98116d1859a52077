"""All charts of a page, in the order in which the page speaks of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.report.breakdowns import UNITS_BY_TITLE
from equipoise.report.charts.chart import Chart, slug, unique_names
from equipoise.report.charts.distribution import distribution_chart
from equipoise.report.charts.heatmap import slice_heatmap, win_matrix
from equipoise.report.charts.intervals import difference_chart, leaderboard_chart
from equipoise.report.charts.projection import projection_chart
from equipoise.report.charts.tuning import cost_frontier_chart, fold_chart, grid_heatmap

if TYPE_CHECKING:
    from equipoise.report.view_model import Page, Tuned


def report_charts(page: Page) -> tuple[Chart, ...]:
    """The charts that the page has figures for; their names are file names and all differ."""
    return unique_names(list(_charts(page)))


def _charts(page: Page) -> Iterator[Chart]:
    if page.leagues and page.league.rows:
        yield leaderboard_chart(page.league)
    if page.pairs is not None and page.pairs.rows:
        yield difference_chart(page.pairs)
        yield win_matrix(page.pairs, page.systems)
    if page.slices is not None and page.slices.rows:
        yield slice_heatmap(page.slices, page.systems)
    for distribution in page.distributions:
        what = distribution.title.removeprefix(UNITS_BY_TITLE)
        yield distribution_chart(distribution, f"distribution-{slug(what)}")
    for tuned in page.tuned:
        yield grid_heatmap(tuned)
        if tuned.folds:
            yield fold_chart(tuned)
    for alike in _by_cost(page):
        yield cost_frontier_chart(alike, page.systems)
    for each in page.maps:
        yield projection_chart(each)


def _by_cost(page: Page) -> list[list[Tuned]]:
    """The systems whose points have a cost, those of one metric and one kind of cost together."""
    groups: dict[tuple[str, str], list[Tuned]] = {}
    for tuned in page.tuned:
        if any(trial.cost is not None for trial in tuned.trials):
            groups.setdefault((tuned.metric, tuned.cost_unit), []).append(tuned)
    return list(groups.values())


__all__ = ["Chart", "report_charts"]
