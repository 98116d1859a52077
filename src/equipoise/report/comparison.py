"""What people see after comparing: bands, differences to the leader, and what the data can tell."""

from __future__ import annotations

from math import isnan
from typing import Any

from equipoise.checks.base import counted
from equipoise.checks.protocol import PARTIAL_RUN
from equipoise.report.chance import BOUND_NOTE, bound_sign, bounded_systems, chance_text
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.comparison import Comparison
from equipoise.stats.contrast import Contrast
from equipoise.stats.numbers import (
    between,
    count,
    figure,
    p_value,
    percent,
    ranks,
    shared_decimals,
    signed,
    span,
)
from equipoise.stats.redrawn import METHOD as REDRAWN
from equipoise.types import Direction, Finding, labelled

LEADER = "leader"
TO_LEADER = "to leader"
DIFFERENCE_INTERVAL = "diff. interval"
PARTIAL = "*"
"""Stands behind the name of a system whose run is not complete; a shortened name keeps its end."""


def comparison_part(comparison: Comparison, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The table on the primary metric, its caption, the other metrics, and the verdict."""
    clusters = f" in {counted(comparison.clusters, 'cluster')}" if comparison.clusters is not None else ""
    title = f"{comparison.primary} on {counted(comparison.n, 'unit')}{clusters}, best first"
    parts: list[Any] = [heading(title), Paragraph(""), FittedTable(primary_columns(comparison))]
    parts += [Paragraph(line) for line in partial_lines(comparison)]
    others = [name for name in comparison.metrics if name != comparison.primary]
    if others:
        parts += [Paragraph(""), FittedTable(other_columns(comparison, others))]
        parts += [] if quiet else [Paragraph(others_caption(comparison, others))]
    if verbose:
        parts += [Paragraph(""), heading("Every pair"), FittedTable(pair_columns(comparison))]
    if not quiet:
        parts += [Paragraph(""), Paragraph(caption(comparison)), Paragraph(chance_line(comparison))]
        parts += [Paragraph(""), Paragraph(comparison.verdict())]
    return parts


def primary_columns(comparison: Comparison) -> list[Column]:
    """One row a system, best first."""
    primary, order = comparison.primary, comparison.order
    estimates = [comparison.estimates[name][primary] for name in order]
    places = shared_decimals(each.interval for each in estimates)
    behind = [_to_leader(comparison, name, primary) for name in order]
    finer = max(places, shared_decimals(each.interval for each in behind if each is not None))
    level = percent(comparison.question.level)
    own = _own(comparison)
    return [
        Column("band", [" ".join(comparison.bands[name]) or "-" for name in order]),
        Column("system", _marked(comparison), shortens="middle"),
        Column(primary, [figure(each.value, places) for each in estimates], right=True),
        Column(f"{level} interval", [span(each.interval, places) for each in estimates], right=True, rank=2),
        Column(TO_LEADER, [_difference(each, finer, otherwise=own) for each in behind], right=True, rank=3),
        Column(DIFFERENCE_INTERVAL, [_reach(each, finer) for each in behind], right=True, rank=9, extra=True),
        Column(_p_head(comparison), [_p(each) for each in behind], right=True, rank=4),
        Column("win/tie/loss", [_counts(each) for each in behind], right=True, rank=6),
        Column("rank", [ranks(*comparison.ranks[name]) for name in order], right=True, rank=5),
    ]


def other_columns(comparison: Comparison, metrics: list[str]) -> list[Column]:
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
                    figure(estimate.value, places),
                    span(estimate.interval, places),
                    _difference(seen, places, otherwise=_own(comparison)),
                    _p(seen),
                    chance_text(estimate, places, bounded=name in bounded),
                )
            )
    metric_cells, system, value, reach, difference, p, chance = zip(*rows, strict=True)
    return [
        Column("metric", metric_cells),
        Column("system", system, shortens="middle"),
        Column("estimate", value, right=True),
        Column(f"{percent(comparison.question.level)} interval", reach, right=True, rank=1),
        Column(TO_LEADER, difference, right=True, rank=2),
        Column(_p_head(comparison), p, right=True, rank=3),
        Column("chance", chance, right=True, rank=9, extra=True),
    ]


def pair_columns(comparison: Comparison) -> list[Column]:
    """Every pair on every metric, with what this many units can show."""
    pairs = comparison.contrasts
    places = [shared_decimals([each.interval]) for each in pairs]
    shown = list(zip(pairs, places, strict=True))
    return [
        Column("metric", [each.metric for each in pairs]),
        Column("system", [each.a for each in pairs], shortens="middle"),
        Column("minus", [each.b for each in pairs], shortens="middle"),
        Column("difference", [_difference(each, digits) for each, digits in shown], right=True),
        Column("interval", [_reach(each, digits) for each, digits in shown], right=True, rank=4),
        Column("p", [p_value(each.p) for each in pairs], right=True, rank=5),
        Column("adj. p", [p_value(each.adjusted) for each in pairs], right=True, rank=1),
        Column("win/tie/loss", [_counts(each) for each in pairs], right=True, rank=3),
        Column(
            "detectable",
            [figure(each.detectable.value, digits) for each, digits in shown],
            right=True,
            rank=2,
        ),
    ]


def caption(comparison: Comparison) -> str:
    """What the letters mean, and how p and the intervals of differences were made."""
    question = comparison.question
    how = f"{comparison.test[:1].upper()}{comparison.test[1:]}, two-sided; {comparison.family}"
    flips = "" if comparison.flips is None else f"; {count(comparison.flips)} flips"
    return (
        "Systems that share a letter cannot be told apart at "
        f"{percent(question.level)}. {how}{flips}; seed {question.seed}.{_about_intervals(comparison)}"
        f"{_about_gaps(comparison, [comparison.primary])}"
    )


def others_caption(comparison: Comparison, metrics: list[str]) -> str:
    """To whom the differences on the other metrics are, and what each metric's p was corrected for."""
    families = comparison.families_of(metrics)
    whom = f"Differences are to {comparison.leader}, which leads on {comparison.primary}. "
    own = f"Each metric is a family of its own: {families}."
    return f"{whom if comparison.leader else ''}{own}{_about_gaps(comparison, metrics)}"


def partial_lines(comparison: Comparison) -> list[str]:
    """A sentence for every run that is not complete."""
    return [f"{PARTIAL} {labelled(each.subject, each.sentence)}" for each in _partial(comparison)]


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
    told = [f"{metric} ({counted(units, 'unit')})" for metric, units in gaps.items()]
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
    over = (
        "from redrawn units"
        if [*methods] == [REDRAWN]
        else f"{', '.join(methods)} over the paired differences"
    )
    made = f" Intervals of differences: {over}"
    if comparison.correction == "none" or len(pairs) < 2:
        return f"{made}."
    return (
        f"{made}, each by itself and not adjusted for the number of pairs, so that one may exclude 0 beside "
        f"an adjusted p above {percent(comparison.alpha)}."
    )


def chance_line(comparison: Comparison) -> str:
    """What luck would score on the primary metric."""
    estimates = [comparison.estimates[name][comparison.primary] for name in comparison.order]
    known = [each.chance for each in estimates if not isnan(each.chance)]
    if not known:
        return f"The chance level of {comparison.primary} is n/a (not computed)."
    places = shared_decimals(each.interval for each in estimates)
    line = f"Chance level of {comparison.primary}: "
    if bounded_systems(comparison.findings):
        bound = max(known) if comparison.better == Direction.UP else min(known)
        return f"{line}{bound_sign(comparison.better)}{figure(bound, places)}. {BOUND_NOTE}"
    return f"{line}{between(min(known), max(known), places)}."


def _partial(comparison: Comparison) -> list[Finding]:
    return [finding for finding in comparison.findings if finding.code == PARTIAL_RUN]


def _marked(comparison: Comparison) -> list[str]:
    """The systems, best first; one whose run is not complete has a mark."""
    partial = {finding.subject for finding in _partial(comparison)}
    return [f"{name}{PARTIAL}" if name in partial else name for name in comparison.order]


def _to_leader(comparison: Comparison, name: str, metric: str) -> Contrast | None:
    """The system minus the leader; None for the leader, and where nothing leads."""
    if comparison.leader is None or name == comparison.leader:
        return None
    return comparison.contrast(name, comparison.leader, metric)


def _own(comparison: Comparison) -> str:
    """What stands where a system would be compared with itself."""
    return LEADER if comparison.leader is not None else "n/a"


def _difference(seen: Contrast | None, places: int, *, otherwise: str = "") -> str:
    return otherwise if seen is None else signed(seen.difference, places)


def _reach(seen: Contrast | None, places: int) -> str:
    return "" if seen is None else span(seen.interval, places)


def _p(seen: Contrast | None) -> str:
    return "" if seen is None else p_value(seen.adjusted)


def _p_head(comparison: Comparison) -> str:
    return "p" if comparison.correction == "none" else "adj. p"


def _counts(seen: Contrast | None) -> str:
    if seen is None:
        return ""
    return "n/a" if seen.wins is None else f"{seen.wins}/{seen.ties}/{seen.losses}"
