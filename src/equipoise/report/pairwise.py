"""What people see after comparing: bands, differences to the leader, and what the data can tell."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.checks.protocol import PARTIAL_RUN
from equipoise.report.tables import (
    BOUND_NOTE,
    axis_scale,
    bounded_systems,
    chance_bound_sign,
    chance_text,
    finite_or_none,
    to_value,
)
from equipoise.report.tables import caption as score_caption
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.report.view_model import League, LeagueRow, Pair, Pairs, WinCell
from equipoise.stats.formatting import (
    about,
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_range,
    format_ranks,
    format_value,
    shared_decimals,
)
from equipoise.stats.resampled_contrasts import METHOD as REDRAWN
from equipoise.types import Direction, Finding, with_label

if TYPE_CHECKING:
    from equipoise.report.build import RunSet
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.contrasts import Contrast
    from equipoise.stats.result import Estimate

BEST = "leader"
TO_LEADER = "to leader"
DIFFERENCE_INTERVAL = "diff. interval"
INCOMPLETE_MARK = "*"
"""Stands behind the name of a system whose run is not complete; a shortened name keeps its end."""


def comparison_sections(comparison: Comparison, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The table on the primary metric, its caption, the other metrics, and the verdict."""
    clusters = f" in {pluralize(comparison.clusters, 'cluster')}" if comparison.clusters is not None else ""
    title = f"{comparison.primary} on {pluralize(comparison.n, 'unit')}{clusters}, best first"
    parts: list[Any] = [heading(title), Paragraph(""), TerminalTable(primary_columns(comparison))]
    parts += [Paragraph(line) for line in incomplete_run_notes(comparison)]
    others = [name for name in comparison.metrics if name != comparison.primary]
    if others:
        parts += [Paragraph(""), TerminalTable(metric_table(comparison, others))]
        parts += [] if quiet else [Paragraph(other_metrics_caption(comparison, others))]
    if verbose:
        parts += [Paragraph(""), heading("Every pair"), TerminalTable(pairwise_claims(comparison))]
    if not quiet:
        parts += [
            Paragraph(""),
            Paragraph(comparison_caption(comparison)),
            Paragraph(chance_note(comparison)),
        ]
        parts += [Paragraph(""), Paragraph(comparison.verdict())]
    return parts


def primary_columns(comparison: Comparison) -> list[ReportColumn]:
    """One row a system, best first."""
    primary, order = comparison.primary, comparison.order
    estimates = [comparison.estimates[name][primary] for name in order]
    places = shared_decimals(each.interval for each in estimates)
    behind = [_to_leader(comparison, name, primary) for name in order]
    finer = max(places, shared_decimals(each.interval for each in behind if each is not None))
    level = format_percent(comparison.config.confidence_level)
    own = _own(comparison)
    return [
        ReportColumn("band", [" ".join(comparison.bands[name]) or "-" for name in order]),
        ReportColumn("system", _marked(comparison), shortens="middle"),
        ReportColumn(primary, [format_value(each.value, places) for each in estimates], right=True),
        ReportColumn(
            f"{level} interval",
            [format_interval(each.interval, places) for each in estimates],
            right=True,
            rank=2,
        ),
        ReportColumn(TO_LEADER, [_difference(each, finer, otherwise=own) for each in behind], right=True, rank=3),
        ReportColumn(DIFFERENCE_INTERVAL, [_reach(each, finer) for each in behind], right=True, rank=9, extra=True),
        ReportColumn(_p_head(comparison), [_p(each) for each in behind], right=True, rank=4),
        ReportColumn("win/tie/loss", [_counts(each) for each in behind], right=True, rank=6),
        ReportColumn("rank", [format_ranks(*comparison.ranks[name]) for name in order], right=True, rank=5),
    ]


