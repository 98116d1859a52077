"""Tables in LaTeX: tabular and its kin, with booktabs rules, multicolumn heads and dressed-up figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from equipoise.data.published.grid import Grid
from equipoise.data.published.markup import plain
from equipoise.data.text import TextFile, line_at

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


def latex_grids(file: TextFile) -> list[Grid]:
    """Every table of the file."""
    # Comments give way to blanks, so that every place stays where it is.
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
    """Where the body begins: behind the widths and the column letters."""
    while at < len(text) and text[at : at + 1] in "[{":
        at = _closing(text, at) + 1
    return at


def _closing(text: str, at: int) -> int:
    """The place of the bracket that closes the one at this place."""
    opened, closed = text[at], {"{": "}", "[": "]"}[text[at]]
    depth = 0
    for match in _SIGN.finditer(text, at):
        depth += (match[0] == opened) - (match[0] == closed)
        if depth == 0:
            return match.start()
    return len(text)


def _grid(name: str, text: str, start: int, end: int) -> Grid | None:
    body = _without_caption(text[start:end])
    top = re.sub(r"^(\s*\\(?:toprule|hline))", lambda match: " " * len(match[0]), body)
    ends = _HEAD_ENDS.search(top)
    first = _ROWS.search(body)
    head_end = ends.start() if ends else (first.end() if first else len(body))
    heads: list[tuple[str, list[str]]] = []
    rows: list[tuple[str, list[str]]] = []
    for at, row in _rows(body):
        cells = _expanded(_RULES.sub("", row))
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
    return Grid.of(name, [(heads[0][0], header), *rows])


def _without_caption(body: str) -> str:
    """A long table has its caption inside; its text gives way to blanks."""
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


def _expanded(row: str) -> list[str]:
    """The cells of a row; one that spans several columns stands in each of them."""
    cells: list[str] = []
    for cell in _CELLS.split(row):
        across, down = _ACROSS.match(cell), _DOWN.match(cell)
        if across:
            # What follows the number of columns: their letter, then the text.
            content = _after_group(cell[across.end() :])
            cells += [plain(content)] * min(int(across[1]), WIDEST)
        elif down:
            cells.append(plain(_after_group(_after_group(cell[down.end() :]))))
        else:
            cells.append(plain(cell))
    return cells


def _after_group(text: str) -> str:
    """What follows a group in braces, or the text itself where none stands there."""
    text = text.lstrip()
    return text[_closing(text, 0) + 1 :] if text.startswith("{") else text
