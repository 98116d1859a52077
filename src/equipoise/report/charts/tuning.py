"""How systems were tuned: the grid, the selection of each fold, and the score against the cost; tables and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.report.charts import marks
from equipoise.report.charts.chart import LIGHT, Chart, Spec, chart, series_style, shorten_label, shorten_labels, slug
from equipoise.report.charts.curves import cost_axis
from equipoise.report.charts.heatmap import HeatmapCell, cell_size, heatmap, shade_legend
from equipoise.report.sections import axis_scale, relative_shade
from equipoise.report.tables import finite_or_none
from equipoise.report.view_model import AxisScale, FoldScore, HeatCell, TrialPoint, TuningGrid, TuningView
from equipoise.stats.formatting import (
    DEFAULT_DECIMALS,
    PERCENT_UNIT,
    format_count,
    format_difference,
    format_value,
    metric_heading,
    metric_in_sentence,
    value_in_sentence,
)
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.report.build_view import RunSet
    from equipoise.report.view_model import SystemInfo
    from equipoise.stats.result import Result
    from equipoise.tuning.grid import FoldSelection, Params, Trial, TuningRecord

BEST, BASELINE, CHOSEN = "best", "baseline", "selected"
BUDGET = "best within the budget"
Key = tuple[tuple[str, str], ...]


MIN_RANGE = 0.1
CAPTION = (
    "Parameters are selected on the training folds, and the held-out score is measured on the remaining fold. The "
    "optimistic score uses all {units} for both selection and scoring."
)


def tuning_views(subject: RunSet) -> tuple[TuningView, ...]:
    """The tuning of every tuned system; all folds share one axis."""
    tunings = [(run.result, run.tuning) for run in subject.runs if run.tuning is not None]
    scale = _scale([end for _, tuning in tunings for fold in tuning.folds for end in (fold.inner, fold.outer)])
    units = subject.words.plural
    return tuple(
        _tuned(result.system, tuning, _better(result, tuning.metric), scale, units) for result, tuning in tunings
    )


def _scale(values: Sequence[float]) -> AxisScale:
    """An axis of at least ``MIN_RANGE`` for fractions, so that small differences do not look large."""
    if not values or min(values) < 0 or max(values) > 1 or max(values) - min(values) >= MIN_RANGE:
        return axis_scale([], values)
    half = MIN_RANGE / 2
    middle = min(max((min(values) + max(values)) / 2, half), 1 - half)
    return axis_scale([], [*values, middle - half, middle + half])


def _better(result: Result, metric: str) -> Direction:
    """The better direction of the tuned metric; up if the result does not have it."""
    estimate = result.estimates.get(metric)
    return Direction.UP if estimate is None else estimate.better


def _tuned(system: str, tuning: TuningRecord, better: Direction, scale: AxisScale, units: str) -> TuningView:
    chosen: Counter[Key] = Counter()
    for fold in tuning.folds:
        chosen[_key(fold.params)] += fold.times
    frontier = [_key(trial.params) for trial in tuning.frontier]
    within = None if tuning.within_budget is None else frontier[tuning.within_budget]
    decimals = _decimals(tuning)
    points = tuple(
        _point(
            trial,
            decimals,
            chosen=chosen[_key(trial.params)],
            best=index == tuning.best,
            baseline=index == tuning.baseline,
            frontier=_key(trial.params) in frontier,
            within_budget=_key(trial.params) == within,
        )
        for index, trial in enumerate(tuning.trials)
    )
    by_key = {point.params: point for point in points}
    return TuningView(
        system=system,
        metric=tuning.trial_metric,
        summary=_summary(tuning),
        trials=points,
        grid=_grid(points, better),
        folds=tuple(
            FoldScore(
                name=_fold_name(index, fold, tuning),
                chosen=_label(_key(fold.params)),
                inner=fold.inner,
                outer=fold.outer,
                inner_text=format_value(fold.inner, decimals),
                outer_text=format_value(fold.outer, decimals),
                n=format_count(fold.n),
            )
            for index, fold in enumerate(tuning.folds)
        ),
        scale=scale,
        frontier=tuple(by_key[key] for key in frontier if key in by_key),
        cost_unit=tuning.cost_unit,
        budget=tuning.budget,
        caption=CAPTION.format(units=units),
        units=units,
    )


def _decimals(tuning: TuningRecord) -> int:
    """One decimal for percent, as in the leaderboard; three for fractions."""
    return 1 if tuning.metric.endswith(PERCENT_UNIT) else DEFAULT_DECIMALS


def _summary(tuning: TuningRecord) -> tuple[tuple[str, str], ...]:
    decimals = _decimals(tuning)
    sd = f"standard deviation over {tuning.splits} splits"
    entries = [
        ("held-out score", format_value(tuning.nested, decimals)),
        ("optimistic score", format_value(tuning.optimistic, decimals)),
        ("gap", format_difference(tuning.gap, decimals)),
        *(() if tuning.split_sd is None else ((sd, format_value(tuning.split_sd, decimals)),)),
    ]
    best = tuning.trials[tuning.best]
    limit = "" if tuning.budget is None else f"within {format_value(tuning.budget, 0)} {tuning.cost_unit}".rstrip()
    within = None if tuning.within_budget is None else tuning.frontier[tuning.within_budget]
    is_within = within is not None and _key(within.params) == _key(best.params)
    entries.append((f"best configuration {limit}" if is_within else "best configuration", _label(_key(best.params))))
    if tuning.baseline is not None:
        entries.append(("baseline", _point_text(tuning.trials[tuning.baseline], decimals)))
    if limit and not is_within:
        entries.append((f"best {limit}", "nothing" if within is None else _point_text(within, decimals)))
    return tuple(entries)


def _fold_name(index: int, fold: FoldSelection, tuning: TuningRecord) -> str:
    """The number of a fold; with several splits, the number of folds that selected the same point."""
    return str(index + 1) if tuning.splits == 1 else f"{fold.times} of {tuning.splits * tuning.fold_count}"


def _point_text(trial: Trial, decimals: int) -> str:
    return f"{_label(_key(trial.params))}: {format_value(trial.value, decimals)}"


def _point(trial: Trial, decimals: int, **flags: bool | int) -> TrialPoint:
    key = _key(trial.params)
    return TrialPoint(
        label=_label(key),
        params=key,
        value=trial.value,
        text=format_value(trial.value, decimals),
        cost=None if trial.cost is None else finite_or_none(trial.cost),
        cost_text="" if trial.cost is None else format_value(trial.cost, 0),
        **flags,  # type: ignore[arg-type]
    )


def _grid(points: Sequence[TrialPoint], better: Direction) -> TuningGrid:
    """The last parameter that varies is in the columns, the others in the rows."""
    names = list(dict.fromkeys(name for point in points for name, _ in point.params))
    varying = [name for name in names if len({dict(point.params).get(name) for point in points}) > 1]
    column_name = varying[-1] if varying else (names[-1] if names else "")
    columns = tuple(dict.fromkeys(dict(point.params).get(column_name, "") for point in points))
    row_names = [name for name in varying if name != column_name]
    cells: dict[str, dict[str, HeatCell]] = {}
    values = [point.value for point in points]
    for point in points:
        params = dict(point.params)
        label = ", ".join(params.get(name, "") for name in row_names)
        cells.setdefault(label, {})[params.get(column_name, "")] = _heat_cell(point, values, better)
    rows = tuple((label, tuple(row.get(column) for column in columns)) for label, row in cells.items())
    return TuningGrid(", ".join(row_names), column_name, columns, rows)


def _heat_cell(point: TrialPoint, values: Sequence[float], better: Direction) -> HeatCell:
    labels = [
        mark
        for mark, holds in (
            (BEST, point.best and not point.within_budget),
            (BASELINE, point.baseline),
            (BUDGET, point.within_budget),
        )
        if holds
    ]
    if point.chosen:
        labels.append(f"{CHOSEN} by {point.chosen}")
    return HeatCell(
        point.text,
        finite_or_none(point.value),
        relative_shade(point.value, values, better),
        point.cost_text,
        marks=tuple(labels),
    )


def _key(params: Params) -> Key:
    return tuple((name, str(value)) for name, value in params.items())


def _label(key: Key) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in key)


# Charts: the grid as a heatmap, selection and held-out scores per fold, and the cost frontier.

FOLD_WIDTH = 340
GAP = 18
MAX_CHOICE = 48
SCORES_HEAD = "selection → held-out"
SHORT_MARKS = {BEST: "best", BASELINE: "base", BUDGET: "best"}
"""Short texts of the marks of a cell; the number of folds is written as ×n."""
WIDTH, HEIGHT = 600, 340


def grid_heatmap(tuned: TuningView) -> Chart:
    """Every point of the grid; points that a fold selected are framed."""
    grid = tuned.grid
    column_title = grid.column_title.replace("_", " ")
    row_title = grid.row_title.replace("_", " ")
    cells = [
        _grid_cell(row, column, cell, f"{row_title} {label}, {column_title} {grid.columns[column]}".removeprefix(" , "))
        for row, (label, line) in enumerate(grid.rows)
        for column, cell in enumerate(line)
        if cell is not None
    ]
    size = cell_size(cells)
    rows = shorten_labels([label or "all" for label, _ in grid.rows])
    layers = heatmap(cells, rows, list(grid.columns), size)
    layers += [
        marks.column_header(f"{column_title} →", 0, y=-30),
        marks.column_header(row_title, -10, align="right", y=-10),
    ]
    layers += shade_legend("worst", "best", y=len(rows) * size.height + 20)
    metric = metric_in_sentence(tuned.metric)
    best = next((trial for trial in tuned.trials if trial.best), None)
    n_tied = sum(trial.value == best.value and _is_affordable(trial, tuned.budget) for trial in tuned.trials if best)
    tied = f" (one of {n_tied} configurations with this score)" if n_tied > 1 else ""
    within = " best: the best within the budget." if any(trial.within_budget for trial in tuned.trials) else ""
    baseline = " base: the baseline." if any(trial.baseline for trial in tuned.trials) else ""
    score = f"{value_in_sentence(tuned.metric, best.text)} at {best.label}{tied}" if best else ""
    affordable = " within the budget" if any(trial.within_budget for trial in tuned.trials) else ""
    best_text = f"; the best{affordable} on all {tuned.units} is {score}" if best else ""
    return chart(
        f"tuning-grid-{slug(tuned.system)}",
        f"{shorten_label(tuned.system)}: {tuned.metric} over the grid",
        f"The {metric} of {tuned.system} was measured for {len(tuned.trials)} configurations{best_text}.",
        layers,
        subtitle=f"On the {tuned.units} used for selection. Framed: selected by n folds (×n).{within}{baseline}",
        **size.of(rows, grid.columns),
    )


def _is_affordable(trial: TrialPoint, budget: float | None) -> bool:
    return budget is None or (trial.cost is not None and trial.cost <= budget)


def _grid_cell(row: int, column: int, cell: HeatCell, where: str) -> HeatmapCell:
    labels = [SHORT_MARKS.get(mark) or mark.replace(f"{CHOSEN} by ", "×") for mark in cell.marks]
    cost = f"; cost {cell.note}" if cell.note else ""
    marks_text = f"; {', '.join(cell.marks)}" if cell.marks else ""
    return HeatmapCell(
        row,
        column,
        cell.text,
        f"{where}: {cell.text}{cost}{marks_text}",
        cell.shade,
        subtext=" ".join(labels),
        is_framed=any(mark.startswith(CHOSEN) for mark in cell.marks),
    )


def fold_chart(tuned: TuningView) -> Chart:
    """The selection score (open) and the held-out score (filled) of every fold."""
    x = marks.scale_axis(tuned.scale, tuned.metric)
    scores = FOLD_WIDTH + GAP
    rows = [_fold_row(index, fold) for index, fold in enumerate(tuned.folds)]
    choices = scores + marks.text_width([SCORES_HEAD, *(row["scores"] for row in rows)]) + GAP
    inner_to_outer = {"y": marks.ROW_POSITION, "x": {**x, "field": "inner"}, "x2": {"field": "outer"}}
    inner = [{**row, "value": row["inner"], **_mark_style("diamond", "paper", "behind")} for row in rows]
    outer = [{**row, "value": row["outer"], **_mark_style("circle", "lead", "lead")} for row in rows]
    layers: list[Spec] = [
        marks.row_lines(FOLD_WIDTH),
        marks.layer("rule", inner_to_outer, stroke=LIGHT["line"], strokeWidth=2),
        {"data": {"values": inner}, **marks.points(x)},
        {"data": {"values": outer}, **marks.points(x)},
        marks.row_labels(),
        marks.text_column("scores", scores),
        marks.text_column("choice", choices),
        marks.column_header(SCORES_HEAD, scores),
        marks.column_header("selected", choices),
        *marks.legend(
            [
                ("diamond", LIGHT["paper"], LIGHT["behind"], f"on the {tuned.units} used for selection"),
                ("circle", LIGHT["lead"], LIGHT["lead"], f"on held-out {tuned.units}"),
            ]
        ),
    ]
    return chart(
        f"tuning-folds-{slug(tuned.system)}",
        f"{shorten_label(tuned.system)}: {tuned.metric} by fold",
        _describe_folds(tuned),
        layers,
        width=FOLD_WIDTH,
        fluid=True,
        height=marks.row_step(len(rows)),
        data={"values": rows},
    )


def _fold_row(index: int, fold: FoldScore) -> marks.Row:
    return {
        "row": index,
        "name": _fold_label(fold),
        "inner": fold.inner,
        "outer": fold.outer,
        "scores": f"{fold.inner_text} → {fold.outer_text}",
        "choice": shorten_label(fold.chosen, MAX_CHOICE),
        "tooltip": (
            f"{_fold_label(fold)}: selection score {fold.inner_text}, held-out score {fold.outer_text} on {fold.n}; "
            f"selected {fold.chosen}"
        ),
    }


def _fold_label(fold: FoldScore) -> str:
    """The number of a fold, or how many folds of several splits selected the same point."""
    return f"{fold.name} folds" if " of " in fold.name else f"fold {fold.name}"


def _mark_style(shape: str, fill: str, stroke: str) -> marks.Row:
    return {"shape": shape, "fill": LIGHT[fill], "stroke": LIGHT[stroke]}


def _describe_folds(tuned: TuningView) -> str:
    summary = ", ".join(f"{name} {text}" for name, text in tuned.summary[:3])
    chosen = len({fold.chosen for fold in tuned.folds})
    points = "one configuration" if chosen == 1 else f"{chosen} different configurations"
    folds = sum(trial.chosen for trial in tuned.trials)
    return f"The {folds} folds of {tuned.system} selected {points}; {summary}."


def cost_frontier_chart(tuned: Sequence[TuningView], systems: Sequence[SystemInfo]) -> Chart:
    """One stepped line per system: the best score among the points that cost no more. Small marks are others."""
    index_of = {system.name: index for index, system in enumerate(systems)}
    points = [row for view in tuned for row in _trial_rows(view, index_of[view.system])]
    frontier = [row for row in points if row["frontier"]]
    budget = next((view.budget for view in tuned if view.budget is not None), None)
    metric, unit = tuned[0].metric, tuned[0].cost_unit
    x = cost_axis([row["cost"] for row in points] + ([] if budget is None else [budget]), unit or "cost")
    y_scale = axis_scale([], [row["value"] for row in points])
    y = marks.with_grid(marks.scale_axis(y_scale, metric))
    where = marks.position(x, y, "cost", "value")
    max_cost = x["scale"]["domain"][1]
    layers = [
        *_budget_line(budget, unit, x),
        _other_points([row for row in points if not row["frontier"]], where),
        *(_frontier_line([row for row in frontier if row["system"] == view.system], where, max_cost) for view in tuned),
        _frontier_points(frontier, where),
        *_frontier_labels(points, index_of, y_scale),
    ]
    return chart(
        "frontier",
        f"{metric_heading(metric)} by {unit or 'cost'}",
        _describe_frontier(tuned, budget),
        layers,
        subtitle=(
            f"Lines: the best {metric_in_sentence(metric)} at or below each number of {unit or 'cost units'}, on the "
            f"{tuned[0].units} used for selection."
        ),
        width=WIDTH,
        fluid=True,
        height=HEIGHT,
    )


def _trial_rows(view: TuningView, index: int) -> list[marks.Row]:
    """Every trial with a cost, cheapest first."""
    color, shape = series_style(index)
    with_cost = [(trial.cost, trial) for trial in view.trials if trial.cost is not None]
    return [
        {
            "system": view.system,
            "cost": cost,
            "value": trial.value,
            "frontier": trial.frontier,
            "shape": shape,
            "fill": color,
            "stroke": LIGHT["ink"] if trial.within_budget else color,
            "tooltip": _trial_tooltip(view, trial),
        }
        for cost, trial in sorted(with_cost, key=lambda pair: (pair[0], pair[1].value))
    ]


def _trial_tooltip(view: TuningView, trial: TrialPoint) -> str:
    within = "; the best within the budget" if trial.within_budget else ""
    cost = f"{trial.cost_text} {view.cost_unit}".rstrip()
    score = f"{metric_in_sentence(view.metric)} {value_in_sentence(view.metric, trial.text)}"
    return f"{view.system}, {trial.label}: {score}; {cost}{within}"


def _other_points(rows: list[marks.Row], where: Spec) -> Spec:
    """The points that are not on the frontier, small and faint."""
    style = {**where, **marks.literals("shape", "fill"), **marks.TOOLTIP}
    return marks.layer("point", style, rows, size=14, filled=True, opacity=0.4)


def _frontier_line(rows: list[marks.Row], where: Spec, max_cost: float) -> Spec:
    """A stepped line through the frontier, extended to the largest cost."""
    steps = [{"cost": row["cost"], "value": row["value"]} for row in rows]
    steps += [{**steps[-1], "cost": max_cost}] if steps else []
    return marks.line(steps, where, rows[0]["fill"] if rows else LIGHT["ink"], interpolate="step-after")


def _frontier_points(rows: list[marks.Row], where: Spec) -> Spec:
    style = {**where, **marks.literals("shape", "fill", "stroke"), **marks.TOOLTIP}
    return marks.layer("point", style, rows, size=40, strokeWidth=1.4, opacity=1)


def _budget_line(budget: float | None, unit: str, x: Spec) -> list[Spec]:
    if budget is None:
        return []
    text = {"value": budget, "text": f"budget {format_value(budget, 0)} {unit}".rstrip()}
    where: Spec = {"x": {**x, "field": "value"}, "y": {"value": -10}}
    return [
        marks.reference_line(budget, x, color="chance", strokeDash=[4, 3], strokeWidth=1.3),
        marks.text_marks([text], where, fill=LIGHT["chance"]),
    ]


def _frontier_labels(points: list[marks.Row], index_of: Mapping[str, int], y_scale: AxisScale) -> list[Spec]:
    """The names of the systems at the value of their most expensive frontier point."""
    last: dict[str, marks.Row] = {}
    for row in points:
        if row["frontier"] or row["system"] not in last:
            last[row["system"]] = row
    height = y_scale.high - y_scale.low
    positions = [(y_scale.high - row["value"]) / height * HEIGHT for row in last.values()]
    return marks.series_labels(list(last), positions, WIDTH, style_index=[index_of[name] for name in last])


def _describe_frontier(tuned: Sequence[TuningView], budget: float | None) -> str:
    scores = []
    for view in tuned:
        within_budget = next((trial for trial in view.trials if trial.within_budget), None)
        best = next((trial for trial in view.trials if trial.best), None)
        chosen = within_budget if budget is not None and within_budget else best
        if chosen:
            score = value_in_sentence(view.metric, chosen.text)
            scores.append(f"{view.system} {score} with {chosen.cost_text} {view.cost_unit}".rstrip())
    within = f"within {format_value(budget, 0)} {tuned[0].cost_unit}" if budget is not None else "of each system"
    return f"Best {metric_in_sentence(tuned[0].metric)} {within}: {', '.join(scores)}."
