"""A Markdown table for GitHub: one row per system, best first, and the chance level below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.report.escaping import inert
from equipoise.report.export.paper_table import PARTIAL, PaperTable, ReportCell, table_caption
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.comparison import Comparison

ARROWS = {Direction.UP: "↑", Direction.DOWN: "↓"}
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&$^]|:(?=\S)")  # a colon may make a link or an emoji
_LIST = re.compile(r"^(\d*)([-+.)])(?=\s|$)")


def as_markdown(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """The table, its caption below, and the verdict where there is one."""
    sheet = PaperTable.of(runs, comparison)
    heads = [
        "system",
        *(f"{escape_markdown(metric)} {ARROWS[sheet.better(metric)]}" for metric in sheet.metrics),
    ]
    lines = [_row(heads), _row([":--", *("--:" for _ in sheet.metrics)])]
    for system in sheet.systems:
        mark = escape_markdown(PARTIAL) if system in sheet.cautions else ""
        cells = [_cell(sheet.cell(system, metric)) for metric in sheet.metrics]
        lines.append(_row([escape_markdown(system) + mark, *cells]))
    lines.append(_row(["*chance*", *(escape_markdown(sheet.chance(metric)) for metric in sheet.metrics)]))
    verdict = [] if comparison is None else ["", escape_markdown(comparison.verdict())]
    return "\n".join([*lines, *verdict, "", escape_markdown(" ".join(table_caption(sheet))), ""])


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(escape_markdown("a|b *c*"))
    a\|b \*c\*
    """
    return _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", inert(" ".join(text.split()))))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: ReportCell) -> str:
    value = f"**{cell.value}**" if cell.best else cell.value
    letters = f"<sup>{cell.letters}</sup>" if cell.letters else ""
    return " ".join(filter(None, [value + letters, cell.interval]))
