"""A table for a page on GitHub: one row a system, best first, what luck would score below."""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.report.export.caption import caption
from equipoise.report.export.sheet import PARTIAL, Cell, Sheet
from equipoise.report.inert import inert
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison
from equipoise.types import Direction

ARROWS = {Direction.UP: "↑", Direction.DOWN: "↓"}
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&$^]|:(?=\S)")  # a colon may make a link or an emoji
_LIST = re.compile(r"^(\d*)([-+.)])(?=\s|$)")


def as_markdown(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """The table, its caption below, and the verdict where there is one."""
    sheet = Sheet.of(runs, comparison)
    heads = ["system", *(f"{escaped(metric)} {ARROWS[sheet.better(metric)]}" for metric in sheet.metrics)]
    lines = [_row(heads), _row([":--", *("--:" for _ in sheet.metrics)])]
    for system in sheet.systems:
        mark = escaped(PARTIAL) if system in sheet.cautions else ""
        cells = [_cell(sheet.cell(system, metric)) for metric in sheet.metrics]
        lines.append(_row([escaped(system) + mark, *cells]))
    lines.append(_row(["*chance*", *(escaped(sheet.chance(metric)) for metric in sheet.metrics)]))
    verdict = [] if comparison is None else ["", escaped(comparison.verdict())]
    return "\n".join([*lines, *verdict, "", escaped(" ".join(caption(sheet))), ""])


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(escaped("a|b *c*"))
    a\|b \*c\*
    """
    return _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", inert(" ".join(text.split()))))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    value = f"**{cell.value}**" if cell.best else cell.value
    letters = f"<sup>{cell.letters}</sup>" if cell.letters else ""
    return " ".join(filter(None, [value + letters, cell.interval]))
