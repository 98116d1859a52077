"""Every pair of systems: the difference with its interval, and how often which of them wins."""

from __future__ import annotations

from itertools import combinations

from equipoise.report.page.figures import figure_of, number, scale_of
from equipoise.report.page.model import Pair, Pairs, WinCell
from equipoise.report.page.subject import Subject
from equipoise.stats.comparison import Comparison
from equipoise.stats.contrast import Contrast
from equipoise.stats.numbers import about, count, figure, p_value, percent, shared_decimals
from equipoise.types import Direction


def pairs(subject: Subject) -> Pairs | None:
    """The better-ranked system of each pair minus the other; None where there is nothing to compare."""
    comparison = subject.comparison
    if comparison is None:
        return None
    rows = _rows(comparison, comparison.primary)
    others = [name for name in subject.metrics if name != comparison.primary]
    return Pairs(
        metric=comparison.primary,
        better=str(comparison.better),
        scale=scale_of([row.figure for row in rows], [0.0]),
        rows=rows,
        matrix=tuple(tuple(_cell(comparison, a, b) for b in comparison.order) for a in comparison.order),
        others=tuple(row for name in others for row in _rows(comparison, name)),
        caption=_caption(comparison),
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
        figure=figure_of(seen.difference, seen.interval, places, difference=True),
        p=p_value(seen.p, reason=seen.reason),
        adjusted=p_value(seen.adjusted, reason=seen.reason),
        winner=seen.winner(alpha) or "",
        n=count(seen.n),
        wins=seen.wins,
        ties=seen.ties,
        losses=seen.losses,
        detectable=figure(seen.detectable.value, places, reason=seen.detectable.reason),
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
    share = number(seen.wins / seen.n) if seen.n else None
    return WinCell(f"{seen.wins}/{seen.ties}/{seen.losses}", share, apart)


def _caption(comparison: Comparison) -> str:
    side = "right" if comparison.better == Direction.UP else "left"
    return (
        f"The first system minus the second on {comparison.primary}, with "
        f"{percent(comparison.question.level)} intervals; where the first is better, the mark lies to the "
        f"{side} of 0. "
        f"{comparison.test[:1].upper()}{comparison.test[1:]}; {comparison.family}."
    )