def metric_table(comparison: Comparison, metrics: list[str]) -> list[ReportColumn]:
    """The other metrics in the order of the primary one, each against the system that leads on that."""
    rows = []
    bounded = bounded_systems(comparison.findings)
    marked = dict(zip(comparison.order, _marked(comparison), strict=True))
    for metric in metrics:
        estimates = {name: comparison.estimates[name][metric] for name in comparison.order}
        places = shared_decimals(each.interval for each in estimates.values())
        for number, (name, estimate) in enumerate(estimates.items()):
            seen = _to_leader(comparison, name, metric)
            rows.append(
                (
                    metric if number == 0 else "",
                    marked[name],
                    format_value(estimate.value, places),
                    format_interval(estimate.interval, places),
                    _difference(seen, places, otherwise=_own(comparison)),
                    _p(seen),
                    chance_text(estimate, places, bounded=name in bounded),
                )
            )
    metric_cells, system, value, reach, difference, p, chance = zip(*rows, strict=True)
    return [
        ReportColumn("metric", metric_cells),
        ReportColumn("system", system, shortens="middle"),
        ReportColumn("estimate", value, right=True),
        ReportColumn(f"{format_percent(comparison.config.confidence_level)} interval", reach, right=True, rank=1),
        ReportColumn(TO_LEADER, difference, right=True, rank=2),
        ReportColumn(_p_head(comparison), p, right=True, rank=3),
        ReportColumn("chance", chance, right=True, rank=9, extra=True),
    ]


def pairwise_claims(comparison: Comparison) -> list[ReportColumn]:
    """Every pair on every metric, with what this many units can show."""
    pairs = comparison.contrasts
    places = [shared_decimals([each.interval]) for each in pairs]
    shown = list(zip(pairs, places, strict=True))
    return [
        ReportColumn("metric", [each.metric for each in pairs]),
        ReportColumn("system", [each.a for each in pairs], shortens="middle"),
        ReportColumn("minus", [each.b for each in pairs], shortens="middle"),
        ReportColumn("difference", [_difference(each, digits) for each, digits in shown], right=True),
        ReportColumn("interval", [_reach(each, digits) for each, digits in shown], right=True, rank=4),
        ReportColumn("p", [format_p(each.p) for each in pairs], right=True, rank=5),
        ReportColumn("adj. p", [format_p(each.adjusted) for each in pairs], right=True, rank=1),
        ReportColumn("win/tie/loss", [_counts(each) for each in pairs], right=True, rank=3),
        ReportColumn(
            "detectable",
            [format_value(each.detectable.value, digits) for each, digits in shown],
            right=True,
            rank=2,
        ),
    ]


def comparison_caption(comparison: Comparison) -> str:
    """What the letters mean, and how p and the intervals of differences were made."""
    config = comparison.config
    how = f"{comparison.test[:1].upper()}{comparison.test[1:]}, two-sided; {comparison.family}"
    permutations = "" if comparison.n_permutations is None else f"; {format_count(comparison.n_permutations)} flips"
    return (
        "Systems that share a letter cannot be told apart at "
        f"{format_percent(config.confidence_level)}. {how}{permutations}; seed {config.seed}."
        f"{_about_intervals(comparison)}"
        f"{_about_gaps(comparison, [comparison.primary])}"
    )


def other_metrics_caption(comparison: Comparison, metrics: list[str]) -> str:
    """To whom the differences on the other metrics are, and what each metric's p was corrected for."""
    families = comparison.families_of(metrics)
    whom = f"Differences are to {comparison.leader}, which leads on {comparison.primary}. "
    own = f"Each metric is a family of its own: {families}."
    return f"{whom if comparison.leader else ''}{own}{_about_gaps(comparison, metrics)}"


def incomplete_run_notes(comparison: Comparison) -> list[str]:
    """A sentence for every run that is not complete."""
    return [f"{INCOMPLETE_MARK} {with_label(each.subject, each.message)}" for each in _partial(comparison)]


def _about_gaps(comparison: Comparison, metrics: list[str]) -> str:
    """Where a difference is over fewer units than an estimate beside it, since one system lacks a value."""
    gaps = {
        each.metric: each.n
        for each in comparison.contrasts
        if each.metric in metrics
        and each.wins is not None
        and each.n < max(comparison.estimates[name][each.metric].n for name in (each.a, each.b))
    }
    if not gaps:
        return ""
    told = [f"{metric} ({pluralize(units, 'unit')})" for metric, units in gaps.items()]
    return (
        f" Differences are over the units where both systems have a value, fewer than an estimate rests on, "
        f"and need not be those of the estimates: {', '.join(told)}."
    )


