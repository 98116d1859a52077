"""The win matrix: how often each system is the better one of two, unit by unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from equipoise.report.charts.chart import Chart, chart
from equipoise.report.charts.heat import CELL_HEIGHT, Cell, Size, cell_size, heat_layers, shade_key
from equipoise.report.charts.naming import short_names
from equipoise.report.page.model import Pairs, System, WinCell
from equipoise.stats.numbers import figure

MOST_TEXTS = 12
"""With more systems than this the cells are too narrow for texts."""
DOT = "•"
TOPS = (0.1, 0.2, 0.3, 0.5, 1.0)


def wins_chart(pairs: Pairs, systems: Sequence[System], name: str = "wins") -> Chart:
    """The share of units that the system of the row wins from that of the column.

    Cells are framed where the data tell the two apart. The shade ends at a round share just above the
    largest one seen.
    """
    called = short_names([system.name for system in systems])
    cells = _cells(pairs, systems)
    top = next(top for top in TOPS if top >= max((cell.shade or 0.0 for cell in cells), default=0.0))
    shaded = [_shaded(cell, top) for cell in cells]
    crowded = len(systems) > MOST_TEXTS
    size = Size(CELL_HEIGHT) if crowded else cell_size(cells)
    rows = [f"{text} · {system.letter}" for text, system in zip(called, systems, strict=True)]
    columns = [system.letter for system in systems]
    layers = heat_layers(shaded, rows, columns, size)
    most = "wins all units" if top == 1 else f"wins {figure(top, 1)} of the units"
    layers += shade_key("wins none", most, y=len(systems) * size.height + 20)
    told = "A dot" if crowded else "Wins/ties/losses; a frame"
    return chart(
        name,
        f"Who wins on how many units ({pairs.metric})",
        _sentence(pairs, systems),
        layers,
        subtitle=f"Row against column. {told} where the data tell the two apart.",
        **size.of(rows, columns),
    )


def _cells(pairs: Pairs, systems: Sequence[System]) -> list[Cell]:
    """The cells off the diagonal; their shade is still the share itself."""
    crowded = len(systems) > MOST_TEXTS
    called = [system.letter if crowded else system.name for system in systems]
    return [
        Cell(
            row,
            column,
            (DOT if cell.told_apart else "") if crowded else cell.text,
            f"{called[row]} against {called[column]}: {_words(cell)}",
            cell.share,
            strong=cell.told_apart and not crowded,
        )
        for row, line in enumerate(pairs.matrix)
        for column, cell in enumerate(line)
        if cell is not None
    ]


def _shaded(cell: Cell, top: float) -> Cell:
    return cell if cell.shade is None else replace(cell, shade=cell.shade / top)


def _words(cell: WinCell) -> str:
    told = "told apart" if cell.told_apart else "not told apart"
    return f"wins/ties/losses {cell.text}; {told}"


def _sentence(pairs: Pairs, systems: Sequence[System]) -> str:
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
        f"On {pairs.metric} {systems[row].name} wins {figure(share, 2)} of the units from "
        f"{systems[column].name}, the largest share among {len(systems)} systems."
    )
