"""The frontier: the best value that each system reaches for a cost, and what a budget affords."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from equipoise.report.charts.chart import Chart, chart, shorten_label, shorten_labels, slug
from equipoise.report.charts.heatmap import HeatmapCell, cell_size, heatmap, shade_legend
from equipoise.report.charts.marks import (
    ROW_POSITION,
    TOOLTIP,
    Row,
    column_header,
    legend,
    linear_axis,
    points,
    row_labels,
    row_lines,
    row_step,
    scale_axis,
    text_column,
    text_width,
)
from equipoise.report.charts.theme import LIGHT, Spec, series_style
from equipoise.report.tables import axis_scale
from equipoise.report.tuning import BASELINE, BEST, BUDGET, CHOSEN
from equipoise.report.view_model import AxisScale, Fold, HeatCell, SystemInfo, TrialPoint, Tuned
from equipoise.stats.formatting import format_value

# Tuning: the grid as a heat table, and what each fold chose with its value inside and outside.

TUNING_WIDTH = 340
GAP = 18
LONGEST_CHOICE = 48
BRIEF = {BEST: "best", BASELINE: "base", BUDGET: "budget"}
"""What a cell has room for; folds are counted with a cross."""


def grid_heatmap(tuned: Tuned) -> Chart:
    """Every point of the grid; frames are around the points that a fold chose."""
    grid = tuned.grid
    across = grid.column_head.replace("_", " ")
    down = grid.row_head.replace("_", " ")
    cells = [
        _cell(row, column, cell, f"{down} {label}, {across} {grid.columns[column]}".removeprefix(" , "))
        for row, (label, line) in enumerate(grid.rows)
        for column, cell in enumerate(line)
        if cell is not None
    ]
    size = cell_size(cells)
    rows = shorten_labels([label or "all" for label, _ in grid.rows])
    layers = heatmap(cells, rows, list(grid.columns), size)
    layers += [column_header(f"{across} →", 0, y=-30), column_header(down, -10, align="right", y=-10)]
    layers += shade_legend("worst seen", "best seen", y=len(rows) * size.height + 20)
    best = next((trial for trial in tuned.trials if trial.best), None)
    peak = f", best {best.text} at {best.label}" if best else ""
    return chart(
        f"tuning-grid-{slug(tuned.system)}",
        f"The grid of {shorten_label(tuned.system)} by {tuned.metric}",
        f"{tuned.system} was measured at {len(tuned.trials)} points of the grid on {tuned.metric}{peak}.",
        layers,
        subtitle="On the units that also chose, so optimistic. Framed: chosen by so many (×) folds.",
        **size.of(rows, grid.columns),
    )


def _cell(row: int, column: int, cell: HeatCell, where: str) -> HeatmapCell:
    brief = [mark for mark in cell.marks if mark != BUDGET or BEST not in cell.marks]
    marks = [BRIEF.get(mark) or mark.replace(f"{CHOSEN} by ", "×") for mark in brief]
    cost = f"; cost {cell.note}" if cell.note else ""
    said = f"; {', '.join(cell.marks)}" if cell.marks else ""
    return HeatmapCell(
        row,
        column,
        cell.text,
        f"{where}: {cell.text}{cost}{said}",
        cell.shade,
        below=" ".join(marks),
        strong=any(mark.startswith(CHOSEN) for mark in cell.marks),
    )


def fold_chart(tuned: Tuned) -> Chart:
    """For every fold the value on the units that chose (open) and on those that had no say (filled)."""
    x = scale_axis(tuned.scale, tuned.metric)
    figures = TUNING_WIDTH + GAP
    rows = [_fold_row(place, fold) for place, fold in enumerate(tuned.folds)]
    choices = figures + text_width(row["figures"] for row in rows) + GAP
    inner = [{**row, "value": row["inner"], **_look("diamond", "paper", "behind")} for row in rows]
    outer = [{**row, "value": row["outer"], **_look("circle", "lead", "lead")} for row in rows]
    layers: list[Spec] = [
        row_lines(TUNING_WIDTH),
        {
            "mark": {"type": "rule", "stroke": LIGHT["line"], "strokeWidth": 2},
            "encoding": {"y": ROW_POSITION, "x": {**x, "field": "inner"}, "x2": {"field": "outer"}},
        },
        {"data": {"values": inner}, **points(x)},
        {"data": {"values": outer}, **points(x)},
        row_labels(),
        text_column("figures", figures),
        text_column("choice", choices),
        column_header("inner → outer", figures),
        column_header("chosen", choices),
        *legend(
            [
                ("diamond", LIGHT["paper"], LIGHT["behind"], "inner: on the units that chose"),
                ("circle", LIGHT["lead"], LIGHT["lead"], "outer: on units that had no say"),
            ]
        ),
    ]
    return chart(
        f"tuning-folds-{slug(tuned.system)}",
        f"The folds of {shorten_label(tuned.system)} by {tuned.metric}",
        _folds_sentence(tuned),
        layers,
        width=TUNING_WIDTH,
        height=row_step(len(rows)),
        data={"values": rows},
    )


def _fold_row(place: int, fold: Fold) -> Row:
    return {
        "row": place,
        "name": _fold_label(fold),
        "inner": fold.inner,
        "outer": fold.outer,
        "figures": f"{fold.inner_text} → {fold.outer_text}",
        "choice": shorten_label(fold.chosen, LONGEST_CHOICE),
        "says": (
            f"{_fold_label(fold)}: inner {fold.inner_text}, outer {fold.outer_text} on {fold.n} units; "
            f"chosen {fold.chosen}"
        ),
    }


def _fold_label(fold: Fold) -> str:
    """A fold by its number, or how many folds of several splits chose the same."""
    return f"{fold.name} folds" if " of " in fold.name else f"fold {fold.name}"


def _look(shape: str, fill: str, stroke: str) -> Row:
    return {"shape": shape, "fill": LIGHT[fill], "stroke": LIGHT[stroke]}


def _folds_sentence(tuned: Tuned) -> str:
    facts = ", ".join(f"{name} {text}" for name, text in tuned.facts[:3])
    chosen = len({fold.chosen for fold in tuned.folds})
    points = "one point" if chosen == 1 else f"{chosen} different points"
    folds = sum(trial.chosen for trial in tuned.trials)
    return f"The {folds} folds of {tuned.system} chose {points} of the grid; {facts}."


WIDTH, HEIGHT = 600, 340
LINE_HEIGHT = 14
LOGARITHMIC = 20
"""Costs that differ by this factor are drawn on a logarithmic axis."""


def cost_frontier_chart(tuned: Sequence[Tuned], systems: Sequence[SystemInfo], name: str = "frontier") -> Chart:
    """A stepped line a system: the best value among the points that cost no more. Small marks are others."""
    places = {system.name: place for place, system in enumerate(systems)}
    called = dict(zip(places, shorten_labels(list(places), 28), strict=True))
    points = [row for each in tuned for row in _points(each, places[each.system])]
    corners = [row for row in points if row["frontier"]]
    budget = next((each.budget for each in tuned if each.budget is not None), None)
    costs = [row["cost"] for row in points] + ([] if budget is None else [budget])
    metric, unit = tuned[0].metric, tuned[0].cost_unit
    log = min(costs) > 0 and max(costs) / min(costs) >= LOGARITHMIC
    across = log_scale(min(costs), max(costs)) if log else axis_scale([], [0.0, max(costs)])
    title = f"{unit or 'cost'} for one unit{' (logarithmic)' if log else ''}"
    x = linear_axis(across.low, across.high, across.ticks, title, **({"type": "log"} if log else {}))
    up = axis_scale([], [row["value"] for row in points])
    y = scale_axis(up, metric)
    for each in (x, y):
        each["axis"]["grid"] = True
    layers = [
        *_budget(budget, unit, x),
        _others([row for row in points if not row["frontier"]], x, y),
        *(_line([row for row in corners if row["system"] == each.system], x, y) for each in tuned),
        _corners(corners, x, y),
        _ends(points, called, up),
    ]
    return chart(
        name,
        f"What more {unit or 'cost'} would buy",
        _sentence(tuned, budget),
        layers,
        subtitle=f"Lines: the best {metric} that is to be had for the cost, on the units that chose it.",
        width=WIDTH,
        height=HEIGHT,
    )


def _points(tuned: Tuned, place: int) -> list[Row]:
    """Every trial with a cost, cheapest first."""
    colour, shape = series_style(place)
    known = [(trial.cost, trial) for trial in tuned.trials if trial.cost is not None]
    return [
        {
            "system": tuned.system,
            "cost": cost,
            "value": trial.value,
            "frontier": trial.frontier,
            "shape": shape,
            "fill": colour,
            "stroke": LIGHT["ink"] if trial.within_budget else colour,
            "says": _says(tuned, trial),
        }
        for cost, trial in sorted(known, key=lambda each: (each[0], each[1].value))
    ]


def _says(tuned: Tuned, trial: TrialPoint) -> str:
    within = "; the best within the budget" if trial.within_budget else ""
    cost = f"{trial.cost_text} {tuned.cost_unit}".rstrip()
    return f"{tuned.system}, {trial.label}: {tuned.metric} {trial.text}; {cost}{within}"


def _where(x: Spec, y: Spec) -> Spec:
    return {"x": {**x, "field": "cost"}, "y": {**y, "field": "value"}}


def _others(rows: list[Row], x: Spec, y: Spec) -> Spec:
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": rows},
        "mark": {"type": "point", "size": 14, "filled": True, "opacity": 0.4},
        "encoding": {
            **_where(x, y),
            "shape": {"field": "shape", **own},
            "fill": {"field": "fill", **own},
            **TOOLTIP,
        },
    }


def _line(rows: list[Row], x: Spec, y: Spec) -> Spec:
    """What the cost buys; beyond the last corner more of it buys nothing more of what was tried."""
    colour = rows[0]["fill"] if rows else LIGHT["ink"]
    drawn = [{"cost": row["cost"], "value": row["value"]} for row in rows]
    drawn += [{**drawn[-1], "cost": x["scale"]["domain"][1]}] if drawn else []
    return {
        "data": {"values": drawn},
        "mark": {
            "type": "line",
            "interpolate": "step-after",
            "stroke": colour,
            "strokeWidth": 2,
            "aria": False,
        },
        "encoding": _where(x, y),
    }


def _corners(rows: list[Row], x: Spec, y: Spec) -> Spec:
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": rows},
        "mark": {"type": "point", "size": 40, "strokeWidth": 1.4, "opacity": 1},
        "encoding": {
            **_where(x, y),
            "shape": {"field": "shape", **own},
            "fill": {"field": "fill", **own},
            "stroke": {"field": "stroke", **own},
            **TOOLTIP,
        },
    }


def _budget(budget: float | None, unit: str, x: Spec) -> list[Spec]:
    if budget is None:
        return []
    data: Spec = {"values": [{"cost": budget, "text": f"budget {format_value(budget, 0)} {unit}".rstrip()}]}
    at = {"x": {**x, "field": "cost"}}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "stroke": LIGHT["chance"], "strokeDash": [4, 3], "strokeWidth": 1.3},
            "encoding": at,
        },
        {
            "data": data,
            "mark": {"type": "text", "fill": LIGHT["chance"]},
            "encoding": {**at, "y": {"value": -10}, "text": {"field": "text"}},
        },
    ]


def _ends(points: list[Row], called: dict[str, str], up: AxisScale) -> Spec:
    """The names at the right end, moved apart where lines end close together."""
    last: dict[str, Row] = {}
    for row in points:
        if row["frontier"] or row["system"] not in last:
            last[row["system"]] = row
    spread = up.high - up.low
    ends = sorted(((up.high - row["value"]) / spread * HEIGHT, name) for name, row in last.items())
    labels = [
        {"at": at, "text": called[name], "shape": last[name]["shape"], "fill": last[name]["fill"]}
        for at, (_, name) in zip(spread_labels([at for at, _ in ends]), ends, strict=True)
    ]
    y: Spec = {"field": "at", "type": "quantitative", "scale": None, "axis": None}
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": labels},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "aria": False},
                "encoding": {
                    "x": {"value": WIDTH + 14},
                    "y": y,
                    "shape": {"field": "shape", **own},
                    "fill": {"field": "fill", **own},
                },
            },
            {
                "mark": {"type": "text", "align": "left"},
                "encoding": {"x": {"value": WIDTH + 24}, "y": y, "text": {"field": "text"}},
            },
        ],
    }


def spread_labels(places: Sequence[float], apart: float = LINE_HEIGHT) -> list[float]:
    """Places in ascending order, pushed down until neighbours are apart, and the whole moved back up.

    >>> spread_labels([10.0, 12.0, 50.0], 10.0)
    [6.0, 16.0, 50.0]
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _top(groups[-1], apart) < _bottom(groups[-2], apart) + apart:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_top(group, apart) + apart * step for group in groups for step in range(len(group))]


