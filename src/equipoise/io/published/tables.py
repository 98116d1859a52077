"""Tables of rows and columns, with the metrics in either."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from equipoise.errors import DuplicateError, FormatError
from equipoise.io.published.numbers import parse_printed
from equipoise.io.tables import records

if TYPE_CHECKING:
    from equipoise.io.text import TextFile

# Every published table becomes records, one per system, of labelled scores as printed.

Known = Callable[[str], bool]
"""Whether a label names a metric; the readers do not interpret the metric."""


class TableCell(NamedTuple):
    """A label and the text printed for it; ``n`` is the number of units given with the score.

    ``exact`` means that this program wrote the score: all digits are present, and shares are fractions.
    """

    label: str
    text: str
    n: str = ""
    exact: bool = False


class StatedFact(NamedTuple):
    """A fact that a sentence states, and the quoted sentence."""

    label: str
    text: str
    quote: str


@dataclass(frozen=True, slots=True)
class SystemRecord:
    """The scores of one system on one dataset, and the other cells of its row.

    ``stated`` holds the facts that the text around the table states about all its scores.
    """

    name: str
    cells: tuple[TableCell, ...]
    position: str = ""
    stated: tuple[StatedFact, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """All numbers of a system as they are printed, each under the labels that lead to it."""

    name: str
    numbers: Mapping[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """All records of a source; ``labels`` are those of numbers, read or not.

    ``systems`` are all numbers of the file by system, and ``formulas`` lines that may define a score.
    """

    name: str
    records: tuple[SystemRecord, ...]
    labels: tuple[str, ...] = ()
    systems: tuple[System, ...] = ()
    formulas: tuple[str, ...] = ()


METRIC, VALUE = "metric", "value"
_DASHES = re.compile("[-–—]+")
_LONG_FIGURE = (METRIC, VALUE, "low", "high", "n", "confidence_level", "level", "undefined", "chance")
"""Columns of the long form that belong to one score."""
_LONG_FACTS = ("like",)
_LONG_NAMES = ("system", "model", "run", "name", "method", "dataset", "task", "split", "seed", "fold")


@dataclass(frozen=True, slots=True)
class RawTable:
    """A header and rows of text; ``positions`` holds the position of each row, such as ``line 3``."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    positions: tuple[str, ...]

    @classmethod
    def of(cls, name: str, lines: Sequence[tuple[str, Sequence[str]]], *, strict: bool = False) -> RawTable:
        """From rows with their positions, the header first. Short rows are padded or rejected."""
        (_, header), *body = lines
        heads = tuple(cell.strip() for cell in header)
        for position, row in body:
            if strict and len(row) != len(heads):
                raise FormatError(
                    f"{name} {position} has {len(row)} fields; the header has {len(heads)} ({', '.join(heads)})",
                    hint="a field that holds the separator must be written in double quotes",
                )
        width = max(len(cells) for _, cells in lines)
        filled = [(*(cell.strip() for cell in row), *[""] * (width - len(row))) for _, row in body]
        return cls(name, heads + ("",) * (width - len(heads)), tuple(filled), tuple(position for position, _ in body))

    @property
    def turned(self) -> RawTable:
        """Rows as columns."""
        columns = list(zip(self.header, *self.rows, strict=True))
        return RawTable(self.name, columns[0], tuple(columns[1:]), tuple(f"column {c[0]!r}" for c in columns[1:]))


def table_records(grid: RawTable, is_metric: Known) -> list[SystemRecord]:
    """One record per system: per row if the header names metrics, per column if the first column does."""
    folded = [head.casefold() for head in grid.header]
    if _is_long(folded):
        return _long(grid, folded)
    upright = any(is_metric(head) for head in grid.header)
    if not upright and any(is_metric(row[0]) for row in grid.rows if row):
        grid = grid.turned
    elif not upright:
        return []
    _check_unique_headers(grid)
    return [
        SystemRecord(_name(grid, row), tuple(map(TableCell, grid.header, row)), position)
        for row, position in zip(grid.rows, grid.positions, strict=True)
    ]


def _is_long(folded: Sequence[str]) -> bool:
    return METRIC in folded and VALUE in folded


