"""The report that scikit-learn prints of classes: its head has one cell fewer than its rows, and gaps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.data.published.grid import Grid
from equipoise.data.published.record import Cell, Record

HEADS = ("precision", "recall", "f1-score", "support")
_HEAD = re.compile(r"^\s*precision\s+recall\s+f1-score\s+support\s*$")
_NUMBER = r"\d+(?:\.\d+)?"
_CLASS = re.compile(rf"^\s*(\S.*?)\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+(\d+)(?:\.0)?\s*$")
_ACCURACY = re.compile(rf"^\s*accuracy\s+({_NUMBER})\s+(\d+)(?:\.0)?\s*$")

Lines = Sequence[tuple[int, str]]


def class_reports(name: str, lines: Lines) -> tuple[list[Grid], list[Record], Lines]:
    """The reports among the lines, the accuracies that stand in them, and the lines that are left."""
    grids: list[Grid] = []
    found: list[Record] = []
    left: list[tuple[int, str]] = []
    block: list[tuple[str, list[str]]] | None = None
    for number, line in [*lines, (0, "the end")]:
        place = f"line {number}"
        if _HEAD.match(line):
            grids += _closed(name, block)
            block = [(place, ["class", *HEADS])]
        elif block is not None and (row := _CLASS.match(line)):
            block.append((place, list(row.groups())))
        elif block is not None and (row := _ACCURACY.match(line)):
            found.append(Record("", (Cell("accuracy", row[1], row[2]),), place))
        elif block is None or line.strip():
            grids += _closed(name, block)
            block = None
            left.append((number, line))
    return grids, found, left[:-1]


def _closed(name: str, block: list[tuple[str, list[str]]] | None) -> list[Grid]:
    """A report that has ended is a table if it has rows."""
    return [Grid.of(name, block)] if block is not None and len(block) > 1 else []
