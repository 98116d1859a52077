"""Tables of rows and columns, whichever of the two the metrics stand in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.data.published.printed import printed
from equipoise.data.published.record import Cell, Known, Record
from equipoise.errors import DuplicateError, FormatError

METRIC, VALUE = "metric", "value"
_DASHES = re.compile("[-–—]+")
_LONG_FIGURE = (METRIC, VALUE, "low", "high", "n", "level", "undefined", "chance")
"""Columns of the long form that belong to one figure."""
_LONG_FACTS = ("like",)
_LONG_NAMES = ("system", "model", "run", "name", "method", "dataset", "task", "split", "seed", "fold")


@dataclass(frozen=True, slots=True)
class Grid:
    """A header and rows of text; ``places`` says of each row where it stands, as ``line 3``."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    places: tuple[str, ...]

    @classmethod
    def of(cls, name: str, lines: Sequence[tuple[str, Sequence[str]]], *, strict: bool = False) -> Grid:
        """From lines with their places, the header first. Short rows are filled up, or refused."""
        (_, header), *body = lines
        heads = tuple(each.strip() for each in header)
        for place, row in body:
            if strict and len(row) != len(heads):
                raise FormatError(
                    f"{name} {place} has {len(row)} fields; the header has {len(heads)} ({', '.join(heads)})",
                    hint="a field that holds the separator must stand in double quotes",
                )
        width = max(len(cells) for _, cells in lines)
        filled = [(*(each.strip() for each in row), *[""] * (width - len(row))) for _, row in body]
        return cls(
            name, heads + ("",) * (width - len(heads)), tuple(filled), tuple(place for place, _ in body)
        )

    @property
    def turned(self) -> Grid:
        """Rows as columns."""
        columns = list(zip(self.header, *self.rows, strict=True))
        return Grid(self.name, columns[0], tuple(columns[1:]), tuple(f"column {c[0]!r}" for c in columns[1:]))


def records_of(grid: Grid, known: Known) -> list[Record]:
    """A record a system: rows where the header names figures, columns where the first column does."""
    folded = [head.casefold() for head in grid.header]
    if _is_long(folded):
        return _long(grid, folded)
    upright = any(known(head) for head in grid.header)
    if not upright and any(known(row[0]) for row in grid.rows if row):
        grid = grid.turned
    elif not upright:
        return []
    _refuse_twice(grid)
    return [
        Record(_name(grid, row), tuple(map(Cell, grid.header, row)), place)
        for row, place in zip(grid.rows, grid.places, strict=True)
    ]


def _is_long(folded: Sequence[str]) -> bool:
    return METRIC in folded and VALUE in folded


def numbered(grid: Grid, known: Known) -> list[str]:
    """The labels beside which numbers stand: heads, first column, or both where neither names a figure."""
    folded = [head.casefold() for head in grid.header]
    if _is_long(folded):
        metric = folded.index(METRIC)
        return list(dict.fromkeys(row[metric] for row in grid.rows if row[metric]))
    heads = [
        head
        for at, head in enumerate(grid.header)
        if any(printed(row[at]) is not None for row in grid.rows if row[at])
    ]
    sides = [row[0] for row in grid.rows if row[0] and any(printed(each) is not None for each in row[1:])]
    if any(map(known, grid.header)):
        sides = []
    elif any(map(known, sides)):
        heads = []
    return [label for label in dict.fromkeys([*heads, *sides]) if label and printed(label) is None]


def _refuse_twice(grid: Grid) -> None:
    for head in grid.header:
        if head and grid.header.count(head) > 1:
            raise DuplicateError(
                f"{grid.name} has two columns called {head!r}",
                hint="give each a name of its own, such as the data set and the metric: 'nq nDCG@10'",
            )


def _name(grid: Grid, row: Sequence[str]) -> str:
    """The first cell, and what else stands in the row beside numbers."""
    words = [cell for cell in row[1:] if cell and printed(cell) is None and not _DASHES.fullmatch(cell)]
    return ", ".join(dict.fromkeys(filter(None, (row[0], *words[:2]))))


def _long(grid: Grid, folded: Sequence[str]) -> list[Record]:
    """One row a system and metric, as ``eq export --to csv`` writes them."""
    at = {name: folded.index(name) for name in (*_LONG_FIGURE, *_LONG_FACTS) if name in folded}
    keys = [place for place, head in enumerate(folded) if head in _LONG_NAMES]
    groups: dict[tuple[str, ...], dict[str, Cell]] = {}
    for row, place in zip(grid.rows, grid.places, strict=True):
        key = tuple(row[each] for each in keys)
        cells = groups.setdefault(key, {})
        if row[at[METRIC]] in cells:
            raise DuplicateError(
                f"{grid.name} {place} gives {row[at[METRIC]]} of {', '.join(key) or 'the table'} again",
                hint="keep one row a system and metric",
            )
        low, high = (row[at[end]] if end in at else "" for end in ("low", "high"))
        ends = f" [{low}, {high}]" if low and high else ""
        cells |= {fact: Cell(fact, row[at[fact]]) for fact in _LONG_FACTS if fact in at}
        cells[row[at[METRIC]]] = Cell(
            row[at[METRIC]], row[at[VALUE]] + ends, row[at["n"]] if "n" in at else ""
        )
    return [Record(", ".join(key), tuple(cells.values())) for key, cells in groups.items()]