def numeric_labels(grid: RawTable, is_metric: Known) -> list[str]:
    """The labels of numbers: the header, the first column, or both if neither names a metric."""
    folded = [head.casefold() for head in grid.header]
    if _is_long(folded):
        metric = folded.index(METRIC)
        return list(dict.fromkeys(row[metric] for row in grid.rows if row[metric]))
    heads = [
        head
        for at, head in enumerate(grid.header)
        if any(parse_printed(row[at]) is not None for row in grid.rows if row[at])
    ]
    sides = [row[0] for row in grid.rows if row[0] and any(parse_printed(cell) is not None for cell in row[1:])]
    if any(map(is_metric, grid.header)):
        sides = []
    elif any(map(is_metric, sides)):
        heads = []
    return [label for label in dict.fromkeys([*heads, *sides]) if label and parse_printed(label) is None]


def _check_unique_headers(grid: RawTable) -> None:
    for head in grid.header:
        if head and grid.header.count(head) > 1:
            raise DuplicateError(
                f"{grid.name} has two columns called {head!r}",
                hint="give each a different name, such as the data set and the metric: 'nq nDCG@10'",
            )


def _name(grid: RawTable, row: Sequence[str]) -> str:
    """The first cell, and the other cells of the row that are not numbers."""
    words = [cell for cell in row[1:] if cell and parse_printed(cell) is None and not _DASHES.fullmatch(cell)]
    return ", ".join(dict.fromkeys(filter(None, (row[0], *words[:2]))))


def _long(grid: RawTable, folded: Sequence[str]) -> list[SystemRecord]:
    """One row per system and metric, as ``eq export --to csv`` writes them."""
    at = {name: folded.index(name) for name in (*_LONG_FIGURE, *_LONG_FACTS) if name in folded}
    keys = [column for column, head in enumerate(folded) if head in _LONG_NAMES]
    groups: dict[tuple[str, ...], dict[str, TableCell]] = {}
    for row, position in zip(grid.rows, grid.positions, strict=True):
        key = tuple(row[column] for column in keys)
        cells = groups.setdefault(key, {})
        if row[at[METRIC]] in cells:
            raise DuplicateError(
                f"{grid.name} {position} gives {row[at[METRIC]]} of {', '.join(key) or 'the table'} again",
                hint="keep one row per system and metric",
            )
        low, high = (row[at[end]] if end in at else "" for end in ("low", "high"))
        ends = f" [{low}, {high}]" if low and high else ""
        cells |= {fact: TableCell(fact, row[at[fact]]) for fact in _LONG_FACTS if fact in at}
        cells[row[at[METRIC]]] = TableCell(row[at[METRIC]], row[at[VALUE]] + ends, row[at["n"]] if "n" in at else "")
    return [SystemRecord(", ".join(key), tuple(cells.values())) for key, cells in groups.items()]


# Tables that a program printed for a terminal: columns separated by bars or by at least two spaces.

_BETWEEN = re.compile(r"\s*[|│]\s*|\s{2,}|\t")
_RULE = re.compile(r"^[\s|│┃+:=─━┄┈-]*$")
_BORDERS = " |│┃"

AlignedLines = Sequence[tuple[int, str]]


def aligned_grids(name: str, lines: AlignedLines) -> Iterator[RawTable]:
    """Every run of two or more lines with the same number of columns, at least two."""
    block: list[tuple[str, list[str]]] = []
    for number, line in [*lines, (0, "")]:
        if _RULE.match(line) and number and line.strip():
            continue
        cells = _BETWEEN.split(line.strip(_BORDERS)) if line.strip() else []
        if block and len(cells) != len(block[0][1]):
            if len(block) > 1:
                yield RawTable.of(name, block)
            block = []
        if len(cells) > 1:
            block.append((f"line {number}", cells))


# The classification report of scikit-learn: its header has one cell fewer than its rows, and gaps.