def _top(group: Sequence[float], apart: float) -> float:
    return sum(group) / len(group) - apart * (len(group) - 1) / 2


def _bottom(group: Sequence[float], apart: float) -> float:
    return _top(group, apart) + apart * (len(group) - 1)


def log_scale(low: float, high: float) -> AxisScale:
    """A logarithmic axis with ticks at 1, 2 and 5 times the powers of ten."""
    ticks = [
        (step * 10.0**power) for power in range(floor(log10(low)) - 1, ceil(log10(high)) + 1) for step in (1, 2, 5)
    ]
    first = max(tick for tick in ticks if tick <= low)
    last = min([tick for tick in ticks if tick >= high] or [ticks[-1]])
    shown = tuple((tick, format_value(tick, max(0, -floor(log10(tick))))) for tick in ticks if first <= tick <= last)
    return AxisScale(first, last, shown)


def _sentence(tuned: Sequence[Tuned], budget: float | None) -> str:
    said = []
    for each in tuned:
        held = next((trial for trial in each.trials if trial.within_budget), None)
        best = next((trial for trial in each.trials if trial.best), None)
        chosen = held if budget is not None and held else best
        if chosen:
            said.append(f"{each.system} {chosen.text} for {chosen.cost_text} {each.cost_unit}".rstrip())
    within = f"Within {format_value(budget, 0)} {tuned[0].cost_unit}" if budget is not None else "At their best points"
    return f"{within} the systems reach on {tuned[0].metric}: {', '.join(said)}."
