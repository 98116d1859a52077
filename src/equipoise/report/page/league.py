"""The league table: every system on a metric, with its band, its interval, and what luck would score."""

from __future__ import annotations

from dataclasses import replace

from equipoise.report.chance import bounded_systems, chance_text
from equipoise.report.comparison import chance_line, others_caption
from equipoise.report.page.figures import figure_of, number, scale_of
from equipoise.report.page.model import League, LeagueRow
from equipoise.report.page.subject import Subject
from equipoise.report.score import caption as score_caption
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import count, p_value, percent, ranks, shared_decimals, signed, span
from equipoise.stats.result import Estimate


def leagues(subject: Subject) -> tuple[League, ...]:
    """A table for each metric, that of the primary one first."""
    return tuple(_league(subject, metric) for metric in subject.metrics)


def _league(subject: Subject, metric: str) -> League:
    estimates = subject.estimates(metric)
    places = shared_decimals(each.interval for each in estimates)
    rows = tuple(_row(subject, at, each, places) for at, each in enumerate(estimates))
    return League(
        metric=metric,
        better=str(estimates[0].better),
        unit=estimates[0].unit,
        level=percent(estimates[0].interval.level),
        scale=scale_of([row.figure for row in rows], [row.chance for row in rows]),
        rows=rows,
        caption=_caption(subject, metric),
    )


def _row(subject: Subject, place: int, estimate: Estimate, places: int) -> LeagueRow:
    name, comparison = subject.names[place], subject.comparison
    bounded = name in bounded_systems(subject.findings)
    row = LeagueRow(
        system=name,
        figure=figure_of(estimate.value, estimate.interval, places),
        n=count(estimate.n),
        undefined=count(estimate.undefined),
        chance=number(estimate.chance),
        chance_text=chance_text(estimate, places, bounded=bounded),
    )
    return row if comparison is None else _compared(row, comparison, estimate.metric, places)


def _compared(row: LeagueRow, comparison: Comparison, metric: str, places: int) -> LeagueRow:
    """The row with its bands and ranks, on the primary metric, and what parts it from the leader."""
    name = row.system
    row = replace(row, bands=comparison.bands_on(metric)[name])
    if metric == comparison.primary:
        row = replace(row, rank=ranks(*comparison.ranks[name]))
    if comparison.leader is None or name == comparison.leader:
        return row
    seen = comparison.contrast(name, comparison.leader, metric)
    places = max(places, shared_decimals([seen.interval]))
    return replace(
        row,
        difference=signed(seen.difference, places),
        difference_span=span(seen.interval, places),
        p=p_value(seen.adjusted, reason=seen.reason),
        counts="n/a" if seen.wins is None else f"{seen.wins}/{seen.ties}/{seen.losses}",
    )


def _caption(subject: Subject, metric: str) -> str:
    comparison = subject.comparison
    if comparison is None:
        return score_caption([run.result for run in subject.runs])
    if metric != comparison.primary:
        return others_caption(comparison, [metric])
    level = percent(comparison.question.level)
    return f"Systems that share a letter cannot be told apart at {level}. {chance_line(comparison)}"
