"""What a search for parameters prints: ``Baseline: 90.1%`` and ``Optimized: 94.4% (95% CI: ...)``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.data.published.printed import printed
from equipoise.data.published.record import Cell, Record

_LINE = re.compile(
    r"^\s*(?:[-*+]\s+)?\**(Baseline|Default|Optimi[sz]ed|Tuned|Best)\**\s*:\**\s*(.+?)\s*$", re.I
)
_PARAMETERS = re.compile(r"^\s*(?:[-*+]\s+)?\**best (?:params|parameters|config)\w*\**\s*:\s*(\S.*)$", re.I)
_NAME = re.compile(r"^\s*(?:[-*+#]+\s+)?(\S.*?)\s*:?\s*$")
_FIRST = ("baseline", "default")

Lines = Sequence[tuple[int, str]]


def tuned_records(lines: Lines) -> list[Record]:
    """A record for each system whose figure after the search stands beside the one before, or its parameters.

    The figures have no name of their own; they are shares of questions answered, and are read as accuracy.
    """
    found: list[Record] = []
    name, cells = "", {}
    for _, line in [*lines, (0, "the end")]:
        figure, parameters = _LINE.match(line), _PARAMETERS.match(line)
        if parameters:
            cells["best_params"] = Cell("best_params", parameters[1])
        elif figure and printed(figure[2]) is not None:
            label = f"{figure[1].casefold()} accuracy"
            if label in cells:
                found, cells = _kept(found, name, cells), {}
            cells[label] = Cell(label, figure[2])
        elif line.strip():
            found, cells = _kept(found, name, cells), {}
            heading = _NAME.match(line)
            name = heading[1] if heading else ""
    return found


def _kept(found: list[Record], name: str, cells: dict[str, Cell]) -> list[Record]:
    """The records with one more, if the cells hold what a search found and what it began with."""
    after = [each for each in cells if each.split()[0] not in (*_FIRST, "best_params")]
    return [*found, Record(name, tuple(cells.values()))] if after and len(cells) > 1 else found
