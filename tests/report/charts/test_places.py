"""Charts of classes and ranks have the given data, and every specification compiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert

from equipoise.report.charts.bars import CalibrationPoint, rank_histogram_chart, reliability_chart
from equipoise.report.charts.chart import Chart, render_svg
from equipoise.report.charts.curves import accuracy_at_k_chart
from equipoise.report.charts.heatmap import confusion_chart

CURVES = {"lstm": [0.5, 0.7, 0.8, 0.85], "<b>markov</b>": [0.1, 0.2, 0.25, 0.9]}
SHARES = {"lstm": [0.6, 0.3, 0.1], "markov": [0.0004, 0.4996, 0.5]}
COUNTS = [[8, 2, 0], [1, 4, 5]]
CALIBRATION_POINTS = [
    CalibrationPoint(0.2, 0.3, 0.25, 0.5, 0.3, 0.7, 10),
    CalibrationPoint(0.9, 1.0, 0.95, 0.8, None, None, 30),
]


def charts() -> list[Chart]:
    return [
        accuracy_at_k_chart(CURVES, [0.25, 0.5, 0.75, 1.0]),
        accuracy_at_k_chart({"lstm": [0.5]}),
        rank_histogram_chart(["1", "2-5", "6-9"], SHARES),
        confusion_chart("lstm", ["home", "work"], COUNTS),
        reliability_chart("lstm", CALIBRATION_POINTS, 0.12, 0.03),
    ]


def rows_of(chart: Chart) -> Iterator[dict[str, Any]]:
    for dataset in vl_convert.vegalite_to_vega(chart.spec)["data"]:
        yield from dataset.get("values", ())


def tooltips_of(chart: Chart) -> list[str]:
    return list(dict.fromkeys(row["tooltip"] for row in rows_of(chart) if "tooltip" in row))


def test_every_chart_compiles_without_warnings_and_is_rendered(capfd: pytest.CaptureFixture[str]) -> None:
    for chart in charts():
        assert vl_convert.vegalite_to_vega(chart.spec, show_warnings=True)["marks"], chart.name
        svg = render_svg(chart)
        assert chart.title.split()[0] in svg
        assert "NaN" not in svg
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_the_curves_are_marked_at_common_cutoffs() -> None:
    chart = accuracy_at_k_chart(CURVES, [0.25, 0.5, 0.75, 1.0])
    assert tooltips_of(chart)[:3] == ["lstm: Acc@1 0.500", "lstm: Acc@2 0.700", "lstm: Acc@3 0.800"]
    assert "chance at k = 1 is 0.2500" in chart.description
    points = [(row["k"], row["value"]) for row in rows_of(chart) if "k" in row]
    for rank, value in enumerate(CURVES["lstm"], start=1):
        assert (rank, value) in points


def test_the_heights_of_rank_bars_are_the_fractions() -> None:
    chart = rank_histogram_chart(["1", "2-5", "6-9"], SHARES)
    bars = [row for row in rows_of(chart) if "top" in row]
    heights = [row["base"] - row["top"] for row in bars[:6]]
    shares = [share for row in SHARES.values() for share in row]
    assert [height / heights[0] * shares[0] for height in heights] == pytest.approx(shares)
    assert "lstm: 60.0 % of the visits, rank 1" in tooltips_of(chart)


def test_the_confusion_matrix_shows_counts_per_pair_of_classes() -> None:
    chart = confusion_chart("lstm", ["home", "work"], COUNTS)
    assert "2 of 10 visits to home are predicted as work" in tooltips_of(chart)
    assert "5 of 10 visits to work are predicted as another class" in tooltips_of(chart)
    assert chart.description == (
        "lstm predicts 12 of 20 visits to the 2 most frequent places correctly; the most frequent error is "
        "home predicted as work (2 visits)."
    )


def test_tied_errors_are_all_named() -> None:
    assert confusion_chart("lstm", ["home", "work"], [[5, 2, 0], [2, 5, 0]]).description.endswith(
        "the most frequent errors are home predicted as work, work predicted as home (2 visits each)."
    )


def test_the_reliability_diagram_shows_confidence_and_accuracy_per_bin() -> None:
    chart = reliability_chart("lstm", CALIBRATION_POINTS, 0.12, 0.03)
    assert tooltips_of(chart)[0] == "confidence 25.0 %: accuracy 50.0 % [30.0 %, 70.0 %]; 10 visits"
    assert "confidence 95.0 %: accuracy 80.0 %; 30 visits" in tooltips_of(chart)
    assert "30 of them are in overconfident bins" in chart.description
    assert (
        chart.spec["title"]["subtitle"]
        == "Expected calibration error 12.0 %; a perfectly calibrated model would have 3.0 %."
    )


def test_names_are_escaped() -> None:
    assert "&lt;b&gt;markov&lt;/b&gt;" in render_svg(accuracy_at_k_chart(CURVES))
