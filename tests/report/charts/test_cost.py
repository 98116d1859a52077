"""Quality against cost: one chart per cost that at least two systems recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.charts import report_charts
from equipoise.report.view import RunsView
from stored_runs import ranks, synthetic_runs


def report_of(folder: Path, costs: list[dict[str, float | None]]) -> RunsView:
    """Systems with the same values and these costs."""
    runs = []
    for index, cost in enumerate(costs):
        runs += synthetic_runs(folder / str(index), [f"s{index}"], {"MRR": 1 / ranks(1, 30)}, cost=cost)
    return build_view(runs, compare_runs(runs), exports=False)


def points(report: RunsView, name: str) -> dict[str, tuple[float, float]]:
    """The systems of a chart, with cost and score."""
    (chart,) = [chart for chart in report_charts(report) if chart.name == name]
    rows = [
        row
        for layer in chart.spec["layer"]
        if layer["mark"].get("shape")
        for row in layer.get("data", {}).get("values", ())
        if "cost" in row
    ]
    return {row["name"]: (row["cost"], row["value"]) for row in rows}


def test_every_system_with_the_cost_is_a_point(tmp_path: Path) -> None:
    report = report_of(tmp_path, [{"bytes_per_vector": 1536.0}, {"bytes_per_vector": 64.0}, {"bytes_per_vector": None}])
    scores = {row.system: row.score.number for row in report.leaderboard.rows}
    assert points(report, "cost-bytes-per-vector") == {"s0": (1536.0, scores["s0"]), "s1": (64.0, scores["s1"])}


def test_rates_are_shown_as_seconds_per_1000_texts(tmp_path: Path) -> None:
    report = report_of(tmp_path, [{"documents_per_second": 500.0}, {"documents_per_second": 20.0}])
    points_by_system = points(report, "cost-documents-per-second")
    assert [points_by_system[name][0] for name in ("s0", "s1")] == pytest.approx([2.0, 50.0])


@pytest.mark.parametrize("costs", [[{"seconds": 1.0}, {}], [{}, {}], [{"dims": 4.0}, {"dims": 8.0}]])
def test_a_cost_that_cannot_be_compared_has_no_chart(tmp_path: Path, costs: list[dict[str, float | None]]) -> None:
    assert not [chart for chart in report_charts(report_of(tmp_path, costs)) if chart.name.startswith("cost")]
