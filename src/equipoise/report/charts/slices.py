"""Slices: one metric on parts of the units, as a heat table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from equipoise.report.charts.chart import Chart, chart
from equipoise.report.charts.heat import Cell, Size, cell_size, heat_layers, shade_key
from equipoise.report.charts.naming import short, short_names
from equipoise.report.page.model import HeatCell, SliceRow, Slices, System
from equipoise.stats.numbers import count

MOST_TEXTS = 14
NARROW = 26
LONGEST_HEAD = 24


def slices_chart(slices: Slices, systems: Sequence[System], name: str = "slices") -> Chart:
    """A row a slice, a column a system; a slice of few units is grey with a dashed frame."""
    cells = [
        _cell(row_place, place, row, cell, systems[place].name)
        for row_place, row in enumerate(slices.rows)
        for place, cell in enumerate(row.cells)
    ]
    if len(systems) > MOST_TEXTS:
        cells, size = [replace(cell, text="") for cell in cells], Size(NARROW)
    else:
        size = cell_size(cells)
    rows = [f"{short(f'{row.name}: {row.value}')} (n {count(row.n)})" for row in slices.rows]
    columns = short_names([system.name for system in systems], LONGEST_HEAD)
    layers = heat_layers(cells, rows, columns, size)
    layers += shade_key("worst seen", "best seen", y=len(rows) * size.height + 20)
    few = any(row.few for row in slices.rows)
    return chart(
        name,
        f"Parts of the units by {slices.metric}",
        _sentence(slices, systems),
        layers,
        subtitle="Grey with a dashed frame: too few units to say." if few else "",
        **size.of(rows, columns),
    )


def _cell(row_place: int, place: int, row: SliceRow, cell: HeatCell, system: str) -> Cell:
    few = " (few units)" if cell.few else ""
    note = f"; {cell.note}" if cell.note else ""
    return Cell(
        row_place,
        place,
        cell.text if cell.value is not None else "n/a",
        f"{system} on {row.name} {row.value}: {cell.text}{note}; n {count(row.n)}{few}",
        cell.shade,
        faint=cell.few,
    )


def _sentence(slices: Slices, systems: Sequence[System]) -> str:
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
