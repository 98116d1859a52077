"""A leaderboard for people: the terminal, Markdown, LaTeX, CSV, and an HTML page with the chart of rank intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.errors import MissingExtraError, ParameterError, did_you_mean
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
from equipoise.report.escaping import inert, inert_cell
from equipoise.report.export.latex import escape_latex
from equipoise.report.export.markdown import escape_markdown
from equipoise.report.findings import findings_section, sort_by_severity
from equipoise.report.tables import axis_scale
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.report.view_model import AxisScale
from equipoise.runs.unit_table import json_text
from equipoise.stats.corrections import CORRECTIONS
from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_ranks,
    format_value,
    shared_decimals,
)
from equipoise.stats.paired_tests import get_test

if TYPE_CHECKING:
    from equipoise.domains.bench.leaderboard import LeaderboardAnalysis, LeaderboardEntry
    from equipoise.domains.bench.leaderboard_ranks import OrderChange

SHOWN_MODELS = 10
AGGREGATE_TITLES = {"mean": "mean score", "borda": "Borda count", "zscore": "mean z-score"}
SHOWN_DATASETS = 10


# The terminal: the answer first, then ten models, then one line per question.


def leaderboard_sections(
    analysis: LeaderboardAnalysis, *, verbose: bool = False, quiet: bool = False, details: str = ""
) -> list[Any]:
    """The decision, the best models, and one line each about ranks, order, missing scores and findings."""
    entries = analysis.entries if verbose else analysis.entries[:SHOWN_MODELS]
    parts: list[Any] = [Paragraph(analysis.verdict(), style="bold"), TerminalTable(_columns(analysis, entries))]
    if quiet:
        return parts
    more = len(analysis.entries) - len(entries)
    parts += [Paragraph(f"{pluralize(more, 'more model')}: -v shows all.")] if more else []
    parts += [Paragraph(line) for line in summary_lines(analysis)]
    if verbose:
        parts += [*_adjacent_section(analysis), *_dataset_section(analysis)]
        parts += [Paragraph(""), *(Paragraph(line) for line in method_lines(analysis))]
        parts += findings_section(analysis.findings, verbose=True)
    else:
        codes = ", ".join(dict.fromkeys(finding.code for finding in sort_by_severity(analysis.findings)))
        found = f"{pluralize(len(analysis.findings), 'finding')} ({codes}). " if codes else ""
        parts.append(Paragraph(f"{found}Details: {details or '-v, or a page with -o FOLDER'}"))
    return parts


def _columns(analysis: LeaderboardAnalysis, entries: Sequence[LeaderboardEntry]) -> list[ReportColumn]:
    places = mean_decimals(analysis)
    level = format_percent(analysis.config.confidence_level)
    columns = [
        ReportColumn("rank", [format_ranks(entry.rank_low, entry.rank_high) for entry in entries], right=True),
        ReportColumn("model", [entry.model for entry in entries], shortens="middle"),
    ]
    if any(not isnan(entry.mean) for entry in entries):
        intervals = [format_interval(entry.interval, places) for entry in entries]
        columns += [
            ReportColumn("mean", [format_value(entry.mean, places) for entry in entries], right=True),
            ReportColumn(f"{level} interval", intervals, right=True, rank=2),
        ]
    firsts = [str(entry.first_places) for entry in entries]
    return [
        *columns,
        ReportColumn("Borda", _half_steps([entry.borda for entry in entries]), right=True, rank=1),
        ReportColumn("median rank", _half_steps([entry.median_rank for entry in entries]), right=True, rank=3),
        ReportColumn(f"best on (of {len(analysis.table.datasets)})", firsts, right=True, rank=4),
    ]


def summary_lines(analysis: LeaderboardAnalysis) -> list[str]:
    """One line each about adjacent ranks, other aggregates, single data sets and missing scores."""
    return [line for line in (_ranks_line(analysis), _order_line(analysis), _source_line(analysis)) if line]


def _ranks_line(analysis: LeaderboardAnalysis) -> str:
    pairs, separated = analysis.adjacent, analysis.separated
    uncorrected = sum(pair.p < analysis.config.alpha for pair in pairs)
    models = analysis.table.models
    names = [f"{models[pair.better]} above {models[pair.worse]}" for pair in separated]
    listed = f": {join_names(names)}" if names else ""
    without = f" ({uncorrected} without the correction)" if analysis.config.correction != "none" else ""
    return f"Separated adjacent ranks: {len(separated)} of {len(pairs)}{without}{listed}."


def _order_line(analysis: LeaderboardAnalysis) -> str:
    if len(analysis.table.datasets) == 1:
        return ""
    models = analysis.table.models
    first = analysis.entries[0].model
    parts = []
    for name, change in analysis.by_aggregate.items():
        other = f", first {models[change.first]}" if models[change.first] != first else ""
        parts.append(f"by {AGGREGATE_TITLES[name]} tau {_tau(change)}{other}")
    changing = {
        name: models[change.first]
        for name, change in zip(analysis.table.datasets, analysis.without_dataset, strict=False)
        if models[change.first] != first
    }
    if changing:
        named = join_names([f"{name} ({leader})" for name, leader in changing.items()])
        parts.append(f"another model is first without {named}")
    elif analysis.without_dataset:
        lowest = min(change.tau for change in analysis.without_dataset)
        parts.append(f"without any one data set {first} stays first (tau at least {format_value(lowest, 2)})")
    return f"Order (Kendall's tau with the order above): {'; '.join(parts)}."


def _source_line(analysis: LeaderboardAnalysis) -> str:
    gaps = int(analysis.source.missing.sum())
    missing = f"Missing scores: {gaps} of {analysis.source.scores.size:,} cells" if gaps else ""
    return " ".join(f"{part}." for part in [missing, *map(_sentence, analysis.table.notes)] if part)


def method_lines(analysis: LeaderboardAnalysis) -> list[str]:
    """How the intervals and tests were computed."""
    config = analysis.config
    level = format_percent(config.confidence_level)
    resampled = {"datasets": "data sets", "units": "units within the data sets", "both": "data sets and their units"}
    source = "Scores have different scales, so models are ordered by Borda count." if _fell_back(analysis) else ""
    return [
        *([source] if source else []),
        f"Models are ordered by {AGGREGATE_TITLES[analysis.aggregate]}. Rank intervals ({level}) come from a paired "
        f"bootstrap of {resampled[analysis.resample]} ({format_count(config.n_resamples)} resamples, seed "
        f"{config.seed}): a model is above another one if their studentised difference exceeds the bootstrap "
        "quantile of the largest difference (Mogstad et al., 2024).",
        f"Adjacent ranks: {get_test(config.test).title}, {CORRECTIONS[config.correction][1]} over "
        f"{pluralize(len(analysis.adjacent), 'pair')}.",
        "Intervals of means include the differences between data sets, which all models share. They may overlap "
        "although the paired difference of two models is significant.",
    ]


def _adjacent_section(analysis: LeaderboardAnalysis) -> list[Any]:
    models, pairs = analysis.table.models, analysis.adjacent
    if not pairs:
        return []
    separated = analysis.separated
    title = f"Adjacent ranks: difference in {AGGREGATE_TITLES[analysis.aggregate]}"
    columns = [
        ReportColumn("better", [models[pair.better] for pair in pairs], shortens="middle"),
        ReportColumn("worse", [models[pair.worse] for pair in pairs], shortens="middle"),
        ReportColumn("difference", [format_difference(pair.difference, 3) for pair in pairs], right=True),
        ReportColumn("p", [format_p(pair.p) for pair in pairs], right=True, rank=1),
        ReportColumn("adj. p", [format_p(pair.p_adjusted) for pair in pairs], right=True),
        ReportColumn("separated", ["yes" if pair in separated else "no" for pair in pairs], rank=2),
    ]
    return [Paragraph(""), heading(title), TerminalTable(columns)]


def _dataset_section(analysis: LeaderboardAnalysis) -> list[Any]:
    """The data sets without which the order changes most, and the units that their digits allow."""
    if not analysis.without_dataset:
        return []
    rows = dataset_rows(analysis)
    cells = list(zip(*rows[:SHOWN_DATASETS], strict=True))
    columns = [ReportColumn(head, cells[at], rank=(0, 0, 1, 2, 3)[at]) for at, head in enumerate(DATASET_HEADS)]
    shown = f"; {SHOWN_DATASETS} of {len(rows)} data sets" if len(rows) > SHOWN_DATASETS else ""
    return [Paragraph(""), heading(f"Order without one data set, largest change first{shown}"), TerminalTable(columns)]


DATASET_HEADS = ("without data set", "tau", "first", "largest move", "units")


def dataset_rows(analysis: LeaderboardAnalysis) -> list[tuple[str, ...]]:
    """For each data set: tau, the first model and the largest move without it, and its size. Lowest tau first."""
    models, table = analysis.table.models, analysis.table
    possible = table.denominators()
    rows: list[tuple[str, ...]] = []
    changes = zip(table.datasets, analysis.without_dataset, strict=True)
    for name, change in sorted(changes, key=lambda pair: pair[1].tau):
        moved = (
            f"{models[change.moved]} {change.rank} → {change.new_rank}" if change.rank != change.new_rank else "none"
        )
        size = table.n_units.get(name)
        units = format_count(size) if size is not None else _possible(possible.get(name))
        rows.append((name, _tau(change), models[change.first], moved, units))
    return rows


def _possible(sizes: tuple[int, ...] | None) -> str:
    """The first numbers of units that printed accuracies allow."""
    if sizes is None:
        return ""
    if not sizes:
        return "not an accuracy"
    return f"{', '.join(map(str, sizes[:3]))}{', ...' if len(sizes) > 3 else ''} possible"


def mean_decimals(analysis: LeaderboardAnalysis) -> int:
    """Decimals of the means: one for percentages and three for fractions, or what the intervals need."""
    least = 3 if set(analysis.table.scales.values()) == {"fraction"} else 1
    known = [entry.interval for entry in analysis.entries if entry.interval.known]
    return max(least, shared_decimals(known)) if known else least


def _fell_back(analysis: LeaderboardAnalysis) -> bool:
    return analysis.aggregate == "borda" and not analysis.table.is_comparable


def _tau(change: OrderChange) -> str:
    return format_value(change.tau, 2)


def _half_steps(values: Sequence[float]) -> list[str]:
    """Counts of ranks: without decimals if all are integers.

    >>> _half_steps([2.0, 1.5]), _half_steps([2.0, 1.0])
    (['2.0', '1.5'], ['2', '1'])
    """
    places = 0 if all(value == int(value) for value in values) else 1
    return [format_value(value, places) for value in values]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# Exports.

HEADS = ("rank", "model", "mean", "interval", "Borda", "median rank", "best on")


def _rows(analysis: LeaderboardAnalysis) -> list[tuple[str, ...]]:
    """The cells of every model, as text."""
    places, entries = mean_decimals(analysis), analysis.entries
    return list(
        zip(
            [format_ranks(entry.rank_low, entry.rank_high) for entry in entries],
            [entry.model for entry in entries],
            [format_value(entry.mean, places) for entry in entries],
            [format_interval(entry.interval, places) for entry in entries],
            _half_steps([entry.borda for entry in entries]),
            _half_steps([entry.median_rank for entry in entries]),
            [str(entry.first_places) for entry in entries],
            strict=True,
        )
    )


def as_markdown(analysis: LeaderboardAnalysis) -> str:
    """A Markdown table with the verdict and the method."""
    rows = [[escape_markdown(cell) for cell in row] for row in _rows(analysis)]
    lines = [_bars(HEADS), _bars(["--:", ":--", *["--:"] * 5]), *map(_bars, rows)]
    notes = [analysis.verdict(), *summary_lines(analysis), *method_lines(analysis)]
    return "\n".join([*lines, "", *(f"{escape_markdown(note)}\n" for note in notes)])


def as_latex(analysis: LeaderboardAnalysis) -> str:
    """A LaTeX table with the verdict and the method as its caption."""
    caption = " ".join([analysis.verdict(), *summary_lines(analysis), *method_lines(analysis)])
    rows = [" & ".join(map(escape_latex, row)) + r" \\" for row in _rows(analysis)]
    lines = [
        r"% needs \usepackage{booktabs, longtable}",
        r"\begin{longtable}{rlrrrrr}",
        rf"\caption{{{escape_latex(caption)}}}\\",
        r"\toprule",
        " & ".join(HEADS) + r" \\",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *rows,
        r"\end{longtable}",
    ]
    return "\n".join(lines) + "\n"


def as_csv(analysis: LeaderboardAnalysis) -> str:
    """One row per model with unrounded numbers."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    entries = analysis.to_dict()["leaderboard"]
    writer.writerow(entries[0])
    for entry in entries:
        writer.writerow([_csv_cell(value) for value in entry.values()])
    return buffer.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, float):
        return "" if isnan(value) else value
    return inert(inert_cell(value)) if isinstance(value, str) else value


