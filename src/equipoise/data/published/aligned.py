"""Tables that a program printed for a terminal: columns kept apart by bars or by two spaces and more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from equipoise.data.published.grid import Grid

_BETWEEN = re.compile(r"\s*[|│]\s*|\s{2,}|\t")
_RULE = re.compile(r"^[\s|│┃+:=─━┄┈-]*$")
_BORDERS = " |│┃"

Lines = Sequence[tuple[int, str]]


def aligned_grids(name: str, lines: Lines) -> Iterator[Grid]:
    """Every run of two lines and more that have the same number of columns, two at least."""
    block: list[tuple[str, list[str]]] = []
    for number, line in [*lines, (0, "")]:
        if _RULE.match(line) and number and line.strip():
            continue
        cells = _BETWEEN.split(line.strip(_BORDERS)) if line.strip() else []
        if block and len(cells) != len(block[0][1]):
            if len(block) > 1:
                yield Grid.of(name, block)
            block = []
        if len(cells) > 1:
            block.append((f"line {number}", cells))
