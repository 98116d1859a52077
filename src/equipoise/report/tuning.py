"""How systems were tuned: the grid, the selection of each fold, and the score against the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.report.sections import axis_scale, relative_shade
from equipoise.report.tables import finite_or_none
from equipoise.report.view_model import AxisScale, FoldScore, HeatCell, TrialPoint, TuningGrid, TuningView
from equipoise.stats.formatting import format_count, format_difference, format_value
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.report.build import RunSet
    from equipoise.stats.result import Result
    from equipoise.tuning.grid import FoldSelection, Params, Trial, TuningRecord

BEST, BASELINE, CHOSEN, BUDGET = "best", "baseline", "chosen", "within budget"
Key = tuple[tuple[str, str], ...]


MIN_RANGE = 0.1
CAPTION = (
    "Parameters are selected on the inner folds, and the held-out score is measured on other {units}. The optimistic "
    "score is that of the best configuration on the {units} used for selection."
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
    points = tuple(
        _point(
            trial,
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
                inner_text=format_value(fold.inner),
                outer_text=format_value(fold.outer),
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


def _summary(tuning: TuningRecord) -> tuple[tuple[str, str], ...]:
    entries = [
        ("held-out score", format_value(tuning.nested)),
        ("optimistic score", format_value(tuning.optimistic)),
        ("gap", format_difference(tuning.gap)),
        *(() if tuning.split_sd is None else (_split_deviation(tuning.splits, tuning.split_sd),)),
        ("best configuration", _label(_key(tuning.trials[tuning.best].params))),
    ]
    if tuning.baseline is not None:
        start = tuning.trials[tuning.baseline]
        entries.append(("baseline", f"{_label(_key(start.params))}: {format_value(start.value)}"))
    if tuning.budget is not None:
        within = tuning.within_budget
        text = "nothing" if within is None else _point_text(tuning.frontier[within])
        entries.append((f"within {format_value(tuning.budget, 0)} {tuning.cost_unit}".rstrip(), text))
    return tuple(entries)


def _split_deviation(splits: int, sd: float) -> tuple[str, str]:
    return f"standard deviation over {splits} splits", format_value(sd)


def _fold_name(index: int, fold: FoldSelection, tuning: TuningRecord) -> str:
    """The number of a fold; with several splits, the number of folds that selected the same point."""
    return str(index + 1) if tuning.splits == 1 else f"{fold.times} of {tuning.splits * tuning.fold_count}"


def _point_text(trial: Trial) -> str:
    return f"{_label(_key(trial.params))}: {format_value(trial.value)}"


def _point(trial: Trial, **marks: bool | int) -> TrialPoint:
    key = _key(trial.params)
    return TrialPoint(
        label=_label(key),
        params=key,
        value=trial.value,
        text=format_value(trial.value),
        cost=None if trial.cost is None else finite_or_none(trial.cost),
        cost_text="" if trial.cost is None else format_value(trial.cost, 0),
        **marks,  # type: ignore[arg-type]
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
    marks = [
        mark for mark, holds in ((BEST, point.best), (BASELINE, point.baseline), (BUDGET, point.within_budget)) if holds
    ]
    if point.chosen:
        marks.append(f"{CHOSEN} by {point.chosen}")
    return HeatCell(
        point.text,
        finite_or_none(point.value),
        relative_shade(point.value, values, better),
        point.cost_text,
        marks=tuple(marks),
    )


def _key(params: Params) -> Key:
    return tuple((name, str(value)) for name, value in params.items())


def _label(key: Key) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in key)
