"""Markdown: tables with bars, lists of figures such as ``- **HR@1**: 0.3333``, and code blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from equipoise.data.published.aligned import Lines, aligned_grids
from equipoise.data.published.classification import class_reports
from equipoise.data.published.grid import Grid
from equipoise.data.published.markup import plain
from equipoise.data.published.printed import printed
from equipoise.data.published.record import Cell, Known, Record
from equipoise.data.published.tree import Digits, tables_of
from equipoise.data.published.tuned import tuned_records
from equipoise.data.text import TextFile

_BAR = re.compile(r"(?<!\\)\|")
_DELIMITERS = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_PART = re.compile(
    r"^(?:[-*+]\s+)?(?P<label>[^:=]*?[^:=\s])\s*(?::|=|≈(?=\s*\d))\s*(?P<value>[≈~<>]?\s*[-+.\d].*)$"
)
_BULLET = re.compile(r"^\s*[-*+]\s+")
_COMMAS = re.compile(r",\s+(?=[^\d\s])")

LONGEST_LABEL = 4
"""Words; what is longer is a sentence."""


def markdown_parts(file: TextFile, known: Known) -> tuple[list[Grid], list[Record]]:
    """The tables of a Markdown or text file, and the figures that stand in its lists and code blocks."""
    grids: list[Grid] = []
    found: list[Record] = []
    heading = ""
    prose: list[tuple[int, str]] = []
    for kind, block in _blocks(file.text.splitlines()):
        if kind == "heading":
            found += _listed(heading, prose, known)
            heading, prose = plain(block[0][1]), []
        elif kind == "table":
            name = f"{file.name}, {heading}" if heading else file.name
            grids.append(Grid.of(name, [(f"line {number}", _cells(line)) for number, line in block]))
        elif kind == "code":
            name = f"{file.name}, {heading}" if heading else file.name
            reports, shares, block = class_reports(name, block)
            found += [*_json_records(heading, block, known), *shares, *tuned_records(block)]
            grids += [*reports, *aligned_grids(name, block)]
            prose += block
        else:
            prose += block
    return grids, found + _listed(heading, prose, known)


def text_parts(file: TextFile, known: Known) -> tuple[list[Grid], list[Record]]:
    """The same of a plain text, which is what a program printed: one code block."""
    lines: Lines = list(enumerate(file.text.splitlines(), start=1))
    reports, shares, lines = class_reports(file.name, lines)
    listed = [*_listed("", lines, known), *shares, *tuned_records(lines)]
    return [*reports, *aligned_grids(file.name, lines)], listed


def _blocks(lines: list[str]) -> Iterator[tuple[str, Lines]]:
    """Headings, tables without their rule, code blocks without their fences, and all other lines."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if _FENCE.match(line):
            end = next((i for i in range(at + 1, len(lines)) if _FENCE.match(lines[i])), len(lines))
            yield "code", [(i + 1, lines[i]) for i in range(at + 1, end)]
            at = end + 1
        elif (
            "|" in line and at + 1 < len(lines) and "|" in lines[at + 1] and _DELIMITERS.match(lines[at + 1])
        ):
            end = next((i for i in range(at + 2, len(lines)) if "|" not in lines[i]), len(lines))
            yield "table", [(i + 1, lines[i]) for i in (at, *range(at + 2, end))]
            at = end
        else:
            match = _HEADING.match(line)
            yield ("heading", [(at + 1, match[1])]) if match else ("prose", [(at + 1, line)])
            at += 1


def _cells(line: str) -> list[str]:
    return [plain(cell) for cell in _BAR.split(line.strip().removeprefix("|").removesuffix("|"))]


def _listed(heading: str, lines: Lines, known: Known) -> list[Record]:
    """Figures of lines such as ``HR@1: 0.3333, HR@3: 0.6667``; where a label returns, a new record begins."""
    found: list[Record] = []
    cells: dict[str, Cell] = {}
    for _, line in lines:
        for cell in _pairs(line, known):
            if cell.label in cells:
                found.append(Record(heading, tuple(cells.values())))
                cells = {}
            cells[cell.label] = cell
    return [*found, Record(heading, tuple(cells.values()))] if cells else found


def _pairs(line: str, known: Known) -> list[Cell]:
    """The figures of a line that consists of nothing else; a sentence that mentions one has none."""
    matches = [_PART.match(part.strip()) for part in _COMMAS.split(plain(_BULLET.sub("", line)))]
    cells = [Cell(match["label"], match["value"]) for match in matches if match]
    sound = all(
        known(cell.label) and len(cell.label.split()) <= LONGEST_LABEL and printed(cell.text) is not None
        for cell in cells
    )
    return cells if sound and len(cells) == len(matches) else []


def _json_records(heading: str, lines: Lines, known: Known) -> list[Record]:
    """The records of a code block that is JSON; none of any other."""
    text = "\n".join(line for _, line in lines)
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        value = json.loads(text, parse_float=Digits)
    except ValueError:
        return []
    records = [record for table in tables_of(value, known) for record in table]
    return [Record("/".join(filter(None, (heading, each.name))), each.cells) for each in records]
