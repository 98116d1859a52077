"""Results and comparisons in a notebook: a table with a caption, and the findings below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_ranks,
    format_value,
    n_decimals,
    shared_decimals,
)
from equipoise.stats.verdict import Vocabulary
from equipoise.types import Direction, Finding, Severity

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result

# Tables as HTML for notebooks, with every text escaped.

FINDING_HEADS = ("severity", "code", "subject", "finding", "hint", "evidence")


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table with headers; all cells are escaped.

    >>> html_table(["system"], [["<b>"]], caption="a & b")
    '<table><caption>a &amp; b</caption><tr><th>system</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{_row('th', heads)}{''.join(_row('td', row) for row in rows)}</table>"


def findings_html(findings: Iterable[Finding]) -> str:
    """One row per finding."""
    rows = [
        (finding.severity, finding.code, finding.subject, finding.message, finding.hint, "; ".join(finding.evidence))
        for finding in findings
    ]
    return html_table(FINDING_HEADS, rows)


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


ARROWS = {Direction.UP: "↑", Direction.DOWN: "↓"}


def result_html(result: Result) -> str:
    """One row per metric; the caption has the system, the number of units and whether the run is complete."""
    heads = ("metric", "value", "interval", "n", "undefined", "chance", "unit")
    clusters = None if result.clusters is None else len(set(result.clusters.tolist()))
    status = f" ({result.settings['status']} run)" if "status" in result.settings else ""
    levels = dict.fromkeys(format_percent(estimate.interval.confidence_level) for estimate in result.estimates.values())
    caption = f"{result.system}{status}: {Vocabulary.nouns([result]).size(len(result.unit_ids), clusters)}"
    caption += f"; {' and '.join(levels)} intervals" if levels else ""
    rows = [_estimate_cells(estimate) for estimate in result.estimates.values()]
    return html_table(heads, rows, caption=caption) + _findings(result.findings)


def comparison_html(comparison: Comparison) -> str:
    """One row per system, best first: the primary metric in full, then the others with their tie groups."""
    others = [name for name in comparison.metrics if name != comparison.primary]
    level = format_percent(comparison.config.confidence_level)
    heads = (
        "band",
        "system",
        _head(comparison, comparison.primary),
        f"{level} interval",
        "to best",
        "diff. interval",
        "p" if comparison.correction == "none" else "adjusted p",
        "win/tie/loss",
        "rank",
        *(_head(comparison, name) for name in others),
    )
    rows = [
        (*_system_cells(comparison, name), *(_other_cell(comparison, name, metric) for metric in others))
        for name in comparison.order
    ]
    caption = (
        f"{comparison.verdict()} Systems that share a letter do not differ significantly at the "
        f"{format_percent(comparison.alpha)} level: "
        f"{comparison.test}, two-sided; {comparison.family}."
    )
    return html_table(heads, rows, caption=caption) + _findings(comparison.findings)


def _findings(findings: Iterable[Finding]) -> str:
    """Every finding once, most severe first; nothing if there is none."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: list(Severity).index(finding.severity))
    return findings_html(ordered) if ordered else ""


def _estimate_cells(estimate: Estimate) -> tuple[str, ...]:
    places = n_decimals(estimate.interval)
    return (
        f"{estimate.metric} {ARROWS[estimate.better]}",
        format_value(estimate.value, places),
        format_interval(estimate.interval, places),
        format_count(estimate.n),
        format_count(estimate.undefined),
        format_value(estimate.chance, places),
        estimate.unit,
    )


def _head(comparison: Comparison, metric: str) -> str:
    better = comparison.estimates[comparison.systems[0]][metric].better
    return f"{metric} {ARROWS[better]}"


def _places(comparison: Comparison, metric: str) -> int:
    return shared_decimals(comparison.estimates[name][metric].interval for name in comparison.systems)


def _system_cells(comparison: Comparison, name: str) -> tuple[str, ...]:
    """Everything about one system on the primary metric."""
    places = _places(comparison, comparison.primary)
    estimate = comparison.estimates[name][comparison.primary]
    band = " ".join(comparison.bands[name]) or "-"
    cells = (band, name, format_value(estimate.value, places), format_interval(estimate.interval, places))
    rank = format_ranks(*comparison.ranks[name])
    if comparison.leader is None or name == comparison.leader:
        return (*cells, "", "", "", "", rank)
    seen = comparison.contrast(name, comparison.leader)
    finer = max(places, n_decimals(seen.interval))
    counts = "n/a" if seen.wins is None else f"{seen.wins}/{seen.ties}/{seen.losses}"
    return (
        *cells,
        format_difference(seen.difference, finer),
        format_interval(seen.interval, finer),
        format_p(seen.adjusted),
        counts,
        rank,
    )


def _other_cell(comparison: Comparison, name: str, metric: str) -> str:
    places = _places(comparison, metric)
    estimate = comparison.estimates[name][metric]
    letters = " ".join(comparison.bands_on(metric)[name])
    band = f" ({letters})" if letters else ""
    return f"{format_value(estimate.value, places)}{band} {format_interval(estimate.interval, places)}"