def _about_intervals(comparison: Comparison) -> str:
    """How the intervals of the differences were made, and why one may seem to contradict its p."""
    pairs = [each for each in comparison.contrasts if each.metric == comparison.primary]
    methods = dict.fromkeys(each.interval.method for each in pairs if each.interval.known)
    if not methods:
        return ""
    over = "from redrawn units" if [*methods] == [REDRAWN] else f"{', '.join(methods)} over the paired differences"
    made = f" Intervals of differences: {over}"
    if comparison.correction == "none" or len(pairs) < 2:
        return f"{made}."
    return (
        f"{made}, each by itself and not adjusted for the number of pairs, so that one may exclude 0 beside "
        f"an adjusted p above {format_percent(comparison.alpha)}."
    )


def chance_note(comparison: Comparison) -> str:
    """What luck would score on the primary metric."""
    estimates = [comparison.estimates[name][comparison.primary] for name in comparison.order]
    known = [each.chance for each in estimates if not isnan(each.chance)]
    if not known:
        return f"The chance level of {comparison.primary} is n/a (not computed)."
    places = shared_decimals(each.interval for each in estimates)
    line = f"Chance level of {comparison.primary}: "
    if bounded_systems(comparison.findings):
        bound = max(known) if comparison.better == Direction.UP else min(known)
        return f"{line}{chance_bound_sign(comparison.better)}{format_value(bound, places)}. {BOUND_NOTE}"
    return f"{line}{format_range(min(known), max(known), places)}."


def _partial(comparison: Comparison) -> list[Finding]:
    return [finding for finding in comparison.findings if finding.code == PARTIAL_RUN]


def _marked(comparison: Comparison) -> list[str]:
    """The systems, best first; one whose run is not complete has a mark."""
    partial = {finding.subject for finding in _partial(comparison)}
    return [f"{name}{INCOMPLETE_MARK}" if name in partial else name for name in comparison.order]


def _to_leader(comparison: Comparison, name: str, metric: str) -> Contrast | None:
    """The system minus the leader; None for the leader, and where nothing leads."""
    if comparison.leader is None or name == comparison.leader:
        return None
    return comparison.contrast(name, comparison.leader, metric)


def _own(comparison: Comparison) -> str:
    """What stands where a system would be compared with itself."""
    return BEST if comparison.leader is not None else "n/a"


def _difference(seen: Contrast | None, places: int, *, otherwise: str = "") -> str:
    return otherwise if seen is None else format_difference(seen.difference, places)


def _reach(seen: Contrast | None, places: int) -> str:
    return "" if seen is None else format_interval(seen.interval, places)


def _p(seen: Contrast | None) -> str:
    return "" if seen is None else format_p(seen.adjusted)


def _p_head(comparison: Comparison) -> str:
    return "p" if comparison.correction == "none" else "adj. p"


def _counts(seen: Contrast | None) -> str:
    if seen is None:
        return ""
    return "n/a" if seen.wins is None else f"{seen.wins}/{seen.ties}/{seen.losses}"


# Every pair of systems: the difference with its interval, and how often which of them wins.


def pairwise_table(subject: RunSet) -> Pairs | None:
    """The better-ranked system of each pair minus the other; None where there is nothing to compare."""
    comparison = subject.comparison
    if comparison is None:
        return None
    rows = _rows(comparison, comparison.primary)
    others = [name for name in subject.metrics if name != comparison.primary]
    return Pairs(
        metric=comparison.primary,
        better=str(comparison.better),
        scale=axis_scale([row.figure for row in rows], [0.0]),
        rows=rows,
        matrix=tuple(tuple(_cell(comparison, a, b) for b in comparison.order) for a in comparison.order),
        others=tuple(row for name in others for row in _rows(comparison, name)),
        caption=_pairs_caption(comparison),
    )


def _rows(comparison: Comparison, metric: str) -> tuple[Pair, ...]:
    seen = [comparison.contrast(a, b, metric) for a, b in combinations(comparison.order, 2)]
    places = shared_decimals(each.interval for each in seen)
    return tuple(_pair(each, places, comparison.alpha) for each in seen)


