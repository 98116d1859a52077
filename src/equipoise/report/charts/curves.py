"""Curves: accuracy at k, precision against recall, a metric against the dimension, and quality against cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log10
from typing import TYPE_CHECKING

from equipoise.config import CONFIDENCE_LEVEL
from equipoise.report.charts import marks
from equipoise.report.charts.chart import LIGHT, Chart, Spec, chart, series_style, slug
from equipoise.report.sections import axis_scale
from equipoise.report.tables import STANDARD_COSTS
from equipoise.stats.formatting import (
    ScoreFormat,
    capitalised,
    format_percent,
    format_value,
    metric_heading,
    metric_in_sentence,
    value_in_sentence,
)

if TYPE_CHECKING:
    from equipoise.report.tables import SystemColumn
    from equipoise.report.view_model import AxisScale, Leaderboard

WIDTH, HEIGHT = 520, 320
RECALL_WIDTH = 460
CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
RECALL_CUTOFFS = (1, 3, 5, 10)
"""The cutoffs with a mark on a precision-recall curve."""
SERIES_SHIFT = 1.015
"""Each series is shifted to the right by this factor, so that intervals do not overlap."""
LOG_RATIO = 20
"""Mean ranks or costs that differ by this factor or more get a logarithmic axis."""


def accuracy_at_k_chart(
    curves: Mapping[str, Sequence[float]],
    chance: Sequence[float] | None = None,
    name: str = "accuracy-over-k",
    *,
    what: str = "Accuracy",
    symbol: str = "Acc",
    percent: bool = False,
) -> Chart:
    """One line per system: Acc@1, Acc@2, ... on a logarithmic k axis; the dashed line is the chance level.

    ``what`` and ``symbol`` are the name and the abbreviation of the metric; ``percent`` is the unit of all texts.
    """
    shown = ScoreFormat(1, percent=True) if percent else ScoreFormat(3)
    max_k = max(len(curve) for curve in curves.values())
    cutoffs = [k for k in CUTOFFS if k <= max_k]
    x = marks.with_grid(marks.log_axis(1, max(max_k, 2), [(k, str(k)) for k in cutoffs], "k (logarithmic)"))
    y = marks.with_grid(
        marks.linear_axis(
            0.0,
            1.0,
            marks.PERCENT_TICKS if percent else marks.FRACTION_TICKS,
            f"{what.casefold()} at k (higher is better ↑)",
        )
    )
    where = marks.position(x, y, "k", "value")
    layers: list[Spec] = []
    if chance is not None:
        layers.append(marks.line(_by_k(chance[:max_k]), where, LIGHT["chance"], width=1.4, strokeDash=[4, 3]))
    for index, (system, curve) in enumerate(curves.items()):
        color, shape = series_style(index)
        rows = _by_k(curve)
        labelled = [
            {**row, "tooltip": f"{system}: {symbol}@{row['k']} {shown.value(row['value'])}"}
            for row in rows
            if row["k"] in cutoffs
        ]
        layers += [marks.line(rows, where, color), marks.series_points(labelled, where, color, shape, size=44)]
    layers += marks.series_labels(list(curves), [(1.0 - curve[-1]) * HEIGHT for curve in curves.values()], WIDTH)
    return chart(
        name,
        f"{what} over k",
        _describe_accuracy(curves, chance, what, shown),
        layers,
        subtitle="" if chance is None else "Dashed: chance level (random baseline).",
        width=WIDTH,
        fluid=True,
        height=HEIGHT,
    )


def _by_k(values: Sequence[float]) -> list[marks.Row]:
    return [{"k": k, "value": value} for k, value in enumerate(values, start=1)]


def _describe_accuracy(
    curves: Mapping[str, Sequence[float]], chance: Sequence[float] | None, what: str, shown: ScoreFormat
) -> str:
    parts = [
        f"{system} from {shown.value(curve[0])} at k = 1 to {shown.value(curve[-1])} at k = {len(curve)}"
        for system, curve in curves.items()
    ]
    finer = replace(shown, decimals=shown.decimals + 1)
    at_1 = "" if chance is None else f"; chance at k = 1 is {finer.value(chance[0])}"
    return f"{what} grows with k: {', '.join(parts)}{at_1}."


def precision_recall_chart(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Chart:
    """One line per system: mean (recall, precision) at the cutoffs 1, 2, ..."""
    x = marks.with_grid(marks.linear_axis(0.0, 1.0, marks.FRACTION_TICKS, "mean recall at k"))
    y = marks.with_grid(marks.linear_axis(0.0, 1.0, marks.FRACTION_TICKS, "mean precision at k"))
    where = marks.position(x, y)
    layers: list[Spec] = []
    for index, (system, curve) in enumerate(curves.items()):
        color, shape = series_style(index)
        rows = [{"k": k, "x": recall, "y": precision} for k, (recall, precision) in enumerate(curve, start=1)]
        labelled = [{**row, "tooltip": _recall_tooltip(system, row)} for row in rows if row["k"] in RECALL_CUTOFFS]
        by_k: Spec = {**where, "order": {"field": "k", "type": "quantitative"}}
        layers += [marks.line(rows, by_k, color), marks.series_points(labelled, where, color, shape)]
    layers += marks.series_labels(
        list(curves), [(1.0 - curve[0][1]) * HEIGHT for curve in curves.values()], RECALL_WIDTH
    )
    return chart(
        "precision-recall",
        "Precision against recall",
        _describe_recall(curves),
        layers,
        subtitle="The cutoff k grows from left to right; marks are at k = 1, 3, 5 and 10.",
        width=RECALL_WIDTH,
        fluid=True,
        height=HEIGHT,
    )


def _recall_tooltip(system: str, row: marks.Row) -> str:
    return f"{system}: recall {format_value(row['x'])}, precision {format_value(row['y'])} at k = {row['k']}"


def _describe_recall(curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    parts = [
        f"{system} begins at recall {format_value(curve[0][0])} with precision {format_value(curve[0][1])} "
        f"and reaches recall {format_value(curve[-1][0])} at k = {len(curve)}"
        for system, curve in curves.items()
    ]
    return f"{'; '.join(parts)}."


@dataclass(frozen=True)
class CurvePoint:
    """A score at one dimension, with the ends of its interval (None if unknown)."""

    dim: int
    value: float
    low: float | None = None
    high: float | None = None


def metric_by_dimension_chart(
    metric: str,
    curves: Mapping[str, Sequence[CurvePoint]],
    *,
    better: str,
    chance: float | None = None,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> Chart:
    """One line per embedding: the metric at every dimension with its interval; dashed is the chance level."""
    curves = {name: [point for point in curve if isfinite(point.value)] for name, curve in curves.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    dims = sorted({point.dim for curve in curves.values() for point in curve})
    ends = [end for curve in curves.values() for point in curve for end in (point.value, point.low, point.high)]
    y_axis = _value_axis([end for end in ends if end is not None], chance, metric)
    last = max(dims[-1] * SERIES_SHIFT ** len(curves), dims[0] + 1)
    ticks = [(dim, str(dim)) for dim in dims]
    x = marks.with_grid(marks.log_axis(dims[0] / SERIES_SHIFT, last, ticks, "dimensions (logarithmic)"))
    y = marks.with_grid(y_axis.spec(f"{metric} ({'higher' if better == 'up' else 'lower'} is better"))
    layers: list[Spec] = []
    if chance is not None:
        layers.append(marks.reference_line(chance, y, orient="y", color="chance", strokeDash=[4, 3], strokeWidth=1.4))
    for index, (system, curve) in enumerate(curves.items()):
        layers += _dimension_series(metric, system, curve, index, x, y)
    layers += marks.series_labels(
        list(curves), [y_axis.fraction_from_top(curve[-1].value) * HEIGHT for curve in curves.values()], WIDTH
    )
    return chart(
        f"dimensions-{slug(metric)}",
        f"{metric_heading(metric)} by dimension",
        _describe_dimensions(metric, curves, chance),
        layers,
        subtitle=f"Vertical lines: {format_percent(confidence_level)} intervals."
        + ("" if chance is None else " Dashed: chance level."),
        width=WIDTH,
        fluid=True,
        height=HEIGHT,
    )


@dataclass(frozen=True)
class _ValueAxis:
    """The y axis, linear or logarithmic."""

    scale: AxisScale
    log: bool

    def spec(self, title: str) -> Spec:
        """The Vega-Lite axis; ``title`` has an open parenthesis."""
        if not self.log:
            return marks.scale_axis(self.scale, f"{title})")
        return marks.log_axis(self.scale.low, self.scale.high, self.scale.ticks, f"{title}, logarithmic)")

    def fraction_from_top(self, value: float) -> float:
        """The distance of a value from the top of the axis, from 0 to 1."""
        low, high = self.scale.low, self.scale.high
        if self.log:
            return (log10(high) - log10(value)) / (log10(high) - log10(low))
        return (high - value) / (high - low)


def _value_axis(ends: list[float], chance: float | None, metric: str) -> _ValueAxis:
    values = ends + ([] if chance is None else [chance])
    is_rank = metric.partition("(")[0] in ("MR", "MedianRank")
    if is_rank and min(values) > 0 and max(values) / min(values) >= LOG_RATIO:
        return _ValueAxis(marks.log_scale(min(values), max(values)), log=True)
    if min(values) >= 0 and max(values) <= 1:
        return _ValueAxis(axis_scale([], [0.0, 1.0]), log=False)
    return _ValueAxis(axis_scale([], values), log=False)


def _dimension_series(
    metric: str, system: str, curve: Sequence[CurvePoint], index: int, x: Spec, y: Spec
) -> list[Spec]:
    """The intervals, the line, and a point at each dimension."""
    color, shape = series_style(index)
    rows: list[marks.Row] = [
        {
            "dim": point.dim * SERIES_SHIFT**index,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "tooltip": f"{system}, {point.dim} dimensions: {metric} {format_value(point.value)}{_interval(point)}",
        }
        for point in curve
    ]
    where = marks.position(x, y, "dim", "value")
    return [
        marks.vertical_intervals(rows, x, y, "dim", stroke=color, strokeWidth=1.3, opacity=0.7),
        marks.line(rows, where, color),
        marks.series_points(rows, where, color, shape, size=44),
    ]


def _interval(point: CurvePoint) -> str:
    if point.low is None or point.high is None:
        return ""
    return f" [{format_value(point.low)}, {format_value(point.high)}]"


def _describe_dimensions(metric: str, curves: Mapping[str, Sequence[CurvePoint]], chance: float | None) -> str:
    parts = [
        f"{system} from {format_value(curve[0].value)} in {curve[0].dim} dimensions to {format_value(curve[-1].value)} "
        f"in {curve[-1].dim}"
        for system, curve in curves.items()
    ]
    level = "" if chance is None else f"; chance is {format_value(chance)}"
    return f"{metric}: {', '.join(parts)}{level}."


# Quality against cost: the score of every system over one of its costs.

COST_WIDTH, COST_HEIGHT = 150, 280
MIN_SYSTEMS = 2
"""With fewer different costs there is nothing to compare."""


def cost_charts(board: Leaderboard, costs: Sequence[SystemColumn]) -> Iterator[Chart]:
    """One chart per cost that differs between at least two systems with a score, and that most systems have.

    Total seconds are drawn only if the seconds per 1,000 texts are unknown.
    """
    names = {cost.name for cost in costs}
    for cost in costs:
        if cost.name == "seconds" and "documents_per_second" in names:
            continue
        rows = _rows(board, cost)
        if (
            STANDARD_COSTS[cost.name].charted
            and len({row["cost"] for row in rows}) >= MIN_SYSTEMS
            and 2 * len(rows) > len(board.rows)
        ):
            yield cost_chart(board, cost)


def cost_chart(board: Leaderboard, cost: SystemColumn) -> Chart:
    """The systems as points with the interval of their score; those without this cost are named in the subtitle."""
    rows = _rows(board, cost)
    missing = [row.system for row, value in zip(board.rows, cost.values, strict=True) if value is None]
    x = cost_axis([row["cost"] for row in rows], cost.title)
    scale = axis_scale([], [end for row in rows for end in (row["value"], row["low"], row["high"])])
    y = marks.with_grid(
        marks.scale_axis(scale, marks.metric_axis_title(board.metric, board.better).replace("→", "↑").replace("←", "↓"))
    )
    layers: list[Spec] = []
    for row in rows:
        color, shape = series_style(row["index"])
        layers.append(marks.vertical_intervals([row], x, y, "cost", stroke=color, strokeWidth=1.4))
        layers.append(marks.series_points([row], marks.position(x, y, "cost", "value"), color, shape, size=80))
    heights = [(scale.high - row["value"]) / (scale.high - scale.low) * COST_HEIGHT for row in rows]
    layers += marks.series_labels(
        [row["name"] for row in rows], heights, COST_WIDTH, style_index=[row["index"] for row in rows]
    )
    return chart(
        f"cost-{slug(cost.name)}",
        f"{metric_heading(board.metric)} by {cost.title}",
        f"{metric_heading(metric_in_sentence(board.metric))} and {cost.title}: "
        f"{'; '.join(row['tooltip'] for row in rows)}.",
        layers,
        subtitle=f"Error bars are {board.confidence_level} intervals.{_missing(cost.name, missing)}",
        width=COST_WIDTH,
        fluid=True,
        height=COST_HEIGHT,
    )


def _rows(board: Leaderboard, cost: SystemColumn) -> list[marks.Row]:
    return [
        {
            "index": index,
            "name": row.system,
            "cost": value,
            "value": row.score.number,
            "low": row.score.low,
            "high": row.score.high,
            "tooltip": (
                f"{row.system}: {value_in_sentence(board.metric, marks.value_label(row.score))} at {text} {cost.title}"
            ),
        }
        for index, (row, value, text) in enumerate(zip(board.rows, cost.values, cost.texts, strict=True))
        if value is not None and row.score.number is not None
    ]


def _missing(cost: str, names: Sequence[str]) -> str:
    reason = STANDARD_COSTS[cost].missing
    return f" {capitalised(reason)}: {', '.join(names)}." if names else ""


def cost_axis(costs: Sequence[float], title: str) -> Spec:
    """An axis from 0, or logarithmic if the costs differ widely."""
    if min(costs) > 0 and max(costs) / min(costs) >= LOG_RATIO:
        scale = marks.log_scale(min(costs), max(costs))
        return marks.with_grid(marks.log_axis(scale.low, scale.high, scale.ticks, f"{title} (logarithmic)"))
    scale = axis_scale([], [0.0, max(costs)])
    return marks.with_grid(marks.linear_axis(scale.low, scale.high, scale.ticks, title))
