"""Tables in Markdown, plain text and LaTeX, and lists of scores such as ``- **HR@1**: 0.3333``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from equipoise.io.published.json_tables import ExactNumber, records_from_json
from equipoise.io.published.numbers import parse_printed, strip_markup
from equipoise.io.published.tables import (
    AlignedLines,
    Known,
    RawTable,
    SystemRecord,
    TableCell,
    aligned_grids,
    class_reports,
    tuning_records,
)
from equipoise.io.text import TextFile, line_at

_BAR = re.compile(r"(?<!\\)\|")
_DELIMITERS = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_PART = re.compile(r"^(?:[-*+]\s+)?(?P<label>[^:=]*?[^:=\s])\s*(?::|=|≈(?=\s*\d))\s*(?P<value>[≈~<>]?\s*[-+.\d].*)$")
_BULLET = re.compile(r"^\s*[-*+]\s+")
_COMMAS = re.compile(r",\s+(?=[^\d\s])")

LONGEST_LABEL = 4
"""Maximum number of words of a label; longer text is a sentence."""


def read_markdown(file: TextFile, is_metric: Known) -> tuple[list[RawTable], list[SystemRecord]]:
    """The tables of a Markdown or text file, and the scores in its lists and code blocks."""
    grids: list[RawTable] = []
    records: list[SystemRecord] = []
    heading = ""
    paragraphs: list[tuple[int, str]] = []
    for kind, block in _blocks(file.text.splitlines()):
        if kind == "heading":
            records += _list_records(heading, paragraphs, is_metric)
            heading, paragraphs = strip_markup(block[0][1]), []
        elif kind == "table":
            name = f"{file.name}, {heading}" if heading else file.name
            grids.append(RawTable.of(name, [(f"line {number}", _cells(line)) for number, line in block]))
        elif kind == "code":
            name = f"{file.name}, {heading}" if heading else file.name
            reports, shares, block = class_reports(name, block)
            records += [*_json_records(heading, block, is_metric), *shares, *tuning_records(block)]
            grids += [*reports, *aligned_grids(name, block)]
            paragraphs += block
        else:
            paragraphs += block
    return grids, records + _list_records(heading, paragraphs, is_metric)


def read_plain_text(file: TextFile, is_metric: Known) -> tuple[list[RawTable], list[SystemRecord]]:
    """The same of a plain text, the output of a program, which is read as one code block."""
    lines: AlignedLines = list(enumerate(file.text.splitlines(), start=1))
    reports, shares, lines = class_reports(file.name, lines)
    listed = [*_list_records("", lines, is_metric), *shares, *tuning_records(lines)]
    return [*reports, *aligned_grids(file.name, lines)], listed


def _blocks(lines: list[str]) -> Iterator[tuple[str, AlignedLines]]:
    """Headings, tables without their rule, code blocks without their fences, and all other lines."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if _FENCE.match(line):
            end = next((i for i in range(at + 1, len(lines)) if _FENCE.match(lines[i])), len(lines))
            yield "code", [(i + 1, lines[i]) for i in range(at + 1, end)]
            at = end + 1
        elif "|" in line and at + 1 < len(lines) and "|" in lines[at + 1] and _DELIMITERS.match(lines[at + 1]):
            end = next((i for i in range(at + 2, len(lines)) if "|" not in lines[i]), len(lines))
            yield "table", [(i + 1, lines[i]) for i in (at, *range(at + 2, end))]
            at = end
        else:
            match = _HEADING.match(line)
            yield ("heading", [(at + 1, match[1])]) if match else ("prose", [(at + 1, line)])
            at += 1


def _cells(line: str) -> list[str]:
    return [strip_markup(cell) for cell in _BAR.split(line.strip().removeprefix("|").removesuffix("|"))]


def _list_records(heading: str, lines: AlignedLines, is_metric: Known) -> list[SystemRecord]:
    """Scores of lines such as ``HR@1: 0.3333, HR@3: 0.6667``; a repeated label begins a new record."""
    records: list[SystemRecord] = []
    cells: dict[str, TableCell] = {}
    for _, line in lines:
        for cell in _pairs(line, is_metric):
            if cell.label in cells:
                records.append(SystemRecord(heading, tuple(cells.values())))
                cells = {}
            cells[cell.label] = cell
    return [*records, SystemRecord(heading, tuple(cells.values()))] if cells else records


def _pairs(line: str, is_metric: Known) -> list[TableCell]:
    """The scores of a line that contains only scores; a sentence that mentions one yields none."""
    matches = [_PART.match(part.strip()) for part in _COMMAS.split(strip_markup(_BULLET.sub("", line)))]
    cells = [TableCell(match["label"], match["value"]) for match in matches if match]
    is_consistent = all(
        is_metric(cell.label) and len(cell.label.split()) <= LONGEST_LABEL and parse_printed(cell.text) is not None
        for cell in cells
    )
    return cells if is_consistent and len(cells) == len(matches) else []


def _json_records(heading: str, lines: AlignedLines, is_metric: Known) -> list[SystemRecord]:
    """The records of a code block that is JSON; none of any other."""
    text = "\n".join(line for _, line in lines)
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        value = json.loads(text, parse_float=ExactNumber)
    except ValueError:
        return []
    records = [record for table in records_from_json(value, is_metric) for record in table]
    return [SystemRecord("/".join(filter(None, (heading, record.name))), record.cells) for record in records]