def _pair(seen: Contrast, places: int, alpha: float) -> Pair:
    needed = seen.needed
    return Pair(
        metric=seen.metric,
        a=seen.a,
        b=seen.b,
        figure=to_value(seen.difference, seen.interval, places, difference=True),
        p=format_p(seen.p, reason=seen.reason),
        adjusted=format_p(seen.adjusted, reason=seen.reason),
        winner=seen.winner(alpha) or "",
        n=format_count(seen.n),
        wins=seen.wins,
        ties=seen.ties,
        losses=seen.losses,
        detectable=format_value(seen.detectable.value, places, reason=seen.detectable.reason),
        needed=about(needed.value) if needed.known else f"n/a ({needed.reason})",
        reason=seen.reason,
    )


def _cell(comparison: Comparison, row: str, column: str) -> WinCell | None:
    if row == column:
        return None
    seen = comparison.contrast(row, column)
    apart = seen.winner(comparison.alpha) is not None
    if seen.wins is None:
        return WinCell("n/a", None, apart)
    share = finite_or_none(seen.wins / seen.n) if seen.n else None
    return WinCell(f"{seen.wins}/{seen.ties}/{seen.losses}", share, apart)


def _pairs_caption(comparison: Comparison) -> str:
    side = "right" if comparison.better == Direction.UP else "left"
    return (
        f"The first system minus the second on {comparison.primary}, with "
        f"{format_percent(comparison.config.confidence_level)} intervals; where the first is better, "
        f"the mark lies to the {side} of 0. "
        f"{comparison.test[:1].upper()}{comparison.test[1:]}; {comparison.family}."
    )


# The league table: every system on a metric, with its band, its interval, and what luck would score.


def leaderboard_tables(subject: RunSet) -> tuple[League, ...]:
    """A table for each metric, that of the primary one first."""
    return tuple(_league(subject, metric) for metric in subject.metrics)


def _league(subject: RunSet, metric: str) -> League:
    estimates = subject.estimates(metric)
    places = shared_decimals(each.interval for each in estimates)
    rows = tuple(_row(subject, at, each, places) for at, each in enumerate(estimates))
    return League(
        metric=metric,
        better=str(estimates[0].better),
        unit=estimates[0].unit,
        level=format_percent(estimates[0].interval.confidence_level),
        scale=axis_scale([row.figure for row in rows], [row.chance for row in rows]),
        rows=rows,
        caption=_caption(subject, metric),
    )


def _row(subject: RunSet, place: int, estimate: Estimate, places: int) -> LeagueRow:
    name, comparison = subject.names[place], subject.comparison
    bounded = name in bounded_systems(subject.findings)
    row = LeagueRow(
        system=name,
        figure=to_value(estimate.value, estimate.interval, places),
        n=format_count(estimate.n),
        undefined=format_count(estimate.undefined),
        chance=finite_or_none(estimate.chance),
        chance_text=chance_text(estimate, places, bounded=bounded),
    )
    return row if comparison is None else _compared(row, comparison, estimate.metric, places)


def _compared(row: LeagueRow, comparison: Comparison, metric: str, places: int) -> LeagueRow:
    """The row with its bands and ranks, on the primary metric, and what parts it from the leader."""
    name = row.system
    row = replace(row, bands=comparison.bands_on(metric)[name])
    if metric == comparison.primary:
        row = replace(row, rank=format_ranks(*comparison.ranks[name]))
    if comparison.leader is None or name == comparison.leader:
        return row
    seen = comparison.contrast(name, comparison.leader, metric)
    places = max(places, shared_decimals([seen.interval]))
    return replace(
        row,
        difference=format_difference(seen.difference, places),
        difference_span=format_interval(seen.interval, places),
        p=format_p(seen.adjusted, reason=seen.reason),
        counts="n/a" if seen.wins is None else f"{seen.wins}/{seen.ties}/{seen.losses}",
    )


def _caption(subject: RunSet, metric: str) -> str:
    comparison = subject.comparison
    if comparison is None:
        return score_caption([run.result for run in subject.runs])
    if metric != comparison.primary:
        return other_metrics_caption(comparison, [metric])
    level = format_percent(comparison.config.confidence_level)
    return f"Systems that share a letter cannot be told apart at {level}. {chance_note(comparison)}"
