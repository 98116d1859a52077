"""Radar chart: several scores of several models, with intervals along the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, isnan, pi, sin
from typing import TYPE_CHECKING

import numpy as np

from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.marks import PIXELS, Row, legend, line, position, series_points, text_marks
from equipoise.report.charts.theme import LIGHT, SMALL_SIZE, TEXT_SIZE, Spec, series_style
from equipoise.stats.formatting import format_interval, format_value

if TYPE_CHECKING:
    from equipoise.stats.result import Estimate

RADIUS = 170
"""Pixels from the center to the outer ring."""
MARGIN = 30
MODEL_OFFSET = 5.0
"""Pixels between the intervals of two models on one axis."""
_WHERE: Spec = position(PIXELS, PIXELS)


def radar_chart(scores: Mapping[str, Mapping[str, Estimate]], name: str = "five-scores") -> Chart:
    """One outline per model, one axis per score with the interval along it. ``scores`` are by score and model."""
    axes = list(scores)
    models = list(dict.fromkeys(model for by_model in scores.values() for model in by_model))
    ends = [end for by_model in scores.values() for estimate in by_model.values() for end in _finite_ends(estimate)]
    limit = max(0.2, float(np.ceil(max(ends, default=1.0) * 5) / 5))
    layers = _grid(axes, limit)
    for index, model in enumerate(models):
        layers += _outline(model, index, len(models), [scores[axis].get(model) for axis in axes], axes, limit)
    styles = [series_style(index) for index in range(len(models))]
    layers += legend(
        [(shape, fill, fill, text) for (fill, shape), text in zip(styles, shorten_labels(models, 28), strict=True)]
    )
    parts = [
        f"{model}: " + ", ".join(f"{axis} {format_value(by_model[model].value)}" for axis, by_model in scores.items())
        for model in models
    ]
    return chart(
        name,
        "The scores of each model",
        f"{'; '.join(parts)}.",
        layers,
        subtitle="The center is 0; lines along the axes are intervals; values below 0 are drawn as 0.",
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
    rings: list[Row] = [
        {**_pixel(axis % n_axes, n_axes, step / limit), "ring": step, "step": axis}
        for step in steps
        for axis in range(n_axes + 1)
    ]
    rays: list[Row] = [
        {**_pixel(axis, n_axes, fraction), "ring": axis, "step": fraction}
        for axis in range(n_axes)
        for fraction in (0.0, 1.0)
    ]
    values: list[Row] = [{**_pixel(0, n_axes, step / limit), "text": format_value(step, 1)} for step in steps]
    names = [_axis_name(axis, n_axes, text) for axis, text in enumerate(axes)]
    by_ring: Spec = {**_WHERE, "detail": {"field": "ring"}, "order": {"field": "step"}}
    return [
        line(rings, by_ring, LIGHT["grid"], width=1),
        line(rays, by_ring, LIGHT["grid"], width=1),
        text_marks(values, _WHERE, align="left", dx=4, fill=LIGHT["soft"], fontSize=SMALL_SIZE),
        *(text_marks([row], _WHERE, align=row["align"], fontSize=TEXT_SIZE) for row in names),
    ]


def _axis_name(axis: int, n_axes: int, text: str) -> Row:
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
    points: list[Row] = [
        {
            **_pixel(axis, n_axes, estimate.value / limit, offset),
            "step": axis,
            "tooltip": f"{model}: {axes[axis]} {format_value(estimate.value)} {format_interval(estimate.interval)}",
        }
        for axis, estimate in finite
    ]
    intervals: list[Row] = [
        {**_pixel(axis, n_axes, end / limit, offset), "axis": axis}
        for axis, estimate in finite
        if estimate.interval.known
        for end in (estimate.interval.low, estimate.interval.high)
    ]
    closed = [*points, {**points[0], "step": n_axes}] if len(points) == n_axes else []
    return [
        line(closed, {**_WHERE, "order": {"field": "step"}}, color, width=1.2, opacity=0.6),
        line(intervals, {**_WHERE, "detail": {"field": "axis"}}, color, width=2.4),
        series_points(points, _WHERE, color, shape),
    ]
