"""The view of a leaderboard, and the chart of its rank intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.bench.score_table import MISSING_CELLS_CODE
from equipoise.report.answer import MAX_ROWS, TIED, WORSE, Answer, interval_column, rank_column, status_column
from equipoise.report.charts.chart import LIGHT, Chart, chart, shorten_labels
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
from equipoise.report.sections import axis_scale
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import Section, View
from equipoise.report.view_model import AxisScale
from equipoise.stats.formatting import (
    about,
    capitalised,
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_ranks,
    format_value,
    shared_decimals,
)
from equipoise.stats.multiple_comparisons import correction_text, p_heading
from equipoise.stats.paired_tests import get_test
from equipoise.stats.power import POWER

if TYPE_CHECKING:
    from equipoise.domains.bench.leaderboard import LeaderboardAnalysis
    from equipoise.stats.aggregate_ranks import OrderChange

ROUNDING = 1e-9
"""A narrower interval, relative to its limit, is the rounding error of equal scores."""
AGGREGATE_TITLES = {"mean": "mean score", "borda": "Borda count", "zscore": "mean z-score"}


# The terminal: the answer first, then one line per question.


def leaderboard_view(analysis: LeaderboardAnalysis, details: str = "") -> View:
    """The decision and the models, then adjacent ranks, the order without single data sets, and the method."""
    sections = (
        _adjacent_section(analysis),
        *_dataset_section(analysis),
        *_units_section(analysis),
        Section("Method", notes=tuple(method_lines(analysis))),
    )
    title = f"Leaderboard: {Path(analysis.table.name).name}"
    return View(leaderboard_answer(analysis, details=details), sections, title)


def leaderboard_answer(analysis: LeaderboardAnalysis, *, details: str = "") -> Answer:
    """The decision, the models, and one line each about order, sample size and missing scores."""
    lines = (_order_line(analysis), _needed_line(analysis), _source_line(analysis))
    return Answer(
        analysis.verdict(),
        tuple(_columns(analysis)),
        notes=tuple(filter(None, lines)),
        findings=tuple(analysis.findings),
        details=f"Details: add -v{f', or {details}' if details else ''}.",
        explains_codes=True,
        details_only=(MISSING_CELLS_CODE,),  # a note has their number
        max_rows=MAX_ROWS,
    )


def _columns(analysis: LeaderboardAnalysis) -> list[ReportColumn]:
    entries, places = analysis.entries, mean_decimals(analysis)
    intervals = [entry.interval for entry in entries]
    models = [entry.model for entry in entries]
    columns = [
        rank_column([(entry.rank_low, entry.rank_high) for entry in entries]),
        ReportColumn("model", models, shortens="middle"),
    ]
    if any(not isnan(entry.mean) for entry in entries):
        means = [entry.mean for entry in entries]
        columns += [
            ReportColumn("mean", [format_value(mean, places) for mean in means], right=True, values={"mean": means}),
            interval_column([format_interval(interval, places) for interval in intervals], intervals),
        ]
    columns.append(status_column(_statuses(analysis)))
    if len(analysis.table.datasets) == 1:
        return columns
    borda, median_ranks = [entry.borda for entry in entries], [entry.median_rank for entry in entries]
    is_primary = analysis.aggregate == "borda"
    columns += [
        _number_column("Borda", _half_steps(borda), borda, rank=0 if is_primary else 3),
        _number_column("median rank", _half_steps(median_ranks), median_ranks, rank=5),
    ]
    firsts = [entry.first_places for entry in entries]
    head = f"best on (of {len(analysis.table.datasets)})"
    return [*columns, _number_column(head, list(map(str, firsts)), firsts, rank=4)]


def _number_column(head: str, cells: Sequence[str], values: Sequence[float], rank: int) -> ReportColumn:
    return ReportColumn(head, cells, right=True, rank=rank, values={head: values})


def _statuses(analysis: LeaderboardAnalysis) -> list[str]:
    """Whether each model is significantly worse than the first one; nothing for the first one itself."""
    first, *others = analysis.primary.order.tolist()
    worse = analysis.primary.separation[:, first] == 1
    return ["", *(WORSE if worse[model] else TIED for model in others)]


def _needed_line(analysis: LeaderboardAnalysis) -> str:
    """How many data sets would show that the first model is better than the next one that could be first."""
    needed, n = analysis.datasets_needed, len(analysis.table.datasets)
    if needed is None or not needed.value > n:
        return ""
    first, second, *_ = analysis.tied_for_first
    power = format_percent(POWER)
    return (
        f"About {about(needed.value)} data sets would be needed to distinguish {first} from {second} ({power} power)."
    )


def _ranks_line(analysis: LeaderboardAnalysis) -> str:
    pairs, separated = analysis.adjacent, analysis.separated
    uncorrected = sum(pair.p < analysis.config.alpha for pair in pairs)
    without = f" ({uncorrected} without the correction)" if analysis.config.correction != "none" else ""
    return f"Models at adjacent ranks that differ significantly: {len(separated)} of {len(pairs)}{without}."


def _order_line(analysis: LeaderboardAnalysis) -> str:
    """Whether another model is first by another aggregate, or without a data set."""
    models = analysis.table.models
    first = analysis.entries[0].model
    others = {AGGREGATE_TITLES[name]: models[change.first] for name, change in analysis.by_aggregate.items()}
    sentences = [f"By {title}, {model} is first." for title, model in others.items() if model != first]
    changing = {
        name: models[change.first]
        for name, change in zip(analysis.table.datasets, analysis.without_dataset, strict=False)
        if models[change.first] != first
    }
    if changing:
        sentences.append(_other_leaders(changing))
    elif analysis.without_dataset and not any(isnan(change.tau) for change in analysis.without_dataset):
        sentences.append(f"{first} stays first if any one data set is left out.")
    return " ".join(sentences)


def _other_leaders(changing: Mapping[str, str]) -> str:
    """Which other models are first if a data set is left out; ``changing`` has the first model by data set.

    >>> _other_leaders({"AskUbuntu": "e5", "SciDocs": "e5"}), _other_leaders({"a": "e5", "b": "gtr"})
    ('Without AskUbuntu or SciDocs, another model (e5) is first.', 'Another model is first without a (e5), b (gtr).')
    """
    if len(set(changing.values())) == 1 and len(changing) <= 2:
        return f"Without {' or '.join(changing)}, another model ({next(iter(changing.values()))}) is first."
    return f"Another model is first without {join_names([f'{name} ({first})' for name, first in changing.items()])}."


def _source_line(analysis: LeaderboardAnalysis) -> str:
    """The missing scores, and what was left out; the decision has the number of complete data sets."""
    source, table = analysis.source, analysis.table
    names = join_names([source.models[row] for row in np.flatnonzero(source.missing.any(axis=1))])
    missing = f"Missing scores: {source.missing.sum()} of {source.scores.size:,} cells ({names})" if names else ""
    notes = source.notes if len(table.models) == len(source.models) else table.notes
    return " ".join(f"{part}." for part in [missing, *map(capitalised, notes)] if part)


def method_lines(analysis: LeaderboardAnalysis) -> list[str]:
    """How the intervals and tests were computed."""
    config = analysis.config
    level = format_percent(config.confidence_level)
    resampled = {
        "datasets": "data sets",
        "units": "examples within the data sets",
        "both": "data sets and their examples",
    }
    if len(analysis.table.datasets) == 1 and analysis.resample == "datasets":
        return ["A single data set without a score per example cannot be resampled, so all ranks remain possible."]
    by_fallback = analysis.aggregate == "borda" and not analysis.table.is_comparable
    reason = "Scores have different scales, so models" if by_fallback else "Models"
    overlap = "may overlap although the paired difference of two models is significant."
    if analysis.resample != "units":
        overlap = f"include the differences between data sets, which all models share. They {overlap}"
    return [
        f"{reason} are ordered by {AGGREGATE_TITLES[analysis.aggregate]}. Rank intervals ({level}) come from a paired "
        f"bootstrap of {resampled[analysis.resample]} ({format_count(config.n_resamples)} resamples, seed "
        f"{config.seed}): a model is above another one if their studentised difference exceeds the bootstrap "
        "quantile of the largest difference (Mogstad et al., 2024). The level holds for each interval, not for all "
        "together.",
        f"Adjacent ranks: {get_test(config.test).title}, {correction_text(config.correction, len(analysis.adjacent))}.",
        *([] if by_fallback else [f"Intervals of means {overlap}"]),
    ]


def _adjacent_section(analysis: LeaderboardAnalysis) -> Section:
    """For every two models at adjacent ranks: their names, the difference, p, adjusted p, and the decision."""
    models, pairs, separated = analysis.table.models, analysis.adjacent, set(analysis.separated)
    heading = p_heading(analysis.config.correction, len(pairs))
    unadjusted = ReportColumn("p", [format_p(pair.p) for pair in pairs], right=True, rank=1)
    columns = [
        ReportColumn("better", [models[pair.better] for pair in pairs], shortens="middle"),
        ReportColumn("worse", [models[pair.worse] for pair in pairs], shortens="middle"),
        ReportColumn("difference", [format_difference(pair.difference, 3) for pair in pairs], right=True),
        *([] if heading == "p" else [unadjusted]),
        ReportColumn(heading, [format_p(pair.p_adjusted) for pair in pairs], right=True),
        ReportColumn("significant", ["yes" if pair in separated else "no" for pair in pairs], right=True, rank=2),
    ]
    title = f"Adjacent ranks: difference in {AGGREGATE_TITLES[analysis.aggregate]}"
    return Section.of_table(title, columns, _ranks_line(analysis))


DATASET_HEADS = ("without data set", "tau", "first", "largest move")


def _dataset_section(analysis: LeaderboardAnalysis) -> list[Section]:
    """The data sets without which the order changes most."""
    if not analysis.without_dataset:
        return []
    cells = list(zip(*dataset_rows(analysis), strict=True))
    columns = [ReportColumn(head, cells[at], rank=(0, 0, 1, 2)[at]) for at, head in enumerate(DATASET_HEADS)]
    taus = [f"by {AGGREGATE_TITLES[name]} {_tau(change)}" for name, change in analysis.by_aggregate.items()]
    note = f"Kendall's tau of this order with that {', '.join(taus)}." if taus else ""
    return [Section.of_table("Order without one data set, largest change first", columns, note)]


def dataset_rows(analysis: LeaderboardAnalysis) -> list[tuple[str, ...]]:
    """For each data set: tau, the first model and the largest move without it. Lowest tau first."""
    models, table = analysis.table.models, analysis.table
    rows: list[tuple[str, ...]] = []
    changes = zip(table.datasets, analysis.without_dataset, strict=True)
    for name, change in sorted(changes, key=lambda pair: pair[1].tau):
        largest_move = (
            f"{models[change.moved]} {change.rank} → {change.new_rank}" if change.rank != change.new_rank else "none"
        )
        rows.append((name, _tau(change), models[change.first], largest_move))
    return rows


def _units_section(analysis: LeaderboardAnalysis) -> list[Section]:
    """The number of units of each data set: as stated, and as the digits of printed accuracies allow."""
    table, possible = analysis.table, analysis.table.denominators()
    names = [name for name in table.datasets if name in table.n_units or name in possible]
    columns = [ReportColumn("data set", names)]
    if any(name in table.n_units for name in names):
        stated = [format_count(table.n_units[name]) if name in table.n_units else "" for name in names]
        columns.append(ReportColumn("n", stated, right=True))
    if possible:
        columns.append(ReportColumn("possible numbers", [_possible(possible.get(name)) for name in names]))
    return [Section.of_table("Queries or other items of each data set", columns)] if names else []


def _possible(sizes: tuple[int, ...] | None) -> str:
    """The first numbers of units that printed accuracies allow."""
    if sizes is None:
        return ""
    if not sizes:
        return "not an accuracy"
    return f"{', '.join(map(str, sizes[:3]))}{', ...' if len(sizes) > 3 else ''}"


def mean_decimals(analysis: LeaderboardAnalysis) -> int:
    """Decimals of the means: one for percentages and three for fractions, or what the intervals need."""
    least = 3 if set(analysis.table.scales.values()) == {"fraction"} else 1
    known = [entry.interval for entry in analysis.entries if entry.interval.known]
    known = [interval for interval in known if interval.high - interval.low > ROUNDING * abs(interval.high)]
    return max(least, shared_decimals(known)) if known else least


def _tau(change: OrderChange) -> str:
    return format_value(change.tau, 2)


def _half_steps(values: Sequence[float]) -> list[str]:
    """Counts of ranks: without decimals if all are integers.

    >>> _half_steps([2.0, 1.5]), _half_steps([2.0, 1.0])
    (['2.0', '1.5'], ['2', '1'])
    """
    places = 0 if all(value == int(value) for value in values) else 1
    return [format_value(value, places) for value in values]


def rank_chart(analysis: LeaderboardAnalysis) -> Chart:
    """The rank interval of each model; circles could rank first, open diamonds could not."""
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
        ("circle", LIGHT["lead"], LIGHT["lead"], "could rank first"),
        ("diamond", LIGHT["paper"], LIGHT["behind"], "cannot be first"),
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
        fluid=True,
        height=row_step(len(rows)),
        data={"values": rows},
    )