def as_json(analysis: LeaderboardAnalysis) -> str:
    """Everything, as ``results.json`` has it."""
    return f"{json_text(analysis.to_dict(), indent=2)}\n"


EXPORTS = {"md": as_markdown, "latex": as_latex, "csv": as_csv, "json": as_json}


def export_leaderboard(analysis: LeaderboardAnalysis, form: str) -> str:
    """The leaderboard in one of the ``EXPORTS``."""
    if form not in EXPORTS:
        hint = did_you_mean(form, EXPORTS) or f"choose {', '.join(EXPORTS)}"
        raise ParameterError(f"there is no export {form!r} of a leaderboard", hint=hint)
    return EXPORTS[form](analysis)


def _bars(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
        _table("Leaderboard", HEADS, _rows(analysis), _first_rows(analysis)),
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
        f"<li>{each.code} ({each.severity}): {_text(each.message)}. {_text(_sentence(each.hint))}.</li>"
        for each in sort_by_severity(analysis.findings)
    )
    return [f"<h2>Findings</h2>\n<ul>\n{items}\n</ul>"]


def _adjacent_table(analysis: LeaderboardAnalysis) -> str:
    models, separated = analysis.table.models, analysis.separated
    rows = [
        (
            models[pair.better],
            models[pair.worse],
            format_difference(pair.difference, 3),
            format_p(pair.p),
            format_p(pair.p_adjusted),
            "yes" if pair in separated else "no",
        )
        for pair in analysis.adjacent
    ]
    heads = ("better", "worse", "difference", "p", "adjusted p", "separated")
    return _table("Adjacent ranks", heads, rows, [pair in separated for pair in analysis.adjacent])


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
