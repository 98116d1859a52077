"""Charts of term retrieval have the given data, and every specification compiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert

from equipoise.report.charts.bars import metric_bars
from equipoise.report.charts.chart import Chart, render_svg
from equipoise.report.charts.curves import accuracy_at_k_chart, precision_recall_chart
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction

CURVES = {"dense": [(0.3, 0.6), (0.5, 0.5), (0.8, 0.4)], "<b>lexical</b>": [(0.1, 0.2), (0.2, 0.2), (0.2, 0.1)]}


def estimate(metric: str, value: float, interval: Interval, chance: float = 0.1) -> Estimate:
    return Estimate(metric, value, interval, 20, 0, chance, Direction.UP)


def bars() -> Chart:
    known, unknown = Interval(0.3, 0.7), Interval.unknown("one unit")
    return metric_bars(
        {
            "dense": [estimate("MRR", 0.5, known), estimate("HR@1", 0.4, known)],
            "<b>lexical</b>": [estimate("MRR", 0.2, unknown), estimate("HR@1", 0.1, known, float("nan"))],
        }
    )


def rows_of(chart: Chart) -> Iterator[dict[str, Any]]:
    for dataset in vl_convert.vegalite_to_vega(chart.spec)["data"]:
        yield from dataset.get("values", ())


def test_every_chart_compiles_without_warnings_and_is_rendered(capfd: pytest.CaptureFixture[str]) -> None:
    for chart in (
        bars(),
        precision_recall_chart(CURVES),
        accuracy_at_k_chart({"a": [0.1, 0.4]}, what="Hit rate"),
    ):
        assert vl_convert.vegalite_to_vega(chart.spec, show_warnings=True)["marks"], chart.name
        svg = render_svg(chart)
        assert "NaN" not in svg
        assert "<b>" not in svg
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_tooltips_of_bars_have_system_metric_interval_and_chance() -> None:
    tooltips = list(dict.fromkeys(row["tooltip"] for row in rows_of(bars()) if "tooltip" in row))
    assert tooltips[0] == "dense: MRR 0.500, interval [0.300, 0.700], chance 0.1000, n 20"
    assert len(tooltips) == 4
    assert bars().description == "MRR: dense 0.500, <b>lexical</b> 0.200; dense has the highest."
    tied = metric_bars({name: [estimate("MRR", 0.5, Interval(0.3, 0.7))] for name in ("rye", "oats")})
    assert tied.description == "MRR: rye 0.500, oats 0.500; rye, oats have the highest."


def test_the_points_of_the_curve_are_recall_and_precision() -> None:
    chart = precision_recall_chart(CURVES)
    points = [(row["x"], row["y"]) for row in rows_of(chart) if "k" in row]
    for point in CURVES["dense"]:
        assert point in points
    assert "dense begins at recall 0.300 with precision 0.600 and reaches recall 0.800" in chart.description


def test_the_curve_over_k_has_the_given_metric_name() -> None:
    chart = accuracy_at_k_chart({"dense": [0.5, 0.7]}, name="hits", what="Hit rate", symbol="HR")
    assert chart.title == "Hit rate over k"
    assert any(row.get("tooltip") == "dense: HR@2 0.700" for row in rows_of(chart))
