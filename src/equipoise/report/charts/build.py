"""All charts of a page, in the order in which the page speaks of them."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.report.charts.chart import Chart, apart, slug
from equipoise.report.charts.distribution import distribution_chart
from equipoise.report.charts.forest import forest_chart
from equipoise.report.charts.frontier import frontier_chart
from equipoise.report.charts.league import league_chart
from equipoise.report.charts.map import map_chart
from equipoise.report.charts.slices import slices_chart
from equipoise.report.charts.tuning import folds_chart, grid_chart
from equipoise.report.charts.wins import wins_chart
from equipoise.report.page.distributions import UNITS_BY
from equipoise.report.page.model import Page, Tuned


def charts_of(page: Page) -> tuple[Chart, ...]:
    """The charts that the page has figures for; their names are file names and all differ."""
    return apart(list(_charts(page)))


def _charts(page: Page) -> Iterator[Chart]:
    if page.leagues and page.league.rows:
        yield league_chart(page.league)
    if page.pairs is not None and page.pairs.rows:
        yield forest_chart(page.pairs)
        yield wins_chart(page.pairs, page.systems)
    if page.slices is not None and page.slices.rows:
        yield slices_chart(page.slices, page.systems)
    for distribution in page.distributions:
        what = distribution.title.removeprefix(UNITS_BY)
        yield distribution_chart(distribution, f"distribution-{slug(what)}")
    for tuned in page.tuned:
        yield grid_chart(tuned)
        if tuned.folds:
            yield folds_chart(tuned)
    for alike in _by_cost(page):
        yield frontier_chart(alike, page.systems)
    for each in page.maps:
        yield map_chart(each)


def _by_cost(page: Page) -> list[list[Tuned]]:
    """The systems whose points have a cost, those of one metric and one kind of cost together."""
    groups: dict[tuple[str, str], list[Tuned]] = {}
    for tuned in page.tuned:
        if any(trial.cost is not None for trial in tuned.trials):
            groups.setdefault((tuned.metric, tuned.cost_unit), []).append(tuned)
    return list(groups.values())
