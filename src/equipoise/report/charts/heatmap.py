"""Heatmaps with a text in each cell: slices, win/tie/loss per pair, and confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names
from equipoise.report.charts import marks
from equipoise.report.charts.chart import (
    HEAT_STEPS,
    LIGHT,
    TEXT_SIZE,
    Chart,
    Spec,
    chart,
    heat_color,
    shorten_label,
    shorten_labels,
    slug,
    with_largest,
)
from equipoise.stats.formatting import format_count, format_percent, format_value, metric_in_sentence, value_in_sentence
from equipoise.stats.verdict import plural

if TYPE_CHECKING:
    from equipoise.report.view_model import HeatCell, PairwiseTable, SliceRow, SliceTable, SystemInfo, WinCell

CELL_HEIGHT = 28
TALL_CELL_HEIGHT = 40
SUBTEXT_SIZE = 10
SLANT = -38
PADDING = 14
NARROW = 26
LEGEND_STEP = 18
MAX_SLICE_COLUMNS = 14
MAX_WIN_COLUMNS = 12
"""With more systems than this the cells are too narrow for texts."""
MAX_COLUMN_LABEL = 24
MAX_CLASS_LABEL = 20
SIGNIFICANT_DOT = "•"
SHADE_LIMITS = (0.1, 0.2, 0.3, 0.5, 1.0)
"""Win fractions at which the darkest shade may end."""
MIN_CELL_WIDTH = 40.0


@dataclass(frozen=True, slots=True)
class HeatmapCell:
    """One cell; ``shade`` is from 0 to 1, or None for no value. ``subtext`` is a small second line."""

    row: int
    column: int
    text: str
    tooltip: str
    shade: float | None
    subtext: str = ""
    is_small_sample: bool = False
    is_framed: bool = False


@dataclass(frozen=True, slots=True)
class CellSize:
    """The size of a cell in pixels."""

    width: float
    height: float = CELL_HEIGHT

    def of(self, rows: Sequence[str], columns: Sequence[str]) -> Spec:
        """The size of the whole heatmap, as properties of a specification."""
        return {"width": self.width * len(columns), "height": self.height * len(rows)}


def cell_size(cells: Sequence[HeatmapCell]) -> CellSize:
    """The size of a cell that fits the texts of all cells."""
    width = marks.text_width([text for cell in cells for text in (cell.text, cell.subtext)])
    height = TALL_CELL_HEIGHT if any(cell.subtext for cell in cells) else CELL_HEIGHT
    return CellSize(max(MIN_CELL_WIDTH, width + PADDING), height)


def heatmap(cells: Sequence[HeatmapCell], rows: Sequence[str], columns: Sequence[str], size: CellSize) -> list[Spec]:
    """The cells, the row labels and the column labels, which are slanted if wider than a cell."""
    x, y = _index_axis("column", len(columns)), _index_axis("row", len(rows))
    layers = [_boxes([cell for cell in cells if not cell.is_small_sample], x, y)]
    small = [cell for cell in cells if cell.is_small_sample]
    if small:
        layers.append(_boxes(small, x, y, strokeDash=[3, 2]))
    layers.append(_cell_texts([cell for cell in cells if not cell.subtext], "text", x, y))
    two_lines = [cell for cell in cells if cell.subtext]
    if two_lines:
        layers.append(_cell_texts(two_lines, "text", x, y, dy=-7))
        layers.append(_cell_texts(two_lines, "subtext", x, y, dy=8, fontSize=SUBTEXT_SIZE))
    row_names = [{"row": index, "name": name} for index, name in enumerate(rows)]
    column_names = [{"column": index, "name": name} for index, name in enumerate(columns)]
    slanted = marks.text_width(columns) > size.width - 4
    style: Spec = {"align": "left", "angle": SLANT} if slanted else {"align": "center"}
    return [
        *layers,
        marks.text_marks(row_names, {"x": {"value": -10}, "y": y}, "name", align="right", fontSize=TEXT_SIZE),
        marks.text_marks(column_names, {"x": x, "y": {"value": -10}}, "name", **style),
    ]


def shade_legend(low: str, high: str, *, y: float) -> list[Spec]:
    """The steps of the shade with the meanings of both ends, below the cells."""
    left = marks.text_width([low]) + 8
    steps = [
        {"at": left + LEGEND_STEP * step, "to": left + LEGEND_STEP * (step + 1) - 1, "fill": LIGHT[f"heat{step}"]}
        for step in range(HEAT_STEPS)
    ]
    where: Spec = {"x": {"field": "at", **marks.PIXELS}, "y": {"value": y}}
    right = left + LEGEND_STEP * HEAT_STEPS + 7
    box = {**where, "x2": {"field": "to"}, **marks.literals("fill")}
    return [
        marks.layer("rect", box, steps, height=11, stroke=LIGHT["line"], strokeWidth=0.5, aria=False),
        marks.text_marks([{"at": left - 8, "text": low}], where, align="right", fill=LIGHT["soft"]),
        marks.text_marks([{"at": right, "text": high}], where, align="left", fill=LIGHT["soft"]),
    ]


def _boxes(cells: Sequence[HeatmapCell], x: Spec, y: Spec, **mark: Any) -> Spec:
    where = {"x": x, "y": y, **marks.literals("fill", "stroke"), **marks.TOOLTIP}
    return marks.layer("rect", where, [_cell_row(cell) for cell in cells], strokeWidth=1.6, **mark)


def _cell_texts(cells: Sequence[HeatmapCell], key: str, x: Spec, y: Spec, **mark: Any) -> Spec:
    rows = [_cell_row(cell) for cell in cells if getattr(cell, key)]
    color: Spec = {"fill": {**marks.literals("ink")["ink"]}}
    return marks.text_marks(rows, {"x": x, "y": y, **color}, key, **mark)


def _cell_row(cell: HeatmapCell) -> marks.Row:
    grey = cell.shade is None or cell.is_small_sample
    fill, text_color = (LIGHT["few"], LIGHT["soft"]) if grey else heat_color(cell.shade or 0.0)
    stroke = LIGHT["ink"] if cell.is_framed else LIGHT["line"] if cell.is_small_sample else LIGHT["paper"]
    return {
        "row": cell.row,
        "column": cell.column,
        "text": cell.text,
        "subtext": cell.subtext,
        "tooltip": cell.tooltip,
        "fill": fill,
        "ink": text_color,
        "stroke": stroke,
    }


def _index_axis(key: str, count: int) -> Spec:
    scale = {"domain": list(range(count)), "paddingInner": 0.05, "paddingOuter": 0.025}
    return {"field": key, "type": "ordinal", "axis": None, "scale": scale}


def slice_heatmap(table: SliceTable, systems: Sequence[SystemInfo]) -> Chart:
    """One row per slice value, one column per system; small samples are grey with a dashed frame."""
    cells = [
        _slice_cell(row_index, column, row, cell, systems[column].name)
        for row_index, row in enumerate(table.rows)
        for column, cell in enumerate(row.cells)
    ]
    if len(systems) > MAX_SLICE_COLUMNS:
        cells, size = [replace(cell, text="") for cell in cells], CellSize(NARROW)
    else:
        size = cell_size(cells)
    rows = [f"{shorten_label(f'{row.name}: {row.value}')} (n {format_count(row.n)})" for row in table.rows]
    columns = shorten_labels([system.name for system in systems], MAX_COLUMN_LABEL)
    layers = heatmap(cells, rows, columns, size)
    layers += shade_legend("worst", "best", y=len(rows) * size.height + 20)
    small_samples = any(row.small_sample for row in table.rows)
    return chart(
        "slices",
        f"Slices by {table.metric}",
        _describe_slices(table, systems),
        layers,
        subtitle=f"Grey with a dashed frame: too few {table.units}." if small_samples else "",
        **size.of(rows, columns),
    )


def _slice_cell(row_index: int, column: int, row: SliceRow, cell: HeatCell, system: str) -> HeatmapCell:
    too_few = " (few)" if cell.small_sample else ""
    note = f"; {cell.note}" if cell.note else ""
    return HeatmapCell(
        row_index,
        column,
        cell.text if cell.value is not None else "n/a",
        f"{system} on {row.name} {row.value}: {cell.text}{note}; n {format_count(row.n)}{too_few}",
        cell.shade,
        is_small_sample=cell.small_sample,
    )


def _describe_slices(table: SliceTable, systems: Sequence[SystemInfo]) -> str:
    shaded = [
        (cell.shade, row, column, cell)
        for row in table.rows
        for column, cell in enumerate(row.cells)
        if cell.shade is not None and not cell.small_sample
    ]
    metric = metric_in_sentence(table.metric)
    if not shaded:
        return f"No slice has enough {table.units} for a score on {metric}."
    best, worst = (
        with_largest(shaded, lambda entry: entry[0]),
        with_largest(shaded, lambda entry: -entry[0]),
    )
    names = [
        join_names([f"{systems[column].name} on {row.name} {row.value}" for _, row, column, _ in entries])
        for entries in (best, worst)
    ]
    values = [value_in_sentence(table.metric, entries[0][-1].text) for entries in (best, worst)]
    return f"Best {metric}: {names[0]} ({values[0]}). Worst: {names[1]} ({values[1]})."


def win_matrix(table: PairwiseTable, systems: Sequence[SystemInfo]) -> Chart:
    """The fraction of units on which the row's system is better than the column's.

    Significant differences are framed. The darkest shade is a round fraction just above the largest one.
    """
    labels = shorten_labels([system.name for system in systems])
    cells = _win_cells(table, systems)
    largest = max((cell.shade or 0.0 for cell in cells), default=0.0)
    limit = next(limit for limit in SHADE_LIMITS if limit >= largest)
    shaded = [cell if cell.shade is None else replace(cell, shade=cell.shade / limit) for cell in cells]
    narrow = len(systems) > MAX_WIN_COLUMNS
    size = CellSize(CELL_HEIGHT) if narrow else cell_size(cells)
    rows = [f"{label} · {system.letter}" for label, system in zip(labels, systems, strict=True)]
    columns = [system.letter for system in systems]
    layers = heatmap(shaded, rows, columns, size)
    most = f"wins all {table.units}" if limit == 1 else f"wins {format_percent(limit)} of the {table.units}"
    layers += shade_legend("wins none", most, y=len(systems) * size.height + 20)
    mark = "Dot" if narrow else "Wins/ties/losses; framed"
    return chart(
        "wins",
        f"Wins per pair of {plural(table.system)} on {metric_in_sentence(table.metric)}",
        _describe_wins(table, systems),
        layers,
        subtitle=f"Row against column. {mark}: significant difference.",
        **size.of(rows, columns),
    )


def _win_cells(table: PairwiseTable, systems: Sequence[SystemInfo]) -> list[HeatmapCell]:
    """The cells off the diagonal; their shade is the win fraction."""
    narrow = len(systems) > MAX_WIN_COLUMNS
    names = [system.letter if narrow else system.name for system in systems]
    return [
        HeatmapCell(
            row,
            column,
            (SIGNIFICANT_DOT if cell.significant else "") if narrow else cell.text,
            f"{names[row]} against {names[column]}: {_win_text(cell)}",
            cell.win_fraction,
            is_framed=cell.significant and not narrow,
        )
        for row, line in enumerate(table.matrix)
        for column, cell in enumerate(line)
        if cell is not None
    ]


def _win_text(cell: WinCell) -> str:
    return f"wins/ties/losses {cell.text}; {'significant' if cell.significant else 'not significant'}"


def _describe_wins(table: PairwiseTable, systems: Sequence[SystemInfo]) -> str:
    fractions = [
        (cell.win_fraction, row, column)
        for row, line in enumerate(table.matrix)
        for column, cell in enumerate(line)
        if cell is not None and cell.win_fraction is not None
    ]
    if not fractions:
        return f"There are no win counts for {metric_in_sentence(table.metric)}."
    largest = with_largest(fractions, lambda entry: entry[0])
    pairs = join_names([f"{systems[row].name} over {systems[column].name}" for _, row, column in largest])
    share = f"on {format_percent(round(largest[0][0], 2))} of {table.units}"
    return f"The most wins on {metric_in_sentence(table.metric)}: {share} ({pairs})."


def confusion_chart(system: str, classes: Sequence[str], counts: Sequence[Sequence[int]]) -> Chart:
    """A confusion matrix: one row per true class, one column per predicted class and one for all others.

    Shades are shares of a row.
    """
    cells = [
        _confusion_cell(row, column, units, sum(line), classes)
        for row, line in enumerate(counts)
        for column, units in enumerate(line)
    ]
    size = cell_size(cells)
    labels = shorten_labels(list(classes), MAX_CLASS_LABEL)
    rows = [f"{label} (n {format_count(sum(line))})" for label, line in zip(labels, counts, strict=True)]
    columns = [*labels, "others"]
    layers = heatmap(cells, rows, columns, size)
    layers += [marks.column_header("true ↓  predicted →", -10, align="right", y=-10)]
    layers += shade_legend("0 %", "100 %", y=len(rows) * size.height + 20)
    return chart(
        f"confusion-{slug(system)}",
        f"Confusion matrix of {shorten_label(system)} for the most frequent places",
        _describe_confusion(system, classes, counts),
        layers,
        subtitle="Percent of the visits to each true place; framed: correct predictions.",
        **size.of(rows, columns),
    )


def _confusion_cell(row: int, column: int, units: int, total: int, classes: Sequence[str]) -> HeatmapCell:
    fraction = units / total if total else 0.0
    predicted = classes[column] if column < len(classes) else "another class"
    return HeatmapCell(
        row,
        column,
        format_value(100 * fraction, 0) if units else "",
        f"{format_count(units)} of {format_count(total)} visits to {classes[row]} are predicted as {predicted}",
        fraction,
        is_framed=row == column,
    )


def _describe_confusion(system: str, classes: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    correct = sum(line[row] for row, line in enumerate(counts))
    total = sum(map(sum, counts))
    errors = [
        (units, classes[row], classes[column])
        for row, line in enumerate(counts)
        for column, units in enumerate(line[:-1])
        if row != column and units
    ]
    most = with_largest(errors, lambda error: error[0])
    pairs = join_names([f"{true} predicted as {predicted}" for _, true, predicted in most])
    noun, suffix = ("error is", "") if len(most) == 1 else ("errors are", " each")
    confused = f"; the most frequent {noun} {pairs} ({format_count(most[0][0])} visits{suffix})" if most else ""
    return (
        f"{system} predicts {format_count(correct)} of {format_count(total)} visits to the {len(classes)} most "
        f"frequent places correctly{confused}."
    )
