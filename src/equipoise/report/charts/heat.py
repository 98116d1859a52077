"""Heat tables: cells with a shade and a text in it, names on the left, heads above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.report.charts.layers import SAID, Row, text_width
from equipoise.report.charts.theme import HEAT_STEPS, LIGHT, TEXT_SIZE, Spec, heat

CELL_HEIGHT = 28
TALL_HEIGHT = 40
BELOW_SIZE = 10
SLANT = -38
PADDING = 14


@dataclass(frozen=True, slots=True)
class Cell:
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
class Size:
    """How large the cells of a table are."""

    width: float
    height: float = CELL_HEIGHT

    def of(self, rows: Sequence[str], columns: Sequence[str]) -> Spec:
        """The size of the whole table, as a specification has it."""
        return {"width": self.width * len(columns), "height": self.height * len(rows)}


def cell_size(cells: Sequence[Cell], *, least: float = 40) -> Size:
    """Cells that are large enough for their texts."""
    wide = text_width([text for cell in cells for text in (cell.text, cell.below)])
    return Size(max(least, wide + PADDING), TALL_HEIGHT if any(cell.below for cell in cells) else CELL_HEIGHT)


def heat_layers(cells: Sequence[Cell], rows: Sequence[str], columns: Sequence[str], size: Size) -> list[Spec]:
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


def shade_key(low: str, high: str, *, y: float) -> list[Spec]:
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


def _boxes(cells: Sequence[Cell], x: Spec, y: Spec, **mark: object) -> Spec:
    own = {"type": "nominal", "scale": None}
    return {
        "data": {"values": [_drawn(cell) for cell in cells]},
        "mark": {"type": "rect", "strokeWidth": 1.6, **mark},
        "encoding": {
            "x": x,
            "y": y,
            "fill": {"field": "fill", **own},
            "stroke": {"field": "stroke", **own},
            **SAID,
        },
    }


def _words(cells: Sequence[Cell], field: str, x: Spec, y: Spec, **mark: object) -> Spec:
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


def _drawn(cell: Cell) -> Row:
    fill, ink = (LIGHT["few"], LIGHT["soft"]) if cell.shade is None or cell.faint else heat(cell.shade)
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
