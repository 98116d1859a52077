"""Charts of concepts, checked by their specifications."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.concepts.charts import concept_projection, cosine_histogram, similarity_chart
from equipoise.report.charts.bars import RADIUS, radar_chart
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction


def estimate(value: float, half_width: float = 0.05) -> Estimate:
    return Estimate("x", value, Interval(value - half_width, value + half_width), 40, 0, 0.0, Direction.UP)


def test_the_scatter_plot_has_the_identity_line_and_one_dot_per_pair() -> None:
    chart = similarity_chart("m", ["a / b", "c / d"], np.array([0.3, -0.1]), np.array([0.9, 0.0]))
    line, dots = chart.spec["layer"]
    assert all(row["x"] == row["y"] for row in line["data"]["values"])
    assert [(row["x"], row["y"]) for row in dots["data"]["values"]] == [(0.9, 0.3), (0.0, -0.1)]
    assert "Farthest from the line: a / b: expected 0.90, cosine 0.30" in chart.description


def test_a_radar_chart_has_marks_at_the_values() -> None:
    scores = {name: {"m": estimate(0.4)} for name in ("one_score", "two_score", "three_score", "four_score")}
    chart = radar_chart(scores)
    marks = next(
        layer["data"]["values"]
        for layer in chart.spec["layer"]
        if layer["mark"]["type"] == "point" and "tooltip" in layer["data"]["values"][0]
    )
    middle = RADIUS + 30
    lengths = [np.hypot(row["x"] - middle, row["y"] - middle) / RADIUS for row in marks]
    assert lengths == pytest.approx([0.4 / 0.6] * 4)  # the axis ends at the next multiple of 0.2 above the intervals
    assert marks[0]["x"] == pytest.approx(middle)
    assert marks[1]["y"] == pytest.approx(middle)
    assert "m: one_score 0.400, two_score 0.400" in chart.description


def test_an_undefined_score_has_no_mark_in_the_radar_chart() -> None:
    scores = {name: {"m": estimate(0.4)} for name in ("one", "two")} | {"three": {"m": estimate(np.nan)}}
    tooltips = [
        row["tooltip"]
        for layer in radar_chart(scores).spec["layer"]
        for row in layer["data"]["values"]
        if layer["mark"]["type"] == "point" and "tooltip" in row
    ]
    assert len(tooltips) == 2


def test_a_cosine_of_zero_is_counted_above_zero() -> None:
    chart = cosine_histogram({"m": np.array([0.0, 0.0, 0.5, -0.3])}, {"m": np.array([0.5])})
    bars = chart.spec["layer"][0]["data"]["values"]
    assert [(round(row["from"], 2), round(row["to"], 2)) for row in bars] == [
        (-0.3, -0.25),
        (0.0, 0.05),
        (0.5, 0.55),
    ]
    assert "50 % of the pairs from 0.00 to 0.05" in bars[1]["tooltip"]


def test_the_map_states_the_explained_variance() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.5]])
    chart = concept_projection("m", ["duty", "rye"], ["ethics", "grain"], points, "It keeps 25 %.")
    assert chart.spec["title"]["subtitle"] == ["It keeps 25 %."]
    assert chart.description.endswith("It keeps 25 %.")


def test_labels_of_the_map_do_not_overlap() -> None:
    n_concepts = 60
    rng = np.random.default_rng(0)
    points = np.vstack([rng.uniform(size=(n_concepts, 2)), [[0.5, 0.5], [0.5, 0.5]]])
    names = [f"concept {index}" for index in range(n_concepts)] + ["duplicate one", "duplicate two"]
    chart = concept_projection("m", names, ["all"] * len(names), points, "")
    halo, texts = (
        [(row["x"], row["text"]) for row in layer["data"]["values"]]
        for layer in chart.spec["layer"]
        if layer["mark"]["type"] == "text" and "x" in layer["data"]["values"][0]
    )
    assert halo == texts
    labels = [text for _, text in texts]
    assert len(labels) > 15
    assert len(labels) == len(set(labels))
    assert len({"duplicate one", "duplicate two"} & set(labels)) < 2
