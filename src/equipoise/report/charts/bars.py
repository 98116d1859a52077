"""Bar charts: metrics with intervals, histograms of the target rank, reliability diagrams; and radar charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, isnan, pi, sin
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import join_names
from equipoise.report.charts import marks
from equipoise.report.charts.chart import (
    LIGHT,
    SMALL_SIZE,
    TEXT_SIZE,
    Chart,
    Spec,
    chart,
    series_style,
    shorten_label,
    shorten_labels,
    slug,
    with_largest,
)
from equipoise.report.tables import finite_or_none
from equipoise.stats.formatting import format_count, format_interval, format_value

if TYPE_CHECKING:
    from equipoise.stats.result import Estimate

METRIC_WIDTH = 460
ROW_STEP, BAR_HEIGHT, TITLE_HEIGHT = 22, 13, 30
RANK_WIDTH = 520
RANK_ROW_HEIGHT = 58
BAR_FRACTION = 0.66
"""The fraction of a row that the tallest bar takes; the value is above it."""


def metric_bars(
    estimates: Mapping[str, Sequence[Estimate]], *, name: str = "metrics", title: str = "Metrics by system"
) -> Chart:
    """One group of bars per metric, one bar with an interval per system; a thin mark is the chance level."""
    systems = list(estimates)
    labels = shorten_labels(systems, 34)
    metrics = [estimate.metric for estimate in estimates[systems[0]]]
    bars: list[marks.Row] = []
    titles: list[marks.Row] = []
    y = 0.0
    for metric_index, metric in enumerate(metrics):
        titles.append({"at": y + TITLE_HEIGHT / 2, "text": metric})
        y += TITLE_HEIGHT
        for index, system in enumerate(systems):
            bars.append(_metric_bar(system, labels[index], index, estimates[system][metric_index], y + ROW_STEP / 2))
            y += ROW_STEP
    x = marks.with_grid(
        marks.linear_axis(0.0, 1.0, marks.FRACTION_TICKS, "estimate with its interval (higher is better →)")
    )
    return chart(
        name,
        title,
        _describe_metrics(estimates),
        [*_metric_layers(bars, x), *_metric_labels(bars, titles)],
        subtitle="Thin marks: chance level (random baseline).",
        width=METRIC_WIDTH,
        fluid=True,
        height=y,
    )


def _metric_bar(system: str, label: str, index: int, estimate: Estimate, y: float) -> marks.Row:
    interval = estimate.interval
    value = format_value(estimate.value, 3)
    return {
        "at": y,
        "top": y - BAR_HEIGHT / 2,
        "base": y + BAR_HEIGHT / 2,
        "zero": 0.0,
        "name": label,
        "value": finite_or_none(estimate.value),
        "low": interval.low if interval.known else None,
        "high": interval.high if interval.known else None,
        "chance": finite_or_none(estimate.chance),
        "fill": series_style(index)[0],
        "label": f"{value} {format_interval(interval, 3)}",
        "tooltip": f"{system}: {estimate.metric} {value}, interval {format_interval(interval, 3)}, "
        f"chance {format_value(estimate.chance, 4)}, n {estimate.n}",
    }


def _metric_layers(bars: list[marks.Row], x: Spec) -> list[Spec]:
    interval = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": {"field": "at", **marks.PIXELS}}
    chance = {"x": {**x, "field": "chance"}, "y": {"field": "top", **marks.PIXELS}, "y2": {"field": "base"}}
    return [
        marks.rectangles(bars, {"x": {**x, "field": "zero"}, "x2": {"field": "value"}}, opacity=0.72),
        marks.layer("rule", interval, bars, only=marks.HAS_INTERVAL, stroke=LIGHT["ink"], strokeWidth=1.6),
        marks.layer("rule", chance, bars, only=marks.HAS_CHANCE, stroke=LIGHT["chance"], strokeWidth=2),
    ]


def _metric_labels(bars: list[marks.Row], titles: list[marks.Row]) -> list[Spec]:
    y: Spec = {"field": "at", **marks.PIXELS}
    left: Spec = {"x": {"value": -12}, "y": y}
    right: Spec = {"x": {"value": METRIC_WIDTH + 10}, "y": y}
    return [
        marks.text_marks(bars, left, "name", align="right", fontSize=SMALL_SIZE),
        marks.text_marks(bars, right, "label", align="left", fontSize=SMALL_SIZE, fill=LIGHT["soft"]),
        marks.text_marks(titles, left, align="right", fontSize=TEXT_SIZE, fontWeight="bold"),
    ]


def _describe_metrics(estimates: Mapping[str, Sequence[Estimate]]) -> str:
    first = {system: row[0] for system, row in estimates.items()}
    best = with_largest(first, lambda system: round(first[system].value, 3))
    values = ", ".join(f"{system} {format_value(estimate.value, 3)}" for system, estimate in first.items())
    verb = "has" if len(best) == 1 else "have"
    return f"{next(iter(first.values())).metric}: {values}; {join_names(best)} {verb} the highest."


def rank_histogram_chart(
    rank_bins: Sequence[str], fractions: Mapping[str, Sequence[float]], name: str = "rank-distribution"
) -> Chart:
    """One row of bars per system: the percentage of visits whose target rank is in each bin."""
    tallest = max((max(row) for row in fractions.values()), default=0.0) or 1.0
    bars = [
        bar
        for index, (system, row) in enumerate(fractions.items())
        for bar in _rank_bars(system, index, rank_bins, row, tallest)
    ]
    x = marks.bin_axis(len(rank_bins), gap=0.12)
    names = [
        {"name": label, "at": (index + 0.7) * RANK_ROW_HEIGHT}
        for index, label in enumerate(shorten_labels(list(fractions), 28))
    ]
    bottom = len(fractions) * RANK_ROW_HEIGHT
    layers: list[Spec] = [
        marks.rectangles(bars, {"x": x}),
        marks.text_marks(
            bars, {"x": x, "y": {"field": "top", **marks.PIXELS}}, dy=-8, fontSize=SMALL_SIZE, fill=LIGHT["soft"]
        ),
        marks.text_marks(
            names,
            {"x": {"value": -12}, "y": {"field": "at", **marks.PIXELS}},
            "name",
            align="right",
            fontSize=TEXT_SIZE,
        ),
        marks.text_marks(
            [{"bin": index, "text": text} for index, text in enumerate(rank_bins)],
            {"x": x, "y": {"value": bottom + 14}},
            fontSize=SMALL_SIZE,
        ),
        marks.column_header("rank of the target place", 0, y=bottom + 34),
    ]
    return chart(
        name,
        "Ranks of the target place",
        _describe_ranks(rank_bins, fractions),
        layers,
        subtitle="Percent of the visits in each range of ranks; "
        "a visit with tied scores counts in equal parts at each possible rank.",
        width=RANK_WIDTH,
        fluid=True,
        height=bottom,
    )


def _rank_bars(
    system: str, index: int, rank_bins: Sequence[str], fractions: Sequence[float], tallest: float
) -> list[marks.Row]:
    base = (index + 1) * RANK_ROW_HEIGHT - 4
    return [
        {
            "bin": at,
            "base": base,
            "top": base - RANK_ROW_HEIGHT * BAR_FRACTION * fraction / tallest,
            "text": format_value(100 * fraction, 0 if fraction >= 0.01 or not fraction else 1),
            "fill": LIGHT["lead" if at == 0 else "heat4"],
            "tooltip": f"{system}: {_percent(fraction)} of the visits, {_rank_name(rank_bins[at])}",
        }
        for at, fraction in enumerate(fractions)
    ]


def _rank_name(rank_bin: str) -> str:
    return f"rank {rank_bin}" if rank_bin[:1].isdigit() else rank_bin


def _describe_ranks(rank_bins: Sequence[str], fractions: Mapping[str, Sequence[float]]) -> str:
    parts = [
        f"{system}: {_percent(row[0])} of the visits, {_rank_name(rank_bins[0])}; {_percent(row[-1])}, "
        f"{_rank_name(rank_bins[-1])}"
        for system, row in fractions.items()
    ]
    return f"{'; '.join(parts)}."


# The reliability diagram: accuracy by confidence bin, and the number of units per bin.

SIZE = 340
COUNT_HEIGHT = 54
"""The height of the histogram of units below the diagram."""
GAP = 46


@dataclass(frozen=True, slots=True)
class CalibrationPoint:
    """One confidence bin: its edges, mean confidence, accuracy with its interval, and number of units."""

    left: float
    right: float
    confidence: float
    accuracy: float
    low: float | None
    high: float | None
    n: int


def reliability_chart(
    system: str, bins: Sequence[CalibrationPoint], ece: float, calibrated_ece: float, name: str = ""
) -> Chart:
    """Points on the diagonal are calibrated, those below it overconfident; the histogram counts the units.

    ``ece`` is the expected calibration error, ``calibrated_ece`` its expectation for a calibrated model.
    """
    x = marks.with_grid(marks.linear_axis(0.0, 1.0, marks.PERCENT_TICKS, ""))
    y = marks.with_grid(marks.linear_axis(0.0, 1.0, marks.PERCENT_TICKS, "accuracy"))
    rows = [_row(point) for point in bins]
    where = marks.position(x, y)
    ends = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]
    layers = [
        marks.line(ends, where, LIGHT["soft"], width=1.3, strokeDash=[4, 3]),
        _gaps(rows, where),
        marks.vertical_intervals(rows, x, y, "x", stroke=LIGHT["lead"], strokeWidth=1.4),
        marks.series_points(rows, where, LIGHT["lead"], "circle", size=64),
        *_unit_counts(bins),
        marks.column_header("↑ underconfident", 8, y=12),
        marks.column_header("overconfident ↓", SIZE - 8, align="right", y=SIZE - 12),
    ]
    return chart(
        name or f"reliability-{slug(system)}",
        f"Reliability of {shorten_label(system)}",
        _describe(system, bins, ece, calibrated_ece),
        layers,
        subtitle=f"Expected calibration error {_percent(ece)}; "
        f"a perfectly calibrated model would have {_percent(calibrated_ece)}.",
        width=SIZE,
        height=SIZE,
    )


def _percent(fraction: float) -> str:
    return f"{format_value(100 * fraction, 1)} %"


def _row(point: CalibrationPoint) -> marks.Row:
    has_interval = point.low is not None and point.high is not None
    interval = f" [{_percent(point.low or 0.0)}, {_percent(point.high or 0.0)}]" if has_interval else ""
    return {
        "x": point.confidence,
        "y": point.accuracy,
        "low": point.low,
        "high": point.high,
        "tooltip": (
            f"confidence {_percent(point.confidence)}: accuracy {_percent(point.accuracy)}{interval}; "
            f"{format_count(point.n)} visits"
        ),
    }


def _gaps(rows: list[marks.Row], where: Spec) -> Spec:
    """From each point to the diagonal: the calibration error of the bin."""
    gaps = [{"x": row["x"], "y": row["y"], "to": row["x"]} for row in rows]
    return marks.layer("rule", {**where, "y2": {"field": "to"}}, gaps, stroke=LIGHT["heat3"], strokeWidth=5)


def _unit_counts(bins: Sequence[CalibrationPoint]) -> list[Spec]:
    """The number of units per bin, below the diagram on the same axis."""
    most = max((point.n for point in bins), default=1)
    base = SIZE + GAP + COUNT_HEIGHT
    bars = [
        {
            "left": point.left * SIZE + 0.5,
            "right": point.right * SIZE - 0.5,
            "top": base - COUNT_HEIGHT * point.n / most,
            "base": base,
            "tooltip": f"{format_count(point.n)} visits",
        }
        for point in bins
    ]
    return [
        marks.rectangles(bars, {"x": {"field": "left", **marks.PIXELS}, "x2": {"field": "right"}}, fill=LIGHT["heat4"]),
        marks.column_header(f"visits (at most {format_count(most)} in a bin)", 0, y=SIZE + GAP - 8),
        marks.column_header("confidence", SIZE / 2, align="center", y=base + 14),
    ]


def _describe(system: str, bins: Sequence[CalibrationPoint], ece: float, calibrated_ece: float) -> str:
    overconfident = sum(point.n for point in bins if point.confidence > point.accuracy)
    total = sum(point.n for point in bins)
    return (
        f"The expected calibration error of {system} is {_percent(ece)}; a calibrated model would have "
        f"{_percent(calibrated_ece)} on these {format_count(total)} visits. {format_count(overconfident)} of them "
        "are in overconfident bins."
    )


# The radar chart: several scores of several models, with intervals along the axes.

RADIUS = 170
"""Pixels from the centre to the outer ring."""
MARGIN = 30
MODEL_OFFSET = 5.0
"""Pixels between the intervals of two models on one axis."""
_WHERE: Spec = marks.position(marks.PIXELS, marks.PIXELS)


def radar_chart(scores: Mapping[str, Mapping[str, Estimate]]) -> Chart:
    """One outline per model, one axis per score with the interval along it. ``scores`` are by score and model."""
    axes = list(scores)
    models = list(dict.fromkeys(model for by_model in scores.values() for model in by_model))
    ends = [end for by_model in scores.values() for estimate in by_model.values() for end in _finite_ends(estimate)]
    limit = max(0.2, float(np.ceil(max(ends, default=1.0) * 5) / 5))
    layers = _grid(axes, limit)
    for index, model in enumerate(models):
        layers += _outline(model, index, len(models), [scores[axis].get(model) for axis in axes], axes, limit)
    styles = [series_style(index) for index in range(len(models))]
    layers += marks.legend(
        [(shape, fill, fill, text) for (fill, shape), text in zip(styles, shorten_labels(models, 28), strict=True)]
    )
    parts = [
        f"{model}: " + ", ".join(f"{axis} {format_value(by_model[model].value)}" for axis, by_model in scores.items())
        for model in models
    ]
    return chart(
        "five-scores",
        "The scores of each model",
        f"{'; '.join(parts)}.",
        layers,
        subtitle="The centre is 0; lines along the axes are intervals; values below 0 are drawn as 0.",
        width=2 * (RADIUS + MARGIN),
        height=2 * (RADIUS + MARGIN),
    )


def _finite_ends(estimate: Estimate) -> tuple[float, ...]:
    ends = (estimate.value, estimate.interval.low, estimate.interval.high)
    return tuple(end for end in ends if not isnan(end))


def _pixel(axis: int, n_axes: int, fraction: float, offset: float = 0.0) -> dict[str, float]:
    """The pixel at a fraction of the radius on an axis, ``offset`` pixels to the right of the axis."""
    angle = 2 * pi * axis / n_axes
    distance = RADIUS * min(max(fraction, 0.0), 1.1)
    center = RADIUS + MARGIN
    return {
        "x": center + distance * sin(angle) + offset * cos(angle),
        "y": center - distance * cos(angle) + offset * sin(angle),
    }


def _grid(axes: Sequence[str], limit: float) -> list[Spec]:
    """The rings with their values, and the axes with their names."""
    n_axes = len(axes)
    steps = [step / 5 for step in range(1, round(limit * 5) + 1)]
    circles: list[marks.Row] = [
        {**_pixel(axis % n_axes, n_axes, step / limit), "ring": step, "step": axis}
        for step in steps
        for axis in range(n_axes + 1)
    ]
    rays: list[marks.Row] = [
        {**_pixel(axis, n_axes, fraction), "ring": axis, "step": fraction}
        for axis in range(n_axes)
        for fraction in (0.0, 1.0)
    ]
    values: list[marks.Row] = [{**_pixel(0, n_axes, step / limit), "text": format_value(step, 1)} for step in steps]
    names = [_axis_name(axis, n_axes, text) for axis, text in enumerate(axes)]
    by_ring: Spec = {**_WHERE, "detail": {"field": "ring"}, "order": {"field": "step"}}
    return [
        marks.line(circles, by_ring, LIGHT["grid"], width=1),
        marks.line(rays, by_ring, LIGHT["grid"], width=1),
        marks.text_marks(values, _WHERE, align="left", dx=4, fill=LIGHT["soft"], fontSize=SMALL_SIZE),
        *(marks.text_marks([row], _WHERE, align=row["align"], fontSize=TEXT_SIZE) for row in names),
    ]


def _axis_name(axis: int, n_axes: int, text: str) -> marks.Row:
    side = sin(2 * pi * axis / n_axes)
    align = "center" if abs(side) < 0.05 else "left" if side > 0 else "right"
    return {**_pixel(axis, n_axes, 1.08), "text": text.removesuffix("_score").replace("_", " "), "align": align}


def _outline(
    model: str,
    index: int,
    n_models: int,
    values: Sequence[Estimate | None],
    axes: Sequence[str],
    limit: float,
) -> list[Spec]:
    """The outline of a model, a point on every axis, and the intervals, offset per model."""
    color, shape = series_style(index)
    n_axes, offset = len(axes), MODEL_OFFSET * (index - (n_models - 1) / 2)
    finite = [(axis, value) for axis, value in enumerate(values) if value is not None and not isnan(value.value)]
    points: list[marks.Row] = [
        {
            **_pixel(axis, n_axes, estimate.value / limit, offset),
            "step": axis,
            "tooltip": f"{model}: {axes[axis]} {format_value(estimate.value)} {format_interval(estimate.interval)}",
        }
        for axis, estimate in finite
    ]
    intervals: list[marks.Row] = [
        {**_pixel(axis, n_axes, end / limit, offset), "axis": axis}
        for axis, estimate in finite
        if estimate.interval.known
        for end in (estimate.interval.low, estimate.interval.high)
    ]
    closed = [*points, {**points[0], "step": n_axes}] if len(points) == n_axes else []
    return [
        marks.line(closed, {**_WHERE, "order": {"field": "step"}}, color, width=1.2, opacity=0.6),
        marks.line(intervals, {**_WHERE, "detail": {"field": "axis"}}, color, width=2.4),
        marks.series_points(points, _WHERE, color, shape),
    ]
