"""Heat tables: cells with a shade and a text in it, names on the left, heads above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from equipoise.report.charts.chart import Chart, chart, shorten_label, shorten_labels
from equipoise.report.charts.marks import TOOLTIP, Row, text_width
from equipoise.report.charts.theme import HEAT_STEPS, LIGHT, TEXT_SIZE, Spec, heat_color
from equipoise.stats.formatting import format_count, format_value

if TYPE_CHECKING:
    from equipoise.report.view_model import HeatCell, Pairs, SliceRow, Slices, SystemInfo, WinCell

CELL_HEIGHT = 28
TALL_HEIGHT = 40
BELOW_SIZE = 10
SLANT = -38
PADDING = 14


@dataclass(frozen=True, slots=True)
class HeatmapCell:
    """One cell; ``shade`` is None where there is nothing to shade.

    ``below`` is a small text under the text, ``faint`` greys the cell, ``strong`` frames it.
    """

    row: int
    column: int
    text: str
    says: str
    shade: float | None
    below: str = ""
    faint: bool = False
    strong: bool = False


@dataclass(frozen=True, slots=True)
class CellSize:
    """How large the cells of a table are."""

    width: float
    height: float = CELL_HEIGHT

    def of(self, rows: Sequence[str], columns: Sequence[str]) -> Spec:
        """The size of the whole table, as a specification has it."""
        return {"width": self.width * len(columns), "height": self.height * len(rows)}


def cell_size(cells: Sequence[HeatmapCell], *, least: float = 40) -> CellSize:
    """Cells that are large enough for their texts."""
    wide = text_width([text for cell in cells for text in (cell.text, cell.below)])
    return CellSize(max(least, wide + PADDING), TALL_HEIGHT if any(cell.below for cell in cells) else CELL_HEIGHT)


def heatmap(cells: Sequence[HeatmapCell], rows: Sequence[str], columns: Sequence[str], size: CellSize) -> list[Spec]:
    """The cells and their names; heads that are wider than a cell are slanted."""
    x, y = _band("column", len(columns)), _band("row", len(rows))
    layers = [_boxes([cell for cell in cells if not cell.faint], x, y)]
    faint = [cell for cell in cells if cell.faint]
    if faint:
        layers.append(_boxes(faint, x, y, strokeDash=[3, 2]))
    layers.append(_words([cell for cell in cells if not cell.below], "text", x, y))
    double = [cell for cell in cells if cell.below]
    if double:
        layers.append(_words(double, "text", x, y, dy=-7))
        layers.append(_words(double, "below", x, y, dy=8, fontSize=BELOW_SIZE))
    return [*layers, _names(rows, y), _heads(columns, x, slanted=text_width(columns) > size.width - 4)]


def shade_legend(low: str, high: str, *, y: float) -> list[Spec]:
    """The steps of the shade from one meaning to the other, below the cells."""
    left = text_width([low]) + 8
    steps = [
        {"at": left + 18 * step, "to": left + 18 * (step + 1) - 1, "fill": LIGHT[f"heat{step}"]}
        for step in range(HEAT_STEPS)
    ]
    ends = [{"at": left - 8, "text": low, "align": "right"}, {"at": left + 18 * HEAT_STEPS + 7, "text": high}]
    plain: Spec = {"type": "quantitative", "scale": None, "axis": None}
    key: list[Spec] = [
        {
            "data": {"values": steps},
            "mark": {
                "type": "rect",
                "height": 11,
                "stroke": LIGHT["line"],
                "strokeWidth": 0.5,
                "aria": False,
            },
            "encoding": {
                "x": {"field": "at", **plain},
                "x2": {"field": "to"},
                "y": {"value": y},
                "fill": {"field": "fill", "type": "nominal", "scale": None},
            },
        }
    ]
    for end, align in zip(ends, ("right", "left"), strict=True):
        key.append(
            {
                "data": {"values": [end]},
                "mark": {"type": "text", "align": align, "fill": LIGHT["soft"]},
                "encoding": {"x": {"field": "at", **plain}, "y": {"value": y}, "text": {"field": "text"}},
            }
        )
    return key


def _boxes(cells: Sequence[HeatmapCell], x: Spec, y: Spec, **mark: object) -> Spec:
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": [_drawn(cell) for cell in cells]},
        "mark": {"type": "rect", "strokeWidth": 1.6, **mark},
        "encoding": {
            "x": x,
            "y": y,
            "fill": {"field": "fill", **own},
            "stroke": {"field": "stroke", **own},
            **TOOLTIP,
        },
    }


def _words(cells: Sequence[HeatmapCell], field: str, x: Spec, y: Spec, **mark: object) -> Spec:
    return {
        "data": {"values": [_drawn(cell) for cell in cells if getattr(cell, field)]},
        "mark": {"type": "text", **mark},
        "encoding": {
            "x": x,
            "y": y,
            "text": {"field": field},
            "fill": {"field": "ink", "type": "nominal", "scale": None},
        },
    }


def _drawn(cell: HeatmapCell) -> Row:
    fill, ink = (LIGHT["few"], LIGHT["soft"]) if cell.shade is None or cell.faint else heat_color(cell.shade)
    stroke = LIGHT["ink"] if cell.strong else LIGHT["line"] if cell.faint else LIGHT["paper"]
    return {
        "row": cell.row,
        "column": cell.column,
        "text": cell.text,
        "below": cell.below,
        "says": cell.says,
        "fill": fill,
        "ink": ink,
        "stroke": stroke,
    }


def _band(field: str, count: int) -> Spec:
    gap = {"domain": list(range(count)), "paddingInner": 0.05, "paddingOuter": 0.025}
    return {"field": field, "type": "ordinal", "axis": None, "scale": gap}


def _names(rows: Sequence[str], y: Spec) -> Spec:
    return {
        "data": {"values": [{"row": place, "name": name} for place, name in enumerate(rows)]},
        "mark": {"type": "text", "align": "right", "fontSize": TEXT_SIZE},
        "encoding": {"x": {"value": -10}, "y": y, "text": {"field": "name"}},
    }


def _heads(columns: Sequence[str], x: Spec, *, slanted: bool) -> Spec:
    look: Spec = {"align": "left", "angle": SLANT} if slanted else {"align": "center"}
    return {
        "data": {"values": [{"column": place, "name": name} for place, name in enumerate(columns)]},
        "mark": {"type": "text", **look},
        "encoding": {"x": x, "y": {"value": -10}, "text": {"field": "name"}},
    }


# Slices: one metric on parts of the units, as a heat table.

SLICES_MOST_TEXTS = 14
NARROW = 26
LONGEST_HEAD = 24


def slice_heatmap(slices: Slices, systems: Sequence[SystemInfo], name: str = "slices") -> Chart:
    """A row a slice, a column a system; a slice of few units is grey with a dashed frame."""
    cells = [
        _cell(row_place, place, row, cell, systems[place].name)
        for row_place, row in enumerate(slices.rows)
        for place, cell in enumerate(row.cells)
    ]
    if len(systems) > SLICES_MOST_TEXTS:
        cells, size = [replace(cell, text="") for cell in cells], CellSize(NARROW)
    else:
        size = cell_size(cells)
    rows = [f"{shorten_label(f'{row.name}: {row.value}')} (n {format_count(row.n)})" for row in slices.rows]
    columns = shorten_labels([system.name for system in systems], LONGEST_HEAD)
    layers = heatmap(cells, rows, columns, size)
    layers += shade_legend("worst seen", "best seen", y=len(rows) * size.height + 20)
    few = any(row.few for row in slices.rows)
    return chart(
        name,
        f"Parts of the units by {slices.metric}",
        _slices_sentence(slices, systems),
        layers,
        subtitle="Grey with a dashed frame: too few units to say." if few else "",
        **size.of(rows, columns),
    )


def _cell(row_place: int, place: int, row: SliceRow, cell: HeatCell, system: str) -> HeatmapCell:
    few = " (few units)" if cell.few else ""
    note = f"; {cell.note}" if cell.note else ""
    return HeatmapCell(
        row_place,
        place,
        cell.text if cell.value is not None else "n/a",
        f"{system} on {row.name} {row.value}: {cell.text}{note}; n {format_count(row.n)}{few}",
        cell.shade,
        faint=cell.few,
    )


def _slices_sentence(slices: Slices, systems: Sequence[SystemInfo]) -> str:
    seen = [
        (cell.shade, row, place, cell)
        for row in slices.rows
        for place, cell in enumerate(row.cells)
        if cell.shade is not None and not cell.few
    ]
    if not seen:
        return f"No slice has enough units to say something about {slices.metric}."
    _, best_row, best_place, best = max(seen, key=lambda each: each[0])
    _, worst_row, worst_place, worst = min(seen, key=lambda each: each[0])
    return (
        f"{slices.metric} is best for {systems[best_place].name} on {best_row.name} {best_row.value} "
        f"({best.text}) and worst for {systems[worst_place].name} on {worst_row.name} {worst_row.value} "
        f"({worst.text})."
    )


# The win matrix: how often each system is the better one of two, unit by unit.

MOST_TEXTS = 12
"""With more systems than this the cells are too narrow for texts."""
DOT = "•"
TOPS = (0.1, 0.2, 0.3, 0.5, 1.0)


def win_matrix(pairs: Pairs, systems: Sequence[SystemInfo], name: str = "wins") -> Chart:
    """The share of units that the system of the row wins from that of the column.

    Cells are framed where the data tell the two apart. The shade ends at a round share just above the
    largest one seen.
    """
    called = shorten_labels([system.name for system in systems])
    cells = _cells(pairs, systems)
    top = next(top for top in TOPS if top >= max((cell.shade or 0.0 for cell in cells), default=0.0))
    shaded = [_shaded(cell, top) for cell in cells]
    crowded = len(systems) > MOST_TEXTS
    size = CellSize(CELL_HEIGHT) if crowded else cell_size(cells)
    rows = [f"{text} · {system.letter}" for text, system in zip(called, systems, strict=True)]
    columns = [system.letter for system in systems]
    layers = heatmap(shaded, rows, columns, size)
    most = "wins all units" if top == 1 else f"wins {format_value(top, 1)} of the units"
    layers += shade_legend("wins none", most, y=len(systems) * size.height + 20)
    told = "A dot" if crowded else "Wins/ties/losses; a frame"
    return chart(
        name,
        f"Who wins on how many units ({pairs.metric})",
        _sentence(pairs, systems),
        layers,
        subtitle=f"Row against column. {told} where the data tell the two apart.",
        **size.of(rows, columns),
    )


def _cells(pairs: Pairs, systems: Sequence[SystemInfo]) -> list[HeatmapCell]:
    """The cells off the diagonal; their shade is still the share itself."""
    crowded = len(systems) > MOST_TEXTS
    called = [system.letter if crowded else system.name for system in systems]
    return [
        HeatmapCell(
            row,
            column,
            (DOT if cell.told_apart else "") if crowded else cell.text,
            f"{called[row]} against {called[column]}: {_wins_words(cell)}",
            cell.share,
            strong=cell.told_apart and not crowded,
        )
        for row, line in enumerate(pairs.matrix)
        for column, cell in enumerate(line)
        if cell is not None
    ]


def _shaded(cell: HeatmapCell, top: float) -> HeatmapCell:
    return cell if cell.shade is None else replace(cell, shade=cell.shade / top)


def _wins_words(cell: WinCell) -> str:
    told = "told apart" if cell.told_apart else "not told apart"
    return f"wins/ties/losses {cell.text}; {told}"


def _sentence(pairs: Pairs, systems: Sequence[SystemInfo]) -> str:
    shares = [
        (cell.share, row, column)
        for row, line in enumerate(pairs.matrix)
        for column, cell in enumerate(line)
        if cell is not None and cell.share is not None
    ]
    if not shares:
        return f"Nothing is known about wins on {pairs.metric}."
    share, row, column = max(shares)
    return (
        f"On {pairs.metric} {systems[row].name} wins {format_value(share, 2)} of the units from "
        f"{systems[column].name}, the largest share among {len(systems)} systems."
    )