# LaTeX tables: tabular and similar environments, with booktabs rules, multicolumn heads and markup in cells.

_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_BEGIN = re.compile(r"\\begin\{(tabular\*?|tabularx|tabulary|longtable|array)\}")
_RULES = re.compile(
    r"\\(?:toprule|midrule|bottomrule|hline|endhead|endfirsthead|endfoot|endlastfoot|addlinespace|specialrule)"
    r"(?:\[[^\]]*\]|\{[^{}]*\})*|\\(?:cmidrule|cline)(?:\([^)]*\))?\s*\{[^{}]*\}"
)
_ROWS = re.compile(r"\\\\(?:\[[^\]]*\])?|\\tabularnewline")
_HEAD_ENDS = re.compile(r"\\midrule|\\hline|\\endhead|\\endfirsthead")
_CELLS = re.compile(r"(?<!\\)&")
_ACROSS = re.compile(r"^\s*\\multicolumn\s*\{(\d+)\}\s*")
_DOWN = re.compile(r"^\s*\\multirow\s*(?:\[[^\]]*\])?\s*")
WIDEST = 100
"""Columns that one cell may span."""
_SIGN = re.compile(r"\\.|[\[\]{}]", re.DOTALL)
_CAPTION = re.compile(r"\\caption\*?(?:\[[^\]]*\])?\{")


def read_latex(file: TextFile) -> list[RawTable]:
    """Every table of the file."""
    # Comments are replaced by blanks, so that all offsets remain valid.
    text = _COMMENT.sub(lambda match: " " * len(match[0]), file.text)
    grids = []
    for match in _BEGIN.finditer(text):
        end = text.find(rf"\end{{{match[1]}}}", match.end())
        body_at = _after_arguments(text, match.end())
        grid = _grid(file.name, text, body_at, len(text) if end < 0 else end)
        if grid is not None:
            grids.append(grid)
    return grids


def _after_arguments(text: str, at: int) -> int:
    """The offset of the body, after the widths and the column letters."""
    while at < len(text) and text[at : at + 1] in "[{":
        at = _closing(text, at) + 1
    return at


def _closing(text: str, at: int) -> int:
    """The offset of the bracket that closes the one at this offset."""
    opened, closed = text[at], {"{": "}", "[": "]"}[text[at]]
    depth = 0
    for match in _SIGN.finditer(text, at):
        depth += (match[0] == opened) - (match[0] == closed)
        if depth == 0:
            return match.start()
    return len(text)


def _grid(name: str, text: str, start: int, end: int) -> RawTable | None:
    body = _without_caption(text[start:end])
    top = re.sub(r"^(\s*\\(?:toprule|hline))", lambda match: " " * len(match[0]), body)
    ends = _HEAD_ENDS.search(top)
    first = _ROWS.search(body)
    head_end = ends.start() if ends else (first.end() if first else len(body))
    heads: list[tuple[str, list[str]]] = []
    rows: list[tuple[str, list[str]]] = []
    for at, row in _rows(body):
        cells = _expand_spans(_RULES.sub("", row))
        if any(cells):
            line = line_at(text.encode(), len(text[: start + at].encode()))
            (heads if at + len(row) <= head_end else rows).append((f"line {line}", cells))
    if not heads or not rows:
        return None
    width = max(len(cells) for _, cells in [*heads, *rows])
    header = [
        " ".join(dict.fromkeys(filter(None, (cells[at] if at < len(cells) else "" for _, cells in heads))))
        for at in range(width)
    ]
    return RawTable.of(name, [(heads[0][0], header), *rows])


def _without_caption(body: str) -> str:
    """Replace the caption inside a longtable by blanks."""
    match = _CAPTION.search(body)
    if not match:
        return body
    end = _closing(body, match.end() - 1) + 1
    row = re.compile(r"(?:\\label\{[^{}]*\})?\s*\\\\").match(body, end)
    end = row.end() if row else end
    return body[: match.start()] + " " * (end - match.start()) + body[end:]


def _rows(body: str) -> Iterator[tuple[int, str]]:
    at = 0
    for match in _ROWS.finditer(body):
        yield at, body[at : match.start()]
        at = match.end()
    yield at, body[at:]


def _expand_spans(row: str) -> list[str]:
    """The cells of a row; a cell that spans several columns is repeated in each."""
    cells: list[str] = []
    for cell in _CELLS.split(row):
        across, down = _ACROSS.match(cell), _DOWN.match(cell)
        if across:
            # The text after the number of columns and their letter.
            content = _after_group(cell[across.end() :])
            cells += [strip_markup(content)] * min(int(across[1]), WIDEST)
        elif down:
            cells.append(strip_markup(_after_group(_after_group(cell[down.end() :]))))
        else:
            cells.append(strip_markup(cell))
    return cells


def _after_group(text: str) -> str:
    """What follows a group in braces, or the text itself if there is none."""
    text = text.lstrip()
    return text[_closing(text, 0) + 1 :] if text.startswith("{") else text
