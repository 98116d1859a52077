"""The report of a benchmark for the terminal: the decision, a short table, and one line per remark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from statistics import fmean, harmonic_mean
from typing import TYPE_CHECKING, Any

from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import format_count, format_interval, format_percent, format_value, shared_decimals

if TYPE_CHECKING:
    from equipoise.domains.bench.aggregate import Aggregate
    from equipoise.domains.bench.costs import SystemCost
    from equipoise.domains.bench.results import BenchComparison, DataComparison

_NAMED = 4


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A head, the cells, and whether numbers are aligned on the right."""

    head: str
    cells: tuple[str, ...]
    right: bool = True
    rank: int = 0


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What is shown of one data set or of the whole suite: a title, the decision, a table and remarks."""

    title: str
    decision: str
    columns: tuple[AnswerColumn, ...]
    remarks: tuple[str, ...]

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> AnswerView:
        """From the values of ``dataclasses.asdict`` after they were stored as JSON."""
        columns = tuple(AnswerColumn(**{**each, "cells": tuple(each["cells"])}) for each in content["columns"])
        return cls(content["title"], content["decision"], columns, tuple(content["remarks"]))


def bench_views(comparison: BenchComparison) -> list[AnswerView]:
    """The suite first if there are several data sets, then every data set."""
    single = [_data_view(each, comparison) for each in comparison.datasets]
    if comparison.aggregate is None:
        return single
    return [_suite_view(comparison, comparison.aggregate), *single]


def answer_parts(views: Sequence[AnswerView], *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The first view, or all of them with ``verbose``."""
    parts: list[Any] = []
    for view in views if verbose else views[:1]:
        columns = [
            ReportColumn(
                each.head,
                each.cells,
                right=each.right,
                rank=each.rank,
                shortens="middle" if each.head == "system" else "",
            )
            for each in view.columns
        ]
        parts += [*([Paragraph("")] if parts else []), heading(view.title)]
        if not quiet:
            parts.append(Paragraph(view.decision))
        parts.append(TerminalTable(columns))
        if not quiet:
            parts += [Paragraph(remark) for remark in view.remarks]
    return parts


def _suite_view(comparison: BenchComparison, whole: Aggregate) -> AnswerView:
    names = [row.system for row in whole.rows]
    metrics = dict.fromkeys(each.data.primary for each in comparison.datasets)
    columns = [
        AnswerColumn("rank", tuple(_rank_range(row.rank_range) for row in whole.rows)),
        AnswerColumn("system", tuple(names), right=False),
        AnswerColumn("mean", tuple(f"{row.mean_score:.3f}" for row in whole.rows)),
        AnswerColumn(
            f"{format_percent(whole.confidence_level)} interval",
            tuple(f"[{row.score_interval[0]:.3f}, {row.score_interval[1]:.3f}]" for row in whole.rows),
        ),
        *(
            AnswerColumn(each.data.name, tuple(_marked(each, name) for name in names), rank=2)
            for each in comparison.datasets
        ),
        *_cost_columns([_mean_cost(comparison, name) for name in names]),
    ]
    count = len(comparison.datasets)
    n_best = next(row.best_on for row in whole.rows if row.system == whole.leader)
    remarks = [
        f"Mean of {', '.join(metrics)} over {count} data sets; * is not significantly worse than the best. "
        f"{whole.leader} is best on {n_best} of {count}.",
        *_common_remarks(comparison),
    ]
    if count < 5:
        remarks.insert(1, f"{count} data sets are few: intervals over data sets are rough.")
    if whole.incomplete:
        remarks.append(f"Not on all data sets, so not in this table: {', '.join(whole.incomplete)}.")
    return AnswerView(
        f"{count} data sets, {len(names)} systems",
        _decision(comparison, "the mean score"),
        tuple(columns),
        tuple(remarks),
    )


def _data_view(each: DataComparison, comparison: BenchComparison) -> AnswerView:
    names, primary = each.order, each.data.primary
    estimates = [each.estimate(name) for name in names]
    places = shared_decimals(estimate.interval for estimate in estimates)
    ranks = each.comparison.ranks if each.comparison is not None else {}
    groups = each.comparison.bands if each.comparison is not None else {}
    others = [name for name in each.data.metrics[1:] if name in each.systems[0].result.estimates][:3]
    columns = [
        AnswerColumn("rank", tuple(_rank_range(ranks.get(name, (1, 1))) for name in names)),
        AnswerColumn("system", tuple(names), right=False),
        AnswerColumn("tied", tuple("".join(groups.get(name, ())) for name in names), right=False, rank=4),
        AnswerColumn(primary, tuple(format_value(estimate.value, places) for estimate in estimates)),
        AnswerColumn(
            f"{format_percent(estimates[0].interval.confidence_level)} interval",
            tuple(format_interval(estimate.interval, places) for estimate in estimates),
        ),
        *(
            AnswerColumn(metric, tuple(format_value(each.result(name)[metric].value, 3) for name in names), rank=2)
            for metric in others
        ),
        *_cost_columns([each.system(name).cost for name in names]),
    ]
    if not groups:
        columns = [column for column in columns if column.head != "tied"]
    remarks = [_chance(each), _sample_size(each), *(f"Data: {issue}." for issue in each.data.issues)]
    if comparison.aggregate is None:
        remarks += _common_remarks(comparison, data=False)
        decision = _decision(comparison, primary)
    else:
        decision = _leader_sentence(each.leader, each.tied_with_leader, primary, len(names))
    title = f"{each.data.name}: {each.data.kind}, {each.data.size}"
    return AnswerView(title, decision, tuple(columns), tuple(filter(None, remarks)))