HEADS = ("precision", "recall", "f1-score", "support")
_HEAD = re.compile(r"^\s*precision\s+recall\s+f1-score\s+support\s*$")
_NUMBER = r"\d+(?:\.\d+)?"
_CLASS = re.compile(rf"^\s*(\S.*?)\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+(\d+)(?:\.0)?\s*$")
_ACCURACY = re.compile(rf"^\s*accuracy\s+({_NUMBER})\s+(\d+)(?:\.0)?\s*$")

ClassificationLines = Sequence[tuple[int, str]]


def class_reports(
    name: str, lines: ClassificationLines
) -> tuple[list[RawTable], list[SystemRecord], ClassificationLines]:
    """The reports among the lines, the accuracies in them, and the remaining lines."""
    grids: list[RawTable] = []
    records: list[SystemRecord] = []
    left: list[tuple[int, str]] = []
    block: list[tuple[str, list[str]]] | None = None
    for number, line in [*lines, (0, "the end")]:
        position = f"line {number}"
        if _HEAD.match(line):
            grids += _finish_report(name, block)
            block = [(position, ["class", *HEADS])]
        elif block is not None and (row := _CLASS.match(line)):
            block.append((position, list(row.groups())))
        elif block is not None and (row := _ACCURACY.match(line)):
            records.append(SystemRecord("", (TableCell("accuracy", row[1], row[2]),), position))
        elif block is None or line.strip():
            grids += _finish_report(name, block)
            block = None
            left.append((number, line))
    return grids, records, left[:-1]


def _finish_report(name: str, block: list[tuple[str, list[str]]] | None) -> list[RawTable]:
    """The table of a complete report; none if it has no rows."""
    return [RawTable.of(name, block)] if block is not None and len(block) > 1 else []


# CSV and TSV, also with semicolons.


def delimited_grid(file: TextFile, delimiter: str) -> RawTable:
    """The one table of the file; a header with semicolons and no comma is split at those."""
    first = file.first_line
    if delimiter == "," and "," not in first and ";" in first:
        delimiter = ";"
    lines = [(f"line {number}", fields) for number, fields in records(file, delimiter)]
    if len(lines) < 2:
        raise FormatError(f"{file.name} has a header and no rows", hint="add a row below the header")
    return RawTable.of(file.name, lines, strict=True)


# The output of a parameter search: ``Baseline: 90.1%`` and ``Optimized: 94.4% (95% CI: ...)``.

_LINE = re.compile(r"^\s*(?:[-*+]\s+)?\**(Baseline|Default|Optimi[sz]ed|Tuned|Best)\**\s*:\**\s*(.+?)\s*$", re.I)
_PARAMETERS = re.compile(r"^\s*(?:[-*+]\s+)?\**best (?:params|parameters|config)\w*\**\s*:\s*(\S.*)$", re.I)
_NAME = re.compile(r"^\s*(?:[-*+#]+\s+)?(\S.*?)\s*:?\s*$")
_FIRST = ("baseline", "default")

Lines = Sequence[tuple[int, str]]


def tuning_records(lines: Lines) -> list[SystemRecord]:
    """One record per system with scores before and after tuning, or with its tuned parameters.

    The scores have no metric name; they are shares of questions answered, and are read as accuracy.
    """
    records: list[SystemRecord] = []
    name, cells = "", {}
    for _, line in [*lines, (0, "the end")]:
        score, parameters = _LINE.match(line), _PARAMETERS.match(line)
        if parameters:
            cells["best_params"] = TableCell("best_params", parameters[1])
        elif score and parse_printed(score[2]) is not None:
            label = f"{score[1].casefold()} accuracy"
            if label in cells:
                records, cells = _append_tuning_record(records, name, cells), {}
            cells[label] = TableCell(label, score[2])
        elif line.strip():
            records, cells = _append_tuning_record(records, name, cells), {}
            heading = _NAME.match(line)
            name = heading[1] if heading else ""
    return records


def _append_tuning_record(records: list[SystemRecord], name: str, cells: dict[str, TableCell]) -> list[SystemRecord]:
    """The records and one more, if the cells have a score before and after the search."""
    after = [label for label in cells if label.split()[0] not in (*_FIRST, "best_params")]
    return [*records, SystemRecord(name, tuple(cells.values()))] if after and len(cells) > 1 else records
