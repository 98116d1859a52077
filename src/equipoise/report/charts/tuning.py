"""Tuning: the grid as a heat table, and what each fold chose with its value inside and outside."""

from __future__ import annotations

from equipoise.report.charts.chart import Chart, chart, slug
from equipoise.report.charts.heat import Cell, cell_size, heat_layers, shade_key
from equipoise.report.charts.layers import (
    PLACE,
    Row,
    axis_of,
    dots,
    head,
    key,
    names,
    row_step,
    stripes,
    text_width,
    texts,
)
from equipoise.report.charts.naming import short, short_names
from equipoise.report.charts.theme import LIGHT, Spec
from equipoise.report.page.model import Fold, HeatCell, Tuned
from equipoise.report.page.tuned import BASELINE, BEST, BUDGET, CHOSEN

WIDTH = 340
GAP = 18
LONGEST_CHOICE = 48
BRIEF = {BEST: "best", BASELINE: "base", BUDGET: "budget"}
"""What a cell has room for; folds are counted with a cross."""


def grid_chart(tuned: Tuned) -> Chart:
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
    rows = short_names([label or "all" for label, _ in grid.rows])
    layers = heat_layers(cells, rows, list(grid.columns), size)
    layers += [head(f"{across} →", 0, y=-30), head(down, -10, align="right", y=-10)]
    layers += shade_key("worst seen", "best seen", y=len(rows) * size.height + 20)
    best = next((trial for trial in tuned.trials if trial.best), None)
    peak = f", best {best.text} at {best.label}" if best else ""
    return chart(
        f"tuning-grid-{slug(tuned.system)}",
        f"The grid of {short(tuned.system)} by {tuned.metric}",
        f"{tuned.system} was measured at {len(tuned.trials)} points of the grid on {tuned.metric}{peak}.",
        layers,
        subtitle="On the units that also chose, so optimistic. Framed: chosen by so many (×) folds.",
        **size.of(rows, grid.columns),
    )


def _cell(row: int, column: int, cell: HeatCell, where: str) -> Cell:
    brief = [mark for mark in cell.marks if mark != BUDGET or BEST not in cell.marks]
    marks = [BRIEF.get(mark) or mark.replace(f"{CHOSEN} by ", "×") for mark in brief]
    cost = f"; cost {cell.note}" if cell.note else ""
    said = f"; {', '.join(cell.marks)}" if cell.marks else ""
    return Cell(
        row,
        column,
        cell.text,
        f"{where}: {cell.text}{cost}{said}",
        cell.shade,
        below=" ".join(marks),
        strong=any(mark.startswith(CHOSEN) for mark in cell.marks),
    )


def folds_chart(tuned: Tuned) -> Chart:
    """For every fold the value on the units that chose (open) and on those that had no say (filled)."""
    x = axis_of(tuned.scale, tuned.metric)
    figures = WIDTH + GAP
    rows = [_fold_row(place, fold) for place, fold in enumerate(tuned.folds)]
    choices = figures + text_width(row["figures"] for row in rows) + GAP
    inner = [{**row, "value": row["inner"], **_look("diamond", "paper", "behind")} for row in rows]
    outer = [{**row, "value": row["outer"], **_look("circle", "lead", "lead")} for row in rows]
    layers: list[Spec] = [
        stripes(WIDTH),
        {
            "mark": {"type": "rule", "stroke": LIGHT["line"], "strokeWidth": 2},
            "encoding": {"y": PLACE, "x": {**x, "field": "inner"}, "x2": {"field": "outer"}},
        },
        {"data": {"values": inner}, **dots(x)},
        {"data": {"values": outer}, **dots(x)},
        names(),
        texts("figures", figures),
        texts("choice", choices),
        head("inner → outer", figures),
        head("chosen", choices),
        *key(
            [
                ("diamond", LIGHT["paper"], LIGHT["behind"], "inner: on the units that chose"),
                ("circle", LIGHT["lead"], LIGHT["lead"], "outer: on units that had no say"),
            ]
        ),
    ]
    return chart(
        f"tuning-folds-{slug(tuned.system)}",
        f"The folds of {short(tuned.system)} by {tuned.metric}",
        _folds_sentence(tuned),
        layers,
        width=WIDTH,
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
        "choice": short(fold.chosen, LONGEST_CHOICE),
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