def _decision(comparison: BenchComparison, metric: str) -> str:
    """The best system, the cheapest that is not significantly worse, and what can be dropped."""
    found = comparison.decision
    board = comparison.aggregate
    count = len(board.rows if board is not None else comparison.datasets[0].systems)
    if not found.above_random:
        return f"No system is significantly better than random vectors on {metric}: these data cannot decide. Use more."
    sentences = [_leader_sentence(found.best, found.tied, metric, count)]
    if found.cheapest != found.best:
        sentences.append(
            f"The cheapest of these is {found.cheapest}{_times_cheaper(comparison, found.cheapest, found.best)}."
        )
    if found.dropped:
        names = list(found.dropped)
        listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        sentences.append(f"{listed} can be dropped: a system that costs no more is significantly better.")
    return " ".join(sentences)


def _leader_sentence(best: str, tied: Sequence[str], metric: str, count: int) -> str:
    if count == 1:
        return f"{best} is the only system."
    if not tied:
        return f"{best} is best on {metric}, significantly better than all {count - 1} others."
    listed = ", ".join(tied[:_NAMED]) + (f" and {len(tied) - _NAMED} more" if len(tied) > _NAMED else "")
    verb = "is" if len(tied) == 1 else "are"
    return f"{best} scores highest on {metric}; {listed} {verb} not significantly worse."


def _times_cheaper(comparison: BenchComparison, cheap: str, best: str) -> str:
    one, other = comparison.cost(cheap)[0], comparison.cost(best)[0]
    if isfinite(one) and isfinite(other) and other > 1.5 * one:
        return f" ({other / one:,.0f} times faster)" if other > 2 * one else f" ({other / one:.1f} times faster)"
    return ""


def _common_remarks(comparison: BenchComparison, *, data: bool = True) -> list[str]:
    remarks = []
    if data:
        issues = [f"{each.data.name}: {issue}" for each in comparison.datasets for issue in each.data.issues]
        remarks += [f"Data: {'; '.join(issues)}."] if issues else []
    if comparison.skipped:
        remarks.append(f"Not evaluated: {'; '.join(comparison.skipped)}.")
    remarks.append("Speed is measured in this process without cached texts: documents per second, query latency.")
    return remarks


def _chance(each: DataComparison) -> str:
    chance = each.estimate(each.leader).chance
    return "" if isnan(chance) else f"A random order scores {format_value(chance, 3)} on {each.data.primary}."


def _sample_size(each: DataComparison) -> str:
    noun = {"query": "queries", "search": "searches"}.get(each.data.unit, f"{each.data.unit}s")
    size = f"{format_count(len(each.data.unit_ids))} {noun}"
    if each.comparison is None or len(each.order) < 2:
        return f"{size}."
    contrast = each.comparison.contrast(each.order[0], each.order[1])
    if not contrast.detectable.known:
        return f"{size}."
    text = f"{size} can show differences of about {contrast.detectable.value:.2g} between the first two (80 % power)"
    if contrast.winner(each.comparison.alpha) is None and contrast.needed.known:
        text += f"; about {contrast.needed.value:,.0f} would show the difference seen, {abs(contrast.difference):.2g}"
    return f"{text}."


def _marked(each: DataComparison, name: str) -> str:
    good = name == each.leader or name in each.tied_with_leader
    return f"{format_value(each.score(name), 3)}{'*' if good else ' '}"


def _rank_range(interval: Sequence[float]) -> str:
    low, high = round(interval[0]), round(interval[1])
    return str(low) if low == high else f"{low}-{high}"


def _mean_cost(comparison: BenchComparison, name: str) -> SystemCost:
    from equipoise.domains.bench.costs import SystemCost as Cost

    costs = [system.cost.to_dict() for each in comparison.datasets for system in each.systems if system.name == name]
    known = {key: [value for cost in costs if (value := cost[key]) is not None] for key in costs[0]}
    means: dict[str, float | None] = {key: fmean(values) if values else None for key, values in known.items()}
    for rate in ("documents_per_second", "queries_per_second"):  # the mean of the times, not of the rates
        means[rate] = harmonic_mean(known[rate]) if known[rate] else None
    return Cost.from_dict(means)


def _cost_columns(costs: Sequence[SystemCost]) -> list[AnswerColumn]:
    """Columns in which at least one system has a value."""
    shown = {
        "docs/s": [_number(cost.documents_per_second) for cost in costs],
        "p50 ms": [_number(1000 * cost.latency_p50) for cost in costs],
        "p95 ms": [_number(1000 * cost.latency_p95) for cost in costs],
        "dims": [_number(cost.dims) for cost in costs],
        "bytes": [_number(cost.bytes_per_vector) for cost in costs],
        "$/M docs": [_number(cost.price) for cost in costs],
    }
    ranks = {"docs/s": 1, "p95 ms": 5}
    return [
        AnswerColumn(head, tuple(cells), rank=ranks.get(head, 3))
        for head, cells in shown.items()
        if any(cell != "-" for cell in cells)
    ]


def _number(value: float) -> str:
    if isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
