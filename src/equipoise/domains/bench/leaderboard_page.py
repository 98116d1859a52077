"""The HTML page of a leaderboard, with the chart of rank intervals."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.bench.leaderboard_report import (
    ADJACENT_HEADS,
    DATASET_HEADS,
    HEADS,
    adjacent_rows,
    as_sentence,
    dataset_rows,
    leaderboard_rows,
    method_lines,
    summary_lines,
)
from equipoise.errors import MissingExtraError
from equipoise.redaction import inert
from equipoise.report.charts.chart import Chart, chart, shorten_labels
from equipoise.report.charts.intervals import GAP, LEADERBOARD_WIDTH
from equipoise.report.charts.marks import (
    column_header,
    interval_bars,
    legend,
    points,
    row_labels,
    row_lines,
    row_step,
    scale_axis,
    text_column,
)
from equipoise.report.charts.theme import LIGHT
from equipoise.report.findings import sort_by_severity
from equipoise.report.sections import axis_scale
from equipoise.report.view_model import AxisScale
from equipoise.stats.formatting import (
    format_percent,
    format_ranks,
)

if TYPE_CHECKING:
    from equipoise.domains.bench.leaderboard import LeaderboardAnalysis

# The chart of rank intervals.


def rank_chart(analysis: LeaderboardAnalysis) -> Chart:
    """The rank interval of each model; circles may be first, open diamonds may not."""
    entries = analysis.entries
    labels = shorten_labels([entry.model for entry in entries])
    rows = []
    for index, (entry, label) in enumerate(zip(entries, labels, strict=True)):
        first = entry.rank_low == 1
        color = LIGHT["lead" if first else "behind"]
        ranks = format_ranks(entry.rank_low, entry.rank_high)
        rows.append(
            {
                "row": index,
                "name": label,
                "value": entry.rank,
                "low": entry.rank_low,
                "high": entry.rank_high,
                "label": ranks,
                "shape": "circle" if first else "diamond",
                "fill": color if first else LIGHT["paper"],
                "stroke": color,
                "tooltip": f"{entry.model}: rank {entry.rank}, interval {ranks}",
            }
        )
    last = float(len(entries))
    ticks = [tick for tick in axis_scale([], [0.0, last]).ticks if 1.0 < tick[0] <= last and tick[0] == int(tick[0])]
    x = scale_axis(AxisScale(1.0, last, ((1.0, "1"), *ticks)), "rank (← lower is better)")
    level = format_percent(analysis.config.confidence_level)
    text_at = LEADERBOARD_WIDTH + GAP
    kinds = [
        ("circle", LIGHT["lead"], LIGHT["lead"], "may be first"),
        ("diamond", LIGHT["paper"], LIGHT["behind"], "may not be first"),
    ]
    layers = [
        row_lines(LEADERBOARD_WIDTH),
        *interval_bars(x),
        points(x),
        row_labels(),
        text_column("label", text_at),
        column_header(f"{level} rank interval", text_at),
        *legend(kinds[: len({row["shape"] for row in rows})]),
    ]
    return chart(
        "ranks",
        f"Rank intervals of {pluralize(len(entries), 'model')}",
        analysis.verdict(),
        layers,
        width=LEADERBOARD_WIDTH,
        height=row_step(len(rows)),
        data={"values": rows},
    )


# The HTML page.

_STYLE = """\
:root{color-scheme:light dark}
body{margin:0 auto;max-width:70rem;padding:1.5rem;font-family:sans-serif;line-height:1.45;overflow-wrap:anywhere;
background:var(--chart-paper);color:var(--chart-ink)}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}
figure{margin:0 0 2rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.25rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--chart-grid)}
th:nth-child(2),td:nth-child(2),.names th:first-child,.names td:first-child{text-align:left}
tr.first td{font-weight:bold}
.soft{color:var(--chart-soft);font-size:.9rem}
"""


def leaderboard_html(analysis: LeaderboardAnalysis) -> str:
    """A self-contained page: verdict, table, chart of rank intervals, adjacent ranks, data sets and method."""
    from equipoise.report.html import charts as interactive
    from equipoise.report.html.render import content_security_policy

    try:
        figure = f"<figure class='wide'>{interactive.embed_chart(rank_chart(analysis))['svg']}</figure>"
    except MissingExtraError as error:
        figure = f"<p class='soft'>The chart is missing: {escape(error.message)}. {escape(error.hint)}</p>"
    style, script = interactive.chart_style() + _STYLE, interactive.chart_script()
    title = f"Leaderboard: {Path(analysis.table.name).name}"
    sections = [
        f"<h1>{_text(title)}</h1>",
        f"<p><strong>{_text(analysis.verdict())}</strong></p>",
        *(f"<p>{_text(line)}</p>" for line in summary_lines(analysis)),
        *_finding_list(analysis),
        _table("Leaderboard", HEADS, leaderboard_rows(analysis), _first_rows(analysis)),
        "<h2>Rank intervals</h2>",
        figure,
        _adjacent_table(analysis),
        _dataset_table(analysis),
        "<h2>Method</h2>",
        *(f"<p class='soft'>{_text(line)}</p>" for line in method_lines(analysis)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, sections))
        + f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _first_rows(analysis: LeaderboardAnalysis) -> list[bool]:
    return [entry.rank_low == 1 for entry in analysis.entries]


def _finding_list(analysis: LeaderboardAnalysis) -> list[str]:
    if not analysis.findings:
        return []
    items = "\n".join(
        f"<li>{each.code} ({each.severity}): {_text(each.message)}. {_text(as_sentence(each.hint))}.</li>"
        for each in sort_by_severity(analysis.findings)
    )
    return [f"<h2>Findings</h2>\n<ul>\n{items}\n</ul>"]


def _adjacent_table(analysis: LeaderboardAnalysis) -> str:
    rows = adjacent_rows(analysis)
    return _table("Adjacent ranks", ADJACENT_HEADS, rows, [row[-1] == "yes" for row in rows])


def _dataset_table(analysis: LeaderboardAnalysis) -> str:
    if not analysis.without_dataset:
        return ""
    rows = dataset_rows(analysis)
    return _table("Order without one data set", DATASET_HEADS, rows, [False] * len(rows))


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool]) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    body = "\n".join(
        f"<tr{' class=first' if bold else ''}>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
        for row, bold in zip(rows, marked, strict=True)
    )
    named = "" if heads == HEADS else " names"
    return (
        f"<h2>{_text(title)}</h2>\n<div class='wide{named}' role='region' tabindex='0' aria-label='{_text(title)}'>\n"
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _text(text: str) -> str:
    return escape(inert(text))
