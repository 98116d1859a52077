"""Tables as HTML for notebooks, with every text escaped.

It stands below all else, so that findings, results and comparisons can show themselves alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.types import Finding

FINDING_HEADS = ("severity", "code", "subject", "finding", "remedy", "evidence")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table whose first row are its heads; whatever stands in the cells is shown as it is.

    >>> table(["system"], [["<b>"]], caption="a & b")
    '<table><caption>a &amp; b</caption><tr><th>system</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{_row('th', heads)}{''.join(_row('td', row) for row in rows)}</table>"


def findings_table(findings: Iterable[Finding]) -> str:
    """One row a finding."""
    rows = [
        (each.severity, each.code, each.subject, each.sentence, each.remedy, "; ".join(each.evidence))
        for each in findings
    ]
    return table(FINDING_HEADS, rows)


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
