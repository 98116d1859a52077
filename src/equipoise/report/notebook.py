"""Results and comparisons in a notebook: the tables of the terminal as HTML, and the findings below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from equipoise.report.terminal import sort_by_severity
from equipoise.stats.formatting import format_percent
from equipoise.stats.verdict import Vocabulary

if TYPE_CHECKING:
    from equipoise.report.terminal import ReportColumn
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result
    from equipoise.types import Finding

FINDING_HEADS = ("severity", "code", "subject", "finding", "hint", "evidence")


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table with headers; all cells are escaped.

    >>> html_table(["system"], [["<b>"]], caption="a & b")
    '<table><caption>a &amp; b</caption><tr><th>system</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{_row('th', heads)}{''.join(_row('td', row) for row in rows)}</table>"


def findings_html(findings: Iterable[Finding]) -> str:
    """One row per finding, most severe first; nothing if there is none."""
    rows = [
        (finding.severity, finding.code, finding.subject, finding.message, finding.hint, "; ".join(finding.evidence))
        for finding in sort_by_severity(findings)
    ]
    return html_table(FINDING_HEADS, rows) if rows else ""


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _columns_html(columns: Sequence[ReportColumn], caption: str) -> str:
    rows = zip(*(column.cells for column in columns), strict=True)
    return html_table([column.head for column in columns], rows, caption=caption)


def result_html(result: Result) -> str:
    """One row per metric; the caption has the system, the number of units and whether the run is complete."""
    from equipoise.report.tables import caption, score_columns

    clusters = None if result.clusters is None else len(set(result.clusters.tolist()))
    status = f" ({result.settings['status']} run)" if "status" in result.settings else ""
    title = f"{result.system}{status}: {Vocabulary.nouns([result]).size(len(result.unit_ids), clusters)}."
    columns = score_columns([result]) if result.estimates else []
    return _columns_html(columns, f"{title} {caption([result])}") + findings_html(result.findings)


def comparison_html(comparison: Comparison) -> str:
    """One row per system, best first, and a table of the other metrics."""
    from equipoise.report.pairwise import metric_table, other_metrics_caption, primary_columns

    title = (
        f"{comparison.verdict()} Systems that share a letter do not differ significantly at the "
        f"{format_percent(comparison.alpha)} level: {comparison.test}, two-sided; {comparison.family}."
    )
    tables = [_columns_html(primary_columns(comparison), title)]
    others = [name for name in comparison.metrics if name != comparison.primary]
    if others:
        tables.append(_columns_html(metric_table(comparison, others), other_metrics_caption(comparison, others)))
    return "".join(tables) + findings_html(comparison.findings)
